"""Calls as people of other libraries write them: understood, or answered with the line to type."""

import numpy as np
import pytest

import dpframe.theory as t
from dpframe import errors

INTS = t.VectorDomain(t.AtomDomain(int, bounds=(0, 9))), t.SymmetricDistance()
FLOAT = t.AtomDomain(float), t.AbsoluteDistance()
MAP = t.MapDomain(t.AtomDomain(str), t.AtomDomain(int)), t.L01InfDistance()
CELLS = t.VectorDomain(t.AtomDomain(int)), t.LinfDistance()
CALLS = [
    (t.clamp, INTS, ((0, 5),)),
    (t.sum, INTS, ()),
    (t.count, INTS, ()),
    (t.mean, (t.VectorDomain(t.AtomDomain(bounds=(0, 9)), size=3), t.SymmetricDistance()), ()),
    (t.variance, (t.VectorDomain(t.AtomDomain(bounds=(0, 9)), size=3), t.SymmetricDistance()), ()),
    (t.histogram, INTS, ([1, 2],)),
    (t.count_by, INTS, ()),
    (t.cast, INTS, (float,)),
    (t.impute, INTS, (1,)),
    (t.resize, INTS, (5, 0)),
    (t.laplace, FLOAT, (1.0,)),
    (t.gaussian, FLOAT, (1.0,)),
    (t.laplace_threshold, MAP, (1.0, 10)),
    (t.gaussian_threshold, (MAP[0], t.L02InfDistance()), (1.0, 10)),
    (t.noisy_max, CELLS, (1.0,)),
]


@pytest.mark.parametrize(("make", "space", "rest"), CALLS, ids=lambda v: getattr(v, "__name__", ""))
def test_a_wrong_order_is_answered_with_the_line(make, space, rest):
    domain, metric = space
    make(domain, metric, *rest)
    line = f"{make.__name__}({domain!r}, {metric!r}"
    wrong = [(metric, domain, *rest)]
    if rest:
        wrong += [(*rest, domain, metric), (domain, rest[0], metric, *rest[1:])]
    for arguments in wrong:
        with pytest.raises(errors.WrongCall, match="comes first") as refusal:
            make(*arguments)
        assert line in str(refusal.value)
    with pytest.raises(errors.WrongCall):
        make(domain)
    with pytest.raises(errors.WrongCall):
        make(domain, metric, *rest, no_such_option=1)


def test_foreign_arguments_are_still_judged_by_what_they_are():
    with pytest.raises(errors.DomainMismatch):
        t.sum(t.AtomDomain(int), t.SymmetricDistance())
    with pytest.raises(errors.MetricMismatch):
        t.count_by(*INTS, output_metric=t.SymmetricDistance())
    with pytest.raises(errors.DomainMismatch):
        t.sum(5, t.SymmetricDistance())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("make_laplace", "laplace(domain, metric, scale=25.0)"),
        ("then_laplace", "laplace(domain, metric, scale=25.0)"),
        ("make_base_discrete_gaussian", "gaussian("),
        ("make_clamp", "clamp(domain, metric, bounds=(0, 100))"),
        ("then_count_by_categories", "histogram("),
        ("make_zCDP_to_approxDP", "zcdp_to_approx"),
        ("make_fix_delta", "fix_delta"),
        ("make_pureDP_to_zCDP", "pure_to_zcdp"),
        ("make_report_noisy_max_gumbel", "noisy_max"),
        ("atom_domain", "AtomDomain"),
        ("vector_domain", "VectorDomain"),
        ("symmetric_distance", "SymmetricDistance"),
        ("zero_concentrated_divergence", "ZeroConcentratedDivergence"),
        ("laplase", "laplace"),
    ],
)
def test_names_of_other_libraries_are_hinted(name, told):
    with pytest.raises(AttributeError, match="has no") as refusal:
        getattr(t, name)
    assert told in str(refusal.value)
    assert not hasattr(t, name)


def test_what_a_hint_names_exists():
    from dpframe.theory.calls import _KNOWN, _LINES

    for name in {*_LINES, *(n for n in _KNOWN.values() if ">>" not in n)}:
        assert callable(getattr(t, name)), name


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("f32", np.float32),
        ("f64", float),
        ("i64", int),
        ("i32", np.int32),
        ("u16", np.uint16),
        ("u64", np.uint64),
        ("bool", bool),
        ("String", str),
        ("int16", np.int16),
        ("float32", np.float32),
    ],
)
def test_types_by_name(written, kind):
    assert t.AtomDomain(T=written) == t.AtomDomain(T=kind)


@pytest.mark.parametrize("written", ["i8", "u8", "i128", "f16x", "", "date"])
def test_names_that_are_no_type_or_two(written):
    with pytest.raises(errors.InvalidArgument):
        t.AtomDomain(T=written)


def test_the_type_of_the_bounds():
    assert t.AtomDomain(bounds=(-2, 2)) == t.AtomDomain(int, bounds=(-2, 2))
    assert t.AtomDomain(bounds=(-2.0, 2)) == t.AtomDomain(float, bounds=(-2, 2))
    assert t.AtomDomain(bounds=(0, 1), nan=True) == t.AtomDomain(float, bounds=(0, 1), nan=True)
    assert t.AtomDomain(nan=True) == t.AtomDomain(float, nan=True)
    for wrong in (
        lambda: t.AtomDomain(),
        lambda: t.AtomDomain((0, 5)),
        lambda: t.AtomDomain(bounds=("a", "b")),
        lambda: t.AtomDomain(bounds=(False, True)),
        lambda: t.AtomDomain(t.AtomDomain(int)),
    ):
        with pytest.raises(errors.InvalidArgument):
            wrong()


# Mappings with public keys


@pytest.mark.parametrize(
    ("make", "metric", "loss"),
    [(t.laplace, t.L1Distance(), 1.0), (t.gaussian, t.L2Distance(), 2.0)],
)
def test_counts_by_public_keys_are_noised(make, metric, loss):
    records = t.VectorDomain(t.AtomDomain(str)), t.SymmetricDistance()
    counts = t.count_by(*records, output_metric=metric, keys=["a", "b", "z"])
    noisy = counts >> make(*counts.output_space, scale=1.0 if make is t.laplace else 0.5)
    assert noisy.map(1) == loss
    assert list(noisy(["a", "c", "a"])) == ["a", "b", "z"]
    kept = counts >> make(*counts.output_space, scale=1e-6)
    assert kept(["a", "c", "a"]) == {"a": 2, "b": 0, "z": 0}
    assert counts.output_domain.within(t.count_by(*records).output_domain)
    assert not t.count_by(*records).output_domain.within(counts.output_domain)


def test_keys_that_can_be_listed_need_not_be():
    for atom, keys in (
        (t.AtomDomain(bool), [False, True]),
        (t.AtomDomain(bounds=(2, 4)), [2, 3, 4]),
    ):
        counts = t.count_by(t.VectorDomain(atom), t.ChangeOneDistance(), t.L1Distance())
        noisy = counts >> t.laplace(*counts.output_space, scale=2.0)
        assert noisy.map(1) == 1.0
        assert list(noisy([keys[0]])) == keys


def test_private_keys_are_not_noised_alone():
    for atom in (
        t.AtomDomain(str),
        t.AtomDomain(int),
        t.AtomDomain(bounds=(0, 2**40)),
        t.AtomDomain(bounds=(0.0, 1)),
    ):
        counts = t.count_by(t.VectorDomain(atom), t.SymmetricDistance(), t.L1Distance())
        with pytest.raises(errors.DomainMismatch, match=r"keys=\[") as refusal:
            t.laplace(*counts.output_space, scale=1.0)
        assert "laplace_threshold" in str(refusal.value)
    for keys in ([], ["a", "a"], [1], "ab"):
        with pytest.raises(errors.InvalidArgument):
            t.count_by(t.VectorDomain(t.AtomDomain(str)), t.SymmetricDistance(), keys=keys)


def test_public_keys_by_brute_force():
    for metric in (t.L1Distance(), t.L2Distance(), t.LinfDistance(), t.L01InfDistance()):
        for relation, dataset in (
            ("add-remove", t.SymmetricDistance()),
            ("replace", t.ChangeOneDistance()),
        ):
            counts = t.count_by(t.VectorDomain(t.AtomDomain(str)), dataset, metric, keys=["a", "b"])
            for distance in (1, 2):
                truth = t.empirical_sensitivity(
                    counts, ["a", "b", "c"], 3, distance, relation, replacement=True, progress=False
                )
                assert truth == counts.map(distance)
