"""Brute force over small tables: how far one unit really moves each total,
beside the claimed sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from html import escape
from typing import Any

from dpframe.api import PrivateFrame, Query, protect
from dpframe.audit.neighbouring import Table, Unit, eager, multisets, owners_of, pairs, taken
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.fields import Names
from dpframe.plan import real, render_html, render_text
from dpframe.plan.steps import Rows
from dpframe.progress import watched
from dpframe.theory.checks import distances
from dpframe.theory.formulas.sensitivity import Sensitivity
from dpframe.usage import is_integer

_HEADER = ("measure", "norm", "claimed", "reached", "")
_NO_QUESTION = (
    "check_query: the question is a function that takes a protected frame and gives a query."
)


@dataclass(frozen=True, repr=False)
class QueryCheck:
    """The result of brute force: for each noisy total the claim and the
    largest change, in its column's unit.

    `worst` holds, for each total, the first two neighbouring tables with the largest l1 change, or
    two tables that break a claim; it is None if nothing changes. The totals of `only_in_both` are
    compared in groups that both tables have: see `Query.only_in_both`. In any other total, a group
    that a table lacks counts as 0, also in the number of units that decides which groups are found.
    `tables` and `pairs` are the numbers of tables and pairs that were tried.
    """

    claimed: Mapping[str, Sensitivity]
    reached: Mapping[str, Sensitivity]
    worst: Mapping[str, tuple[Table, Table] | None]
    tables: int
    pairs: int
    relation: str
    left_out: Names = field(default=())
    only_in_both: Names = field(default=())

    @property
    def holds(self) -> bool:
        """Whether no pair of neighbours is further apart than claimed."""
        return all(within(self.reached[name], claim) for name, claim in self.claimed.items())

    @property
    def tight(self) -> Mapping[str, bool]:
        """For each total, whether the claimed l1 was reached.
        No smaller claim would then be true.
        """
        return {
            name: self.reached[name].exact_l1 == claim.exact_l1
            for name, claim in self.claimed.items()
        }

    @property
    def verdict(self) -> str:
        """The finding in words."""
        extent = (
            f"{self.pairs:,} pairs of neighbours ({self.relation}) among {self.tables:,} tables"
        )
        if not self.holds:
            names = ", ".join(
                name
                for name, claim in self.claimed.items()
                if not within(self.reached[name], claim)
            )
            return (
                f"A claim is false: {names} moves by more than claimed; .worst holds two tables "
                "that show it."
            )
        tight = f"{sum(self.tight.values())} of {len(self.tight)}"
        sentence = f"No claim is exceeded by {extent}; l1 is reached for {tight}."
        more = " Larger tables were not tried."
        unseen = f" Not measured, since a choice of ranks has no total: {', '.join(self.left_out)}."
        alone = (
            f" Of {', '.join(self.only_in_both)} only groups that both tables have were compared: "
            "a group of one table alone is an event of keys, which δ covers."
        )
        return (
            sentence
            + more
            + (unseen if self.left_out else "")
            + (alone if self.only_in_both else "")
        )

    def _rows(self) -> list[Names]:
        rows: list[Names] = []
        for name, claim in self.claimed.items():
            for norm in ("l0", "l1", "l2", "linf"):
                limit, largest = getattr(claim, norm), getattr(self.reached[name], norm)
                mark = "exceeded" if largest > limit else "reached" if largest == limit else ""
                rows.append((name, norm, f"{limit:g}", f"{largest:g}", mark))
        return rows

    def __repr__(self) -> str:
        return f"{self.verdict}\n{render_text(_HEADER, self._rows())}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.verdict)}</p>{render_html(_HEADER, self._rows())}"


def within(distance: Sensitivity, claim: Sensitivity) -> bool:
    """Whether a distance is within a claim in each norm, exactly."""
    return (
        distance.l0 <= claim.l0
        and distance.exact_l1 <= claim.exact_l1
        and distance.l2_squared <= claim.l2_squared
        and distance.exact_linf <= claim.exact_linf
    )


def check_query(
    question: Callable[[PrivateFrame], Query],
    universe: Table,
    unit: Unit,
    size: int = 3,
    neighbors: str = "add-remove",
    *,
    progress: bool | None = None,
    limit: int = 20_000,
) -> QueryCheck:
    """Compare the claims of a question with the changes between all small neighbouring tables.

    Input:  question: a function from a protected frame to a query; universe: a table of the rows
            that may occur, made up; unit as in `dpframe.protect`; size: each table has up to this
            many rows, and any of the universe may repeat; progress: True, False, or None for a line
            on standard error when it takes long and somebody sees it; limit: how many tables are
            still tried
    Output: QueryCheck
    Bound:  the largest change is a lower bound on the true sensitivity, and exact for tables of
            this universe and size. The totals are those of `Query.exact_totals`, to which the
            release adds noise
    Errors: InvalidArgument; UnsupportedOperation for too many tables, with their number, and for
            `dp.Auto`; those of the question

    >>> import polars as pl, dpframe as dp
    >>> rows = pl.DataFrame({"user": [1, 1, 2], "spend": [5.0, -40.0, 7.0]})
    >>> check = check_query(
    ...     lambda frame: frame.sum("spend", bounds=(0, 10), max_rows=2), rows, unit="user"
    ... )
    >>> check.holds, check.tight, check.tables, check.pairs
    (True, {'spend': False}, 20, 26)
    >>> check.claimed["spend"].l1, check.reached["spend"].l1
    (20, 14)
    """
    rows = eager(universe)
    owners = owners_of(rows, unit)
    tables = _tables(question, len(owners), real(size), real(limit))
    query = question(protect(rows, unit, neighbors=neighbors))
    if not isinstance(query, Query):
        raise InvalidArgument(_NO_QUESTION)
    claims = query.sensitivity
    max_rows = unit.max_rows if isinstance(unit, Rows) else None

    def table(number: int) -> Table:
        return taken(
            rows, [kind for kind, count in enumerate(tables[number]) for _ in range(count)]
        )

    answers = [
        query.exact_totals(table(i))
        for i in watched(range(len(tables)), len(tables), "tables", progress)
    ]
    comparison = _Comparison(
        {name: claim for name, claim in claims.items() if name in answers[0]}, query.only_in_both
    )
    for i, j in pairs(tables, owners, neighbors, max_rows):
        comparison.compare(i, j, answers)
    left_out = tuple(name for name in claims if name not in answers[0])
    return _checked(comparison, query, table, len(tables), neighbors, left_out)


def _checked(
    comparison: _Comparison,
    query: Query,
    table: Callable[[int], Table],
    tables: int,
    neighbors: str,
    left_out: tuple[str, ...],
) -> QueryCheck:
    """The check of a question whose tables were compared; `table` makes that of a number."""
    farthest = {name: comparison.farthest.get(name) for name in comparison.claims}
    return QueryCheck(
        comparison.claims,
        {name: _sensitivity(norms) for name, norms in comparison.reached.items()},
        {name: pair and (table(pair[0]), table(pair[1])) for name, pair in farthest.items()},
        tables,
        comparison.pairs,
        neighbors,
        left_out,
        tuple(name for name in comparison.claims if name in query.only_in_both),
    )


class _Comparison:
    """The largest distances between the answers of neighbours, and the tables
    between which each total moves most.
    """

    def __init__(self, claims: Mapping[str, Sensitivity], in_both: frozenset[str]) -> None:
        self.claims, self.in_both = claims, in_both
        self.reached: dict[str, tuple[Any, ...]] = dict.fromkeys(
            claims, (0, Fraction(0), Fraction(0), Fraction(0))
        )
        self.farthest: dict[str, tuple[int, int]] = {}
        self.pairs = 0

    def compare(self, first: int, second: int, answers: Sequence[Mapping[str, Any]]) -> None:
        """One more pair of neighbours, by their places among the answers."""
        self.pairs += 1
        for name, claim in self.claims.items():
            norms = distances(
                answers[first][name], answers[second][name], in_both=name in self.in_both
            )
            if norms[1] > self.reached[name][1] or not within(_sensitivity(norms), claim):
                self.farthest[name] = first, second
            self.reached[name] = tuple(map(max, self.reached[name], norms))


def _tables(question: object, kinds: int, size: object, limit: object) -> list[tuple[int, ...]]:
    """The tables to try. Errors: InvalidArgument; UnsupportedOperation for too many tables."""
    if not is_integer(size, 1) or not kinds:
        raise InvalidArgument(
            "check_query: size= is a whole number of at least 1, and the universe has at least a "
            "row."
        )
    if not callable(question):
        raise InvalidArgument(_NO_QUESTION)
    if not is_integer(limit):
        raise InvalidArgument("check_query: limit= is a whole number of tables.")
    number = 1
    for row in range(1, size + 1):  # tables of up to `size` rows: (kinds + size choose size)
        number = number * (kinds + row) // row
        if number > limit:
            raise UnsupportedOperation(
                f"check_query: there are {number:,} tables of up to {row} of these {kinds} rows; "
                f"that is more than limit={limit}. Make the universe or the size smaller, or raise "
                "limit=."
            )
    return multisets(kinds, size)


def _sensitivity(norms: Sequence[Any]) -> Sensitivity:
    return Sensitivity.of(l0=norms[0], l1=norms[1], l2_squared=norms[2], linf=norms[3])
