"""Limits that are chosen inside the release."""

from __future__ import annotations

from fractions import Fraction

from dpframe.api.arguments import read_share
from dpframe.errors import InvalidArgument
from dpframe.plan.columns import Auto as Chosen

__all__ = ["Auto"]


def Auto(share: float = 0.1) -> Chosen:  # noqa: N802 - a value to type, like dp.Rows(1)
    """In place of a limit set, `limits=dp.Auto()`: chosen privately inside the release, for that share of its price.

    Input:  share, strictly between 0 and 1
    Bound:  the limits are chosen from noisy histograms in which each unit counts once; the rest of the price pays for
            the answer under them: sequential composition. All of the price is charged, δ too, since what is chosen may
            need it
    Errors: InvalidArgument

    >>> Auto(0.2).share
    Fraction(1, 5)
    """
    part = read_share(share)
    if part >= 1:
        raise InvalidArgument("dp.Auto(share=...): a share of the price is below 1, such as 0.1.")
    return Chosen(Fraction(part))
