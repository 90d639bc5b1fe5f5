"""Expected errors: which choice they lead to, and how often a
group is expected to be suppressed.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.engine import NODES
from dpframe.noise import keep_probability
from dpframe.plan import Limits
from dpframe.release.auto import SizePosterior, read_people
from dpframe.release.auto.error_model import Expected, Judged
from dpframe.release.auto.size_histograms import Groups, read_spread
from dpframe.release.auto.unit_sizes import AT, NODE, UnitSizes, extrapolated
from dpframe.release.pricing import NoiseKind
from inside import question_of
from panels import panel, protect
from prices import noise_plan, read_price


def test_the_choice_is_good_in_every_likely_case():
    """In one case of 50 noise looks like a unit with a billion rows:
    limits for it are 1,000 times too noisy in all.
    """
    query, odds = (
        protect(panel(1, 50)).group_by("g", keys=[0], limits=dp.Auto()).count(),
        np.array([0.98, 0.02]),
    )
    model = Expected(
        question_of(query), UnitSizes(SizePosterior(np.ones((2, len(NODES))), odds)), lambda _: {}
    )
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
    plan = noise_plan(question_of(query), read_price(1, 1e-6), "laplace")
    units = np.arange(1, 2 * plan.threshold)
    crowd = np.where(NODES == 1, float(units.sum()), 0.0)
    # each unit is in one group, so presences are known
    once = read_spread(crowd, 1e-9, NODES.astype(float))
    keys = Groups(units[None].astype(float), np.ones((1, len(units))))
    model = Expected(question_of(query), UnitSizes(once, once, keys=keys), lambda _: {})
    lost = model._suppression(plan, model.kept(Limits(3 * groups, groups, 3)))[0]
    rate = 1 / Fraction(plan.of(plan.decided_by.total).scale)
    exact = [1 - keep_probability(int(n), rate, plan.start)[0] for n in units]
    # half a unit of the scale, where noise moves by whole units
    assert lost == pytest.approx(exact, abs=0.12 / groups)
    assert min(exact) < 0.01 < 0.99 < max(exact)


def expected_of(rows, ask, epsilon=500):
    """The model of a question whose histograms have next to no noise."""
    question, price = (
        question_of(ask(protect(rows).group_by("g", keys=list(range(16)), limits=dp.Auto()))),
        read_price(epsilon, 0),
    )
    parts = price.part(question.limits_share), price.part(1 - question.limits_share)
    return Expected(question, read_people(question, *parts), parts[1])


@pytest.mark.usefixtures("same_noise")
@pytest.mark.parametrize("most", [1, 4, 16])
def test_rows_of_units_in_all_groups_are_even_and_those_of_others_are_not(most):
    """800 units have a row in each of 16 groups; of 1,800 units with one
    row, most are in the first group.
    """
    where = np.repeat(np.arange(16), [1050] + 15 * [50])
    ids = np.concatenate([np.repeat(np.arange(800), 16), 800 + np.arange(len(where))])
    rows = pl.DataFrame(
        {"id": ids, "g": np.concatenate([np.tile(np.arange(16), 800), where])}
    ).with_columns(x=1.0)
    model = expected_of(rows, lambda q: q.mean("x", bounds=(0, 2)))
    kept = model.kept(Limits(most, 16, None))
    found = np.sort((kept.rows[:, None] * model._shares(kept.even, kept.rows))[0])
    truth = np.sort(800 * min(most, 16) / 16 + np.bincount(where))
    assert found == pytest.approx(truth, rel=0.15)
    # control: the same shares under all limits
    alike = np.sort(kept.rows[0] * model._groups.shares()[0])
    assert (alike == pytest.approx(truth, rel=0.15)) == (most == 1)


@pytest.mark.usefixtures("same_noise")
def test_rows_beyond_a_limit_in_each_group_are_in_the_same_groups():
    """1,000 units each have 8 rows in 4 groups, the same for all:
    a limit of 2 removes 6 from each.
    """
    rows = pl.DataFrame(
        {"id": np.repeat(np.arange(1000), 32), "g": np.tile(np.repeat(np.arange(4), 8), 1000)}
    )
    kept = expected_of(rows, lambda q: q.count()).kept(Limits(None, 16, 2))
    assert kept.heaped == pytest.approx(6000 * np.sqrt(4 / 16), rel=0.1)


def test_units_that_noise_hides_have_as_large_a_part_in_one_group_as_those_that_are_seen():
    rows, largest = np.full((1, len(AT)), 40.0), np.full((1, len(AT)), 10.0)
    rows[:, -20:] = 4000.0
    assert extrapolated(rows, largest, 0.0)[0, -1] == 10
    assert extrapolated(rows, largest, 0.2)[0, -1] == pytest.approx(1000 / NODE)
    even = np.maximum(rows / 40, 1.0)  # a row in each group: neighbouring nodes make no difference
    assert np.array_equal(extrapolated(rows[:, :-20] * 1.2, even[:, :-20], 0.2), even[:, :-20])


def test_cases_of_two_histograms_agree_about_the_number_of_units():
    """Of 100 units, one reading has 100 with a row in a group, and
    another 80 more that noise made.
    """
    rows = SizePosterior(
        np.where(NODES == 8, 100.0, 0.0)[None] * np.linspace(0.95, 1.05, 20)[:, None],
        np.full(20, 0.05),
    )
    fitting = np.where(NODES == 1, 100.0, 0.0)
    peaks = SizePosterior(
        np.array([fitting, fitting + np.where(NODES == 8, 80.0, 0.0)]), np.array([0.5, 0.5])
    )
    assert UnitSizes(rows, peaks=peaks).sizes[2].max() == 1
    alike = replace(
        peaks, masses=np.array([fitting, fitting / 2 + np.where(NODES == 8, 50.0, 0.0)])
    )
    assert UnitSizes(rows, peaks=alike).sizes[2].max() == 8  # control
