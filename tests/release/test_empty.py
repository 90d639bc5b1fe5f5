"""A table without rows, since no key that was found in the data was shown, says
so once, with what would help.
"""

import re
import warnings

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import DpFrameWarning, StoredAnswerWarning
from dpframe.noise import bits

FEW = pl.DataFrame({"user": [1, 2, 3], "city": ["Bonn", "Kiel", "Kiel"], "x": [1.0, 2.0, 3.0]})
MANY = pl.DataFrame({"user": range(2000), "city": ["Bonn", "Kiel"] * 1000, "x": [1.0] * 2000})
PRICE = {"epsilon": 0.5, "delta": 1e-7}


def groups(table=FEW, max_groups=3, **limit):
    frame = dp.protect(
        table, unit="user", budget=dp.Budget(**(limit or {"epsilon": 9, "delta": 1e-5}))
    )
    return frame.group_by("city", max_groups=max_groups, max_rows_per_group=1)


def frozen():
    """Noise so small that no key of three units is shown: words in the middle."""
    return bits.substitute(
        lambda count: np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    )


@pytest.fixture(autouse=True)
def _frozen():
    with frozen():
        yield


QUESTIONS = {
    "keys": lambda g: g.keys(),
    "units": lambda g: g.count_units(),
    "rows": lambda g: g.count(),
    "means": lambda g: g.agg(n=dp.count(), m=dp.mean("x", bounds=(0, 3))),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_an_empty_table_names_the_threshold_and_what_lowers_it(ask):
    query = ask(groups())
    with pytest.warns(
        DpFrameWarning, match="The released table is empty: no key of 'city' reached"
    ) as caught:
        out = query.release(**PRICE)
    (warning,) = caught
    words = str(warning.message)
    assert warning.filename == __file__
    assert out.to_polars().is_empty()
    stated = int(re.search(r"the threshold of (\d+) units", words)[1])
    assert stated == out.noise["threshold"].drop_nulls().max()
    twice = int(re.search(r"release\(epsilon=1, delta=1e-07\), (\d+) units", words)[1])
    fewer = int(re.search(r"max_groups=1, (\d+) units", words)[1])
    assert max(twice, fewer) < stated
    # what is said is what these settings have
    for asked, price, least in (
        (groups(), {"epsilon": 1, "delta": 1e-7}, twice),
        (groups(max_groups=1), PRICE, fewer),
    ):
        with pytest.warns(DpFrameWarning):
            again = ask(asked).release(**price)
        assert again.noise["threshold"].drop_nulls().max() == least
    assert "keys=[...]" in words


def test_a_price_in_rho_is_named_in_rho():
    with pytest.warns(DpFrameWarning, match=r"release\(rho=0\.02, delta=1e-07\), \d+ units"):
        groups(rho=1, delta=1e-6).count_units().release(rho=0.01, delta=1e-7)


def test_it_is_said_once_for_a_release_and_again_for_its_stored_table():
    query = groups().count_units()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", StoredAnswerWarning)
        out = query.release(**PRICE, name="first")
        _ = (
            out.table,
            out.accuracy(),
            out.noise,
            str(out),
            out.report(),
            out._repr_html_(),
            out.to_csv(),
        )
        assert len(caught) == 1
        query.release(**PRICE, name="first")
    assert len(caught) == 2
    assert len({str(w.message) for w in caught}) == 1


@pytest.mark.parametrize(
    "release",
    [
        lambda: groups(MANY).count_units().release(**PRICE),  # keys are shown
        lambda: groups(FEW).agg(n=dp.count()).explain(),  # nothing is released
        lambda: (
            dp.protect(FEW, unit="user", budget=dp.Budget(epsilon=1))
            .group_by("city", keys=["Bonn"], max_groups=1)
            .count_units()
            .release(epsilon=0.1)
        ),  # keys are listed
    ],
)
def test_nothing_is_said_of_other_tables(release):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        release()


def test_the_row_of_suppressed_groups_is_no_empty_table():
    frame = dp.protect(FEW, unit="user", budget=dp.Budget(epsilon=1, delta=1e-6))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = (
            frame.group_by("city", max_groups=1, other="(other)")
            .count_units()
            .release(**PRICE)
            .table
        )
    assert table["city"].to_list() == ["(other)"]


def test_parts_of_a_batch_and_chosen_limits_say_it_without_a_price_of_their_own():
    budget = dp.Budget(epsilon=9, delta=1e-5)
    frame = dp.protect(FEW, unit="user", budget=budget)
    queries = [
        frame.group_by("city", max_groups=2).count_units(),
        frame.group_by("city", max_groups=1).keys(),
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        budget.plan(queries, **PRICE).release()
        frame.group_by("city", limits=dp.Auto()).count_units().release(**PRICE)
    assert len(caught) == 3
    for warning in caught:
        assert "A larger price or a smaller max_groups= lowers it" in str(warning.message)


def test_neighbours_with_the_same_released_table_get_the_same_words():
    words = set()
    for rows in (0, 1, 2, 3):
        with pytest.warns(DpFrameWarning) as caught:
            groups(FEW.head(rows)).count_units().release(**PRICE)
        words |= {str(w.message) for w in caught}
    assert len(words) == 1


def test_a_table_without_units_is_empty_without_an_error():
    """Nobody is there to be limited to one group, so that advice
    would be an error after the charge.
    """
    frame = dp.protect(FEW, unit=dp.Rows(2), budget=dp.Budget(epsilon=1, delta=1e-6))
    with pytest.warns(DpFrameWarning, match="reached the threshold"):
        assert frame.group_by("city").count().release(**PRICE).table.is_empty()
