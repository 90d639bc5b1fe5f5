"""`dp.Auto()`: limits and bounds that the release chooses privately."""

from __future__ import annotations

from dpframe.api.arguments import read_share
from dpframe.errors import InvalidArgument
from dpframe.plan import Auto as Chosen
from dpframe.usage import check_flags, door


@door
def Auto(share: float | None = None, *, scaled: bool = True) -> Chosen:  # noqa: N802 - a value to type, like dp.Rows(1)
    """Typed in place of limits or bounds: the release chooses them privately, for this share of its
    price.

    `limits=dp.Auto()` in every asking verb, `bounds=dp.Auto()` in `dp.sum`, `dp.mean`,
    `dp.quantile` and the like.

    Input:  share, strictly between 0 and 1. By default bounds of all columns together have a
            quarter of the price. Limits have a tenth, but for counts and sums alone a fifth in at
            most 8 listed groups, and 15% in at most 30. Where a question has several dp.Auto(),
            each has its own share; bounds of one column are chosen once. scaled, for limits alone:
            whether counts and sums are corrected for the rows that the chosen limits remove
    Output: limits or bounds with the smallest expected error. Higher limits need more noise, so the
            best limits usually remove some rows. Noisy histograms estimate how many. Counts of
            rows, and sums beside a count of rows, are multiplied by one factor that corrects for
            the removed rows. This applies if two groups or more are listed and max_rows is the only
            limit. The factor is at most 4, and the report states it. It is one factor for all
            groups: groups whose people have few rows come out too large, and without the factor the
            others would come out too small. Margins of error are multiplied too; they do not
            include the error of the factor. `expected_error` in the report's JSON is the root mean
            square, over the groups, of the released number less the true one (column unit), with
            noise and removed rows, as estimated from the histograms. It is within a factor of two
            of the real error for nearly all counts of the panels in `benchmarks/auto.py`, and for
            most means, though it knows nothing of their values but the bounds. Where counts or sums
            are asked beside other statistics, or these are of several columns, columns get limits
            of their own if that is expected to be better: a mean needs fewer rows of each person
            than a count. The report states the limits of each. For `dp.n_unique` the share also
            pays for a noisy number of different values. Where people share values, low limits lose
            hardly any value. In few groups these numbers say little of rare values, so where most
            values are rare, limits may come out too low
    Bound:  limits and bounds are chosen from noisy histograms in which each unit counts once, and
            for `dp.n_unique` also from noisy numbers of values in all groups together. The rest of
            the price pays for the answer: composition of adaptively chosen parts, see
            `dpframe.release.auto.choice`. All of the price is charged, and all of δ, since the
            chosen noise may need it. The release's report states the choice, its cost and its
            reason. Scaling is free, since it reads no row: see `dpframe.release.answer.upscaling`
    Errors: InvalidArgument; InvalidBounds for scaled=False in bounds; UnsupportedOperation if
            several queries are priced together

    >>> import polars as pl, dpframe as dp
    >>> visits = pl.DataFrame(
    ...     {"user": range(500), "city": ["Bonn", "Kiel"] * 250, "spend": [3.0, 40.0] * 250}
    ... )
    >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=2.0))
    >>> groups = frame.group_by("city", keys=["Bonn", "Kiel"], limits=dp.Auto())
    >>> out = groups.agg(n=dp.count(), spend=dp.mean("spend", bounds=dp.Auto())).release(
    ...     epsilon=1.0
    ... )
    >>> out.table.shape, "Chosen inside the release" in str(out.report())
    ((2, 3), True)
    >>> dp.Auto(0.2).share, dp.Auto(scaled=False)
    (Fraction(1, 5), dp.Auto(scaled=False))
    """
    part = None if share is None else read_share(share, "0.1 for a tenth of the price")
    if part is not None and part >= 1:
        raise InvalidArgument("dp.Auto(share=...): a share of the price is below 1, such as 0.1.")
    check_flags("dp.Auto(scaled=...) is True or False.", scaled)
    return Chosen(part, scaled)
