"""Limits and bounds that are chosen inside the release."""

from __future__ import annotations

from fractions import Fraction

from dpframe.api.arguments import read_share
from dpframe.errors import InvalidArgument
from dpframe.plan import Auto as Chosen

__all__ = ["Auto"]


def Auto(share: float = 0.1, *, scaled: bool = True) -> Chosen:  # noqa: N802 - a value to type, like dp.Rows(1)
    """In place of a limit set or of bounds: chosen privately inside the release, for that share of its price.

    `limits=dp.Auto()` in every asking verb, `bounds=dp.Auto()` in `dp.sum`, `dp.mean`, `dp.quantile` and the like.

    Input:  share, strictly between 0 and 1; of several in one question each has its own, and one column's bounds are
            chosen once; scaled, of limits alone: whether numbers are scaled up by what chosen limits leave out
    Output: limits that leave less out cost more noise, so the best ones leave something out. How much, the same
            histograms say, and in twelve listed groups and more, where rows in all are limited and nothing else, counts
            of rows (and sums beside such a count) are multiplied by that factor, at most 2, which the report states. It
            is one factor for all groups, so those whose people have few rows come out too large, as without it the
            others come out too small. Margins of error are multiplied too; they leave out how far the factor is off.
            `expected_error` in the report's JSON is the root mean square, over the groups, of what is released less the
            raw truth (column unit), noise and all that is left out together, as the histograms let expect: within a
            factor of two of the real one for nearly all counts of the panels in `benchmarks/auto.py`, and most means,
            of whose values it knows nothing but the bounds. For `dp.n_unique` the same share pays for two noisy
            numbers of different values, too: where people share values, low limits lose hardly any. In few groups they
            say little of rare values, so where these are most, limits may come out too low
    Bound:  what is open is chosen from noisy histograms in which each unit counts once, and for `dp.n_unique` also from
            noisy numbers of values in all groups together; the rest of the price pays for the answer: composition of
            adaptively chosen parts, see `dpframe.release.auto.choice`. All of the price is charged, δ too, since what
            is chosen may need it. The release's report says what was chosen, at what cost and why. Scaling is free, it
            reads nothing: see `dpframe.release.answer.upscaling`
    Errors: InvalidArgument; InvalidBounds for scaled=False in bounds; UnsupportedOperation where several queries are
            priced together

    >>> import polars as pl, dpframe as dp
    >>> visits = pl.DataFrame({"user": range(500), "city": ["Bonn", "Kiel"] * 250, "spend": [3.0, 40.0] * 250})
    >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=2.0))
    >>> groups = frame.group_by("city", keys=["Bonn", "Kiel"], limits=dp.Auto())
    >>> out = groups.agg(n=dp.count(), spend=dp.mean("spend", bounds=dp.Auto())).release(epsilon=1.0)
    >>> out.table.shape, "Chosen inside the release" in str(out.report())
    ((2, 3), True)
    >>> dp.Auto(0.2).share, dp.Auto(scaled=False)
    (Fraction(1, 5), dp.Auto(scaled=False))
    """
    part = read_share(share, "0.1 for a tenth of the price")
    if part >= 1:
        raise InvalidArgument("dp.Auto(share=...): a share of the price is below 1, such as 0.1.")
    if not isinstance(scaled, bool):
        raise InvalidArgument("dp.Auto(scaled=...) is True or False.")
    return Chosen(Fraction(part), scaled)
