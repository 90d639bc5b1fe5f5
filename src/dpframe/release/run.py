"""The release: the only place where plan, engine, noise and budget meet.

Order of events: the whole query is validated on a table without rows; the price is charged; only then are rows read,
noise drawn and the table made. A refusal spends nothing; a failure after the charge loses budget, never privacy.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import polars as pl

from dpframe import engine
from dpframe.budget.losses import Loss
from dpframe.errors import UnsupportedOperation
from dpframe.noise import bits, discrete_laplace, keep_at_least, rounded_gaussian, rounded_laplace
from dpframe.plan.ask import Ask
from dpframe.plan.explain import derivation, unit_words
from dpframe.plan.steps import source_of
from dpframe.release.calibrate import Drawn, noise_plan, read_price
from dpframe.release.formulas import real, released
from dpframe.release.result import Release

__all__ = ["Account", "release"]

_SAMPLERS = {"laplace": rounded_laplace, "discrete_laplace": discrete_laplace, "gaussian": rounded_gaussian}


class Account(Protocol):
    """Whatever can be charged."""

    def charge(self, loss: Loss, subject: str, query: str) -> None:
        """Pay, or refuse and change nothing."""
        ...


def release(
    ask: Ask,
    account: Account,
    *,
    epsilon: Any = None,
    delta: Any = None,
    rho: Any = None,
    noise: str = "auto",
    name: str | None = None,
) -> Release:
    """Validate, charge, read, draw, lay out.

    Bound:  the table is a function of the noisy totals alone, and these have the loss that was charged: each measure's
            total is an integer, moved by at most its sensitivity, plus integer noise of the planned scale; what follows
            is post-processing
    Errors: every DpFrameError that concerns a price or a budget, before anything is read
    """
    if name is not None:
        raise UnsupportedOperation("release(name=...) needs a budget that is kept in a ledger; leave it out.")
    plan = noise_plan(ask, read_price(epsilon, delta, rho), noise)
    engine.validate(ask)
    table = ask.table
    why = derivation(ask)
    account.charge(plan.cost, f"{unit_words(source_of(ask.step).table)}, {table.relation}", why.steps[-1][0])
    raw = engine.totals(ask, int(bits.random_words(1)[0]))
    noisy = {d.paid.measure.key: _plus(t, _draw(d, len(t))) for t, d in zip(raw.values, plan.drawn, strict=True)}
    keys = raw.keys
    del raw
    if plan.threshold is not None and plan.decided_by is not None:
        kept = keep_at_least(noisy[plan.decided_by.measure.key], plan.threshold)
        keys = keys.filter(pl.Series(kept))
        noisy = {key: values[kept] for key, values in noisy.items()}
    columns = [pl.Series(o.name, released(o, noisy), dtype=pl.Int64 if o.whole else pl.Float64) for o in ask.outputs]
    parts = {name: real(m, noisy) for o in ask.outputs for name, m in o.measures if len(o.measures) > 1}
    long = keys.with_columns(columns) if ask.by else pl.DataFrame(columns)
    kind = source_of(ask.step).data.kind
    return Release(plan.cost, why, long, ask.by, ask.outputs, plan, kind, ask.layout, parts)


# Noise


def _draw(drawn: Drawn, size: int) -> Any:
    """Fresh noise for every group of a measure, listed groups without rows included."""
    return np.zeros(size, np.int64) if drawn.family == "none" else _SAMPLERS[drawn.family](drawn.scale, size)


def _plus(totals: Any, noise: Any) -> Any:
    """The exact sum: as int64 where that surely fits, as Python integers where not."""
    if totals.dtype == object or noise.dtype == object or _large(totals) or _large(noise):
        return totals.astype(object) + noise.astype(object)
    return totals.astype(np.int64) + noise


def _large(values: Any) -> bool:
    return bool(len(values)) and max(int(values.max()), -int(values.min())) >= 2**61
