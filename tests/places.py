"""Rows at candidates, as the engine gives them to a choice."""

import numpy as np

from dpframe.arrays import PlaceCounts


def place_counts(table):
    """The same numbers as an array of shape (groups, places)."""
    table = np.asarray(table)
    groups, places = np.nonzero(table)
    numbers = np.array([int(table[at]) for at in zip(groups, places, strict=True)], np.int64)
    return PlaceCounts(groups, places, numbers, table.shape)
