"""How exact a series is: the figures that it is bought for, by its
formulas, and held against drawn noise.
"""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.release.kinds.series.answer import Measured
from dpframe.release.kinds.series.estimates import Estimates, running, windows
from dpframe.release.kinds.series.noise import ReadAgain, SeriesNoise, planned_noise
from dpframe.release.kinds.series.progress import Progress
from dpframe.release.kinds.series.settings import Settings
from dpframe.release.kinds.series.shape import (
    Shape,
    Shapes,
    chosen_shape,
    mean_square,
    window_square,
)
from dpframe.release.kinds.series.unit_change import UnitChange
from dpframe.release.kinds.series.weights import chosen_weights, errors
from dpframe.theory.formulas.sensitivity import Sensitivity, weighted_square, weighted_totals
from inside import question_of

BUDGETS = {
    "rho": (lambda: dp.Budget(rho=1), {"rho": 0.1}),
    "gaussian": (
        lambda: dp.Budget(epsilon=1, delta=1e-6),
        {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"},
    ),
    "pure": (lambda: dp.Budget(epsilon=1), {"epsilon": 1.0}),
}


def bought(
    price,
    periods=1,
    horizon=365,
    ask=lambda f: f.count(max_rows=1),
    read_again=ReadAgain.EACH_NIGHT,
):
    """The noise of a series, and the standard deviation of one night's release at its price."""
    budget, typed = BUDGETS[price][0](), dict(BUDGETS[price][1])
    question = question_of(
        ask(dp.protect(pl.DataFrame({"id": [1], "g": [1]}), unit="id", budget=budget))
    )
    kind = typed.pop("noise", "auto")
    every = {"epsilon": None, "delta": None, "rho": None, **typed}
    settings = Settings.read(budget.terms, "1d", horizon, periods, kind, **every)
    amount = settings.price(budget.terms)
    night = math.sqrt(amount.plan(question).noises[0].mechanism.variance)
    noise = planned_noise(
        question, UnitChange.of(question, settings.periods), amount, horizon, read_again
    )
    return noise, night


@pytest.mark.parametrize(("price", "most"), [("rho", 3.45), ("gaussian", 3.5), ("pure", 8.5)])
def test_a_year_of_nights_is_as_exact_as_it_should_be(price, most):
    noise, night = bought(price)
    assert noise.error(0, 0) / night <= most
    grouped, _ = bought(
        price,
        ask=lambda f: f.group_by("g", keys=[1, 2], max_groups=1, max_rows_per_group=1).count(),
    )
    assert grouped.error(0, 0) == noise.error(0, 0), "the same in each group"
    alone = Shape.of_degree(365, 2, 1)
    assert mean_square(alone, [1.0]) ** 0.5 == pytest.approx(math.sqrt(183)), (
        "adding up the nights has 13.5"
    )


def published(noise, order, draws, truth=0, lost=()):
    """Blocks and noisy answers of nights that are added in an order, each
    night with the same exact total.
    """
    progress, blocks, answers = Progress({}, {}), {}, {}
    for night in order:
        blocks[night] = progress.measured_by(night, noise.shapes)
        values = [
            noise.mechanisms[b.part][b.level][0].draw(draws) + truth * sum(map(b.weight, b.periods))
            for b in blocks[night]
        ]
        if night not in lost:
            answers[night] = Measured(pl.DataFrame(), tuple((value,) for value in values))
        progress = Progress(blocks, {}, answered=frozenset(answers))
    return blocks, answers


@pytest.mark.one_in(2)
@pytest.mark.parametrize("price", BUDGETS)
def test_drawn_noise_has_the_errors_of_the_formula(price):
    """Sums of squares of 4,000 draws: 6 standard errors, so once in 10^8 runs by chance."""
    noise, _ = bought(price, horizon=60)
    draws, squares = 4000, []
    blocks, answers = published(noise, range(60), draws)
    for night in range(60):
        estimates = Estimates(blocks, {n: answers[n] for n in range(night + 1)}, noise)
        squares.append((estimates.each(0).sum(axis=0) ** 2).mean())
        deviation = estimates.deviations(0, np.ones((1, night + 1)))[0]
        assert abs(squares[-1] / deviation**2 - 1) < 6 * math.sqrt(5 / draws)
    assert np.mean(squares) == pytest.approx(noise.error(0, 0) ** 2, rel=6 * math.sqrt(5 / draws))


@pytest.mark.parametrize("price", BUDGETS)
def test_windows_and_totals_are_no_worse_than_adding_their_nights(price):
    noise, _ = bought(price, horizon=90)
    blocks, answers = published(noise, range(90), 1)
    estimates = Estimates(blocks, answers, noise)
    leaf = estimates.deviations(0, np.eye(90)).max()
    for length in (1, 7, 30, 90):
        weights = windows(estimates.periods, length)
        assert (
            estimates.deviations(0, weights) <= np.sqrt(weights.sum(axis=1)) * leaf * (1 + 1e-9)
        ).all()
    totals = estimates.deviations(0, running(estimates.periods))
    assert totals[-1] < math.sqrt(90) * leaf / 1.2


@pytest.mark.parametrize("price", ["rho", "gaussian"])
def test_a_week_of_a_year_is_more_exact_than_seven_releases_of_the_whole_price(price):
    """When its last night is added, on average over nights."""
    noise, night = bought(price)
    blocks, answers = published(noise, range(192), 1)
    squares = {7: [], 30: []}
    for last in range(64, 192, 3):
        estimates = Estimates(blocks, {n: answers[n] for n in range(last + 1)}, noise)
        for length, some in squares.items():
            some.append(estimates.deviations(0, windows(estimates.periods, length)[-1:])[0] ** 2)
    made = {length: math.sqrt(np.mean(some)) / night for length, some in squares.items()}
    assert made[7] < 2.2
    assert made[30] < 2.9
    assert estimates.deviations(0, np.eye(last + 1)[-1:])[0] / night < 1.4


@pytest.mark.parametrize("price", BUDGETS)
@pytest.mark.parametrize("horizon", [1, 9, 60, 365, 5000])
def test_levels_share_the_whole_price_and_no_more(price, horizon):
    """Of somebody in one period: ε is 1 / scale, and ρ is 1 / 2σ², summed over the levels."""
    noise, _ = bought(price, horizon=horizon)
    scales = [Fraction(level[0].scale) for level in noise.mechanisms[0]]
    squares = weighted_square(noise.shapes.parts[0].weights or (1,), 1)
    if price == "pure":
        assert 0.999 < sum(1 / scale for scale in scales) <= 1
    if price == "rho":
        assert 0.0999 < sum(squares / (2 * scale**2) for scale in scales) <= Fraction("0.1")


def test_a_window_has_the_error_of_what_is_published():
    noise, _ = bought("rho", horizon=40, read_again=ReadAgain.AT_ENDS)
    shape, variances = noise.shapes.parts[0], [level[0].variance for level in noise.mechanisms[0]]
    blocks, answers = published(noise, range(40), 1)
    estimates = Estimates(blocks, answers, noise)
    exact = estimates.deviations(0, windows(estimates.periods, 7)[-1:])[0] ** 2
    assert window_square(shape, variances, 7) == pytest.approx(exact)


def test_numbers_are_consistent_whatever_the_order():
    """Late and missing nights: estimates are unbiased and add up, and each error
    is that of what was published.
    """
    rng = random.Random(3)
    for trial in range(30):
        noise, _ = bought(rng.choice(list(BUDGETS)), horizon=20)
        order = rng.sample(range(20), rng.randint(1, 20))
        blocks, answers = published(noise, order, 500, truth=1000)
        estimates = Estimates(blocks, answers, noise)
        periods = sorted(order)
        assert estimates.periods == periods
        each = estimates.each(0)
        deviations = estimates.deviations(0, np.eye(len(periods)))
        assert (np.abs(each.mean(axis=1) - 1000) < 7 * deviations / math.sqrt(500) + 0.01).all(), (
            trial
        )
        # nights that were charged and never stored
        lost = {night for night in order if rng.random() < 0.2}
        known = Estimates(*published(noise, order, 500, truth=1000, lost=lost), noise)
        if len(lost) < len(order):
            assert known.periods == [night for night in periods if night not in lost]
            far = np.abs(known.each(0).mean(axis=1) - 1000)
            assert (
                far < 7 * known.deviations(0, np.eye(len(known.periods))) / math.sqrt(500) + 0.01
            ).all()


def test_each_night_and_block_is_measured_once_and_a_night_in_one_block_a_level():
    rng = random.Random(4)
    for _ in range(50):
        shapes = Shapes((Shape.of_degree(9, 2, 3), Shape.falling(12), Shape.of_degree(5, 2, 1)))
        progress, lines = Progress({}, {}), {}
        for night in rng.sample(range(26), rng.randint(1, 26)):
            lines[night] = progress.measured_by(night, shapes)
            assert progress.measured_by(night, shapes) == lines[night]
            progress = Progress(lines, {})
            assert progress.measured_by(night, shapes) == lines[night], (
                "a night that was added keeps its blocks"
            )
        made = [block for blocks in lines.values() for block in blocks]
        assert len({(b.part, b.level, b.first) for b in made}) == len(made)
        for night in lines:
            levels = [b.level for b in made if night in b.periods]
            assert len(set(levels)) == len(levels)
            assert 0 in levels


def test_a_shape_is_chosen_from_horizon_and_price_alone():
    assert bought("rho")[0].shapes.parts[0].weights[:3] == (256, 102, 68)
    assert bought("rho", read_again=ReadAgain.AT_ENDS)[0].shapes.parts[0].sizes == [
        1,
        2,
        4,
        8,
        16,
        32,
        64,
        128,
        256,
    ]
    assert bought("pure")[0].shapes.parts[0].levels[1] == tuple(range(27, 0, -1))
    assert bought("rho", periods=365)[0].shapes.parts[0].sizes == [1], (
        "for who comes every night sums cost too much"
    )
    assert bought("pure", horizon=30)[0].shapes.parts[0].sizes == [1]
    endless = bought("rho", horizon=None)[0]
    assert [shape.length for shape in endless.shapes.parts[:3]] == [32, 64, 128]
    again = SeriesNoise.from_json(endless.to_json())
    assert again == endless


@pytest.mark.parametrize("length", [1, 2, 3, 10, 29, 100])
def test_the_mean_square_is_that_of_every_night(length):
    """By least squares on what is published at the end of each night."""
    for shape in (
        Shape.of_degree(length, 3, 3),
        Shape.falling(length),
        Shape.of_degree(length, 2, 1),
    ):
        variances = [1.0 + level for level in range(len(shape.levels))]
        squares = []
        for night in range(1, length + 1):
            known = [variances[0]] * night
            firsts = list(range(night))
            for level in range(1, len(shape.levels)):
                made = []
                for first, end in shape.blocks(level):
                    inside = [v for f, v in zip(firsts, known, strict=True) if first <= f < end]
                    if end <= night:
                        made.append((first, 1 / (1 / variances[level] + 1 / sum(inside))))
                    else:
                        made += [
                            (f, v) for f, v in zip(firsts, known, strict=True) if first <= f < end
                        ]
                firsts, known = [f for f, _ in made], [v for _, v in made]
            squares.append(sum(known))
        assert mean_square(shape, variances) == pytest.approx(np.mean(squares))


def test_falling_blocks_are_the_best_of_two_levels():
    """No other sizes of blocks do better, of many that were tried."""
    rng, best = random.Random(5), mean_square(Shape.falling(66), [1.0, 1.0])
    chosen, shares = chosen_shape(
        66, lambda _, shares: [float(share) ** -2 for share in shares], 1.0
    )
    assert chosen == Shape.falling(66)
    assert sum(shares) == 1
    for _ in range(300):
        sizes = tuple(rng.randint(1, 14) for _ in range(30))
        assert mean_square(Shape(66, ((1,), sizes)), [1.0, 1.0]) > best * 0.99


# Weighted sums


def test_a_person_s_worst_periods_are_consecutive():
    """Every set of periods, and every part of the weights, in which a late or an
    unanswered period leaves gaps.
    """
    rng = random.Random(6)
    for _ in range(200):
        weights = sorted((rng.randint(1, 9) for _ in range(rng.randint(1, 5))), reverse=True)
        nights, periods = 7, rng.randint(1, 4)
        squares = []
        for places in itertools.combinations(range(nights), periods):
            whole = [
                sum(weights[t - s] for s in places if 0 <= t - s < len(weights))
                for t in range(nights + 5)
            ]
            squares.append(sum(each**2 for each in whole))
            some = [
                sum(
                    weights[t - s]
                    for s in places
                    if 0 <= t - s < len(weights) and rng.random() < 0.8
                )
                for t in range(9)
            ]
            assert sum(each**2 for each in some) <= weighted_square(weights, periods)
        assert max(squares) == weighted_square(weights, periods)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("periods", [1, 2, 7])
@pytest.mark.parametrize(("lower", "upper"), [(0, 2), (-1, 2), (-2, 2)])
def test_all_nights_together_move_by_no_more_than_is_said(relation, periods, lower, upper):
    """Each night reads each period anew: another vector of l1 <= 3 with two entries
    between the ends, at each reading.

    Where all vectors are tried, the nights are few. In longer histories each night takes the
    vectors that move it most.
    """
    vectors = [
        v for v in itertools.product(range(lower, upper + 1), repeat=2) if sum(map(abs, v)) <= 3
    ]
    one = Sensitivity.of(l0=2, l1=3, l2_squared=5, linf=2)
    rng, most = random.Random(7), 0
    for _ in range(60):
        weights = sorted((rng.randint(1, 9) for _ in range(rng.randint(1, 4))), reverse=True)
        said = weighted_totals(
            one, upper - lower, weights=weights, periods=periods, relation=relation
        )
        nights = range(periods + 3)
        persons = [
            rng.sample(nights, periods),
            rng.choice([list(range(periods)), rng.sample(nights, periods)]),
        ]
        moved = []
        for t in range(len(nights) + 3):
            ways = [(0, 0)]
            for person, sign in zip(
                persons, (1, -1) if relation == "replace" else (1,), strict=False
            ):
                whole = sum(weights[t - s] for s in person if 0 <= t - s < len(weights))
                ways = [
                    (a + sign * whole * v, b + sign * whole * w)
                    for a, b in ways
                    for v, w in vectors
                ]
            moved.append(max(ways, key=lambda way: way[0] ** 2 + way[1] ** 2))
        square = sum(a * a + b * b for a, b in moved)
        assert square <= said.l2_squared
        assert sum(abs(a) + abs(b) for a, b in moved) <= said.exact_l1
        assert max(abs(entry) for way in moved for entry in way) <= said.exact_linf
        most = max(most, square / said.l2_squared)
    assert most > 0.5


@pytest.mark.parametrize("length", [1, 5, 40, 200])
def test_the_errors_of_weights_are_those_of_their_matrix(length):
    for weights in ((256,), (256, 90, 3), chosen_weights(length, 1), chosen_weights(length, 3)):
        matrix = sum(np.eye(length, k=-lag) * weight for lag, weight in enumerate(weights))
        each, made = np.linalg.inv(matrix), []
        for window in (1, 7, 30, length):
            if window < length:
                last = np.array(range(window - 1, length))
                rows = (
                    (np.arange(length) <= last[:, None])
                    & (np.arange(length) > last[:, None] - window)
                ) @ each
                made.append(math.sqrt((rows**2).sum(axis=1).mean()))
        made.append(math.sqrt(((np.tri(length) @ each) ** 2).sum(axis=1).mean()))
        assert errors(weights, length) == pytest.approx(made)


@pytest.mark.parametrize(
    ("horizon", "periods"), [(9, 1), (30, 1), (64, 3), (200, 7), (365, 1), (365, 30), (1000, 7)]
)
def test_weighted_sums_have_more_exact_totals_than_blocks(horizon, periods):
    sums, blocks = (
        bought("rho", periods, horizon, read_again=often)[0] for often in list(ReadAgain)[:0:-1]
    )
    assert sums.error(0, 0) < blocks.error(0, 0)
