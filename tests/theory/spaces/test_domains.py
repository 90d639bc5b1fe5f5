"""Members and subsets."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe.theory as t
from dpframe import errors

KINDS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("kind", KINDS)
def test_integer_types_hold_their_range(kind):
    atom, info = t.AtomDomain(kind), np.iinfo(kind)
    assert atom.member(int(info.min))
    assert atom.member(info.max)
    assert not atom.member(int(info.max) + 1)
    assert not atom.member(int(info.min) - 1)
    assert not atom.member(1.0)
    assert not atom.member(True)


def test_bounds():
    atom = t.AtomDomain(T=int, bounds=(0, 12))
    assert [atom.member(v) for v in (0, 12, 13, -1)] == [True, True, False, False]
    assert atom.bounds == (0, 12)
    assert t.AtomDomain(float, bounds=(0, 1)).bounds == (0.0, 1.0)
    assert t.AtomDomain(np.float32, bounds=(0, 0.1)).bounds == (0.0, float(np.float32(0.1)))
    assert t.AtomDomain(float, bounds=(0, 1)).member(0.5)
    assert not t.AtomDomain(float, bounds=(0, 1)).member(math.inf)


def test_floats():
    assert t.AtomDomain(float).member(2)
    assert t.AtomDomain(float).member(math.inf)
    assert not t.AtomDomain(float).member(math.nan)
    assert t.AtomDomain(float, nan=True).member(math.nan)
    assert t.AtomDomain(np.float32).member(0.5)
    assert t.AtomDomain(np.float32).member(0.1)
    assert not t.AtomDomain(np.float32).member(1e300)
    assert t.AtomDomain(float).member(np.float32(0.1))


def test_text_and_bool():
    assert t.AtomDomain(str).member("a")
    assert not t.AtomDomain(str).member(1)
    assert t.AtomDomain(bool).member(np.True_)
    assert not t.AtomDomain(bool).member(1)


def test_python_types_name_numpy_ones():
    assert t.AtomDomain(int) == t.AtomDomain(np.int64)
    assert t.AtomDomain(float) == t.AtomDomain("float64")
    assert t.AtomDomain(float) != t.AtomDomain(np.float32)
    assert hash(t.AtomDomain(int, bounds=(0, 1))) == hash(t.AtomDomain(np.int64, bounds=(0, 1)))
    assert t.AtomDomain(int) != "AtomDomain(int)"


def test_vectors_of_every_kind():
    domain = t.VectorDomain(t.AtomDomain(float, bounds=(0, 10)), size=3)
    for vector in (
        [1, 2.0, 3],
        (1.0, 2.0, 3.0),
        np.array([1.0, 2, 3]),
        pd.Series([1.0, 2, 3]),
        pl.Series([1.0, 2, 3]),
    ):
        assert domain.member(vector)
    for other in (
        [1.0],
        [1.0, 2.0, 11.0],
        np.array([1.0, 2, math.nan]),
        "abc",
        {1.0: 2},
        3.0,
        np.ones((3, 1)),
    ):
        assert not domain.member(other)
    assert t.VectorDomain(t.AtomDomain(float, nan=True, bounds=(0, 1))).member(
        np.array([math.nan, 0.5])
    )
    assert not t.VectorDomain(t.AtomDomain(float, nan=True, bounds=(0, 1))).member(
        np.array([math.nan, 1.5])
    )
    assert domain.element_domain is domain.atom


def test_maps_and_tuples():
    domain = t.MapDomain(t.AtomDomain(str), t.AtomDomain(int))
    assert domain.member({"a": 1})
    assert not domain.member({1: 1})
    assert not domain.member({"a": 1.5})
    assert (domain.key, domain.value) == (domain.key_domain, domain.value_domain)
    pair = t.TupleDomain(t.AtomDomain(int), t.AtomDomain(str))
    assert pair.member([1, "a"])
    assert not pair.member([1, "a", 2])
    assert pair.within(t.TupleDomain(t.AtomDomain(int), t.AtomDomain(str)))


def test_within():
    wide, narrow = t.AtomDomain(int), t.AtomDomain(int, bounds=(0, 5))
    assert narrow.within(wide)
    assert not wide.within(narrow)
    assert t.AtomDomain(int, bounds=(1, 2)).within(narrow)
    assert not t.AtomDomain(float, nan=True).within(t.AtomDomain(float))
    assert t.AtomDomain(float).within(t.AtomDomain(float, nan=True))
    assert t.VectorDomain(narrow, 3).within(t.VectorDomain(wide))
    assert not t.VectorDomain(wide).within(t.VectorDomain(wide, 3))
    assert t.MapDomain(wide, narrow).within(t.MapDomain(wide, wide))
    assert not t.VectorDomain(wide).within(wide)


@pytest.mark.parametrize(
    "make",
    [
        lambda: t.AtomDomain(int, bounds=(2, 1)),
        lambda: t.AtomDomain(float, bounds=(math.nan, 1)),
        lambda: t.AtomDomain(float, bounds=(0, math.inf)),
        lambda: t.AtomDomain(int, bounds=(0, 0.5)),
        lambda: t.AtomDomain(np.int8, bounds=(0, 128)),
        lambda: t.AtomDomain(np.uint8, bounds=(-1, 5)),
        lambda: t.AtomDomain(np.float32, bounds=(0, 1e300)),
        lambda: t.AtomDomain(str, bounds=("a", "b")),
        lambda: t.AtomDomain(bool, bounds=(False, True)),
        lambda: t.AtomDomain(int, bounds=3),
        lambda: t.AtomDomain(int, bounds=(None, 3)),
        lambda: t.AtomDomain(int, bounds=(False, True)),
    ],
)
def test_bad_bounds(make):
    with pytest.raises(errors.InvalidBounds):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: t.AtomDomain(complex),
        lambda: t.AtomDomain(list),
        lambda: t.AtomDomain(None),
        lambda: t.AtomDomain("no such type"),
        lambda: (
            t.AtomDomain(np.longdouble)
            if np.dtype(np.longdouble).itemsize > 8
            else t.AtomDomain(complex)
        ),
        lambda: t.AtomDomain(np.datetime64),
        lambda: t.AtomDomain(int, nan=True),
        lambda: t.VectorDomain(int),
        lambda: t.VectorDomain(t.AtomDomain(int), size=0),
        lambda: t.VectorDomain(t.AtomDomain(int), size=-1),
        lambda: t.VectorDomain(t.AtomDomain(int), size=2.5),
        lambda: t.VectorDomain(t.AtomDomain(int), size=True),
        lambda: t.MapDomain(str, int),
        lambda: t.TupleDomain(),
    ],
)
def test_bad_domains(make):
    with pytest.raises(errors.InvalidArgument):
        make()


def test_a_bound_is_a_member_however_it_is_typed():
    narrow = t.AtomDomain(np.float32, bounds=(0.1, 0.7))
    assert all(narrow.member(v) for v in (0.1, 0.7, np.float32(0.1), np.float32(0.7), 0.3))
    assert not any(narrow.member(v) for v in (0.09, 0.71, 1, math.inf, -math.inf, 1e300))
    assert t.resize(t.VectorDomain(narrow), t.SymmetricDistance(), 2, 0.1)([0.7]) == [
        float(np.float32(0.7)),
        float(np.float32(0.1)),
    ]
    assert not t.AtomDomain(np.float32).member(10**39)
    assert t.AtomDomain(float).member(math.inf)


NUMBERS = [bool, int, float, np.int8, np.uint8, np.uint64, np.int64, np.float32, np.float64]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("own", NUMBERS)
@pytest.mark.parametrize("stored", [*NUMBERS, object])
def test_arrays_are_members_when_each_entry_is(own, stored):
    """The vectorised question and the one about single values agree, for every
    type of array, list and domain.
    """
    pool = [
        0,
        1,
        -1,
        5,
        100,
        255,
        2**40,
        2**63 - 1,
        0.5,
        -0.0,
        1e30,
        3.4e38,
        1e300,
        math.nan,
        math.inf,
        -math.inf,
    ]
    domains = [t.AtomDomain(own)]
    if own is not bool:
        domains.append(t.AtomDomain(own, bounds=(0, 5)))
    if domains[0].is_float:
        domains += [t.AtomDomain(own, nan=True), t.AtomDomain(own, bounds=(0, 1e30), nan=True)]
    rng = np.random.default_rng(2)
    for _ in range(60):
        chosen = [pool[i] for i in rng.integers(0, len(pool), rng.integers(0, 4))]
        if stored in (bool, object) or np.dtype(stored).kind == "f":
            with np.errstate(over="ignore"):
                array = np.array(chosen, dtype=stored)
        else:
            limits = np.iinfo(stored)
            array = np.array(
                [int(v) for v in chosen if math.isfinite(v) and limits.min <= v <= limits.max],
                stored,
            )
        for domain in domains:
            each = all(domain.member(v) for v in array)
            assert t.VectorDomain(domain).member(array) == each, (domain, array)
            assert t.VectorDomain(domain).member(array.tolist()) == all(
                domain.member(v) for v in array.tolist()
            )


def test_a_list_of_two_types_is_asked_one_by_one():
    assert t.VectorDomain(t.AtomDomain(float, bounds=(0, 2**53))).member([0.5, 1, np.float32(2)])
    assert not t.VectorDomain(t.AtomDomain(float, bounds=(0, 2**53))).member([0.5, 2**53 + 1])
    assert not t.VectorDomain(t.AtomDomain(int)).member([1, True])
    assert not t.VectorDomain(t.AtomDomain(int)).member([1, 2**80])
    assert t.VectorDomain(t.AtomDomain(float)).member([2**80])
