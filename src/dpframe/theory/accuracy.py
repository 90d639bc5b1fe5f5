"""Accuracy of noise: the error that is exceeded with probability at most alpha, and the scale for a wanted error."""

from __future__ import annotations

from typing import Any

from dpframe.errors import InvalidArgument
from dpframe.theory.exact import exact
from dpframe.theory.formulas.loss import calibration
from dpframe.theory.measurements import checked_scale
from dpframe.theory.spaces import AtomDomain

__all__ = ["gaussian_error", "gaussian_scale_for_error", "laplace_error", "laplace_scale_for_error"]


def laplace_error(scale: Any, alpha: Any, T: Any = float) -> int | float:  # noqa: N803
    """The error of `laplace` at a confidence: smallest e with P[|noise| > e] <= alpha.

    Input:  scale > 0; alpha in (0, 1), the chance of a larger error; T: the type of the numbers, as in AtomDomain
    Output: e in the unit of the numbers: float (rounded up) for floats, scale·ln(1/alpha); int for integers
    Bound:  for integers P[|noise| > e] = P[|noise| >= e + 1]; for a strict bound |noise| < e at 1 - alpha, add 1
    Source: `calibration.real_error`, `calibration.noise_error`
    Errors: InvalidArgument (InvalidPrice for alpha)

    >>> round(laplace_error(scale=25.0, alpha=0.05), 6), laplace_error(scale=25.0, alpha=0.05, T=int)
    (74.893307, 75)
    """
    if _real(T):
        return calibration.real_error("laplace", checked_scale(scale), exact(alpha, "alpha"))
    return calibration.noise_error("discrete_laplace", checked_scale(scale), exact(alpha, "alpha"))


def gaussian_error(scale: Any, alpha: Any, T: Any = float) -> int | float:  # noqa: N803
    """The error of `gaussian` at a confidence: smallest e with P[|noise| > e] <= alpha.

    Input:  scale: the standard deviation > 0; alpha and T as in `laplace_error`
    Output: as `laplace_error`; for floats scale·√2·erfc⁻¹(alpha)
    Source: `calibration.real_error`, `calibration.noise_error`
    Errors: InvalidArgument (InvalidPrice for alpha)

    >>> round(gaussian_error(scale=1.0, alpha=0.05), 6), gaussian_error(scale=1.0, alpha=0.05, T=int)
    (1.959964, 2)
    """
    if _real(T):
        return calibration.real_error("gaussian", checked_scale(scale), exact(alpha, "alpha"))
    return calibration.noise_error("gaussian", checked_scale(scale), exact(alpha, "alpha"))


def laplace_scale_for_error(error: Any, alpha: Any, T: Any = float) -> float:  # noqa: N803
    """The largest scale at which `laplace_error` is at most this error.

    Input:  error > 0 in the unit of the numbers (for integers its whole part is used); alpha and T as in
            `laplace_error`
    Output: scale (same unit), rounded down
    Source: `calibration.real_scale_for_error`, `calibration.scale_for_error`
    Errors: InvalidArgument (InvalidPrice for alpha)

    >>> round(laplace_scale_for_error(error=1.0, alpha=0.05), 6)
    0.333808
    """
    if _real(T):
        return calibration.real_scale_for_error("laplace", exact(error, "error"), exact(alpha, "alpha"))
    return calibration.scale_for_error("discrete_laplace", exact(error, "error"), exact(alpha, "alpha"))


def gaussian_scale_for_error(error: Any, alpha: Any, T: Any = float) -> float:  # noqa: N803
    """The largest standard deviation at which `gaussian_error` is at most this error.

    Input:  as `laplace_scale_for_error`
    Output: scale (unit of the numbers), rounded down
    Source: `calibration.real_scale_for_error`, `calibration.scale_for_error`
    Errors: InvalidArgument (InvalidPrice for alpha)

    >>> round(gaussian_scale_for_error(error=1.0, alpha=0.05), 6)
    0.510213
    """
    if _real(T):
        return calibration.real_scale_for_error("gaussian", exact(error, "error"), exact(alpha, "alpha"))
    return calibration.scale_for_error("gaussian", exact(error, "error"), exact(alpha, "alpha"))


def _real(kind: Any) -> bool:
    """True for a float type, False for an integer type. Errors: InvalidArgument for any other type."""
    atom = AtomDomain(kind)
    if not (atom.is_float or atom.is_integer):
        raise InvalidArgument(f"T={kind!r}: noise is added to integers or floats.")
    return atom.is_float
