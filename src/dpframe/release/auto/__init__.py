"""Limits and clipping bounds that a release chooses privately, with `dp.Auto()`."""

from dpframe.release.auto.choice import (
    Offer,
    check_choice,
    choose,
    expected_errors,
    judged_by,
    read_offer,
    read_people,
    restored,
    try_people,
)

__all__ = [
    "Offer",
    "check_choice",
    "choose",
    "expected_errors",
    "judged_by",
    "read_offer",
    "read_people",
    "restored",
    "try_people",
]
