"""Expected errors: the mean over open cases, and how often a group is expected to be suppressed."""

from fractions import Fraction

import numpy as np
import pytest

from dpframe.engine import NODES
from dpframe.noise import keep_probability
from dpframe.plan.columns import Limits
from dpframe.release.auto.error_model import Expected, UnitSizes, _geometric_mean
from dpframe.release.auto.size_histograms import Groups, read_spread
from panels import panel, protect
from prices import noise_plan, read_price


def test_what_is_shown_is_the_middle_of_the_cases_that_are_open():
    assert _geometric_mean(np.array([1.0, 100.0]), np.array([0.5, 0.5])) == pytest.approx(10.0)
    assert _geometric_mean(np.array([3.0]), np.array([0.25, 0.75])) == pytest.approx(3.0)
    assert _geometric_mean(np.array([0.0, 2.0]), np.array([0.5, 0.5])) == 0.0  # an exact number


@pytest.mark.parametrize("groups", [1, 4])
def test_a_group_is_expected_to_be_suppressed_as_often_as_it_is(groups):
    query = protect(panel(1, 50)).group_by("g", max_groups=groups, max_rows_per_group=3).count()
    plan = noise_plan(query._question, read_price(1, 1e-6), "laplace")
    units = np.arange(1, 2 * plan.threshold)
    crowd = np.where(NODES == 1, float(units.sum()), 0.0)
    once = read_spread(crowd, 1e-9, NODES.astype(float))  # each unit is in one group, so presences are known
    keys = Groups(units[None].astype(float), np.ones((1, len(units))))
    model = Expected(query._question, UnitSizes(once, once, keys=keys), lambda _: {})
    lost = model._suppression(plan, model.kept(Limits(3 * groups, groups, 3)))[0]
    rate = 1 / Fraction(plan.of(plan.decided_by.total).scale)
    exact = [1 - keep_probability(int(n), rate, plan.start)[0] for n in units]
    assert lost == pytest.approx(exact, abs=0.12 / groups)  # half a unit of the scale, where noise moves by whole units
    assert min(exact) < 0.01 < 0.99 < max(exact)
