"""Expected errors: which choice they lead to, and how often a group is expected to be suppressed."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dpframe as dp
from dpframe.engine import NODES
from dpframe.noise import keep_probability
from dpframe.plan import Limits
from dpframe.release.auto import SizePosterior
from dpframe.release.auto.error_model import Expected, Judged, UnitSizes
from dpframe.release.auto.size_histograms import Groups, read_spread
from dpframe.release.pricing import NoiseKind
from panels import panel, protect
from prices import noise_plan, read_price


def test_the_choice_is_good_in_every_likely_case():
    """In one case of 50 noise looks like a unit with a billion rows: limits for it are 1,000 times too noisy in all."""
    query, odds = protect(panel(1, 50)).group_by("g", keys=[0], limits=dp.Auto()).count(), np.array([0.98, 0.02])
    model = Expected(query._question, UnitSizes(SizePosterior(np.ones((2, len(NODES))), odds)), lambda _: {})
    low, high = (
        Judged(Limits(rows), {}, NoiseKind.LAPLACE, np.array(errors), {})
        for rows, errors in ((8, [10.0, 1e6]), (10**6, [1e4, 2e5]))
    )
    assert model.least([low, high]) is low
    slightly = replace(high, cases=np.array([20.0, 2e5]))
    assert model.least([replace(low, cases=np.array([10.0, 1e8])), slightly]) is slightly  # control


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
