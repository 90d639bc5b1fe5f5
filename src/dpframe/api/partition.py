"""`frame.partition(...)`: one protected frame for each key, whose releases compose in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpframe.api.arguments import read_name
from dpframe.api.settings import resolve_budget
from dpframe.budget import Budget, PartBudget
from dpframe.errors import InvalidArgument, UnsupportedOperation, kind_of
from dpframe.noise import bits
from dpframe.plan import Limits, described_table, read_keys
from dpframe.plan.declared import check_levels, check_limits
from dpframe.plan.steps import PartitionPart, Step, check_limit, lineage


def partitioned(
    step: Step, budget: Any, by: str, keys: Sequence[Any] | None, max_groups: int
) -> list[tuple[Any, Step, Any]]:
    """The parts of a table: key, step and budget of each. See `PrivateFrame.partition`."""
    name = read_name(by, "partition")
    most = check_limit(max_groups, "max_groups")
    paying = resolve_budget(budget)
    if isinstance(paying, PartBudget) or any(isinstance(s, PartitionPart) for s in lineage(step)):
        raise UnsupportedOperation("partition: a part of a partition cannot be partitioned again.")
    if not isinstance(paying, Budget):
        raise UnsupportedOperation(
            f"partition: {kind_of(paying)} cannot count parts in parallel, and a whole budget can. "
            "Protect the table with the budget itself, dp.protect(table, ..., "
            f"budget=budget).partition({name!r}, keys=[...]), or ask a grouped question: "
            f"frame.group_by({name!r}, keys=[...])."
        )
    domain = step.table.column(name, "partition").listed
    levels = read_keys(keys, (name,), [domain], f"partition({name!r})")
    if levels is None or any(key is None for key in levels.levels[0]):
        raise InvalidArgument(
            f"partition({name!r}): list the keys of the parts, keys=['north', 'south']."
        )
    check_levels(step.table, (name,), levels.levels, f"partition({name!r})")
    check_limits(Limits(max_groups=most), step.table, f"partition({name!r})")
    values = tuple(key for key in levels.levels[0] if key is not None)
    for key in values:  # refuse before anything is written
        _ = PartitionPart(step, name, key, values, most, "").table
    # The description of a partition says nothing of its rows, and partitions of other rows must not
    # share its account. So each call opens a partition of its own, and the costs of two partitions
    # add up.
    call = "".join(f"{int(word):016x}" for word in bits.random_words(2))
    description = {
        **described_table(step),
        "by": name,
        "keys": [repr(key) for key in values],
        "max_groups": most,
        "call": call,
    }
    partition, salt = paying.partition(description, min(most, len(values)))
    hashes: dict[str, Any] = {}
    steps = [PartitionPart(step, name, key, values, most, salt, hashes) for key in values]
    return [(part.key, part, PartBudget(paying, partition, repr(part.key))) for part in steps]
