"""The derivation of a query in words."""

from dpframe.plan.explain.beyond import Beyond, beyond_words
from dpframe.plan.explain.derivation import (
    Derivation,
    asked,
    derivation,
    describe,
    limits_in_words,
    open_bounds_of,
    policy_words,
    render_html,
    render_text,
    unit_words,
)

__all__ = [
    "Beyond",
    "Derivation",
    "asked",
    "beyond_words",
    "derivation",
    "describe",
    "limits_in_words",
    "open_bounds_of",
    "policy_words",
    "render_html",
    "render_text",
    "unit_words",
]
