"""Partitions: parts compose in parallel, and no unit is in more parts than was said,
whatever is done to them later.
"""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpframe as dp
from dpframe import errors
from dpframe.budget import Ledger, Loss
from dpframe.budget.parts import PartName, opened, raised

KEYS = ["north", "south", "east", "west"]
CERTAIN = 1e9


def rows(units=40, seed=0):
    regions = [
        (u, KEYS[(u * 7 + i * (1 + u % 3) + seed) % 4])
        for u in range(units)
        for i in range(1 + u % 5)
    ]
    return pl.DataFrame(
        regions, schema={"id": pl.Int64, "region": pl.String}, orient="row"
    ).with_columns(x=1.0)


def parted(budget, table=None, groups=1, unit="id"):
    return dp.protect(rows() if table is None else table, unit=unit, budget=budget).partition(
        "region", KEYS, groups
    )


def spent(frame, epsilon):
    frame.count_units().release(epsilon=epsilon)


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "study.sqlite")


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_the_dearest_part_is_charged_times_max_groups(ledger, groups):
    budget = ledger.budget("visits", epsilon=10)
    parts = parted(budget, groups=groups)
    spent(parts["north"], 0.5)
    assert budget.spent.epsilon == 0.5 * groups
    for key in ("south", "east"):
        spent(parts[key], 0.5)
    assert budget.spent.epsilon == 0.5 * groups
    spent(parts["south"], 0.25)
    assert budget.spent.epsilon == 0.75 * groups
    spent(dp.protect(rows(), unit="id", budget=budget), 1)  # the whole table comes on top
    assert budget.spent.epsilon == 0.75 * groups + 1
    spent(parts["north"], 0.25)
    assert budget.spent.epsilon == 0.75 * groups + 1
    again = parted(ledger.budget("visits"), groups=groups)
    spent(again["west"], 0.75)
    assert budget.spent.epsilon == 1.5 * groups + 1  # another call, another partition
    assert sum(c.epsilon for c in budget.history()) == pytest.approx(budget.spent.epsilon)
    ledger.verify()


def test_epsilon_delta_and_rho_each_have_their_own_largest_part():
    parts = opened({}, "p", 3, "")
    total = Loss(0, 0, 0)
    for key, loss in [
        ("a", Loss(0, 1, 5)),
        ("b", Loss(0, 4, 2)),
        ("a", Loss(0, 1, 0)),
        ("b", Loss(0, 0, 4)),
    ]:
        added, parts = raised(parts, PartName("p", key), loss)
        total += added
    assert total == Loss(0, 12, 18)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 50), st.integers(0, 50)), max_size=30),
    st.integers(1, 4),
)
def test_what_is_charged_is_the_largest_sum_in_any_order(charges, groups):
    parts, total, sums = opened({}, "p", groups, ""), Loss(0, 0), {}
    for key, epsilon, delta in charges:
        added, parts = raised(parts, PartName("p", str(key)), Loss(epsilon, delta))
        assert Loss(0, 0) <= added
        total += added
        sums[key] = sums.get(key, Loss(0, 0)) + Loss(epsilon, delta)
    largest = [
        max((getattr(s, u) for s in sums.values()), default=0)
        for u in ("exact_epsilon", "exact_delta")
    ]
    assert total == Loss(groups * largest[0], groups * largest[1])


def present(frame, units):
    """Which units are in a frame, without noise to speak of:
    one release, by a copy of the identifier.
    """
    frame = frame.with_columns(who=dp.col("id").cast("string"))
    grouped = frame.group_by("who", keys=[str(u) for u in range(units)], max_groups=1)
    return grouped.count_units().release(epsilon=CERTAIN).table["count_units"].to_list()


def in_parts(frames):
    """How many of the parts each unit is in."""
    return dict(enumerate(map(sum, zip(*(present(frame, 12) for frame in frames), strict=True))))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_no_unit_is_in_more_parts_than_was_said(ledger, groups):
    budget = ledger.budget("visits", epsilon=1e14)
    frames = list(parted(budget, groups=groups).values())
    found = in_parts(frames)
    has = {u: rows().filter(pl.col("id") == u)["region"].n_unique() for u in range(12)}
    assert found == {u: min(groups, has[u]) for u in range(12)}


def test_what_is_done_to_a_part_later_moves_no_unit_to_another(ledger):
    """The rows that a unit has in its chosen part are filtered away:
    it is then in none, not in its next one.
    """
    budget = ledger.budget("visits", epsilon=1e14)
    table = pl.DataFrame({"id": [1, 1], "region": ["north", "south"], "x": [1.0, 2.0]})
    parts = parted(budget, table)
    plain = {k: parts[k].count_units().release(epsilon=CERTAIN).value for k in ("north", "south")}
    assert sum(plain.values()) == 1
    (chosen,) = [k for k, n in plain.items() if n]
    value = {"north": 1.0, "south": 2.0}[chosen]
    later = {
        k: parts[k].filter(dp.col("x") != value).count_units().release(epsilon=CERTAIN).value
        for k in plain
    }
    assert sum(later.values()) == 0
    rewritten = {
        k: parts[k]
        .with_columns(region=dp.lit("south"))
        .count_units()
        .release(epsilon=CERTAIN)
        .value
        for k in plain
    }
    assert rewritten == plain


def test_the_choice_of_one_partition_never_changes(ledger):
    frames = list(parted(ledger.budget("visits", epsilon=1e14)).values())
    first = [present(frame, 20) for frame in frames]
    assert [present(frame, 20) for frame in frames] == first


def test_partitions_that_were_opened_apart_add_up_whatever_they_are_of(ledger):
    """The rows of two tables with the same columns may be anybody's:
    only parts of one call are surely disjoint.
    """
    budget = ledger.budget("visits", epsilon=10)
    january = pl.DataFrame({"id": [1, 2, 3], "region": ["north", "north", "south"]})
    february = pl.DataFrame({"id": [1, 2, 3], "region": ["south", "south", "north"]})
    spent(parted(budget, january)["north"], 1)
    spent(parted(budget, february)["south"], 1)
    assert budget.spent.epsilon == 2
    spent(parted(budget, january)["south"], 1)
    assert budget.spent.epsilon == 3


def test_the_budget_of_a_part_pays_for_nothing_else():
    part = parted(dp.Budget(epsilon=1))["north"]
    with pytest.raises(errors.InvalidArgument, match="partition"):
        dp.protect(rows(), unit="id", budget=part.budget)
    with pytest.raises(errors.InvalidArgument, match="partition"):
        dp.set_budget(part.budget)


def test_other_keys_or_rows_before_it_are_another_partition(ledger):
    budget = ledger.budget("visits", epsilon=10)
    frame = dp.protect(rows(), unit="id", budget=budget)
    spent(frame.partition("region", KEYS)["north"], 1)
    spent(frame.partition("region", KEYS[:2])["south"], 1)
    assert budget.spent.epsilon == 2
    spent(frame.filter(dp.col("x") > 0).partition("region", KEYS)["south"], 1)
    assert budget.spent.epsilon == 3


def test_names_and_refusals_in_a_part(ledger):
    budget = ledger.budget("visits", epsilon=1)
    parts = parted(budget, groups=2)
    first = parts["north"].count_units().release(epsilon=0.25, name="north")
    again = parts["north"].count_units().release(epsilon=0.25, name="north")
    assert (again.value, again.cost.epsilon, budget.spent.epsilon) == (first.value, 0.25, 0.5)
    with pytest.raises(errors.ReleaseMismatch):
        parts["south"].count_units().release(epsilon=0.25, name="north")
    with pytest.raises(errors.BudgetExceeded):
        spent(parts["north"], 0.5)
    spent(parts["south"], 0.5)
    assert budget.remaining.epsilon == 0
    ledger.verify()


def test_without_identifiers_each_row_may_be_in_a_part_of_its_own():
    table = rows().drop("id")
    one = parted(dp.Budget(epsilon=1), table, 1, dp.Rows(1))
    spent(one["north"], 1)
    spent(one["south"], 1)
    with pytest.raises(errors.InvalidArgument, match="max_groups=3"):
        parted(dp.Budget(epsilon=1), table, 1, dp.Rows(3))
    budget = dp.Budget(epsilon=3)
    spent(parted(budget, table, 3, dp.Rows(3))["north"], 1)
    assert budget.remaining.epsilon == 0


def test_in_memory_and_in_rho():
    budget = dp.Budget(rho=1, delta=1e-5)
    parts = parted(budget, groups=2)
    for key in KEYS:
        parts[key].count_units().release(rho=0.25)
    assert budget.spent.rho == 0.5


REFUSED = [
    (lambda f: f.partition("region", [], 1), errors.InvalidArgument),
    (lambda f: f.partition("region", ["north", None]), errors.InvalidArgument),
    (lambda f: f.partition("region", None), errors.InvalidArgument),
    (lambda f: f.partition("region", KEYS, 0), errors.InvalidArgument),
    (lambda f: f.partition("x", [1.0]), errors.WrongType),
    (lambda f: f.partition("nope", KEYS), errors.UnknownColumn),
    (lambda f: f.partition("id", [1, 2]), errors.UnsupportedOperation),
    (
        lambda f: f.partition("region", KEYS)["north"].partition("region", KEYS),
        errors.UnsupportedOperation,
    ),
]


@pytest.mark.parametrize(("call", "error"), REFUSED)
def test_what_cannot_be_parted_is_refused(call, error):
    budget = dp.Budget(epsilon=1)
    with pytest.raises(error):
        call(dp.protect(rows(), unit="id", budget=budget))
    assert budget.spent.epsilon == 0


def test_replace_and_batches_of_distributions_are_refused():
    with pytest.raises(errors.UnsupportedOperation, match="replace"):
        dp.protect(rows(), unit="id", budget=dp.Budget(epsilon=1), neighbors="replace").partition(
            "region", KEYS
        )
    with pytest.raises(errors.UnsupportedOperation, match="pld"):
        parted(dp.Budget(epsilon=1, delta=1e-5, accountant="pld"))
    with pytest.raises(errors.BudgetRequired):
        dp.protect(rows(), unit="id").partition("region", KEYS)


def test_an_allowance_is_told_that_the_whole_budget_can_be_partitioned():
    budget = dp.Budget(epsilon=2)
    rows = pl.DataFrame({"u": [1, 2], "region": ["north", "south"]})
    frame = dp.protect(rows, unit="u", budget=budget.allocate(nights=2, epsilon=1))
    with pytest.raises(
        errors.UnsupportedOperation, match="an Allowance cannot count parts in parallel"
    ) as refused:
        frame.partition("region", keys=["north", "south"])
    assert "budget=budget).partition('region', keys=[...])" in str(refused.value)
    assert "group_by('region'" in str(refused.value)
    assert set(
        dp.protect(rows, unit="u", budget=budget).partition("region", keys=["north", "south"])
    ) == {
        "north",
        "south",
    }
