"""For the steward of a table alone: what the data do beyond a policy
file, and a first draft of one.

A check reads the table without noise, as the person does who writes the file and may see the data.
What it says is no release: it is private to the steward, and says so in its first line. A draft
reads names and types, and no value.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from dpframe.api import protect
from dpframe.errors import DpFrameError, InvalidArgument
from dpframe.plan.policy import LIMITS, Policy, PolicyKeys
from dpframe.plan.scalars import counted, listed
from dpframe.plan.steps import Rows

FIRST = (
    "FOR THE STEWARD ALONE: this reads the data without noise. It is no release; do not pass it on."
)
_SHOWN = 5  # keys that are not listed, by name


def check(
    policy: Policy, table: pl.DataFrame, most: Mapping[str, float | None]
) -> tuple[list[str], bool]:
    """Findings about a table beside a policy file, line by line, and
    whether the file can be used with it.

    Input:  table: the data that the file is about. This is not private: see the module; most: the
            largest part of a column's values (per cent) that may be "unlisted" or "clipped"; None
            where any part may be

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "visits.toml"
    >>> lines = 'unit = "user"', "max_rows = 1", "[bounds]", "spend = [0, 5]"
    >>> _ = path.write_text(chr(10).join(lines))
    >>> lines, usable = check(
    ...     Policy(path), pl.DataFrame({"user": [1, 1, 2], "spend": [3.0, 7.0, 5.0]}), {}
    ... )
    >>> usable, lines[1].partition("; ")[2]
    (True, 'max_rows = 1: 1 unit has more (50% of all units), 1 row beyond it')
    """
    found = _Findings(policy, table, most)
    return [FIRST, *found.lines()], found.usable


class _Findings:
    def __init__(
        self, policy: Policy, table: pl.DataFrame, most: Mapping[str, float | None]
    ) -> None:
        self.policy, self.table, self.most, self.usable = policy, table, most, True

    def lines(self) -> Iterator[str]:
        yield from self._units()
        for name, ends in self.policy.bounds.items():
            yield from self._column(
                name, {"bounds": {name: tuple(ends.value)}}, self._clipped, tuple(ends.value)
            )
        for name, entry in self.policy.keys.items():
            try:
                values = (
                    entry.value.of(self._domain(name), f"keys of {name!r}")
                    if name in self.table.columns
                    else []
                )
            except DpFrameError as error:
                self.usable = False
                yield f"ERROR {error}"
                continue
            yield from self._column(name, {"keys": {name: values}}, self._unlisted, values)
        for name in (*self.policy.bounds, *self.policy.keys):
            if name not in self.policy.because:
                yield f"note: [because] has no reason for {name!r}"
        said = {*self.policy.bounds, *self.policy.keys, *self._unit()}
        if rest := [name for name in self.table.columns if name not in said]:
            names = ", ".join(map(repr, rest))
            yield f"note: the file says nothing of {names}; analysts type their own bounds and keys"

    def _unit(self) -> tuple[str, ...]:
        return self.policy.unit if isinstance(self.policy.unit, tuple) else ()

    def _domain(self, name: str) -> Any:
        return protect(self.table.head(0), unit=Rows(1))._step.table.columns[name].domain

    def _column(
        self, name: str, declared: dict[str, Any], findings: Any, said: Any
    ) -> Iterator[str]:
        """Findings about a column: values beyond its entry, a missing column, or a
        type that the entry does not fit.
        """
        if name not in self.table.columns:
            self.usable = False
            yield f"ERROR {name!r}: the table has no such column"
            return
        try:
            protect(self.table.head(0), unit=Rows(1), **declared)
        except DpFrameError as error:
            self.usable = False
            yield f"ERROR {str(error).removeprefix('protect: ')}"
            return
        yield from findings(name, said)

    def _clipped(self, name: str, ends: tuple[Any, Any]) -> Iterator[str]:
        column = self.table[name].drop_nulls()
        column = column.drop_nans() if column.dtype.is_float() else column
        low, high = _held(ends, column.dtype)
        below, above = int((column < low).sum()), int((column > high).sum())
        part = _part(below + above, len(column))
        yield (
            f"bounds of {name!r}: {below:,} values below and {above:,} above are clipped, {part} "
            f"of {len(column):,}"
        )
        yield from self._too_many("clipped", f"bounds of {name!r}", below + above, len(column))
        for end, value, word in ((low, column.min(), "smallest"), (high, column.max(), "largest")):
            if len(column) and value == end:
                yield (
                    f"WARNING bounds of {name!r}: one bound is exactly the {word} value of the "
                    "column. If it was read off the data, it tells a person's value; choose it "
                    "from what is known without the data"
                )

    def _unlisted(self, name: str, keys: list[Any]) -> Iterator[str]:
        column = self.table[name].drop_nulls()
        known, values = set(keys), column.unique(maintain_order=True).to_list()
        odd = [value for value in values if value not in known]
        rows = (
            sum(column.value_counts().filter(pl.col(name).is_in(odd))[:, 1].to_list()) if odd else 0
        )
        unseen = len(known - set(values))
        line = f"keys of {name!r}: {len(known):,} listed, of which {unseen:,} do not occur; "
        if odd:
            more = "" if len(odd) <= _SHOWN else " and others"
            others = counted(len(odd), "value")
            yield (
                f"{line}{counted(rows, 'row')} with {others} not listed: "
                f"{listed(odd[:_SHOWN])}{more}"
            )
            yield from self._too_many("unlisted", f"keys of {name!r}", rows, len(column))
        else:
            yield f"{line}no value is missing from the list"
            if not unseen and len(column):
                yield (
                    f"WARNING keys of {name!r}: the list is exactly the values that occur. If it "
                    "was read off the data, a rare value tells that somebody has it; take the "
                    "list from a public source"
                )

    def _too_many(self, what: str, entry: str, number: int, of: int) -> Iterator[str]:
        """An error where more of a column's values are unlisted or clipped than may be."""
        most = self.most.get(what)
        if most is not None and 100 * number > most * of:
            self.usable = False
            yield (
                f"ERROR {entry}: {100 * number / of:.3g}% are {what}, more than --max-{what} "
                f"{most:g}%"
            )

    def _units(self) -> Iterator[str]:
        unit, limits = (
            self._unit(),
            {n: e.value for n, e in self.policy.entries.items() if n in LIMITS},
        )
        if isinstance(self.policy.unit, Rows) or not unit:
            yield "unit: the file names no column, so nobody can tell how many rows a person has"
            return
        if missing := [name for name in unit if name not in self.table.columns]:
            self.usable = False
            yield f"ERROR unit {missing[0]!r}: the table has no such column"
            return
        rows = self.table.drop_nulls(list(unit))
        words = (
            f"unit {', '.join(map(repr, unit))}: "
            f"{counted(rows.select(unit).n_unique() if rows.height else 0, 'unit')}"
        )
        if without := self.table.height - rows.height:
            words += f", {counted(without, 'row')} without one, which never count"
        yield words + self._over(rows.group_by(unit).len()["len"], "max_rows", limits)
        for name in (
            name for name in self.policy.keys if name in self.table.columns and name not in unit
        ):
            in_groups = rows.drop_nulls(name).group_by(*unit, name).len()
            words = self._over(in_groups.group_by(unit).len()["len"], "max_groups", limits, "group")
            words += self._over(in_groups["len"], "max_rows_per_group", limits)
            if words:
                yield f"groups by {name!r}{words}"
        if (
            "max_rows" in limits
            and rows.height
            and rows.group_by(unit).len()["len"].max() == limits["max_rows"]
        ):
            yield (
                "WARNING max_rows is exactly the largest number of rows of one unit. If it was "
                "read off the data, it tells of that one; choose it from what is known without "
                "the data"
            )

    def _over(self, sizes: pl.Series, limit: str, limits: dict[str, int], noun: str = "row") -> str:
        """Units above a limit, and their number of rows or groups
        beyond it; empty without the limit.
        """
        if limit not in limits:
            return ""
        over = sizes.filter(sizes > limits[limit])
        if not len(over):
            return f"; {limit} = {limits[limit]}: none has more"
        beyond = int(over.sum()) - len(over) * limits[limit]
        who = (
            counted(len(over), "unit")
            if limit != "max_rows_per_group"
            else counted(len(over), "unit and group")
        )
        has = "has" if len(over) == 1 else "have"
        part = (
            ""
            if limit == "max_rows_per_group"
            else f" ({_part(len(over), len(sizes))} of all units)"
        )
        return (
            f"; {limit} = {limits[limit]}: {who} {has} more{part}, {counted(beyond, noun)} beyond "
            "it"
        )


def _part(number: int, of: int) -> str:
    """A part in percent."""
    part = number / of if of else 0.0
    return "0%" if not number else f"{part:.0%}" if part >= 0.01 else "under 1%"


def _held(ends: tuple[Any, Any], dtype: Any) -> tuple[Any, Any]:
    """Bounds as values that compare with a column's:
    a date is its midnight in a column of times.
    """
    if not isinstance(dtype, pl.Datetime):
        return ends
    lower, upper = (
        x if isinstance(x, datetime) else datetime(x.year, x.month, x.day) for x in ends
    )
    return lower, upper


def read_table(path: Path, *, rows: bool = True) -> pl.DataFrame:
    """A CSV or Parquet file; without `rows` only names and types, and
    a CSV file's columns are texts.

    Errors: InvalidArgument, without the reader's words, which may show cells
    """
    try:
        if path.suffix.lower() == ".csv":
            return (
                pl.read_csv(path, try_parse_dates=True)
                if rows
                else pl.read_csv(path, n_rows=0, infer_schema=False)
            )
        return pl.read_parquet(path) if rows else pl.DataFrame(schema=pl.read_parquet_schema(path))
    except Exception:
        pass
    if not os.path.exists(path) and not set("*?[") & set(str(path)):
        raise InvalidArgument(f"There is no file {str(path)!r}.")
    raise InvalidArgument(f"{str(path)!r} cannot be read as a CSV or Parquet file.")


def drifted(table: pl.DataFrame, before: Mapping[str, pl.DataType]) -> Iterator[str]:
    """Columns that a table had before, and that are missing by now or have another type.

    >>> list(drifted(pl.DataFrame({"user": ["1"]}), {"user": pl.Int64()}))
    ["ERROR 'user': its type is String, and was Int64. Read it as before"]
    """
    for name, dtype in before.items():
        if name not in table.columns:
            yield f"ERROR {name!r}: the table has no such column any more"
        elif table.schema[name] != dtype:
            yield (
                f"ERROR {name!r}: its type is {table.schema[name]}, and was {dtype}. Read it as "
                "before"
            )


class Described(NamedTuple):
    """An entry of a policy file in words."""

    entry: str
    value: str
    a_call_may: str
    because: str


def described(policy: Policy) -> Iterator[Described]:
    """Each entry of a policy file in words, for a catalogue: nothing of the data is in it."""
    entries = [(name, name, entry) for name, entry in policy.entries.items()]
    entries += [(f"bounds of {column!r}", column, entry) for column, entry in policy.bounds.items()]
    entries += [(f"keys of {column!r}", column, entry) for column, entry in policy.keys.items()]
    for words, name, entry in entries:
        match entry.value:
            case Rows() as unit:
                value = unit.typed
            case PolicyKeys(values=several) | [*several]:
                value = listed(several)
            case one:
                value = str(one)
        stricter = "not change it" if words in ("unit", "people", "neighbors") else "be stricter"
        yield Described(
            words, value, "change it" if entry.default else stricter, policy.because.get(name, "")
        )
    for name, cap in policy.caps.items():
        yield Described(
            f"most of one {name}", f"ε = {cap.epsilon:g}, δ = {cap.delta:g}", "be stricter", ""
        )


def rows_of(policy: Policy, table: pl.DataFrame) -> int:
    """The number of rows that have a unit; others never count."""
    unit = (
        [name for name in policy.unit if name in table.columns]
        if isinstance(policy.unit, tuple)
        else []
    )
    return table.drop_nulls(unit).height if unit else table.height


_UNIT = re.compile(
    r"(?i)^(id|pid|uid|user|person|patient|customer|member|subject|employee)s?$|(_id|id|_key)$"
)


def draft(name: str, table: pl.DataFrame) -> str:
    """The first draft of a policy file, from names and types: every number is left to the steward.

    Input:  name: of the table's file; table: its columns; no value is read

    >>> print(
    ...     draft(
    ...         "visits.parquet", pl.DataFrame({"user": [1], "spend": [2.5], "city": ["Bonn"]})
    ...     ).splitlines()[3]
    ... )
    unit = "user"  # guessed from its name: whose rows these are
    """
    schema = table.schema
    unit = next((column for column in schema if _UNIT.search(column)), None)
    rest = {column: dtype for column, dtype in schema.items() if column != unit}
    bounds = [
        f"# {_key(c)} = {_pair(d)}"
        for c, d in rest.items()
        if d.is_numeric() or d in (pl.Date, pl.Datetime)
    ]
    keys = [
        f'# {_key(c)} = ["...", "..."]' for c, d in rest.items() if d in (pl.String, pl.Categorical)
    ]
    because = [f'# {_key(c)} = "why, and who decided it"' for c in rest]
    guess = (
        f"unit = {json.dumps(unit)}  # guessed from its name: whose rows these are"
        if unit
        else '# unit = "user_id"'
    )
    return "\n".join(
        [
            f"# A draft for {name}, from the names and types of its columns. No value was read.",
            "# Fill in numbers that you know without the data, and take away the # before a line "
            "to lock it.",
            "# {value = 20, default = true} is a default, which a question may change.",
            guess,
            'neighbors = "add-remove"',
            "# max_rows = 20  # rows of one unit that count",
            "# max_groups = 3  # groups in which one unit counts",
            "# max_rows_per_group = 5",
            "# min_units = 20  # of keys that are found in the data, the fewest units of a group",
            *_section("bounds", bounds),
            *_section(
                "keys",
                [*keys, '# a list, or a file beside this one: city = "cities.csv"'] if keys else [],
            ),
            *_section("because", because),
            *_section(
                "caps",
                [
                    f"# {cap} = {{epsilon = 1.0, delta = 1e-7}}"
                    for cap in ("release", "spender", "month")
                ],
            ),
            "",
        ]
    )


def _section(name: str, lines: Iterable[str]) -> list[str]:
    return ["", f"[{name}]", *lines]


def _pair(dtype: Any) -> str:
    return f"[{date(2020, 1, 1)}, {date(2030, 1, 1)}]" if dtype.is_temporal() else "[0, 100]"


def _key(name: str) -> str:
    """A column's name as TOML writes it."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)
