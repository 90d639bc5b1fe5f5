"""Shares of counts, and what the refusals of nearby questions say to type."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import (
    BudgetExceeded,
    BudgetMismatch,
    ReleaseMismatch,
    UnknownAttribute,
    UnsupportedOperation,
    WrongCall,
)
from dpframe.release.accuracy import combinations

PEOPLE = pd.DataFrame({"id": range(60), "a": ["x", "y"] * 30, "b": ["p"] * 54 + ["q"] * 6})
KEYS = {"a": ["x", "y"], "b": ["p", "q", "r"]}


def protected(budget=None, table=PEOPLE, unit="id", **options):
    return dp.protect(
        table, unit=unit, budget=budget or dp.Budget(epsilon=100), max_rows=1, **options
    )


@pytest.mark.parametrize("within", [(), "a"])
def test_shares_of_counts_are_between_0_and_1_and_add_up(within):
    """Of 20 releases with empty groups, no count below 0 has a chance below 1e-6."""
    negative = 0
    for _ in range(20):
        out = protected().group_by("a", "b", keys=KEYS).count().release(epsilon=0.6)
        negative += int((out.table["count"] < 0).sum())
        table = out.share(within=within).to_polars()
        told = table.drop_nulls("share")
        assert told["share"].is_between(0, 1).all()
        assert told["share_low"].is_between(0, 1).all()
        assert told["share_high"].is_between(0, 1).all()
        assert not ((told["share_low"] <= 0) & (told["share_high"] >= 1)).any()
        for _, line in table.group_by(within or pl.lit(1)):
            if not line["share"].null_count():
                assert line["share"].sum() == pytest.approx(1)
    assert negative


@pytest.mark.parametrize("within", [(), "a"])
def test_the_total_of_many_shares_is_added_up_once(within, monkeypatch):
    """Else 100,000 groups need as many numbers, squared: more than fit into memory."""
    sizes, asked = [], []
    quotients, intervals = combinations.Combinations.quotients, combinations.intervals

    def noted(self, over, under):
        sizes.append(under.size)
        found = quotients(self, over, under)
        each = quotients(self, over, np.tile(under, (len(over), 1)))
        assert all(
            np.allclose(one, other, equal_nan=True) for one, other in zip(found, each, strict=True)
        )
        return found

    monkeypatch.setattr(
        combinations, "intervals", lambda *said, **more: asked.append(1) or intervals(*said, **more)
    )
    monkeypatch.setattr(combinations.Combinations, "quotients", noted)
    out = protected().group_by("a", "b", keys=KEYS).count().release(epsilon=20)
    out.share(within=within)
    assert sum(sizes) == 6
    assert len(asked) == 1


def test_a_share_that_could_be_anything_is_missing():
    out = (
        protected(table=PEOPLE.head(2)).group_by("b", keys=KEYS["b"]).count().release(epsilon=0.001)
    )
    assert out.share().to_polars()["share"].null_count() == 3


def test_refusals_name_what_to_type():
    frame, budget = protected(), dp.Budget(epsilon=1)
    crosstab = frame.crosstab("a", "b", keys=KEYS).release(epsilon=1)
    with pytest.raises(
        UnsupportedOperation, match=r"group_by\('a', 'b', keys=\{\.\.\.\}\).*share\(within='a'\)"
    ):
        crosstab.share(within="a")
    with pytest.raises(UnknownAttribute, match=r"out\.rolling\(7\)\.mean\(\)"):
        frame.rolling(7)
    with pytest.raises(WrongCall, match="rename one before it is protected"):
        frame.join(pl.DataFrame({"no": [1]}), left_on="id", right_on="no")
    protected(budget).count().release(epsilon=0.1)
    with pytest.raises(BudgetMismatch, match="people='patients'"):
        protected(budget, PEOPLE.rename(columns={"id": "no"}), unit="no")
    part = dp.Budget(epsilon=2).allocate("1mo", periods=2, start="2025-01-01", epsilon=1)
    with pytest.raises(
        BudgetExceeded, match=r"To make up for months.*budget=budget.*name='visits 2025-01-01'"
    ):
        protected(part).count().release(epsilon=0.1)


def test_another_content_under_the_same_name_is_told_how_it_corrects(tmp_path):
    budget = dp.Ledger(tmp_path / "x.sqlite").budget("x", epsilon=3)
    protected(budget, data="v1").count().release(epsilon=0.1, name="people")
    with pytest.raises(ReleaseMismatch, match=r"supersedes='people', because='\.\.\.'"):
        protected(budget, PEOPLE.head(5), data="v2").count().release(epsilon=0.1, name="people")


def test_intervals_name_covers_only_where_a_statistic_has_it():
    frame = protected(table=PEOPLE.assign(v=np.arange(60)))
    median = frame.median("v", bounds=(0, 60)).release(epsilon=5, ci=0.95)
    mean = frame.mean("v", bounds=(0, 60)).release(epsilon=5, ci=0.95)
    assert "covers=" not in repr(median)
    assert "not the sampling of people." in repr(median)
    assert "see covers='population'" in repr(mean)
