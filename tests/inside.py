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
