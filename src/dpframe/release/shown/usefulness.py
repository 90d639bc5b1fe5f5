"""Whether numbers say more than one constant would:
before a release from a price, and after it from the numbers.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace

import numpy as np
import polars as pl

from dpframe.plan import Covers, Formula, ReleasedColumn
from dpframe.release.answer import Numbers, known_nonnegative
from dpframe.release.estimators import estimator_of
from dpframe.release.shown.error_tables import error_table, missing_shares
from dpframe.usage import warn

# mean square of numbers in deviations of their noise; about 1 where all true numbers are 0
_AROUND = 2
_GROUPS = 4  # fewer say too little of how far groups lie apart
_GROUPED = (
    "{names}: noise is at least as large as what the groups differ by, so one constant for all "
    "groups would be about as exact. Ask for fewer or larger groups, or pay a higher price."
)
_NO_ROWS = (
    "Or no row was asked about: check the spelling, letter case and type of what filters and "
    "joins compare."
)
_NO_KEYS = (
    "Or none of the listed keys occurs: check their spelling, letter case and type, and what "
    "filters and joins compare. `dpframe policy check` shows the steward which keys the table has."
)
_MIDNIGHTS = (
    " Only rows at midnight have the listed times of {name!r}: for all rows of a day, group by "
    "day=dp.col({name!r}).dt.date()."
)
_ALONE = (
    "{names}: noise is at least as large as the number, so 0 would be about as exact. Pay a "
    f"higher price. {_NO_ROWS}"
)
_ALL = (
    "{names}: every group is about 0 within its noise. Ask about more rows, or pay a higher "
    f"price. {_NO_KEYS}"
)
_HIDDEN = (  # why a number is missing, and what to do
    "missing{groups}, since {what} it: any possible value fits. Ask about more rows, or pay a "
    "higher price; .fill() shows what was drawn."
)


def hidden_words(groups: str, covers: Covers) -> str:
    """Why numbers of some groups are missing, and what to do."""
    what = "noise hides" if covers is Covers.NOISE else "noise and the sampling of people hide"
    return _HIDDEN.format(groups=groups, what=what)


def mostly_noise(numbers: Numbers) -> list[str]:
    """Sentences for columns that are no more exact than a constant;
    free, from what was released alone.

    Of four groups or more the variance of the released numbers is about the variance between groups
    and the variance of the noise together. Where it is at most twice the latter, the mean of all
    groups would err by no more than the noise does. The deviation of the noise is taken to be half
    of a 95% margin of error. Columns that `shrink()` can help have a sentence of their own. Of a
    regression only the number of rows is looked at: its sums are about the middles of the bounds,
    so that they may well be near 0, and its coefficients have intervals. Where all groups look like
    0, the price may be too low, or no row may have the listed keys: both are said, since numbers
    cannot tell them apart.

    Input:  numbers as released
    Bound:  none is needed: it is post-processing
    """
    columns: dict[str, list[str]] = {_ALL: [], _GROUPED: [], _ALONE: []}
    counts = replace(numbers.layout, normalize="")  # not their shares of a margin
    errors = error_table(replace(numbers, layout=counts, covers=Covers.NOISE, usual=False), 0.05)
    regression = bool(numbers.outputs) and numbers.outputs[0].regressors is not None
    for output in numbers.outputs[:1] if regression else numbers.outputs:
        own = errors.filter(pl.col("column") == output.name).drop_nulls(["value", "error"])
        words = (
            _verdict(numbers, output, own[: numbers.long.height])
            if estimator_of(output).is_number
            else ""
        )
        if words:
            columns[words].append(output.name)
    said = [words.format(names=", ".join(names)) for words, names in columns.items() if names]
    said += _missing(numbers)
    return [sentence + _midnights(numbers) * (_NO_KEYS in sentence) for sentence in said]


def _midnights(numbers: Numbers) -> str:
    """The sentence about a column of keys that are all midnights;
    an empty text if there is none.
    """
    times = [name for name in numbers.by if numbers.long.schema[name] == pl.Datetime]
    for name in times:
        if numbers.long[name].drop_nulls().dt.time().unique().to_list() == [dt.time()]:
            return _MIDNIGHTS.format(name=name)
    return ""


def _missing(numbers: Numbers) -> list[str]:
    """Sentences for columns of which numbers are missing because they say
    nothing, by the number of groups.
    """
    number, of = missing_shares(numbers)
    if number:
        return [f"Shares: {hidden_words(f' in {number:,} of {of:,} cells', Covers.NOISE)}"]
    columns: dict[str, list[str]] = {}
    for output in numbers.outputs:
        number, of = int((numbers.empty[output.name] & ~numbers.hidden).sum()), numbers.long.height
        if number:
            groups = (
                f" in {number:,} of {of:,} groups"
                if number < of
                else " in each group"
                if numbers.by
                else ""
            )
            cause = "" if number < of else f" {_NO_KEYS if numbers.by else _NO_ROWS}"
            columns.setdefault(hidden_words(groups, numbers.covers_of(output)) + cause, []).append(
                output.name
            )
    return [f"{', '.join(names)}: {words}" for words, names in columns.items()]


def warn_hopeless(errors: pl.DataFrame, assume_rows: int | None) -> None:
    """Warn before a release where a group of the assumed size gets no more than a
    constant, at any of the prices.

    Input:  errors: the table of `Query.accuracy`, for each price, with its column `useful_from`
    """
    least = errors.group_by("column", maintain_order=True).agg(pl.col("useful_from").min())
    names = [
        f"{name} from {rows:,}"
        for name, rows in least.drop_nulls().rows()
        if rows > (assume_rows or math.inf)
    ]
    if names:
        warn(
            f"With {assume_rows:,} rows in a group, one constant would be about as exact as the "
            f"answer. So many rows make it useful: {', '.join(names)}. Ask for fewer or larger "
            "groups, or pay a higher price."
        )


def _verdict(numbers: Numbers, output: ReleasedColumn, errors: pl.DataFrame) -> str:
    """The sentence for one column, or an empty text."""
    estimator = estimator_of(output)
    values, deviations = errors["value"].to_numpy(), errors["error"].to_numpy() / 2
    if (
        output.formula is Formula.MISSING
        or not len(values)
        or output.name in numbers.shrunk
        or not np.all(deviations > 0)
    ):
        return ""
    if estimator.shrinks:
        return ""
    # what is below 0 is noise
    above = np.maximum(values, 0) if known_nonnegative(output) else np.abs(values)
    if numbers.by and estimator.adds_up and float(np.mean((above / deviations) ** 2)) <= _AROUND:
        return _ALL
    if len(values) >= _GROUPS:
        if not np.all(np.isfinite(deviations)):
            return _GROUPED
        # squares of numbers near 1e270 would overflow
        unit = max(np.abs(values).max(), deviations.max())
        # a part of the noise that all groups share moves them together
        apart = numbers.noise.apart(output)
        noise = apart * np.mean((deviations / unit) ** 2)
        return _GROUPED if np.var(values / unit, ddof=1) <= 2 * noise else ""
    return _ALONE if estimator.adds_up and bool(np.all(above <= deviations)) else ""
