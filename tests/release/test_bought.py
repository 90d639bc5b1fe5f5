"""Noise is added to the totals that it was bought for:
at every answer, the question's own sensitivities and grids.

A plan of noise and a question meet again in repeated questions (results are kept), batches, named
releases, limits and bounds that dp.Auto chooses, narrower bounds, rounds of keys, and second
readings. The nights of a series are in `tests/release/kinds/series/test_held.py`.
"""

import polars as pl
import pytest

import dpframe as dp
from dpframe.release import run
from dpframe.release.kinds import AnswerKind
from inside import question_of, step_of

ROWS = pl.DataFrame(
    {
        "u": [i % 90 for i in range(300)],
        "g": [i % 3 for i in range(300)],
        "x": [float(i % 50) for i in range(300)],
        "y": [float(i % 7) for i in range(300)],
    }
)
PRICES = {
    "epsilon": (lambda: dp.Budget(epsilon=1e5, delta=0.5), {"epsilon": 5, "delta": 1e-3}),
    "rho": (lambda: dp.Budget(rho=1e5, delta=0.5), {"rho": 5, "delta": 1e-3}),
}
BOUNDS = [(0, 1), (0, 1.0), (-1, 1), (0, 100), (-100, 100)]  # alike to Python, or to people


def alike(frame):
    """Questions that differ in a limit or a bound alone, or in nothing but a type."""
    for most in (1, 2):
        for bounds in BOUNDS:
            yield frame.sum("x", bounds=bounds, max_rows=most)
            yield frame.bound(max_rows=most).clip("x", *bounds).mean("x")
            yield frame.group_by("g", keys=[0, 1, 2], max_groups=most, max_rows_per_group=most).agg(
                m=dp.mean("x", bounds=bounds), n=dp.count()
            )


def chosen(frame):
    """Questions that are worked out again inside their release."""
    yield frame.agg(m=dp.mean("x", bounds=dp.Auto()), limits=dp.Auto())
    yield frame.group_by("g", keys=[0, 1, 2], limits=dp.Auto()).agg(n=dp.count())
    yield frame.ols(
        y="y", x=["x"], bounds={"x": (0, 1000), "y": (0, 1000)}, max_rows=1, narrow=True
    )
    if step_of(frame).table.relation == "add-remove":
        yield frame.group_by("g").keys()


def watched(patch):
    """For each noise that is used, when rows are read for it:
    what it was bought for, and what it is added to.
    """
    used = []

    def watching(function):
        def watch(question, plan, *raw):
            totals = {allotment.total.key: allotment.total for allotment in question.allotments}
            bought = [noise.allotment.total for noise in plan.noises]
            now = [totals.get(total.key) for total in bought]
            used.extend(
                [
                    tuple(t and (t.unit, t.sensitivity) for t in both)
                    for both in zip(bought, now, strict=True)
                ]
            )
            return function(question, plan, *raw)

        return watch

    patch.setattr(run, "_answer", watching(run._answer))
    return used


@pytest.mark.one_in(2)
@pytest.mark.filterwarnings("ignore::dpframe.errors.DpFrameWarning")
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("name", PRICES)
def test_noise_is_that_of_the_question_at_hand(monkeypatch, name, relation):
    make, price = PRICES[name]
    used, budget = watched(monkeypatch), make()
    frame = dp.protect(ROWS, unit="u", budget=budget, neighbors=relation)
    queries = list(alike(frame))
    for query in [*queries, *alike(frame)]:
        query.release(**price)
    for first, second in zip(queries[:-1:7], queries[1::7], strict=False):
        budget.plan([first, second], **price).release()
    for number, query in enumerate(chosen(frame)):
        for _ in range(2):
            query.release(**price, name=f"{number}")
    assert len(used) > 90
    assert all(bought == now for bought, now in used)


def test_noise_of_another_question_is_seen(monkeypatch):
    used, budget = watched(monkeypatch), dp.Budget(epsilon=5)
    frame = dp.protect(ROWS, unit="u", budget=budget)
    monkeypatch.setattr(
        AnswerKind, "noise", lambda *asked: asked[2].plan(question_of(frame.count(max_rows=1)))
    )
    frame.count(max_rows=5).release(epsilon=1)
    assert any(bought != now for bought, now in used)
