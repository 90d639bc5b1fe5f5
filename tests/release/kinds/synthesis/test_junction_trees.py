"""Junction trees: every set is in a clique, and each column's cliques hang together."""

import random
from itertools import combinations

import pytest

from dpframe.release.kinds.synthesis.model import cells_of, junction_tree, tree_cells


def sets_of(rng, columns):
    every = [part for size in (1, 2, 3) for part in combinations(range(columns), size)]
    return rng.sample(every, rng.randint(0, min(8, len(every))))


@pytest.mark.parametrize("seed", range(30))
def test_sets_are_in_cliques_and_cliques_of_a_column_hang_together(seed):
    rng = random.Random(seed)
    sizes = tuple(rng.choice([2, 3, 7]) for _ in range(rng.randint(1, 7)))
    sets = sets_of(rng, len(sizes))
    tree = junction_tree(sets, sizes)
    assert all(tree.home(part, sizes) is not None for part in sets)
    assert {i for clique in tree.cliques for i in clique} == set(range(len(sizes)))
    seen = set()
    for i, (clique, parent, separator) in enumerate(
        zip(tree.cliques, tree.parents, tree.separators, strict=True)
    ):
        assert parent < i
        assert set(clique) & seen == set(separator), (
            "a column is in an earlier clique and not in the parent"
        )
        assert parent < 0 or set(separator) <= set(tree.cliques[parent])
        assert (parent < 0) == (not separator)
        seen |= set(clique)
    assert tree_cells(sets, sizes) == sum(cells_of(clique, sizes) for clique in tree.cliques)


def test_a_cycle_is_closed():
    assert tree_cells([(0, 1), (1, 2), (2, 3), (0, 3)], (2, 2, 2, 2)) == 16
