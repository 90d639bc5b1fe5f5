"""The chart of a level of a hierarchy: its nodes as bars with their intervals, in the order of the tree."""

from __future__ import annotations

import polars as pl

from dpframe.plan import Tree
from dpframe.release.shown import as_text

__all__ = ["drawn_level", "labelled"]

_MOST = 25  # the largest number of bars of the level that is drawn if none is typed


def drawn_level(tree: Tree) -> int:
    """The place of the lowest level with at most 25 numbers, or of the level below the root."""
    fitting = [level for level in range(1, len(tree.names)) if tree.shape.sizes[level] * tree.cells <= _MOST]
    return fitting[-1] if fitting else 1


def labelled(tree: Tree, level: int, keys: pl.DataFrame) -> tuple[tuple[str, ...], pl.DataFrame]:
    """One column with a label for each node, and the crossed columns.

    The label is the node's own key. If two nodes of the level have one key, such as two towns of one name, the keys
    above it stand before it.

    Input:  keys: a row for each number of the level, as `Tree.by` orders its columns
    """
    columns = tree.columns[:level]
    crossed = [pl.col(name) for name in tree.crossed]
    if level <= 1 or keys[columns[-1]].n_unique() == tree.shape.sizes[level]:
        return (columns[-1], *tree.crossed), keys.select(pl.col(columns[-1]), *crossed)
    texts = pl.concat_str([as_text(keys[name]).fill_null("null") for name in columns], separator=", ")
    name = ", ".join(columns)
    return (name, *tree.crossed), keys.select(texts.alias(name), *crossed)
