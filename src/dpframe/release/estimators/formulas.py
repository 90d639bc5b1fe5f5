"""Released columns from noisy totals: post-processing, free of privacy cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpframe.plan import Measure, Output
from dpframe.release.pricing import NoisePlan

__all__ = ["in_ticks", "mean_of", "real", "released", "shown"]

Noisy = Mapping[tuple[object, ...], Any]


def released(output: Output, noisy: Noisy, plan: NoisePlan) -> Any:
    """A released column (column unit), one value per group."""
    match output.formula:
        case "mean":
            (_, total), (_, count) = output.measures
            return mean_of(output, real(total, noisy), real(count, noisy), plan.of(total).deviation)
        case "var" | "std":
            variance = _variance(output, noisy)
            return np.sqrt(variance) if output.formula == "std" else variance
        case "mode":
            ((_, measure),) = output.measures
            return noisy[measure.key]
        case "quantile":
            ((_, measure),) = output.measures
            assert measure.candidates is not None
            values = measure.candidates.lower + noisy[measure.key] * measure.candidates.step
            return np.rint(values).astype(np.int64) if output.whole else values
        case _:
            ((_, measure),) = output.measures
            return _whole(measure, noisy) if output.whole else real(measure, noisy)


def in_ticks(output: Output, values: Any) -> Any:
    """Released times as whole ticks of their type, inside their bounds and inside what Python and pandas can show."""
    whole = shown(output, values * output.ticks)
    if output.bounds is None or output.formula == "std":
        return whole
    return np.clip(whole, int(output.bounds.lower) * output.ticks, int(output.bounds.upper) * output.ticks)


def shown(output: Output, values: Any) -> Any:
    """Numbers as whole ones that fit: an int64, or as many ticks of a time as Python and pandas can show."""
    longest = 9.2e18
    if output.dtype is not None:
        unit = getattr(output.dtype, "time_unit", "us")
        longest = min(86_399_999_800_000.0 * 10 ** {"s": 0, "ms": 3, "us": 6, "ns": 9}[unit], longest)
    return np.clip(np.rint(values), -longest, longest).astype(np.int64)


def real(measure: Measure, noisy: Noisy) -> Any:
    """A noisy total in the column's unit."""
    return noisy[measure.key].astype(np.float64) * float(measure.unit)


def mean_of(output: Output, total: Any, count: Any, deviation: float) -> Any:
    """A mean from a noisy sum and count: their ratio, drawn to the middle of the bounds where noise is all there is.

    Input:  total: measured from the middle; deviation: that of its noise, σ (both column unit); count
    Output: middle + total · n / (n² + (σ/h)²) with n = max(count, 0) and h half the width of the bounds, inside them
    Bound:  none is needed, this is post-processing. With the true n, and m the distance of the true mean from the
            middle, the mean square error is (n²σ² + (σ/h)⁴m²) / (n² + (σ/h)²)². Since |m| <= h it is at most
            σ² / (n² + (σ/h)²), below the σ² / n² of the ratio
    Source: Hoerl, Kennard 1970, Technometrics 12, for the weight; the bounds say how large m can be
    """
    assert output.bounds is not None
    low, high = float(output.bounds.lower), float(output.bounds.upper)
    half, counted = high / 2 - low / 2, np.maximum(count, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        pulled = np.divide((deviation / half) ** 2, counted) if half and deviation else 0.0
        ratio = np.divide(total, counted + pulled, out=np.zeros_like(counted), where=counted > 0)
    ((_, measure), *_) = output.measures
    return np.clip(float(measure.grid.centre) + ratio, low, high)


def _bounded_mean(output: Output, total: Any, count: Any, centre: float) -> Any:
    assert output.bounds is not None
    return np.clip(centre + total / np.maximum(count, 1.0), float(output.bounds.lower), float(output.bounds.upper))


def _variance(output: Output, noisy: Noisy) -> Any:
    """E(x - middle)² - (E x - middle)², kept between 0 and the largest variance that the bounds allow."""
    (_, total), (_, squares), (_, count) = output.measures
    assert output.bounds is not None
    number = np.maximum(real(count, noisy), 1.0)
    second = float(squares.grid.centre) + real(squares, noisy) / number
    first = _bounded_mean(output, real(total, noisy), number, float(total.grid.centre)) - float(squares.about)
    largest = ((float(output.bounds.upper) - float(output.bounds.lower)) / 2) ** 2
    variance = np.clip(second - first**2, 0.0, largest)
    return variance * number / np.maximum(number - output.ddof, 1.0)


def _whole(measure: Measure, noisy: Noisy) -> Any:
    """A noisy total rounded to an integer, held inside int64."""
    values, low = noisy[measure.key], measure.fraction
    if low:
        values = (values + 2 ** (low - 1)) // 2**low
    if values.dtype == object:
        values = np.array([min(max(v, -(2**63)), 2**63 - 1) for v in values], dtype=np.int64)
    return values
