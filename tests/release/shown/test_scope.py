"""A release says what its intervals cover, and what limits leave out."""

import re
from html import unescape

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidArgument, UnsupportedOperation
from statistics_table import STATISTICS

pytestmark = pytest.mark.usefixtures("same_noise")

CITIES = ["Bonn", "Kiel"]


def visits(people=400, rows=1, rate=0.3, seed=1):
    draw = np.random.default_rng(seed)
    ids = np.repeat(np.arange(people), rows)
    bought = draw.random(len(ids)) < rate
    return pl.DataFrame(
        {
            "id": ids,
            "city": [CITIES[i % 2] for i in ids],
            "bought": bought,
            "x": draw.random(len(ids)),
        }
    )


def protected(table, unit="id", **declared):
    return dp.protect(
        table, unit=unit, budget=dp.Budget(epsilon=9.0), bounds={"x": (0, 1)}, **declared
    )


def test_it_says_what_intervals_cover_and_what_limits_leave_out():
    out = protected(visits(), max_rows=1).agg(n=dp.count(), x=dp.mean("x")).release(0.5)
    assert "Where each unit has one row, max_rows=1 leaves nothing out of n" in repr(out)
    assert "Where a unit has more than max_rows=1, its rows weigh less: x then leans" in repr(out)
    assert "intervals cover" not in repr(out)
    assert "95% intervals cover noise alone, not the sampling of people" in repr(out.with_ci())
    assert "90% intervals cover noise alone" in out.with_ci(0.9)._repr_html_()


@pytest.mark.parametrize("unit", [dp.Rows(1), "id"])
def test_nothing_is_said_where_nothing_is_left_out(unit):
    frame = protected(visits(), unit)
    query = frame.count() if unit != "id" else frame.count_units()
    assert not LEFT_OUT.search(repr(query.release(0.5)))
    each = protected(visits(rows=3)).per_unit(n=dp.count()).with_columns(n=dp.col("n").clip(0, 9))
    assert not LEFT_OUT.search(repr(each.agg(dp.mean("n"), m=dp.count()).release(0.5)))


def test_limits_of_a_column_are_named_with_it():
    query = protected(visits(), max_rows=2).agg(
        n=dp.count(), s=dp.sum("x", max_rows=3), m=dp.median("x", max_rows=4)
    )
    text = repr(query.release(0.5))
    assert "What max_rows=2 leaves out of n is unknown." in text
    assert "What max_rows=3 leaves out of s is unknown." in text
    assert "Where a unit has more than max_rows=4, its rows weigh less: m then leans" in text


# Every statistic

LEFT_OUT = re.compile(r"leaves out of|leaves nothing out of|weigh less|nearer end")
TOTALS = {"count", "count of rows", "count_units", "n_unique", "sum", "sum of units"}
TABLE = pl.DataFrame(
    {
        "id": [i // 5 for i in range(200)],
        "x": [0.5] * 200,
        "n": [0.2] * 200,
        "yes": [True] * 200,
        "city": CITIES * 100,
    }
)


def said_of(query, names):
    """What a release says in each of its outputs, with the released
    columns in place of their names.
    """
    out = query.release(2.0)
    pandas = out.to_pandas().attrs["dpframe"]
    outputs = (
        repr(out),
        out._repr_html_(),
        out.to_csv(notes=True),
        out.to_html(),
        str(out.report()),
        pandas,
    )
    outputs = [unescape(text) for text in outputs]
    assert all(LEFT_OUT.search(text) for text in outputs), outputs
    (line,) = [
        line for line in outputs[0].splitlines() if re.search("leaves out of|weigh less", line)
    ]
    assert all(line in text for text in outputs)
    assert all(name in line for name in names)
    return line, outputs


@pytest.mark.parametrize("label", STATISTICS)
def test_every_statistic_says_what_a_biting_limit_does_to_it_in_every_output(label):
    """40 units have 5 rows each, of which 2 count, in one of two groups."""
    frame = dp.protect(TABLE, unit="id", budget=dp.Budget(epsilon=9.0, delta=1e-6))
    statistic = STATISTICS[label].aggregate()
    by = frame.group_by("city", keys=CITIES, max_rows_per_group=2, max_groups=1)
    line, outputs = said_of(by.agg(m=statistic), ["m"])
    assert ("leaves out of" in line) == (label in TOTALS)
    assert ("max_rows_per_group=2" in line) == (label not in ("count_units", "sum of units"))
    clipped = [text for text in outputs if "nearer end" in text]
    assert len(clipped) in (0, len(outputs))
    assert bool(clipped) == ("bounds" in repr(statistic) and label != "cdf")


def test_a_limit_that_every_table_keeps_is_not_named():
    """No unit is in more than two of two groups, and a unit counts once whatever rows it has."""
    frame = dp.protect(TABLE, unit="id", budget=dp.Budget(epsilon=9.0))
    by = frame.group_by("city", keys=CITIES, max_rows_per_group=2, max_groups=2)
    assert "max_groups" not in repr(by.count().release(1.0))
    assert not LEFT_OUT.search(repr(by.count_units().release(1.0)))


@pytest.mark.parametrize("covers", ["noise", "population"])
def test_no_interval_is_read_as_if_it_held_what_limits_do(covers):
    frame = dp.protect(
        TABLE, unit="id", budget=dp.Budget(epsilon=9.0), max_rows=2, bounds={"x": (0, 1)}
    )
    text = repr(frame.mean("x").release(1.0, ci=0.95, covers=covers))
    assert "95% intervals cover noise" in text
    assert "by an unknown amount that no interval holds" in text
    assert (
        "Values of x beyond [0, 1] count as the nearer end; no interval holds what that changes."
        in text
    )


def asked_of_moments(frame):
    return {
        "ols": frame.ols(y="x", x=["n"]),
        "cov": frame.cov(["x", "n"]),
        "corr": frame.corr(["x", "n"]),
    }


def test_regressions_and_matrices_say_so():
    bounds = {"x": (0, 1), "n": (0, 1)}
    frame = dp.protect(
        TABLE, unit="id", budget=dp.Budget(epsilon=9.0, delta=1e-6), max_rows=2, bounds=bounds
    )
    for query in asked_of_moments(frame).values():
        line, _ = said_of(query, [])
        assert "weigh less: " in line
        assert "n beyond [0, 1]" in repr(query.release(1.0))


def test_tables_of_several_say_so():
    budget, keys = dp.Budget(epsilon=9.0, delta=1e-4), {"city": CITIES, "bought": [True, False]}
    frame = dp.protect(visits(rows=3), unit="id", budget=budget, max_rows=2, keys=keys)
    marginals, tree = frame.marginals(["city", "bought"]), frame.hierarchy(["city"], keys=CITIES)
    synthetic = frame.synthesize(["city", "bought"])
    for out in (
        marginals.release(0.5, delta=1e-6),
        tree.release(0.5),
        synthetic.release(0.5, delta=1e-6),
    ):
        for text in (repr(out), out._repr_html_(), out.to_csv(notes=True), str(out.report())):
            assert "What max_rows=2" in text


def test_what_follows_from_a_release_says_so():
    frame = protected(visits(rows=3).to_pandas(), max_rows=2, keys={"city": CITIES})
    out = frame.group_by("city").agg(n=dp.count(), x=dp.mean("x")).release(1.0)
    for derived in (
        out.share(),
        out.rolling(2).sum(),
        out.diff(),
        out.pct_change(),
        out.rebase("Bonn"),
    ):
        assert "What max_rows=2 leaves out of n is unknown." in repr(derived)
        assert "leans" not in repr(derived)
        assert "What max_rows=2 leaves out of n is unknown." in derived.table.attrs["dpframe"]
    for table in (out.difference("Bonn", "Kiel"), out.compare("Bonn")):
        assert table["covers"].to_list() == ["noise only; not what limits and bounds leave out"]
        assert "What max_rows=2 leaves out of n is unknown." in table.attrs["dpframe"]


def test_rows_of_nobody_are_named_where_there_can_be_some():
    out = protected(visits(), max_rows=1).count().release(0.5)
    sentence = "Rows with no 'id' are not counted."
    assert sentence in repr(out)
    assert sentence in str(out.report())
    assert sentence in str(out.derivation)
    assert "are not counted" not in repr(protected(visits(), dp.Rows(1)).count().release(0.5))


# Clipping before the question


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "visits.toml"
    path.write_text('unit = "id"\nmax_rows = 2\n[bounds]\nx = [0, 0.4]\n')
    return path


def under(policy):
    return dp.protect(TABLE, policy=policy, budget=dp.Budget(epsilon=9.0))


@pytest.mark.parametrize(
    "condition",
    [
        dp.col("x") >= 0.5,
        dp.col("x") > 0.4,
        dp.col("x") < 0.5,
        dp.col("x") == 0.5,
        dp.col("x") != 0.5,
        dp.col("x").is_in([0.5, 3]),
        dp.col("x") * 2 >= 0.9,
        dp.lit(0.5) <= dp.col("x"),
        dp.col("x").is_between(0.5, 0.9),
    ],
)
def test_a_comparison_with_what_a_policy_clips_is_refused(policy, condition):
    with pytest.raises(
        InvalidArgument, match=r"visits\.toml moved values beyond \[0, 0\.[48]\] to the nearer end"
    ):
        under(policy).filter(condition)


@pytest.mark.parametrize(
    "condition", [dp.col("x") >= 0.3, dp.col("x") <= 0.4, dp.col("n") >= 7, dp.col("x") * 2 >= 0.7]
)
def test_other_comparisons_are_not(policy, condition):
    assert "visits.toml moved" in repr(
        under(policy).filter(condition & (dp.col("x") > 0.1)).count().release(0.5)
    )


def test_more_rows_than_a_policy_lets_count_are_refused(policy):
    each = under(policy).per_unit(n=dp.count())
    with pytest.raises(InvalidArgument, match=r"visits\.toml moved values beyond \[0, 2\]"):
        each.filter(dp.col("n") >= 3)
    assert each.filter(dp.col("n") >= 2).count().release(9.0, delta=0).value > 30


def test_bounds_of_a_feature_are_named():
    frame = protected(visits(rows=3))
    each = frame.per_unit(total=dp.sum("x", unit_bounds=(0, 1)))
    assert "per_unit(total=sum('x'" in repr(each.filter(dp.col("total") > 0.5).count().release(0.5))
    with pytest.raises(InvalidArgument, match="to the nearer end"):
        each.filter(dp.col("total") > 2)


def test_what_chosen_limits_leave_out_is_estimated():
    frame = protected(visits(people=1000, rows=3))
    text = repr(frame.agg(n=dp.count(), limits=dp.Auto()).release(2.0))
    assert "n: limits leave out likely" in text or "n: nothing is left out" in text
    assert "is unknown" not in text


def test_the_pandas_table_carries_the_sentences():
    table = protected(visits().to_pandas(), max_rows=2).count().release(0.5).table
    assert table.attrs["dpframe"].startswith("Released at ε = 0.5.")
    assert "What max_rows=2 leaves out of count is unknown." in table.attrs["dpframe"]


def test_the_picture_says_so_too():
    pytest.importorskip("altair")
    out = (
        protected(visits(), max_rows=2, keys={"city": CITIES}).group_by("city").count().release(0.5)
    )
    assert "What max_rows=2 leaves out of count is unknown." in str(out.plot().to_dict()["title"])


# Intervals for the population after the release


def test_rates_and_people_have_intervals_for_the_population_at_no_price():
    frame = protected(visits(), max_rows=1, keys={"city": CITIES})
    query = frame.group_by("city").agg(u=dp.count_units(), r=dp.mean("bought"))
    out = query.release(0.5)
    assert query.release(0.5, covers="population").noise.equals(out.noise)
    wide, narrow = out.with_ci(covers="population").table, out.with_ci(covers="noise").table
    assert (wide["r_population_low"] < narrow["r_low"]).all()
    assert (wide["u_population_high"] > narrow["u_high"]).all()
    assert out.with_ci(covers="population").with_ci(covers="noise").table.equals(narrow)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "beside", [dp.count(), dp.count_units(), dp.sum("x"), dp.mean("x"), dp.median("x")]
)
def test_a_rate_has_its_interval_for_the_population_whatever_stands_beside_it(beside):
    pytest.importorskip("altair")
    frame = protected(visits().to_pandas(), max_rows=1, keys={"city": CITIES})
    query = frame.group_by("city").agg(n=beside, r=dp.mean("bought"))
    out = query.release(2.0, ci=0.95)
    alone = out.with_ci(covers="noise")
    assert list(out.table) == list(alone.table)
    assert (out.table["r_low"] < alone.table["r_low"]).all()
    assert (out.table["r_high"] > alone.table["r_high"]).all()
    others = [name for name in out.table if not name.startswith("r")]
    assert out.table[others].equals(alone.table[others])
    for text in (repr(out), out._repr_html_(), out.table.attrs["dpframe"]):
        assert (
            "intervals of r cover noise and the sampling of people; those of n noise alone" in text
        )
    assert "r: 95% interval for the population; n: noise only" in str(out.report())
    assert (
        "margins of error (r: for the population, from noise and sampling of people; n: of the "
        "noise)" in out.to_html()
    )
    assert "95% margins of error of the noise" in alone.to_html()
    assert "for the population" in str(out.plot(column="r").to_dict()["title"])
    assert "margins of error of the noise" in str(out.plot(column="n").to_dict()["title"])
    assert "intervals of r" not in repr(alone)
    assert set(out.accuracy().groupby("column")["covers"].first()) == {
        "noise only",
        "95% interval for the population",
    }


def test_people_in_several_groups_have_rates_for_the_population_too():
    frame = protected(visits(), max_groups=2, max_rows_per_group=1, keys={"city": CITIES})
    out = frame.group_by("city").agg(n=dp.count(), r=dp.mean("bought")).release(2.0)
    wide, narrow = out.with_ci().table, out.with_ci(covers="noise").table
    assert (wide["r_high"] > narrow["r_high"]).all()
    covers = out.difference(*CITIES[:2], column="r")["covers"][0]
    assert covers.startswith("95% interval for the population")


def test_shrunk_rates_have_the_interval_that_shrinking_has():
    keys = [f"{i}" for i in range(8)]
    table = pl.DataFrame({"k": keys * 100, "yes": [True, False, False, False] * 200})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0))
    out = frame.group_by("k", keys=keys).agg(n=dp.count(), r=dp.mean("yes")).release(0.2)
    one, other = (
        o.table for o in (out.with_ci().shrink("r"), out.shrink("r").with_ci(covers="noise"))
    )
    assert one.equals(other)


def test_where_people_may_differ_by_more_it_is_refused():
    frame = protected(visits(), max_rows=1)
    for query in (
        frame.mean("x"),
        frame.median("x"),
        frame.sum("x"),
        frame.mean("bought", max_rows=2),
    ):
        with pytest.raises(UnsupportedOperation, match="covers='population'"):
            query.release(0.1).with_ci(covers="population")


@pytest.mark.parametrize("rows", [1, pytest.param(3, marks=pytest.mark.long)])
def test_intervals_of_a_rate_hold_however_many_rows_people_have(rows):
    """With one row 95%, and with three, whose mean counts, more.
    Noise and tables are the same each time.
    """
    held = 0
    for seed in range(60):
        query = protected(visits(rows=rows, seed=seed), max_rows=1).mean("bought")
        row = query.release(1.0).with_ci(covers="population").table.row(0, named=True)
        held += row["bought_population_low"] <= 0.3 <= row["bought_population_high"]
    assert held >= 54
    assert rows > 1 or held < 60
