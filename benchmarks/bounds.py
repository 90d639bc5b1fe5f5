"""How near `bounds=dp.Auto()` comes to the best fixed bounds in
hindsight, on six heavy-tailed columns.

Each release draws a column anew and chooses its bounds by a release's own code, with fresh noise,
at ε = 1 unless another is given. A quarter of the price pays for the choice. Hindsight knows the
column and has the whole price. The error of a pair of bounds is the root mean square of noise and
of what clipping moves; no released number is drawn.

Hindsight is taken twice. "apart" adds up what is cut off below and above. "cancelling" lets one
cancel the other, as with two ends that are both wrong; nobody can choose such ends without the
column. To show that, "law" is somebody who knows the law of the column exactly, for nothing, and
has the whole price, but not the column: the one pair of bounds that is the best on average over the
columns of that law.

Ratios are root mean squares over releases, then geometric means over columns.

With `plain`, the columns are short ranges in a wide octave, and values with a code for missing
answers far out. Only means are asked of 300 and 3,000 people, and each column has its line: the
root mean square, the median and the largest ratio to hindsight apart, and in which part of the
releases values were clipped that move the mean by more than noise. Then the root mean square for
somebody who knows the law, with what a release has left for the answer. A part of a column's name
after `plain` chooses columns.

With `shapes`, each release has a law of its own: families, scales, places, rounding, zeros and
codes are drawn at random, and so are the people, 200 to 100,000. The seeds are in two halves:
figures of `dp.Auto()` are decided on `design`, and `report` is what was not looked at meanwhile.
"Silently" is the part of releases that clip by more than three times their noise and say no word of
it.

    python benchmarks/bounds.py [epsilon, by default 1] [releases, by default 12] [plain [part of a
    name ...]] python benchmarks/bounds.py 1 240 shapes report # or design; with `each`, a line for
    each column
"""

from __future__ import annotations

import sys
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl

import dpframe as dp
from dpframe.budget import Terms
from dpframe.release.auto import Seen
from dpframe.release.auto.clipping_bounds import choose_bounds
from dpframe.release.pricing import read_price

COLUMNS = {
    "lognormal, σ = 1": lambda draw, size: draw.lognormal(3, 1, size),
    "lognormal, σ = 2": lambda draw, size: draw.lognormal(8, 2, size),
    "Pareto, 1.5": lambda draw, size: 1000 * draw.pareto(1.5, size),
    "Student, 3": lambda draw, size: 50 + 10 * draw.standard_t(3, size),
    "Student, 1.5": lambda draw, size: draw.standard_t(1.5, size),
    "gamma, 0.3": lambda draw, size: draw.gamma(0.3, 40, size),
}
PLAIN = {
    "years from 1940 to 2009": lambda draw, size: draw.integers(1940, 2010, size),
    "whole numbers to 100": lambda draw, size: draw.integers(0, 101, size),
    "uniform from 5 to 6": lambda draw, size: draw.uniform(5, 6, size),
    "ages": lambda draw, size: ages(draw, size),
    "ages, 1% are 999": lambda draw, size: np.where(
        draw.random(size) < 0.01, 999, ages(draw, size)
    ),
    "ages, 2% are 999": lambda draw, size: np.where(
        draw.random(size) < 0.02, 999, ages(draw, size)
    ),
    "ages, 2% are -9999": lambda draw, size: np.where(
        draw.random(size) < 0.02, -9999, ages(draw, size)
    ),
}
ENDS = (200, 1000, 10_000, 100_000)  # people: random shapes are told apart by these
VERBS, SIZES, LARGE = ("mean", "sum", "var", "std"), (300, 3000, 30_000), 300_000


def ages(draw, size) -> np.ndarray:
    return np.clip(np.floor(draw.normal(45, 15, size)), 18, 95).astype(int)


def shape(draw, size) -> np.ndarray:
    """A column of a law that is drawn itself."""
    family = draw.integers(9)
    values = (
        lambda: draw.normal(size=size),
        lambda: draw.uniform(size=size),
        lambda: draw.lognormal(0, draw.uniform(0.2, 2.2), size),
        lambda: draw.gamma(np.exp(draw.uniform(-1.5, 2)), size=size),
        lambda: draw.pareto(draw.uniform(1.2, 4), size),
        lambda: draw.standard_t(draw.uniform(1.5, 8), size),
        lambda: draw.beta(*np.exp(draw.uniform(-1, 2, 2)), size),
        lambda: (
            np.where(draw.random(size) < draw.uniform(0.1, 0.9), 0, draw.uniform(1, 5))
            + draw.normal(size=size)
        ),
        lambda: draw.poisson(np.exp(draw.uniform(-1, 4)), size),
    )[family]()
    values = values * draw.choice([-1, 1], p=[0.1, 0.9]) * 10 ** draw.uniform(-2, 4)
    if draw.random() < 0.4:  # a range far from zero beside its width
        values = values + np.std(values) * np.exp(draw.uniform(0, 4)) * draw.choice(
            [-1, 1], p=[0.2, 0.8]
        )
    if draw.random() < 0.2:  # zeros
        values = np.where(draw.random(size) < draw.uniform(0.1, 0.8), 0, values)
    if draw.random() < 0.2:  # a code
        code = np.std(values) * np.exp(draw.uniform(2, 7)) * draw.choice([-1, 1])
        values = np.where(draw.random(size) < np.exp(draw.uniform(-5.3, -2.5)), code, values)
    return (
        np.rint(values).astype(np.int64) if draw.random() < 0.4 and np.std(values) > 3 else values
    )


def shapes(half, epsilon, releases) -> None:
    """Ratios to hindsight apart, and what is silently bad, by the number of people."""
    rows = []
    for seed in range(half == "report", 2 * releases, 2):
        draw = np.random.default_rng([7, seed])
        size = int(np.exp(draw.uniform(*np.log([ENDS[0], ENDS[-1]]))))
        verb = draw.choice(["mean", "mean", "sum", "std"])
        values = np.sort(shape(draw, size))
        ends, relative, left, seen = chosen(values, verb, epsilon)
        values = values.astype(float)
        lost, _, noisy = errors(values, verb, *pairs(values), relative * left)
        _, moved, own = (
            float(x[0]) for x in errors(values, verb, *(np.array([end]) for end in ends), relative)
        )
        best = np.hypot(lost, noisy).min() + 1e-12 * np.abs(values).max()
        rows.append((size, np.hypot(moved, own) / best, seen and abs(moved) > 3 * own, not seen))
        if "each" in sys.argv:
            print(
                seed,
                size,
                verb,
                *np.quantile(values, [0, 0.05, 0.5, 0.95, 1]),
                ends,
                *map(float, rows[-1][1:]),
            )
    sizes, ratios, silent, unseen = (np.array(x) for x in zip(*rows, strict=True))
    print(
        "people: ratios of what is no guess: geometric mean, root mean square, 90th of 100, "
        "largest; silent; guesses"
    )
    for low, high in [*pairwise(ENDS), (ENDS[0], ENDS[-1])]:
        here = (sizes >= low) & (sizes <= high)
        at = here & ~unseen
        mean, square = np.exp(np.log(ratios[at]).mean()), np.sqrt((ratios[at] ** 2).mean())
        print(
            f"{low:6,} to {high:7,} {mean:6.2f} {square:7.2f} {np.quantile(ratios[at], 0.9):6.2f} "
            f"{ratios[at].max():7.1f} {silent[at].mean():6.1%} {unseen[here].mean():6.1%}"
        )


def errors(values, verb, low, high, relative) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What clipping cuts off below and above together, by how much it
    moves the answer, and the noise.

    Input:  sorted values; pairs of bounds; relative: deviation of the noise of a total, by its l1
            sensitivity
    """
    size, middle = len(values), values.mean()
    below, above = np.searchsorted(values, low), np.searchsorted(values, high)
    sums, squares = (np.append(0, np.cumsum((values - middle) ** power)) for power in (1, 2))
    under, over = low - middle, high - middle
    left = (below * under - sums[below]) / size
    right = (sums[-1] - sums[above] - (size - above) * over) / size
    if verb == "sum":
        return (
            size * (left + right),
            size * (left - right),
            relative * np.maximum(np.abs(low), np.abs(high)),
        )
    half, moved = (high - low) / 2, left - right
    off = moved - (under + over) / 2
    if verb == "mean":
        return left + right, moved, relative / size * np.hypot(half, off)
    second = (squares[above] - squares[below] + below * under**2 + (size - above) * over**2) / size
    clipped, truth = np.maximum(second - moved**2, 0), squares[-1] / size
    noise = (
        np.hypot(np.hypot(half**2 / 2, 2 * off * half), clipped - off**2 - half**2 / 2)
        * relative
        / size
    )
    if verb == "std":
        noise = noise / (np.sqrt(clipped) + np.sqrt(clipped + noise) + 1e-300)
        clipped, truth = np.sqrt(clipped), np.sqrt(truth)
    return truth - clipped, clipped - truth, noise


def pairs(values) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of bounds that somebody could try: values near either end, some quantiles, and zero."""
    ranks = np.geomspace(1, 0.45 * len(values), 30).astype(int) - 1
    low, high = np.meshgrid(np.append(values[ranks], 0.0), np.append(values[::-1][ranks], 0.0))
    return low[low < high], high[low < high]


def chosen(values, verb, epsilon) -> tuple[tuple[float, float], float, float, bool]:
    """Bounds that a release chooses, the relative noise of its total, the part of the price that is
    left for it, and whether the bounds are no guess.
    """
    price = read_price(Terms.EPSILON, epsilon=epsilon)
    table = pl.DataFrame({"u": np.arange(len(values)), "x": values})
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=epsilon))
    question = getattr(frame, verb)("x", bounds=dp.Auto(), max_rows=1)._question
    share = question.open_bounds["x"].share
    rest = price.part(1 - share)
    clipping = choose_bounds(question, "x", price.part(share), rest, Seen())
    low, high = clipping.bounds
    noise = next(n for n in rest.plan(question).noises if n.allotment.total.column is not None)
    total = noise.allotment.total
    relative = noise.deviation / float(total.sensitivity.scaled(total.unit).l1)
    return (float(low), float(high)), relative, float(1 - share), clipping.seen


def plain(draw, size, law, epsilon, releases) -> str:
    """Ratios to hindsight apart of a mean, how often it is more biased than noisy,
    and the ratio of the law's ends.
    """
    ratios, by_law, biased, tried = [], [], 0, pairs(np.sort(law(draw, LARGE)))
    for _ in range(releases):
        values = np.sort(law(draw, size))
        ends, relative, left, _ = chosen(values, "mean", epsilon)
        values = values.astype(float)
        lost, _, noisy = errors(values, "mean", *pairs(values), relative * left)
        _, moved, own = (
            float(x[0])
            for x in errors(values, "mean", *(np.array([end]) for end in ends), relative)
        )
        ratios.append(np.hypot(moved, own) / np.hypot(lost, noisy).min())
        biased += abs(moved) > own
        _, moved, noise = errors(values, "mean", *tried, relative)
        by_law.append(np.hypot(moved, noise) / np.hypot(lost, noisy).min())
    mean, least = (
        np.sqrt(np.mean(np.square(ratios))),
        np.sqrt(np.mean(np.square(by_law), axis=0).min()),
    )
    return (
        f"{mean:7.2f} {np.median(ratios):7.2f} {max(ratios):7.2f} {biased / releases:6.0%} "
        f"{least:7.2f}"
    )


def measured(draw, verb, size, law, epsilon, releases) -> list[float]:
    """Ratios of the chosen bounds to hindsight apart and cancelling, and those
    of somebody who knows the law.
    """
    squares = []
    tried = pairs(np.sort(law(draw, LARGE)))
    for _ in range(releases):
        values = np.sort(law(draw, size))
        bounds, relative, left, _ = chosen(values, verb, epsilon)
        lost, moved, noisy = errors(values, verb, *pairs(values), relative * left)
        hindsight = np.hypot(lost, noisy).min(), np.hypot(moved, noisy).min()
        _, moved, noisy = errors(values, verb, *(np.array([end]) for end in bounds), relative)
        _, law_moved, law_noisy = errors(values, verb, *tried, relative * left)
        by_law = np.hypot(law_moved, law_noisy)
        squares.append(
            [np.hypot(moved, noisy) / best for best in hindsight]
            + [by_law / best for best in hindsight]
        )
    return [
        float(np.sqrt(np.mean(np.square(ratios), axis=0).min()))
        for ratios in zip(*squares, strict=True)
    ]


def main() -> None:
    epsilon = Fraction(sys.argv[1]) if len(sys.argv) > 1 else Fraction(1)
    releases = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    draw = np.random.default_rng(0)
    if "shapes" in sys.argv:
        return shapes("report" if "report" in sys.argv else "design", epsilon, releases)
    if "plain" in sys.argv:
        print(
            "people, column: root mean square, median and largest ratio to hindsight; more biased "
            "than noisy; law"
        )
        part = sys.argv[sys.argv.index("plain") + 1 :] or [""]
        for size in SIZES[:2]:
            for name, law in PLAIN.items():
                if not any(one in name for one in part):
                    continue
                print(
                    f"{size:6,} {name:24} {plain(draw, size, law, epsilon, releases)}", flush=True
                )
        return
    print(f"ε = {float(epsilon):g}: dp.Auto apart, cancelling; law apart, cancelling")
    for verb in VERBS:
        for size in SIZES:
            rows = [measured(draw, verb, size, law, epsilon, releases) for law in COLUMNS.values()]
            apart, cancelling, *by_law = np.exp(np.log(rows).mean(axis=0))
            print(
                f"{verb:5}{size:7,} {apart:6.2f} {cancelling:6.2f}; "
                + " ".join(f"{x:6.2f}" for x in by_law),
                flush=True,
            )


if __name__ == "__main__":
    main()
