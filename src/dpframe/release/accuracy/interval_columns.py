"""Columns for the two ends of intervals, beside the released columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe.engine import polars_dtype
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan import Covers, Layout, ReleasedColumn
from dpframe.release.estimators import estimator_of, in_ticks

_EXACT = 2.0**53  # up to here every integer is a float
_LARGEST = 2.0**63


def low_and_high(output: ReleasedColumn, covers: Covers = Covers.NOISE) -> tuple[str, str]:
    """The names of the two columns beside a released one: `n_low`, or `n_population_low`."""
    if covers is Covers.POPULATION:
        return f"{output.name}_population_low", f"{output.name}_population_high"
    return f"{output.name}_low", f"{output.name}_high"


def check_ci(
    ci: float, by: Sequence[str], outputs: Sequence[ReleasedColumn], layout: Layout, covers: Covers = Covers.NOISE
) -> None:
    """Errors: InvalidArgument, UnsupportedOperation if the table has no place for intervals or did not pay for them."""
    if layout.form == "crosstab" or layout.is_description:
        raise UnsupportedOperation(
            f"ci=: a {'description' if layout.is_description else 'crosstab'} has one number in each cell. Leave ci= "
            "out, and read its intervals: out.accuracy(alpha=0.05)."
        )
    names = {*by, *(output.name for output in outputs)}
    for output in outputs:
        for name in low_and_high(output, covers) if estimator_of(output).is_number else ():
            if name in names:
                raise InvalidArgument(
                    f"ci=: the interval of {output.name!r} would make a second column {name!r}; name one of them "
                    f"otherwise, as in .agg({output.name}_=...)."
                )
            names.add(name)
        total = output.totals[0][1]
        if total.between and not total.surely(1 - ci):
            paid_ci = "" if total.ci is None else f", and was at ci={total.ci:g}"
            raise UnsupportedOperation(
                f"ci=: an interval of {output.name!r}, a quantile, has to be paid for in the release itself"
                f"{paid_ci}: release(..., ci={ci:g}), or budget.plan([...], ci={ci:g}). An interval that assumes "
                "evenly spread values is in .accuracy()."
            )


def interval_column(
    output: ReleasedColumn, ends: NDArray[np.float64], name: str, *, whole: bool, upper: bool
) -> pl.Series:
    """One end of the intervals of a released column, in its type; whole numbers are rounded outward."""
    missing = np.isnan(ends)
    if output.dtype is not None:
        ticks = in_ticks(output, np.where(missing, 0.0, ends) / output.ticks)
        column = pl.Series(name, ticks, dtype=pl.Int64).cast(polars_dtype(output.dtype))
    elif whole:
        column = pl.Series(name, _whole(np.where(missing, 0.0, ends), upper=upper), dtype=pl.Int64)
    else:
        column = pl.Series(name, ends, dtype=pl.Float64)
    return (
        column.zip_with(pl.Series(~missing), pl.Series(name, [None], dtype=column.dtype)) if missing.any() else column
    )


def _whole(ends: NDArray[np.float64], *, upper: bool) -> NDArray[np.int64]:
    """Integers at or beyond the ends, inside int64. Beyond 2^53 the next float outward is used."""
    further = np.where(np.abs(ends) < _EXACT, ends, np.nextafter(ends, np.inf if upper else -np.inf))
    whole = np.ceil(further) if upper else np.floor(further)
    inside = np.clip(whole, -_LARGEST, np.nextafter(_LARGEST, 0.0)).astype(np.int64)
    return np.where(whole >= _LARGEST, np.iinfo(np.int64).max, inside)
