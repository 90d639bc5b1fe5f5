"""A policy file: what a steward declares of a table once, and no analyst weakens in a call.

Its entries have the names of the arguments of `dp.protect`, and two more tables: `because` has
reasons, and `caps` the most that releases may cost. An entry holds as it stands; one that is
written `{value = ..., default = true}` is a default, which a call may change. What each locked
entry means for a table, and why no call gets around it: `dpframe.plan.steps.rewrites.UnderPolicy`.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from dpframe.errors import InvalidArgument, PolicyExceeded, kind_of
from dpframe.fields import FieldDict, Fields
from dpframe.plan.bins import check_interval
from dpframe.plan.columns import Bounds, ColumnDomain, Limits, Lock, PolicyCap
from dpframe.plan.scalars import real
from dpframe.plan.steps import Rows, check_limit, typed_unit
from dpframe.plan.types import Kind, kind, show
from dpframe.theory.formulas.sensitivity import Relation
from dpframe.usage import Hints, is_integer, nearest

LIMITS = ("max_rows", "max_groups", "max_rows_per_group")
_ENTRIES = (
    "unit",
    "people",
    "neighbors",
    *LIMITS,
    "min_units",
    "bounds",
    "keys",
    "because",
    "caps",
)
_TABLES = ("bounds", "keys", "because", "caps")
CAPS = ("release", "spender", "day", "week", "month")


class PolicyEntry(NamedTuple):
    """A value of the file, and whether a call may change it."""

    value: Any
    default: bool = False


@dataclass(frozen=True)
class PolicyKeys:
    """Keys of a column: values, as the file has them, or texts of a CSV file, which
    are read for the column's type.
    """

    values: tuple[Any, ...]
    texts: bool = False

    def of(self, domain: ColumnDomain, call: str) -> list[Any]:
        """The keys for a column.
        Errors: InvalidArgument for a text that is no value of its type.
        """
        if not self.texts or kind(domain.dtype) == Kind.STRING:
            return list(self.values)
        read = _FROM_TEXT.get(kind(domain.dtype))
        if read is None:
            raise InvalidArgument(
                f"{call}: a CSV file holds no keys for a column of type {show(domain.dtype)}; list "
                "them in a Parquet file."
            )
        try:
            return [read(value) for value in self.values]
        except (ValueError, KeyError):
            pass
        raise InvalidArgument(
            f"{call}: a text of the CSV file is no value of type {show(domain.dtype)}."
        )


_FROM_TEXT: Fields = {
    Kind.INTEGER: int,
    Kind.FLOAT: float,
    Kind.DECIMAL: float,
    Kind.BOOLEAN: lambda text: {"true": True, "false": False}[text.lower()],
    Kind.DATE: dt.date.fromisoformat,
    Kind.DATETIME: dt.datetime.fromisoformat,
}


@dataclass(frozen=True, init=False)
class Policy(Hints):
    """A policy file that was read:
    `dp.protect(table, policy=dp.Policy("visits.toml"))`, or just the path there.

    Input:  path: of a TOML file with entries named like the arguments of `dp.protect`: unit,
            people, neighbors, max_rows, max_groups, max_rows_per_group, min_units, tables [bounds]
            and [keys] of columns, [because] with a reason for an entry or a column, and [caps] with
            most prices: release, spender, day, week and month, each with epsilon and delta. unit =
            {rows = 3} stands for dp.Rows(3). Keys are listed in the file, or in a CSV or Parquet
            file whose path is relative to it
    Output: the file as it was when it was read; `sha256` is the hash of its bytes
    Errors: InvalidArgument for a file that cannot be read, and for what it does not say in these
            words

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "visits.toml"
    >>> lines = 'unit = "user"', "max_rows = 20", "[bounds]", "spend = [0, 100]"
    >>> _ = path.write_text(chr(10).join(lines))
    >>> Policy(path)
    Policy('visits.toml', locked: unit, max_rows, bounds of 'spend')
    """

    path: str
    sha256: str
    entries: Mapping[str, PolicyEntry] = field(repr=False)
    bounds: Mapping[str, PolicyEntry] = field(repr=False)
    keys: Mapping[str, PolicyEntry] = field(repr=False)
    because: Mapping[str, str] = field(repr=False)
    caps: Mapping[str, PolicyCap] = field(repr=False)
    files: Mapping[str, str] = field(repr=False)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        place = Path(_path_of(path))
        raw = _bytes_of(place, "policy=")
        read = _PolicyReading(place)
        said = read.checked(raw)
        for name, value in said.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "path", str(place))
        object.__setattr__(self, "sha256", hashlib.sha256(raw).hexdigest())
        object.__setattr__(self, "files", read.files)

    @classmethod
    def read(cls, policy: Policy | str | os.PathLike[str]) -> Policy:
        """A policy, or the one of a file."""
        return policy if isinstance(policy, Policy) else cls(policy)

    @property
    def name(self) -> str:
        """The name of the file, without its folder."""
        return Path(self.path).name

    @property
    def unit(self) -> tuple[str, ...] | Rows | None:
        """The unit of the rows; None where the file does not say it."""
        return self._value("unit")

    @property
    def neighbors(self) -> str | None:
        """The neighbour relation; None where the file does not say."""
        return self._value("neighbors")

    @property
    def people(self) -> str | None:
        """The name of the units; None where the file does not say it."""
        return self._value("people")

    def _value(self, name: str) -> Any | None:
        return self.entries[name].value if name in self.entries else None

    def lock(self) -> Lock:
        """The entries of the file about a whole table."""
        limits = [
            Limits(
                **{
                    n: e.value
                    for n, e in self.entries.items()
                    if n in LIMITS and e.default is default
                }
            )
            for default in (False, True)
        ]
        least = self.entries.get("min_units", PolicyEntry(None))
        least_units = (None, least.value) if least.default else (least.value, None)
        return Lock(
            self.name,
            self.sha256,
            limits[0],
            least_units[0],
            limits[1],
            least_units[1],
            self.because,
            self.caps,
            self.files,
        )

    def whose(
        self, unit: Any, neighbors: str | None, people: str | None
    ) -> tuple[Any, str | None, str | None]:
        """The unit of the rows: that of the file, or the typed one where the file has none.

        Input:  unit, neighbors, people: as typed
        Errors: PolicyExceeded
        """
        match unit:
            case str():
                names: Any = (unit,)
            case list():
                names = tuple(unit)
            case _:
                names = unit
        for name, typed in (("unit", names or None), ("neighbors", neighbors), ("people", people)):
            said = getattr(self, name)
            if typed is not None and said is not None and typed != said:
                raise PolicyExceeded(
                    f"{name}= is not that of {self.name}, {typed_unit(said)}, which no call may "
                    "change. Leave it out."
                )
        return (
            self.unit if unit is None else unit,
            neighbors or self.neighbors,
            people or self.people,
        )

    def __repr__(self) -> str:
        locked = [name for name, entry in self.entries.items() if not entry.default]
        locked += [
            f"bounds of {name!r}" for name, entry in self.bounds.items() if not entry.default
        ]
        locked += [f"keys of {name!r}" for name, entry in self.keys.items() if not entry.default]
        return f"Policy({self.name!r}, locked: {', '.join(locked) or 'nothing'})"


class _PolicyReading:
    """One file while it is read; `files` are the hashes of the files of keys."""

    def __init__(self, path: Path) -> None:
        self.path, self.files = path, dict[str, str]()

    def refused(self, what: str) -> InvalidArgument:
        return InvalidArgument(f"{self.path.name}: {what}")

    def checked(self, raw: bytes) -> FieldDict:
        """The parts of the file, each checked. Errors: InvalidArgument."""
        typed = self._parsed(raw)
        self._known(typed, _ENTRIES, "entry", "Entries")
        tables = {name: self._table(name, typed.pop(name, {})) for name in _TABLES}
        entries = {name: self._entry(name, value) for name, value in typed.items()}
        bounds = {name: self._bounds(name, value) for name, value in tables["bounds"].items()}
        keys = {name: self._keys(name, value) for name, value in tables["keys"].items()}
        self._known(tables["caps"], CAPS, "entry of [caps]", "They")
        caps = {name: self._cap(name, value) for name, value in tables["caps"].items()}
        self._known(
            tables["because"],
            (*entries, *bounds, *keys),
            "reason",
            "Reasons are for what the file says: they",
        )
        for name, reason in tables["because"].items():
            if not isinstance(reason, str) or not reason.strip():
                raise self.refused(f"[because] {name}: give a reason in words.")
        because = tables["because"]
        return {
            "entries": entries,
            "bounds": bounds,
            "keys": keys,
            "because": because,
            "caps": caps,
        }

    def _parsed(self, raw: bytes) -> FieldDict:
        try:
            return tomllib.loads(raw.decode("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            problem = str(error)
        raise self.refused(f"this is no TOML file: {problem}.")

    def _known(self, typed: Collection[str], known: Collection[str], what: str, they: str) -> None:
        for name in typed:
            if name not in known:
                raise self.refused(
                    f"there is no {what} {name!r}.{nearest(name, known)} {they} are "
                    f"{', '.join(known) or 'none'}."
                )

    def _table(self, name: str, value: object) -> FieldDict:
        if not isinstance(value, dict):
            raise self.refused(f"{name} is a table, [{name}], with a line for each of its entries.")
        return value

    def _open(self, name: str, value: object) -> PolicyEntry:
        """A value, and whether a call may change it."""
        if not isinstance(value, dict):
            return PolicyEntry(value)
        self._known(value, ("value", "default"), f"part of {name}", "Parts")
        if "value" not in value or not isinstance(value.get("default", False), bool):
            raise self.refused(f"{name} is a value, or {{value = ..., default = true}}.")
        return PolicyEntry(value["value"], value.get("default", False))

    def _entry(self, name: str, value: object) -> PolicyEntry:
        match name:
            case "unit":
                return PolicyEntry(self._unit(value))
            case "people":
                if not isinstance(value, str) or not value:
                    raise self.refused(
                        "people is what the units are called, as in people = 'patients'."
                    )
                return PolicyEntry(value)
            case "neighbors":
                if value not in tuple(Relation):
                    raise self.refused(
                        "neighbors is 'add-remove' or 'replace', and no call may change it."
                    )
                return PolicyEntry(value)
        entry = self._open(name, value)
        if not is_integer(entry.value):
            raise self.refused(f"{name} is a whole number, as in {name} = 20.")
        return entry._replace(value=check_limit(entry.value, f"{self.path.name}: {name}"))

    def _unit(self, value: Any) -> tuple[str, ...] | Rows:
        match value:
            case {"rows": rows} if len(value) == 1:
                return Rows(rows)
            case [*names]:
                pass
            case _:
                names = [value]
        if not names or not all(isinstance(name, str) and name for name in names):
            raise self.refused(
                "unit is a column, unit = 'user_id', a list of columns, or {rows = 1}."
            )
        return tuple(names)

    def _bounds(self, name: str, value: object) -> PolicyEntry:
        entry = self._open(f"bounds of {name!r}", value)
        match entry.value:
            case [lower, upper]:
                ends = check_interval(lower, upper, f"{self.path.name}: bounds of {name!r}")
                return entry._replace(value=Bounds(*ends))
        raise self.refused(f"bounds of {name!r} are a pair, as in {name} = [0, 100].")

    def _keys(self, name: str, value: object) -> PolicyEntry:
        entry = self._open(f"keys of {name!r}", value)
        match entry.value:
            case str(path):
                return entry._replace(value=self._from_file(name, path))
            case [_, *_] as listed if len(set(map(repr, listed))) == len(listed):
                if not any(isinstance(value, (list, dict, dt.time)) for value in listed):
                    return entry._replace(value=PolicyKeys(tuple(listed)))
        raise self.refused(
            f"keys of {name!r} are a list of different values, or the path of a CSV or Parquet "
            "file of these."
        )

    def _from_file(self, name: str, path: str) -> PolicyKeys:
        """The keys of a column from a file: its column of this name, or its only one."""
        place = self.path.parent / path
        raw = _bytes_of(place, f"{self.path.name}: keys of {name!r}")
        self.files[path] = hashlib.sha256(raw).hexdigest()
        read = _READERS.get(place.suffix.lower())
        if read is None:
            raise self.refused(f"keys of {name!r}: {path!r} is neither .csv nor .parquet.")
        try:
            table = read(raw)
        except Exception:
            table = None
        if table is None:
            raise self.refused(
                f"keys of {name!r}: {path!r} cannot be read as {place.suffix.lower()[1:].upper()}."
            )
        if name not in table.columns and table.width != 1:
            raise self.refused(f"keys of {name!r}: {path!r} has no column {name!r}.")
        column = table[name] if name in table.columns else table.to_series(0)
        if not len(column) or column.null_count() or column.n_unique() < len(column):
            raise self.refused(
                f"keys of {name!r}: {path!r} lists at least one value, each once, and none is "
                "missing."
            )
        return PolicyKeys(tuple(column.to_list()), read is _texts)

    def _cap(self, name: str, value: object) -> PolicyCap:
        said = value if isinstance(value, dict) else {}
        self._known(said, ("epsilon", "delta"), f"part of caps.{name}", "Parts")
        epsilon: Any = said.get("epsilon")
        delta: Any = said.get("delta", 0.0)
        numbers = all(real(x) is not None and isfinite(x) for x in (epsilon, delta))
        if not numbers or not (epsilon > 0 and 0 <= delta < 1):
            raise self.refused(
                f"caps.{name} is a price, as in {name} = {{epsilon = 0.5, delta = 1e-7}}: epsilon "
                "is above 0, and delta at least 0 and below 1. Without delta it is 0."
            )
        return PolicyCap(float(epsilon), float(delta))


def _texts(raw: bytes) -> pl.DataFrame:
    return pl.read_csv(raw, infer_schema=False)


_READERS: dict[str, Callable[[bytes], pl.DataFrame]] = {".csv": _texts, ".parquet": pl.read_parquet}


def _path_of(path: object) -> str:
    if (
        not isinstance(path, (str, os.PathLike))
        or not (text := os.fspath(path))
        or not isinstance(text, str)
    ):
        raise InvalidArgument(
            f"policy= is the path of a TOML file, such as 'visits.toml', not {kind_of(path)}."
        )
    return text


def _bytes_of(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError):
        pass
    raise InvalidArgument(f"{what}: there is no file {str(path)!r} that can be read.")
