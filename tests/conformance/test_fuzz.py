"""Random chains of operations on random columns and engines: the values of `reference`, or a refusal before the charge.

A failing case names its seed: `hold_case(seed)` is that case again. Seconds of the same cases in each run of the tests,
as many as the machine gets through; twenty minutes of new ones in the long tier, or what `DPFRAME_FUZZ_SECONDS` says.
"""

from __future__ import annotations

import os
import random
import time

import pytest
from cells import TYPES, pairs
from engines import ENGINES
from expressions import of_one, of_two
from suite import check

import dpframe as dp

AFTER = (
    *(lambda e: e + 1, lambda e: e * e, lambda e: 1 - e, lambda e: e / 3, lambda e: e // 7, lambda e: e % 1000),
    *(lambda e: -e, lambda e: e.abs(), lambda e: e.floor(), lambda e: e.sqrt(), lambda e: e.fill_null(5)),
    *(lambda e: e.clip(-3, 1e200), lambda e: e.cast("int8"), lambda e: e.cast("int64"), lambda e: e.cast("float32")),
    *(lambda e: e.cast("string"), lambda e: e.cast("float64"), lambda e: e.cast("boolean"), lambda e: e.cast("date")),
    *(lambda e: e > 0, lambda e: ~e, lambda e: e.is_null(), lambda e: e.is_in([0, 1]), lambda e: e == "a"),
    *(lambda e: dp.when(e > 0).then(e).otherwise(0.5), lambda e: dp.when(e).then(1), lambda e: e.str.head(2)),
    *(lambda e: e.str.len_chars(), lambda e: e.str.contains("1"), lambda e: e.dt.year(), lambda e: e.dt.weekday()),
)
FUZZED = [engine for engine in ENGINES if not engine.long]


def hold_case(seed):
    """One table of two types, one engine, and a few chains of up to four operations."""
    rng = random.Random(seed)
    first, second = rng.sample(sorted(TYPES), 2)
    chains = []
    for _ in range(25):
        expr = rng.choice(rng.choice([of_one(first), of_one(second), of_two(first, second)]))
        for _ in range(rng.randint(0, 3)):
            expr = rng.choice(AFTER)(expr)
        chains.append(expr)
    engine = rng.choice(FUZZED)
    table = pairs([first, second], most=200)
    try:
        check(engine, table, chains)
    except Exception as error:
        raise AssertionError(f"hold_case({seed!r}): {error}") from error


def fuzz(seconds, start):
    """Cases until the time is over."""
    ends, seed = time.monotonic() + seconds, start
    while time.monotonic() < ends or seed == start:
        hold_case(seed)
        seed += 1


def test_chains_of_operations_in_seconds():
    fuzz(float(os.environ.get("DPFRAME_FUZZ_SECONDS", "10")), 0)


@pytest.mark.long
def test_chains_of_operations_in_twenty_minutes():
    fuzz(float(os.environ.get("DPFRAME_FUZZ_SECONDS", "1200")), random.SystemRandom().randrange(2**40))
