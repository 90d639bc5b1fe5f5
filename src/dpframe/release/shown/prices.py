"""The chart of expected errors at several prices, before a release."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import polars as pl

from dpframe.budget import Terms
from dpframe.plan import COUNT, Marginals, Question, ReleasedColumn, derivation, titled, unit_words
from dpframe.plan.steps import source_of
from dpframe.release.estimators import estimator_of
from dpframe.release.shown.charts import Heading, Look, expected_errors, in_words, title_of


def priced_chart(table: pl.DataFrame, question: Question, terms: Terms, alpha: float, look: Look) -> Any:
    """The expected error of each column of a question against the price; see `Query.plot`.

    Input:  table: the price (ε or ρ), column and error, as `Query.accuracy` returns them; the question; terms: whether
            the price is an ε or a ρ; alpha: the probability of a larger error; look
    Bound:  no row is read: the errors follow from the question and the price
    """
    why, names = derivation(question), set(table["column"])
    outputs = [output for output in question.outputs if {output.name, f"{output.name}.other"} & names]
    words = [in_words(why, output.name) for output in outputs]
    listed = ", ".join([*words[:1], *(word[:1].lower() + word[1:] for word in words[1:])])
    question_title = title_of(why, listed, question.by)
    if isinstance(question, Marginals):
        question_title = title_of(why, in_words(why, COUNT), [" and ".join(map(titled, question.tables.named))])
    unit = unit_words(source_of(question.step).table)
    meaning = f"{100 * (1 - alpha):g}% margins of error of the noise, before any release; protected: {unit}."
    heading = Heading(f"Error to expect: {question_title}", (meaning,))
    types = {f"{output.name}{part}": _time(output) for output in outputs for part in ("", ".other")}
    rows = {output.name for output in outputs if not estimator_of(output).is_number}
    return expected_errors(table, terms.value, "ε" if terms is Terms.EPSILON else "ρ", types, rows, heading, look)


def _time(output: ReleasedColumn) -> pl.DataType | None:
    """The time type whose ticks are the unit of a column's error; None for numbers."""
    if output.dtype is None:
        return None
    return pl.Date() if output.dtype == nw.Date else pl.Duration(getattr(output.dtype, "time_unit", "us"))
