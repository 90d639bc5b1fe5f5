"""Noise of k equal counts, asked one after another from one budget of
(ε, δ), by the way of counting.

    python benchmarks/accounts.py [--epsilon 1] [--delta 1e-6] [--batches]

A count of people moves by 1. Standard deviations: of discrete Laplace noise of ε/k, by adding up;
of Gaussian noise whose ρ add up, converted at all of δ; of Gaussian noise whose μ² add up, at all
of δ; and of a budget's own shares of 1/k. The last column is the ratio of the shares to the best of
the others that is valid for adaptive choice.
"""

import argparse
import math
from fractions import Fraction

import polars as pl

import dpframe as dp
from dpframe.release.pricing.pld import largest_parts
from dpframe.theory.formulas.loss import gdp_within, rho_within


def deviation(query, **price):
    """Standard deviation of the noise of a count."""
    (noise,) = query.accuracy(**price).iter_rows(named=True)
    if noise["mechanism"] == "gaussian":
        return noise["scale"]
    return math.sqrt(2 * math.exp(-1 / noise["scale"])) / -math.expm1(-1 / noise["scale"])


def batches(epsilon, delta):
    """Deviation of Laplace noise that adds up, of Laplace noise by loss
    distributions, and of Gaussian noise.
    """
    print(f"{'k':>5} {'adding up':>10} {'by pld':>8} {'gaussian':>8}")
    for number in (1, 2, 3, 5, 8, 12, 20, 50):
        basic = math.sqrt(2) * number / float(epsilon)
        factor = largest_parts([epsilon / number] * number, [], epsilon, delta)
        gaussian = math.sqrt(number / gdp_within(epsilon, delta))
        print(f"{number:>5} {basic:>10.2f} {basic / float(factor):>8.2f} {gaussian:>8.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument(
        "--batches", action="store_true", help="k counts in one batch, by the way of counting"
    )
    given = parser.parse_args()
    if given.batches:
        batches(Fraction(str(given.epsilon)), Fraction(str(given.delta)))
        return
    limit = {"epsilon": given.epsilon, "delta": given.delta}
    epsilon, delta = Fraction(str(given.epsilon)), Fraction(str(given.delta))
    rho, square = float(rho_within(epsilon, delta)), float(gdp_within(epsilon, delta))
    print(
        f"{'k':>5} {'adding up':>10} {'by rho':>8} {'by mu':>8} {'shares':>8} {'ratio':>6} "
        f"{'fit':>5}"
    )
    for number in (1, 2, 5, 8, 9, 20, 100, 1000):
        budget = dp.Budget(**limit)
        query = pl.DataFrame({"u": [1, 2]}).dp(unit="u", budget=budget).count_units()
        basic = deviation(query, epsilon=given.epsilon / number)
        by_rho, by_mu = math.sqrt(number / (2 * rho)), math.sqrt(number / square)
        own = deviation(query, share=1 / number)
        fit = 0
        try:
            while fit <= number:
                query.release(share=1 / number)
                fit += 1
        except dp.errors.BudgetExceeded:
            pass
        best = min(basic, by_rho, by_mu)
        print(
            f"{number:>5} {basic:>10.2f} {by_rho:>8.2f} {by_mu:>8.2f} {own:>8.2f} "
            f"{own / best:>6.3f} {fit:>5}"
        )


if __name__ == "__main__":
    main()
