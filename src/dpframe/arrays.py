"""Types of numpy arrays, for annotations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Booleans", "Floats", "Integers", "WideIntegers", "Words"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
WideIntegers = NDArray[np.int64] | NDArray[np.object_]  # int64, or Python integers where some do not fit in 64 bits
Booleans = NDArray[np.bool_]
Words = NDArray[np.uint64]
