"""The exact δ of keys that are found in the data, from the exact law of their noise,
against the δ that is claimed.

One unit joins a table. In its own groups it is the only one, in shared groups others are too.
Before, its own groups do not exist, and what comes out about them is nothing; afterwards each is
shown with some probability. Where one unit is exchanged for another, the one that leaves may have
had groups of its own too. All probabilities here are computed from the textbook laws in ball
arithmetic, and with nothing of `dpframe.theory` or `dpframe.noise`.
"""

import itertools
import math

import polars as pl
import pytest
from flint import arb, ctx, fmpq

import dpframe as dp
from dpframe.budget import read_delta, read_epsilon
from inside import question_of
from prices import Price, noise_plan

ROWS = pl.DataFrame({"u": [1, 2, 3, 4], "g": ["a", "b", "a", "c"], "x": [1.0, 2.0, 3.0, 4.0]})
PRICES = [(1, 1e-6), (0.1, 1e-3), (3, 1e-9), (0.5, 0.05)]


@pytest.fixture(autouse=True)
def _precise():
    kept, ctx.prec = ctx.prec, 320
    yield
    ctx.prec = kept


def number(value):
    """A Fraction, a float or an integer as a ball."""
    top, bottom = value.as_integer_ratio()
    return arb(fmpq(top, bottom))


def tail(family, scale, k):
    """P[noise >= k] of the law that is drawn: rounded Laplace, rounded
    normal, or two-sided geometric.
    """
    if family == "discrete_laplace":
        ratio = (-1 / scale).exp()
        return ratio**k / (1 + ratio) if k >= 1 else 1 - ratio ** (1 - k) / (1 + ratio)
    half = arb(2 * k - 1) / 2
    if family == "gaussian":
        return (half / scale / arb(2).sqrt()).erfc() / 2
    return (-half / scale).exp() / 2 if k >= 1 else 1 - (half / scale).exp() / 2


def larger(*balls):
    return max(balls, key=lambda ball: float(ball.mid()))


def hockey_stick(first, second, epsilon):
    """Σ max(0, P - e^ε·Q) over outcomes."""
    return sum(
        (larger(p - epsilon.exp() * q, arb(0)) for p, q in zip(first, second, strict=True)), arb(0)
    )


def of_responses(losses):
    """Randomized responses of these ε together: the laws that are as bad as
    any pure mechanisms of these ε.
    """
    first, second = [arb(1)], [arb(1)]
    for loss in losses:
        yes = loss.exp() / (1 + loss.exp())
        first = [p * x for p in first for x in (yes, 1 - yes)]
        second = [q * x for q in second for x in (1 - yes, yes)]
    return first, second


def with_own(hidden, shared, epsilon):
    """One direction: own groups of who is there, and of who is not,
    are hidden with these chances.
    """
    (there, gone), (first, second) = hidden, shared
    return 1 - there + hockey_stick([there * p for p in first], [gone * q for q in second], epsilon)


def normal_profile(epsilon, mu):
    """δ of a normal law of variance 1 and one that is moved by μ."""
    root = arb(2).sqrt()
    return ((epsilon / mu - mu / 2) / root).erfc() / 2 - epsilon.exp() * (
        (epsilon / mu + mu / 2) / root
    ).erfc() / 2


def exact_delta(plan, ways, epsilon):
    """The largest exact δ over `ways`: rows in own groups of one unit, of
    the other, and in shared groups.
    """
    drawn = next(d for d in plan.noises if d.allotment is plan.decided_by)
    scale = number(drawn.scale)
    worst = shown_at_most = arb(0)
    for *owns, shared in ways:
        hidden = [arb(1), arb(1)]
        for i, own in enumerate(owns):
            for rows in own:
                hidden[i] *= 1 - tail(drawn.label, scale, plan.threshold - plan.least - rows)
        shown_at_most = larger(shown_at_most, 1 - hidden[0])
        if drawn.label == "gaussian":
            bounds = [
                (d.allotment.total.sensitivity, number(d.scale))
                for d in plan.noises
                if d.label != "none"
            ]
            square = sum(
                (
                    # of all measures in these groups
                    number(min(b.l2_squared, len(shared) * b.exact_linf**2)) / s**2
                    for b, s in bounds
                ),
                arb(0),
            )
            for there, gone in (hidden, hidden[::-1]):
                moved = (gone / there).log()
                seen = (
                    normal_profile(epsilon + moved, square.sqrt())
                    if shared
                    else larger(1 - (epsilon + moved).exp(), arb(0))
                )
                worst = larger(worst, 1 - there + there * seen)
        else:
            beside = (
                epsilon - number(drawn.allotment.total.sensitivity.exact_l1) / scale
            )  # what other measures may cost
            losses = [number(rows) / scale for rows in shared]
            losses += [beside] if beside > arb(2) ** -40 else []
            laws = of_responses(losses)
            worst = larger(
                worst, with_own(hidden, laws, epsilon), with_own(hidden[::-1], laws, epsilon)
            )
    return worst, shown_at_most


def ways_of_units(changed, relation):
    """Each unit counts once in a group, its own or a shared one;
    under "replace" one unit joins and another leaves.
    """
    joined = changed // 2 if relation == "replace" else changed
    return [
        ((1,) * own, (1,) * gone, (1,) * (changed - own - gone))
        for own in range(joined + 1)
        for gone in range(min(own, changed - joined) + 1)
    ]


def ways_of_rows(rows, relation):
    """`dp.Rows(k)`: k rows over groups in every way;
    under "replace" another unit's k rows leave in every way.
    """
    ways = [(own, rest) for n in range(rows + 1) for own in splits(n) for rest in splits(rows - n)]
    if relation == "add-remove":
        return [(own, (), rest) for own, rest in ways]
    return [(own, gone, (*rest, *left)) for own, rest in ways for gone, left in ways]


def splits(rows, most=None):
    """The ways to write a number as a sum."""
    most = rows if most is None else most
    if rows == 0:
        return [()]
    return [
        (first, *rest)
        for first in range(min(rows, most), 0, -1)
        for rest in splits(rows - first, first)
    ]


QUESTIONS = {
    "units": lambda f, m, k: f.group_by("g", max_groups=m).count_units(),
    "units beside rows": lambda f, m, k: f.group_by("g", max_groups=m, max_rows_per_group=k).agg(
        n=dp.count(), u=dp.count_units()
    ),
    "rows alone": lambda f, m, k: f.group_by("g", max_groups=m, max_rows_per_group=k).count(),
    "mean": lambda f, m, k: f.group_by("g", max_groups=m, max_rows_per_group=k).mean(
        "x", bounds=(0, 5)
    ),
    "mean beside units": lambda f, m, k: f.group_by("g", max_groups=m, max_rows_per_group=k).agg(
        x=dp.mean("x", bounds=(0, 5)), u=dp.count_units(share=3)
    ),
    "totals of units": lambda f, m, k: f.group_by("g", max_groups=m).sum("x", unit_bounds=(0, 5)),
    "keys": lambda f, m, k: f.group_by("g", max_groups=m).keys(),
    "large groups": lambda f, m, k: f.group_by("g", max_groups=m, min_units=5).count_units(),
    "means of large groups": lambda f, m, k: f.group_by(
        "g", max_groups=m, max_rows_per_group=k, min_units=5
    ).mean("x", bounds=(0, 5)),
    "keys of large groups": lambda f, m, k: f.group_by("g", max_groups=m, min_units=5).keys(),
}


def planned(query, epsilon, delta, noise):
    return noise_plan(question_of(query), Price(read_epsilon(epsilon), read_delta(delta)), noise)


def hold(plan, ways, changed, relation):
    """The exact δ is within the claim; a threshold lower by one would not
    be, where the noise takes no δ.
    """
    epsilon, delta = number(plan.cost.exact_epsilon), number(plan.cost.exact_delta)
    if plan.start is not None:
        hold_rule(plan, changed, relation, epsilon, delta)
        return
    worst, shown = exact_delta(plan, ways, epsilon)
    assert worst <= delta
    assert shown <= delta
    drawn = next(d for d in plan.noises if d.allotment is plan.decided_by)
    if (
        drawn.label != "gaussian"
        and relation == "add-remove"
        and drawn.allotment.total.sensitivity.exact_linf == 1
    ):
        sharper = tail(drawn.label, number(drawn.scale), plan.threshold - plan.least - 2)
        assert 1 - (1 - sharper) ** changed > delta


def chances(plan, most):
    """π(0), π(1), ... of the optimal rule, by its recursion; up to `least` units it is 0."""
    drawn = next(d for d in plan.noises if d.allotment is plan.decided_by)
    growth, start = (1 / number(drawn.scale)).exp(), number(plan.start)
    law = [arb(0)] * (plan.least + 1)
    while len(law) <= most:
        low, high = growth * law[-1] + start, 1 - (1 - law[-1] - start) / growth
        law.append(min(low, high, arb(1), key=lambda ball: float(ball.mid())))
    return law


def hold_rule(plan, changed, relation, epsilon, delta):
    """Every combination of sizes of the groups that change:
    a few units, and where the rule turns.
    """
    middle = plan.threshold
    law = chances(plan, middle + 3)
    sizes = sorted({0, 1, max(middle - 1, 0), middle, middle + 1})[: 5 if changed <= 4 else 3]
    beside = epsilon - changed / number(
        next(d for d in plan.noises if d.allotment is plan.decided_by).scale
    )
    others = [beside] if beside > arb(2) ** -40 else []
    base = of_responses(others)
    joins = changed // 2 if relation == "replace" else changed
    for joined in itertools.combinations_with_replacement(sizes, joins):
        for left in itertools.combinations_with_replacement(sizes, changed - joins):
            first, second = base
            for size, up in [*((n, True) for n in joined), *((n, False) for n in left)]:
                few, more = law[size], law[size + 1]
                p, q = (few, more) if up else (more, few)
                first = [a * x for a in first for x in (p, 1 - p)]
                second = [a * x for a in second for x in (q, 1 - q)]
            assert hockey_stick(first, second, epsilon) <= delta
            assert hockey_stick(second, first, epsilon) <= delta


@pytest.mark.one_in(3)
@pytest.mark.parametrize("noise", ["laplace", "gaussian", "auto"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    "groups", [1, 2, *(pytest.param(m, marks=pytest.mark.long) for m in (3, 4))]
)
def test_the_exact_delta_of_found_keys_is_within_the_claim(question, relation, noise, groups):
    frame = dp.protect(ROWS, unit="u", neighbors=relation)
    changed = 2 * groups if relation == "replace" else groups
    prices = PRICES if changed <= 4 else PRICES[:2]
    for per_group in (1, 3):
        if per_group == 3 and (
            "keys" in question or question in ("units", "totals of units", "large groups")
        ):
            continue
        for epsilon, delta in prices:
            plan = planned(QUESTIONS[question](frame, groups, per_group), epsilon, delta, noise)
            hold(plan, ways_of_units(changed, relation), changed, relation)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2, *(pytest.param(k, marks=pytest.mark.long) for k in (3, 4))])
def test_the_exact_delta_where_rows_are_declared(rows, relation, noise):
    frame = dp.protect(ROWS.drop("u"), unit=dp.Rows(rows), neighbors=relation)
    for query in (
        frame.group_by("g").count(),
        frame.group_by("g").agg(n=dp.count(), x=dp.mean("x", bounds=(0, 5))),
    ):
        for epsilon, delta in PRICES:
            plan = planned(query, epsilon, delta, noise)
            hold(plan, ways_of_rows(rows, relation), rows, relation)


LARGE = {  # with thresholds on numbers that are released or not, and with the optimal rule
    "units": lambda g: g.count_units(),
    "rows": lambda g: g.count(),
    "keys": lambda g: g.keys(),
    "other": lambda g: g.count_units(),
}


def sizes(*units):
    """A table with a hundred groups of each of these numbers of units."""
    rows = [
        (f"{size} {i} {u}", f"{size}-{i}")
        for size in units
        for i in range(100)
        for u in range(size)
    ]
    return pl.DataFrame(rows, schema=["u", "g"], orient="row")


def shown(frame, question, noise, **said):
    """How many groups of each size are released, at a price at which many small ones are."""
    other = {"other": "(other)"} if question == "other" else {}
    groups = frame.group_by("g", max_groups=1, max_rows_per_group=1, **other, **said)
    out = LARGE[question](groups).release(0.2, 0.4, noise=noise)
    return sizes_of(out)


def sizes_of(out):
    found = out.to_polars().filter(pl.col("g") != "(other)")["g"].str.split("-").list.first()
    return dict(found.value_counts().iter_rows())


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("question", LARGE)
def test_a_group_of_fewer_units_is_never_released(question, noise):
    """Without min_units=, groups of four units are released with a chance above
    1/2: of 100 never fewer than 20.
    """
    budget = dp.Budget(epsilon=100.0, delta=0.999)
    frame = dp.protect(sizes(1, 4, 60), unit="u", budget=budget)
    assert shown(frame, question, noise)["4"] >= 20  # the negative control
    large = shown(frame, question, noise, min_units=5)
    assert large.keys() == {"60"}
    assert large["60"] >= 90


def test_rows_that_some_people_may_have_are_too_few():
    """With dp.Rows(2), four rows may be two people's, and five are three people's at least."""
    budget = dp.Budget(epsilon=100.0, delta=0.999)
    frame = dp.protect(sizes(4, 5, 60).drop("u"), unit=dp.Rows(2), budget=budget)
    for noise in ("laplace", "gaussian"):
        found = sizes_of(frame.group_by("g", min_units=3).count().release(0.5, 0.4, noise=noise))
        assert "4" not in found
        assert found["60"] >= 90


@pytest.mark.parametrize("noise", ["laplace", "gaussian", "auto"])
@pytest.mark.parametrize("question", ["units beside rows", "rows alone", "mean", "totals of units"])
def test_a_least_number_of_units_moves_the_threshold_and_nothing_else(question, noise):
    frame = dp.protect(ROWS, unit="u")
    large = dp.protect(ROWS, unit="u", min_units=7)
    one, other = (planned(QUESTIONS[question](f, 2, 1), 1, 1e-6, noise) for f in (frame, large))
    step = int(one.decided_by.total.sensitivity.exact_linf)
    assert (other.threshold - one.threshold, other.least, one.least) == (6 * step, 6 * step, 0)
    assert [n.mechanism for n in one.noises] == [n.mechanism for n in other.noises]
    assert (one.start, one.cost) == (other.start, other.cost)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_threshold_that_is_too_low_is_noticed(groups):
    """The check itself: one less than the threshold is more than the claim."""
    from dataclasses import replace

    frame = dp.protect(ROWS, unit="u")
    plan = planned(frame.group_by("g", max_groups=groups).count_units(), 1, 1e-6, "laplace")
    lower = replace(plan, threshold=plan.threshold - 1)
    worst, _ = exact_delta(
        lower, ways_of_units(groups, "add-remove"), number(plan.cost.exact_epsilon)
    )
    assert worst > number(plan.cost.exact_delta)
    assert math.isclose(float(plan.cost.delta), 1e-6)
