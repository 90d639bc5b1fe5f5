"""What once took forever ends: each piece of code runs in a process of its own, and
fails if it outlives its limit.
"""

import subprocess
import sys

import pytest

LIMIT = 240  # seconds; each takes one to five on an idle machine
BEGIN = """
import functools, operator
import numpy as np, polars as pl, dpframe as dp
import warnings; warnings.simplefilter("ignore")
cells = {f"c{i}": np.arange(40.0) % (i + 2) for i in range(8)}
rows = pl.DataFrame({"u": np.arange(40) // 4, **cells})
def ask(table, expr):
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1e9)).with_columns(y=expr)
    return frame.sum("y", bounds=(0, 100), max_rows=4).release(epsilon=1)
terms = [dp.col(f"c{i % 8}") for i in range(1000)]
"""
TABLES = {
    "polars": "table = rows",
    "duckdb": "import duckdb; arrow = rows.to_arrow(); table = duckdb.sql('SELECT * FROM arrow')",
    "ibis": """
import ibis
own = ibis.duckdb.connect()
own.con.register("brought", rows.to_arrow())
own.con.execute("CREATE TABLE t AS SELECT * FROM brought")
table = own.table("t")""",
}
EXPRESSIONS = {
    "sum": "functools.reduce(operator.add, terms)",
    "product": "functools.reduce(operator.mul, terms)",
    "whole": "functools.reduce(operator.add, [t.cast('int64') for t in terms[:100]])",
    "any": "dp.when(functools.reduce(operator.or_, [t > 9 for t in terms])).then(1).otherwise(0)",
    "not": "dp.when(functools.reduce(lambda e, _: ~e, range(60), terms[0] > "
    "1)).then(1).otherwise(0)",
    "sqrt": "functools.reduce(lambda e, _: e.sqrt(), range(60), terms[0])",
    "cast": "functools.reduce(lambda e, k: e.cast(('int64', 'float64')[k % 2]), range(60), "
    "terms[0])",
}
PRICES = """
for price in (1e-15, 1e-12, 1e-3, 1e6, 1e12, 1e16, 1e17, 1e18, 1e30):
    for noise in ("laplace", "gaussian", "k-norm", "auto"):
        for bounds in ((0, 5), (0, 1e-300), (0, 2**60)):
            budget = dp.Budget(epsilon=1e30, delta=1e-3)
            frame = dp.protect(rows, unit="u", budget=budget)
            by = frame.group_by("c0", keys=[0.0, 1.0], max_groups=1, max_rows_per_group=1)
            for question in (
                by.agg(n=dp.count(), s=dp.sum("c1", bounds=bounds)),
                by.agg(m=dp.median("c1", bounds=bounds), o=dp.mean("c1", bounds=bounds)),
                frame.group_by("c0", max_groups=1, max_rows_per_group=1).agg(n=dp.count()),
            ):
                before = budget.spent
                try:
                    question.release(epsilon=price, delta=1e-9, noise=noise)
                except dp.errors.DpFrameError:
                    assert budget.spent == before, (price, noise, bounds)
"""


def ends(code):
    subprocess.run([sys.executable, "-c", BEGIN + code], check=True, timeout=LIMIT)


@pytest.mark.parametrize(
    "name", [n if n == "sum" else pytest.param(n, marks=pytest.mark.long) for n in EXPRESSIONS]
)
def test_expressions_end(name):
    pytest.importorskip("ibis")
    ends("\n".join(f"{table}\nask(table, {EXPRESSIONS[name]})" for table in TABLES.values()))


def test_steps_end():
    ends(
        """
for table in (rows, rows.lazy()):
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1))
    for i in range(100):
        frame = frame.with_columns(c0=dp.col("c0") + 1).filter(dp.col("c1") >= 0)
    frame.sum("c0", bounds=(0, 200), max_rows=4).release(epsilon=0.1)
frame = dp.protect(rows, unit="u", budget=dp.Budget(epsilon=1))
for _ in range(12):
    frame = dp.concat([frame, frame])
frame.sum("c0", bounds=(0, 200), max_rows=4).release(epsilon=0.1)
"""
    )


@pytest.mark.long
def test_every_price_is_answered_or_refused_before_the_charge():
    ends(PRICES)
