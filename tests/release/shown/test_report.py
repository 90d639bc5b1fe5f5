"""The first sentence of a privacy statement: it never promises more than the loss does."""

from __future__ import annotations

import math
import re
from typing import Any

import polars as pl
import pytest

import dpframe as dp
from dpframe.release.shown.report import in_a_sentence


def said(**loss: Any) -> str:
    relation = loss.pop("relation", "add-remove")
    return in_a_sentence(
        {"guarantee": {"delta": 0.0, "implies": [], **loss}, "neighbours": {"relation": relation}}
    )


def number(sentence: str) -> float:
    return float(re.search(r"(?:at most|more than) ([\d,]+\.?\d*)", sentence)[1].replace(",", ""))  # type: ignore[index]


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.1, 0.5, 1, 2, 10, 13.8])
def test_odds_are_those_of_epsilon_rounded_up(epsilon):
    assert math.exp(epsilon) <= number(said(epsilon=epsilon)) <= math.exp(epsilon) + 0.011


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1, 5, 700, 1e6])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.2, 1.0])
def test_a_guess_is_right_as_often_as_epsilon_and_delta_allow(epsilon, delta):
    exact = (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon))
    assert (
        100 * exact
        <= number(said(epsilon=epsilon, delta=delta))
        <= 100 * min(exact, 1.0) + 0.1 + 1e-9
    )


def test_a_loss_above_all_telling_says_so():
    assert "may raise their odds that a person is in it a million times" in said(epsilon=20.0)


def test_under_replacement_the_question_is_which_rows():
    assert "that a person's rows are these and not others" in said(epsilon=1.0, relation="replace")
    assert "which of two sets of rows a person has" in said(
        epsilon=1.0, delta=1e-6, relation="replace"
    )


@pytest.mark.parametrize(
    "price", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"}, {"rho": 0.1}]
)
def test_every_statement_begins_with_it(price):
    limit = dp.Budget(rho=1.0) if "rho" in price else dp.Budget(epsilon=1.0, delta=1e-6)
    rows = pl.DataFrame({"user": [1, 2, 3]}).dp(unit="user", budget=limit)
    report = rows.count_units().release(**price).report()
    sentence = in_a_sentence(report.items)
    assert str(report).split("\n")[2] == sentence
    assert sentence.split(". ")[0] in report.to_html()
