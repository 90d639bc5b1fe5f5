"""What a release gives back: plain, materialised data. Reading it again never draws again."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from dpframe.budget.losses import Loss
from dpframe.engine.native import Kind, as_kind
from dpframe.errors import UnsupportedOperation
from dpframe.plan.ask import Layout
from dpframe.plan.explain import Derivation, render_html
from dpframe.plan.measures import Output
from dpframe.release.accuracy import check_alpha, error_of
from dpframe.release.calibrate import NoisePlan
from dpframe.release.layout import laid_out
from dpframe.release.statement import Report

__all__ = ["Release", "noise_table"]


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """A released table, what it cost, and how exact it is.

    `table` is the user's kind of table: pandas for pandas, Polars for Polars, PyArrow for PyArrow. `value` is the one
    number of an ungrouped release of one column. `cost` is the loss that was charged, `when` the time (UTC) at which
    the noise was drawn: long ago for the stored answer of a name.
    """

    cost: Loss
    derivation: Derivation
    _long: pl.DataFrame
    _by: tuple[str, ...]
    _outputs: tuple[Output, ...]
    _noise: NoisePlan
    _kind: Kind
    _layout: Layout = field(default_factory=Layout)
    _parts: Mapping[str, np.ndarray] = field(default_factory=dict)  # the noisy totals under derived columns
    when: dt.datetime | None = None
    _statement: Mapping[str, Any] = field(default_factory=dict)

    # The data

    @property
    def table(self) -> Any:
        """The released table, in the layout that was asked for."""
        return laid_out(self._long, self._by, self._layout, self._kind)

    @property
    def value(self) -> Any:
        """The one released number. Errors: UnsupportedOperation when there are several."""
        if self._by or len(self._outputs) != 1:
            raise UnsupportedOperation("This release has more than one number; read its table: .table")
        return self._long.item()

    def to_polars(self) -> pl.DataFrame:
        """The released table as a Polars DataFrame."""
        return laid_out(self._long, self._by, self._layout, "polars")  # type: ignore[no-any-return]

    def to_pandas(self) -> Any:
        """The released table as a pandas DataFrame."""
        return laid_out(self._long, self._by, self._layout, "pandas")

    def to_arrow(self) -> Any:
        """The released table as a PyArrow Table."""
        return laid_out(self._long, self._by, self._layout, "pyarrow")

    # How exact it is

    @property
    def noise(self) -> Any:
        """One row per released measure: column, aggregate, mechanism, scale (column unit) and threshold (units)."""
        return as_kind(noise_table(self._outputs, self._noise), self._kind)

    def accuracy(self, alpha: float = 0.05) -> Any:
        """One row per group and released column: the value, and an error that it is within with probability 1 - alpha.

        The error is the noise's, against the total under the stated limits and bounds. Columns: the keys, then column,
        value, error, lower, upper (each in the column's unit).
        """
        return as_kind(self._errors(check_alpha(alpha)), self._kind)

    def _errors(self, alpha: float) -> pl.DataFrame:
        parts = []
        for output in self._outputs:
            value = self._long.get_column(output.name).cast(pl.Float64)
            size = error_of(output, self._noise, alpha, len(value), self._parts)
            error = pl.Series("error", size, dtype=pl.Float64).fill_nan(None)
            keys = self._long.select(self._by)
            known = pl.DataFrame({"column": [output.name] * len(value), "value": value, "error": error})
            parts.append(pl.concat([keys, known], how="horizontal") if self._by else known)
        long = pl.concat(parts)
        return long.with_columns(lower=pl.col("value") - pl.col("error"), upper=pl.col("value") + pl.col("error"))

    # In words

    def report(self) -> Report:
        """The privacy statement of this release: prints as text, shows as HTML, `to_json()` for machines."""
        return Report(self._statement, tuple((name, f"± {error:,.4g}") for name, error in self._half_widths()))

    def __repr__(self) -> str:
        return f"{self.table}\n\nReleased at {self.cost}."

    def _repr_html_(self) -> str:
        table = self.table
        shown = table._repr_html_() if hasattr(table, "_repr_html_") else f"<pre>{table}</pre>"
        rows = [(name, f"± {error:,.4g}") for name, error in self._half_widths()]
        errors = render_html(("column", "95% margin of error"), rows)
        return f"{shown}<p>Released at {self.cost}.</p>{errors}"

    def _half_widths(self) -> list[tuple[str, float]]:
        errors = self._errors(0.05).group_by("column", maintain_order=True).agg(pl.col("error").max())
        return [(name, error) for name, error in errors.iter_rows() if error is not None]


def noise_table(outputs: tuple[Output, ...], noise: NoisePlan) -> pl.DataFrame:
    """One row per name of a measure: column, aggregate, mechanism, scale (column unit), threshold (units)."""
    formulas = {name: output.formula for output in outputs for name, _ in output.measures}
    rows = []
    for drawn in noise.drawn:
        unit = float(drawn.paid.measure.unit)
        for name in drawn.paid.names:
            aggregate = formulas.get(name, drawn.paid.measure.total)
            decides = noise.threshold if noise.decided_by is drawn.paid else None
            rows.append((name, aggregate, drawn.family, drawn.scale * unit, decides))
    schema = {"column": pl.String, "aggregate": pl.String, "mechanism": pl.String, "scale": pl.Float64}
    return pl.DataFrame(rows, schema={**schema, "threshold": pl.Int64}, orient="row")
