"""How exact a series is: 365 nights, one period a person, in units of the noise of one
night's release at that price.

python benchmarks/series.py            # by the formulas, and by draws of the whole year
python benchmarks/series.py --draws 0  # by the formulas alone
python benchmarks/series.py --nights 100  # how long a backfill takes, in plain counts of one night
"""

import argparse
import datetime as dt
import math
import time

import numpy as np
import polars as pl

import dpframe as dp
from dpframe.release.kinds.series.noise import ReadAgain, planned_noise
from dpframe.release.kinds.series.settings import Settings
from dpframe.release.kinds.series.shape import window_square
from dpframe.release.kinds.series.unit_change import UnitChange
from dpframe.release.kinds.series.weights import errors

NIGHTS = 365
OFTEN = (ReadAgain.EACH_NIGHT, ReadAgain.AT_ENDS)
PRICES = {
    "ρ = 0.1": (dp.Budget(rho=0.1), {"rho": 0.1}),
    "(1, 1e-6), Gaussian": (
        dp.Budget(epsilon=1, delta=1e-6),
        {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"},
    ),
    "(1, 1e-6), as chosen": (dp.Budget(epsilon=1, delta=1e-6), {"epsilon": 1.0, "delta": 1e-6}),
    "ε = 1": (dp.Budget(epsilon=1), {"epsilon": 1.0}),
}


QUESTIONS = {
    "count": lambda frame: frame.count(max_rows=1),
    "by group": lambda frame: frame.group_by(
        "g", keys=[1, 2, 3], max_groups=2, max_rows_per_group=2
    ).agg(n=dp.count(), s=dp.sum("x", (0, 10))),
}


def noises(budget, price, periods=1, horizon=NIGHTS, ask="count", read_again=ReadAgain.EACH_NIGHT):
    """The noise of a series, and the mechanism of one night that costs as much."""
    frame = dp.protect(pl.DataFrame({"id": [1], "g": [1], "x": [1.0]}), unit="id", budget=budget)
    ask = QUESTIONS[ask](frame)._question
    typed = {"epsilon": None, "delta": None, "rho": None, **price}
    kind = typed.pop("noise", "auto")
    settings = Settings.read(budget.terms, "1d", horizon, periods, kind, **typed)
    amount, change = settings.price(budget.terms), UnitChange.of(ask, settings.periods)
    night = amount.plan(ask).noises[0].mechanism
    return planned_noise(ask, change, amount, horizon, read_again), night


def deviation(mechanism):
    """The standard deviation of a mechanism's noise."""
    return math.sqrt(mechanism.variance)


def measured_words(noise):
    """What a series measures."""
    shape = noise.shapes.parts[0]
    return (
        f"weighted sums of {len(shape.weights)}"
        if shape.weights
        else f"blocks of up to {shape.sizes}"
    )


def by_draws(noise, draws, lengths=(7, 30)):
    """Root mean square errors over the year of running totals, nights and windows,
    from drawn noise of all blocks.
    """
    from dpframe.release.kinds.series.answer import Measured
    from dpframe.release.kinds.series.estimates import Estimates, windows
    from dpframe.release.kinds.series.progress import Progress

    shapes, groups = noise.shapes, draws
    progress, blocks, answers = Progress({}, {}), {}, {}
    for night in range(shapes.starts[-1]):
        blocks[night] = progress.measured_by(night, shapes)
        values = tuple((noise.mechanisms[b.part][b.level][0].draw(groups),) for b in blocks[night])
        answers[night] = Measured(pl.DataFrame(), values)
        progress = Progress(blocks, {}, {}, frozenset(answers))
    squares, window = [], {length: [] for length in lengths}
    for night in range(shapes.starts[-1]):
        seen = {n: answers[n] for n in range(night + 1)}
        if night % 5 and night < shapes.starts[-1] - 1:
            continue  # every fifth night is enough, and takes a fifth of the time
        each = Estimates(blocks, seen, noise).each(0)
        squares.append((each.sum(axis=0) ** 2).mean())
        for length in lengths:
            if night >= length:
                window[length].append((each[-length:].sum(axis=0) ** 2).mean())
    last = Estimates(blocks, answers, noise)
    errors = {length: math.sqrt(np.mean(made)) for length, made in window.items()}
    formula = {
        n: math.sqrt((last.deviations(0, windows(last.periods, n)[n:]) ** 2).mean())
        for n in (1, *lengths)
    }
    return math.sqrt(np.mean(squares)), errors, formula


def by_formula(noise):
    """Errors of the running total, and when their last night is added
    of nights, weeks and 30 nights.
    """
    shape, variance = noise.shapes.parts[0], noise.variance(0, 0, 0)
    lengths = [length for length in (1, 7, 30) if length < shape.length]
    if shape.weights:
        *some, total = (
            math.sqrt(variance) * error for error in errors(shape.weights, shape.length)
        )
        return [total, *some]
    variances = [noise.variance(0, level, 0) for level in range(len(shape.sizes))]
    return [
        noise.error(0, 0),
        *(math.sqrt(window_square(shape, variances, length)) for length in lengths),
    ]


def against_blocks():
    """Weighted sums beside the blocks that were measured before, of the same price,
    in units of one night's noise.
    """
    print(
        "\nrunning total, night, 7 and 30 nights: weighted sums / blocks, in units of one night's "
        "noise"
    )
    budget, price = PRICES["ρ = 0.1"]
    for ask in QUESTIONS:
        for horizon in (30, 90, 365):
            for periods in (1, 7):
                single, _ = noises(budget, price, periods, 1, ask)
                unit = math.sqrt(single.variance(0, 0, 0) * periods)
                sums, blocks = (
                    by_formula(noises(budget, price, periods, horizon, ask, o)[0]) for o in OFTEN
                )
                pairs = [
                    f"{one / unit:.2f} / {two / unit:.2f}"
                    for one, two in zip(sums, blocks, strict=True)
                ]
                print(f"  {ask}, {horizon} nights, m = {periods}: {', '.join(pairs)}")


def main(draws):
    night_after_night = math.sqrt((NIGHTS + 1) / 2)
    print(f"{NIGHTS} nights, one period a person; adding up the nights has {night_after_night:.1f}")
    for name, (budget, price) in PRICES.items():
        start = time.perf_counter()
        noise, night = noises(budget, price)
        took, unit = time.perf_counter() - start, deviation(night)
        own = (noise.shapes.parts[0].weights or (1,))[0]
        leaf = deviation(noise.mechanisms[0][0][0]) / own
        said = f"{measured_words(noise)}, one night ± {unit:.3g} ({night.label})"
        print(f"\n{name}: {said}; planned in {1000 * took:.0f} ms")
        print(f"  running total, by the formula: {noise.error(0, 0) / unit:.2f} nights' noise")
        if draws:
            total, windows, formula = by_draws(noise, draws)
            print(f"  running total, drawn {draws} times: {total / unit:.2f}")
            for length, error in windows.items():
                adding = math.sqrt(length) * leaf
                after = (
                    f"{error / unit:.2f} when the last one is added, {formula[length] / unit:.2f} "
                    "in the end"
                )
                alone = (
                    f"adding them {adding / unit:.2f}; adding releases of the same price "
                    f"{math.sqrt(length):.2f}"
                )
                print(f"  {length} nights: {after}; {alone}")
    print(
        "\nof a person in m periods, in units of one night's noise for m periods (adding up the "
        "nights: 13.5)"
    )
    for periods in (1, 7, 30, 365):
        for name in ("ρ = 0.1", "ε = 1"):
            budget, price = PRICES[name]
            noise, _ = noises(budget, price, periods)
            alone, _ = noises(budget, price, periods, 1)
            unit = deviation(alone.mechanisms[0][0][0]) * (
                math.sqrt(periods) if name[0] == "ρ" else periods
            )
            print(
                f"  {name}, m = {periods}: {noise.error(0, 0) / unit:.2f}, {measured_words(noise)}"
            )
    against_blocks()


def backfill(nights, rows=1_000):
    """How long it takes to add some nights of a table, one after
    another, in plain counts of one night.
    """
    first, number = dt.date(2026, 1, 1), nights * rows
    days = [first + dt.timedelta(days=night % nights) for night in range(number)]
    table = pl.DataFrame(
        {"id": range(number), "day": days, "g": [i % 5 for i in range(number)], "x": [1.5] * number}
    )
    frame = dp.protect(table, unit="id", budget=dp.Budget(rho=0.02))

    def query(rows):
        groups = rows.group_by("g", keys=range(5), max_groups=2, max_rows_per_group=2)
        return groups.agg(n=dp.count(), s=dp.sum("x", (0, 10)))

    series = frame.budget.series(
        "s", every="1d", horizon=365, unit_periods=1, rho=0.005, on="day", start=first
    )
    plain, added = [], []
    for night in range(nights):
        day = first + dt.timedelta(days=night)
        start = time.perf_counter()
        series.add(query(frame), day)
        between = time.perf_counter()
        query(frame.filter(dp.col("day") == day)).release(rho=0.0001)
        added.append(between - start)
        plain.append(time.perf_counter() - between)
    one, last = sum(plain) / nights, sum(added[-10:]) / 10
    print(
        f"{nights} nights of {rows:,} rows, in the time of a plain count of one night "
        f"({1000 * one:.0f} ms):"
    )
    print(
        f"  one night after {nights - 10} others: {last / one:.1f}; all nights: "
        f"{sum(added) / one:.0f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--nights", type=int)
    typed = parser.parse_args()
    main(typed.draws) if typed.nights is None else backfill(typed.nights)
