"""The dataframe layer stands on the framework: for three questions the chain of transformations has the same map.

Each question is asked of a frame and built from parts of `dpframe.theory`. The totals of a table, their sensitivity and
the price of the release are compared; each chain is held against brute force in `transformations/test_units.py`.
"""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpframe as dp
import dpframe.theory as t

pytestmark = pytest.mark.filterwarnings("ignore:The released table is empty")  # twelve users reach no threshold

ROWS = t.VectorDomain(t.TupleDomain(t.AtomDomain(int), t.AtomDomain(str), t.AtomDomain(float)))
CITIES = ["Bonn", "Kiel", "Ulm"]
METRICS = {"l1": t.L1Distance(), "l2": t.L2Distance(), "linf": t.LinfDistance()}


def frame(seed, groups=2):
    """A table in which no unit has more groups than are kept, so that no hash decides."""
    rng = np.random.default_rng(seed)
    rows = []
    for unit in range(12):
        cities = rng.choice(CITIES, groups, replace=False)
        rows += [(unit, str(c), float(v)) for c in cities for v in rng.integers(-50, 150, rng.integers(1, 6))]
    return pd.DataFrame(rows, columns=["user", "city", "spend"])


def rows_of(table):
    return [(int(u), str(c), float(v)) for u, c, v in table.itertuples(index=False)]


def grouped(table, budget, keys, rows):
    protected = dp.protect(table, unit="user", budget=budget)
    return protected.group_by("city", max_groups=2, max_rows_per_group=rows, **({"keys": keys} if keys else {}))


@pytest.mark.parametrize("keys", [CITIES, CITIES[:1], None])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_grouped_count(seed, rows, keys):
    table = frame(seed)
    query = grouped(table, dp.Budget(epsilon=10, delta=1e-3), keys, rows).agg(n=dp.count())
    claim = query.sensitivity["n"]
    chain = {name: t.grouped_counts(ROWS, t.UnitDistance(), 2, rows, m, keys) for name, m in METRICS.items()}
    assert {name: part.map(1) for name, part in chain.items()} == {name: getattr(claim, name) for name in METRICS}
    assert chain["l1"](rows_of(table)) == query.exact_totals(table)["n"]


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3])
def test_the_price_of_a_grouped_count(epsilon):
    """The product's scale is l1/ε, and the chain with this scale costs ε."""
    table = frame(1)
    query = grouped(table, dp.Budget(epsilon=10), CITIES, 3).agg(n=dp.count())
    counts = t.grouped_counts(ROWS, t.UnitDistance(), 2, 3, keys=CITIES)
    scale = t.laplace_scale(query.sensitivity["n"].l1, Fraction(str(epsilon)))
    noisy = counts >> t.laplace(*counts.output_space, scale=scale)
    released = query.release(epsilon=epsilon, noise="laplace")
    assert noisy.check(1, released.cost.epsilon)
    assert noisy.map(1) == pytest.approx(released.cost.epsilon, rel=1e-15)
    assert released.noise["scale"].tolist() == [scale]
    assert sorted(noisy(rows_of(table))) == sorted(released.table["city"])


def test_a_grouped_count_in_zcdp():
    budget = dp.Budget(rho=1.0, delta=1e-6)
    query = grouped(frame(2), budget, CITIES, 3).agg(n=dp.count())
    counts = t.grouped_counts(ROWS, t.UnitDistance(), 2, 3, t.L2Distance(), CITIES)
    released = query.release(rho=0.125, noise="gaussian")
    noisy = counts >> t.gaussian(*counts.output_space, scale=released.noise["scale"][0])
    assert noisy.map(1) == pytest.approx(0.125, rel=1e-12)
    assert noisy.check(1, 0.125)


@pytest.mark.parametrize("seed", range(3))
def test_a_count_with_private_keys(seed):
    """Keys are chosen on the number of units: the optimal rule of the product is `select_keys` of the chain."""
    table = frame(seed)
    query = grouped(table, dp.Budget(epsilon=10, delta=1e-3), None, 3).agg(n=dp.count())
    units = t.grouped_units(ROWS, t.UnitDistance(), 2, t.L01InfDistance())
    claim = query.sensitivity["units"]
    assert units.map(1) == (claim.l0, claim.l1, claim.linf) == (2, 2, 1)
    assert units(rows_of(table)) == query.exact_totals(table)["units"]
    released = query.release(epsilon=1.0, delta=1e-6)
    noise = released.noise.set_index("column")
    assert noise.loc["units", "mechanism"] == "truncated_geometric"
    keys = units >> t.select_keys(*units.output_space, epsilon=0.5, delta=1e-6, groups=2)
    assert noise.loc["units", "scale"] == 2 / Fraction(1, 2)
    assert keys.check(1, (0.5, 1e-6))
    # The counts of the keys that are kept have the other half of ε; which keys these are is known by then.
    counts = t.grouped_counts(ROWS, t.UnitDistance(), 2, 3, keys=CITIES)
    noisy = counts >> t.laplace(*counts.output_space, scale=noise.loc["n", "scale"])
    both = t.compose([keys, t.pure_to_approx(noisy)])
    assert both.check(1, (released.cost.epsilon, released.cost.delta))


@pytest.mark.parametrize("delta", [1e-6, 1e-4])
def test_a_threshold_on_units_has_the_delta_of_the_product(delta):
    """The formula of the product's threshold, and the map of the chain with this threshold."""
    units = t.grouped_units(ROWS, t.UnitDistance(), 2, t.L01InfDistance())
    scale = t.laplace_scale(2, 0.5)
    least = t.threshold(delta, 2, "discrete_laplace", scale)
    chain = units >> t.laplace_threshold(*units.output_space, scale=scale, threshold=least)
    assert chain.check(1, (0.5, delta))
    lower = units >> t.laplace_threshold(*units.output_space, scale=scale, threshold=least - 1)
    assert not lower.check(1, (0.5, delta))


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_a_grouped_mean(seed, rows):
    """A mean is a sum, measured from the middle of its bounds, and a count; they get Laplace noise as a pair."""
    table = frame(seed)
    query = grouped(table, dp.Budget(epsilon=10), CITIES, rows).agg(m=dp.mean("spend", bounds=(0, 100)))
    centred = table.assign(spend=table["spend"].clip(0, 100) - 50)
    total, count = query.sensitivity["m.sum"], query.sensitivity["m.count"]
    space = ROWS, t.UnitDistance()
    for name, metric in METRICS.items():
        assert t.grouped_sums(*space, 2, rows, (-50, 50), metric, CITIES).map(1) == getattr(total, name)
        assert t.grouped_counts(*space, 2, rows, metric, CITIES).map(1) == getattr(count, name)
    pair = t.grouped_pairs(*space, 2, rows, (-50, 50), keys=CITIES)
    assert pair.map(1) == 2 * total.l1
    # The totals of a table: half the sum of a pair is h·N, half its difference is S. Where rows are over the limit the
    # two round at other places of 2^-20 and below.
    totals, exact = pair(rows_of(centred)), query.exact_totals(table)
    for city in CITIES:
        up, down = totals.get(f"+{city}", 0.0), totals.get(f"-{city}", 0.0)
        assert (up - down) / 2 == pytest.approx(float(exact["m.sum"].get(city, 0)), abs=1e-4)
        assert (up + down) / 100 == pytest.approx(float(exact["m.count"].get(city, 0)), abs=1e-4)
    released = query.release(epsilon=1.0)
    noise = released.noise.set_index("column")
    assert set(noise["mechanism"]) == {"paired_laplace"}
    noisy = pair >> t.laplace(*pair.output_space, scale=2 * noise.loc["m.sum", "scale"])
    assert noisy.check(1, 1.0)
    assert noisy.map(1) == pytest.approx(released.cost.epsilon, rel=1e-12)
