"""The published numbers of a series: a table of estimates with their errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import polars as pl

from dpframe.budget import Loss
from dpframe.engine import Kind, as_kind
from dpframe.errors import UnsupportedOperation
from dpframe.fields import FieldDict, Fields
from dpframe.plan import render_html
from dpframe.release.accuracy import check_column
from dpframe.release.shown import (
    Exports,
    Grouped,
    Heading,
    Report,
    as_text,
    completed,
    decimals_by_column,
    grouped_chart,
    loss_words,
    read_look,
)

_SHOWN = 60


@dataclass(frozen=True, repr=False)
class SeriesNumbers(Exports):
    """Estimates of a series: numbers with an error beside each. Reading them again draws nothing.

    `title` describes them. `cost` is the loss of adding the period now: none, unless it was
    measured again.
    """

    title: str
    statement: Fields = field(repr=False)
    _long: pl.DataFrame
    _kind: Any
    _columns: tuple[str, ...]
    cost: Loss | None = None
    stored: str = ""
    _period: str = ""  # the column of time, if the table has one
    _alpha: float = 0.05
    _filed: Fields = field(default_factory=dict)  # what was kept with the charge of the period

    @property
    def table(self) -> Any:
        """The numbers, as the kind of table that was protected: keys, `x` and its error `x_error`.

        The error is one that the noise exceeds with probability at most alpha, by default 5%.
        """
        return self._in_kind(self._kind)

    def _in_kind(self, kind: Kind) -> Any:
        return as_kind(self._long, kind)

    @property
    def _decimals(self) -> Mapping[str, int]:
        places = decimals_by_column(
            {name: self._long[f"{name}_error"].to_list() for name in self._names}
        )
        return places | {f"{name}_error": number for name, number in places.items()}

    @property
    def value(self) -> float:
        """The only number. Errors: UnsupportedOperation if there are several."""
        return self._only(self._columns[0])

    @property
    def error(self) -> float:
        """The error of the only number. Errors: UnsupportedOperation if there are several."""
        return self._only(f"{self._columns[0]}_error")

    def _only(self, name: str) -> float:
        if self._long.height != 1 or len(self._columns) != 1:
            raise UnsupportedOperation("There are several numbers here; see .table.")
        return float(self._long.get_column(name)[0])

    def plot(
        self,
        column: str | None = None,
        *,
        title: str | None = None,
        width: int | None = None,
        height: int | None = None,
        sort: str | None = None,
        label: str | None = None,
    ) -> Any:
        """A chart (Altair): a line over the periods in the band of its errors, one for each group.

        Input:  column: a column of numbers, such as "count_total" or "count_7d"; by default the
                number of each period; title, width, height, sort, label: as in `Release.plot`
        Errors: UnsupportedOperation without the extra `charts`, and if the table has no column of
                periods; InvalidArgument for an unknown column, and for other values of the
                arguments
        """
        names, look = self._names, read_look(title, width, height, sort, label)
        check_column(column, names, "plot")
        chosen = names[0] if column is None else column
        if not self._period:
            raise UnsupportedOperation(
                "plot(): this table has no column of periods. Draw series.table().plot()."
            )
        keys, error = self._keys, pl.col(f"{chosen}_error")
        group = pl.concat_str(
            [as_text(self._long[key]).fill_null("null") for key in keys], separator=", "
        )
        of = ", ".join(keys)
        errors = self._long.select(
            pl.col(self._period),
            *([group.alias("group")] if keys else []),
            pl.lit(chosen).alias("column"),
            pl.col(chosen).alias("value"),
            error.alias("error"),
            (pl.col(chosen) - error).alias("lower"),
            (pl.col(chosen) + error).alias("upper"),
        )
        words = look.words or self._words_of(chosen)
        question = f"{self.title.rpartition(': ')[0]}: {words}{f' by {of}' if keys else ''}"
        price = loss_words(self.statement["guarantee"])
        under = (
            f"Released at {price} for all periods; protected: {self.statement['unit_of_privacy']}."
        )
        by = (self._period, *filter(None, [of]))
        grouped = Grouped(by, errors, pl.Float64(), words, alpha=self._alpha)
        return grouped_chart(
            grouped, Heading(question, (under, *self.statement.get("beyond", []))), look
        )

    @property
    def _names(self) -> list[str]:
        """The columns of numbers: each has its error beside it."""
        return [
            name.removesuffix("_error") for name in self._long.columns if name.endswith("_error")
        ]

    @property
    def _keys(self) -> list[str]:
        """The columns of keys, beside that of time."""
        numbers = {*self._names, *(f"{name}_error" for name in self._names)}
        return [name for name in self._long.columns[1:] if name not in numbers]

    def _words_of(self, column: str) -> str:
        """The words for a column of numbers: "count", "count, running total", "count, last 7d"."""
        of = max((name for name in self._columns if column.startswith(name)), key=len)
        what = column[len(of) + 1 :]
        return f"{of}, {'running total' if what == 'total' else f'last {what}'}" if what else of

    def report(self) -> Report:
        """The privacy statement of the series, as text or HTML; `to_json()` for machines."""
        largest = [(name, self._long.get_column(f"{name}_error").max()) for name in self._columns]
        errors = tuple(
            (name, f"± {error:,.4g}") for name, error in largest if isinstance(error, float)
        )
        return Report(
            {**self.statement, **({"stored": self.stored} if self.stored else {})}, errors
        )

    def certificate(self) -> FieldDict:
        """Everything that the privacy claim of all periods rests on, with the question of this one.

        Errors: UnsupportedOperation for totals and windows, and for a period that an earlier
                version stored
        """
        if not self._certified:
            return super().certificate()
        return completed(
            self.to_csv(), self._filed["certificate"], self.statement, drawn=self._filed["drawn"]
        )

    @property
    def _certified(self) -> bool:
        return "certificate" in self._filed

    @property
    def _words(self) -> str:
        return f"{self.title}\n{self.table}"

    @property
    def _notes(self) -> list[str]:
        test = [self.statement["test"]] if "test" in self.statement else []
        return [*test, *([self.stored] if self.stored else []), *self.statement.get("beyond", [])]

    def _repr_html_(self) -> str:
        more = (
            f"<p>… and {self._long.height - _SHOWN} more rows.</p>"
            if self._long.height > _SHOWN
            else ""
        )
        origin = f"<p>{'<br>'.join(map(escape, self._notes))}</p>" if self._notes else ""
        table = render_html(self._long.columns, self._long.head(_SHOWN).rows(), ",.4g")
        return f"<div class='dpframe'><p><b>{escape(self.title)}</b></p>{table}{more}{origin}</div>"
