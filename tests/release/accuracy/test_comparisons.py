"""Differences between groups, comparisons with a reference, and the test of
independence: their level and refusals.
"""

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import kstest

import dpframe as dp
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.release.accuracy import Differences, holm, independence
from dpframe.release.estimators import estimator_of
from inside import numbers_of

ARMS = ["treated", "control", "other"]


def _frame(table, unit=None, epsilon=9.0):
    return dp.protect(table, unit=unit or dp.Rows(1), budget=dp.Budget(epsilon=epsilon, delta=1e-4))


def _trial(draw, chances=(0.3, 0.3, 0.3), people=100):
    """People of three arms, ill with these chances."""
    arms = np.repeat(ARMS, people)
    return pl.DataFrame({"arm": arms, "ill": draw.random(len(arms)) < np.repeat(chances, people)})


def _release(table, epsilon=4.0, covers="population"):
    query = _frame(table).group_by("arm", keys=ARMS).agg(ill=dp.mean("ill"), n=dp.count())
    return query.release(epsilon=epsilon, covers=covers)


def test_a_difference_is_that_of_the_released_numbers():
    out = _release(_trial(np.random.default_rng(0)))
    ill = dict(out.table.select("arm", "ill").rows())
    row = out.difference("treated", "control").to_dicts()[0]
    assert row["estimate"] == pytest.approx(ill["treated"] - ill["control"])
    assert row["lower"] < row["estimate"] < row["upper"]
    assert row["covers"] == "95% interval for the population"
    assert out.difference("control", "treated")["p_value"][0] == pytest.approx(
        row["p_value"], rel=1e-6
    )


def test_p_is_small_just_where_the_interval_leaves_zero_out():
    draw = np.random.default_rng(1)
    for chance in (0.3, 0.4, 0.5, 0.6):
        out = _release(_trial(draw, (chance, 0.3, 0.3)))
        for alpha in (0.05, 0.01):
            row = out.difference("treated", "control", alpha=alpha).to_dicts()[0]
            assert (row["p_value"] <= alpha) == (not row["lower"] <= 0 <= row["upper"])


def test_noise_alone_has_no_p_value():
    out = _release(_trial(np.random.default_rng(2)), covers="noise")
    for table in (out.difference("treated", "control"), out.compare("control", column="n")):
        assert "p_value" not in table.columns
        assert set(table["covers"]) == {"noise only"}


def test_rates_of_people_are_compared_for_the_population_unless_noise_was_asked_for():
    """Whatever stands beside them: the noise of a rate may be a tenth of what
    people's sampling moves it by.
    """
    table = _trial(np.random.default_rng(2))
    query = _frame(table).group_by("arm", keys=ARMS).agg(ill=dp.mean("ill"), n=dp.count())
    out = query.release(epsilon=5.0)
    asked = _release(table, 5.0).difference("treated", "control", "ill")
    row, noise = (
        o.difference("treated", "control", "ill") for o in (out, out.with_ci(covers="noise"))
    )
    assert row.columns == out.compare("control", "ill").drop("p_holm").columns == asked.columns
    assert set(row["covers"]) == set(asked["covers"])
    assert set(noise["covers"]) == {"noise only"}
    assert 3 * (noise["upper"] - noise["lower"])[0] < (row["upper"] - row["lower"])[0]
    assert set(out.difference("treated", "control", "n")["covers"]) == {"noise only"}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    ("width", "covers"),
    [
        *((width, "noise") for width in (1e-310, 1e-200, 1e60, 1e269)),
        (1e-60, "population"),
        (1e60, "population"),
    ],
)
def test_no_square_is_beyond_floats_whatever_the_bounds_are(width, covers):
    values = pl.DataFrame(
        {"arm": np.repeat(ARMS, 100), "x": np.tile(np.arange(100.0), 3) / 100 * width}
    )
    query = (
        _frame(values)
        .group_by("arm", keys=ARMS)
        .agg(x=dp.mean("x", bounds=(0, width)), n=dp.count())
    )
    row = query.release(epsilon=1e-10, covers=covers).compare("control", column="x").to_dicts()[0]
    assert -math.inf < row["lower"] <= row["estimate"] <= row["upper"] < math.inf
    assert row["lower"] < row["upper"]


def test_the_noise_interval_of_a_difference_is_narrower_than_that_of_the_population():
    table = _trial(np.random.default_rng(3))
    noise, population = (
        _release(table, covers=c).difference("treated", "control") for c in ("noise", "population")
    )
    assert (noise["upper"] - noise["lower"])[0] < (population["upper"] - population["lower"])[0]


@pytest.mark.parametrize(
    ("epsilon", "tests", "most"), [(0.1, 12, 6), pytest.param(4.0, 40, 12, marks=pytest.mark.long)]
)
def test_differences_keep_their_level(epsilon, tests, most):
    """Three equal arms of 100.
    Of 12 tests at 5% more than 6 reject with probability below 1e-6, of 40 more than 12.
    """
    draw = np.random.default_rng(4)
    rejected = 0
    for _ in range(tests):
        row = _release(_trial(draw), epsilon).difference("treated", "control").to_dicts()[0]
        rejected += not row["lower"] <= 0 <= row["upper"]
    assert rejected <= most


@pytest.mark.long
def test_without_sampling_the_level_is_lost():
    """The negative control: intervals of the noise alone leave 0 out in most of these releases."""
    draw = np.random.default_rng(5)
    rows = [
        _release(_trial(draw), 9.0, covers="noise").difference("treated", "control")
        for _ in range(60)
    ]
    assert sum(not row["lower"][0] <= 0 <= row["upper"][0] for row in rows) > 14


def test_a_large_difference_is_seen():
    """Of 100 people 90, 10 and 10 are ill: two equal arms differ by
    noise, and hardly at this price.
    """
    ill = np.tile(np.arange(100), 3) < np.repeat([90, 10, 10], 100)
    out = _release(pl.DataFrame({"arm": np.repeat(ARMS, 100), "ill": ill}), 9.0)
    assert out.difference("treated", "control")["p_value"][0] < 1e-4
    compared = out.compare(reference="control")
    assert (compared["p_holm"] <= 0.05).to_list() == [True, False]


def test_comparisons_are_corrected():
    out = _release(_trial(np.random.default_rng(7)))
    both, one = out.compare("control"), out.difference("treated", "control")
    assert both["lower"][0] < one["lower"][0]
    assert both["upper"][0] > one["upper"][0]
    assert (both["p_holm"] >= both["p_value"]).all()
    assert set(both["covers"]) == {"95% interval for the population, all together"}


def test_people_in_both_groups_get_the_widest_intervals_where_their_covariance_was_not_paid_for():
    """Six groups are too many for it: the correlation may be -1."""
    draw = np.random.default_rng(8)
    ids, arms = np.repeat(np.arange(100), 2), np.tile(["treated", "control"], 100)
    table = pl.DataFrame({"id": ids, "arm": arms, "x": draw.random(200)})
    widths = []
    for groups in (1, 2):
        keys = [*ARMS[:2], "c", "d", "e", "f"]
        query = _frame(table, "id").group_by(
            "arm", keys=keys, max_groups=groups, max_rows_per_group=1
        )
        out = query.agg(x=dp.mean("x", bounds=(0, 1))).release(epsilon=4.0, covers="population")
        low, high = out.difference("treated", "control").select("lower", "upper").row(0)
        each = out.accuracy()[:2].select(pl.col("upper") - pl.col("lower"))["upper"].to_list()
        widths.append((high - low) / math.hypot(*each))
    assert 0.8 < widths[0] <= 1.05
    assert 1.1 < widths[1] <= math.sqrt(2) + 1e-6


def test_holm_by_hand():
    assert holm(np.array([0.01, 0.04, 0.03, 0.005])) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def _wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_wrong_calls_are_refused():
    out = _release(_trial(np.random.default_rng(9)))
    _wrong(lambda: out.difference("treated", "nobody"), InvalidArgument, "no such group")
    _wrong(lambda: out.difference("treated", "treated"), InvalidArgument, "one group")
    _wrong(lambda: out.difference("treated", ["control"]), InvalidArgument, "a key")
    _wrong(lambda: out.difference("treated", ("control", 1)), InvalidArgument, "a key")
    _wrong(lambda: out.difference("treated", "control", column="z"), InvalidArgument, "no column")
    _wrong(lambda: out.difference("treated", "control", alpha=2), InvalidArgument, "alpha")
    _wrong(
        lambda: out.suppress(below=1e9).difference("treated", "control"),
        InvalidArgument,
        "suppress",
    )
    _wrong(lambda: out.shrink(), UnsupportedOperation, "covers='noise'")
    frame = _frame(_trial(np.random.default_rng(9)))
    _wrong(lambda: frame.count().release(epsilon=1.0).compare("a"), UnsupportedOperation, "groups")
    medians = (
        frame.with_columns(x=dp.col("ill").cast("float64"))
        .group_by("arm", keys=ARMS)
        .median("x", bounds=(0, 1))
    )
    _wrong(
        lambda: medians.release(epsilon=1.0).compare("control"),
        UnsupportedOperation,
        "counts, sums, means",
    )


# Independence


def _crosstab(table, **options):
    return _frame(table, **options).crosstab("a", "b", keys={"a": ["x", "y"], "b": ["u", "v", "w"]})


def _pairs(draw, people, dependent=False):
    a = draw.choice(["x", "y"], people, p=[0.7, 0.3])
    b = draw.choice(["u", "v", "w"], people, p=[0.8, 0.1, 0.1])
    return pl.DataFrame({"a": a, "b": np.where(a == "x", "u", "v") if dependent else b})


@pytest.mark.parametrize(
    ("people", "epsilon"),
    [(30, 0.2), *(pytest.param(300, e, marks=pytest.mark.long) for e in (0.1, 4.0))],
)
def test_independence_keeps_its_level(people, epsilon):
    """Of 60 tests at 5% more than 14 reject with probability below 1e-6."""
    draw = np.random.default_rng(10)
    p = [
        _crosstab(_pairs(draw, people)).release(epsilon=epsilon).independence().p_value
        for _ in range(60)
    ]
    assert sum(value <= 0.05 for value in p) <= 14


@pytest.mark.long
def test_the_usual_test_takes_noise_for_dependence():
    """The negative control: Pearson's χ² without a word of the
    noise rejects most of these tables.
    """
    scipy = pytest.importorskip("scipy.stats")
    draw, rejected = np.random.default_rng(11), 0
    for _ in range(60):
        out = _crosstab(_pairs(draw, 300)).release(epsilon=0.1)
        table = np.maximum(out.table.select("u", "v", "w").to_numpy(), 1.0)
        rejected += scipy.chi2_contingency(table).pvalue <= 0.05
    assert rejected > 14


def test_dependence_is_seen():
    out = _crosstab(_pairs(np.random.default_rng(12), 300, dependent=True)).release(epsilon=1.0)
    answer = out.independence()
    assert answer.p_value <= 0.001
    assert (answer.degrees, answer.tables) == (2, 1999)
    assert out.independence() == answer


@pytest.mark.parametrize("options", [{"noise": "laplace"}, {"noise": "gaussian", "delta": 1e-5}])
def test_simulated_noise_has_the_law_of_the_mechanism(options):
    out = _crosstab(_pairs(np.random.default_rng(13), 50)).release(epsilon=0.5, **options)
    (output,) = numbers_of(out).outputs
    noise = numbers_of(out).noise.of(output.totals[0][1])
    drawn = noise.added.simulated_whole(np.random.default_rng(0), (200_000,), noise.deviation)
    real = noise.added.draw(200_000) * float(noise.allotment.total.unit)
    assert drawn.std() == pytest.approx(real.std(), rel=0.02)
    assert estimator_of(output).is_number


def test_tables_without_such_a_test_are_refused():
    table = _pairs(np.random.default_rng(14), 50).with_columns(id=pl.int_range(50) // 2)
    frame, keys = _frame(table, "id"), {"a": ["x", "y"], "b": ["u", "v", "w"]}
    several = frame.crosstab("a", "b", keys=keys, max_groups=2, max_rows_per_group=1).release(
        epsilon=1.0
    )
    _wrong(several.independence, UnsupportedOperation, "max_groups=1")
    rows = frame.crosstab("a", "b", keys=keys, max_groups=1, max_rows_per_group=2).release(
        epsilon=1.0
    )
    _wrong(rows.independence, UnsupportedOperation, "max_rows_per_group=1")
    found = frame.crosstab("a", "b", max_groups=1, max_rows_per_group=1).release(
        epsilon=4.0, delta=1e-5
    )
    _wrong(found.independence, UnsupportedOperation, "list keys")
    one = frame.crosstab(
        "a", "b", keys={"a": ["x"], "b": ["u", "v"]}, max_groups=1, max_rows_per_group=1
    )
    _wrong(one.release(epsilon=1.0).independence, UnsupportedOperation, "two rows")
    counts = (
        frame.group_by("a", keys=["x", "y"], max_groups=1, max_rows_per_group=1)
        .count()
        .release(epsilon=1.0)
    )
    _wrong(counts.independence, UnsupportedOperation, "crosstab")


def test_independence_of_an_exact_table_is_near_the_usual_test():
    from dpframe.release.pricing import NoNoise

    out = _crosstab(_pairs(np.random.default_rng(15), 50)).release(epsilon=0.5)
    noise = numbers_of(out).noise.noises[0]
    exact = type(noise)(noise.allotment, NoNoise())
    table = np.array([[60.0, 30.0, 10.0], [45.0, 35.0, 20.0]])
    chi2 = pytest.importorskip("scipy.stats").chi2_contingency(table)
    assert independence(table, exact).p_value == pytest.approx(chi2.pvalue, abs=0.03)


PAIRS = 400
EQUAL = {
    "normal": ((-5, 5), lambda draw, n: draw.normal(size=n)),
    "zeros 90%": ((0, 100), lambda draw, n: draw.uniform(20, 100, n) * (draw.random(n) < 0.1)),
    "zeros": ((0, 100), lambda draw, n: np.zeros(n)),
    "lognormal": ((0, 60), lambda draw, n: draw.lognormal(0, 1, n)),
}


def too_small(shape, epsilon, copies=1):
    """Whether p-values of equal groups of 30 and 1,000 people are surely too
    small; with copies of each person.
    """
    bounds, made = EQUAL[shape]
    draw = np.random.default_rng(3)
    g = np.repeat(np.arange(2 * PAIRS), np.tile([30, 1000], PAIRS))
    x = np.repeat(made(draw, len(g) // copies), copies)
    frame = dp.protect(
        pl.DataFrame({"g": g, "x": x}), unit=dp.Rows(1), budget=dp.Budget(epsilon=epsilon)
    )
    asked = frame.group_by("g", keys=list(range(2 * PAIRS))).agg(v=dp.mean("x", bounds=bounds))
    numbers = numbers_of(asked.release(epsilon=epsilon, covers="population"))
    even, odd = range(0, 2 * PAIRS, 2), range(1, 2 * PAIRS, 2)
    p = Differences(numbers, numbers.outputs[0], even, odd, apart=True).p_values
    return kstest(p, "uniform", alternative="greater").pvalue < 1e-6


@pytest.mark.one_in(9)
@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
@pytest.mark.parametrize("shape", EQUAL)
def test_p_values_of_equal_groups_are_uniform_or_larger(shape, epsilon):
    assert not too_small(shape, epsilon)


@pytest.mark.long
def test_p_values_that_are_too_small_are_noticed():
    assert too_small("normal", 100, copies=10)


def rejected(rate, sizes, epsilon, *, other=None, pairs=1000, condition=True):
    """Of pairs of groups of these sizes and rates, how many differences a
    test at 5% calls different from 0.
    """
    draw = np.random.default_rng(3)
    g = np.repeat(np.arange(2 * pairs), np.tile(sizes, pairs))
    x = draw.random(len(g)) < np.where(g % 2, rate if other is None else other, rate)
    x, bounds = (x, None) if condition else (x.astype(float), (0, 1))
    table, budget = (
        pl.DataFrame({"u": np.arange(len(g)), "g": g, "x": x}),
        dp.Budget(epsilon=epsilon),
    )
    frame = dp.protect(table, unit="u", budget=budget, max_rows=1)
    asked = frame.group_by("g", keys=list(range(2 * pairs))).agg(v=dp.mean("x", bounds))
    numbers = numbers_of(asked.release(epsilon=epsilon, covers="population"))
    even, odd = range(0, 2 * pairs, 2), range(1, 2 * pairs, 2)
    low, high = Differences(numbers, numbers.outputs[0], even, odd, apart=True).interval(0.05)
    return int(np.sum((low > 0) | (high < 0)))


@pytest.mark.one_in(6)
@pytest.mark.parametrize("epsilon", [0.5, 2, 10])
@pytest.mark.parametrize("sizes", [(30, 1000), (30, 30), (100, 1000)], ids=str)
@pytest.mark.parametrize("rate", [0.02, 0.05, 0.2, 0.5])
def test_equal_rates_are_rarely_called_different(rate, sizes, epsilon):
    """Of 1,000 tests at 6% more than 101 reject with probability below 1e-6."""
    assert rejected(rate, sizes, epsilon) <= 101


def test_rates_that_differ_are_still_seen():
    """In small groups with the higher rate, the interval has the variance of the group itself."""
    assert rejected(0.4, (30, 1000), 10, other=0.1, pairs=200) > 150


@pytest.mark.usefixtures("same_noise")
def test_a_group_without_a_case_seems_to_have_no_variance():
    """The negative control: floats of 0 and 1 have each group's own
    variance alone, from second moments.
    """
    assert rejected(0.05, (30, 1000), 10, condition=False) > 101
