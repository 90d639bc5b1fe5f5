"""A question about a tree of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Unpack

from dpframe import engine
from dpframe.api.arguments import Options, read_mapping, read_names, read_share
from dpframe.api.marginals import TablesQuery
from dpframe.engine import Table_co
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan import Aggregate, Hierarchy, Keys, Limits, Tree, plain, tree_of
from dpframe.plan.declared import completed, limits_of
from dpframe.plan.steps import Step
from dpframe.release import HierarchyRelease
from dpframe.release.kinds.hierarchy import exact_levels, fitted_levels, level_variances
from dpframe.release.pricing import Fitted, NoisePlan


class HierarchyQuery(TablesQuery[Table_co]):
    """A hierarchy that has not been released. Nothing has been read and nothing paid."""

    __slots__ = ()
    _question: Hierarchy

    def exact_totals(self, table: Any) -> Mapping[str, Mapping[Any, Fraction]]:
        """The totals of every level, without noise, on a table that you
        made up; see `Query.exact_totals`.
        """
        question: Hierarchy = self._asked_of(engine.adopt(table))
        return exact_levels(question, engine.totals(question, 0), engine.listed_keys(question))

    def _fitted(self, plan: NoisePlan) -> Sequence[tuple[str, float | None, Fitted]]:
        """A level without noise of its own has no mechanism."""
        tree, by_name = self._question.levels, {one.allotment.names[0]: one for one in plan.noises}
        variances = level_variances(tree.names, plan)
        known = variances if all(variances) else [1.0] * len(variances)
        told: list[tuple[str, float | None, Fitted]] = []
        for name, level in zip(tree.names, fitted_levels(tree.shape, plan, known), strict=True):
            one = by_name.get(name)
            label = "not measured" if one is None else one.label
            told.append((label, None if one is None else one.scale * float(one.total.unit), level))
        return told

    def release(  # type: ignore[override]
        self, epsilon: float | None = None, delta: float | None = None, **options: Unpack[Options]
    ) -> HierarchyRelease[Table_co]:
        """Pay, read the rows, draw the noise, and give all levels back; see `Query.release`.

        Output: HierarchyRelease: a release for each level, `out["district"]`, and the table of the
                leaves, `out.table`
        """
        if options.get("covers", "noise") != "noise":
            raise UnsupportedOperation(
                "covers=: the intervals of a hierarchy are about its noise alone. Release one "
                "level by itself: group_by(...)."
            )
        return super().release(epsilon, delta, **options)  # type: ignore[return-value]

    def tune(self, *args: Any, **options: Any) -> Any:
        """Not for hierarchies. Errors: UnsupportedOperation, with the line to type."""
        raise UnsupportedOperation(
            "tune: limits of a hierarchy are tried on its leaves: "
            "group_by(...).count().tune({'max_rows': [1, 10]}, ...)."
        )


def read_crossed(by: object, columns: Sequence[str]) -> dict[str, Any]:
    """The columns that every level is crossed with, each with its listed keys or None.

    Input:  by: None, names of columns whose type brings their keys, or a dict from columns to lists
            of keys
    Errors: InvalidArgument, UnknownColumn
    """
    if by is None:
        return {}
    if isinstance(by, Mapping):
        return read_mapping(by, "hierarchy: by=")
    return dict.fromkeys(read_names([by], "hierarchy: by=", columns))


def read_tree(
    columns: Sequence[str], leaves: Keys | None, crossed: Mapping[str, Sequence[Any]]
) -> tuple[Tree, Keys]:
    """The tree with its leaves, crossed with keys of other columns.
    Errors: UnsupportedOperation without leaves.
    """
    if leaves is None:
        example = ", ".join(repr(name) for name in columns)
        raise UnsupportedOperation(
            "hierarchy: the tree is public, keys=places with a row for each leaf and the columns "
            f"{example}. A tree that is found in the data would have to be paid for: "
            "group_by(...).keys() finds groups privately."
        )
    return tree_of(list(leaves), columns, crossed)


def hierarchy_of(
    step: Step,
    tree: tuple[Tree, Keys],
    aggregate: tuple[str, Aggregate],
    limits: Limits,
    shares: object,
) -> Hierarchy:
    """The question of a tree. Errors: InvalidArgument."""
    (levels, keys), (value, statistic) = tree, aggregate
    return Hierarchy(
        step,
        (*levels.columns, *levels.crossed),
        keys,
        limits_of(limits, step.table, groups=True),
        ((value, completed(statistic, step.table)),),
        verb=f"hierarchy([{', '.join(map(repr, levels.columns))}], keys=..., {{limit}})",
        tree=levels,
        typed_shares=_read_shares(shares, levels.names),
    )


def _read_shares(shares: object, names: Sequence[str]) -> tuple[Fraction, ...] | None:
    """The typed parts of the price by level, from the root; None for the derived ones."""
    if shares is None:
        return None
    example = ", ".join(f"{name!r}: 1" for name in names)
    if not isinstance(shares, Mapping) or set(shares) != set(names):
        raise InvalidArgument(
            f"hierarchy: shares= has a number for each level: shares={{{example}}}."
        )
    parts = tuple(
        Fraction(0)
        if type(plain(shares[name])) in (int, float) and shares[name] == 0
        else read_share(shares[name])
        for name in names
    )
    if not parts[-1]:
        raise InvalidArgument(
            f"hierarchy: shares= has 0 for {names[-1]!r}; leaves are always measured."
        )
    return parts
