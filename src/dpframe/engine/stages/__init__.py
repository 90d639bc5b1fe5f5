"""The stages of a query: rows, integers, one row per unit and group, and
weights that enforce the limits.
"""

from dpframe.engine.stages.coerced import (
    to_float,
)
from dpframe.engine.stages.integers import (
    placed,
    row_integers,
)
from dpframe.engine.stages.joining import (
    most_per_key,
)
from dpframe.engine.stages.keys import (
    among,
    group_names,
    held_keys,
    key_frame,
    keyed,
    listed_groups,
    listed_only,
    public_keys,
    weighted_keys,
)
from dpframe.engine.stages.limits import (
    AT_PLACE,
    BEFORE_PLACE,
    Choice,
    Partial,
    distinct,
    enforced,
    kept_partials,
    multiplied,
    partial_bits,
    partials,
    sifted,
    weight_name,
    weighted_rows,
)
from dpframe.engine.stages.rows import (
    lower,
    unit_names,
)

__all__ = [
    "AT_PLACE",
    "BEFORE_PLACE",
    "Choice",
    "Partial",
    "among",
    "distinct",
    "enforced",
    "group_names",
    "held_keys",
    "kept_partials",
    "key_frame",
    "keyed",
    "listed_groups",
    "listed_only",
    "lower",
    "most_per_key",
    "multiplied",
    "partial_bits",
    "partials",
    "placed",
    "public_keys",
    "row_integers",
    "sifted",
    "to_float",
    "unit_names",
    "weight_name",
    "weighted_keys",
    "weighted_rows",
]
