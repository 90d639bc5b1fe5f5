"""How exact a series is: 365 nights, one period a person, in units of the noise of one night's release at that price.

python benchmarks/series.py            # by the formulas, and by draws of the whole year
python benchmarks/series.py --draws 0  # by the formulas alone
"""

import argparse
import math
import time

import numpy as np
import polars as pl

import dpframe as dp
from dpframe.release.kinds.series.noise import planned_noise
from dpframe.release.kinds.series.settings import Settings
from dpframe.release.kinds.series.unit_change import UnitChange

NIGHTS = 365
PRICES = {
    "ρ = 0.1": (dp.Budget(rho=0.1), {"rho": 0.1}),
    "(1, 1e-6), Gaussian": (dp.Budget(epsilon=1, delta=1e-6), {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"}),
    "(1, 1e-6), as chosen": (dp.Budget(epsilon=1, delta=1e-6), {"epsilon": 1.0, "delta": 1e-6}),
    "ε = 1": (dp.Budget(epsilon=1), {"epsilon": 1.0}),
}


def noises(budget, price, periods=1, horizon=NIGHTS):
    """The noise of a series, and the mechanism of one night that costs as much."""
    frame = dp.protect(pl.DataFrame({"id": [1]}), unit="id", budget=budget)
    ask = frame.count(max_rows=1)._question
    typed = {"epsilon": None, "delta": None, "rho": None, **price}
    kind = typed.pop("noise", "auto")
    settings = Settings.read(budget.terms, "1d", horizon, periods, kind, **typed)
    amount, change = settings.price(budget.terms), UnitChange.of(ask, settings.periods)
    night = amount.plan(ask).noises[0].mechanism
    return planned_noise(ask, change, amount, horizon, alone=False), night


def deviation(mechanism):
    """The standard deviation of a mechanism's noise."""
    return math.sqrt(mechanism.variance)


def by_draws(noise, draws, lengths=(7, 30)):
    """Root mean square errors over the year of running totals, nights and windows, from drawn noise of all blocks."""
    from dpframe.release.kinds.series.answer import Measured
    from dpframe.release.kinds.series.estimates import Estimates, windows
    from dpframe.release.kinds.series.progress import Progress

    shapes, groups = noise.shapes, draws
    progress, blocks, answers = Progress({}, {}), {}, {}
    for night in range(shapes.starts[-1]):
        blocks[night] = progress.measured_by(night, shapes)
        values = tuple((noise.mechanisms[b.part][b.level][0].draw(groups),) for b in blocks[night])
        answers[night] = Measured(pl.DataFrame(), values)
        progress = Progress(blocks, {})
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
    formula = {n: math.sqrt((last.deviations(0, windows(last.periods, n)[n:]) ** 2).mean()) for n in (1, *lengths)}
    return math.sqrt(np.mean(squares)), errors, formula


def main(draws):
    night_after_night = math.sqrt((NIGHTS + 1) / 2)
    print(f"{NIGHTS} nights, one period a person; adding up the nights has {night_after_night:.1f}")
    for name, (budget, price) in PRICES.items():
        start = time.perf_counter()
        noise, night = noises(budget, price)
        took, unit = time.perf_counter() - start, deviation(night)
        leaf = deviation(noise.mechanisms[0][0][0])
        said = f"blocks of up to {noise.shapes.parts[0].sizes}, one night ± {unit:.3g} ({night.label})"
        print(f"\n{name}: {said}; planned in {1000 * took:.0f} ms")
        print(f"  running total, by the formula: {noise.error(0, 0) / unit:.2f} nights' noise")
        if draws:
            total, windows, formula = by_draws(noise, draws)
            print(f"  running total, drawn {draws} times: {total / unit:.2f}")
            for length, error in windows.items():
                adding = math.sqrt(length) * leaf
                after = f"{error / unit:.2f} when the last one is added, {formula[length] / unit:.2f} in the end"
                alone = f"adding them {adding / unit:.2f}; adding releases of the same price {math.sqrt(length):.2f}"
                print(f"  {length} nights: {after}; {alone}")
    print("\nof a person in m periods, in units of one night's noise for m periods (adding up the nights: 13.5)")
    for periods in (1, 7, 30, 365):
        for name in ("ρ = 0.1", "ε = 1"):
            budget, price = PRICES[name]
            noise, _ = noises(budget, price, periods)
            alone, _ = noises(budget, price, periods, 1)
            unit = deviation(alone.mechanisms[0][0][0]) * (math.sqrt(periods) if name[0] == "ρ" else periods)
            sizes = noise.shapes.parts[0].sizes
            print(f"  {name}, m = {periods}: {noise.error(0, 0) / unit:.2f}, blocks of up to {sizes}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    main(parser.parse_args().draws)
