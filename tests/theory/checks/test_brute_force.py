"""Sensitivity by brute force: the seed's table, the maps, both
scenarios, and what would not finish.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe.theory as t
from dpframe import errors
from dpframe.theory import TableQuery
from dpframe.theory.checks import Universe, brute_force, common_part

UNIVERSE = {"year": [1, 2, 3, 4], "days": [1, 2, 3, 10]}
TABLE = {  # query: (add-remove year, days, replace year, days)
    "mean": (0.83333, 2.83333, 1.0, 3.0),
    "median": (1.0, 4.0, 1.0, 1.0),
    "count": (1, 1, 0, 0),
    "sum": (4, 10, 3, 9),
    "std": (0.747219, 3.527682, 0.430723, 3.211185),
    "var": (1.305556, 15.972222, 0.888889, 15.555556),
    "percentile 25": (1.25, 2.75, 1.0, 1.0),
    "percentile 75": (1.25, 4.25, 1.0, 4.0),
    "percentile 90": (1.7, 6.5, 1.0, 5.8),
}
FUNCTIONS = {
    "mean": np.mean,
    "median": np.median,
    "count": len,
    "sum": sum,
    "std": np.std,
    "var": np.var,
    "percentile 25": lambda x: np.percentile(x, 25),
    "percentile 75": lambda x: np.percentile(x, 75),
    "percentile 90": lambda x: np.percentile(x, 90),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_table_of_the_seed(name):
    for neighbors, expected in (("add-remove", TABLE[name][:2]), ("replace", TABLE[name][2:])):
        by_name = t.empirical_sensitivity(name, UNIVERSE, size=3, neighbors=neighbors)
        for column, figure in zip(UNIVERSE, expected, strict=True):
            assert by_name[column] == pytest.approx(figure, abs=5e-6)
            by_function = t.empirical_sensitivity(
                FUNCTIONS[name], UNIVERSE[column], 3, neighbors=neighbors
            )
            assert by_function == pytest.approx(by_name[column], rel=1e-14)


def by_hand(function, records, size, distance, neighbors):
    """Every dataset and every neighbour by indices, written out."""
    best = 0.0
    everything = range(len(records))
    for d in itertools.combinations(everything, size):
        sizes = (
            [size]
            if neighbors == "replace"
            else range(max(1, size - distance), size + distance + 1)
        )
        for n in sizes:
            for e in itertools.combinations(everything, n):
                differ = len(set(d) ^ set(e))
                if differ <= (2 * distance if neighbors == "replace" else distance):
                    best = max(
                        best,
                        abs(function([records[i] for i in d]) - function([records[i] for i in e])),
                    )
    return best


@pytest.mark.one_in(3)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("distance", [1, 2, 3])
@pytest.mark.parametrize("name", ["mean", "median", "sum", "count", "std", "var", "percentile 75"])
def test_larger_distances_against_a_second_enumeration(name, distance, neighbors):
    records = [1, 2, 2, 5, 9, 13]
    expected = by_hand(FUNCTIONS[name], records, 3, distance, neighbors)
    found = t.empirical_sensitivity(name, records, 3, distance, neighbors)
    if name in ("sum", "count") and distance == 3:
        assert found >= expected, "the empty dataset counts where the answer is defined on it"
    else:
        assert found == pytest.approx(expected, rel=1e-12)


def test_values_may_repeat_in_the_second_scenario():
    assert (
        t.empirical_sensitivity("mean", range(1, 5), 3, neighbors="replace", replacement=True)
        == 1.0
    )
    with pytest.raises(errors.InvalidArgument, match="too small"):
        t.empirical_sensitivity("median", [0, 10], 2, neighbors="replace")
    repeated = t.empirical_sensitivity("median", [0, 10], 2, neighbors="replace", replacement=True)
    written_out = t.empirical_sensitivity("median", [0, 0, 10, 10], 2, neighbors="replace")
    assert repeated == written_out == 5.0


def test_universe_counts_and_lists(rng):
    for _ in range(20):
        records = rng.integers(0, 4, 7).tolist()
        universe = Universe.of(records, int(rng.integers(1, 6)))
        sets = {tuple(sorted(c)) for c in itertools.combinations(records, universe.size)}
        listed = {tuple(sorted(universe.records(c))) for c in universe}
        assert sets == listed
        assert universe.datasets == len(sets)
        for relation in ("add-remove", "replace"):
            for counts in itertools.islice(universe, 3):
                near = set(universe.neighbours(counts, 2, relation))
                assert len(near) <= universe.changes(2, relation)
                mine = universe.records(counts)
                for other in near:
                    theirs = universe.records(other)
                    metric = (
                        t.SymmetricDistance() if relation == "add-remove" else t.ChangeOneDistance()
                    )
                    assert 1 <= metric.distance(mine, theirs) <= 2


MAPS = [
    (lambda s, n: t.sum(t.VectorDomain(t.AtomDomain(int, bounds=(-2, 5)), n), s), [-2, 0, 1, 5]),
    (lambda s, n: t.count(t.VectorDomain(t.AtomDomain(int), n), s), [-2, 0, 1, 5]),
    (lambda s, n: t.clamp(t.VectorDomain(t.AtomDomain(int), n), s, (0, 3)), [-2, 0, 1, 5]),
    (lambda s, n: t.resize(t.VectorDomain(t.AtomDomain(int), n), s, 2, 0), [-2, 0, 1, 5]),
    (lambda s, n: t.cast(t.VectorDomain(t.AtomDomain(int), n), s, bool), [-2, 0, 1, 5]),
    (lambda s, n: t.histogram(t.VectorDomain(t.AtomDomain(int), n), s, [0, 1]), [-2, 0, 1, 5]),
    (
        lambda s, n: t.histogram(
            t.VectorDomain(t.AtomDomain(int), n), s, [0, 1], output_metric=t.L2Distance()
        ),
        [0, 1, 5],
    ),
    (lambda s, n: t.count_by(t.VectorDomain(t.AtomDomain(int), n), s), range(6)),
    (
        lambda s, n: t.count_by(t.VectorDomain(t.AtomDomain(int), n), s, t.L02InfDistance()),
        range(6),
    ),
]
ROWWISE = (2, 4)
SIZED = [
    (
        lambda s, n: t.mean(t.VectorDomain(t.AtomDomain(float, bounds=(0, 5)), n), s),
        [0.0, 1.0, 5.0],
    ),
    (
        lambda s, n: t.variance(t.VectorDomain(t.AtomDomain(float, bounds=(0, 5)), n), s),
        [0.0, 1.0, 5.0],
    ),
    (
        lambda s, n: t.variance(t.VectorDomain(t.AtomDomain(float, bounds=(0, 5)), n), s, ddof=0),
        [0.0, 1.0, 5.0],
    ),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("distance", [1, 2, 3])
@pytest.mark.parametrize("case", range(len(MAPS) + len(SIZED)))
def test_brute_force_never_exceeds_the_map_and_reaches_it(case, distance, neighbors):
    make, values = (MAPS + SIZED)[case]
    metric = t.SymmetricDistance() if neighbors == "add-remove" else t.ChangeOneDistance()
    for size in (None, 4) if case < len(MAPS) else (4,):
        transformation = make(metric, size)
        try:
            found = t.empirical_sensitivity(
                transformation, values, 4, distance, neighbors, replacement=True
            )
        except errors.InvalidArgument:
            assert (distance, neighbors, size) == (1, "add-remove", 4), (
                "a fixed size has no neighbours at distance 1"
            )
            continue
        promised = transformation.map(distance)
        assert found <= promised
        if isinstance(found, tuple):
            assert found == pytest.approx(promised, rel=1e-15)
        elif case in ROWWISE and size is not None:
            assert found == promised - promised % 2 or neighbors == "replace", (
                "odd distances do not occur"
            )
        else:
            assert found == pytest.approx(promised, rel=1e-9)


def test_queries_of_records_and_frames():
    rows = [{"city": "A", "spend": 3}, {"city": "B", "spend": 5}, {"city": "A", "spend": 8}]
    in_a = t.empirical_sensitivity(
        lambda d: sum(r["spend"] for r in d if r["city"] == "A"), rows, 2
    )
    assert in_a == 8
    for frame in (pd.DataFrame(rows), pl.DataFrame(rows)):
        assert t.empirical_sensitivity(lambda d: float(d["spend"].sum()), frame, 2) == 8
        assert t.empirical_sensitivity(
            "sum",
            frame.drop(columns="city") if isinstance(frame, pd.DataFrame) else frame.drop("city"),
            2,
        ) == {"spend": 8}
    vector = t.empirical_sensitivity(lambda x: [x.sum(), len(x)], [1, 2, 3], 2)
    assert vector == 4
    assert t.empirical_sensitivity(
        lambda x: [x.sum(), len(x)], [1, 2, 3], 2, metric=t.L2Distance()
    ) == math.sqrt(10)
    assert t.empirical_sensitivity(lambda x: {"n": len(x)}, [1, 2, 3], 2) == 1
    assert t.empirical_sensitivity(lambda d: len(set(d)), ["a", "b", "b"], 2) == 1


def test_answers_that_are_undefined_are_left_out():
    assert t.empirical_sensitivity("mean", [1, 2, 3], 1) == pytest.approx(1.0)
    assert (
        t.empirical_sensitivity(min, [1, 2, 3], 1) == 2
        or t.empirical_sensitivity(min, [1, 2, 3], 1) == 1
    )
    with pytest.raises(errors.InvalidArgument, match="defined"):
        t.empirical_sensitivity(lambda x: math.nan, [1, 2], 1)
    with pytest.raises(KeyError):
        t.empirical_sensitivity(lambda x: {}["missing"], [1, 2], 1)


def test_too_much_is_refused_with_the_number_of_datasets():
    with pytest.raises(errors.UnsupportedOperation, match=str(math.comb(100, 20))):
        t.empirical_sensitivity("mean", range(100), size=20)
    with pytest.raises(errors.UnsupportedOperation, match="datasets"):
        t.empirical_sensitivity("mean", [1, 2, 3, 4], size=2, limit=3)


@pytest.mark.parametrize(
    "arguments",
    [
        {"universe": []},
        {"size": 0},
        {"size": 9},
        {"size": 1.5},
        {"distance": 0},
        {"distance": 1.5},
        {"neighbors": "swap"},
        {"universe": 3},
        {"universe": "abc"},
        {"query": "mode"},
        {"query": "percentile 101"},
        {"query": 3},
    ],
)
def test_what_cannot_be_asked(arguments):
    call = {"query": "mean", "universe": [1, 2, 3], "size": 2, **arguments}
    with pytest.raises(errors.InvalidArgument):
        t.empirical_sensitivity(**call)


class Visits:
    """A stand-in for a query of a protected table:
    rows and spend by city, at most one row counted per unit.
    """

    unit_columns = ("user",)

    def exact_totals(self, table):
        first = table.drop_duplicates("user")
        return {
            "n": first.groupby("city").size().to_dict(),
            "spend": first.groupby("city")["spend"].sum().to_dict(),
        }


def test_queries_of_a_table_are_asked_per_unit():
    table = pd.DataFrame(
        {"user": [1, 1, 2, 3], "city": ["A", "B", "A", "B"], "spend": [3, 4, 5, 7]}
    )
    assert isinstance(Visits(), TableQuery)
    found = t.empirical_sensitivity(Visits(), table, size=2)
    assert (found["n"].l0, found["n"].l1, found["n"].linf) == (1, 1, 1)
    assert (found["spend"].l1, found["spend"].l2) == (7, 7)
    swapped = t.empirical_sensitivity(Visits(), table, size=2, neighbors="replace")
    assert (swapped["n"].l0, swapped["n"].l1) == (2, 2)
    assert swapped["spend"].l1 == 12
    with pytest.raises(errors.InvalidArgument):
        t.empirical_sensitivity(Visits(), [1, 2, 3], size=2)


def test_progress_is_silent_unless_it_is_asked_for(capsys):
    t.empirical_sensitivity("mean", range(6), 3)
    assert capsys.readouterr().err == ""
    t.empirical_sensitivity("mean", range(6), 3, progress=True)
    assert "datasets" in capsys.readouterr().err


# By common parts, and by every pair


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("seed", range(12))
def test_common_parts_find_what_every_pair_finds(seed, neighbors):
    """Random answers for random universes, a third of them undefined:
    both ways see the same largest change.
    """
    rng = np.random.default_rng(seed)
    items = list(range(int(rng.integers(1, 5))))
    records = items + [int(i) for i in rng.choice(items, rng.integers(0, 3))]
    replacement = bool(seed % 2)
    size = int(rng.integers(1, min(4, len(records)) + 1))
    every = Universe.of(records, size, replacement)
    table = {}

    def ask(rows):
        key = tuple(sorted(rows))
        if key not in table:
            table[key] = None if rng.random() < 1 / 3 else Fraction(int(rng.integers(0, 50)), 7)
        return table[key]

    for distance in (1, 2, 3):
        slow = brute_force._Search(distance, neighbors, False, 10**9).largest(
            every, ask, lambda a, b: abs(a - b)
        )
        assert common_part.largest_number(every, distance, neighbors, ask, False) == slow


def test_neighbours_are_no_more_than_there_are_datasets():
    every = Universe.of(range(12), 3)
    assert every.changes(3, "replace") == every.datasets - 1 == 219
    # vectors; 27 of them lead from a given dataset to another
    assert every.changes(1, "replace") == 132
    counted = max(sum(1 for _ in every.neighbours(d, 2, "add-remove")) for d in every)
    assert counted <= every.changes(2, "add-remove")
    # 7,332 vectors for each of 364 datasets are 2.7 million pairs, but there are 132,000.
    many = Universe.of(range(12), 3, replacement=True)
    assert many.datasets * (many.changes(3, "replace") + 1) == 364**2


@pytest.mark.one_in(2)
@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
@pytest.mark.parametrize(
    "name",
    [
        "mean",
        *(pytest.param(n, marks=pytest.mark.long) for n in ("std", "median", "percentile 90")),
    ],
)
def test_the_work_grows_with_datasets_not_with_pairs(name, neighbors):
    """1.3 million pairs and more; the answers are known for the two ends of the range."""
    assert common_part.common_part_work(Universe.of(range(12), 4, True), 3, neighbors) < 60_000
    found = t.empirical_sensitivity(
        name, range(12), 4, 3, neighbors, replacement=True, progress=False
    )
    if neighbors == "replace" and name == "mean":
        assert found == 11 * 3 / 4
    assert 0 < found <= 11


def test_answers_that_are_no_numbers_are_compared_in_pairs():
    assert t.empirical_sensitivity(lambda x: [len(x), 0], [1, 2, 3], 2) == 1
    assert (
        t.empirical_sensitivity(
            lambda x: math.inf if 3 in x else 0, [1, 2, 3], 2, neighbors="replace"
        )
        == math.inf
    )
    assert t.empirical_sensitivity(lambda x: True, [1, 2, 3], 2) == 0
