"""Domains: the sets of input values for which a transformation or measurement keeps its promise.

A domain tests whether a value is a member (`member`) and whether it lies within another domain
(`within`). It also has the properties that make the bound of a map smaller: bounds, the absence of
NaN, and the size of a vector.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

import numpy as np

from dpframe.arrays import NUMERIC, NUMERIC_OR_FLAG, WHOLE, Array
from dpframe.errors import InvalidArgument, InvalidBounds
from dpframe.usage import is_integer

_ENUMERATED = 1 << 20  # the largest number of possible keys that is listed one by one


class Domain:
    """A set of values. Subclasses are frozen, and two domains with equal properties are equal.

    >>> (
    ...     AtomDomain(T=int, bounds=(0, 12)).member(13),
    ...     AtomDomain(T=int, bounds=(0, 12)).within(AtomDomain(T=int)),
    ... )
    (False, True)
    """

    def member(self, value: object) -> bool:
        """Whether a value belongs to the set."""
        raise NotImplementedError

    def within(self, other: Domain) -> bool:
        """Whether every member of this domain is a member of the other, as `a >> b` requires."""
        return self == other


@dataclass(frozen=True)
class AtomDomain(Domain):
    """Single values of one type.

    `T` is bool, int, float, str, or a numpy type (`np.int8` … `np.uint64`, `np.float32`,
    `np.float64`), or the name of one ("f32", "i64"); int is stored in 64 bits and float is
    `np.float64`. Without T the type is that of the bounds: int when both are whole, else float.
    `bounds=(L, U)` limits numbers to L <= x <= U; both are finite and members of T. `nan=True`
    admits NaN, for floats only.

    >>> AtomDomain(T=int, bounds=(0, 12)).member(13)
    False
    >>> AtomDomain(float).member(float("nan")), AtomDomain(float, nan=True).member(float("nan"))
    (False, True)
    >>> AtomDomain(bounds=(-2, 2))
    AtomDomain(int, bounds=(-2, 2))
    """

    T: Any = None
    bounds: tuple[Any, Any] | None = None
    nan: bool = False
    dtype: np.dtype[Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.T, Domain | tuple | list):
            raise InvalidArgument(
                f"AtomDomain: the type comes first, not {self.T!r}. Type AtomDomain(T=float, "
                "bounds=(0, 1))."
            )
        object.__setattr__(
            self, "T", inferred(self.bounds, self.nan) if self.T is None else plain_type(self.T)
        )
        dtype = dtype_of(self.T)
        object.__setattr__(self, "dtype", dtype)
        if self.nan and dtype.kind != "f":
            raise InvalidArgument(f"nan=True with T={self._name}: only floats can be NaN.")
        if self.bounds is not None:
            object.__setattr__(self, "bounds", self._checked(self.bounds))

    def _checked(self, bounds: object) -> tuple[float, float]:
        if self.dtype.kind not in NUMERIC:
            raise InvalidBounds(f"bounds={bounds!r} with T={self._name}: only numbers have bounds.")
        if not isinstance(bounds, tuple | list) or len(bounds) != 2:
            raise InvalidBounds(f"bounds={bounds!r}: give a pair (lower, upper).")
        lower, upper = (self._bound(b, bounds) for b in bounds)
        if lower > upper:
            raise InvalidBounds(
                f"bounds={bounds!r}: the lower bound is above the upper, no value lies between "
                "them."
            )
        return lower, upper

    def _bound(self, bound: object, bounds: object) -> int | float:
        if not _is_number(bound):
            raise InvalidBounds(f"bounds={bounds!r}: {bound!r} is not a number.")
        if not math.isfinite(bound):
            raise InvalidBounds(f"bounds={bounds!r}: both are finite numbers.")
        if self.dtype.kind == "f":
            rounded = (
                float(self.dtype.type(bound)) if abs(float(bound)) <= self.limits[1] else math.inf
            )
            if math.isinf(rounded):
                raise InvalidBounds(f"bounds={bounds!r} do not fit in {self._name}.")
            return rounded + 0.0  # no negative zero
        if not float(bound).is_integer():
            raise InvalidBounds(f"bounds={bounds!r}: T={self._name} has whole numbers only.")
        limits = np.iinfo(self.dtype)
        if not limits.min <= int(bound) <= limits.max:
            raise InvalidBounds(
                f"bounds={bounds!r} do not fit in {self._name}, from {limits.min} to {limits.max}."
            )
        return int(bound)

    # Identity

    @property
    def _name(self) -> str:
        return self.T.__name__ if isinstance(self.T, type) else str(self.T)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AtomDomain):
            return NotImplemented
        return (self.dtype, self.bounds, self.nan) == (other.dtype, other.bounds, other.nan)

    def __hash__(self) -> int:
        return hash((self.dtype.str, self.bounds, self.nan))

    def __repr__(self) -> str:
        arguments = [self._name]
        arguments += [f"bounds={self.bounds}"] if self.bounds is not None else []
        arguments += ["nan=True"] if self.nan else []
        return f"AtomDomain({', '.join(arguments)})"

    # Properties

    @property
    def is_float(self) -> bool:
        """Whether values are floats: the support of continuous noise."""
        return self.dtype.kind == "f"

    @property
    def is_integer(self) -> bool:
        """Whether values are whole numbers, bool not among them."""
        return self.dtype.kind in WHOLE

    @property
    def limits(self) -> tuple[int, int] | tuple[float, float]:
        """The smallest and largest number that T itself can hold (finite)."""
        info = np.finfo(self.dtype) if self.is_float else np.iinfo(self.dtype)
        return (
            (float(info.min), float(info.max)) if self.is_float else (int(info.min), int(info.max))
        )

    def member(self, value: object) -> bool:
        """Whether the value is of this type, within the bounds, and not NaN unless NaN is allowed.

        A whole number is accepted as a float. A float within the range of float32 is accepted as a
        float32; it is rounded when it is stored. A float is never accepted as an integer, and a
        bool is not a number.
        """
        kind = self.dtype.kind
        match value:
            case bool() | np.bool_():
                return kind == "b"
            case str():
                return kind == "O"
            case int() | np.integer():
                return kind not in "bO" and self._holds(int(value))
            case float() | np.floating() if kind == "f":
                return self.nan if math.isnan(value) else self._holds(float(value))
        return False

    def _holds(self, value: int | float) -> bool:
        if not self.is_float:
            inside = self.limits[0] <= value <= self.limits[1]
        else:
            inside = abs(value) <= self.limits[1] or (
                isinstance(value, float) and math.isinf(value)
            )
        if not inside or self.bounds is None:
            return inside
        if self.is_float and self.dtype.itemsize < 8:
            # The value is rounded when it is stored, and so were the bounds.
            value = float(self.dtype.type(value))
        return bool(self.bounds[0] <= value <= self.bounds[1])

    def members(self, values: Array) -> bool:
        """Whether every entry of an array is a member; the vectorised `member`."""
        if values.size == 0:
            return True
        kind, own = values.dtype.kind, self.dtype.kind
        if kind not in NUMERIC_OR_FLAG or own not in NUMERIC_OR_FLAG or values.dtype.itemsize > 8:
            return all(self.member(v) for v in values.tolist())
        if "b" in (kind, own) or (kind == "f" and own != "f"):
            return bool(kind == own)
        if kind == "f":
            missing = np.isnan(values)
            if missing.any():
                if not self.nan:
                    return False
                values = values[~missing]
            # Infinities are members; larger finite numbers are not.
            if values.dtype.itemsize > self.dtype.itemsize:
                finite = values[np.isfinite(values)]
                if finite.size and not (self.member(finite.min()) and self.member(finite.max())):
                    return False
        # A domain is a whole type or an interval of it, so every value between two members is a
        # member.
        return values.size == 0 or (self.member(values.min()) and self.member(values.max()))

    def within(self, other: Domain) -> bool:
        """Whether types are equal, bounds lie inside the other's, and the other
        admits NaN if this domain does.
        """
        if (
            not isinstance(other, AtomDomain)
            or self.dtype != other.dtype
            or (self.nan and not other.nan)
        ):
            return False
        if other.bounds is None:
            return True
        return (
            self.bounds is not None
            and other.bounds[0] <= self.bounds[0]
            and self.bounds[1] <= other.bounds[1]
        )


def _is_vector(value: object) -> TypeGuard[Collection[object]]:
    return isinstance(value, Collection) or (
        hasattr(value, "__iter__") and hasattr(value, "__len__")
    )


_PLAIN_LISTS = {bool: np.bool_, int: np.int64, float: np.float64}


def _numbers(vector: object) -> Array | None:
    """The entries as an array, if all are bool, integers or floats of one
    type; None for any other vector.
    """
    if hasattr(vector, "__array__"):
        array = np.asarray(vector)
        return array if array.ndim == 1 and array.dtype.kind in NUMERIC_OR_FLAG else None
    kinds = set(map(type, vector)) if isinstance(vector, list | tuple) else set()
    if len(kinds) != 1 or (kind := kinds.pop()) not in _PLAIN_LISTS:
        return None
    try:
        return np.array(vector, dtype=_PLAIN_LISTS[kind])
    except OverflowError:  # integers of more than 64 bits
        return None


@dataclass(frozen=True)
class VectorDomain(Domain):
    """Vectors (list, tuple, numpy array, pandas or Polars Series) of members of one
    domain: atoms, or rows (tuples).

    `size` is the length if it is public, which makes the bounds of many maps smaller; None if it is
    not public.

    >>> VectorDomain(AtomDomain(int), size=2).member([1, 2, 3])
    False
    """

    element_domain: Any
    size: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.element_domain, AtomDomain | TupleDomain):
            raise InvalidArgument(
                f"VectorDomain({self.element_domain!r}): give the AtomDomain of its elements, or a "
                "TupleDomain of rows."
            )
        if self.size is not None:
            if not is_integer(self.size, 1):
                raise InvalidArgument(
                    f"size={self.size!r}: a public size is a whole number of at least 1."
                )
            object.__setattr__(self, "size", int(self.size))

    @property
    def atom(self) -> Any:
        """The domain of the elements."""
        return self.element_domain

    def member(self, value: object) -> bool:
        """Whether the value is a vector of the right length and every entry is a member."""
        if isinstance(value, str | bytes | Mapping | set | frozenset) or not _is_vector(value):
            return False
        if self.size is not None and len(value) != self.size:
            return False
        if isinstance(value, np.ndarray) and value.ndim != 1:
            return False
        array = _numbers(value) if isinstance(self.element_domain, AtomDomain) else None
        if array is not None:
            return bool(self.element_domain.members(array))
        return all(self.element_domain.member(v) for v in value)

    def within(self, other: Domain) -> bool:
        """Whether the elements are within the other's, and the sizes are equal or
        the other's size is not public.
        """
        return (
            isinstance(other, VectorDomain)
            and self.element_domain.within(other.element_domain)
            and other.size in (None, self.size)
        )

    def __repr__(self) -> str:
        size = "" if self.size is None else f", size={self.size}"
        return f"VectorDomain({self.element_domain!r}{size})"


@dataclass(frozen=True)
class MapDomain(Domain):
    """Mappings from keys to values, such as counts per group. A key that is absent has the value 0.

    `keys` lists all possible keys, if these are public; noise alone then protects the mapping.
    Without `keys`, the possible keys are also public if the key domain is bool, or whole numbers
    within bounds (`possible_keys`).

    >>> MapDomain(AtomDomain(str), AtomDomain(int)).member({"a": 3})
    True
    >>> MapDomain(AtomDomain(str), AtomDomain(int), keys=["a", "b"]).member({"c": 3})
    False
    """

    key_domain: AtomDomain
    value_domain: AtomDomain
    keys: Iterable[Any] | None = None

    def __post_init__(self) -> None:
        if not (
            isinstance(self.key_domain, AtomDomain) and isinstance(self.value_domain, AtomDomain)
        ):
            raise InvalidArgument(
                "MapDomain(key, value): give the AtomDomain of its keys and that of its values."
            )
        if self.keys is None:
            return
        keys = (
            tuple(self.keys)
            if isinstance(self.keys, Iterable) and not isinstance(self.keys, str | bytes)
            else ()
        )
        if (
            not keys
            or len(set(keys)) != len(keys)
            or not all(self.key_domain.member(k) for k in keys)
        ):
            raise InvalidArgument(
                f"MapDomain: keys are one or more distinct values of {self.key_domain!r}."
            )
        object.__setattr__(self, "keys", keys)

    @property
    def possible_keys(self) -> tuple[Any, ...] | None:
        """All possible keys, if they are public; otherwise None."""
        if self.keys is not None:
            return tuple(self.keys)
        if self.key_domain.dtype.kind == "b":
            return (False, True)
        if self.key_domain.is_integer and self.key_domain.bounds is not None:
            low, high = self.key_domain.bounds
            return tuple(range(low, high + 1)) if high - low < _ENUMERATED else None
        return None

    @property
    def key(self) -> AtomDomain:
        """The domain of the keys."""
        return self.key_domain

    @property
    def value(self) -> AtomDomain:
        """The domain of the values."""
        return self.value_domain

    def member(self, value: object) -> bool:
        """Whether the value is a mapping and every key and value is a member."""
        if not isinstance(value, Mapping) or (
            self.keys is not None and not set(value) <= set(self.keys)
        ):
            return False
        return all(
            self.key_domain.member(k) and self.value_domain.member(v) for k, v in value.items()
        )

    def within(self, other: Domain) -> bool:
        """Whether the keys are within the other's keys, and the
        values within the other's values.
        """
        return (
            isinstance(other, MapDomain)
            and self.key_domain.within(other.key_domain)
            and self.value_domain.within(other.value_domain)
            and (
                other.keys is None or (self.keys is not None and set(self.keys) <= set(other.keys))
            )
        )

    def __repr__(self) -> str:
        keys = "" if self.keys is None else f", keys={list(self.keys)}"
        return f"MapDomain({self.key_domain!r}, {self.value_domain!r}{keys})"


@dataclass(frozen=True)
class TupleDomain(Domain):
    """One value from each of several domains, such as the parts of a partitioned table.

    >>> TupleDomain(AtomDomain(int), AtomDomain(str)).member((1, "a"))
    True
    """

    domains: tuple[Domain, ...]

    def __init__(self, *domains: Domain) -> None:
        if not domains:
            raise InvalidArgument("TupleDomain(): give at least one domain.")
        object.__setattr__(self, "domains", domains)

    def member(self, value: object) -> bool:
        """Whether the value is a list or tuple with one member of each domain."""
        return (
            isinstance(value, list | tuple)
            and len(value) == len(self.domains)
            and all(d.member(v) for d, v in zip(self.domains, value, strict=True))
        )

    def within(self, other: Domain) -> bool:
        """Whether each domain is within the other's domain at that position."""
        return (
            isinstance(other, TupleDomain)
            and len(self.domains) == len(other.domains)
            and all(a.within(b) for a, b in zip(self.domains, other.domains, strict=True))
        )

    def __repr__(self) -> str:
        return f"TupleDomain({', '.join(map(repr, self.domains))})"


_PLAIN: dict[type, np.dtype[Any]] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    str: np.dtype(object),
}
_NAMES: dict[str, Any] = {  # with the number of bits, as OpenDP and Polars write them
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "string": str,
    "usize": np.uint64,
    "f32": np.float32,
    "f64": float,
    **{f"i{bits}": getattr(np, f"int{bits}") for bits in (16, 32)},
    **{f"u{bits}": getattr(np, f"uint{bits}") for bits in (16, 32, 64)},
    "i64": int,
}
_AMBIGUOUS = {"i8": "np.int8 or np.int64", "u8": "np.uint8 or np.uint64"}


def plain_type(kind: object) -> Any:
    """The type for a type or for its name; any other argument is returned unchanged.

    Errors: InvalidArgument for "i8" and "u8", which are types of 8 bits for some and of 8 bytes for
            others

    >>> plain_type("f32"), plain_type("i64"), plain_type(str)
    (<class 'numpy.float32'>, <class 'int'>, <class 'str'>)
    """
    if not isinstance(kind, str):
        return kind
    if kind in _AMBIGUOUS:
        raise InvalidArgument(
            f'T="{kind}" has 8 bits in Rust and 8 bytes in numpy: write {_AMBIGUOUS[kind]}.'
        )
    return _NAMES.get(kind.lower(), kind)


def dtype_of(kind: Any) -> np.dtype[Any]:
    """The storage of a type of atoms: numpy's, or object for strings. Errors: InvalidArgument."""
    if isinstance(kind, type) and kind in _PLAIN:
        return _PLAIN[kind]
    try:
        dtype: np.dtype[Any] = np.dtype(kind)
    except TypeError:
        dtype = np.dtype("V1")
    if dtype.kind == "U":
        return _PLAIN[str]
    if dtype.kind not in NUMERIC_OR_FLAG or dtype.itemsize > 8 or kind is None:
        raise InvalidArgument(
            f"T={kind!r}: atoms are bool, int, float, str, or a numpy integer or float type of at "
            "most 64 bits."
        )
    return dtype


def _is_number(value: object) -> TypeGuard[int | float | np.integer[Any] | np.floating[Any]]:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def inferred(bounds: object, nan: bool) -> type:
    """The type that fits the bounds: int if both are of an integer type, otherwise
    float; float if NaN is admitted.

    Errors: InvalidArgument without bounds and without NaN, and for bounds that are not numbers

    >>> inferred((-2, 2), False), inferred((-2, 2.5), False)
    (<class 'int'>, <class 'float'>)
    """
    ends = list(bounds) if isinstance(bounds, tuple | list) else []
    if ends and all(map(_is_number, ends)):
        return int if not nan and all(isinstance(b, int | np.integer) for b in ends) else float
    if nan and not ends:
        return float
    raise InvalidArgument(
        "AtomDomain: give the type of the values, AtomDomain(float), or their bounds, "
        "AtomDomain(bounds=(0, 100))."
    )
