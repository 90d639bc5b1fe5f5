"""What releases put out, held against the ε that was claimed:
200,000 draws of each of two neighbouring tables.

One release of many groups is as many independent draws: each group holds a copy of the same
situation, each unit is in one group, and noise, thresholds and choices of the groups are
independent. So what is audited is one group's part, of which the claim of the whole release, with
max_groups=1, is that of one unit. The false-alarm rate is 1e-6 for each.
"""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.audit import audit
from dpframe.plan.statistics import Missing
from dpframe.release.pricing import choice_mechanisms, mechanisms
from statistics_table import shapes

DRAWS = 200_000
GROUPS = 20_000
KEYS = range(GROUPS)
# Units of a group: whose rows, and what they hold. The last unit joins or leaves; under replace it
# becomes another.
BASE, LAST, OTHER = [(0, [4]), (1, [9, 2])], (2, [15, 15]), (2, [0, 0])


def copies(units, groups=GROUPS):
    """A table with a copy of these units in every group."""
    rows = [(unit, value) for unit, values in units for value in values]
    g = np.repeat(np.arange(groups), len(rows))
    who, values = (np.tile(np.array(x, np.int64), groups) for x in zip(*rows, strict=True))
    return pl.DataFrame({"u": g * 10 + who, "g": g, "n": values, "x": values.astype(np.float64)})


def grouped(table, relation="add-remove", keys=KEYS, budget=None):
    budget = budget or dp.Budget(epsilon=1e6, delta=0.5)
    frame = dp.protect(table, unit="u", budget=budget, neighbors=relation)
    return frame.group_by("g", keys=keys, max_groups=1, max_rows_per_group=2)


def largest(table, relation):
    """The largest half of the groups that come out, which are not listed."""
    frame = dp.protect(
        table, unit="u", budget=dp.Budget(epsilon=1e6, delta=0.5), neighbors=relation
    )
    return frame.top_k("g", len(KEYS) // 2, max_groups=1, max_rows_per_group=2)


def lacking(table):
    """The table without values above 9."""
    return table.with_columns(pl.when(pl.col("x") <= 9).then(pl.col("x")).alias("x"))


def numbers(release):
    """The number of each group, also where noise hides it altogether."""
    return release.fill().table[release.table.columns[1]].to_numpy()


def found(release):
    """The number of each group, None where it is not in the table."""
    table = pl.DataFrame({"g": KEYS}, {"g": pl.Int64}).join(
        release.table, on="g", how="left", maintain_order="left"
    )
    return table[table.columns[1]].to_list()


def in_rounds(table, relation):
    """Which keys come out where no limit is typed."""
    frame = dp.protect(
        table, unit="u", budget=dp.Budget(epsilon=1e6, delta=0.5), neighbors=relation
    )
    out = frame.group_by("g").keys().release(epsilon=1.0, delta=0.02)
    return pl.Series(KEYS).is_in(out.table["g"].implode()).to_list()


def batch(table, relation, **price):
    """Two questions that are priced and released together: what they say of each group."""
    budget = dp.Budget(epsilon=1e6, delta=0.5)
    groups = grouped(table, relation, budget=budget)
    return np.stack(
        [
            numbers(r)
            for r in budget.plan([groups.count(), groups.sum("x", (0, 15))], **price).release()
        ],
        1,
    )


def parts(table, relation):
    """Two parts of a partition, each released at half of the price, which two
    parts of one unit cost together.
    """
    budget = dp.Budget(epsilon=1.0)
    made = dp.protect(table, unit="u", budget=budget).partition("n", keys=[2, 15], max_groups=2)
    asked = [
        part.group_by("g", keys=KEYS, max_groups=1, max_rows_per_group=2).count()
        for part in made.values()
    ]
    found = np.stack([numbers(query.release(epsilon=0.5)) for query in asked], 1)
    assert budget.remaining.epsilon == 0
    return found


ADD, REPLACE = ("add-remove", [*BASE, LAST], BASE), ("replace", [*BASE, LAST], [*BASE, OTHER])
RHO, FEW = 0.05, [0, 4, 15]
KINDS = {
    "count": (ADD, lambda t, r: numbers(grouped(t, r).count().release(epsilon=1.0)), 1.0, 0.0),
    "count, replace": (
        ("replace", [*BASE, LAST], [*BASE, (2, [0])]),
        lambda t, r: numbers(grouped(t, r).count().release(epsilon=1.0)),
        1.0,
        0.0,
    ),
    "sum": (
        ADD,
        lambda t, r: numbers(grouped(t, r).sum("x", (-5, 15)).release(epsilon=1.0)),
        1.0,
        0.0,
    ),
    "sum, replace": (
        REPLACE,
        lambda t, r: numbers(grouped(t, r).sum("x", (0, 15)).release(epsilon=1.0)),
        1.0,
        0.0,
    ),
    "sum of units": (
        ADD,
        lambda t, r: numbers(grouped(t, r).sum("x", unit_bounds=(0, 30)).release(epsilon=1.0)),
        1.0,
        0.0,
    ),
    "gaussian sum": (
        ADD,
        lambda t, r: numbers(
            grouped(t, r).sum("x", (0, 15)).release(epsilon=1.0, delta=1e-3, noise="gaussian")
        ),
        1.0,
        1e-3,
    ),
    "units": (
        ADD,
        lambda t, r: numbers(grouped(t, r).count_units().release(epsilon=1.0)),
        1.0,
        0.0,
    ),
    "different": (
        ADD,
        lambda t, r: numbers(grouped(t, r).n_unique("n").release(epsilon=1.0)),
        1.0,
        0.0,
    ),
    "mean": (
        ADD,
        lambda t, r: numbers(grouped(t, r).mean("x", (0, 15)).release(epsilon=2.0)),
        2.0,
        0.0,
    ),
    "std": (
        ("replace", [*BASE, (2, [0, 15])], [*BASE, (2, [7, 7])]),
        lambda t, r: numbers(grouped(t, r).std("x", (0, 15)).release(epsilon=2.0)),
        2.0,
        0.0,
    ),
    **{
        verb: (
            ADD,
            lambda t, r, shape=shape: numbers(grouped(t, r).agg(x=shape).release(epsilon=4.0)),
            4.0,
            0.0,
        )
        for verb, shape in shapes("x", (0, 15)).items()
    },
    "correlation": (
        ADD,
        lambda t, r: numbers(
            grouped(t, r).corr("x", "n", {"x": (0, 15), "n": (0, 15)}).release(epsilon=6.0)
        ),
        6.0,
        0.0,
    ),
    "missing values": (
        ADD,
        lambda t, r: numbers(
            grouped(lacking(t), r).agg(m=Missing(Fraction(1), "x")).release(epsilon=2.0)
        ),
        2.0,
        0.0,
    ),
    "weighted mean": (
        ADD,
        lambda t, r: numbers(
            grouped(t, r)
            .mean("x", (0, 15), weights="n", weight_bounds=(0, 15))
            .release(epsilon=2.0)
        ),
        2.0,
        0.0,
    ),
    "geometric mean": (
        ADD,
        lambda t, r: numbers(grouped(t, r).geometric_mean("x", (1, 15)).release(epsilon=2.0)),
        2.0,
        0.0,
    ),
    "median": (
        ADD,
        lambda t, r: numbers(grouped(t, r).median("n", (0, 15)).release(epsilon=1.0)),
        1.0,
        0.0,
    ),
    "quantiles of a tree": (
        ADD,
        lambda t, r: numbers(
            grouped(t, r).quantile("n", [0.25, 0.5, 0.75], (0, 15)).release(epsilon=1.0)
        ),
        1.0,
        0.0,
    ),
    "distribution function": (
        REPLACE,
        lambda t, r: numbers(grouped(t, r).cdf("n", [1, 7], (0, 15)).release(epsilon=1.0)),
        1.0,
        0.0,
    ),
    "maximum": (
        REPLACE,
        lambda t, r: numbers(grouped(t, r).max("n", (0, 15)).release(epsilon=1.0)),
        1.0,
        0.0,
    ),
    "most frequent": (
        ADD,
        lambda t, r: numbers(grouped(t, r).mode("n", FEW).release(epsilon=1.0)),
        1.0,
        0.0,
    ),
    "two most frequent": (
        REPLACE,
        lambda t, r: (
            grouped(t, r)
            .top_k("n", 2, FEW)
            .release(epsilon=1.0)
            .table["n"]
            .to_numpy()
            .reshape(-1, 2)
        ),
        1.0,
        0.0,
    ),
    "found keys": (
        ("add-remove", [(unit, [1]) for unit in range(4)], [(unit, [1]) for unit in range(3)]),
        lambda t, r: found(grouped(t, r, None).count_units().release(epsilon=1.0, delta=0.02)),
        1.0,
        0.02,
    ),
    "found keys, counts": (
        ADD,
        lambda t, r: found(grouped(t, r, None).count().release(epsilon=1.0, delta=0.02)),
        1.0,
        0.02,
    ),
    "largest of found keys": (
        ADD,
        lambda t, r: found(largest(t, r).release(epsilon=1.0, delta=0.02)),
        1.0,
        0.02,
    ),
    "keys in rounds": (
        ("add-remove", [(unit, [1]) for unit in range(9)], [(unit, [1]) for unit in range(8)]),
        in_rounds,
        1.0,
        0.02,
    ),
    "batch": (ADD, lambda t, r: batch(t, r, epsilon=1.0), 1.0, 0.0),
    "gaussian batch": (
        ADD,
        lambda t, r: batch(t, r, epsilon=1.0, delta=1e-3, noise="gaussian"),
        1.0,
        1e-3,
    ),
    "parts": (("add-remove", [*BASE, (2, [2, 2, 15, 15])], BASE), parts, 1.0, 0.0),
    "in ρ": (  # ρ-zCDP is (ρ + 2·√(ρ·log(1/δ)), δ)-DP: Bun and Steinke 2016, proposition 1.3
        ADD,
        lambda t, r: numbers(
            grouped(t, r, budget=dp.Budget(rho=1e6)).sum("x", (0, 15)).release(rho=RHO)
        ),
        RHO + 2 * math.sqrt(RHO * math.log(1e3)),
        1e-3,
    ),
}


def audited(kind, trials=DRAWS):
    (relation, units, others), release, epsilon, delta = KINDS[kind]
    table, neighbour = copies(units), copies(others)
    return audit(lambda t: release(t, relation), table, neighbour, epsilon, delta, trials)


# Quick is one release of each mechanism, of each rule for keys; the rest are their siblings.
_AT_LENGTH = (
    "different",
    "std",
    "geometric mean",
    "maximum",
    "two most frequent",
    "gaussian batch",
    "sum, replace",
)
_AT_LENGTH += ("count, replace", "units", "sum of units", "mean", "found keys")
# These take seconds. On small tables, by exact laws, `test_exhaustive` and `test_transcripts` ask
# about trees, keys in rounds, quotients, moments, batches and parts each time.
_AT_LENGTH += (
    "quantiles of a tree",
    "keys in rounds",
    "correlation",
    "weighted mean",
    *shapes("x", (0, 15)),
)
_AT_LENGTH += (
    "batch",
    "parts",
    "distribution function",
    "largest of found keys",
    "missing values",
    "in ρ",
)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=pytest.mark.long) if k in _AT_LENGTH else k for k in KINDS]
)
def test_no_release_tells_more_than_it_claims(kind, capsys):
    result = audited(kind)
    with capsys.disabled():
        print(
            f"\n  {kind}: ε is at least {result.lower:.3f}, claimed {result.claimed[0]:.3g}, δ "
            f"{result.claimed[1]:g}"
        )
    assert result.holds, result.verdict
    assert result.lower > 0.04 * result.claimed[0], "the audit has no power here"


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("kind", "part"), [("count", 2), ("gaussian sum", 2), ("found keys, counts", 4)]
)
def test_a_part_of_the_noise_is_found(kind, part, monkeypatch):
    """A half; or a quarter where keys have half of the price, of which half the
    noise would be missed now and then.
    """
    for name in ("rounded_laplace", "discrete_laplace", "rounded_gaussian"):
        real = getattr(mechanisms, name)
        monkeypatch.setattr(
            mechanisms, name, lambda scale, size, draw=real: draw(scale / part, size)
        )
    assert not audited(kind).holds


def test_a_choice_at_four_times_the_rate_is_found(monkeypatch):
    real = choice_mechanisms.permute_and_flip
    monkeypatch.setattr(
        choice_mechanisms, "permute_and_flip", lambda scores, rate: real(scores, 4 * rate)
    )
    (_, release, _, _), table = KINDS["median"], copies([(0, [0]), (1, [15]), (2, [15, 15])])
    neighbour = copies([(0, [0]), (1, [15])])
    assert not audit(lambda t: release(t, "add-remove"), table, neighbour, 1.0, 0.0, DRAWS).holds
