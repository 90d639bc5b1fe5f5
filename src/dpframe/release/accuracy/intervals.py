"""The interval of each released number, and tables with its two ends;
their arguments are checked once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from dpframe.arrays import Floats, Integers
from dpframe.engine import polars_dtype
from dpframe.errors import InvalidArgument, UnsupportedOperation, kind_of
from dpframe.plan import Covers, Layout, ReleasedColumn, real
from dpframe.release.answer import (
    COUNTED,
    GROUPS_FOUND,
    Numbers,
    floats_of,
    known_nonnegative,
    rounding_of,
    shrunk_interval,
)
from dpframe.release.estimators import estimator_of, in_ticks


def picked_from(numbers: Numbers) -> int:
    """The number of groups found, where the released ones were picked from
    them by their numbers; else 0.
    """
    found = numbers.parts.get(GROUPS_FOUND)
    return 0 if found is None or numbers.layout.largest is None or not len(found) else int(found[0])


def alpha_of_each(alpha: float, groups: int) -> float:
    """The probability of a larger error for one group, so that all groups
    found hold together with 1 - alpha.

    Input:  alpha in (0, 1); groups >= 1, those that were found
    Output: a / (1 + a/2) with a = alpha / groups
    Bound:  where the keys follow from other noise than the counts, each of the m found groups fails
            with probability at most alpha / m, and the noise of the counts does not depend on m.
            Where one noisy number both finds a key and is released, let G(x) = P[noise >= x]. The
            noise is symmetric and its law log-concave, so G(x + y) G(0) <= G(x) G(y) for x, y >= 0.
            Let T be the threshold, c the true count of a group, d = T - c, so that it is found with
            probability G(d), and t the error with 2 G(t + 1) <= a / (1 + a/2). By
            `with_rare_groups` the interval misses c from above only if noise >= t + 1 and noise >=
            t + 1 + d. For d >= 0 this has probability at most G(t + 1) G(d) / G(0) <= 2 G(t + 1)
            G(d), since G(0) >= 1/2. For d < 0 it is at most 2 G(t + 1) G(d) too, since then G(d) >=
            1/2. It misses c from below only if noise <= -t - 1, and is found then only if d <= -t -
            1; so G(d) >= 1 - G(t + 1), and both misses together have probability at most 2 G(t + 1)
            <= 2 G(t + 1) / (1 - G(t + 1)) G(d). In each case that is at most a G(d). Given the
            noise of all other groups, of which n are found, m = n + 1 if this one is found too. So
            it is found and missed with probability at most alpha E[1/m, found]. The sum over all
            groups is at most alpha, however many groups nobody found
    Source: the sum over groups is that of Benjamini and Yekutieli 2005,
            doi:10.1198/016214504000001907

    >>> alpha_of_each(0.5, 1), alpha_of_each(0.5, 2)
    (0.4, 0.2222222222222222)
    """
    each = alpha / groups
    return each / (1 + each / 2)


def with_rare_groups(
    numbers: Numbers, output: ReleasedColumn, value: Floats, low: Floats, high: Floats
) -> Floats:
    """Lower ends for counts that found their own key:
    0 where the count is hardly larger than the threshold.

    Input:  released counts and their intervals, value + error (rows)
    Bound:  a group with few rows is found by its noise alone, so nothing bounds that noise from
            above. Its interval reaches to 0 if its count is at most error + threshold
    """
    plan, (_, total) = numbers.noise, output.totals[0]
    if plan.decided_by is None or plan.threshold is None or plan.decided_by.total.key != total.key:
        return low
    reach = high - value + float(plan.threshold * total.unit) + float(total.fraction > 0)
    return np.where(value <= reach, np.minimum(low, 0.0), low)


def intervals(
    numbers: Numbers,
    output: ReleasedColumn,
    alpha: float,
    rows: float | None = None,
    covers: Covers | None = None,
) -> tuple[Floats, Floats]:
    """Intervals that hold each true number of a column with probability 1
    - alpha; NaN if there is none.

    There is none either beside hidden numbers that it would tell: see `Numbers.veiled`. Or it is
    about the rounded number, and wider: see `Numbers.moved`.

    Where the largest numbers were picked, all intervals hold together: see `alpha_of_each`.

    Input:  rows: how many values each group has, if the release does not say; covers: what they are
            about, by default what those of the column are about
    """
    if not estimator_of(output).is_number or numbers.veiled:
        return np.full(numbers.long.height, np.nan), np.full(numbers.long.height, np.nan)
    value = floats_of(numbers.drawn, output.name)
    values = numbers.rows_of(output) if rows is None else np.full(len(value), rows)
    factor = numbers.factor_of(output)
    estimator, noisy = estimator_of(output), numbers.noisy(output)
    groups = picked_from(numbers)
    alpha = alpha_of_each(alpha, groups) if groups else alpha
    population = (covers or numbers.covers_of(output)) is Covers.POPULATION
    if population:
        low, high = estimator.population(noisy, alpha, value)
    else:
        low, high = estimator.interval(noisy, alpha, value / factor, values)
    if groups:
        low = with_rare_groups(numbers, output, value, low, high)
    if factor > 1 and not population:
        low, high = low * factor - rounding_of(output), high * factor + rounding_of(output)
    if output.name in numbers.shrunk:
        low, high = (
            np.append(ends, old[len(ends) :])
            for ends, old in zip(shrunk_interval(numbers, output, alpha), (low, high), strict=True)
        )
    rest = numbers.interval_of_rest(output, alpha)
    if rest is not None:
        _, ((low[-1],), (high[-1],)) = rest
    if numbers.moved:
        by = numbers.long.get_column(output.name).to_numpy() - value
        low, high = low + by - numbers.moved, high + by + numbers.moved
    return known(numbers, output, low), known(numbers, output, high)


def known(numbers: Numbers, output: ReleasedColumn, ends: Floats) -> Floats:
    """Ends of intervals, cut at 0 if post-processing has removed negative numbers."""
    return np.maximum(ends, 0.0) if numbers.lifted and known_nonnegative(output) else ends


def with_intervals(numbers: Numbers, alpha: float) -> pl.DataFrame:
    """The shown table with the two ends beside each number, in its column's type."""
    table, columns = numbers.shown, list(numbers.by)
    for output in numbers.outputs:
        if not estimator_of(output).is_number:
            columns.append(output.name)
            continue
        low, high = intervals(numbers, output, alpha)
        names, whole = low_and_high(output, numbers.covers), table.schema[output.name].is_integer()
        ends = (
            interval_column(output, low, names[0], whole=whole, upper=False),
            interval_column(output, high, names[1], whole=whole, upper=True),
        )
        shown = pl.Series(~numbers.hidden)
        table = table.with_columns(
            pl.when(shown).then(column).alias(column.name) for column in ends
        )
        columns += [output.name, *names]
    return table.select(columns)


# Columns

_EXACT = 2.0**53  # up to here every integer is a float
_LARGEST = 2.0**63


def low_and_high(output: ReleasedColumn, covers: Covers = Covers.NOISE) -> tuple[str, str]:
    """The names of the two columns beside a released one: `n_low`, or `n_population_low`."""
    if covers is Covers.POPULATION:
        return f"{output.name}_population_low", f"{output.name}_population_high"
    return f"{output.name}_low", f"{output.name}_high"


def check_ci(
    ci: float,
    by: Sequence[str],
    outputs: Sequence[ReleasedColumn],
    layout: Layout,
    covers: Covers = Covers.NOISE,
) -> None:
    """Errors: InvalidArgument, UnsupportedOperation if the table has no place for
    intervals or did not pay for them.
    """
    if layout.is_crosstab or layout.is_description:
        raise UnsupportedOperation(
            f"ci=: a {'description' if layout.is_description else 'crosstab'} has one number in "
            "each cell. Leave ci= out, and read its intervals: out.accuracy(alpha=0.05)."
        )
    names = {*by, *(output.name for output in outputs)}
    for output in outputs:
        for name in low_and_high(output, covers) if estimator_of(output).is_number else ():
            if name in names:
                raise InvalidArgument(
                    f"ci=: the interval of {output.name!r} would make a second column {name!r}; "
                    f"name one of them otherwise, as in .agg({output.name}_=...)."
                )
            names.add(name)
        total = output.total
        if total.between and not total.surely(1 - ci):
            counted = any(other.totals[-1][1].kind in COUNTED for other in outputs)
            guess = (
                "One that assumes evenly spread values is in .accuracy()."
                if counted
                else "That of .accuracy() is as wide as the bounds, since no number of values is "
                "released: ask a count beside it, agg(..., n=dp.count()), and it assumes "
                "evenly spread values."
            )
            paid_ci = "" if total.ci is None else f", and was at ci={total.ci:g}"
            raise UnsupportedOperation(
                f"ci=: an interval of {output.name!r}, a quantile, has to be paid for in the "
                f"release itself{paid_ci}: release(..., ci={ci:g}), or budget.plan([...], "
                f"ci={ci:g}). {guess}"
            )


def interval_column(
    output: ReleasedColumn, ends: Floats, name: str, *, whole: bool, upper: bool
) -> pl.Series:
    """One end of the intervals of a released column, in its type;
    whole numbers are rounded outward.
    """
    missing = np.isnan(ends)
    if output.dtype is not None:
        ticks = in_ticks(output, np.where(missing, 0.0, ends) / output.ticks)
        column = pl.Series(name, ticks, dtype=pl.Int64).cast(polars_dtype(output.dtype))
    elif whole:
        column = pl.Series(name, _whole(np.where(missing, 0.0, ends), upper=upper), dtype=pl.Int64)
    else:
        column = pl.Series(name, ends, dtype=pl.Float64)
    return (
        column.zip_with(pl.Series(~missing), pl.Series(name, [None], dtype=column.dtype))
        if missing.any()
        else column
    )


def _whole(ends: Floats, *, upper: bool) -> Integers:
    """Integers at or beyond the ends, inside int64. Beyond 2^53 the next float outward is used."""
    further = np.where(
        np.abs(ends) < _EXACT, ends, np.nextafter(ends, np.inf if upper else -np.inf)
    )
    whole = np.ceil(further) if upper else np.floor(further)
    inside = np.clip(whole, -_LARGEST, np.nextafter(_LARGEST, 0.0)).astype(np.int64)
    return np.where(whole >= _LARGEST, np.iinfo(np.int64).max, inside)


# Arguments


def check_alpha(alpha: object) -> float:
    """The probability that an interval misses, strictly between 0 and 1.
    Errors: InvalidArgument.
    """
    missing = real(alpha)
    if missing is None or not 0 < missing < 1:
        raise InvalidArgument("alpha must be between 0 and 1; 0.05 gives 95% confidence.")
    return float(missing)


def read_ci(ci: object) -> float:
    """A confidence as typed. Errors: InvalidArgument."""
    confidence = real(ci)
    if confidence is None or not 0 < confidence < 1:
        raise InvalidArgument(
            "ci= is a probability between 0 and 1; ci=0.95 gives intervals of 95% confidence."
        )
    return float(confidence)


def check_rows(rows: object) -> float:
    """A number of rows per group to assume. Errors: InvalidArgument."""
    number = real(rows)
    if number is None or not 0 < number <= 2**63:
        raise InvalidArgument("assume_rows= is a number of rows above 0.")
    return float(number)


def check_column(column: object, names: Sequence[str], asked: str) -> None:
    """A released column by its name, or None for what is meant by default.
    Errors: InvalidArgument.
    """
    if column is not None and (not isinstance(column, str) or column not in names):
        said = repr(column) if isinstance(column, str) else f"that is {kind_of(column)}"
        raise InvalidArgument(
            f"{asked}: there is no column {said}; columns are {', '.join(names)}."
        )
