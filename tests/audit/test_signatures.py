"""What neighbouring tables may not differ in: everything of a release but its numbers.

With the noise frozen, each of the small tables gives the same columns, types, key rows and order,
categories, nulls, warnings, charges, log lines, events and words, and the same exception where
there is one. Neighbouring tables are connected, so it is enough that all tables agree with the
empty one.
"""

from __future__ import annotations

import contextlib
import io
import logging
import random
import sys
import warnings
from dataclasses import replace

import batches
import numpy as np
import polars as pl
import pytest
from test_exhaustive import LIMITS, OPERATIONS, asked

import dpframe as dp
from dpframe.errors import DpFrameError
from dpframe.noise import bits
from dpframe.release.shown import error_table
from inside import book_of, numbers_of
from strategies import bring

SIZE = len(batches.universe())
FORMS = ["listed", "alone", "listed rows", "alone rows", "crosstab", "own", "own alone"]
FORMS += ["hierarchy", "hierarchy of sums"]
PRICES = [
    {"epsilon": 1.0},
    {"epsilon": 1.0, "delta": 1e-6},
    {"epsilon": 0.5, "delta": 1e-6, "noise": "gaussian"},
]


@contextlib.contextmanager
def frozen():
    """The same random words for every release: as a stream, since
    samplers draw again until they accept.
    """
    words = np.random.default_rng(1)
    with bits.substitute(lambda count: words.integers(0, 2**64, count, dtype=np.uint64)):
        yield


def signature(ask, rows, price):
    """Everything that can be seen of one release but its numbers."""
    logged, out = io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(logged)
    logging.getLogger().addHandler(handler)
    said = []
    budget = dp.Budget(epsilon=5.0, delta=1e-5)
    try:
        with (
            frozen(),
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
        ):
            warnings.simplefilter("always")
            try:
                release = ask(rows, budget).release(name="once", **price)
                said += seen(release)
            except Exception as error:
                said += [
                    type(error).__name__,
                    str(error),
                    error.__cause__ is None,
                    error.__context__ is None,
                ]
    finally:
        logging.getLogger().removeHandler(handler)
    said += [
        [(w.category.__name__, str(w.message)) for w in caught],
        logged.getvalue(),
        out.getvalue(),
    ]
    history = [(c.query, c.epsilon, c.delta, c.status, c.name) for c in budget.history()]
    return [
        *said,
        history,
        str(budget.remaining),
        [sorted(e.body) for e in book_of(budget).entries()],
    ]


def seen(release):
    """Columns, types, keys in order, nulls, categories, and what is said in words.

    A number that noise hides is missing, which the noisy numbers decide: such a number is filled.
    """
    table = (release.fill() if hasattr(release, "fill") else release).to_polars()
    keys = [name for name in table.columns if name in ("g", "i")]
    pandas = release.to_pandas()
    return [
        dict(table.schema),
        table.select(keys).rows(),
        table.select(pl.exclude(keys).is_null()).rows(),
        table.height,
        [str(t) for t in pandas.dtypes],
        [str(x) for x in pandas.index],
        release.noise.rows() if isinstance(release.noise, pl.DataFrame) else str(release.noise),
        str(release.cost),
        str(release.derivation),
        dict(
            (
                release.accuracy()
                if hasattr(release, "levels")
                else error_table(numbers_of(release), 0.05)
            ).schema
        )
        if release._kind != "pandas" or not hasattr(release, "levels")
        else list(release.accuracy().columns),
    ]


def ask_of(chain, form, limits, unit, relation):
    def ask(rows, budget):
        query = asked(chain, form, limits, unit, relation, rows, budget)
        assert query is not None
        return query

    return ask


def tables(rng, number, kinds=SIZE):
    """The empty table, each kind of row alone or some of them, and others at random."""
    alone = range(1, 1 + len(batches.KINDS))
    chosen = [0, *rng.sample(alone, min(kinds, len(alone))), *rng.sample(range(SIZE), number)]
    many = batches.frame()
    return [many.filter(pl.col("t") == n).drop("t") for n in chosen]


def questions(rng, number):
    """Questions that can be asked, one after the other through the operations."""
    names = list(OPERATIONS)
    while number:
        chain = tuple(rng.sample(names, rng.choice([0, 1, 2])))
        form, relation = rng.choice(FORMS), rng.choice(["add-remove", "replace"])
        unit = dp.Rows(1) if form.endswith("rows") else "u"
        ask = (chain, form.removesuffix(" rows"), rng.choice(LIMITS), unit, relation)
        if "partition" in chain or asked(*ask, batches.frame().drop("t").clear()) is None:
            continue  # a partition keeps an account of its own in each budget
        number -= 1
        yield ask


def hold(seed, number, each, kinds=SIZE):
    rng = random.Random(seed)
    for ask in questions(rng, number):
        kind, price = rng.choice(["pandas", "polars", "lazy", "pyarrow"]), rng.choice(PRICES)
        schema = None
        for rows in tables(rng, each, kinds):
            found = signature(ask_of(*ask), bring(rows, kind), price)
            schema = found if schema is None else schema
            assert found == schema, (ask, kind, rows)


def test_neighbours_differ_in_nothing_but_numbers():
    hold("signatures", 2, 1, kinds=2)


@pytest.mark.long
def test_neighbours_differ_in_nothing_but_numbers_at_length():
    hold("signatures at length", 30, 6)


def test_refusals_are_the_same_for_all_tables():
    """A budget that is spent, a price without δ, a question without
    limits: before anything is read.
    """
    rng = random.Random("refusals")
    asks = [
        lambda f: f.count(max_rows=1).release(epsilon=99),
        lambda f: f.group_by("g", max_groups=1).count_units().release(epsilon=1),
        lambda f: f.sum("v", (0, 1)),
        lambda f: f.group_by("nothing", max_groups=1),
        lambda f: f.count(max_rows=1).release(epsilon=1, noise="gaussian"),
        lambda f: f.filter(dp.col("g") > 1),
    ]
    for ask in asks:
        said = set()
        for rows in tables(rng, 6):
            with pytest.raises(DpFrameError) as caught:
                ask(dp.protect(rows, unit="u", budget=dp.Budget(epsilon=1.0)))
            said.add((type(caught.value), str(caught.value)))
        assert len(said) == 1


def test_a_release_that_shows_a_key_of_the_data_is_noticed(monkeypatch):
    """The negative control: what is listed may not follow the rows."""
    totals_room = sys.modules["dpframe.engine.totals"]
    real = totals_room._assembled

    def only_found(question, mains, apart):
        raw = real(question, mains, apart)
        in_data = raw.held.join(mains[0], on=raw.held.columns, how="left", maintain_order="left")
        stays = in_data.get_column("t0").is_not_null()
        values = tuple(value[stays.to_numpy()] for value in raw.values)
        return replace(raw, keys=raw.keys.filter(stays), values=values, held=raw.held.filter(stays))

    monkeypatch.setattr(totals_room, "_assembled", only_found)
    ask = ask_of((), "listed", LIMITS[0], "u", "add-remove")
    rng = random.Random("control")
    found = [signature(ask, rows, PRICES[0]) for rows in tables(rng, 2, kinds=1)]
    assert any(other != found[0] for other in found)
