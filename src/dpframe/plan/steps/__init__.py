"""The steps of a plan, and what each step does to the rows of one unit."""

from dpframe.plan.steps.basic import (
    MOST,
    Cut,
    Filter,
    Rows,
    Source,
    Step,
    check_limit,
    exchanged,
    lineage,
    rebased,
    source_of,
    sources_of,
    typed_unit,
)
from dpframe.plan.steps.combine import (
    Concat,
)
from dpframe.plan.steps.features import (
    Feature,
    PerUnit,
    Pick,
    small,
)
from dpframe.plan.steps.partition import (
    ApartByPeriod,
    FirstPeriods,
    PartitionPart,
)
from dpframe.plan.steps.rewrites import (
    UnderPolicy,
)

__all__ = [
    "MOST",
    "ApartByPeriod",
    "Concat",
    "Cut",
    "Feature",
    "Filter",
    "FirstPeriods",
    "PartitionPart",
    "PerUnit",
    "Pick",
    "Rows",
    "Source",
    "Step",
    "UnderPolicy",
    "check_limit",
    "exchanged",
    "lineage",
    "rebased",
    "small",
    "source_of",
    "sources_of",
    "typed_unit",
]
