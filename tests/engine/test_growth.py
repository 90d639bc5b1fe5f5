"""What engines get of a question grows with what was typed, and no faster:
every operation is stated once.
"""

import copy
import functools
import itertools
import math
import operator
import pickle
import random
from dataclasses import replace

import ibis
import narwhals as nw
import polars as pl
import pytest
import sqlglot

import dpframe as dp
from datafusion_tables import stored
from dpframe.engine.stages import expressions, lower
from dpframe.engine.stages import rows as rows_of_steps
from dpframe.engine.stages.lowering import Lowering
from dpframe.engine.totals import guarded
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan import Call
from dpframe.plan.steps import Concat
from inside import node_of, step_of
from strategies import as_frame, random_rows

PEOPLE = pl.DataFrame(
    {
        "u": list(range(1, 9)),
        "f": [0.5, 1.5, None, 2.0, -3.0, 4.25, 0.0, 1.0],
        "i": [3, -1, 4, None, 5, -9, 2, 6],
        "s": ["a", "bb", None, "c", "a", "", "bb", "d"],
    }
)
F, N = dp.col("f"), dp.col("i")

# From an expression and a number to a larger expression.
GROWN = {
    "add": lambda e, k: e + F,
    "subtract": lambda e, k: e - F,
    "multiply": lambda e, k: e * F,
    "divide": lambda e, k: e / F,
    "whole add": lambda e, k: e.cast("int64") + N if k == 0 else e + N,
    "whole multiply": lambda e, k: e.cast("int64") * N if k == 0 else e * N,
    "negative": lambda e, k: -e,
    "abs": lambda e, k: e.abs(),
    "sqrt": lambda e, k: e.sqrt(),
    "floor": lambda e, k: e.floor(),
    "round": lambda e, k: e.round(1),
    "sign": lambda e, k: e.sign(),
    "power": lambda e, k: e**2,
    "cast": lambda e, k: e.cast(("int32", "float64")[k % 2]),
    "clip": lambda e, k: e.clip(-k, k + 1),
    "fill_null": lambda e, k: e.fill_null(k),
    "not": lambda e, k: ~(e > 1) if k == 0 else ~e,
    "is_null": lambda e, k: e.is_null(),
    "and": lambda e, k: (e > 1) & (F > 0) if k == 0 else e & (k < F),
    "or": lambda e, k: (e > 1) | (F > 0) if k == 0 else e | (k < F),
    "is_in": lambda e, k: e.is_in([1.0, 2.0]) if k == 0 else e.is_in([True]),
    "when": lambda e, k: dp.when(k < F).then(float(k)).otherwise(e),
    "compare": lambda e, k: e > F if k == 0 else e == (k < F),
    "twice": lambda e, k: e + e * 0.5 if k < 9 else e + 1,
}
FEW, MORE = 8, 32


def grown(name, times):
    return functools.reduce(lambda e, k: GROWN[name](e, k), range(times), F)


def query_of(table, expr):
    """The query of a new column as its engine gets it, as text."""
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1)).with_columns(y=expr)
    rows = lower(step_of(frame), {step_of(frame).table.columns["y"].id}).to_native()
    if isinstance(rows, pl.LazyFrame):
        return rows.explain(optimized=False)
    if isinstance(rows, ibis.Table):
        return written(rows)
    return (
        rows.sql_query()
        if hasattr(rows, "sql_query")
        else rows._jdf.queryExecution().logical().toString()
    )


def written(rows):
    """The SQL of an Ibis table, by the compiler that dpframe uses for its database."""
    name = rows._find_backends()[0][0].name
    if name == "duckdb":
        return str(ibis.to_sql(rows, pretty=False))  # without indents, which grow with the depth
    module = pytest.importorskip(f"dpframe.engine.backends.{name}.compiler")
    compilers = {
        "sqlite": "SqliteTotalCompiler",
        "datafusion": "DataFusionTotalCompiler",
        "postgres": "PostgresTotalCompiler",
    }
    return getattr(module, compilers[name])().written(rows)


QUICK = {"add", "whole add", "not", "cast", "when", "twice"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.long) for n in GROWN]
)
def test_a_query_grows_with_its_expression(engine, name):
    """A query has a part that does not grow.
    With operands that stand there twice, the rest grows by 2^24.
    """
    if engine.name in ("dask", "pandas", "pyarrow", "polars-lazy"):
        pytest.skip("its queries are those of Polars")
    table = engine(PEOPLE)
    few, more = (
        guarded(lambda times=times: len(query_of(table, grown(name, times))))
        for times in (FEW, MORE)
    )
    assert more < 8 * few


@pytest.mark.parametrize("name", GROWN)
def test_an_operation_is_compiled_once(monkeypatch, name):
    expr, compiled = grown(name, 12), []
    for operation, lowered in expressions.LOWERED.items():

        def counted(here, on, operation=operation, lowered=lowered):
            compiled.append(operation)
            return lowered(here, on)

        monkeypatch.setitem(expressions.LOWERED, operation, counted)
    nodes, pending = {}, [node_of(expr)]
    while pending:
        node = pending.pop()
        if isinstance(node, Call) and id(node) not in nodes:
            nodes[id(node)] = node
            pending += node.args
    query_of(PEOPLE, expr)
    assert 0 < len(compiled) <= len(nodes)


@pytest.mark.parametrize("name", ["add", "whole add", "and"])
def test_columns_that_nothing_reads_are_left_out(name):
    """A long chain has hundreds of columns of its own, and a frame has a few of them at a time."""
    frame = dp.protect(PEOPLE, unit="u", budget=dp.Budget(epsilon=1))
    table = step_of(frame).table
    live = {column.id for column in table.columns.values()}
    here = Lowering(table, lower(step_of(frame), live), live)
    value = here.expr(node_of(grown(name, 1000)))
    assert len(here._made) > 20
    assert len(here.frame.collect_schema().names()) < len(live) + 20
    assert here.frame.select(value.alias("y")).to_native().collect().height == PEOPLE.height


def expected(name, times, value, whole):
    """A chain in plain Python; null where a value is missing."""
    signs = {"add": operator.add, "subtract": operator.sub, "whole add": operator.add}
    other = whole if "whole" in name else value
    start = int(value) if "whole" in name and value is not None else value
    if start is None or other is None:
        return None
    return functools.reduce(signs[name], itertools.repeat(other, times), start)


@pytest.mark.spark
@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["add", "subtract", "whole add"])
def test_a_long_chain_has_the_value_of_its_terms(engine, name):
    times = 40
    values = [expected(name, times, f, i) for f, i in zip(PEOPLE["f"], PEOPLE["i"], strict=True)]
    frame = dp.protect(engine(PEOPLE), unit="u", budget=dp.Budget(epsilon=1e9)).with_columns(
        y=grown(name, times)
    )
    total = frame.sum("y", bounds=(-1000, 1000), max_rows=1).release(epsilon=1e8).value
    assert total == pytest.approx(sum(value for value in values if value is not None), abs=0.01)


@pytest.mark.parametrize("first", [2**62, -(2**62)])
def test_a_whole_number_on_the_way_that_does_not_fit_is_null(first):
    table = pl.DataFrame({"u": [1, 2], "i": [first, 5]})
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1))
    for terms in (3, 7, 20):
        chain = functools.reduce(operator.add, [N] * terms)
        for _ in range(terms - 1):
            chain = chain - N
        made = frame.with_columns(y=chain)
        rows = lower(step_of(made), {step_of(made).table.columns["y"].id}).to_native().collect()
        assert rows.to_series(-1).to_list() == [None, 5]


def test_nan_on_the_way_is_null_at_the_end():
    table = pl.DataFrame({"u": [1, 2], "f": [1e308, 1.0]})
    made = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1)).with_columns(
        y=F * 10 - F * 10 + 1, z=F * 10 > 1
    )
    columns = step_of(made).table.columns
    rows = nw.to_native(lower(step_of(made), {columns["y"].id, columns["z"].id})).collect()
    assert rows.select(sorted(c.id for n, c in columns.items() if n in "yz")).rows() == [
        (None, True),
        (1.0, True),
    ]


def test_a_chain_of_a_thousand_terms_stays_shallow():
    chain = functools.reduce(operator.sub, [dp.col(f"c{i % 9}") for i in range(1000)])
    assert node_of(chain).depth < 24
    assert node_of(chain).terms == 1000
    assert (
        pickle.loads(pickle.dumps(node_of(chain)))
        == node_of(chain)
        == copy.deepcopy(node_of(chain))
    )
    assert hash(node_of(chain)) == hash(copy.deepcopy(node_of(chain)))
    assert repr(chain).count(" + ") + repr(chain).count(" - ") == 999


@pytest.mark.parametrize(
    "name",
    sorted(
        set(GROWN)
        - {"add", "subtract", "multiply", "whole add", "whole multiply", "and", "or", "twice"}
    ),
)
def test_what_nests_too_deeply_is_refused_where_it_is_typed(name):
    with pytest.raises(InvalidArgument, match="64 deep at most"):
        grown(name, 65)


def test_what_is_too_large_is_refused_where_it_is_typed():
    with pytest.raises(InvalidArgument, match="20,000 operations at most"):
        functools.reduce(lambda e, _: e.abs() / e, range(20), F)


STEPS = {
    "with_columns": lambda f, k: f.with_columns(f=F + k),
    "filter": lambda f, k: f.filter(k > F),
    "rename": lambda f, k: f.with_columns(g=F * 2).drop("f").rename({"g": "f"}),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_after_each_other_are_one_subquery(engine, name):
    if engine.name not in ("sqlite", "datafusion"):
        pytest.skip("its queries are not text")
    table = engine(PEOPLE)
    few, more = (guarded(lambda times=times: subqueries(table, name, times)) for times in (4, 48))
    assert more <= few + 4


def subqueries(table, name, times):
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=1))
    frame = functools.reduce(lambda f, k: STEPS[name](f, k), range(times), frame)
    return written(lower(step_of(frame), {step_of(frame).table.columns["f"].id}).to_native()).count(
        "SELECT"
    )


@pytest.mark.parametrize("seed", range(60))
def test_steps_together_have_the_rows_of_each_by_itself(monkeypatch, seed):
    rng = random.Random(seed)
    chosen = [rng.choice(WRITING) for _ in range(rng.randint(2, 12))]
    again = [rng.choice(WRITING)] * 2  # the same objects twice, on other tables
    frame = dp.protect(as_frame(random_rows(rng)), unit="u", budget=dp.Budget(epsilon=1))
    for step in [*chosen, *again]:
        frame = step(frame)
    live = {
        step_of(frame).table.columns[name].id
        for name in rng.sample(["a", "x", "y"], rng.randint(1, 3))
    }
    together = lower(step_of(frame), live).to_native().collect()
    monkeypatch.setattr(rows_of_steps, "_MOST_STATED", -1)
    alone = lower(step_of(frame), live).to_native().collect()
    assert together.equals(alone, null_equal=True)


A, X, SHARED = dp.col("a"), dp.col("x"), dp.col("x") * dp.col("x") - dp.col("a")
WRITING = [
    lambda f: f.with_columns(y=X),
    lambda f: f.with_columns(x=SHARED, y=SHARED),
    lambda f: f.with_columns(x=X / A, y=X - X),
    lambda f: f.with_columns(x=A, y=X.abs()),
    lambda f: f.with_columns(a=A * A - 3, x=X.sqrt() + A, y=X.log()),
    lambda f: f.with_columns(y=dp.when(X > 1).then(X).otherwise(A), x=X * 1e200),
    lambda f: f.with_columns(y=functools.reduce(operator.add, [X, A] * 20)),
    lambda f: f.with_columns(a=functools.reduce(operator.mul, [A] * 9), y=1.5),
    lambda f: f.clip("x", -3, 10).fill_null("a", 7),
    lambda f: f.cast("a", "float64").cast("a", "int64"),
    lambda f: f.with_columns(y=X).rename({"x": "y", "y": "x"}),
    lambda f: f.filter(X > -5).filter(A.is_null() | (A < 100)),
    lambda f: f.filter(dp.col("yes") | ~dp.col("yes")).with_columns(z=X).drop("z"),
]


def test_what_datafusion_cannot_nest_is_refused_before_it_crashes(monkeypatch):
    compiler = pytest.importorskip("dpframe.engine.backends.datafusion.compiler")
    query = sqlglot.parse_one(
        "WITH a AS (SELECT x FROM (SELECT x FROM t) q) SELECT x FROM (SELECT x FROM a) AS r"
    )
    assert compiler.nesting(query) == 4
    context = pytest.importorskip("datafusion").SessionContext()
    table = ibis.datafusion.connect(context).table(stored(context, PEOPLE.to_arrow()))
    budget = dp.Budget(epsilon=1)
    frame = dp.protect(table, unit="u", budget=budget)
    monkeypatch.setattr(compiler, "_DEEPEST", 20)
    for k in range(20):
        frame = frame.filter(k > F).with_columns(f=F + 1)
    with pytest.raises(
        UnsupportedOperation, match=r"DataFusion would crash.*Take some of its steps in DataFusion"
    ):
        frame.count(max_rows=1).release(epsilon=1)
    assert budget.spent.epsilon == 0


def test_steps_are_counted():
    frame = dp.protect(PEOPLE, unit="u", budget=dp.Budget(epsilon=1))
    with pytest.raises(UnsupportedOperation, match="300 steps after each other"):
        functools.reduce(lambda f, _: f.filter(F > 0), range(300), frame)
    with pytest.raises(UnsupportedOperation, match="10,000 in all"):
        functools.reduce(lambda f, _: dp.concat([f, f.filter(F > 0)]), range(14), frame)


def test_a_table_that_is_concatenated_with_itself_is_read_once():
    scans = []
    frame = dp.protect(PEOPLE, unit="u", budget=dp.Budget(epsilon=1))
    source = replace(
        step_of(frame),
        data=replace(step_of(frame).data, scan=counting(step_of(frame).data.scan, scans)),
    )
    twice = functools.reduce(lambda step, _: Concat(step, (step,)), range(10), source)
    rows = lower(twice, {twice.table.columns["f"].id}).to_native().collect()
    assert rows.height == 2**10 * PEOPLE.height
    assert scans == [["f", "u"]]


def counting(scan, scans):
    def counted(names, **options):
        scans.append(sorted(names))
        return scan(names, **options)

    return counted


ENDS = [None, -300, -7, -2.5, -1, 0, 0.5, 1, 3, 4.75, 8, 300]


def _ends(draw):
    """Two limits of a clip, with a whole number between them; one may be open."""
    while True:
        low, high = draw.choice(ENDS), draw.choice(ENDS)
        if low is None or high is None or (low <= high and math.ceil(low) <= math.floor(high)):
            return (low, high) if (low, high) != (None, None) else (None, 3)


def _moved(value, low, high, *, whole):
    low = -math.inf if low is None else math.ceil(low) if whole else low
    high = math.inf if high is None else math.floor(high) if whole else high
    return min(max(value, low), high)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int64, pl.Float64])
def test_clips_in_a_row_are_one_with_the_same_values(dtype):
    """Beside clips at their turn in plain Python.
    Limits may lie outside of each other, and beyond the type.
    """
    draw, values = random.Random(8), [-128, -9, -2, -1, 0, 1, 2, 3, 5, 7, 127]
    table = pl.DataFrame({"u": range(len(values)), "x": values}, {"u": pl.Int64, "x": dtype})
    for _ in range(40):
        frame, expected = dp.protect(table, unit="u"), values
        for low, high in [_ends(draw) for _ in range(draw.randint(2, 5))]:
            frame = frame.clip("x", low, high)
            expected = [_moved(x, low, high, whole=dtype.is_integer()) for x in expected]
            expected = [min(max(x, -128), 127) for x in expected] if dtype == pl.Int8 else expected
        asked = frame.agg(
            s=dp.sum("x", bounds=(-512, 512)), e=dp.sum("x", bounds=(0, 512)), max_rows=1
        )
        totals = asked.exact_totals(table)
        assert [totals[name][()] for name in "se"] == [
            sum(expected),
            sum(max(x, 0) for x in expected),
        ]
        assert step_of(frame).since is step_of(frame).before.since


def test_clips_that_are_not_in_a_row_stay_apart():
    frame = dp.protect(PEOPLE, unit="u")
    for apart in (
        frame.clip("f", 0, 9).clip("i", 0, 9),
        frame.clip("f", 0, 9).cast("f", "int64").clip("f", 2, 3),
        frame.clip("f", 0, 9).fill_null("f", 5).clip("f", 2, 3),
        frame.clip("f", 0, 9).filter(F > 1).clip("f", 2, 3),
    ):
        assert step_of(apart).since is step_of(apart).before


def test_clips_in_a_row_are_stated_once():
    """200 of them took 9 seconds through Ibis, for each was a query within the next."""
    table = ibis.table({"u": "int64", "f": "float64"}, name="people")
    queries = []
    for number in (1, 60):
        frame = dp.protect(table, unit="u")
        for k in range(number):
            frame = frame.clip("f", -k, k + 1)
        compiled = lower(
            step_of(frame), frozenset({step_of(frame).table.columns["f"].id}), empty=True
        )
        queries.append(ibis.to_sql(compiled.to_native(), dialect="duckdb").count("SELECT"))
    assert queries[1] == queries[0]
