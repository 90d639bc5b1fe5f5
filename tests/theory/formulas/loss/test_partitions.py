"""The worst way to spread one unit's rows over groups where it is
alone, beside every way there is.
"""

import itertools
import math
from fractions import Fraction

import pytest

from dpframe.errors import InvalidArgument
from dpframe.noise import family_tail
from dpframe.theory import threshold
from dpframe.theory.formulas.loss import (
    Spread,
    partition_delta,
    partition_threshold,
    threshold_beside_noise,
)

FAMILIES = [("discrete_laplace", 1.3), ("laplace", 2.0), ("gaussian", 2.5)]
SIZES = [
    (1, 1, 1),
    (3, 1, 3),
    (3, 3, 3),
    (4, 2, 5),
    (5, 3, 7),
    (4, 4, 9),
    (6, 6, 6),
    (6, 4, 11),
    (7, 3, 7),
]


def every(spread):
    """Every way to spread what a unit may have, largest first."""
    for count in range(1, spread.groups + 1):
        sizes = range(spread.most, spread.least - 1, -1)
        for way in itertools.combinations_with_replacement(sizes, count):
            if sum(way) <= spread.total:
                yield way


def shown(way, family, scale, limit):
    """The probability that any group of a way is shown, in floats."""
    return -math.expm1(
        math.fsum(math.log1p(-family_tail(family, scale, limit - size)) for size in way)
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize(("groups", "most", "total"), SIZES)
@pytest.mark.parametrize(("family", "scale"), FAMILIES)
def test_no_way_to_spread_rows_shows_a_key_more_likely(family, scale, groups, most, total, least):
    spread = Spread(groups, most, total, least)
    for limit in range(most, most + 12):
        tail = lambda size, limit=limit: Fraction(family_tail(family, scale, limit - size))  # noqa: E731
        claimed = max(partition_delta(parts, tail) for parts in spread.worst())
        worst = max(shown(way, family, scale, limit) for way in every(spread))
        assert worst <= float(claimed) * (1 + 1e-12)
        assert worst == pytest.approx(float(claimed), rel=1e-9)  # some way reaches it


@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize(("groups", "most", "total"), SIZES)
def test_each_number_of_groups_has_its_worst_way(groups, most, total, least):
    spread = Spread(groups, most, total, least)
    for count in range(1, spread.count + 1):
        parts = spread.of(count)
        assert sum(number for _, number in parts) == count
        assert sum(size * number for size, number in parts) <= total
        tail = lambda size: Fraction(family_tail("laplace", 2.0, most + 5 - size))  # noqa: E731
        ways = [way for way in every(spread) if len(way) == count]
        worst = max(shown(way, "laplace", 2.0, most + 5) for way in ways)
        assert worst == pytest.approx(float(partition_delta(parts, tail)), rel=1e-9)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize(("groups", "most", "total"), SIZES)
@pytest.mark.parametrize(("family", "scale"), FAMILIES)
def test_the_threshold_is_the_smallest_for_the_worst_way(family, scale, groups, most, total, least):
    spread, delta = Spread(groups, most, total, least), 1e-3
    limit = partition_threshold(delta, spread, family, scale)
    ways = list(every(spread))
    assert max(shown(way, family, scale, limit) for way in ways) <= delta
    assert max(shown(way, family, scale, limit - 1) for way in ways) > delta
    assert limit <= threshold(delta, groups, family, scale, most)


def test_rows_in_few_groups_need_a_lower_threshold_than_as_many_in_each():
    spread = Spread(groups=24, most=24, total=24)
    assert (
        partition_threshold(1e-6, spread, "laplace", 24.0)
        < threshold(1e-6, 24, "laplace", 24.0, 24) - 20
    )


def test_a_threshold_for_equal_groups_alone_is_too_low_for_more_rows():
    """The negative control: without the total, `most` in each group is
    possible, and the claim is exceeded.
    """
    spread = Spread(groups=5, most=3, total=7)
    limit = partition_threshold(1e-3, spread, "laplace", 2.0)
    assert shown((3,) * 5, "laplace", 2.0, limit) > 1e-3


def test_a_threshold_beside_gaussian_noise_knows_the_total_too():
    mu = lambda groups: math.sqrt(min(groups, 5) * 5) / 60  # noqa: E731
    least = threshold_beside_noise(1e-5, 1, 5, 60.0, 5, mu, spread=Spread(5, 5, 5))
    apart = threshold_beside_noise(1e-5, 1, 5, 60.0, 5, mu)
    assert least is not None
    assert apart is not None
    assert least < apart


@pytest.mark.parametrize("wrong", [{"groups": 0}, {"most": 0}, {"total": 0}, {"least": 2}])
def test_a_spread_that_cannot_be_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        Spread(**{"groups": 1, "most": 1, "total": 1, "least": 1, **wrong})
