"""The checker's sensitivities and costs of mechanisms, held against every
small unit and every pair of them.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dpframe import dpframe_check as check

RELATIONS = pytest.mark.parametrize("replace", [False, True], ids=["add-remove", "replace"])
LIMITS = [(1, 2, 2), (2, 1, 2), (2, 2, 3), (3, 2, 4), (3, 1, 2), (2, 3, 3)]


def _split(groups, each, rows, cells):
    """Every way in which rows of one unit may be in groups."""
    for counts in itertools.product(range(each + 1), repeat=cells):
        if sum(counts) <= rows and sum(n > 0 for n in counts) <= groups:
            yield counts


def _sums(limits, cells, low, high, missing):
    """Every vector of sums of one unit, whose rows add `low` to `high` each, or
    nothing if they may be missing.
    """
    for counts in _split(*limits, cells):
        reached = [
            range(
                min(n * low, 0) if missing else n * low,
                (max(n * high, 0) if missing else n * high) + 1,
            )
            for n in counts
        ]
        yield from itertools.product(*reached)


def _moves(vectors, replace):
    """Moves of a total between neighbours: a unit's own vector, or the
    difference of two units' vectors.
    """
    own = np.array(sorted(set(vectors)))
    return (own[:, None, :] - own[None, :, :]).reshape(-1, own.shape[1]) if replace else own


def _measured(moves):
    sizes = np.abs(moves)
    return (
        int((sizes > 0).sum(1).max()),
        int(sizes.sum(1).max()),
        int((sizes**2).sum(1).max()),
        int(sizes.max()),
    )


def _total(kind, cells, **facts):
    return {"kind": kind, "cells": cells, "fraction": 0, "question": 0, "id": kind, **facts}


def _unit(limits, cells=None, most=None, *, enforced=True):
    own = dict(zip(check.Limits._fields, limits, strict=True))
    question = {"limits": own, "contribution": {"rows": most}, "cells": cells}
    return check.unit_of({"kind": "rows", "cells": cells}, question, enforced=enforced)


def _reach(stated, limits, replace):
    return check.total_of(stated, check.Limits(*limits), {}, replace=replace).reach


@RELATIONS
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize(("low", "high"), [(1, 1), (0, 2), (-1, 2), (-2, -1), (-1, 1), (1, 2)])
@pytest.mark.parametrize("cells", [1, 2, 3])
def test_sums_of_rows_move_no_further_and_as_far(limits, low, high, cells, replace):
    unit = _unit(limits, cells)
    claim = check.total_of(_total("sum", cells, range=[low, high]), unit, {}, replace=replace).reach
    found = _measured(_moves(_sums(unit, cells, low, high, missing=True), replace))
    assert all(bound >= move for bound, move in zip(claim, found, strict=True))
    assert (claim.l0, claim.linf) == (found[0], found[3])
    if not replace or cells == 1 or cells >= 2 * unit.groups:
        assert claim.l1 == found[1], "the bound is reached"
    if not replace:
        assert claim.l2_squared == found[2]


@RELATIONS
@pytest.mark.parametrize(("groups", "low", "high"), [(1, -1, 2), (2, 0, 2), (2, -2, 1)])
def test_one_number_of_a_unit_in_each_group(groups, low, high, replace):
    vectors = [
        v
        for v in itertools.product(range(min(low, 0), max(high, 0) + 1), repeat=3)
        if sum(x != 0 for x in v) <= groups
    ]
    found = _measured(_moves(vectors, replace))
    claim = _reach(_total("unit_sum", 3, range=[low, high]), (groups, 9, 9), replace)
    assert all(bound >= move for bound, move in zip(claim, found, strict=True))
    units = _measured(
        _moves([v for v in itertools.product((0, 1), repeat=3) if sum(v) <= groups], replace)
    )
    assert tuple(_reach(_total("units", 3), (groups, 9, 9), replace)) == units


@RELATIONS
def test_distinct_values_counted_once_whoever_has_them(replace):
    """Two groups, two values; a unit brings at most 2 pairs, at most 1 to a
    group; others have any set of pairs.
    """
    pairs = list(itertools.product(range(2), range(2)))
    units = [
        s
        for n in range(3)
        for s in itertools.combinations(pairs, n)
        if len({g for g, _ in s}) == len(s)
    ]
    everybody = [set(s) for n in range(5) for s in itertools.combinations(pairs, n)]

    def counts(rows):
        return np.array([len({v for h, v in rows if h == g}) for g in range(2)])

    moves = [
        counts(others | set(one)) - counts(others | set(two))
        for others in everybody
        for one in units
        for two in (units if replace else [()])
    ]
    claim = _reach(_total("distinct", 2), (2, 1, 2), replace)
    assert all(bound >= move for bound, move in zip(claim, _measured(np.array(moves)), strict=True))


@RELATIONS
def test_levels_of_a_tree_and_rows_that_enter_or_leave(replace):
    """Two groups of two blocks; at most 2 rows in a group, 3 in all."""
    limits = (2, 2, 3)
    own = [
        v
        for v in itertools.product(range(3), repeat=4)
        if sum(v) <= 3 and v[0] + v[1] <= 2 and v[2] + v[3] <= 2
    ]
    found = _measured(_moves(own, replace))
    claim = _reach(_total("tree", None), limits, replace)
    assert all(bound >= move for bound, move in zip(claim[1:], found[1:], strict=True))
    changed = np.abs(_moves(own, replace)).reshape(-1, 2, 2).sum(2)
    claim = _reach(_total("choice", 2), limits, replace)
    assert all(bound >= move for bound, move in zip(claim, _measured(changed), strict=True))


@RELATIONS
def test_merged_groups(replace):
    limits, cells = (2, 2, 3), 4
    of = _total("sum", cells, range=[-1, 2])
    total = check.total_of(of, check.Limits(*limits), {}, replace=replace)
    moves = _moves(_sums(limits, cells, -1, 2, missing=True), replace)
    merged = np.stack([moves[:, :2].sum(1), moves[:, 2:].sum(1)], axis=1)
    stated = _total("merged", 2, of="t")
    claim = check.total_of(stated, check.Limits(*limits), {"t": total}, replace=replace).reach
    assert all(bound >= move for bound, move in zip(claim, _measured(merged), strict=True))


@RELATIONS
@pytest.mark.parametrize(("periods", "size"), [(1, 1), (2, 1), (2, 2), (3, 2)])
def test_blocks_of_nights(periods, size, replace):
    """Every unit of at most two rows a night in two groups, in so many of four
    nights; blocks of two or of one.
    """
    limits, nights = (2, 1, 2), 4
    night = check.total_of(_total("rows", 2), check.Limits(*limits), {}, replace=replace)
    bought = [f"{n}/1" for n in night.vector]
    stated = _total("blocks", None, of="t", periods=periods, size=size, bought=bought)
    claim = check.total_of(stated, check.Limits(*limits), {"t": night}, replace=replace).reach
    rows = np.array(list(_split(*limits, 2)))
    own = set()
    for inside in itertools.combinations(range(nights), periods):
        for each in itertools.product(rows, repeat=periods):
            table = np.zeros((nights, 2), dtype=int)
            table[list(inside)] = each
            own.add(tuple(table.reshape(nights // size, size, 2).sum(1).ravel()))
    assert all(
        bound >= move for bound, move in zip(claim, _measured(_moves(own, replace)), strict=True)
    )
    with pytest.raises(check.Refused):
        check.total_of(
            {**stated, "bought": ["2/1", "1/1", "1/1", "1/1"]},
            check.Limits(2, 1, 2),
            {"t": night},
            replace=replace,
        )


@RELATIONS
@pytest.mark.parametrize(("scale", "off"), [("1/1", 0), ("1/2", 0), ("1/2", 1)])
def test_products_are_bounded_by_one_factor(scale, off, replace):
    """A number of [-4, 4] in each group, at most 2 in size for each row, or
    each two rows, of the unit there.
    """
    limits = (2, 2, 3)
    rows = check.total_of(_total("rows", 3), check.Limits(*limits), {}, replace=replace)
    factor = {"of": "t", "times": 2, "scale": scale, "off": off}
    stated = _total("unit_products", 3, range=[-4, 4], factor=factor)
    claim = check.total_of(stated, check.Limits(*limits), {"t": rows}, replace=replace).reach
    own = set()
    for counts in _split(*limits, 3):
        most = [min(2 * (math.floor(n * Fraction(scale)) + off * (n > 0)), 4) for n in counts]
        own |= set(itertools.product(*((-m, 0, m) for m in most)))
    assert all(
        bound >= move for bound, move in zip(claim, _measured(_moves(own, replace)), strict=True)
    )


@pytest.mark.parametrize("levels", [[2], [3], [2, 3], [2, 2, 2], [1, 3], []])
@RELATIONS
def test_centred_interactions(levels, replace):
    cells = list(itertools.product(*(range(n) for n in levels)))
    vectors = []
    for cell in cells:
        table = np.zeros(levels)
        table[cell] = 1.0
        for axis in range(len(levels)):
            table = table - table.mean(axis=axis, keepdims=True)
        vectors.append(table.ravel())
    own = np.array([*vectors, np.zeros_like(vectors[0])])
    moves = (own[:, None] - own[None]).reshape(-1, own.shape[1]) if replace else own
    stated = _total("interaction", len(cells), levels=levels)
    assert float(_reach(stated, (1, 1, 1), replace).l2_squared) == pytest.approx(
        (moves**2).sum(1).max()
    )


def test_weights_of_keys():
    stated = _total("key_weights", None, most=5, one=100)
    shares = [math.floor(math.sqrt(100**2 / t)) for t in range(1, 6)]
    claim = _reach(stated, (5, 1, 5), False)
    assert (claim.l0, claim.linf) == (5, 100)
    assert claim.l2_squared == max(t * s * s for t, s in enumerate(shares, 1))
    assert claim.l1 >= max(t * s for t, s in enumerate(shares, 1))
    with pytest.raises(check.Unknown):
        _reach(stated, (5, 1, 5), True)


def test_limits_follow_from_each_other():
    def of(groups, each, rows, cells=None, most=None, *, enforced=True):
        return tuple(_unit((groups, each, rows), cells, most, enforced=enforced))

    assert of(5, 2, 3) == (3, 2, 3)
    assert of(2, 2, 9) == (2, 2, 4)
    assert of(None, None, 3) == (3, 3, 3)
    assert of(None, None, 3, cells=1) == (1, 3, 3)
    assert of(4, 4, 4, most=1) == (1, 1, 1)
    assert of(1, 1, 1, most=6, enforced=False) == (6, 6, 6), (
        "without an id column nothing is enforced"
    )
    assert of(2, None, None)[2] >= check.UNLIMITED


def _known(stated, limits, replace, **more):
    return check.total_of({**stated, **more}, check.Limits(*limits), {}, replace=replace)


@RELATIONS
@pytest.mark.parametrize(("low", "high"), [(-2, 2), (0, 3), (-1, 2)])
def test_a_pair_and_missing_values_cost_no_less_than_they_move(low, high, replace):
    """Every unit of up to three rows in two groups, each row
    missing or any integer of the range.
    """
    limits, size = (2, 2, 3), max(-low, high)
    totals = {
        "s": _known(_total("sum", 2, range=[low, high], present=["x"]), limits, replace),
        "v": _known(_total("values", 2, present=["x"], range=[0, 1]), limits, replace),
        "n": _known(_total("rows", 2), limits, replace),
    }
    own = set()
    for rows in itertools.product(
        [None, *itertools.product(range(2), (None, low, 0, high))], repeat=3
    ):
        vector = np.zeros((3, 2), dtype=int)
        for group, value in (row for row in rows if row is not None):
            vector[:, group] += (value or 0, value is not None, 1)
        if vector[2].max() <= 2:
            own.add(tuple(vector.ravel()))
    moves = _moves(own, replace).reshape(-1, 3, 2)
    s, v, n = moves[:, 0], moves[:, 1], moves[:, 2]
    pair = {"law": "laplace", "of": ["s", "v"], "weight": size, "scale": "7/1"}
    ends = (np.abs(size * v + s) + np.abs(size * v - s)).sum(1)
    for mechanism, moved in (
        (pair, Fraction(int(ends.max()), 7)),
        (
            {**pair, "of": ["s", "v", "n"], "missing": "3/1"},
            max(
                Fraction(int(e), 7) + Fraction(int(m), 3)
                for e, m in zip(ends, np.abs(n - v).sum(1), strict=True)
            ),
        ),
    ):
        cost = check.losses_of(mechanism, totals)["epsilon"]
        assert moved <= cost
        assert cost <= 2 * moved or replace, "the bound is of the right size"


@pytest.mark.parametrize(("cells", "groups"), [(2, 1), (2, 2), (4, 2), (4, 4)])
@pytest.mark.parametrize("common", [Fraction(1, 2), Fraction(1), Fraction(5)])
def test_noise_that_all_cells_share(cells, groups, common):
    limits = (groups, 2, 3)
    total = _known(_total("rows", cells), limits, False)
    stated = {"of": ["t"], "scale": "3/2", "common": f"{common.numerator}/{common.denominator}"}
    claim = float(check.losses_of({"law": "gaussian", **stated}, {"t": total})["mu_squared"])
    inverse = np.linalg.inv(np.eye(cells) * 1.5**2 + float(common) ** 2)
    found = max(x @ inverse @ x for x in map(np.array, _split(*limits, cells)))
    assert found <= claim + 1e-12
    assert claim <= found * (1 + 1e-6)


@RELATIONS
def test_the_window_of_moves(replace):
    limits, cells = (2, 2, 3), 3
    total = _known(_total("rows", cells), limits, replace)
    moves = _moves(_split(*limits, cells), replace)
    windows = np.maximum(moves.max(1), 0) + np.maximum((-moves).max(1), 0)
    cost = check.losses_of({"law": "k_norm", "of": ["t"], "scale": "1/1"}, {"t": total})["epsilon"]
    assert cost == windows.max()
    both_signs = _known(_total("sum", cells, range=[-1, 1]), limits, replace)
    with pytest.raises(check.Refused):
        check.losses_of({"law": "k_norm", "of": ["t"], "scale": "1/1"}, {"t": both_signs})


@RELATIONS
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_a_rest_beside_its_total(law, replace):
    """Whatever is released: a unit moves the released groups, and what
    it has elsewhere in their rest.
    """
    limits, cells = (2, 2, 3), 3
    base = _known(_total("rows", None), limits, replace)
    mechanism = {"law": law, "of": ["t"], "scale": "2/1", "rest": "3/1"}
    currency = "epsilon" if law == "laplace" else "mu_squared"
    claim = check.losses_of(mechanism, {"t": base})[currency]
    worst, power = Fraction(0), 1 if law == "laplace" else 2
    for move in _moves(_split(*limits, cells), replace).tolist():
        for kept in itertools.product((0, 1), repeat=cells):
            inside = sum(Fraction(abs(x), 2) ** power for x, k in zip(move, kept, strict=True) if k)
            worst = max(
                worst,
                inside
                + Fraction(abs(sum(x for x, k in zip(move, kept, strict=True) if not k)), 3)
                ** power,
            )
    assert worst <= claim
    assert check.losses_of({**mechanism, "finds": {}}, {"t": base})[currency] > claim, (
        "not released is an answer too"
    )


@pytest.mark.parametrize("law", ["discrete_laplace", "gaussian", "laplace"])
@pytest.mark.parametrize(("most", "whole", "groups"), [(1, 3, 3), (3, 4, 3), (2, 5, 4)])
def test_the_chance_that_a_group_of_one_unit_is_shown(law, most, whole, groups):
    total = _known(_total("rows", None), (groups, most, whole), False)
    total = total._replace(reach=check.Reach(groups, whole, 0, most))
    mechanism = {"law": law, "of": ["t"], "scale": "3/2", "finds": {"threshold": 5, "least": 0}}
    found = float(check.keys_delta(mechanism, total))
    tail = {c: float(check.noise_tail(law, Fraction(3, 2), 5 - c)) for c in range(most + 1)}
    worst = max(
        1 - math.prod(1 - tail[c] for c in counts)
        for t in range(groups + 1)
        for counts in itertools.product(range(1, most + 1), repeat=t)
        if sum(counts) <= whole
    )
    assert found == pytest.approx(worst, rel=1e-9)


def test_a_threshold_beside_normal_noise_is_no_less_than_the_truth():
    """One unit alone in the one group, or among others in it; δ is the
    distance of both pairs of answers.
    """
    total, sigma, threshold, epsilon = (
        _known(_total("units", None), (1, 1, 1), False),
        3.0,
        14,
        Fraction(1, 2),
    )
    mechanism = {
        "law": "gaussian",
        "of": ["t"],
        "scale": "3/1",
        "finds": {"threshold": threshold, "least": 0},
    }
    found = float(check.threshold_beside_noise([mechanism], [mechanism], {"t": total}, epsilon))
    normal = np.array(
        [
            0.5 * (math.erf((z + 0.5) / sigma / 2**0.5) - math.erf((z - 0.5) / sigma / 2**0.5))
            for z in range(-200, 201)
        ]
    )
    worst = normal[200 + threshold - 1 :].sum()
    for n in range(1, 40):
        one, two = (np.concatenate([np.zeros(c), normal, np.zeros(60 - c)]) for c in (n, n + 1))
        shown = 200 + threshold
        one, two = (np.append(p[shown:], p[:shown].sum()) for p in (one, two))
        for p, q in ((one, two), (two, one)):
            worst = max(worst, np.maximum(p - math.exp(float(epsilon)) * q, 0).sum())
    assert worst <= found * (1 + 1e-9)
    assert found <= 2 * worst


UNIT, SOURCE = {"columns": ["u"]}, {"step": "source"}


@pytest.mark.parametrize(
    ("unit", "steps", "most", "always"),
    [
        (UNIT, [], None, True),
        (UNIT, [{"step": "per_unit"}], 1, True),
        (UNIT, [{"step": "filter"}, {"step": "per_unit"}], 1, False),
        (UNIT, [{"step": "per_unit"}, {"step": "join_public", "most": 1, "how": "left"}], 1, True),
        (
            UNIT,
            [{"step": "per_unit"}, {"step": "join_public", "most": 1, "how": "inner"}],
            1,
            False,
        ),
        (UNIT, [{"step": "per_unit"}, {"step": "concat", "others": [[SOURCE]]}], None, True),
        (
            {"rows": 2},
            [{"step": "join_public", "most": 3, "how": "left"}, {"step": "rewrite"}],
            6,
            True,
        ),
        ({"rows": 1}, [{"step": "filter"}], 1, False),
    ],
)
def test_rows_of_a_unit_after_steps(unit, steps, most, always):
    assert check.rows_after(unit, [SOURCE, *steps]) == (most, always)


@pytest.mark.parametrize("kind", ["per_unit", "join_units", "concat"])
def test_steps_that_need_an_id_column_are_refused_without_one(kind):
    step = {"step": kind, "other": [SOURCE], "others": [[SOURCE]], "how": "left", "exact": True}
    with pytest.raises(check.Refused):
        check.rows_after({"rows": 1}, [SOURCE, step])
