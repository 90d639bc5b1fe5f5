"""The only room that reads rows: it takes in tables, runs a question on their
engine, and returns integer totals.
"""

from dpframe.engine.histograms import (
    EXPONENTS,
    NODES,
    ONE,
    key_profile,
    magnitude_profile,
    size_profile,
    value_profile,
)
from dpframe.engine.marginals import (
    Contingency,
    contingency,
    empty_sums,
    listed_keys,
    marginal_keys,
    marginal_totals,
    validate_contingency,
    validate_marginals,
)
from dpframe.engine.native import adopt, content, public, values_of
from dpframe.engine.origins import content_hash, origin_of, read_origin
from dpframe.engine.parts import set_most
from dpframe.engine.stages import most_per_key
from dpframe.engine.support import check_supported, queries, work_in_words
from dpframe.engine.tables import (
    Data,
    Kind,
    Table_co,
    as_kind,
    in_own_types,
    polars_dtype,
)
from dpframe.engine.totals import Totals, sealed, totals, validate
from dpframe.engine.unchanged import check_files, check_unchanged

__all__ = [
    "EXPONENTS",
    "NODES",
    "ONE",
    "Contingency",
    "Data",
    "Kind",
    "Table_co",
    "Totals",
    "adopt",
    "as_kind",
    "check_files",
    "check_supported",
    "check_unchanged",
    "content",
    "content_hash",
    "contingency",
    "empty_sums",
    "in_own_types",
    "key_profile",
    "listed_keys",
    "magnitude_profile",
    "marginal_keys",
    "marginal_totals",
    "most_per_key",
    "origin_of",
    "polars_dtype",
    "public",
    "queries",
    "read_origin",
    "sealed",
    "set_most",
    "size_profile",
    "totals",
    "validate",
    "validate_contingency",
    "validate_marginals",
    "value_profile",
    "values_of",
    "work_in_words",
]
