"""The rows of one part of a partition. The parts of a unit do not change between releases or machines."""

from __future__ import annotations

from dpframe.engine.backends import Frame, backend_of
from dpframe.engine.stages.keys import listed
from dpframe.engine.stages.rows import lowered, unit_names
from dpframe.plan.steps import PartitionPart

__all__: list[str] = []


@lowered.register
def _(step: PartitionPart, live: frozenset[str], empty: bool) -> Frame:
    column = step.before.table.columns[step.name]
    frame = lowered(step.before, live | {column.id}, empty)
    here = frame.filter(listed(frame, column, [step.key]))
    units = unit_names(step.table)
    if not units or step.max_groups >= len(step.keys):
        return here
    engine = backend_of(frame)
    pairs = engine.unique(frame.filter(listed(frame, column, step.keys)).select(*units, column.id))
    memberships = engine.kept(pairs, units, column.id, step.max_groups, step.salt, step.hashes)
    return here.join(memberships.filter(listed(memberships, column, [step.key])).select(*units), on=units, how="semi")
