"""How the released table is laid out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Layout:
    """The layout of the released table: long, a crosstab with some keys along the top, or a description of columns.

    `normalize` gives each cell as a part of its row ("index"), its column or the total. With `measured` the margins
    have noise of their own, and cells and margins are fitted to each other. With `largest` the groups with the largest
    released numbers are kept, so many at most, the largest first.
    """

    form: Literal["long", "crosstab", "describe"] = "long"
    across: tuple[str, ...] = ()
    margins: bool = False
    normalize: Literal["", "index", "columns", "all"] = ""
    measured: bool = False
    largest: int | None = field(default=None, kw_only=True)

    @property
    def is_long(self) -> bool:
        """Whether the table has a row for each group, and no index in pandas."""
        return self.form == "long"

    @property
    def is_description(self) -> bool:
        """Whether it has statistics down and the columns `across`."""
        return self.form == "describe"
