"""Tables changed together: they agree wherever they share columns, are not
negative, are whole, and stay near.
"""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import dpframe as dp
from dpframe.errors import UnsupportedOperation
from dpframe.release.answer import family_of, joint_nonnegative, joint_whole

SIZES = (3, 4, 2, 5, 3)
WORKLOADS = {
    "pairs": list(combinations(range(5), 2)),
    "singles": [(i,) for i in range(5)],
    "pairs and singles": [(0, 1), (1,), (2, 3), (4,), (0,)],
    "a chain of triples": [(0, 1, 2), (1, 2, 3), (2, 3, 4)],
    "a triple with two margins and a rest": [(0, 1, 2, 3), (0, 1), (1, 2), (4,)],
    "one table": [(0, 2, 4)],
    "the total alone": [()],
}


def estimates(rng, scale):
    """Marginals of one table with negative numbers: they agree."""
    table = np.maximum(rng.normal(2, 4, SIZES), 0) + rng.normal(0, scale, SIZES)
    return lambda part: np.asarray(table.sum(axis=tuple(i for i in range(5) if i not in part)))


def agree(joint, workload):
    parts = {tuple(sorted(set(a) & set(b))) for a in workload for b in workload}
    for part in parts:
        views = [
            joint.tables[table].sum(
                axis=tuple(axis for axis, i in enumerate(table) if i not in part)
            )
            for table in workload
            if set(part) <= set(table)
        ]
        if not all(np.array_equal(view, views[0]) for view in views):
            return False
    return True


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
@pytest.mark.parametrize("scale", [0.0, 0.5, 20.0])
def test_tables_agree_after_each_step_and_hardly_move(workload, scale):
    rng = np.random.default_rng(0)
    for _ in range(5):
        exact = estimates(rng, scale)
        family = family_of(workload, "round", str)
        above = joint_nonnegative(family, exact)
        assert agree(above, workload)
        assert all(table.min() >= 0 for table in above.tables.values())
        whole = joint_whole(family, above.floats, positive=True)
        either = joint_whole(family, exact, positive=False)
        for joint, before in ((whole, above.floats), (either, exact)):
            assert agree(joint, workload)
            for part, table in joint.tables.items():
                assert table.dtype == np.int64
                assert np.abs(table - before(part)).max() < 3
        assert all(table.min() >= 0 for table in whole.tables.values())
        if scale == 0:
            assert all(np.abs(above.floats(part) - exact(part)).max() < 1e-3 for part in family)


def test_numbers_that_are_whole_and_not_negative_stay():
    rng = np.random.default_rng(1)
    table = rng.integers(0, 9, SIZES)
    exact = lambda part: table.sum(axis=tuple(i for i in range(5) if i not in part)).astype(float)  # noqa: E731
    family = family_of(WORKLOADS["pairs"], "round", str)
    for joint in (
        joint_whole(family, exact, positive=True),
        joint_whole(family, joint_nonnegative(family, exact).floats, positive=True),
    ):
        assert all(np.array_equal(table, exact(part)) for part, table in joint.tables.items())


@pytest.mark.parametrize(
    "workload", [list(combinations(range(4), 3)), [(0, 1, 2), (0, 1), (1, 2), (0, 2)]]
)
def test_three_shared_margins_are_refused(workload):
    with pytest.raises(UnsupportedOperation, match="shares 3 margins"):
        family_of(workload, "round", str)


def released():
    rng = np.random.default_rng(2)
    n, keys = 400, {name: list("abcdef"[: 2 + i % 5]) for i, name in enumerate("pqrstuvw")}
    table = pd.DataFrame({name: rng.choice(level, n) for name, level in keys.items()})
    frame = table.dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=10, delta=1e-3))
    pairs = list(combinations(keys, 2))[:20]
    return frame.marginals(list(keys), pairs, keys=keys).release(epsilon=0.3, delta=1e-6)


@pytest.fixture(scope="module")
def out():
    return released()


def shared(release, changed=lambda table: table):
    """For each column the counts of its keys, as every table has them."""
    counts = {}
    for names in release:
        table = changed(release[names]).to_pandas()
        counts.setdefault(names[0], []).append(table["All"].tolist())
        counts.setdefault(names[1], []).append(table.loc["All"].tolist())
    return counts


def test_twenty_released_tables_agree_exactly(out):
    done = out.nonnegative().round()
    assert min(done[names].to_pandas().to_numpy().min() for names in done) >= 0
    for views in shared(done).values():
        assert all(view == views[0] for view in views)
    assert all(str(dtype) == "int64" for dtype in done["p", "q"].to_pandas().dtypes)
    assert (
        done["p"].to_polars()["count"].to_list() == done["p", "q"].to_pandas()["All"].tolist()[:-1]
    )


@pytest.mark.filterwarnings("ignore:round")
@pytest.mark.filterwarnings("ignore:nonnegative")
def test_tables_that_are_changed_one_by_one_do_not_agree():
    """One release in a hundred agrees by chance; eight do not."""
    views = [shared(released(), lambda table: table.nonnegative().round()) for _ in range(8)]
    assert any(
        view != column[0] for counts in views for column in counts.values() for view in column
    )


def test_what_was_done_is_told_and_intervals_stay_those_of_the_noise(out):
    done = out.nonnegative().round()
    assert len(done.report().to_dict()["post_processing"]) == 2
    assert len(done["p", "q"].report().to_dict()["post_processing"]) == 2
    before, after = out["p", "q"].accuracy(), done["p", "q"].accuracy()
    assert np.allclose(before["upper"].clip(lower=0), after["upper"])
    assert (after["lower"] >= 0).all()
    with pytest.raises(UnsupportedOperation, match="secondary"):
        done["p", "q"].suppress(5, secondary=True)
