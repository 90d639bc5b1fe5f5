"""Tables about the accuracy of a release: the error of each number, and the noise of each total."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import polars as pl

from dpframe.plan import Covers, ReleasedColumn
from dpframe.release.accuracy import intervals
from dpframe.release.answer import Numbers, keys_beside
from dpframe.release.estimators import estimator_of, rows_fewer
from dpframe.release.pricing import NoisePlan
from dpframe.release.shown.crosstab import as_text
from dpframe.release.shown.crosstab_margins import margin_errors

_KEPT: WeakKeyDictionary[Numbers, dict[tuple[float, float | None], pl.DataFrame]] = WeakKeyDictionary()


def error_table(numbers: Numbers, alpha: float, rows: float | None = None) -> pl.DataFrame:
    """One row per group and released column: the keys, column, value, error, lower, upper; see `Release.accuracy`.

    The keys come first, with the names of `keys_beside`. A table is kept as long as its numbers, which never change:
    the statement, the page and the chart of a release all read the table at 95%.
    """
    tables = _KEPT.setdefault(numbers, {})
    if (alpha, rows) not in tables:
        tables[alpha, rows] = _error_table(numbers, alpha, rows)
    return tables[alpha, rows]


def _error_table(numbers: Numbers, alpha: float, rows: float | None) -> pl.DataFrame:
    """The table of `error_table`, computed."""
    parts, by = [], keys_beside(numbers.by)
    keys = numbers.long.select(pl.col(old).alias(new) for old, new in zip(numbers.by, by, strict=True))
    for output in numbers.outputs:
        value = _floats(numbers.shown.get_column(output.name))
        lower, upper = intervals(numbers, output, alpha, rows)
        block = pl.DataFrame({"column": [output.name] * len(value), "value": value, "lower": lower, "upper": upper})
        parts.append(pl.concat([keys, block], how="horizontal") if by else block)
    if not parts:  # The release has keys alone.
        parts = [keys.clear().with_columns(column=pl.lit(""), value=0.0, lower=0.0, upper=0.0)]
    long = pl.concat(parts).with_columns(pl.col("lower", "upper").fill_nan(None))
    if numbers.layout.margins and not numbers.layout.normalize:
        long = pl.concat([long.with_columns(as_text(long[name]) for name in by), margin_errors(numbers, alpha)])
    error = largest_error()
    ends = pl.when(pl.col("value").is_not_null()).then(pl.col("lower", "upper"))  # A suppressed group has none.
    for output in numbers.outputs:
        if not estimator_of(output).is_number:
            fewer = rows_fewer(output, numbers.noise, alpha)
            error = pl.when(pl.col("column") == output.name).then(fewer).otherwise(error)
    label = [] if numbers.covers is Covers.NOISE else [pl.lit(numbers.covers.label(1 - alpha)).alias("covers")]
    return long.select(*by, "column", "value", error.alias("error"), ends, *label)


def errors_together(tables: Sequence[Numbers], by: Sequence[str], alpha: float) -> list[pl.DataFrame]:
    """The errors of the numbers of several tables without margins; keys are named as beside all of the columns `by`."""
    beside, errors = dict(zip(by, keys_beside(by), strict=True)), []
    for numbers in tables:
        names = zip(keys_beside(numbers.by), numbers.by, strict=True)
        own = error_table(numbers, alpha).head(numbers.long.height)
        errors.append(own.rename({name: beside[key] for name, key in names}))
    return errors


def largest_error() -> pl.Expr:
    """The largest distance from the value to an end of its interval; null for a suppressed value."""
    error = pl.max_horizontal(pl.col("value") - pl.col("lower"), pl.col("upper") - pl.col("value"))
    return pl.when(pl.col("value").is_not_null()).then(error).alias("error")


def largest_errors(numbers: Numbers, alpha: float) -> list[tuple[str, float]]:
    """The largest error of each released column; columns without a known error are left out."""
    errors = error_table(numbers, alpha).group_by("column", maintain_order=True).agg(pl.col("error").max())
    return [(name, error) for name, error in errors.iter_rows() if error is not None]


def _floats(column: pl.Series) -> pl.Series:
    """A released column as floats; a column of texts becomes null."""
    if column.dtype in (pl.String, pl.Enum):
        return pl.Series(column.name, [None] * len(column), dtype=pl.Float64)
    return column.cast(pl.Float64)


def noise_table(outputs: tuple[ReleasedColumn, ...], plan: NoisePlan) -> pl.DataFrame:
    """One row per name of a total: column, aggregate, mechanism, scale (column unit), threshold (units)."""
    schema = {"column": pl.String, "aggregate": pl.String, "mechanism": pl.String, "scale": pl.Float64}
    return pl.DataFrame(noise_rows(outputs, plan), schema={**schema, "threshold": pl.Int64})


def noise_rows(outputs: tuple[ReleasedColumn, ...], plan: NoisePlan) -> list[dict[str, Any]]:
    """The rows of `noise_table`, by the names of its columns."""
    formulas = {name: output.formula.value for output in outputs for name, _ in output.totals}
    rows: list[dict[str, Any]] = []
    for noise in plan.noises:
        unit = float(noise.allotment.total.unit)
        for name in noise.allotment.names:
            output_name = name.removesuffix(".other") if noise.allotment.total.collects else name
            aggregate = formulas.get(output_name, noise.allotment.total.kind)
            decides = plan.threshold if plan.decided_by is noise.allotment else None
            about = {"column": name, "aggregate": str(aggregate), "mechanism": noise.label}
            rows.append({**about, "scale": float(noise.scale * unit), "threshold": decides})
    return rows
