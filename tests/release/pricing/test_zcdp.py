"""Prices in ρ, batches, and what they cost against the definitions."""

import json
import math
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe import errors
from dpframe.budget import Ledger
from dpframe.release.pricing.bought_noise import epsilon_for_rho
from dpframe.theory.formulas.loss import loss as privacy
from inside import question_of
from prices import priced

ROWS = {"id": [1, 1, 2, 3], "city": ["a", "b", "a", "b"], "x": [1.0, 2.0, 3.0, 4.0]}


def framed(budget):
    return dp.protect(pl.DataFrame(ROWS), unit="id", budget=budget)


def several(frame, **keys):
    return frame.group_by("city", max_groups=2, max_rows_per_group=1, **keys).agg(
        n=dp.count(share=3), s=dp.sum("x", bounds=(0, 10)), m=dp.mean("x", bounds=(0, 10))
    )


# In ρ


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "auto"])
@pytest.mark.parametrize("rho", [0.001, 0.1, 5])
def test_a_price_in_rho_is_what_its_noise_costs(noise, rho):
    query = several(framed(None), keys=["a", "b"])
    plan = priced(question_of(query), "rho", rho=rho, noise=noise)
    parts = [d.rho for d in plan.noises]
    # each is rounded up when it is read
    assert sum(parts) <= Fraction(repr(rho)) * (1 + Fraction(1, 2**50))
    assert float(sum(parts)) == pytest.approx(rho, rel=1e-9)
    assert float(parts[0] / parts[1]) == pytest.approx(3, rel=1e-9)  # by share
    assert plan.cost.rho == rho
    if noise == "gaussian":
        bound, scale = plan.noises[0].allotment.total.sensitivity, plan.noises[0].scale
        # 3 of 6 shares
        assert float(bound.l2_squared) / (2 * scale**2) == pytest.approx(rho / 2, rel=1e-9)


def test_auto_takes_the_smaller_noise_in_rho():
    one, many = (
        framed(None).count_units(),
        framed(None).group_by("city", keys=list("abcdefgh"), max_groups=8).count_units(),
    )
    for query in (one, many):
        for rho in (0.01, 10):
            sizes = {
                n: priced(question_of(query), "rho", rho=rho, noise=n).noises[0].deviation
                for n in ("laplace", "gaussian", "auto")
            }
            assert sizes["auto"] == min(sizes.values())


def test_laplace_of_an_epsilon_is_charged_its_own_rho():
    budget = dp.Budget(rho=1)
    framed(budget).count_units().release(epsilon=1)
    # ε + e^-ε - 1; tanh(1/2) = 0.462 for others
    assert budget.spent.rho == pytest.approx(math.exp(-1), rel=1e-9)
    assert budget.spent.rho >= math.exp(-1)
    out = framed(budget).count_units().release(epsilon=0.5)
    # not the discrete law, which costs as much as any
    assert out.noise["mechanism"].to_list() == ["laplace"]
    assert out.cost.rho < 0.5 * math.tanh(0.25)


# too few units: it is about the price
@pytest.mark.filterwarnings("ignore:The released table is empty")
def test_thresholds_pay_delta_beside_rho():
    budget = dp.Budget(rho=1, delta=1e-5)
    query = several(framed(budget))
    with pytest.raises(errors.DeltaRequired):
        query.release(rho=0.1)
    out = query.release(rho=0.1, delta=1e-6)
    assert (out.cost.rho, out.cost.delta) == (0.1, 1e-6)
    threshold = next(t for t in out.noise["threshold"] if t is not None)
    scale = out.noise.filter(pl.col("threshold").is_not_null())["scale"].item()
    tail = math.erfc((threshold - 1.5) / scale / math.sqrt(2)) / 2
    assert 1 - (1 - tail) ** 2 <= 1e-6 * (1 + 1e-9)
    assert budget.remaining == budget.limit - out.cost
    assert several(framed(budget), keys=["a", "b"]).release(rho=0.1, delta=1e-6).cost.delta == 0


def test_ranks_cost_what_any_private_choice_costs():
    out = framed(dp.Budget(rho=1)).median("x", bounds=(0, 10), max_rows=1).release(rho=0.2)
    assert out.cost.rho == 0.2
    assert privacy.pure_to_zcdp(epsilon_for_rho(Fraction(1, 5))) <= 0.2
    assert float(epsilon_for_rho(Fraction(1, 5))) == pytest.approx(0.643, abs=1e-3)


@pytest.mark.parametrize(
    ("price", "words"),
    [
        ({}, "rho=0.01"),
        ({"rho": 0.1, "epsilon": 1}, "rho=0.01"),
        ({"epsilon": 1, "noise": "gaussian"}, "paid in ρ"),
    ],
)
def test_a_price_in_other_terms_says_what_to_type(price, words):
    budget = dp.Budget(rho=1)
    with pytest.raises(errors.InvalidPrice, match=words):
        framed(budget).count_units().release(**price)
    with pytest.raises(errors.InvalidPrice, match="rho"):
        framed(dp.Budget(epsilon=1)).count_units().release(rho=0.1)
    assert budget.spent.rho == 0


def test_budgets_in_rho_add_up_exactly_and_are_kept(tmp_path):
    budget = Ledger(tmp_path / "study.sqlite").budget("visits", rho=1, delta=1e-6)
    for _ in range(10):
        framed(budget).count_units().release(rho=0.1)
    assert budget.remaining.rho == 0
    with pytest.raises(errors.BudgetExceeded):
        framed(budget).count_units().release(rho=1e-12)
    again = Ledger(tmp_path / "study.sqlite").budget("visits", rho=1, delta=1e-6)
    assert again.spent == budget.spent
    assert again.accountant == "zcdp"
    assert repr(again.remaining) == "Loss(rho=0.0, delta=1e-06)"


def test_a_limit_in_epsilon_says_which_rho_it_means():
    with pytest.raises(errors.UnsupportedOperation, match=r"rho=0\.0243"):
        dp.Budget(epsilon=1, delta=1e-6, accountant="zcdp")
    assert privacy.zcdp_to_epsilon(0.0243, 1e-6) <= 1 < privacy.zcdp_to_epsilon(0.0244, 1e-6)


# Batches


def test_twenty_laplace_counts_together_are_better_than_one_by_one():
    """At (1, 1e-4) together: scale 20 when ε is split;
    at most 13.71 by their joint distribution.
    """
    pytest.importorskip("dp_accounting")
    price = {"epsilon": 1, "delta": 1e-4, "noise": "laplace"}
    budget = dp.Budget(epsilon=1, delta=1e-4, accountant="pld")
    queries = [framed(budget).filter(dp.col("x") > i).count_units() for i in range(20)]
    batch = budget.plan(queries, **price)
    (scale,) = batch.noise["scale"].unique()
    assert scale <= 13.71
    assert _hockey_stick(scale, 20, 1.0) <= 1e-4
    assert _hockey_stick(scale * 0.99, 20, 1.0) > 1e-4  # and not by more than it needs
    split = dp.Budget(epsilon=1, delta=1e-4)
    assert (
        split.plan([framed(split).count_units() for _ in range(20)], **price)
        .noise["scale"]
        .unique()
        .item()
        == 20
    )
    assert budget.spent.epsilon == 0
    outs = batch.release()
    assert len(outs) == 20
    assert (budget.spent.epsilon, budget.spent.delta, len(budget.history())) == (1, 1e-4, 1)
    assert "charged once for 20 queries" in outs[0].report()


def _hockey_stick(scale, number, epsilon):
    """δ(ε) of several real Laplace mechanisms: their loss convolved on a grid,
    by hand, without dp-accounting.

    Rounded down and up in turn would bracket it; the grid of 1e-4 here is fine to about 1e-7.
    """
    import numpy as np

    step, one = 1e-4, 1 / scale
    grid = np.arange(-round(one / step), round(one / step) + 1) * step
    # The loss is ε with probability 1/2, -ε with e^-ε/2, and (a loss l) has density e^(l-ε)/2)/2
    # between.
    mass = np.exp((grid - one) / 2) / 4 * step
    mass[0], mass[-1] = math.exp(-one) / 2, 0.5
    mass[1:-1] *= (0.5 - math.exp(-one) / 2) / mass[1:-1].sum()
    size = 1 << (number * len(grid)).bit_length()
    joint = np.fft.irfft(np.fft.rfft(mass, size) ** number, size)[: number * (len(grid) - 1) + 1]
    losses = (np.arange(len(joint)) - (len(joint) - 1) / 2) * step
    return float(np.sum(np.where(losses > epsilon, joint * -np.expm1(epsilon - losses), 0)))


def test_one_after_the_other_is_refused_by_pld_with_the_reason(tmp_path):
    pytest.importorskip("dp_accounting")
    budget = Ledger(tmp_path / "study.sqlite").budget(
        "visits", epsilon=1, delta=1e-5, accountant="pld"
    )
    with pytest.raises(errors.UnsupportedOperation, match=r"not a valid filter.*budget\.plan"):
        framed(budget).count_units().release(epsilon=0.1)
    assert budget.spent.epsilon == 0
    for _ in range(2):  # batches are priced before they are drawn, and add up
        budget.plan([framed(budget).count_units()], epsilon=0.5, delta=1e-6).release()
    assert budget.remaining.epsilon == 0


# too few units: it is about the price
@pytest.mark.filterwarnings("ignore:The released table is empty")
def test_a_batch_has_a_name_too(tmp_path):
    ledger = Ledger(tmp_path / "study.sqlite")
    budget = ledger.budget("visits", epsilon=1, delta=1e-5)

    def batch(**price):
        frame = framed(budget)
        return budget.plan(
            [frame.count_units(), several(frame), frame.median("x", bounds=(0, 9), max_rows=1)],
            **price,
        )

    first = batch(epsilon=0.5, delta=1e-6).release(name="all")
    again = batch(epsilon=0.5, delta=1e-6).release(name="all")
    assert [a.to_polars().equals(b.to_polars()) for a, b in zip(first, again, strict=True)] == [
        True
    ] * 3
    assert (budget.spent.epsilon, budget.spent.delta) == (0.5, 1e-6)
    with pytest.raises(errors.ReleaseMismatch):
        batch(epsilon=0.25, delta=1e-6).release(name="all")
    assert ledger.verify() == {"visits": 3}


@pytest.mark.parametrize("accountant", ["basic", "pld"])
def test_a_mixed_batch_adds_up(accountant):
    """Gaussian columns and the choice share the ρ of half of δ;
    the threshold takes the other half.
    """
    budget = dp.Budget(epsilon=2, delta=1e-5, accountant=accountant)
    frame = framed(budget)
    queries = [several(frame), frame.median("x", bounds=(0, 9), max_rows=1), frame.count_units()]
    batch = budget.plan(queries, epsilon=2, delta=1e-5, noise="gaussian", shares=[2, 1, 1])
    drawn = [d for plan in batch._plans for d in plan.noises]
    assert {d.label for d in drawn} == {"gaussian", "exponential"}
    # A row moves a median's scores by half a row, and by 1/64 more where public rows fade: one of
    # them for 32 rows.
    moved = {"gaussian": 1, "exponential": Fraction(33, 64)}
    rho = Fraction(0)
    for d in drawn:
        rho += (
            d.allotment.total.sensitivity.l2_squared * (moved[d.label] / Fraction(d.scale)) ** 2 / 2
        )
    assert privacy.zcdp_to_epsilon(rho, 5e-6) <= 2
    assert privacy.zcdp_to_epsilon(rho * Fraction(1001, 1000), 5e-6) > 2
    assert batch.cost.delta == 1e-5
    assert "not released" in repr(batch)


def test_a_batch_in_rho_adds_up():
    budget = dp.Budget(rho=1, delta=1e-5)
    frame = framed(budget)
    batch = budget.plan([frame.count_units(), several(frame, keys=["a", "b"])], rho=0.5)
    drawn = [d for plan in batch._plans for d in plan.noises]
    assert float(sum(d.rho for d in drawn)) == pytest.approx(0.5, rel=1e-9)
    assert sum(d.rho for d in drawn) <= Fraction(1, 2)
    batch.release()
    assert budget.spent.rho == 0.5


def test_a_batch_that_cannot_be_is_refused():
    budget, other = dp.Budget(epsilon=1), dp.Budget(epsilon=1)
    frame = framed(budget)
    for wrong in ([], [3], [framed(other).count_units()]):
        with pytest.raises(errors.InvalidArgument):
            budget.plan(wrong, epsilon=1)
    with pytest.raises(errors.InvalidArgument, match="shares"):
        budget.plan([frame.count_units()], epsilon=1, shares=[1, 2])
    with pytest.raises(errors.InvalidPrice):
        budget.plan([frame.count_units()], rho=1)
    with pytest.raises(errors.DeltaRequired):
        budget.plan([several(frame)], epsilon=1)
    rows = pl.DataFrame({"x": [1]})
    mixed = [frame.count_units(), dp.protect(rows, unit=dp.Rows(1)).count()]
    with pytest.raises(errors.BudgetMismatch, match="one unit"):
        budget.plan(mixed, epsilon=1).release()
    with pytest.raises(errors.BudgetExceeded):
        budget.plan([frame.count_units()], epsilon=2).release()
    with pytest.raises(errors.UnsupportedOperation, match="Auto"):
        budget.plan([frame.group_by("city", keys=["a"], limits=dp.Auto()).count()], epsilon=1)
    assert budget.spent.epsilon == 0


# Statements and exports


# too few units: it is about the price
@pytest.mark.filterwarnings("ignore:The released table is empty")
def test_the_statement_has_what_a_reviewer_asks_for(tmp_path):
    budget = Ledger(tmp_path / "study.sqlite").budget("visits", epsilon=3, delta=1e-5)
    out = several(framed(budget)).release(epsilon=1, delta=1e-6, noise="laplace", name="by city")
    report = out.report()
    for words in (
        "ε = 1, δ = 1e-06", "approximate differential privacy", "unit 'id' joins or leaves",
        "enforced", "[0, 10]",
        "laplace", "threshold", "Accountant gdp", "ε = 1, δ = 1e-06 of ε = 3, δ = 1e-05 is spent",
        "2 more like the last fit", "'by city'",
        "Central model", "polars", "800-226", "Not covered", "bias",
    ):  # fmt: skip
        assert words in report, words
    items = json.loads(report.to_json())
    assert items["guarantee"]["epsilon"] == 1
    assert items["budget"]["remaining"] == {"epsilon": 2.0, "delta": 9e-6}
    assert items["implementation"]["versions"]["dpframe"] == "0.1.0"
    assert {m["column"] for m in items["mechanisms"]} == {"n", "s", "m.sum", "m.count"}
    assert "<script" not in report.to_html()
    assert report.to_html() == report._repr_html_()


def test_a_statement_in_html_is_escaped(tmp_path):
    table = pl.DataFrame({"id": [1], "<img src=x>": [1.0]})
    frame = dp.protect(table, unit="id", budget=dp.Budget(epsilon=9))
    out = frame.sum("<img src=x>", bounds=(0, 1), max_rows=1).release(epsilon=1, name="<b>")
    assert "<img" not in out.report().to_html()
    assert "<b>" not in out.report().to_html().replace("<p><b>", "")


def test_a_statement_in_rho_says_what_it_implies():
    out = framed(dp.Budget(rho=1)).count_units().release(rho=0.5)
    items = json.loads(out.report().to_json())
    assert items["guarantee"]["implies"][0]["epsilon"] == pytest.approx(5.2215, abs=1e-4)
    assert "zero-concentrated" in out.report()


def test_exported_events_are_those_of_dp_accounting(tmp_path):
    """They are rebuilt by dp-accounting itself, and its accountant agrees with what was charged."""
    pytest.importorskip("dp_accounting")
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant

    ledger = Ledger(tmp_path / "study.sqlite")
    budget = ledger.budget("visits", epsilon=9, delta=1e-5)
    framed(budget).sum("x", bounds=(0, 10), max_rows=2).release(epsilon=0.5)
    framed(budget).count_units().release(epsilon=0.25)
    framed(budget).count_units().release(epsilon=1, delta=1e-6, noise="gaussian")

    def rebuilt(said):
        fields = {k: v for k, v in said.items() if k not in ("module_name", "class_name")}
        if "events" in fields:
            fields["events"] = [rebuilt(e) for e in fields["events"]]
        assert said["module_name"] == dp_event.__name__
        return getattr(dp_event, said["class_name"])(**fields)

    event = rebuilt(json.loads(ledger.export("dp_accounting"))["visits"])
    kinds = [type(e).__name__ for e in event.events]
    assert kinds == ["LaplaceDpEvent", "DiscreteLaplaceDpEvent", "GaussianDpEvent"]
    first = PLDAccountant().compose(event.events[0]).get_epsilon(1e-9)
    assert first == pytest.approx(0.5, rel=1e-3)
    assert PLDAccountant().compose(event).get_epsilon(1e-6) <= 1.75
