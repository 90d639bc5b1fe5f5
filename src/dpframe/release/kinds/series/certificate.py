"""The certificate of a period of a series: its question, and the noise that
was bought once for all periods.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpframe.budget import Loss
from dpframe.plan import Question, asked
from dpframe.release.certificate import Ids, document, noisy, sensitivity_facts, text, total_facts
from dpframe.release.kinds.series.noise import SeriesNoise
from dpframe.release.kinds.series.unit_change import TotalChange, UnitChange
from dpframe.release.pricing import Rule


def certified_period(
    question: Question, bought: UnitChange, noise: SeriesNoise, cost: Loss, *, again: bool
) -> Mapping[str, Any]:
    """The certificate of a period, without what is known after its charge.

    Input:  question: that of the period; bought: the change of one unit that the noise was bought
            for; cost: of all periods together; again: whether the period is measured once more,
            which is charged beside
    Output: the totals of the period, and those of all blocks of each part and level, with their
            noise
    Bound:  it is a function of the question and the price: of no row
    """
    ids: Ids = {one.total.key: f"t{i}" for i, one in enumerate(question.allotments)}
    totals = [total_facts(question, one, 0, ids) for one in question.allotments]
    mechanisms = []
    for part, shape in enumerate(noise.shapes.parts):
        span = noise.shapes.starts[part : part + 2]
        for level, size in enumerate(shape.sizes):
            for place, (night, change) in enumerate(
                zip(totals[: len(ids)], bought.totals, strict=True)
            ):
                mechanism, weights = noise.mechanisms[part][level][place], shape.weights
                bound = bought.weighted(place, weights) if weights else bought.over(place, size)
                if mechanism.exact:
                    continue
                about = {
                    "id": (name := f"t{len(totals)}"),
                    "names": night["names"],
                    "question": 0,
                    "kind": "blocks",
                    "of": night["id"],
                    "periods": bought.periods,
                    "size": len(weights) or size,
                    "span": span,
                    **({"weights": list(weights)} if weights else {}),
                    "fraction": 0,
                    "own_limits": None,
                    "cells": None,
                    "bought": _vector(change),
                }
                totals.append({**about, "sensitivity": sensitivity_facts(bound)})
                mechanisms.append(noisy(name, mechanism, bound, Fraction(mechanism.scale)))
    normal = Rule.GAUSSIAN if cost.exact_rho is None else Rule.RHO
    rule = normal if noise.normal else Rule.EPSILON
    made = document([(question, asked(question))], totals, mechanisms, rule, cost)
    return made if not again else {**made, "composition": {"rule": "measured_again"}}


def _vector(change: TotalChange) -> list[str]:
    """The most that one unit adds to a total in one period:
    entries, sum of sizes, largest size, swing.
    """
    one = change.one
    return [text(number) for number in (one.l0, one.exact_l1, one.exact_linf, change.swing)]
