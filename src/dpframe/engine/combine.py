"""Stage 1, for the steps that make rows of several rows or of several tables."""

from __future__ import annotations

from dpframe.engine.expressions import Lowering
from dpframe.engine.features import per_unit
from dpframe.engine.hooks import Frame
from dpframe.engine.rows import lowered, unit_names
from dpframe.plan import combine

__all__: list[str] = []  # importing this module teaches `engine.rows` the steps of `plan.combine`


@lowered.register
def _(step: combine.PerUnit, live: frozenset[str], empty: bool) -> Frame:
    table = step.before.table
    kept = sorted(column.id for column in step.table.columns.values() if column.is_unit and column.id in live)
    made = {step.table.columns[name].id: feature for name, feature in step.made.items()}
    made = {into: feature for into, feature in made.items() if into in live}
    read = {table.columns[name].id for feature in made.values() for name in feature.reads}
    here = Lowering(table, lowered(step.before, frozenset(kept) | read, empty))
    return per_unit(here, unit_names(table), kept, made)
