"""What tests look at inside of the library. Nothing else in the tests names these attributes."""

from __future__ import annotations

from typing import Any


def question_of(query: Any) -> Any:
    """The question of a query, or of groups that are about to be asked:
    what is read and what it costs.
    """
    return query._question


def numbers_of(release: Any) -> Any:
    """The numbers of a release before they are laid out, with their noise."""
    return release._numbers


def statement_of(release: Any) -> Any:
    """The facts that a release states, as they are stored."""
    return release._statement


def step_of(frame: Any) -> Any:
    """The plan of a protected frame or of its groups: the last step of what is done with rows."""
    return frame._step


def node_of(expression: Any) -> Any:
    """The tree of an expression, as the plan holds it."""
    return expression._node


def book_of(budget: Any) -> Any:
    """The entries of a budget, as its ledger or the memory keeps them."""
    return budget._book
