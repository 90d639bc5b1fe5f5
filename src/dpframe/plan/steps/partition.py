"""One part of a partitioned table: the rows with one key, of the units that keep that key."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dpframe.errors import InvalidArgument, UnsupportedOperation, WrongType
from dpframe.plan.columns import Table
from dpframe.plan.expressions import col
from dpframe.plan.steps.basic import Filter, Step
from dpframe.plan.types import Kind, Scalar, kind, show


@dataclass(frozen=True, eq=False)
class PartitionPart(Step):
    """The rows whose column has one of the listed keys, of at most `max_groups` keys for each unit.

    Rows only leave. Which keys a unit keeps depends on its own rows, the list of keys and the salt. None of these
    changes, and the keys are chosen here, before any later step. So all parts together never hold more than
    `max_groups` of a unit's keys, whatever steps follow.
    """

    before: Step
    name: str
    key: Scalar
    keys: tuple[Scalar, ...]
    max_groups: int
    salt: str = field(repr=False)
    hashes: dict[str, Any] = field(repr=False, default_factory=dict)  # of engines that keep them, for all parts

    @cached_property
    def table(self) -> Table:
        """Domain and contribution after this step."""
        table = self.before.table
        if table.relation == "replace":
            raise UnsupportedOperation(
                "partition: under neighbors='replace' a unit may leave one part and appear in another, so parts do not "
                "compose in parallel. Protect the table with neighbors='add-remove'."
            )
        column = table.column(self.name, "partition")
        if kind(column.domain.dtype) not in (Kind.INTEGER, Kind.STRING, Kind.BOOLEAN, Kind.DATE):
            raise WrongType(
                f"partition({self.name!r}): a column of type {show(column.domain.dtype)} cannot make parts."
            )
        if {c.id for c in table.unit} == {column.id}:
            raise UnsupportedOperation("partition: each part would be one unit. Choose a column that people share.")
        if table.declared is not None and self.max_groups < min(table.declared, len(self.keys)):
            raise InvalidArgument(
                f"partition: one person has up to {table.declared} rows, which may be in as many parts, and without "
                f"an identifier none can be left out: max_groups={min(table.declared, len(self.keys))}."
            )
        return Filter(self.before, col(self.name) == self.key).table

    @property
    def typed(self) -> str:
        """The line as the user typed it."""
        return f"partition({self.name!r}, max_groups={self.max_groups})[{self.key!r}]"
