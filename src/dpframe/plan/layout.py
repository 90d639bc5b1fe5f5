"""The layout of the released table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan.keys import Keys


@dataclass(frozen=True)
class Layout:
    """The layout of the released table: long, a crosstab with some keys along the
    top, or a description of columns.

    `normalize` gives each cell as a part of its row ("index"), its column or the total. With
    `measured` the margins have noise of their own, and cells and margins are fitted to each other.
    With `largest` the groups with the largest released numbers are kept, so many at most, the
    largest first. With `subtotals` there is one more margin for each value of the first key down.
    """

    form: Literal["long", "crosstab", "describe"] = "long"
    across: tuple[str, ...] = ()
    margins: bool = False
    normalize: Literal["", "index", "columns", "all"] = ""
    measured: bool = False
    largest: int | None = field(default=None, kw_only=True)
    subtotals: bool = field(default=False, kw_only=True)

    @property
    def is_long(self) -> bool:
        """Whether the table has a row for each group, and no index in pandas."""
        return self.form == "long"

    @property
    def is_crosstab(self) -> bool:
        """Whether some of its keys are along the top."""
        return self.form == "crosstab"

    @property
    def is_description(self) -> bool:
        """Whether it has statistics down and the columns `across`."""
        return self.form == "describe"


def measured_shape(by: Sequence[str], keys: Keys | None, layout: Layout) -> tuple[int, int]:
    """Numbers of keys down and across a crosstab whose margins are measured.
    Errors: UnsupportedOperation.
    """
    if keys is None:
        raise UnsupportedOperation(
            "crosstab: margins of cells found in the data would leave out the suppressed ones; "
            "list keys={...}."
        )
    sizes = {name: len(level) for name, level in zip(by, keys.levels, strict=True)}
    across = math.prod(sizes[name] for name in layout.across)
    down = math.prod(size for name, size in sizes.items() if name not in layout.across)
    if keys.size != down * across or keys.rows is not None:
        raise UnsupportedOperation(
            "crosstab: margins='measured' needs every combination of keys: keys={'a': [...], 'b': "
            "[...]}."
        )
    return down, across


def divided_by(normalize: object) -> Literal["", "index", "columns", "all"]:
    """The totals that cells are divided by, from `normalize=` as in `pd.crosstab`."""
    if normalize is False:
        return ""
    for names, part in (
        (("index", 0), "index"),
        (("columns", 1), "columns"),
        (("all", True), "all"),
    ):
        if any(type(normalize) is type(x) and normalize == x for x in names):
            return part  # type: ignore[return-value]
    raise InvalidArgument("crosstab: normalize= is 'index', 'columns', 'all' or False.")


def check_margins(margins: object, subtotals: object, *, nested: bool, parts: bool) -> None:
    """Errors: InvalidArgument for margins that are none, and for subtotals that there cannot be."""
    match margins:
        case bool() | str("measured"):
            pass
        case _:
            raise InvalidArgument("crosstab: margins= is True, False or 'measured'.")
    if not isinstance(subtotals, bool) or (
        subtotals and (margins is not True or parts or not nested)
    ):
        raise InvalidArgument(
            "crosstab: subtotals=True goes with two or more columns down and margins=True: "
            "crosstab(['region', 'town'], 'sex', keys=..., margins=True, subtotals=True)."
        )
