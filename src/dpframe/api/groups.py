"""Groups of a protected frame, as `group_by` returns them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

from dpframe.api.aggregates import read_aggregates
from dpframe.api.query import Query
from dpframe.api.statistics.choices import GroupChoices
from dpframe.api.statistics.counts import GroupCounts
from dpframe.api.statistics.moments import GroupMoments
from dpframe.api.statistics.pairs import GroupPairs
from dpframe.engine import Table_co
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan import GROUPS
from dpframe.usage import elsewhere, explains


@explains(".{}({}).release(epsilon=0.1)")
class PrivateGroupBy(
    GroupCounts[Table_co], GroupMoments[Table_co], GroupChoices[Table_co], GroupPairs[Table_co]
):
    """Groups of a protected frame; ask them for aggregates.

    >>> import polars as pl, dpframe as dp
    >>> visits = pl.DataFrame(
    ...     {"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"], "spend": [3.0, 4.0, 5.0]}
    ... )
    >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
    >>> groups = frame.group_by("city", keys=["Bonn", "Kiel"], max_groups=2, max_rows=3)
    >>> groups.agg(n=dp.count(), spend=dp.mean("spend", bounds=(0, 10))).release(
    ...     epsilon=0.5
    ... ).table.columns
    ['city', 'n', 'spend']
    >>> groups.median("spend", bounds=(0, 10)).release(epsilon=0.5).table.columns
    ['city', 'spend']
    """

    __slots__ = ()
    _habits = GROUPS

    def agg(self, *unnamed: object, **aggregates: object) -> Query[Table_co]:
        """Several aggregates of each group in one release:
        `agg(n=dp.count(), spend=dp.mean("spend"))`.

        An aggregate may have limits of its own: `dp.mean("spend", max_rows=2)`. Limits that were
        not typed there are those of `group_by`.

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame(
        ...     {"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"], "spend": [3.0, 4.0, 5.0]}
        ... )
        >>> groups = visits.dp(unit="user").group_by("city", keys=["Bonn", "Kiel"], max_rows=9)
        >>> query = groups.agg(n=dp.count(), spend=dp.sum("spend", bounds=(0, 10), max_rows=2))
        >>> {name: bound.l1 for name, bound in query.sensitivity.items()}
        {'n': 9, 'spend': 20}
        """
        step, asked = read_aggregates(
            self._groups.step, "agg", unnamed, aggregates, self._groups.by
        )
        return PrivateGroupBy(replace(self._groups, step=step), self._budget, self._written)._query(
            asked
        )

    def keys(self) -> Query[Table_co]:
        """The keys alone, of the groups that enough units are in:
        as many as the price allows, which needs a δ.

        Without a limit, `group_by("word").keys()`, keys are found in eight rounds. In each round,
        each unit spreads a weight of length 1 over its keys: 1/√t to each of t keys. A key is
        released when its noisy weights are large enough. It then leaves, and so do keys with little
        weight, so that units give more to the others. This nearly always finds more keys than any
        limit. It takes eight readings of the rows, Gaussian noise, a unit column and
        neighbors="add-remove". A unit with more than 100 keys keeps 100 of them.

        With max_groups=, each unit has a full vote for as many keys. If units have more groups than
        the limit, many units keep the same ones. So fewer groups have any unit, and more of these
        are released, than in a question that asks for numbers too.

        Bound:  without a limit see `dpframe.theory.formulas.loss.key_selection.round_thresholds`;
                with one see `dpframe.theory.formulas.loss.key_selection.selection_scale`
        Errors: UnsupportedOperation for listed keys, with other=, which adds up numbers, and with
                limits=dp.Auto(), which weighs the errors of numbers; DeltaRequired at the release
                without a δ

        >>> import polars as pl, dpframe as dp
        >>> rows = pl.DataFrame({"user": range(400), "word": ["yes"] * 400})
        >>> query = (
        ...     rows.dp(unit="user", budget=dp.Budget(epsilon=1.0, delta=1e-6))
        ...     .group_by("word")
        ...     .keys()
        ... )
        >>> query.release(epsilon=1.0, delta=1e-6).table["word"].to_list()
        ['yes']
        """
        if self._groups.keys is not None:
            raise UnsupportedOperation(
                "keys(): these keys are listed, so there is nothing to find out about them."
            )
        if self._groups.other is not None:
            raise UnsupportedOperation(
                "keys(): other= adds up numbers, and none is asked for here; leave it out."
            )
        if self._groups.min_units is not None and self._groups.in_rounds:
            raise UnsupportedOperation(
                f"keys(): min_units={self._groups.min_units} needs the number of units of each "
                "key, and without a limit keys are found by weights. Say in how many groups a "
                f"unit counts: group_by({', '.join(map(repr, self._groups.by))}, "
                "max_groups=3).keys()."
            )
        if self._groups.auto is not None:
            raise UnsupportedOperation(
                "keys(): dp.Auto() weighs the errors of numbers, and none is asked for here; "
                "leave it out and say max_groups=3, or ask for count_units()."
            )
        return self._query(())

    def _advice(self, name: str) -> str:
        if name in self._groups.table.columns:
            return (
                f" It is a column: name it in the question, as in .mean({name!r}, bounds=(0, 100))."
            )
        return elsewhere(name) or super()._advice(name)

    def __getitem__(self, key: object) -> NoReturn:
        if isinstance(key, int):  # a loop asks for 0, 1, ...
            line = f"partition({', '.join(map(repr, self._groups.by))}, keys=[...], max_groups=1)"
            raise InvalidArgument(
                f"Groups take no [...] and no loop: one frame for each key is in {line}."
            )
        name = key if isinstance(key, str) else "x"
        raise InvalidArgument(
            f"Groups take no [...]: name the column in the question, as in .mean({name!r}, "
            "bounds=(0, 100))."
        )

    def __len__(self) -> int:
        return len(self[0])

    def __repr__(self) -> str:
        return (
            f"PrivateGroupBy by {', '.join(map(repr, self._groups.by))}. Ask it: .agg(n=dp.count())"
        )

    def __reduce__(self) -> Any:
        raise UnsupportedOperation(
            "A protected frame cannot be pickled or copied out: the copy would hold raw rows."
        )
