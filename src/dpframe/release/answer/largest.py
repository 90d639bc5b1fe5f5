"""The groups with the largest released numbers, out of all that were found: post-processing, free of privacy cost."""

from __future__ import annotations

import numpy as np
import polars as pl

from dpframe.plan import Question

GROUPS_FOUND = "groups found"  # among the parts of an answer: how many groups the kept ones were picked from


def largest_groups(
    question: Question, table: pl.DataFrame, parts: dict[str, np.ndarray]
) -> tuple[pl.DataFrame, dict[str, np.ndarray]]:
    """The groups with the largest released numbers, the largest first; all groups where the question keeps all.

    Input:  the released table, one row per group that was found; parts: numbers beside it, one per group
    Output: table and parts with at most `layout.largest` groups. Equal numbers keep the order of the table. The parts
            have `GROUPS_FOUND` too, in each row
    Bound:  the table was released in full: its keys and its noisy numbers are private together. Which of them are
            shown, and how many there were, is a function of that table
    Source: post-processing, Dwork and Roth 2014, proposition 2.1
    """
    most = question.layout.largest
    if most is None:
        return table, parts
    ((name, _),) = question.aggregates
    kept = np.argsort(-table.get_column(name).cast(pl.Float64).to_numpy(), kind="stable")[:most]
    return table[kept], {n: p[kept] for n, p in parts.items()} | {GROUPS_FOUND: np.full(len(kept), float(table.height))}


def found_words(question: Question, table: pl.DataFrame) -> str:
    """How many groups were found, and whether these are fewer than were asked for."""
    most = question.layout.largest or 0
    fewer = f", fewer than the {most} that were asked for" if table.height < most else ""
    return f"Groups that were found: {table.height}{fewer}."
