"""From a price to noise: the split adds up, scales are the sensitivity over the
price, thresholds pay their δ.
"""

import math
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import DeltaRequired, InvalidArgument, InvalidPrice
from dpframe.theory.formulas.loss import loss as privacy
from inside import question_of
from prices import noise_plan, read_price


@pytest.fixture
def frame():
    rows = {
        "id": [1, 1, 2, 3],
        "city": ["a", "b", "a", "b"],
        "x": [1.0, 2.0, 3.0, 4.0],
        "n": [1, 2, 3, 4],
    }
    return pl.DataFrame(rows).dp(unit="id", budget=dp.Budget(epsilon=100, delta=1e-3))


def planned(query, epsilon=1.0, delta=None, noise="auto"):
    return noise_plan(question_of(query), read_price(epsilon, delta), noise)


@pytest.mark.parametrize(
    ("bounds", "rows"), [((0, 100), 20), ((-3, 10), 1), ((0, 0.1), 7), ((-1e-9, 1e9), 3)]
)
@pytest.mark.parametrize("epsilon", [0.1, 1, 3.7])
def test_the_scale_of_a_sum_is_l1_over_epsilon_and_never_below(frame, bounds, rows, epsilon):
    query = frame.sum("x", bounds=bounds, max_rows=rows)
    (drawn,) = planned(query, epsilon).noises
    bound = query.sensitivity["x"]
    exact = bound.exact_l1 / Fraction(repr(epsilon))
    scale = Fraction(drawn.scale) * drawn.allotment.total.unit
    assert exact <= scale <= exact * (1 + Fraction(1, 2**52))
    assert bound.l1 == pytest.approx(rows * max(map(abs, bounds)), rel=2e-7)


def test_laplace_shares_add_up_to_the_price(frame):
    query = frame.group_by("city", keys=["a", "b"], max_groups=2, max_rows=4).agg(
        n=dp.count(share=3), total=dp.sum("x", bounds=(0, 1)), mean=dp.mean("x", bounds=(0, 5))
    )
    plan = planned(query, 1.0, noise="laplace")
    spent = [d.allotment.total.sensitivity.exact_l1 / Fraction(d.scale) for d in plan.noises]
    assert [d.label for d in plan.noises] == [
        "laplace",
        "laplace",
        "paired_laplace",
        "paired_laplace",
    ]
    assert [round(float(s), 9) for s in spent] == [
        round(x, 9) for x in (3 / 6, 1 / 6, 2 / 6, 2 / 6)
    ]
    assert 1 - 1e-12 <= sum(spent[:3]) <= 1  # the last is of the same two noises as the one before


def test_gaussian_columns_are_one_mechanism(frame):
    query = frame.group_by("city", keys=["a", "b"], max_groups=2, max_rows=4).agg(
        n=dp.count(), total=dp.sum("x", bounds=(0, 1))
    )
    plan = planned(query, 1.0, 1e-6, "gaussian")
    mu = math.sqrt(
        sum(float(d.allotment.total.sensitivity.l2_squared) / d.scale**2 for d in plan.noises)
    )
    assert privacy.gaussian_delta(1.0, mu) <= 1e-6 * (1 + 1e-9)
    assert privacy.gaussian_delta(1.0, mu * 1.001) > 1e-6
    assert plan.cost.delta == 1e-6


def test_auto_takes_the_smaller_noise(frame):
    one = frame.sum("x", bounds=(0, 1), max_rows=1)
    assert planned(one, 1.0, 1e-6).noises[0].label == "laplace"
    many = frame.group_by(
        "city", keys=["a", "b"] + [str(i) for i in range(400)], max_groups=300
    ).count_units()
    assert planned(many, 1.0, 1e-6).noises[0].label == "elliptic"
    for query in (one, many):
        sizes = {
            noise: planned(query, 1.0, 1e-6, noise).noises[0].deviation
            for noise in (
                "laplace",
                "gaussian",
                "auto",
                *(("elliptic", "k-norm") if query is many else ()),
            )
        }
        assert sizes["auto"] == min(sizes.values())


@pytest.mark.parametrize("groups", [1, 2, 3, 4, 5, 8, 20])
def test_auto_weighs_released_columns_and_not_what_they_are_made_of(frame, groups):
    """A mean is one column, of a sum and a count: beside a median it weighs as much.
    It decides at 4 groups.
    """
    grouped = frame.group_by(
        "city", keys=list("abcdefghijklmnopqrstuvwxyz"), max_groups=groups, max_rows_per_group=1
    )
    query = grouped.agg(mean=dp.mean("x", bounds=(0, 1)), median=dp.median("x", bounds=(0, 1)))

    def noisy(noise):
        total, _, median = planned(query, 1, 1e-6, noise).noises
        # a mean near the middle is off by its sum, over the same count of rows
        return total.deviation * median.miss

    assert noisy("auto") <= min(noisy("laplace"), noisy("gaussian")) * (1 + 1e-12)
    shared = grouped.agg(
        n=dp.count("x"), mean=dp.mean("x", bounds=(0, 1)), var=dp.var("x", bounds=(0, 1))
    )
    columns = {paid.names[0]: paid.columns for paid in question_of(shared).allotments}
    assert columns == {
        "n": 1 + Fraction(5, 6),
        "mean.sum": Fraction(5, 6),
        "var.squares": Fraction(1, 3),
    }


def test_delta_that_nothing_uses_is_not_charged(frame):
    assert planned(frame.count_units(), 1.0, 1e-6).cost.delta == 0


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("groups", [1, 3])
def test_a_threshold_pays_its_delta_and_no_smaller_one_does(frame, noise, groups):
    query = frame.group_by("city", max_groups=groups).count_units()
    plan = planned(query, 1.0, 1e-6, noise)
    (drawn,) = plan.noises

    def spent(threshold: int) -> float:
        if noise == "laplace":  # discrete: P[X >= k] = e^(-k/s) / (1 + e^(-1/s))
            tail = math.exp(-(threshold - 1) / drawn.scale) / (1 + math.exp(-1 / drawn.scale))
        else:
            tail = math.erfc((threshold - 1.5) / drawn.scale / math.sqrt(2)) / 2
            return max(
                -math.expm1(alone * math.log1p(-tail))
                + privacy.gaussian_delta(
                    1 + alone * math.log1p(-tail), math.sqrt(groups - alone) / drawn.scale
                )
                for alone in range(groups + 1)
            )
        return -math.expm1(groups * math.log1p(-tail))

    assert plan.threshold is not None
    assert spent(plan.threshold) <= 1e-6 * (1 + 1e-9)
    assert spent(plan.threshold - 1) > 1e-6


def test_rows_declared_count_towards_the_threshold_k_at_a_time():
    table = pl.DataFrame({"city": ["a", "b"]})
    plans = [
        planned(table.dp(unit=dp.Rows(k)).group_by("city").count(), 1.0, 1e-6, "laplace")
        for k in (1, 4)
    ]
    one, four = (p.threshold - 1 for p in plans)
    assert four > 4 * one * 0.95  # four times the scale, and a step of four


def test_bounded_privacy_of_one_row_each_counts_exactly():
    frame = pl.DataFrame({"x": [1.0, 2.0]}).dp(unit=dp.Rows(1), neighbors="replace")
    plan = planned(frame.count())
    assert plan.noises[0].label == "none"
    assert plan.cost.epsilon == 0
    assert planned(frame.filter(dp.col("x") > 0).count()).noises[0].scale == 1.0


def test_what_is_missing_is_named(frame):
    with pytest.raises(DeltaRequired, match="delta=1e-6"):
        planned(frame.group_by("city", max_groups=1).count_units())
    with pytest.raises(DeltaRequired):
        planned(frame.count_units(), noise="gaussian")
    with pytest.raises(InvalidArgument, match="laplace"):
        planned(frame.count_units(), noise="cauchy")
    with pytest.raises(InvalidPrice, match="epsilon"):
        planned(frame.count_units(), epsilon=None)


def test_one_query_asked_twice_in_a_batch_is_two_questions(frame):
    query = frame.count_units()
    first, second = frame.budget.plan([query, query], epsilon=1).release()
    assert frame.budget.spent.epsilon == 1
    assert (first.noise["scale"].item(), second.noise["scale"].item()) == (2.0, 2.0)
