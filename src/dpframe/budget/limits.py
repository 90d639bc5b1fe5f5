"""What is said of a budget's limit: when it promises little, and when it is reached."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpframe.budget.losses import Loss
from dpframe.errors import InvalidArgument
from dpframe.theory.formulas.loss import zcdp_to_epsilon
from dpframe.usage import warn

__all__ = ["exceeded", "read_min_units", "warn_of_weak"]

MOST_EPSILON = 10
MOST_DELTA = Fraction(1, 1000)
_USUAL_DELTA = 1e-6  # at which a limit in ρ is said in ε
_MOST_UNITS = 10**15  # so that a δ far below one over it is not below the smallest price
_SMALL_SHARE = 100  # a δ that is typed instead is so many times below 1 / number of units


def read_min_units(value: object) -> int | None:
    """How many units there are at least, or None. Errors: InvalidArgument.

    >>> read_min_units(500)
    500
    """
    if value is None:
        return None
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 1 <= int(value) <= _MOST_UNITS:
        return int(value)
    raise InvalidArgument(
        "min_units= is how many units there are at least, a whole number from 1 to 1e15 that is public, such as "
        "min_units=10_000. Do not count them in the protected table."
    )


def warn_of_weak(limit: Loss, min_units: object, typed: str) -> None:
    """Warn of a limit that promises little: ε above 10, or δ above 1/1000 or above 1 / min_units.

    Input:  limit, what all releases of a budget may cost; min_units, how many units there are at least, or None;
            typed, how a budget is written, with {} for its limit
    Bound:  nothing is read. At ε = 10 an outcome may be e^10, some 22,000 times, as likely with one unit's rows as
            without them. A release may show each unit's rows with probability δ and still keep its promise, so that
            from δ = 1 / number of units on one unit shown is to be expected
    Source: Dwork and Roth 2014, section 2.3, for δ
    Warns:  DpFrameWarning, at most one for ε and one for δ, where a budget is made and not where it is used

    A limit in ρ is held against the ε that it implies at δ = 1e-6.
    """
    least = read_min_units(min_units)
    epsilon, words = limit.epsilon, f"ε = {limit.epsilon:g}"
    if limit.rho is not None:
        epsilon = zcdp_to_epsilon(limit.rho, _USUAL_DELTA)
        words = f"ρ = {limit.rho:g}, which implies ε = {epsilon:.4g} at δ = {_USUAL_DELTA:g}"
    main = "epsilon=1.0" if limit.rho is None else "rho=0.02"
    delta = _smaller_delta(limit, least)
    if epsilon > MOST_EPSILON:
        line = typed.format(main + (f", delta={min(limit.delta, delta):g}" if limit.exact_delta else ""))
        warn(
            f"This budget allows {words} in all. Above ε = {MOST_EPSILON} little is promised: what is released may be "
            f"more than 22,000 times as likely with one unit's rows as without them. Type a smaller limit: {line}."
        )
    most, why = MOST_DELTA, "1/1000"
    if least is not None and Fraction(1, least) < most:
        most, why = Fraction(1, least), f"1/{least}, one over the least number of units"
    if limit.exact_delta > most:
        line = typed.format(f"{main}, delta={delta:g}")
        warn(
            f"This budget allows δ = {limit.delta:g} in all, which is above {why}. A release may show each unit's rows "
            f"with probability δ, so a δ is far below one over the number of units. Type a smaller one: {line}."
        )


def _smaller_delta(limit: Loss, least: int | None) -> float:
    """A δ to type: a power of ten, at most 1e-6 and at most a hundredth of one over the number of units."""
    delta = Fraction(1, 10**6)
    while least is not None and delta * least * _SMALL_SHARE > 1:
        delta /= 10
    return float(delta)


def exceeded(charged: Loss, limit: Loss, left: Loss) -> str:
    """Why a release is not paid for, and what to type. A budget that is spent is not asked for less.

    >>> from fractions import Fraction
    >>> one = Loss.limit(Fraction(1), Fraction(0))
    >>> print(exceeded(Loss.charged(Fraction(1, 2), Fraction(0)), one, one - one))
    The release costs ε = 0.5, and this budget of ε = 1 is spent: nothing is left. Nothing was charged. What it was \
spent on is in budget.history(); a release that had a name is given again for free, release(..., name='...').
    """
    main_left = left.exact_epsilon if left.exact_rho is None else left.exact_rho
    if not main_left:
        return (
            f"The release costs {charged}, and this budget of {limit} is spent: nothing is left. Nothing was charged. "
            "What it was spent on is in budget.history(); a release that had a name is given again for free, "
            "release(..., name='...')."
        )
    less = f"Ask for less; what is left is {left.typed}."
    if charged.exact_delta and not limit.exact_delta:
        less = "It has no δ: list the keys and leave delta= out, or make a budget with delta=1e-6."
    elif charged.exact_delta and not left.exact_delta:
        main = f"epsilon={left.epsilon!r}" if left.rho is None else f"rho={left.rho!r}"
        less = f"Its δ is spent: list the keys, keys=[...], and leave delta= out; what is left is {main}."
    return f"The release costs {charged}, and {left} of {limit} is left. Nothing was spent. {less}"
