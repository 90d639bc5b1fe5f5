"""The tools that users are given to check claims:
they find what is false, and leave what is true.
"""

import math
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.audit import audit, check_query, neighbours
from dpframe.audit.brute import within
from dpframe.audit.trials import at_least, at_most
from dpframe.errors import DpFrameError, InvalidArgument, UnknownColumn, UnsupportedOperation
from dpframe.theory.formulas.sensitivity import grouped as sensitivity
from inside import step_of
from strategies import bring

ROWS = pl.DataFrame(
    {"u": [1, 1, 2, None], "city": ["Bonn", "Kiel", "Bonn", "Bonn"], "spend": [5.0, 40.0, 7.0, 1.0]}
)


def spends(table):
    return (
        step_of(dp.protect(table, unit=dp.Rows(1)))
        .data.scan(["spend"])
        .collect()["spend"]
        .to_list()
    )


# Neighbours


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "pyarrow"])
def test_every_unit_is_removed_once_and_nobody_s_rows_stay(kind):
    table = ROWS.to_pandas() if kind == "pandas" else bring(ROWS, kind)
    found = list(neighbours(table, "u"))
    assert [spends(t) for t in found] == [[7, 1], [5, 40, 1]]
    assert all(isinstance(t, pl.DataFrame if kind == "lazy" else type(table)) for t in found)
    exchanged = list(neighbours(table, "u", exchange=table))
    assert [spends(t) for t in exchanged] == [[7, 1, 5, 40], [5, 40, 1, 7]]


def test_declared_rows_leave_in_sets_of_up_to_k():
    assert [spends(t) for t in neighbours(ROWS[:3], dp.Rows(2))] == [
        [40, 7],
        [5, 7],
        [5, 40],
        [7],
        [40],
        [5],
    ]
    other = ROWS[3:]
    assert [spends(t) for t in neighbours(ROWS[:2], dp.Rows(1), exchange=other)] == [
        [40, 1],
        [5, 1],
    ]


def test_composite_units_are_told_apart_by_all_of_their_columns():
    table = pl.DataFrame({"a": [1, 1, 2], "b": [1, 2, None], "spend": [1.0, 2.0, 3.0]})
    assert [spends(t) for t in neighbours(table, ("a", "b"))] == [[2, 3], [1, 3]]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: list(neighbours(ROWS, "nobody")), UnknownColumn),
        (lambda: list(neighbours([1, 2], "u")), UnsupportedOperation),
        (lambda: list(neighbours(ROWS, None)), InvalidArgument),
        (lambda: list(neighbours(ROWS, "u", exchange=ROWS.select("u"))), InvalidArgument),
        (lambda: check_query(lambda f: 1, ROWS, "u"), InvalidArgument),
        (lambda: check_query(lambda f: f.count_units(), ROWS, "u", size=0), InvalidArgument),
        (lambda: check_query(lambda f: f.count_units(), ROWS, "u", size=50), UnsupportedOperation),
        (lambda: audit(lambda t: 1.0, ROWS, ROWS, -1), InvalidArgument),
        (lambda: audit(lambda t: 1.0, ROWS, ROWS, 1, 1.0), InvalidArgument),
        (lambda: audit(lambda t: 1.0, ROWS, ROWS, 1, trials=2), InvalidArgument),
        (lambda: audit(lambda t: [], ROWS, ROWS, 1), InvalidArgument),
        (lambda: audit(lambda t: {"a": 1}, ROWS, ROWS, 1), InvalidArgument),
    ],
)
def test_what_cannot_be_checked_is_refused(call, error):
    with pytest.raises(error) as caught:
        call()
    assert isinstance(caught.value, DpFrameError)


# Brute force


def by_city(frame):
    keys = ["Bonn", "Kiel"]
    return frame.group_by("city", keys=keys, max_groups=2, max_rows_per_group=2, max_rows=3).agg(
        n=dp.count(), s=dp.sum("spend", bounds=(-3, 10)), middle=dp.median("spend", bounds=(0, 10))
    )


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_brute_force_reaches_what_is_claimed_and_no_more(relation):
    check = check_query(by_city, ROWS, "u", 4, neighbors=relation)
    assert check.holds
    assert check.left_out == ("middle",)
    assert "No claim is exceeded" in check.verdict
    if relation == "add-remove":
        assert check.tight == {"n": True, "s": False}
        assert check.reached["n"] == check.claimed["n"]
        fewer, more = check.worst["n"]
        assert len(more) - len(fewer) >= 3
    assert "reached" in repr(check)
    assert "<table" in check._repr_html_()


def test_declared_rows_are_held_too():
    check = check_query(lambda f: f.sum("spend", bounds=(0, 10)), ROWS, dp.Rows(2), 3)
    assert check.holds
    assert check.tight == {"spend": True}


def test_brute_force_finds_a_claim_that_is_too_small(monkeypatch):
    real = sensitivity.row_counts
    monkeypatch.setattr(
        sensitivity,
        "row_counts",
        lambda limits, *args: real(sensitivity.Contribution(1, 1, 1), *args),
    )
    check = check_query(by_city, ROWS, "u", 4)
    assert not check.holds
    assert "A claim is false: n" in check.verdict
    assert check.worst["n"] is not None


VISITS = pl.DataFrame(
    {"u": [1, 1, 2, 2, 3], "city": ["a", "b", "a", "b", "a"], "x": [1.0, 5.0, 2.0, 3.0, 4.0]}
)
LIMITS = {"max_groups": 1, "max_rows_per_group": 1}
WIDER = {"max_groups": 2, "max_rows_per_group": 2}
FOUND = {
    "count": lambda f: f.group_by("city", **LIMITS).agg(n=dp.count(), m=dp.count(**WIDER)),
    "count alone": lambda f: f.group_by("city", **LIMITS).agg(m=dp.count(**WIDER)),
    "units": lambda f: f.group_by("city", **LIMITS).agg(
        n=dp.count(), m=dp.count_units(max_groups=2)
    ),
    "sum": lambda f: f.group_by("city", **LIMITS).agg(m=dp.sum("x", bounds=(-9, 9), **WIDER)),
    "mean": lambda f: f.group_by("city", **LIMITS).agg(
        n=dp.count_units(), m=dp.mean("x", bounds=(0, 9), **WIDER)
    ),
    "distinct": lambda f: f.group_by("city", **LIMITS).agg(
        n=dp.count(), m=dp.n_unique("x", max_groups=2, max_rows=2)
    ),
    "narrower": lambda f: f.group_by("city", **WIDER).agg(n=dp.count_units(), m=dp.count(**LIMITS)),
    "no own limits": lambda f: f.group_by("city", **WIDER).agg(
        n=dp.count_units(), m=dp.sum("x", bounds=(0, 9))
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "name",
    [n if i % 2 == 0 else pytest.param(n, marks=pytest.mark.long) for i, n in enumerate(FOUND)],
)
def test_a_found_group_of_one_table_alone_is_an_event_of_keys(name, relation):
    """Claims that are true hold, by both checkers;
    the number that decides which groups are found is held in full.
    """
    check = check_query(
        FOUND[name], VISITS, "u", 4 if relation == "add-remove" else 3, neighbors=relation
    )
    assert check.holds, check
    own = name != "no own limits"
    assert all(total.partition(".")[0] == "m" for total in check.only_in_both)
    assert bool(check.only_in_both) == own == ("is an event of keys" in check.verdict)
    if name not in ("count", "no own limits"):
        return
    query = FOUND[name](dp.protect(VISITS, unit="u", neighbors=relation))
    measured = dp.theory.empirical_sensitivity(
        query, VISITS, 2 if relation == "replace" else 3, neighbors=relation
    )
    for total, reached in measured.items():
        assert within(reached, query.sensitivity[total])


def test_listed_groups_are_compared_whole():
    query = (
        dp.protect(VISITS, unit="u")
        .group_by("city", keys=["a", "b"], **LIMITS)
        .agg(m=dp.count(**WIDER))
    )
    assert query.only_in_both == frozenset()


@pytest.mark.parametrize(("total", "grouping", "own"), [("m", LIMITS, WIDER), ("n", WIDER, LIMITS)])
def test_a_claim_about_found_groups_that_is_too_small_is_found(total, grouping, own, monkeypatch):
    real = sensitivity.row_counts
    monkeypatch.setattr(
        sensitivity,
        "row_counts",
        lambda limits, *args: real(sensitivity.Contribution(1, 1, 1), *args),
    )
    check = check_query(
        lambda f: f.group_by("city", **grouping).agg(n=dp.count(), m=dp.count(**own)),
        VISITS,
        "u",
        3,
    )
    assert f"A claim is false: {total} moves" in check.verdict


# Audits


def laplace(scale):
    def release(table):
        return np.random.default_rng(len(table)).laplace(len(table), scale, 40_000)

    return release


def test_an_audit_finds_halved_noise_and_leaves_the_right_one():
    # The second is wrong with probability at most 1e-6; the first is the power of the audit.
    assert not audit(laplace(0.5), ROWS, ROWS[1:], 1.0, trials=40_000).holds
    right = audit(laplace(1), ROWS, ROWS[1:], 1.0, trials=40_000)
    assert right.holds
    assert 0.8 < right.lower <= 1
    assert "stands" in right.verdict
    assert "cannot prove" in right.verdict


def test_what_is_allowed_by_delta_is_taken_off():
    def release(table):
        shown = np.random.default_rng(len(table)).random(40_000) < (
            0.05 if len(table) == 4 else 0.0
        )
        return np.where(shown, "seen", "absent")

    assert audit(release, ROWS, ROWS[1:], 0.0, 0.06, trials=40_000).lower == 0
    assert not audit(release, ROWS, ROWS[1:], 1.0, 0.01, trials=40_000).holds


def test_releases_of_several_numbers_and_of_texts_are_told_apart():
    def release(table):
        draw = np.random.default_rng(len(table))
        noise = draw.laplace(0, 1, (20_000, 3))
        return noise + len(table) * np.array([1, 0, 1])

    found = audit(release, ROWS, ROWS[1:], 2.0, trials=20_000)
    assert 1.2 < found.lower <= 2


def test_a_release_is_an_outcome():
    budget = dp.Budget(epsilon=1e9)

    def release(table):
        return (
            dp.protect(table, unit="u", budget=budget)
            .group_by("city", keys=["Bonn"], max_groups=1)
            .count_units()
            .release(epsilon=60)
        )

    found = audit(release, ROWS, ROWS[1:3], 1.0, trials=100)
    assert not found.holds
    assert found.plot().to_dict()["title"].startswith("What is released")


def test_confidence_bounds_are_those_of_clopper_and_pearson():
    stats = pytest.importorskip("scipy.stats")
    for hits, trials in [(0, 10), (1, 10), (10, 10), (500, 1000), (3, 100_000), (99_990, 100_000)]:
        for alpha in (1e-6, 0.05):
            low, high = at_least(hits, trials, alpha), at_most(hits, trials, alpha)
            lowest = stats.beta.ppf(alpha, hits, trials - hits + 1) if hits else 0
            highest = stats.beta.isf(alpha, hits + 1, trials - hits) if hits < trials else 1
            assert (low, high) == pytest.approx((lowest, highest), rel=1e-6, abs=2e-12)
            assert low <= hits / trials <= high
    assert math.isclose(at_least(5, 5, 0.5), 0.5 ** (1 / 5), rel_tol=1e-9)


def test_texts_and_numbers_are_both_drawn():
    def words(table):
        return ["a", "b"] if len(table) == 4 else ["a", "a"]

    chart = audit(words, ROWS, ROWS[1:], 1.0, trials=100).plot().to_dict()
    assert chart["mark"]["type"] == "bar"
    numbers = audit(lambda t: list(range(len(t))), ROWS, ROWS[1:], 1.0, trials=100).plot().to_dict()
    assert numbers["mark"]["type"] == "area"


def test_the_tools_are_silent_when_nobody_looks_and_imported_when_used(capsys):
    check_query(by_city, ROWS.to_pandas(), "u", 2)
    assert capsys.readouterr() == ("", "")
    check_query(by_city, ROWS, "u", 2, progress=True)
    assert "tables" in capsys.readouterr().err
    code = (
        "import sys, dpframe; assert 'dpframe.audit' not in sys.modules; assert "
        "callable(dpframe.audit.audit)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError):
        _ = dp.nothing
