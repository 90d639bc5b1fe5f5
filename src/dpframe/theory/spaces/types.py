"""Types of atoms: the names by which a type can be passed, and the numpy type in which its values are stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpframe.errors import InvalidArgument

__all__ = ["dtype_of", "inferred", "plain_type"]

_PLAIN: dict[type, np.dtype[Any]] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    str: np.dtype(object),
}
# Names with the number of bits, as OpenDP and Polars write them.
_NAMES: dict[str, Any] = {
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


def plain_type(kind: Any) -> Any:
    """The type for a type or for its name; any other argument is returned unchanged.

    Errors: InvalidArgument for "i8" and "u8", which are types of 8 bits for some and of 8 bytes for others

    >>> plain_type("f32"), plain_type("i64"), plain_type(str)
    (<class 'numpy.float32'>, <class 'int'>, <class 'str'>)
    """
    if not isinstance(kind, str):
        return kind
    if kind in _AMBIGUOUS:
        raise InvalidArgument(f'T="{kind}" has 8 bits in Rust and 8 bytes in numpy: write {_AMBIGUOUS[kind]}.')
    return _NAMES.get(kind.lower(), kind)


def dtype_of(kind: Any) -> np.dtype[Any]:
    """The storage of a type of atoms: numpy's, or object for strings. Errors: InvalidArgument."""
    if isinstance(kind, type) and kind in _PLAIN:
        return _PLAIN[kind]
    dtype: np.dtype[Any]
    try:
        dtype = np.dtype(kind)
    except TypeError:
        dtype = np.dtype("V1")
    if dtype.kind == "U":
        return _PLAIN[str]
    if dtype.kind not in "biuf" or dtype.itemsize > 8 or kind is None:
        raise InvalidArgument(
            f"T={kind!r}: atoms are bool, int, float, str, or a numpy integer or float type of at most 64 bits."
        )
    return dtype


def inferred(bounds: Any, nan: bool) -> type:
    """The type that fits the bounds: int if both are of an integer type, otherwise float; float if NaN is admitted.

    Errors: InvalidArgument without bounds and without NaN, and for bounds that are not numbers

    >>> inferred((-2, 2), False), inferred((-2, 2.5), False)
    (<class 'int'>, <class 'float'>)
    """
    ends = list(bounds) if isinstance(bounds, tuple | list) else []
    numbers = (int, np.integer, float, np.floating)
    if ends and all(isinstance(b, numbers) and not isinstance(b, bool | np.bool_) for b in ends):
        return int if not nan and all(isinstance(b, int | np.integer) for b in ends) else float
    if nan and not ends:
        return float
    raise InvalidArgument(
        "AtomDomain: give the type of the values, AtomDomain(float), or their bounds, AtomDomain(bounds=(0, 100))."
    )
