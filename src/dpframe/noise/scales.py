"""Checks of the samplers' arguments: one positive scale or one per
draw, and the number of draws.
"""

from __future__ import annotations

import math
import numbers
import operator
from fractions import Fraction
from typing import Any

import numpy as np

from dpframe.arrays import Floats
from dpframe.errors import InvalidArgument

Scale = float | Floats


def part(scale: Scale, draws: Any) -> Scale:
    """The scale of some of the draws: one for all, or one for each."""
    return scale if isinstance(scale, float) else scale[draws]


def check_size(size: Any) -> int:
    """Return the number of draws as an int that is zero or more."""
    try:
        count = -1 if isinstance(size, bool) else operator.index(size)
    except TypeError:
        count = -1
    if count < 0:
        raise InvalidArgument(
            f"size={size!r}: the number of draws must be an integer that is zero or more."
        )
    return count


def check_scale(scale: object, size: int) -> Scale:
    """Return the scale as a float, or as a float64 array with one scale per draw.
    No scale is rounded.
    """
    match scale:
        case np.ndarray() if scale.ndim > 0:
            if scale.shape != (size,):
                raise InvalidArgument(
                    f"scale has shape {scale.shape} for {size} draws: give one scale, or one per "
                    "draw."
                )
            if not np.can_cast(scale.dtype, np.float64):
                raise InvalidArgument(
                    f"scale has dtype {scale.dtype}: give float64, so that the law is exact."
                )
            scales = scale.astype(np.float64)
            if not (np.isfinite(scales).all() and (scales > 0).all()):
                raise InvalidArgument("scale: every scale must be a positive finite number.")
            return scales
        case np.ndarray():
            scale = scale[()]
    if not isinstance(scale, numbers.Real) or isinstance(scale, bool):
        raise InvalidArgument(
            f"scale={scale!r}: the scale must be a positive finite number, or a float64 array."
        )
    try:
        exact = float(scale)
    except OverflowError:
        exact = math.inf
    if not (math.isfinite(exact) and exact > 0):
        raise InvalidArgument(f"scale={scale!r}: the scale must be a positive finite number.")
    if exact != scale:
        raise InvalidArgument(
            f"scale={scale!r} is not a float64; round it up to one, so that the law is exact."
        )
    return exact


def rational(name: str, value: object) -> Fraction:
    """Return the exact value of an integer, float or fraction."""
    match value:
        case bool():
            pass
        case numbers.Rational():
            return Fraction(value)
        case numbers.Real() if math.isfinite(value):
            return Fraction(float(value))
    raise InvalidArgument(f"{name}={value!r} must be a finite number.")


def positive(name: str, value: object) -> Fraction:
    """Return the exact value of a number above 0."""
    exact = rational(name, value)
    if exact <= 0:
        raise InvalidArgument(f"{name}={value!r} must be positive.")
    return exact
