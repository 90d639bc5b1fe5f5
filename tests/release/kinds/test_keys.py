"""Keys that are found in rounds: what they cost, which are shown, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import stats

import dpframe as dp
from dpframe import engine, errors
from dpframe.plan import TotalKind
from dpframe.release.kinds.keys import GaussianRounds, keys_in_rounds
from dpframe.theory import gaussian_delta
from dpframe.theory.formulas.loss import ROUNDS, dropped_below, round_thresholds
from inside import question_of
from prices import priced

ONE = 2**20


def crowd(sizes, **more):
    """Each key with its number of units, one row each."""
    rows = [(f"{name}/{i}", name) for name, size in sizes.items() for i in range(size)]
    return pl.DataFrame(rows, {"u": pl.String, "g": pl.String}, orient="row").with_columns(**more)


def words(rows, **options):
    frame = dp.protect(rows, unit="u", budget=dp.Budget(epsilon=9, delta=0.1), **options)
    return frame.group_by("g").keys()


def mechanism(plan):
    (noise,) = plan.noises
    assert isinstance(noise.mechanism, GaussianRounds)
    return noise.mechanism


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_noise_and_thresholds_share_the_delta(epsilon, delta):
    query = words(crowd({"a": 3}))
    plan = priced(question_of(query), "epsilon", epsilon=epsilon, delta=delta)
    rounds, half = mechanism(plan), Fraction(str(delta)) / 2
    assert plan.cost.exact_epsilon == Fraction(str(epsilon))
    assert plan.cost.exact_delta == Fraction(str(delta))
    assert Fraction(
        gaussian_delta(Fraction(str(epsilon)), math.sqrt(ROUNDS) * ONE / rounds.scale)
    ) <= half * (1 + Fraction(1, 10**9))
    assert rounds.thresholds == round_thresholds(half, 100, ROUNDS, rounds.scale, ONE)


def test_rounds_add_up_in_rho():
    query = words(crowd({"a": 3}))
    plan = priced(question_of(query), "rho", rho=0.5, delta=1e-6)
    rounds = mechanism(plan)
    assert ROUNDS * ONE**2 / (2 * rounds.scale**2) == pytest.approx(0.5)
    assert Fraction(plan.noises[0].rho) <= Fraction(1, 2)
    assert plan.cost.rho == 0.5
    assert rounds.thresholds == round_thresholds(Fraction(1, 10**6), 100, ROUNDS, rounds.scale, ONE)
    (event,) = plan.events
    assert event["fields"]["noise_multiplier"] == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_common_keys_are_shown_without_any_limit(kind):
    rows = crowd({"rare": 1, "common": 400, "often": 300})
    query = words(rows if kind == "polars" else rows.to_pandas())
    assert question_of(query).threshold.kind == TotalKind.KEY_WEIGHTS
    assert list(query.sensitivity) == ["weights"]
    assert len(query.accuracy(epsilon=1, delta=1e-6)) == 0
    assert "in 8 rounds" in str(query.explain())
    assert "weights of units, in each of 8 rounds" in str(query.explain())
    out = query.release(epsilon=1, delta=1e-8, name="keys")
    assert out.to_polars().to_dict(as_series=False) == {"g": ["common", "often"]}
    assert (out.cost.epsilon, out.cost.delta) == (1.0, 1e-8)
    assert "Keys were found by noisy weights in 8 rounds (gaussian_rounds)" in out.report()
    again = query.release(epsilon=1, delta=1e-8, name="keys")
    assert again.to_polars().equals(out.to_polars())


def test_a_budget_in_rho_pays_for_rounds():
    budget = dp.Budget(rho=9, delta=0.1)
    query = (
        dp.protect(crowd({"rare": 1, "common": 400}), unit="u", budget=budget).group_by("g").keys()
    )
    assert query.release(rho=1, delta=1e-8).table["g"].to_list() == ["common"]
    assert budget.spent.rho == 1
    with pytest.raises(errors.UnsupportedOperation, match="max_groups=3"):
        query.release(epsilon=1, delta=1e-8)


def test_refusals_come_before_anything_is_charged():
    budget = dp.Budget(epsilon=9, delta=0.1)
    frame = dp.protect(crowd({"a": 30}), unit="u", budget=budget)
    query = frame.group_by("g").keys()
    with pytest.raises(errors.DeltaRequired, match="delta=1e-6"):
        query.release(epsilon=1)
    with pytest.raises(
        errors.UnsupportedOperation, match=r"group_by\('g', max_groups=3\)\.keys\(\)"
    ):
        query.release(epsilon=1, delta=1e-6, noise="laplace")
    with pytest.raises(errors.UnsupportedOperation, match="max_groups=3"):
        budget.plan([query, frame.count_units()], epsilon=1, delta=1e-6)
    with pytest.raises(errors.UnsupportedOperation, match="keys alone"):
        query.epsilon_for(error=3, delta=1e-6)
    with pytest.raises(errors.UnboundedContribution, match="max_groups=3"):
        frame.group_by("g").count_units()
    with pytest.raises(errors.UnboundedContribution, match="max_groups=3"):
        frame.group_by("g", other="rest").count_units()
    with pytest.raises(errors.UnboundedContribution, match="max_groups=3"):
        words(crowd({"a": 30}), neighbors="replace")
    assert budget.spent.epsilon == 0


def test_typed_limits_have_the_rule_that_they_had():
    frame = dp.protect(crowd({"a": 30}), unit="u")
    for limits in ({"max_groups": 2}, {"max_rows": 3}):
        assert not question_of(frame.group_by("g", **limits).keys()).in_rounds
    with pytest.raises(errors.UnboundedContribution, match="max_groups=3, max_rows_per_group=2"):
        frame.group_by("g", max_rows_per_group=2)
    assert question_of(frame.group_by("g").keys()).in_rounds
    assert not question_of(
        dp.protect(crowd({"a": 30}), unit=dp.Rows(1)).group_by("g").keys()
    ).in_rounds


def test_an_empty_table_has_no_keys_and_says_so():
    with pytest.warns(errors.DpFrameWarning, match="no key of 'g' reached the threshold"):
        out = words(crowd({"a": 2}).clear()).release(epsilon=1, delta=1e-6)
    assert out.table.is_empty()


@pytest.mark.filterwarnings("ignore::dpframe.errors.DpFrameWarning")
@pytest.mark.parametrize(
    "statistic", [None, dp.mean("x", (0, 1)), dp.sum("x", (0, 1)), dp.count_units()]
)
def test_a_table_in_which_no_group_was_found_has_all_its_outputs(statistic):
    """With columns of intervals for the noise and for the population, none of which has a row."""
    frame = dp.protect(
        crowd({"a": 2}, x=pl.lit(1.0)), unit="u", max_rows=1, budget=dp.Budget(epsilon=9, delta=0.1)
    )
    more = {} if statistic is None else {"m": statistic}
    query = frame.group_by("g").agg(n=dp.count(), **more)
    for covers in ("noise", "population"):
        out = query.release(epsilon=1, delta=1e-9, ci=0.95, covers=covers)
        assert out.table.is_empty()
        assert out.accuracy().is_empty()
        assert all((repr(out), repr(out.report()), out.to_csv(), out._repr_html_(), out.to_latex()))


class Played:
    """The rounds with real noise for one key that each of `units` units has alone."""

    def __init__(self, plan):
        self.rounds = mechanism(plan)

    def share(self, units, times, draw):
        sums, live, out = np.zeros(times), np.ones(times, bool), np.zeros(times, bool)
        for number, threshold in enumerate(self.rounds.thresholds):
            sums += units + draw.normal(0, self.rounds.scale / ONE, times)
            passed = live & (sums >= threshold / ONE)
            out |= passed
            live &= ~passed & (sums >= dropped_below(self.rounds.thresholds, number) / ONE)
        return out.mean()


def test_keys_are_shown_as_often_as_the_rounds_say():
    """400 keys of each size in one release; false alarm below 1e-7.
    Noise of 0.8 times the scale is told apart.
    """
    sizes, number = (4, 8, 12, 16), 400
    query = words(crowd({f"{n}-{i}": n for n in sizes for i in range(number)}))
    shown = query.release(epsilon=2, delta=0.01).table["g"].to_list()
    plan = priced(question_of(query), "epsilon", epsilon=2, delta=0.01)
    played, draw = Played(plan), np.random.default_rng(3)
    kept = [sum(name.startswith(f"{n}-") for name in shown) for n in sizes]
    shares = [played.share(n, 200_000, draw) for n in sizes]
    assert (
        min(stats.binomtest(k, number, p).pvalue for k, p in zip(kept, shares, strict=True)) > 1e-8
    )
    assert 0.02 < shares[1] < 0.98
    near = [played.share(n + 3, 200_000, draw) for n in sizes]
    assert min(stats.binomtest(k, number, p).pvalue for k, p in zip(kept, near, strict=True)) < 1e-8


def test_weights_move_to_the_keys_that_are_still_in_play():
    """Each unit has one common key and one of ten others;
    when the common one is out, the others count in full.
    """
    rows = pl.DataFrame(
        [(u, g) for u in range(600) for g in ("common", f"other {u % 10}")],
        {"u": pl.Int64, "g": pl.String},
        orient="row",
    )
    query, readings = words(rows), []
    plan = priced(question_of(query), "epsilon", epsilon=1, delta=1e-6)

    def read(in_play):
        totals = engine.totals(question_of(query), 1, in_play)
        readings.append(
            dict(zip(totals.keys["g"].to_list(), totals.values[0].tolist(), strict=True))
        )
        return totals

    table = keys_in_rounds(plan, read)
    assert table["g"][0] == "common"
    assert readings[0]["other 3"] == 60 * math.isqrt(ONE**2 // 2)
    assert set(readings[1]) <= set(readings[0]) - {"common"}
    assert set(readings[1].values()) == {60 * ONE}


class Settled:
    """In place of noise: added to exact sums it notes the exact weights, and gives
    sums that were settled before.
    """

    __array_ufunc__ = None
    dtype = np.dtype(np.int64)

    def __init__(self, keys, number, before, settled):
        self.keys, self.number, self.before, self.settled, self.exact = (
            keys,
            number,
            before,
            settled,
            {},
        )

    def __len__(self):
        return 0

    def astype(self, kind, copy):
        return self

    def __radd__(self, sums):
        for key, total in zip(self.keys, sums.tolist(), strict=True):
            self.exact[key] = total - self.before.get(key, 0)
        return np.array([self.settled(key, self.number) for key in self.keys], np.int64)


def transcript(monkeypatch, rows, settled):
    """The released keys, and the exact weights of each round, where noisy
    sums are settled by key and round.
    """
    query, rounds, now = words(rows), [], []
    plan = priced(question_of(query), "epsilon", epsilon=1, delta=1e-6)

    def read(in_play):
        totals = engine.totals(question_of(query), 1, in_play)
        now[:] = totals.keys["g"].to_list() if in_play is None else in_play["k0"].to_list()
        return totals

    def draw(self, size):
        number = len(rounds)
        before = {key: settled(key, number - 1) for key in now} if number else {}
        rounds.append(Settled(list(now), number, before, settled))
        assert size == len(now)
        return rounds[-1]

    monkeypatch.setattr(GaussianRounds, "draw", draw)
    return set(keys_in_rounds(plan, read)["g"]), [noise.exact for noise in rounds]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(12))
def test_neighbours_with_the_same_noisy_sums_differ_by_a_length_of_one_in_each_round(
    monkeypatch, seed
):
    """What is in play follows from noisy sums, so both tables ask about the
    same shared keys in each round.
    """
    draw = np.random.default_rng(seed)
    rows = pl.DataFrame({"u": draw.integers(0, 6, 60), "g": draw.integers(0, 30, 60)})
    fewer = rows.filter(pl.col("u") != 3)
    thresholds = mechanism(
        priced(question_of(words(rows)), "epsilon", epsilon=1, delta=1e-6)
    ).thresholds
    heights = draw.integers(-thresholds[-1] // 9, thresholds[-1], (30, ROUNDS))

    def settled(key, number):
        return int(heights[key, number])

    (more_keys, more), (fewer_keys, less) = (
        transcript(monkeypatch, table, settled) for table in (rows, fewer)
    )
    shared, lengths = set(fewer["g"]), []
    assert more_keys & shared == fewer_keys
    for here, there in zip(more, [*less, *({} for _ in range(len(more) - len(less)))], strict=True):
        assert set(here) & shared == set(there)
        gaps = [here[key] - there[key] for key in there]
        lengths.append(sum(gap**2 for gap in gaps))
        new = [here[key] for key in here if key not in shared]
        assert max(new, default=0) <= ONE
        assert lengths[-1] + sum(weight**2 for weight in new) <= ONE**2
    assert max(lengths) > 0
