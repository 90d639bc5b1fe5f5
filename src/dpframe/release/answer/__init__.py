"""From raw totals to released numbers: noise, thresholds, selections, and post-processing."""

from dpframe.release.answer.draw import (
    aligned,
    drawn_influences,
    drawn_table,
    plus,
)
from dpframe.release.answer.joint_tables import (
    JointTables,
    family_of,
    joint_nonnegative,
    joint_whole,
)
from dpframe.release.answer.moments import (
    Moments,
    influences_of,
    nearest_psd,
)
from dpframe.release.answer.numbers import (
    COUNTED,
    LEFT_OUT,
    Numbers,
    compared_groups,
    has_noisy_differences,
    keys_beside,
    left_out_names,
    shrunk_interval,
    shrunk_numbers,
)
from dpframe.release.answer.postprocess import (
    GROUPS_FOUND,
    adds_up,
    found_words,
    is_total,
    known_nonnegative,
    largest_groups,
    nonnegative,
    table_of,
)
from dpframe.release.answer.rounding import read_base
from dpframe.release.answer.suppression import (
    OTHER,
    SMALL,
    Reader,
    Suppression,
    check_limit_of_numbers,
    hidden_in_tree,
    read_suppression,
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
    "COUNTED",
    "GROUPS_FOUND",
    "LEFT_OUT",
    "OTHER",
    "SMALL",
    "JointTables",
    "Moments",
    "Numbers",
    "Reader",
    "RemainingRows",
    "Suppression",
    "adds_up",
    "aligned",
    "check_limit_of_numbers",
    "compared_groups",
    "drawn_influences",
    "drawn_table",
    "family_of",
    "found_words",
    "has_noisy_differences",
    "hidden_in_tree",
    "influences_of",
    "is_scaled",
    "is_scaled_by",
    "is_total",
    "joint_nonnegative",
    "joint_whole",
    "keys_beside",
    "known_nonnegative",
    "largest_groups",
    "left_out_names",
    "may_be_scaled",
    "nearest_psd",
    "nonnegative",
    "plus",
    "read_base",
    "read_suppression",
    "rounding_of",
    "scaled",
    "shrunk_interval",
    "shrunk_numbers",
    "table_of",
]
