"""One row for all that a threshold suppresses: what is in it, and what it costs."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy import stats

import dpframe as dp
from dpframe import engine, errors
from dpframe.noise import keep_probability
from dpframe.release.answer import drawn_table
from dpframe.theory.formulas.loss import rest_scale
from dpframe.theory.formulas.sensitivity import Contribution, row_counts
from inside import numbers_of, question_of
from prices import Price, noise_plan
from tiers import in_turn

OTHER = "(other)"
SCHEMA = {"u": pl.Int64, "g": pl.String, "x": pl.Int64}
GROUPS = ("a", "b", "c")


def protect(rows, unit="u", **options):
    table = pl.DataFrame(rows, SCHEMA, orient="row") if isinstance(rows, list) else rows
    return dp.protect(table, unit=unit, budget=dp.Budget(epsilon=1e12, delta=0.9), **options)


# The bound


def exact(query, shown):
    """The totals of all groups that are not shown, before noise:
    what the row of suppressed groups is made of.
    """
    raw = engine.totals(question_of(query), 1)
    hidden = [i for i, key in enumerate(raw.keys["g"].to_list()) if key not in shown]
    read = {
        p.total.key: sum(values[hidden].tolist())
        for p, values in zip(question_of(query).read, raw.values, strict=True)
    }
    alone = {p.names: p.total for p in question_of(query).allotments if p.total.collects}
    found = {p.names: p.total.key for p in question_of(query).read}
    return {
        names: read[found[tuple(n.removesuffix(".other") for n in names)]] for names in alone
    }, alone


def units_of(most):
    """What one unit may own: up to so many rows in three groups, with a value of -2 or 3."""
    places = list(itertools.product(GROUPS, (-2, 3)))
    return [
        rows
        for size in range(1, most + 1)
        for rows in itertools.combinations_with_replacement(places, size)
    ]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("relation", "unit"), in_turn(["add-remove", "replace"], ["u", dp.Rows(2)])
)
def test_whatever_is_suppressed_one_unit_moves_its_total_by_no_more_than_charged(relation, unit):
    """Every unit beside another one, every set of released keys:
    the distance is within the claim, and reaches it.
    """
    limits = (
        {}
        if isinstance(unit, dp.Rows)
        else {"max_groups": 2, "max_rows_per_group": 2, "max_rows": 3}
    )

    def asked(units):
        rows = [(i, *row) for i, owned in units for row in owned]
        grouped = protect(rows, unit, neighbors=relation).group_by("g", **limits, other=OTHER)
        return grouped.agg(
            n=dp.count(), s=dp.sum("x", (-2, 3)), m=dp.mean("x", (-2, 3)), k=dp.count_units()
        )

    keeper = (0, (("a", 3), ("b", -2)))
    owned = (
        units_of(2)
        if isinstance(unit, dp.Rows)
        else [*units_of(2), *units_of(3)[-20:], (("a", 3),) * 4]
    )
    owned = owned[:: 1 if relation == "add-remove" else 3]
    rivals = (
        [()]
        if relation == "add-remove"
        else [rows for rows in owned[-4:] if len(rows) == len(owned[-1])]
    )
    if isinstance(unit, dp.Rows) and relation == "replace":
        owned = [rows for rows in owned if len(rows) == len(rivals[0])]
    worst: dict[tuple[str, ...], Fraction] = {}
    for rows, rival in itertools.product(owned, rivals):
        one, two = asked([keeper, (1, rows)]), asked([keeper, (2, rival)])
        for shown in ((), ("a",), ("b", "c")):
            mine, claims = exact(one, shown)
            theirs, _ = exact(two, shown)
            for names, claim in claims.items():
                moved = abs(mine[names] - theirs[names]) / claim.sensitivity.exact_l1
                assert claim.sensitivity.l0 == 1
                assert claim.sensitivity.exact_l1 == claim.sensitivity.exact_linf
                worst[names] = max(worst.get(names, Fraction(0)), moved)
    assert all(moved <= 1 for moved in worst.values())
    assert max(worst.values()) >= (1 if relation == "add-remove" else Fraction(1, 2))


def geometric(scale, centre, grid):
    """The law of a discrete Laplace number around a centre."""
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(grid - centre)


def released_law(units, price, grid):
    """For each set of released keys its probability, and the laws of
    the numbers that come with it.
    """
    frame = protect([(i, g, 0) for i, groups in enumerate(units) for g in groups])
    query = frame.group_by("g", max_groups=2, max_rows_per_group=2, other=OTHER).count()
    plan = noise_plan(question_of(query), price, "laplace")
    count, keys, rest = plan.noises
    assert [d.label for d in plan.noises] == [
        "discrete_laplace",
        "truncated_geometric",
        "discrete_laplace",
    ]
    assert count.scale == rest.scale == pytest.approx(4 / 1.5)
    raw = engine.totals(question_of(query), 1)
    rows, found = (dict(zip(raw.keys["g"].to_list(), v.tolist(), strict=True)) for v in raw.values)
    laws = {}
    for shown in itertools.product((False, True), repeat=2):
        chance = 1.0
        for group, kept in zip("ab", shown, strict=True):
            keep = (
                sum(keep_probability(found.get(group, 0), 1 / Fraction(keys.scale), plan.start)) / 2
            )
            chance *= keep if kept else 1 - keep
        numbers = [
            geometric(count.scale, rows.get(g, 0), grid)
            for g, kept in zip("ab", shown, strict=True)
            if kept
        ]
        left = sum(rows.get(g, 0) for g, kept in zip("ab", shown, strict=True) if not kept)
        laws[shown] = chance, [*numbers, geometric(rest.scale, left, grid)]
    return laws


def excess(mine, theirs, epsilon):
    """The δ that is needed at ε, exactly but for the ends of the grid."""
    total = 0.0
    for shown, (chance, numbers) in mine.items():
        one, two = np.array(chance), np.array(theirs[shown][0])
        for a, b in zip(numbers, theirs[shown][1], strict=True):
            one, two = np.multiply.outer(one, a), np.multiply.outer(two, b)
        total += float(np.maximum(one - math.exp(epsilon) * two, 0).sum())
    return total


def test_keys_numbers_and_the_rest_together_cost_what_is_charged():
    """The exact law of the whole release on all tables of up to two units in two
    groups, and every unit that leaves.
    """
    price, grid = Price(Fraction(3), Fraction(1, 20)), np.arange(-25, 30)
    shapes = [("a",), ("b",), ("a", "b"), ("a", "a"), ("a", "a", "b", "b")]
    laws, worst, careless = {}, 0.0, 0.0
    for others in [(), *((s,) for s in shapes)]:
        for unit in shapes:
            for units in (others, (*others, unit)):
                if units not in laws:
                    laws[units] = released_law(units, price, grid)
            mine, theirs = laws[(*others, unit)], laws[others]
            worst = max(worst, excess(mine, theirs, 3), excess(theirs, mine, 3))
            careless = max(careless, excess(mine, theirs, 1.4), excess(theirs, mine, 1.4))
    assert worst <= 1 / 20 + 1e-9
    assert worst > 0.049  # a group of one unit's own is shown as often as δ allows
    assert careless > 0.09  # negative control: it is not paid for many times over


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(
    ("groups", "per_group", "rows"), [(3, 2, 4), (2, 3, 5), (4, 1, 4), (3, 3, 7), (1, 4, 4)]
)
def test_gaussian_noise_on_the_rest_costs_nothing_beside_that_of_the_groups(
    relation, groups, per_group, rows
):
    """Every whole change that the limits allow, every set of released groups:
    the squares stay within what is paid.
    """
    bound = row_counts(Contribution(groups, per_group, rows), relation)
    wide = Fraction(rest_scale(bound, 1.0, normal=True)) ** 2
    size, worst, narrow = int(bound.exact_linf), Fraction(0), Fraction(0)
    for change in itertools.combinations_with_replacement(range(-size, size + 1), min(bound.l0, 5)):
        if sum(map(abs, change)) > bound.exact_l1:
            continue
        for shown in range(2 ** len(change)):
            seen = [d for i, d in enumerate(change) if shown >> i & 1]
            rest = sum(change) - sum(seen)
            paid = sum(d * d for d in seen)
            worst = max(worst, (paid + rest**2 / wide) / bound.l2_squared)
            narrow = max(narrow, (paid + Fraction(rest) ** 2) / bound.l2_squared)
    assert worst <= 1
    assert worst > Fraction(99, 100) or min(bound.l0, 5) < bound.l0
    assert narrow > 1 or groups == 1  # negative control: the scale of the groups would not do


@pytest.mark.long
def test_the_rest_is_drawn_with_noise_of_its_own():
    """1,200 draws of one small table, 19 or more in each bin:
    false alarm below 1e-6; half the scale is told apart.
    """
    frame = protect([(i, "ab"[i % 2], 0) for i in range(7)])
    query = frame.group_by("g", max_groups=1, max_rows_per_group=2, other=OTHER).count()
    plan = noise_plan(question_of(query), Price(Fraction(3), Fraction(1, 10**9)), "laplace")
    raw = engine.totals(question_of(query), 1)
    drawn = [drawn_table(question_of(query), plan, raw)[0].rows()[-1] for _ in range(1200)]
    assert {name for name, _ in drawn} == {OTHER}
    numbers, scale = np.array([n for _, n in drawn]), plan.noises[-1].scale
    assert scale == pytest.approx(4 / 3)
    low, high = 2, 12  # five from the middle, and all beyond
    seen = np.bincount(np.clip(numbers, low, high) - low, minlength=high - low + 1)
    wide = np.arange(-400, 415)
    for guess, fits in ((scale, True), (scale / 2, False)):
        law = np.bincount(np.clip(wide, low, high) - low, weights=geometric(guess, 7, wide))
        p = stats.chisquare(seen, law / law.sum() * len(numbers)).pvalue
        assert (p > 1e-8) == fits


# What is in it


def crowd():
    """A group of 300 units, one of 200, and 300 groups of one."""
    rows = [(i, "big", i % 10) for i in range(300)] + [(1000 + i, "mid", 5) for i in range(200)]
    return rows + [(2000 + i, f"small{i}", 8) for i in range(300)]


@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow"])
def test_suppressed_groups_are_added_up(kind):
    table = pl.DataFrame(crowd(), SCHEMA, orient="row")
    frame = protect(
        {"pandas": table.to_pandas, "pyarrow": table.to_arrow}.get(kind, lambda: table)()
    )
    query = frame.group_by("g", max_groups=1, max_rows_per_group=1, other=OTHER).agg(
        n=dp.count(),
        s=dp.sum("x", (0, 10)),
        m=dp.mean("x", (0, 10)),
        v=dp.var("x", (0, 10)),
        u=dp.count_units(),
    )
    out = query.release(epsilon=60, delta=1e-12).to_polars()
    assert out.columns == ["g", "n", "s", "m", "v", "u"]
    assert out["g"].to_list() == ["big", "mid", OTHER]
    assert out["n"].to_list() == pytest.approx([300, 200, 300], abs=20)
    assert out["s"].to_list() == pytest.approx([1350, 1000, 2400], abs=150)
    assert out["m"].to_list() == pytest.approx([4.5, 5, 8], abs=1)
    assert out["v"].to_list() == pytest.approx([8.28, 0, 0], abs=2)


def test_the_row_is_there_whatever_the_data_holds():
    frame = protect(pl.DataFrame(schema=SCHEMA))
    out = (
        frame.group_by("g", max_groups=1, other=OTHER)
        .agg(u=dp.count_units())
        .release(epsilon=1, delta=1e-6)
    )
    assert out.table["g"].to_list() == [OTHER]
    out = frame.group_by("g", "x", max_groups=1, max_rows_per_group=9, other=(OTHER, None)).count()
    assert out.release(epsilon=1, delta=1e-6).table.select("g", "x").rows() == [(OTHER, None)]


def test_a_group_that_has_the_label_is_in_the_row():
    """By the rule, not by the data: it has 300 units and is never released by itself."""
    rows = [(i, "big" if i % 2 else OTHER, 1) for i in range(600)]
    frame = protect(rows)
    out = (
        frame.group_by("g", max_groups=1, max_rows_per_group=1, other=OTHER)
        .count()
        .release(epsilon=90, delta=1e-3)
    )
    assert out.table["g"].to_list() == ["big", OTHER]
    assert out.table["count"].to_list() == pytest.approx([300, 300], abs=10)
    by = frame.group_by("g", "x", max_groups=1, max_rows_per_group=1, other=(OTHER, 2)).count()
    both = by.release(epsilon=90, delta=1e-3).table
    assert both.select("g", "x").rows() == [(OTHER, 1), ("big", 1), (OTHER, 2)]


def test_labels_have_the_type_of_their_column():
    rows = protect(crowd())
    numbers = (
        rows.group_by("x", max_groups=1, max_rows_per_group=1, other=-1)
        .count()
        .release(epsilon=9, delta=1e-3)
    )
    assert numbers.table.schema["x"] == pl.Int64
    assert numbers.table["x"][-1] == -1
    nothing = rows.group_by("x", max_groups=1, max_rows_per_group=1, other=(None,)).count()
    assert nothing.release(epsilon=9, delta=1e-3).table["x"][-1] is None
    level = protect(
        pl.DataFrame(crowd(), SCHEMA, orient="row").with_columns(
            e=pl.lit("lo").cast(pl.Enum(["lo", "hi"]))
        )
    )
    mixed = level.group_by(
        "g", "e", max_groups=1, max_rows_per_group=1, other=(OTHER, None)
    ).count()
    assert mixed.release(epsilon=9, delta=1e-3).table.select("g", "e").rows()[-1] == (OTHER, None)


def test_tables_have_it_too():
    rows = [(i, "ab"[i % 2], i % 2) for i in range(400)] + [(1000, "c", 1)]
    frame = protect(rows)
    said = {"max_groups": 1, "max_rows_per_group": 1}
    bars = frame.histogram("g", **said, other=OTHER).release(epsilon=50, delta=1e-9)
    assert bars.table["g"].to_list() == ["a", "b", OTHER]
    cross = (
        frame.cast("x", "string")
        .crosstab("g", "x", **said, other=OTHER)
        .release(epsilon=50, delta=1e-9)
    )
    assert cross.table.columns == ["g", "0", "1", OTHER]
    assert cross.table["g"].to_list() == ["a", "b", OTHER]
    assert cross.table[OTHER].to_list() == [None, None, pytest.approx(1, abs=5)]
    assert cross.accuracy().height == 3
    with pytest.raises(errors.UnsupportedOperation, match="margins"):
        frame.cast("x", "string").crosstab("g", "x", **said, other=OTHER, margins=True)


# Beside listed keys


CELLS = {"u": [0, 1, 2, 3, 4], "g": ["a", "b", "c", None, "a"], "x": [1, 2, None, 1, 7]}
LISTED = {
    "one column": (("g",), ["a", "b"], "z", ["z"]),
    "a null that is listed": (("g",), ["a", None], "z", ["z"]),
    "a number": (("x",), [1, 2], -1, [-1]),
    "every combination": (("g", "x"), {"g": ["a", "b"], "x": [1, 2]}, ("z", -1), ["z", -1]),
    "some combinations": (("g", "x"), [("a", 1), ("b", 2), ("a", 2)], ("z", None), ["z", None]),
    "one label for both": (("g", "h"), [("a", "a"), ("b", "b")], "z", ["z", "z"]),
}


@pytest.mark.parametrize("case", LISTED)
def test_rows_that_no_listed_key_has_are_one_group(case):
    """Each row counts once: under its key if that is listed, else
    under the label, which is last.
    """
    by, keys, label, last = LISTED[case]
    table = pl.DataFrame(CELLS).with_columns(h=pl.col("g"))
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1e12), max_rows=1, max_groups=1)
    out = frame.group_by(*by, keys=keys, other=label).agg(n=dp.count()).release(epsilon=1e6).table
    assert list(out.rows()[-1][:-1]) == last
    every = frame.group_by(*by, keys=keys).agg(n=dp.count()).release(epsilon=1e6).table
    assert out.rows()[:-1] == every.rows()
    assert out["n"].sum() == table.height


def test_the_rest_of_listed_keys_has_the_limits_of_a_group():
    """One unit with rows in many groups that nobody listed is in one group:
    its limits are those of every other.
    """
    table = pl.DataFrame({"u": [1] * 40, "g": [f"g{i}" for i in range(40)], "x": [9.0] * 40})
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1e12))
    grouped = frame.group_by("g", keys=["a", "b"], other="z", max_groups=2, max_rows_per_group=3)
    query = grouped.agg(n=dp.count(), s=dp.sum("x", bounds=(0, 10)))
    assert query.release(epsilon=1e9).table.rows()[-1] == ("z", 3, pytest.approx(27, abs=0.01))
    without = frame.group_by("g", keys=["a", "b", "c"], max_groups=2, max_rows_per_group=3)
    said = without.agg(n=dp.count(), s=dp.sum("x", bounds=(0, 10)))
    assert query.sensitivity == said.sensitivity
    assert "do not count" not in str(query.explain())


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        (lambda f: f.group_by("g", keys=["a"], other="a"), errors.InvalidArgument),
        (lambda f: f.group_by("g", keys=["a"], other=1), errors.WrongType),
        (lambda f: f.group_by("g", "x", keys=[("a", 1)], other=("a", 1)), errors.InvalidArgument),
        (lambda f: f.group_by("g", "x", keys=[("a", 1)], other=("a",)), errors.InvalidArgument),
        (
            lambda f: f.group_by("g", keys=["a"], other="z", max_groups=1, max_rows=1).n_unique(
                "g"
            ),
            errors.InvalidArgument,
        ),
    ],
)
def test_a_label_that_does_not_fit_beside_listed_keys(asked, kind):
    with pytest.raises(kind):
        asked(dp.protect(pl.DataFrame(CELLS), unit="u"))


def test_tables_of_listed_keys_have_it_too():
    frame = dp.protect(
        pl.DataFrame(CELLS), unit="u", budget=dp.Budget(epsilon=1e12), max_rows=1, max_groups=1
    )
    bars = frame.histogram("g", keys=["a", "b"], other="z").release(epsilon=1e6)
    assert bars.table.rows() == [("a", 2), ("b", 1), ("z", 2)]
    keys = {"g": ["a", "b"], "x": [1, 2]}
    cross = (
        frame.crosstab("g", "x", keys=keys, other=("z", -1), margins=True)
        .release(epsilon=1e6)
        .table
    )
    assert cross.rows() == [
        ("a", 1, 0, None, 1),
        ("b", 0, 1, None, 1),
        ("z", None, None, 3, 3),
        ("All", 1, 1, 3, 5),
    ]


# What is said of it


def test_its_noise_and_its_errors_are_its_own():
    query = (
        protect(crowd())
        .group_by("g", max_groups=3, max_rows_per_group=2, other=OTHER)
        .agg(n=dp.count(share=2), m=dp.mean("x", (0, 10)))
    )
    assert query.sensitivity["n.other"] == dp.Sensitivity.of(l0=1, l1=6, l2_squared=36, linf=6)
    assert "together" in str(query.explain())
    assert "last row" in str(query.explain())
    before = query.accuracy(epsilon=3, delta=1e-6, assume_rows=100)
    assert before["column"].to_list() == ["n", "m", "n.other", "m.other"]
    assert query.epsilon_for(error=50, column="n", delta=1e-6) <= query.epsilon_for(
        error=50, delta=1e-6, assume_rows=100
    )
    out = query.release(epsilon=3, delta=1e-6)
    assert out.noise["column"].to_list()[-3:] == ["n.other", "m.sum.other", "m.count.other"]
    after = out.accuracy().filter(pl.col("column") == "n")
    last = before.filter(pl.col("column") == "n.other")["error"].item()
    first = before.filter(pl.col("column") == "n")["error"].item()
    assert after["error"].to_list() == [first] * (after.height - 1) + [last]
    assert last >= first
    assert out.accuracy()["error"].null_count() == 0
    assert "n.other" in out.report()
    assert out.nonnegative().round().with_ci().table["g"].to_list()[-1] == OTHER
    assert out._repr_html_()


@pytest.mark.parametrize(
    ("budget", "price"),
    [
        ({"epsilon": 9, "delta": 0.1}, {"epsilon": 8, "delta": 1e-10, "noise": "gaussian"}),
        ({"rho": 9, "delta": 0.1}, {"rho": 8, "delta": 1e-10}),
        ({"rho": 9, "delta": 0.1}, {"epsilon": 8, "delta": 1e-10}),
    ],
)
def test_it_is_paid_for_whatever_the_budget_counts(budget, price):
    budget = dp.Budget(**budget)
    frame = dp.protect(pl.DataFrame(crowd(), SCHEMA, orient="row"), unit="u", budget=budget)
    grouped = frame.group_by("g", max_groups=1, max_rows_per_group=1, other=OTHER)
    out = grouped.count().release(**price)
    assert out.table["g"].to_list() == ["big", "mid", OTHER]
    two = {d.allotment.names: d for d in numbers_of(out).noise.noises}
    # one group of a unit: nothing is merged
    assert two[("count",)].scale == two[("count.other",)].scale
    assert out.table["count"][2] == pytest.approx(300, abs=40)


def test_in_a_batch_and_with_limits_chosen_inside():
    budget = dp.Budget(epsilon=90, delta=0.1, accountant="pld")
    frame = dp.protect(pl.DataFrame(crowd(), SCHEMA, orient="row"), unit="u", budget=budget)
    ask = frame.group_by("g", max_groups=1, max_rows_per_group=1, other=OTHER).count()
    (out,) = budget.plan([ask], epsilon=20, delta=1e-9).release()
    assert out.table["g"].to_list() == ["big", "mid", OTHER]
    auto = protect(crowd()).group_by("g", limits=dp.Auto(), other=OTHER).agg(n=dp.count())
    assert auto.release(epsilon=20, delta=1e-6).table["g"].to_list()[-1] == OTHER


def test_a_name_stands_for_the_label_too(tmp_path):
    budget = dp.Ledger(tmp_path / "study.sqlite").budget("b", epsilon=9, delta=1e-3)
    frame = dp.protect(pl.DataFrame(crowd(), SCHEMA, orient="row"), unit="u", budget=budget)

    def count(other):
        return frame.group_by("g", max_groups=1, max_rows_per_group=1, other=other).count()

    first = count(OTHER).release(epsilon=1, delta=1e-6, name="cities")
    assert (
        count(OTHER).release(epsilon=1, delta=1e-6, name="cities").table.rows()
        == first.table.rows()
    )
    assert budget.spent.epsilon == 1
    for label in ("rest", None):
        with pytest.raises(errors.ReleaseMismatch):
            count(label).release(epsilon=1, delta=1e-6, name="cities")


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda g: g("x", other=OTHER), errors.WrongType, r"'x' \(Int64\)"),
        (lambda g: g("g", other=3), errors.WrongType, "'g'"),
        (lambda g: g("g", other=(OTHER, OTHER)), errors.InvalidArgument, "one value"),
        (lambda g: g("g", "x", other=OTHER), errors.WrongType, "'x'"),
        (lambda g: g("g", other=OTHER).median("x", (0, 1)), errors.UnsupportedOperation, "median"),
        (lambda g: g("g", other=OTHER).n_unique("x"), errors.UnsupportedOperation, "n_unique"),
        (lambda g: g("g", other=OTHER).mode("x", [1, 2]), errors.UnsupportedOperation, "mode"),
        (lambda g: g("g", other=object()), errors.InvalidArgument, "object"),
    ],
)
def test_what_cannot_be_collected_is_refused_at_once(ask, error, words):
    frame = protect(crowd())
    with pytest.raises(error, match=words):
        ask(lambda *by, **said: frame.group_by(*by, max_groups=1, max_rows_per_group=1, **said))
