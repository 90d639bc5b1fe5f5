"""Rows and values that chosen limits and bounds leave out, beside the errors
of a release and in its report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from dpframe.fields import Fields
from dpframe.plan import Beyond, Covers, Formula, Question, beyond_words
from dpframe.release.answer import LEFT_OUT, Numbers, left_out_names
from dpframe.release.estimators import estimator_of
from dpframe.release.shown.report import BIAS, UNKNOWN

_SOURCE = {
    (True, True): "chosen limits and bounds leave out",
    (True, False): "limits leave out",
    (False, True): "chosen bounds leave out",
    (False, False): "what is left out:",
}
_MORE = {
    (True, True): "more rows or larger values",
    (True, False): "more rows",
    (False, True): "larger values",
    (False, False): "more rows",
}


def with_left_out(numbers: Numbers, errors: pl.DataFrame) -> pl.DataFrame:
    """A table of errors with what is left out of each count and sum;
    as it is where `dp.Auto` chose nothing.

    A line is null where nothing says how much is left out: it is unknown, not 0. So are margins,
    and suppressed groups; and all lines where they would tell what is hidden.
    """
    if not any(
        name in numbers.parts for output in numbers.outputs for name in left_out_names(output.name)
    ):
        return errors
    height, columns = numbers.long.height, dict[str, list[float | None]]()
    for place, column in enumerate(LEFT_OUT):
        cells: list[float | None] = []
        for output in numbers.outputs:
            values = numbers.parts.get(left_out_names(output.name)[place])
            cells += [None] * height if values is None else values.tolist()
        columns[column] = cells + [None] * (errors.height - len(cells))
    whole = not numbers.veiled and not numbers.moved and not numbers.layout.normalize
    shown = pl.col("value").is_not_null() & pl.lit(whole)
    return errors.with_columns(
        pl.when(shown).then(pl.Series(name, cells, pl.Float64).fill_nan(None)).alias(name)
        for name, cells in columns.items()
    )


def scope(
    numbers: Numbers, ci: float | None, estimates: Sequence[Fields], column: str | None
) -> list[str]:
    """The coverage of intervals and the losses by limits and bounds, in a
    line each for readers of a table.

    Input:  ci: the confidence of the intervals that are shown, None if none are; estimates: the
            lines of `release.left_out.left_out`, where dp.Auto paid for them; column: the one that
            is shown, None for all
    """
    said = [] if ci is None else [_coverage(numbers, f"{100 * ci:g}% intervals")]
    known = [
        line
        for line in estimates
        if line["estimate"] is not None and column in (None, line["column"])
    ]
    return said + [_sentence(line, grouped=bool(numbers.by)) for line in known]


def _coverage(numbers: Numbers, intervals: str) -> str:
    """The sentence about what intervals cover, with the names of
    columns where they differ in that.
    """
    wide, narrow = _names_by_coverage(numbers)
    if not narrow and wide:
        return f"{intervals} cover noise and the sampling of people."
    asked = any(estimator_of(o).has_population for o in numbers.outputs if o.name in narrow)
    alone = (
        "noise alone, not the sampling of "
        f"people{': see covers=' + repr('population') if asked else ''}."
    )
    if not wide:
        return f"{intervals} cover {alone}"
    return (
        f"{intervals} of {', '.join(wide)} cover noise and the sampling of people; those of "
        f"{', '.join(narrow)} {alone}"
    )


def margins_words(numbers: Numbers) -> str:
    """The subject of margins of error, after these words, with the names of
    columns where they differ in it.
    """
    words = _by_coverage(numbers, lambda covers: covers.margins)
    return f"({words})" if all(_names_by_coverage(numbers)) else words


def labels_of_coverage(numbers: Numbers) -> str:
    """The subject of 95% intervals, in the words of tables and reports; see `margins_words`."""
    return _by_coverage(numbers, lambda covers: covers.label(0.95))


def _by_coverage(numbers: Numbers, words: Callable[[Covers], str]) -> str:
    """The words for what intervals are about, after the names of
    columns where they differ in that.
    """
    kinds = zip((Covers.POPULATION, Covers.NOISE), _names_by_coverage(numbers), strict=True)
    said = {words(covers): ", ".join(names) for covers, names in kinds if names}
    if len(said) > 1:
        return "; ".join(f"{names}: {text}" for text, names in said.items())
    return next(iter(said), words(numbers.covers))


def _names_by_coverage(numbers: Numbers) -> tuple[list[str], list[str]]:
    """The columns whose intervals are for the population, and those whose
    intervals are of the noise alone.
    """
    outputs = [output for output in numbers.outputs if estimator_of(output).is_number]
    wide = [output.name for output in outputs if numbers.covers_of(output) is Covers.POPULATION]
    return wide, [output.name for output in outputs if output.name not in wide]


def left_out_words(
    found: Sequence[Beyond], estimates: Sequence[Fields], column: str | None = None
) -> list[str]:
    """The effect of limits and bounds on released columns, where nothing was
    paid to estimate it; see `scope`.
    """
    known = {line["column"]: line for line in estimates if line["estimate"] is not None}
    # tables of several have columns of other names
    shown = [one for one in found if one.column == column] or found
    return beyond_words(shown, lambda name, what: bool(known.get(name, {}).get(what)))


def bias_words(question: Question, lines: Sequence[Fields]) -> str:
    """The report's section about bias, with how much of each total is likely missing.

    Input:  the question with its chosen limits and bounds; a line for each count and sum: see
            `release.left_out.left_out`
    """
    estimated = {line["column"]: line for line in lines if line["estimate"] is not None}
    if not estimated:
        return BIAS  # all of it is unknown
    sentences = [_sentence(line, grouped=bool(question.by)) for line in estimated.values()]
    sentences.append("These figures follow from the noisy histograms that dp.Auto paid for.")
    others = [output.name for output in question.outputs if output.name not in estimated]
    if others:
        sentences.append(f"What is left out of {', '.join(others)} is unknown, not zero.")
    sums = [
        output.name
        for output in question.outputs
        if output.formula is Formula.SUM and output.name in estimated
    ]
    if typed := [name for name in sums if not estimated[name]["bounds"]]:
        sentences.append(
            f"What typed bounds leave out of {', '.join(typed)} is no part of that: it is unknown, "
            "not zero."
        )
    if question.chosen is None and question.table.unit and not question.table.single:
        sentences.append("What typed limits leave out is no part of that: it is unknown, not zero.")
    return BIAS.replace(UNKNOWN, f"{' '.join(sentences)} It")


def _sentence(line: Fields, *, grouped: bool) -> str:
    """The part of a column that is likely missing, in a sentence."""
    name = f"{line['column']}, all groups together" if grouped else line["column"]
    numbers = [_rounded(line[key]) for key in ("estimate", "lower", "upper")]
    if not line["upper"] and not line["lower"]:
        return f"{name}: nothing is left out."
    parts = [f"{part:.1%}" for part in line.get("parts", ())]
    share = f"; that is {parts[0]} ({parts[1]} to {parts[2]}) of the whole" if parts else ""
    source = _SOURCE[line["limits"], line["bounds"]]
    said = (
        f"{name}: {source} likely {numbers[0]} (95% interval: {numbers[1]} to {numbers[2]}){share}."
    )
    hidden = line.get("hidden")
    if not hidden:
        return said
    more = _MORE[line["limits"], line["bounds"]]
    return (
        f"{said} Noise may hide up to {hidden:,} people with far {more} than all others, whom no "
        "interval holds."
    )


def _rounded(number: float) -> str:
    """A number with four digits, or without decimals where it is large."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
