"""From raw totals to released numbers: noise, thresholds, selections, and post-processing."""

from dpframe.release.answer.coefficients import (
    influences_of,
)
from dpframe.release.answer.draw import (
    drawn_influences,
    drawn_table,
    plus,
)
from dpframe.release.answer.key_rounds import (
    keys_in_rounds,
)
from dpframe.release.answer.moments import (
    Moments,
    nearest_psd,
)
from dpframe.release.answer.numbers import (
    LEFT_OUT,
    Numbers,
    keys_beside,
    left_out_names,
)
from dpframe.release.answer.postprocess import (
    is_total,
    known_nonnegative,
    nonnegative,
    rounded,
    table_of,
)
from dpframe.release.answer.shrinking import (
    compared_groups,
    has_noisy_differences,
    shrunk_interval,
    shrunk_numbers,
)
from dpframe.release.answer.upscaling import (
    RemainingRows,
    is_scaled,
    is_scaled_by,
    may_be_scaled,
    rounding_of,
    scaled,
)

__all__ = [
    "LEFT_OUT",
    "Moments",
    "Numbers",
    "RemainingRows",
    "compared_groups",
    "drawn_influences",
    "drawn_table",
    "has_noisy_differences",
    "influences_of",
    "is_scaled",
    "is_scaled_by",
    "is_total",
    "keys_beside",
    "keys_in_rounds",
    "known_nonnegative",
    "left_out_names",
    "may_be_scaled",
    "nearest_psd",
    "nonnegative",
    "plus",
    "rounded",
    "rounding_of",
    "scaled",
    "shrunk_interval",
    "shrunk_numbers",
    "table_of",
]
