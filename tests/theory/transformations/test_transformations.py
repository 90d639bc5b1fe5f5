"""Every transformation, every type and every metric:
measured distances of random neighbours stay within the map.
"""

import itertools
import math

import numpy as np
import pytest

import dpframe.theory as t
from dpframe import errors

NUMBERS = [
    int,
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
    float,
    np.float32,
]
ALL = [*NUMBERS, bool, str]
ADD_REMOVE = [t.SymmetricDistance(), t.InsertDeleteDistance()]
REPLACE = [t.ChangeOneDistance(), t.HammingDistance()]
METRICS = ADD_REMOVE + REPLACE
COUNTS = [t.L1Distance(), t.L2Distance(), t.LinfDistance(), t.L01InfDistance(), t.L02InfDistance()]


def bounds_of(kind):
    return (0, 12) if np.dtype(kind).kind == "u" else (-3, 10)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize("kind", NUMBERS)
def test_clamp(holds, kind, metric):
    clamp = t.clamp(t.VectorDomain(t.AtomDomain(kind)), metric, bounds=bounds_of(kind))
    assert holds(clamp, 60)
    assert clamp.output_domain.element_domain.bounds == bounds_of(kind)
    assert clamp.map(3) == 3
    assert clamp.check(3, 3)
    assert not clamp.check(3, 2)


def test_clamp_keeps_nan_and_shape():
    space = t.VectorDomain(t.AtomDomain(float, nan=True)), t.SymmetricDistance()
    clamp = t.clamp(*space, bounds=(0, 5))
    assert clamp.output_domain.element_domain.nan
    assert math.isnan(clamp([math.nan])[0])
    assert clamp([10.0, -math.inf]) == [5.0, 0.0]
    assert isinstance(clamp(np.array([7.0])), np.ndarray)


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_impute(holds, metric):
    impute = t.impute(t.VectorDomain(t.AtomDomain(float, nan=True)), metric, 1.5)
    assert holds(impute)
    assert impute([math.nan, 2.0]) == [1.5, 2.0]
    assert not impute.output_domain.element_domain.nan


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "pair", list(itertools.product(ALL, ALL)), ids=lambda p: f"{p[0].__name__}-{p[1].__name__}"
)
def test_cast_is_total(holds, pair):
    source, target = pair
    cast = t.cast(
        t.VectorDomain(t.AtomDomain(source, nan=source in (float, np.float32))),
        t.SymmetricDistance(),
        target,
    )
    assert holds(cast, 12)


def test_cast_of_what_has_no_image():
    strings = t.VectorDomain(t.AtomDomain(str)), t.SymmetricDistance()
    assert t.cast(*strings, int, default=7)(["3", " 4 ", "x", "", "1e3", "nan"]) == [
        3,
        4,
        7,
        7,
        7,
        7,
    ]
    assert t.cast(*strings, float)(["3.5", "nan", "inf", "x"]) == [3.5, 0.0, 0.0, 0.0]
    assert t.cast(*strings, bool)(["true", "False", "1", "?"]) == [True, False, True, False]
    assert t.cast(*strings, np.int8)(["127", "128"]) == [127, 0]
    floats = t.VectorDomain(t.AtomDomain(float, nan=True)), t.SymmetricDistance()
    assert t.cast(*floats, np.uint8)([math.nan, -1.0, 255.9, 256.0, math.inf]) == [0, 0, 255, 0, 0]
    assert t.cast(*floats, np.float32)([1e300, 0.1]) == [0.0, float(np.float32(0.1))]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize("size", [None, 7])
@pytest.mark.parametrize("kind", [*NUMBERS, bool])
def test_sum(holds, kind, size, metric):
    atom = t.AtomDomain(bool) if kind is bool else t.AtomDomain(kind, bounds=bounds_of(kind))
    assert holds(t.sum(t.VectorDomain(atom, size), metric), 60)


@pytest.mark.parametrize("kind", NUMBERS)
def test_sum_is_tight(kept, kind):
    low, high = bounds_of(kind)
    width, largest = high - low, max(abs(low), abs(high))
    atom = t.AtomDomain(kind, bounds=(low, high))
    free, sized = t.VectorDomain(atom), t.VectorDomain(atom, 5)
    assert kept(t.sum(free, t.SymmetricDistance()), [high, low], [low]) == (largest, largest)
    assert kept(t.sum(free, t.ChangeOneDistance()), [high], [low]) == (width, width)
    assert t.sum(free, t.SymmetricDistance()).map(3) == 3 * largest
    assert t.sum(sized, t.ChangeOneDistance()).map(2) == 2 * width
    assert t.sum(sized, t.SymmetricDistance()).map(2) == width
    assert t.sum(sized, t.SymmetricDistance()).map(3) == width, (
        "odd distances do not occur at a fixed size"
    )
    assert t.sum(sized, t.ChangeOneDistance()).map(99) == 5 * width, "at most all records change"


def test_sum_of_floats_does_not_depend_on_the_order(rng):
    total = t.sum(t.VectorDomain(t.AtomDomain(float, bounds=(0, 0.7))), t.SymmetricDistance())
    data = rng.random(1000) * 0.7
    assert len({total(rng.permutation(data)) for _ in range(20)}) == 1
    assert total(data) == pytest.approx(data.sum(), rel=1e-7)


def test_sum_of_floats_has_no_rounding_in_its_change(kept):
    # Adding 1 to 2^53 in floats changes nothing and adding 1.5 changes 2: both break a bound that
    # ignores rounding.
    total = t.sum(t.VectorDomain(t.AtomDomain(float, bounds=(0, 2.0**53))), t.SymmetricDistance())
    base = [2.0**53] * 3
    measured, promised = kept(total, [*base, 1.0], base)
    assert measured <= promised
    small = t.sum(t.VectorDomain(t.AtomDomain(float, bounds=(0.1, 0.3))), t.SymmetricDistance())
    for n in range(60):
        measured, promised = kept(small, [0.3] * (n + 1), [0.3] * n)
        assert measured <= promised == 0.3


@pytest.mark.parametrize(
    "bounds", [(0.1, 0.1), (1e9, 1e9 + 0.001), (-1e-310, 1e-310), (0, 1e308), (0.0, 0.0), (-5, -5)]
)
@pytest.mark.parametrize("size", [None, 6])
def test_sum_with_awkward_bounds(holds, bounds, size):
    atom = t.AtomDomain(float, bounds=bounds)
    for metric in (t.SymmetricDistance(), t.ChangeOneDistance()):
        assert holds(t.sum(t.VectorDomain(atom, size), metric), 40)


def test_integer_sums_stop_at_the_ends_of_their_type():
    total = t.sum(t.VectorDomain(t.AtomDomain(np.int8, bounds=(-100, 100))), t.SymmetricDistance())
    assert total([100] * 5) == 127
    assert total([-100] * 5) == -128
    wide = t.sum(
        t.VectorDomain(t.AtomDomain(np.uint64, bounds=(0, 2**64 - 1))), t.SymmetricDistance()
    )
    assert wide([2**64 - 1] * 3) == 2**64 - 1
    assert wide([2**63, 5]) == 2**63 + 5
    signed = t.sum(
        t.VectorDomain(t.AtomDomain(np.int64, bounds=(-(2**63), 2**63 - 1))), t.SymmetricDistance()
    )
    assert signed([2**63 - 1, -(2**63), 3]) == 2


def test_float_totals_stop_where_floats_stop_being_exact(kept):
    total = t.sum(t.VectorDomain(t.AtomDomain(np.float32, bounds=(0, 1))), t.SymmetricDistance())
    many = np.ones(20_000, np.float32)
    assert total(many) == total(np.ones(2**14, np.float32)) == 2.0**14
    measured, promised = kept(total, many[: 2**14], many[: 2**14 - 1])
    assert measured == promised == 1


@pytest.mark.one_in(4)
@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize("kind", [*NUMBERS, bool])
@pytest.mark.parametrize("make", [t.mean, t.variance, lambda *space: t.variance(*space, ddof=0)])
def test_mean_and_variance(holds, make, kind, metric):
    atom = t.AtomDomain(bool) if kind is bool else t.AtomDomain(kind, bounds=bounds_of(kind))
    for size in (2, 5):
        assert holds(make(t.VectorDomain(atom, size), metric), 25)


@pytest.mark.parametrize("bounds", [(0, 0.1), (-1e-300, 1e-300), (1e15, 1e15 + 1), (0.3, 0.3)])
def test_mean_and_variance_with_awkward_bounds(holds, bounds):
    domain = t.VectorDomain(t.AtomDomain(float, bounds=bounds), 7)
    assert holds(t.mean(domain, t.ChangeOneDistance()), 60)
    assert holds(t.variance(domain, t.ChangeOneDistance()), 60)


def test_mean_and_variance_figures():
    data = [float(i) for i in range(1, 10)]
    domain = t.VectorDomain(t.AtomDomain(float, bounds=(0.0, 10.0)), 9)
    mean, variance = (
        t.mean(domain, t.SymmetricDistance()),
        t.variance(domain, t.SymmetricDistance()),
    )
    assert mean(data) == 5.0
    assert mean.check(2, 10 / 9)
    assert not mean.check(2, 1.1111)
    assert mean.map(1) == 0
    assert variance(data) == 7.5
    assert variance.map(2) == pytest.approx(100 / 9, rel=1e-15)
    assert t.variance(domain, t.ChangeOneDistance(), ddof=0).map(1) == pytest.approx(
        800 / 81, rel=1e-15
    )
    whole = t.VectorDomain(t.AtomDomain(np.uint8, bounds=(0, 10)), 9)
    assert t.mean(whole, t.ChangeOneDistance())(list(range(1, 10))) == 5.0
    assert t.variance(whole, t.ChangeOneDistance())(list(range(1, 10))) == 7.5


def test_variance_is_tight_for_every_number_of_changes(kept):
    for size, changed in itertools.product((2, 3, 5, 6), (1, 2, 3, 4)):
        variance = t.variance(
            t.VectorDomain(t.AtomDomain(int, bounds=(0, 10)), size), t.ChangeOneDistance()
        )
        j = min(changed, size // 2)
        measured, promised = kept(variance, [0] * size, [10] * j + [0] * (size - j))
        assert variance.map(changed) >= promised
        assert measured == pytest.approx(variance.map(changed), rel=1e-12)


@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize("size", [None, 6])
def test_count(holds, metric, size):
    count = t.count(t.VectorDomain(t.AtomDomain(str), size), metric)
    assert holds(count)
    fixed = size is not None or metric in REPLACE
    assert count.map(3) == (0 if fixed else 3)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("output", COUNTS, ids=repr)
@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize("size", [None, 6])
def test_histogram_and_count_by(holds, metric, output, size):
    strings = t.VectorDomain(t.AtomDomain(str), size)
    assert holds(t.histogram(strings, metric, categories=["a", "b"], output_metric=output), 40)
    assert holds(
        t.histogram(strings, metric, categories=["a"], output_metric=output, null_category=False),
        40,
    )
    assert holds(t.count_by(strings, metric, output_metric=output), 40)
    numbers = t.VectorDomain(t.AtomDomain(float, bounds=(-3, 10)), size)
    assert holds(t.histogram(numbers, metric, bins=[-3, 0, 0.5, 10], output_metric=output), 40)


@pytest.mark.parametrize(
    ("output", "add_remove", "replace"),
    [
        (t.L1Distance(), 2, 4),
        (t.L2Distance(), 2, math.sqrt(8)),
        (t.LinfDistance(), 2, 2),
        (t.L01InfDistance(), (2, 2, 2), (4, 4, 2)),
        (t.L02InfDistance(), (2, 2, 2), (4, math.sqrt(8), 2)),
    ],
    ids=repr,
)
def test_counts_are_tight(output, add_remove, replace):
    strings = t.VectorDomain(t.AtomDomain(str))
    for make in (
        lambda m: t.count_by(strings, m, output),
        lambda m: t.histogram(strings, m, list("abcd"), None, output),
    ):
        assert make(t.SymmetricDistance()).map(2) == add_remove
        assert make(t.ChangeOneDistance()).map(2) == replace
        one = output.distance({"a": 2, "b": 0}, {"a": 0, "b": 2})
        if not isinstance(output, t.L01InfDistance | t.L02InfDistance):
            assert one == replace


def test_histogram_figures():
    ages = t.VectorDomain(t.AtomDomain(float))
    bins = t.histogram(ages, t.SymmetricDistance(), bins=[0, 18, 30, 45])
    assert bins([0, 17.9, 18, 30, 45, 46, -1]) == [2, 1, 2, 2]
    edges = [0, 18, 30, 45]
    data = np.random.default_rng(5).integers(0, 46, 500).astype(float)
    assert bins(data)[:3] == np.histogram(data, edges)[0].tolist()
    words = t.histogram(t.VectorDomain(t.AtomDomain(str)), t.SymmetricDistance(), ["1", "3", "4"])
    assert words([str(i) for i in range(1, 10)]) == [1, 1, 1, 6]
    assert words.output_domain == t.VectorDomain(t.AtomDomain(int), 4)
    flags = t.histogram(
        t.VectorDomain(t.AtomDomain(bool)),
        t.ChangeOneDistance(),
        [True, False],
        null_category=False,
    )
    assert flags([True, True, False]) == [2, 1]


def test_count_by_figures():
    query = t.count_by(t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance(), t.L1Distance())
    assert query([3, 1, 3]) == {3: 2, 1: 1}
    assert query.check(1, 1)
    assert query.output_domain == t.MapDomain(t.AtomDomain(int), t.AtomDomain(int))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("metric", METRICS, ids=repr)
@pytest.mark.parametrize("size", [None, 6])
@pytest.mark.parametrize("length", [1, 4, 9])
def test_resize(holds, metric, size, length):
    for kind, constant in ((float, 0.5), (str, "zz"), (np.int16, 3)):
        assert holds(
            t.resize(t.VectorDomain(t.AtomDomain(kind), size), metric, length, constant), 60
        )


def test_resize_figures():
    resize = t.resize(t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance(), size=4, constant=0)
    assert resize([-1, 2, 5]) == [-1, 2, 5, 0]
    assert (resize.map(1), resize.map(2), resize.map(99)) == (2, 4, 8)
    assert not resize.check(1, 1)
    assert resize.output_domain.size == 4
    # The choice ignores the order, or equal datasets would be resized differently.
    data = list(range(50))
    assert sorted(resize(data)) == sorted(resize(data[::-1]))
    # It is not always the same records for everyone.
    other = [t.resize(*resize.input_space, size=4, constant=0)(data) for _ in range(8)]
    assert len({tuple(o) for o in other}) > 1


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda s: t.sum(t.VectorDomain(t.AtomDomain(int)), s), errors.MissingBounds),
        (lambda s: t.mean(t.VectorDomain(t.AtomDomain(float), 5), s), errors.MissingBounds),
        (
            lambda s: t.mean(t.VectorDomain(t.AtomDomain(float, bounds=(0, 1))), s),
            errors.UnsupportedOperation,
        ),
        (
            lambda s: t.variance(t.VectorDomain(t.AtomDomain(float, bounds=(0, 1))), s),
            errors.UnsupportedOperation,
        ),
        (
            lambda s: t.variance(t.VectorDomain(t.AtomDomain(float, bounds=(0, 1)), 3), s, ddof=3),
            errors.InvalidArgument,
        ),
        (
            lambda s: t.variance(t.VectorDomain(t.AtomDomain(float, bounds=(0, 1e200)), 3), s),
            errors.InvalidBounds,
        ),
        (lambda s: t.sum(t.VectorDomain(t.AtomDomain(str)), s), errors.WrongType),
        (
            lambda s: t.sum(t.VectorDomain(t.AtomDomain(float, bounds=(0, 1), nan=True)), s),
            errors.UnsupportedOperation,
        ),
        (lambda s: t.sum(t.AtomDomain(float, bounds=(0, 1)), s), errors.DomainMismatch),
        (lambda s: t.clamp(t.VectorDomain(t.AtomDomain(str)), s, ("a", "b")), errors.InvalidBounds),
        (
            lambda s: t.clamp(t.VectorDomain(t.AtomDomain(float)), s, (math.nan, 1)),
            errors.InvalidBounds,
        ),
        (lambda s: t.clamp(t.VectorDomain(t.AtomDomain(float)), s, (2, 1)), errors.InvalidBounds),
        (
            lambda s: t.clamp(t.VectorDomain(t.AtomDomain(float)), s, (-math.inf, 1)),
            errors.InvalidBounds,
        ),
        (lambda s: t.clamp(t.VectorDomain(t.AtomDomain(int)), s, (0, 1.5)), errors.InvalidBounds),
        (lambda s: t.clamp(t.VectorDomain(t.AtomDomain(int)), s, None), errors.InvalidBounds),
        (
            lambda s: t.clamp(t.VectorDomain(t.AtomDomain(int)), t.L1Distance(), (0, 1)),
            errors.MetricMismatch,
        ),
        (
            lambda s: t.impute(t.VectorDomain(t.AtomDomain(float, nan=True)), s, math.nan),
            errors.InvalidArgument,
        ),
        (
            lambda s: t.cast(t.VectorDomain(t.AtomDomain(str)), s, int, default="x"),
            errors.InvalidArgument,
        ),
        (lambda s: t.cast(t.VectorDomain(t.AtomDomain(str)), s, complex), errors.InvalidArgument),
        (lambda s: t.resize(t.VectorDomain(t.AtomDomain(int)), s, 0, 0), errors.InvalidArgument),
        (
            lambda s: t.resize(t.VectorDomain(t.AtomDomain(int, bounds=(1, 2))), s, 3, 0),
            errors.InvalidArgument,
        ),
        (lambda s: t.histogram(t.VectorDomain(t.AtomDomain(str)), s), errors.InvalidArgument),
        (
            lambda s: t.histogram(t.VectorDomain(t.AtomDomain(str)), s, categories=[]),
            errors.InvalidArgument,
        ),
        (
            lambda s: t.histogram(t.VectorDomain(t.AtomDomain(str)), s, categories=["a", "a"]),
            errors.InvalidArgument,
        ),
        (
            lambda s: t.histogram(t.VectorDomain(t.AtomDomain(str)), s, categories=[1]),
            errors.InvalidArgument,
        ),
        (
            lambda s: t.histogram(t.VectorDomain(t.AtomDomain(str)), s, bins=[1, 2]),
            errors.DomainMismatch,
        ),
        (
            lambda s: t.histogram(t.VectorDomain(t.AtomDomain(float)), s, bins=[1]),
            errors.InvalidArgument,
        ),
        (
            lambda s: t.histogram(t.VectorDomain(t.AtomDomain(float)), s, bins=[2, 1]),
            errors.InvalidArgument,
        ),
        (
            lambda s: t.histogram(t.VectorDomain(t.AtomDomain(float)), s, bins=[0, math.nan]),
            errors.InvalidArgument,
        ),
        (
            lambda s: t.count_by(t.VectorDomain(t.AtomDomain(float, nan=True)), s),
            errors.DomainMismatch,
        ),
        (
            lambda s: t.count_by(t.VectorDomain(t.AtomDomain(str)), s, t.AbsoluteDistance()),
            errors.MetricMismatch,
        ),
    ],
)
def test_what_cannot_be_is_refused(make, error):
    with pytest.raises(error):
        make(t.SymmetricDistance())


def test_a_false_promise_is_caught(holds):
    """Negative control: half the map of a sum, and a resize that keeps the first
    records of an unordered dataset.
    """
    space = t.VectorDomain(t.AtomDomain(int, bounds=(0, 10))), t.SymmetricDistance()
    true = t.sum(*space)
    false = t.Transformation(*space, *true.output_space, true.function, lambda d_in: 5 * d_in)
    with pytest.raises(AssertionError):
        holds(false)
    cut = t.Transformation(*space, *space, lambda x: list(x)[:3], lambda d_in: 2 * d_in)
    with pytest.raises(AssertionError):
        holds(cut)
