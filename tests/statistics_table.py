"""The table of statistics that test suites share. A new statistic is one line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dpframe as dp


@dataclass(frozen=True)
class Statistic:
    """A function of dpframe with arguments that are right.

    `asked_of` says where it is a method too: of frames and groups, of groups alone, or nowhere.
    `limited` says whether it needs a limit on rows. A `shape` is a number of any column of numbers
    with typed bounds, from sums of powers.
    """

    verb: str
    arguments: Mapping[str, Any]
    asked_of: str = "frames groups"
    limited: bool = True
    shape: bool = False

    def aggregate(self) -> Any:
        """The statistic for `agg(...)`."""
        return getattr(dp, self.verb)(**self.arguments)

    def ask(self, asked: Any, **limits: int) -> dp.Query:
        """The question as a method of a frame, with limits where it needs them, or of groups."""
        return getattr(asked, self.verb)(**self.arguments, **(limits if self.limited else {}))


def statistics(
    x: str,
    y: str,
    listed: tuple[str, list[Any]],
    bounds: tuple[float, float],
    bounds_of_y: tuple[float, float],
) -> dict[str, Statistic]:
    """Every statistic of a column of numbers x, those of two numbers with y, and
    those of a column with listed keys.

    Input:  bounds: of x, from 0 on; bounds_of_y: of y, from 0 on
    """
    high, (name, keys) = bounds[1], listed
    bounded = {"column": x, "bounds": bounds}
    weighted = {**bounded, "weights": y, "weight_bounds": bounds_of_y}
    pair = {"x": x, "y": y, "bounds": {x: bounds, y: bounds_of_y}}
    sums = {"top": dp.sum(x, bounds=bounds), "bottom": dp.sum(y, bounds=bounds_of_y)}
    return {
        "count": Statistic("count", {"column": x}),
        "count of rows": Statistic("count", {}),
        "count_units": Statistic("count_units", {}, limited=False),
        "n_unique": Statistic("n_unique", {"column": name}),
        "sum": Statistic("sum", bounded),
        "sum of units": Statistic("sum", {"column": x, "unit_bounds": bounds}, limited=False),
        "mean": Statistic("mean", bounded),
        "weighted mean": Statistic("mean", weighted),
        "var": Statistic("var", {**bounded, "ddof": 1}),
        "std": Statistic("std", {**bounded, "ddof": 1}),
        "skew": Statistic("skew", bounded, shape=True),
        "kurtosis": Statistic("kurtosis", bounded, shape=True),
        "geometric_mean": Statistic("geometric_mean", {"column": x, "bounds": (high / 10, high)}),
        "ratio": Statistic("ratio", sums, asked_of=""),
        "cov": Statistic("cov", {**pair, "ddof": 1}, asked_of="groups"),
        "covariance of all rows": Statistic("cov", {**pair, "ddof": 0}, asked_of="groups"),
        "corr": Statistic("corr", pair, asked_of="groups"),
        "quantile": Statistic("quantile", {**bounded, "q": 0.25}),
        "quantiles": Statistic("quantile", {**bounded, "q": [0.25, 0.75]}),
        "cdf": Statistic("cdf", {**bounded, "points": [high / 4, high / 2]}),
        "median": Statistic("median", bounded),
        "min": Statistic("min", bounded),
        "max": Statistic("max", bounded),
        "mode": Statistic("mode", {"column": name, "keys": keys}),
    }


# of the table in `tests/audit/watched.py`
STATISTICS = statistics("x", "n", ("yes", [True]), (0, 1), (0, 1))


def shapes(column: str, bounds: Any) -> dict[str, Any]:
    """Every statistic of the shape of a column, by its name:
    suites that list statistics of their own have them all.
    """
    verbs = [statistic.verb for statistic in STATISTICS.values() if statistic.shape]
    return {verb: getattr(dp, verb)(column, bounds=bounds) for verb in verbs}


def of(asked: str) -> dict[str, Statistic]:
    """The statistics of that table that are methods of "frames" or of "groups"."""
    return {
        label: statistic for label, statistic in STATISTICS.items() if asked in statistic.asked_of
    }
