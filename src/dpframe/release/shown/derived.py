"""Shares, moving averages, changes and index numbers of a release:
tables that follow from its numbers.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from dpframe.arrays import Floats
from dpframe.engine import Kind, Table_co, as_kind
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan import ReleasedColumn, alike, real
from dpframe.release.accuracy import Combinations, check_alpha
from dpframe.release.answer import adds_up, keys_beside, known_nonnegative, nonnegative
from dpframe.release.shown.charts import Grouped, grouped_chart, in_words, read_look, title_of
from dpframe.release.shown.comparisons import Compares
from dpframe.release.shown.crosstab import lines_of
from dpframe.release.shown.error_tables import largest_error
from dpframe.release.shown.released import Released
from dpframe.usage import read_whole

_LONGEST = 10_000  # rows of a moving window


@dataclass(frozen=True, eq=False, repr=False)
class Derived(Released[Table_co]):
    """Numbers that follow from those of a release, each with the ends of its
    interval; reading them draws nothing.

    The intervals are about the noise alone.
    """

    _by: tuple[str, ...]
    _name: str
    _ends: pl.DataFrame  # the keys, with the names of `keys_beside`, then value, lower, upper
    _title: str
    _alpha: float
    _column: str  # of the release, from which they follow

    def _in_kind(self, kind: Kind) -> Any:
        names = {"value": self._name, "lower": f"{self._name}_low", "upper": f"{self._name}_high"}
        keys = [
            pl.col(beside).alias(name)
            for beside, name in zip(keys_beside(self._by), self._by, strict=True)
        ]
        table = self._ends.select(*keys, *(pl.col(old).alias(new) for old, new in names.items()))
        return self._noted(as_kind(table, kind), kind)

    @property
    def _words(self) -> str:
        return f"{self.table}\n\n{self._title}. Released at {self.cost}."

    @property
    def _notes(self) -> Sequence[str]:
        interval = (
            f"{self._name}_low and {self._name}_high: {100 * (1 - self._alpha):.6g}% intervals of "
            "the noise alone."
        )
        return [interval, *super()._notes]

    @property
    def _scope(self) -> list[str]:
        return self._left_out(self._column)

    def _margins(self) -> Sequence[tuple[str, str]]:
        error = self._ends.select(largest_error()).to_series().max()
        return [(self._name, f"± {error:,.4g}")] if isinstance(error, float) else []

    def plot(
        self,
        *,
        title: str | None = None,
        width: int | None = None,
        height: int | None = None,
        sort: str | None = None,
        label: str | None = None,
    ) -> Any:
        """A chart of these numbers with their intervals (Altair), as `Release.plot` draws it.

        Input:  title, width, height, sort, label: as for `Release.plot`
        Errors: UnsupportedOperation without the extra `charts`; InvalidArgument for other values of
                the arguments
        """
        rows = self._ends.filter(pl.col("value").is_not_null())
        rows = rows.with_columns(largest_error(), column=pl.lit(self._name))
        errors = rows.select(*keys_beside(self._by), "column", "value", "error", "lower", "upper")
        words = label or self._title.partition(":")[0]
        grouped = Grouped(self._by, errors, pl.Float64(), words, alpha=self._alpha)
        heading = self._heading(label or self._title, self._scope)
        return grouped_chart(grouped, heading, read_look(title, width, height, sort, label))


@dataclass(frozen=True)
class Rolling:
    """Windows of consecutive groups of a release: `rolling(7).mean()`, `rolling(7).sum()`."""

    _of: Derives[Any]
    _window: int
    _column: str | None
    _on: str | None
    _alpha: float

    def mean(self) -> Derived[Any]:
        """The mean of each window, null where a window is not full or has a
        number that is not shown; free.
        """
        return self._of._moving(
            self._window, 1 / self._window, "mean", self._column, self._on, self._alpha
        )

    def sum(self) -> Derived[Any]:
        """The sum of each window; see `mean`."""
        return self._of._moving(self._window, 1.0, "sum", self._column, self._on, self._alpha)


class Derives(Compares[Table_co]):
    """A release of groups from whose numbers others follow."""

    def share(
        self, within: str | Sequence[str] = (), column: str | None = None, alpha: float = 0.05
    ) -> Derived[Table_co]:
        """Each count or sum as a share of the total of all groups, with its interval; free.

        Input:  within: keys inside whose groups shares add up to 1, by default none: all groups
                together; column: which released count or sum, by default the first; alpha: how
                often an interval may miss
        Output: the keys, the share, and the ends of its interval; null where noise does not tell
                the total from 0, and where the interval is everything from 0 to 1. Shares of counts
                are the nearest that are not below 0 and add up to 1; their intervals are those of
                the numbers as drawn. Rows whose key is not listed are in no total. In a crosstab
                `normalize=` does the same for cells
        Bound:  see `dpframe.release.accuracy.combinations.Combinations.quotients`
        Errors: UnsupportedOperation for means and for groups found in the data, whose total leaves
                out the others, and beside suppressed groups, which shares would tell;
                InvalidArgument

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"city": ["Bonn", "Kiel"] * 50}).dp(
        ...     unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0)
        ... )
        >>> out = frame.histogram("city", keys=["Bonn", "Kiel"]).release(epsilon=1.0)
        >>> out.share().table.columns
        ['city', 'share', 'share_low', 'share_high']
        """
        found, output = self._combined("share", column, alpha)
        numbers = self._numbers
        names = _some_of(within, numbers.by)
        if not adds_up(output) or numbers.noise.decided_by is not None:
            raise UnsupportedOperation(
                "share(): shares are of counts and sums of listed groups: keys=[...]."
            )
        if numbers.hidden.any():
            raise UnsupportedOperation(
                "share(): readers could learn hidden numbers from shares of the total. Type "
                "share() before suppress()."
            )
        values = self._unknown()
        for rows in self._lines(names):
            values[:, rows] = found.quotients(rows, rows[None])
            if known_nonnegative(output) and np.isfinite(values[0, rows]).all():
                values[0, rows] = np.minimum(
                    nonnegative(values[:1, rows])[0], 1.0
                )  # the nearest shares that add up to 1
        if known_nonnegative(output):
            values[1:] = np.clip(values[1:], 0.0, 1.0)
            values[:, (values[1] <= 0) & (values[2] >= 1)] = np.nan
        inside = f" within {', '.join(names)}" if names else ""
        return self._derived(
            "share",
            values,
            f"Share of {self._quantity(output)}{inside}, of the groups listed",
            output,
            alpha,
        )

    def rolling(
        self, window: int, column: str | None = None, on: str | None = None, alpha: float = 0.05
    ) -> Rolling:
        """Moving windows over periods, as of pandas: `rolling(7).mean()`, `rolling(7).sum()`; free.

        Input:  window: how many periods; column: which released number, by default the first; on:
                the key that orders them, by default the only one, or the only date or time; alpha:
                the probability that an interval misses
        Output: windows with `mean()` and `sum()`, each with the ends of its interval. A window ends
                with its period
        Bound:  noise that periods share adds up, and their own noise grows with the root of their
                number: see `dpframe.release.accuracy.combinations.Combinations.sums`
        Errors: InvalidArgument; UnsupportedOperation as `difference`

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"day": [1, 2, 3] * 50}).dp(
        ...     unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0)
        ... )
        >>> out = frame.histogram("day", keys=[1, 2, 3]).release(epsilon=1.0)
        >>> out.rolling(2).mean().table["rolling_mean"].is_null().to_list()
        [True, False, False]
        """
        number = read_whole(
            window, 1, _LONGEST, "rolling: give a number of periods, such as rolling(7).mean()."
        )
        self._combined("rolling", column, alpha)
        self._order("rolling", on)
        return Rolling(self, number, column, on, alpha)

    def diff(
        self,
        periods: int = 1,
        column: str | None = None,
        on: str | None = None,
        alpha: float = 0.05,
    ) -> Derived[Table_co]:
        """The change of each number since some periods before, with its interval; free.

        Input:  periods: how many periods lie between; column, on, alpha: as in `rolling`
        Output: the keys, the change, and the ends of its interval; null for the first periods.
                Intervals of two groups that cover the population are those of `difference`
        Errors: InvalidArgument; UnsupportedOperation as `difference`

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"day": [1, 2, 3] * 50}).dp(
        ...     unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0)
        ... )
        >>> out = frame.histogram("day", keys=[1, 2, 3]).release(epsilon=1.0)
        >>> out.diff().table.columns
        ['day', 'diff', 'diff_low', 'diff_high']
        """
        found, output = self._combined("diff", column, alpha)
        number = _periods(periods, "diff")
        values = self._unknown()
        for rows in self._ordered("diff", on):
            if len(rows) > number:
                pairs = np.column_stack([rows[number:], rows[:-number]])
                values[:, rows[number:]] = found.sums(pairs, np.array([1.0, -1.0]))
        return self._derived("diff", values, f"Change of {self._quantity(output)}", output, alpha)

    def pct_change(
        self,
        periods: int = 1,
        column: str | None = None,
        on: str | None = None,
        alpha: float = 0.05,
    ) -> Derived[Table_co]:
        """The change of each count or sum since some periods before, as a
        part of what it was; see `diff`.

        Input:  periods, column, on, alpha: as in `diff`
        Output: as `diff`; null where the noise does not tell the number before from 0
        """
        found, output = self._combined("pct_change", column, alpha)
        number = _periods(periods, "pct_change")
        values = self._unknown()
        for rows in self._ordered("pct_change", on):
            if len(rows) > number:
                quotients = found.quotients(rows[number:], rows[:-number, None])
                values[:, rows[number:]] = np.array(self._bounded(output, quotients)) - 1
        return self._derived(
            "pct_change", values, f"Relative change of {self._quantity(output)}", output, alpha
        )

    def rebase(
        self,
        base: Any,
        to: float = 100,
        column: str | None = None,
        on: str | None = None,
        alpha: float = 0.05,
    ) -> Derived[Table_co]:
        """Index numbers: each count or sum as a multiple of that of a base
        period, which becomes 100; free.

        Input:  base: the key of the base period; to: the number that it gets; column, on, alpha: as
                in `rolling`
        Output: the keys, the index, and the ends of its interval: 100 exactly in the base period,
                and null throughout where the noise does not tell the base from 0
        Errors: InvalidArgument for a key that there is not; UnsupportedOperation as `difference`

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"year": [2024, 2025] * 50}).dp(
        ...     unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0)
        ... )
        >>> out = frame.histogram("year", keys=[2024, 2025]).release(epsilon=1.0)
        >>> float(out.rebase(2024).table["index"][0])
        100.0
        """
        found, output = self._combined("rebase", column, alpha)
        scale, on = real(to), self._order("rebase", on)
        if scale is None or not 0 < scale <= 1e9:
            raise InvalidArgument("rebase: to= is a number above 0, such as to=100.")
        keys, values = self._numbers.long.get_column(on).to_list(), self._unknown()
        for rows in self._ordered("rebase", on):
            bases = [row for row in rows.tolist() if _is_key(keys[row], base)]
            if not bases:
                raise InvalidArgument(f"rebase: base= is not among the keys of {on!r}.")
            under = np.full((len(rows), 1), bases[0])
            values[:, rows] = scale * np.array(self._bounded(output, found.quotients(rows, under)))
        title = f"{self._quantity(output)}, where {on} {base} is {scale:g}"
        return self._derived("index", values, title[:1].upper() + title[1:], output, alpha)

    def _moving(
        self,
        window: int,
        weight: float,
        what: str,
        column: str | None,
        on: str | None,
        alpha: float,
    ) -> Derived[Table_co]:
        found, output = self._combined("rolling", column, alpha)
        values = self._unknown()
        for rows in self._ordered("rolling", on):
            if len(rows) >= window:
                at = np.lib.stride_tricks.sliding_window_view(rows, window)
                values[:, rows[window - 1 :]] = found.sums(at, np.full(window, weight))
        words = (
            f"Moving {'average' if what == 'mean' else 'sum'} of {window} periods: "
            f"{self._quantity(output)}"
        )
        return self._derived(f"rolling_{what}", values, words, output, alpha)

    def _combined(
        self, verb: str, column: str | None, alpha: float
    ) -> tuple[Combinations, ReleasedColumn]:
        numbers, output = self._numbers, self._comparable(column, verb)
        if not numbers.layout.is_long:
            keys = ", ".join(map(repr, numbers.by))
            rows = next(name for name in numbers.by if name not in numbers.layout.across)
            line = f"group_by({keys}, keys={{...}}).count().release(epsilon=0.1)"
            shares = (
                f" For counts with shares of a row from one release: out = {line}; "
                f"out.share(within={rows!r})."
            )
            raise UnsupportedOperation(
                f"{verb}(): is for tables with a row for each group: "
                f"{line}.{shares if verb == 'share' else ''}"
            )
        if output.dtype is not None:
            raise UnsupportedOperation(f"{verb}(): {output.name!r} holds times.")
        return Combinations(numbers, output, check_alpha(alpha)), output

    def _bounded(
        self, output: ReleasedColumn, quotients: tuple[Floats, Floats, Floats]
    ) -> tuple[Floats, ...]:
        """Quotients of counts or sums, which are not below 0 where these are not.
        Errors: UnsupportedOperation.
        """
        if not adds_up(output):
            raise UnsupportedOperation(
                "Quotients of periods are of counts and sums; type diff() for means."
            )
        value, low, high = quotients
        return (value, np.maximum(low, 0.0), high) if known_nonnegative(output) else quotients

    def _unknown(self) -> Floats:
        """A number and the ends of its interval for each row, all of them null so far."""
        return np.full((3, self._numbers.long.height), np.nan)

    def _quantity(self, output: ReleasedColumn) -> str:
        words = in_words(self.derivation, output.name)
        words = title_of(self.derivation, words, self._numbers.by)
        return words[:1].lower() + words[1:]

    def _order(self, verb: str, on: str | None) -> str:
        """The key that orders periods. Errors: InvalidArgument."""
        by, schema = self._numbers.by, self._numbers.long.schema
        dated = [name for name in by if schema[name] in (pl.Date, pl.Datetime)]
        keys = [on] if on is not None else dated if len(dated) == 1 else list(by)
        if len(keys) != 1 or not isinstance(keys[0], str) or keys[0] not in by:
            raise InvalidArgument(
                f"{verb}: say which key orders the periods: on={by[0]!r}. Keys: {', '.join(by)}."
            )
        return keys[0]

    def _ordered(self, verb: str, on: str | None) -> list[np.ndarray]:
        """For each group of the other keys, its rows in the order of
        periods; texts keep that of the table.
        """
        key = self._order(verb, on)
        lines = self._lines([name for name in self._numbers.by if name != key])
        column = self._numbers.long.get_column(key)
        if column.dtype in (pl.String, pl.Enum, pl.Categorical):
            return lines
        place = column.rank("dense").fill_null(0).to_numpy()
        return [rows[np.argsort(place[rows], kind="stable")] for rows in lines]

    def _lines(self, names: Sequence[str]) -> list[np.ndarray]:
        """The rows of each group of some keys; all rows where there are none."""
        long = self._numbers.long
        if not names:
            return [np.arange(long.height)]
        return [rows.astype(np.int64) for rows in lines_of(long, names)[1]]

    def _derived(
        self, name: str, values: Floats, title: str, output: ReleasedColumn, alpha: float
    ) -> Derived[Table_co]:
        by = self._numbers.by
        while {name, f"{name}_low", f"{name}_high"} & set(by):
            name += "_"
        missing = np.isnan(values[0])
        ends = {
            column: pl.Series(np.where(missing, np.nan, cells)).fill_nan(None)
            for column, cells in zip(("value", "lower", "upper"), values, strict=True)
        }
        keys = self._numbers.long.select(
            pl.col(old).alias(new) for old, new in zip(by, keys_beside(by), strict=True)
        )
        table = keys.with_columns(**ends)
        steps = (*self._steps, f"{title}: computed from the released numbers.")
        return Derived(self._record, by, name, table, title, alpha, output.name, _steps=steps)


def _is_key(key: Any, typed: object) -> bool:
    """Whether a key was typed: a date may be typed as text, and stands for its midnight."""
    if isinstance(key, dt.date):
        return str(key).removesuffix(" 00:00:00") == str(typed).removesuffix(" 00:00:00")
    return isinstance(typed, (str, int, float)) and alike(key, typed)


def _periods(periods: object, verb: str) -> int:
    return read_whole(periods, 1, _LONGEST, f"{verb}: periods= is a whole number from 1 on.")


def _some_of(within: str | Sequence[str], by: Sequence[str]) -> Sequence[str]:
    """The keys inside whose groups shares add up to 1. Errors: InvalidArgument."""
    names = (within,) if isinstance(within, str) else within
    if (
        not isinstance(names, (list, tuple))
        or not all(isinstance(name, str) and name in by for name in names)
        or set(names) == set(by)
    ):
        raise InvalidArgument(f"share: within= names some of the keys {', '.join(by)}, not all.")
    return names
