"""The documentation's table of questions and engines is the one that the tests hold."""

from __future__ import annotations

from engine import support
from engine.conftest import ENGINES
from questions import ABSENT, QUESTIONS, REFUSED


def test_the_page_has_the_table_of_what_the_tests_ask():
    text = support.PAGE.read_text()
    assert support.START in text
    assert support.page(text) == text, "run python tests/engine/support.py"


def test_the_table_has_every_engine_and_no_refusal_of_none():
    assert set(support.TITLES) == set(ENGINES)
    assert {engine for engine, _ in (*REFUSED, *ABSENT)} <= set(ENGINES)
    assert {name for _, name in (*REFUSED, *ABSENT)} <= set(QUESTIONS)
    assert not ABSENT & REFUSED.keys()


def test_a_refusal_that_the_page_lacks_is_noticed(monkeypatch):
    monkeypatch.setitem(REFUSED, ("dask", "arithmetic"), "dp.col('x').cast('int64')")
    assert support.page(support.PAGE.read_text()) != support.PAGE.read_text()
