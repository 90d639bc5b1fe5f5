"""Domains of columns and tables. A domain belongs to one version of a column, never to its name."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

from narwhals.dtypes import DType

from dpframe.errors import InvalidArgument, UnknownColumn
from dpframe.plan.scalars import Scalar, check_text, number
from dpframe.plan.types import Kind, kind
from dpframe.theory.formulas.sensitivity import Relation
from dpframe.usage import Examples, Hints, nearest


class Bounds(NamedTuple):
    """A closed interval that every value of a column lies in (column unit)."""

    lower: int | float
    upper: int | float

    @classmethod
    def open(cls, lower: float | None, upper: float | None) -> Bounds:
        """The interval between two limits, without an end where a limit is None."""
        return cls(-math.inf if lower is None else lower, math.inf if upper is None else upper)

    @property
    def magnitude(self) -> int | float:
        """Largest absolute value in the interval."""
        return max(abs(self.lower), abs(self.upper))

    def clamp(self, value: float) -> int | float:
        """The point of the interval nearest to a value."""
        return min(max(value, self.lower), self.upper)

    def cover(self, value: float) -> Bounds:
        """The smallest interval that also holds a value."""
        return Bounds(min(self.lower, value), max(self.upper, value))

    def __str__(self) -> str:
        return f"[{number(self.lower)}, {number(self.upper)}]"


@dataclass(frozen=True)
class Possible:
    """A condition that holds for each value that a row can have, beside null, maybe for others.

    It follows from the expression alone, and no row is read. A key for which it does not hold has
    no rows: a Sunday among starts of weeks, "Bonn" among texts in lower case.

    >>> one = Possible.listed(["a", "b"])
    >>> one.holds("a"), one.holds("A"), one.either(Possible.listed(["A"])).holds("A")
    (True, False, True)
    """

    holds: Callable[[Any], bool]
    give: str  # what to list, in words that follow "List"
    values: frozenset[Any] | None = None  # all of them, where they are few
    midnights: bool = False  # whether they are times of which each is the midnight of a day
    of_letters: bool = False  # whether a part of a text that it holds for is held for too
    form: str = ""  # a regular expression of all of them, where texts are put together

    @classmethod
    def listed(cls, values: Iterable[Any], what: str = "what the expression gives") -> Possible:
        """Exactly these values. Input: what: whose values they are."""
        every = list(dict.fromkeys(values))
        few = ", ".join(map(repr, every[:_FEW]))
        return cls(
            frozenset(every).__contains__,
            f"{what}: {few}{', …' * (len(every) > _FEW)}",
            frozenset(every),
        )

    def either(self, *others: Possible) -> Possible:
        """Values for which one of several conditions holds; listed values are put together."""
        parts = (self, *others)
        finite = [part.values for part in parts if part.values is not None]
        together = Possible.listed(sorted(frozenset().union(*finite), key=repr))
        rest = [part for part in parts if part.values is None]
        if not rest:
            return together
        gives = dict.fromkeys(
            part.give for part in (*rest, *([together] if together.values else []))
        )
        return Possible(
            _any([together, *rest]),
            ", or ".join(gives),
            None,
            all(part.midnights for part in parts),
        )

    def seen(
        self, of: Callable[[Any], Any], give: str = "", *, midnights: bool = False
    ) -> Possible:
        """Values whose counterpart fulfils this condition. Input: of: the counterpart."""
        return Possible(lambda key: self.holds(of(key)), give or self.give, None, midnights)


_FEW = 5


def _any(parts: Sequence[Possible]) -> Callable[[Any], bool]:
    return lambda key: any(part.holds(key) for part in parts)


@dataclass(frozen=True)
class ColumnDomain:
    """The domain of one column: its type, whether it may be null, its bounds, its public keys."""

    dtype: DType
    nullable: bool = True
    bounds: Bounds | None = None
    keys: tuple[Scalar | None, ...] | None = None
    origin: str = ""  # the step that made the bounds or keys true, as the user typed it
    # values of a computed column
    possible: Possible | None = field(default=None, compare=False, repr=False)
    # what moved values beyond bounds that no expression shows
    clipped: str = field(default="", compare=False)

    @property
    def values(self) -> frozenset[Any] | None:
        """All values that a computed column can have, where they are few."""
        return None if self.possible is None else self.possible.values

    @property
    def kind(self) -> Kind:
        """The kind of its type."""
        return kind(self.dtype)


Domains = Sequence[ColumnDomain]  # of the operands of an operation, say


class ColumnDefaults(NamedTuple):
    """Declarations of `dp.protect` for a column: bounds, as they were typed, and public keys.
    See `plan.declared`.

    Values may lie outside of them: a question clips to these bounds and leaves out other keys. So a
    domain has neither. `origin` is the line that declared them: a public table declares its own
    values. `file` is what a policy file says of the column, and `locked` names what of it no
    question may widen: "bounds", "keys". With dp.Auto() as bounds, each release chooses them.
    """

    bounds: Bounds | Auto | None = None
    keys: tuple[Scalar | None, ...] | None = None
    origin: str = "dp(...)"
    file: ColumnDefaults | None = None
    locked: tuple[str, ...] = ()

    def origin_of(self, fact: str) -> str:
        """The origin of the bounds or keys: a policy file, or the line that declared them."""
        said = None if self.file is None else getattr(self.file, fact)
        return (
            self.file.origin
            if self.file is not None and said == getattr(self, fact)
            else self.origin
        )


@dataclass(frozen=True)
class Column:
    """One version of a column: its domain, and an identifier that is unique in the plan.

    A step that changes values makes a new version with a new identifier. So neither the bounds of
    old values nor what was declared of them holds for new ones.
    """

    id: str
    domain: ColumnDomain
    is_unit: bool = False
    defaults: ColumnDefaults = ColumnDefaults()  # noqa: RUF009  (it is frozen)

    @property
    def kind(self) -> Kind:
        """The kind of its type."""
        return self.domain.kind

    @property
    def is_number(self) -> bool:
        """Whether its values are whole numbers or floats."""
        return self.kind in (Kind.INTEGER, Kind.FLOAT)

    @property
    def is_text(self) -> bool:
        """Whether its values are texts, which are keys more often than times are."""
        return self.kind is Kind.STRING

    @property
    def listed(self) -> ColumnDomain:
        """The domain that keys are read for: declared keys take the
        place of those that the type fixes.
        """
        keys = self.defaults.keys
        return self.domain if keys is None else replace(self.domain, keys=keys)


def examples(table: Table) -> Examples:
    """Columns for examples in messages. None is shown that identifies the unit."""
    shown = {name: column for name, column in table.columns.items() if not column.is_unit}
    limits = ("max_rows_per_group", "max_rows", "max_groups")
    said = [table.defaults, *(lock.limits for lock in table.locks)]
    return Examples(
        [name for name, column in shown.items() if column.is_number],
        sorted(
            (name for name, c in shown.items() if not c.is_number),
            key=lambda name: not shown[name].is_text,
        ),
        [name for name in limits if any(getattr(one, name) is not None for one in said)],
        [name for name, column in shown.items() if column.defaults.bounds is not None],
        [name for name, column in shown.items() if column.defaults.keys is not None],
    )


@dataclass(frozen=True)
class Auto(Hints):
    """Typed in place of limits or bounds: the release chooses them
    privately, for this share of its price.

    Without a typed share, bounds of all columns together have a quarter of the price, and limits
    what `Question.limits_share` says. With `scaled`, counts and sums are corrected for the rows
    that the chosen limits remove.
    """

    typed_share: Fraction | None = None
    scaled: bool = True

    @property
    def share(self) -> Fraction:
        """The part of the price, as typed; a tenth if none was."""
        return Fraction(1, 10) if self.typed_share is None else self.typed_share

    def share_of(self, groups: int | None) -> Fraction:
        """The part of the price for limits of counts and sums in so many listed
        groups; None if they are not listed.

        A limit that is too low removes rows, and the fewer groups there are, the more rows each of
        them loses. So more units are worth seeing through the noise of the histogram. On 31 panels
        of at most 8 groups, errors of counts were 1.52, 1.39, 1.35 and 1.35 times the best in
        hindsight with parts of 10, 16, 20 and 25%. On 20 panels of 9 to 30 groups they were 1.18,
        1.14 and 1.14 times with 10, 16 and 20%, and on 15 panels of more groups 1.05, 1.07 and 1.09
        times.

        >>> Auto().share_of(4), Auto(Fraction(1, 20)).share_of(4)
        (Fraction(1, 5), Fraction(1, 20))
        """
        if self.typed_share is not None or groups is None:
            return self.share
        return (
            Fraction(1, 5) if groups <= 8 else Fraction(3, 20) if groups <= 30 else Fraction(1, 10)
        )

    @property
    def typed(self) -> str:
        """As the user typed it."""
        arguments = [] if self.typed_share is None else [f"{float(self.typed_share):g}"]
        return f"dp.Auto({', '.join(arguments if self.scaled else [*arguments, 'scaled=False'])})"

    def __repr__(self) -> str:
        return self.typed


# Share of the price that the bounds of all columns take where none is typed. On 27 columns at ε =
# 1, errors of means beside the best bounds were in geometric mean, with shares of 0.25, 0.17 and
# 0.08: 2.2, 3.0 and 22 at 300 people, 1.6, 1.5 and 1.7 at 3,000, 1.6, 1.5 and 1.4 at 30,000. Where
# the share falls as a noisy number of people grows, 200,000 people have 1.6 as with 0.25: the best
# ends leave a few people outside, and noise hides these few in any crowd.
_SHARE_OF_BOUNDS = Fraction(1, 4)


def shares_of_bounds(chosen: Sequence[tuple[str, Auto]]) -> dict[str, Auto]:
    """For each column whose bounds are to be chosen, the share of the price for that.

    Input:  (column, its dp.Auto), perhaps several of one column, of which the largest typed share
            holds

    >>> shares_of_bounds([("x", Auto()), ("y", Auto()), ("z", Auto(Fraction(1, 20)))])["y"].share
    Fraction(1, 8)
    """
    shares: dict[str, Auto] = {}
    for name, auto in chosen:
        before = shares.get(name)
        if before is None or (auto.typed_share or 0) > (before.typed_share or 0):
            shares[name] = auto
    untyped = [name for name, auto in shares.items() if auto.typed_share is None]
    return shares | {name: Auto(_SHARE_OF_BOUNDS / len(untyped)) for name in untyped}


@dataclass(frozen=True)
class Limits:
    """Limits on one unit's rows, as typed: each a count of at least 1, or None if not typed.

    With `auto`, the release chooses the limits that were not typed. A limit that was typed stays an
    upper bound.
    """

    max_rows: int | None = None
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    auto: Auto | None = None

    def and_also(self, other: Limits) -> Limits:
        """Both sets of limits together: the smaller of each two."""
        return Limits(
            _least(self.max_rows, other.max_rows),
            _least(self.max_groups, other.max_groups),
            _least(self.max_rows_per_group, other.max_rows_per_group),
            self.auto or other.auto,
        )

    def or_else(self, default: Limits) -> Limits:
        """These limits, and in place of each that was not typed the one of `default`.
        `auto` is not passed on.

        >>> Limits(max_rows=2).or_else(Limits(max_rows=9, max_groups=3))
        Limits(max_rows=2, max_groups=3, max_rows_per_group=None, auto=None)
        """
        names = ("max_rows", "max_groups", "max_rows_per_group")
        own = {name: getattr(self, name) for name in names}
        return Limits(
            **{name: getattr(default, name) if own[name] is None else own[name] for name in names}
        )

    @property
    def typed(self) -> str:
        """The limits as a person types them, without dp.Auto(): `max_rows=2`."""
        return ", ".join(
            f"{name}={limit}" for name, limit in vars(self).items() if isinstance(limit, int)
        )


class PolicyCap(NamedTuple):
    """The most that releases may cost together."""

    epsilon: float
    delta: float = 0.0


@dataclass(frozen=True)
class Lock:
    """The entries of a policy file about a whole table: see `dpframe.plan.policy`.

    No question has wider limits than `limits`, nor keys of fewer units than `min_units`. `defaults`
    may be typed otherwise, as in the file where an entry is marked so. `caps` are most prices by
    what they are for. `because` are reasons by entry. `files` are the hashes of the files of keys.
    """

    file: str
    sha256: str
    limits: Limits = Limits()
    min_units: int | None = None
    defaults: Limits = Limits()
    default_min_units: int | None = None
    because: Mapping[str, str] = field(default_factory=dict)
    caps: Mapping[str, PolicyCap] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def _least(first: int | None, second: int | None) -> int | None:
    return min((x for x in (first, second) if x is not None), default=None)


@dataclass(frozen=True)
class Table:
    """The domain of a table in a plan: its visible columns, its unit, and
    how many rows one unit can have.

    `unit` holds the identifier columns; they stay in the table even where a step hides them. With
    `dp.Rows(k)` it is empty, and `declared` is the largest number of rows that one person can have
    in this table. `limits` are enforced on the rows that reach the question. `single` says that no
    unit has more than one row. `everyone` says that every unit has at least one row. `defaults` are
    the limits of a question that types no others: see `plan.declared`. `min_units` is the fewest
    units of a group found in the data, for a question that types no other number. `people` names
    the units, where several tables are about the same ones. `locks` are the policy files of all
    tables that the rows come from.
    """

    columns: Mapping[str, Column]
    unit: tuple[Column, ...]
    relation: Relation
    declared: int | None = None
    single: bool = False
    everyone: bool = True
    limits: Limits = field(default_factory=Limits)
    versions: int = 0
    defaults: Limits = field(default_factory=Limits)
    min_units: int | None = None
    people: str | None = None  # what the units of several tables are called
    locks: tuple[Lock, ...] = ()
    undeclared: str = ""  # why limits that were declared do not hold here, as a sentence

    def __post_init__(self) -> None:
        check_names(self.columns)

    @property
    def exactly_one(self) -> bool:
        """Whether neighbours exchange exactly one row for one row."""
        return self.relation == Relation.REPLACE and self.single and self.everyone

    @property
    def names_by_id(self) -> dict[str, str]:
        """The names of the visible columns, by their identifiers."""
        return {column.id: name for name, column in self.columns.items()}

    def column(self, name: object, call: str) -> Column:
        """The current version of a column. Errors: UnknownColumn, which lists the columns."""
        near = ""
        match name:
            case str() if name in self.columns:
                return self.columns[name]
            case str():
                near = nearest(name, self.columns)
        raise UnknownColumn(
            f"{call}: there is no column {name!r}. Columns: {', '.join(self.columns)}.{near}"
        )

    def with_versions(self, domains: Iterable[tuple[str, ColumnDomain]]) -> Table:
        """The table with new versions of some columns:
        each stands where its name stood, or at the end.
        """
        columns, number = dict(self.columns), self.versions
        for name, domain in domains:
            columns[name] = Column(f"v{number}", domain)
            number += 1
        return replace(self, columns=columns, versions=number)

    def with_defaults(self, defaults: Mapping[str, ColumnDefaults]) -> Table:
        """The table with what is declared of the current versions of some columns."""
        declared = {name: replace(self.columns[name], defaults=d) for name, d in defaults.items()}
        return replace(self, columns={**self.columns, **declared})


def check_names(names: Iterable[str]) -> None:
    """Refuse names that not every table can have, and that Polars reads as patterns.
    Errors: InvalidArgument.

    Arrow's tables, which lie between Polars and pandas, have no name with a zero byte: Rust panics
    on it.
    """
    for name in names:
        check_text(name, "The name of a column")
        if "\0" in name:
            raise InvalidArgument(
                f"A column called {name!r} has a zero byte in its name: give it another name."
            )
        if name == "*" or (name.startswith("^") and name.endswith("$")):
            raise InvalidArgument(
                f"A column called {name!r} is a pattern of names to Polars: give it another name."
            )
