"""Whatever people see stays as it is, byte for byte, until `python
tests/golden/rewrite.py` says otherwise.

The expected records are in `expected`; they were made with the newest supported versions. A
question whose record holds what another package writes (a chart, a LaTeX table) is compared where
that package has the version in `versions.txt`.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import replace

import pytest

from engine.conftest import Engine, _makers
from golden import record
from golden.questions import QUESTIONS

ELSEWHERE = ("polars-lazy", "pandas", "pyarrow", "duckdb", "ibis", "dask", "spark")
SLOW = ("duckdb", "ibis", "dask")
EVERYWHERE = [question for question in QUESTIONS if question.everywhere]
LINES = 40  # of a difference that are shown
# a line that only a cluster's explain() has
SPARKS_WORK = re.compile(r"\n\nOn Spark, a release starts .* on top\.")
REWRITE = "Where this is meant: python tests/golden/rewrite.py"


def named(question):
    return f"{question.topic}: {question.name}"


def difference(expected, found):
    """A short difference of two records."""
    lines = list(
        difflib.unified_diff(
            expected.splitlines(), found.splitlines(), "expected", "found", lineterm="", n=1
        )
    )
    more = [f"... and {len(lines) - LINES} more lines"] if len(lines) > LINES else []
    return "\n".join([*(line[:300] for line in lines[:LINES]), *more])


@pytest.fixture(scope="module")
def elsewhere(request):
    """Tables of an engine, each made once."""
    made = {}

    def bring(name):
        if name not in made:
            made[name] = Engine(name, _makers(name, request))
        return made[name]

    return bring


@pytest.mark.parametrize(
    "question",
    [pytest.param(q, marks=[pytest.mark.long] if q.long else [], id=named(q)) for q in QUESTIONS],
)
def test_nothing_that_people_see_has_changed(question):
    other = [
        name
        for name in question.versions
        if record.versions()[name] != record.recorded_versions()[name]
    ]
    if other:
        pytest.skip(f"recorded with another version of {', '.join(other)}")
    expected, found = (
        record.expected(question.topic).get(question.name, ""),
        record.on_polars(question),
    )
    if expected != found:
        pytest.fail(f"{named(question)}\n{difference(expected, found)}\n{REWRITE}", pytrace=False)


def test_the_expected_records_are_those_of_the_questions():
    """In the order of the questions, none left over, and no file besides."""
    asked = {}
    for question in QUESTIONS:
        asked.setdefault(question.topic, []).append(question.name)
    assert {path.stem for path in record.EXPECTED.glob("*")} == {*asked, "versions"}, REWRITE
    for topic, names in asked.items():
        assert list(record.expected(topic)) == names, REWRITE


def _marks(name, number):
    """All in the long tier; in the quick one every second of engines that are
    quick, every seventh of the others.
    """
    if name == "spark":
        return [pytest.mark.long, pytest.mark.xdist_group("spark")]
    return [pytest.mark.long] if number % (7 if name in SLOW else 2) else []


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("name", "question"),
    [
        pytest.param(name, question, marks=_marks(name, number), id=f"{name}: {named(question)}")
        for name in ELSEWHERE
        for number, question in enumerate(EVERYWHERE)
    ],
)
def test_every_engine_gives_the_same_record(elsewhere, name, question):
    expected, found = (
        record.on_polars(question),
        SPARKS_WORK.sub("", record.record(question, elsewhere(name))),
    )
    if expected != found:
        pytest.fail(f"{name}: {named(question)}\n{difference(expected, found)}", pytrace=False)


ONE = next(question for question in QUESTIONS if question.name == "count, alone, epsilon")


def test_another_random_word_changes_the_record():
    """Negative control: of the words that a question draws, one that
    is other makes another record.
    """
    words = record.words_of(ONE)
    changed = [record.record(ONE, flipped=place) != record.on_polars(ONE) for place in range(words)]
    assert any(changed)
    assert record.record(ONE, flipped=words) == record.on_polars(ONE)


def test_another_row_changes_the_record():
    """Negative control: one row less is seen in the record."""
    assert record.record(ONE, lambda frame: frame.head(-1)) != record.on_polars(ONE)


@pytest.mark.parametrize("name", ["count", "sum of floats", "mean", "std, ddof=0", "median"])
def test_other_words_change_a_release(name):
    """Negative control: what was drawn is in the record, so the stream of
    another name makes another one.
    """
    (question,) = [question for question in QUESTIONS if question.name == f"{name}, alone, epsilon"]
    renamed = record.record(replace(question, name=f"{question.name} again"))
    assert renamed.partition("\n")[2] != record.on_polars(question).partition("\n")[2]


def test_a_difference_is_short_and_says_where():
    shown = difference("a\nb\nc\n", "a\nB\nc\n")
    assert shown.splitlines()[-4:] == [" a", "-b", "+B", " c"]
    assert len(difference("x\n" * 999, "y\n" * 999).splitlines()) == LINES + 1
