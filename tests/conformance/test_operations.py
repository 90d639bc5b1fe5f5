"""Every row operation, cast and comparison on every engine, on hostile cells: the values of `reference`, or a refusal.

The quick tier asks each operation of each type on each engine, with some of the literals, and pairs of some of the
types; the long tier asks all of them.
"""

from __future__ import annotations

from collections import defaultdict

import pytest
from cells import FAMILIES, TYPES, pairs, singles
from engines import ENGINES, READERS
from expressions import of_one, of_two
from suite import check

from dpframe.plan.nodes import Call, Literal

PLAIN = ("polars", "duckdb", "ibis")  # the others differ from one of these in how a table is brought, or in a setting
BESIDE = ("int8", "int64", "uint64", "int128", "float64", "float32", "decimal38_10")


@pytest.fixture(autouse=True)
def silent(capfd):
    """No engine writes anything: it could hold cells."""
    yield
    out, err = capfd.readouterr()
    assert not out + err


def engines(several, settings=True):
    """Engines as parameters; with a setting or not, those that are slow are asked at length only."""

    def marks(engine):
        if engine.name.startswith("spark"):
            return [pytest.mark.long, pytest.mark.xdist_group("spark")]
        return [] if settings or engine.name in PLAIN else [pytest.mark.long]

    return [pytest.param(e, id=e.name, marks=marks(e)) for e in several]


def some(exprs, few, turn):
    """Of the expressions of each shape (an operation on these columns) so many, others on each turn."""
    shapes = defaultdict(list)
    for expr in exprs:
        shapes[_shape(expr._node)].append(expr)
    return [
        alike[(turn + i * len(alike) // few) % len(alike)]
        for alike in shapes.values()
        for i in range(min(few, len(alike)))
    ]


def _shape(node):
    if isinstance(node, Literal):
        return type(node.value)
    if isinstance(node, Call):
        options = tuple(value for name, value in node.options if name == "dtype")
        return (node.operation, *map(_shape, node.args), *map(str, options))
    return node.name


def quick(exprs, engine):
    """Fewer where an engine is another one with a setting."""
    chosen = some(exprs, 1, engines_in_order.index(engine.name))
    return chosen if engine.name in PLAIN else chosen[engines_in_order.index(engine.name) % 5 :: 5]


engines_in_order = [engine.name for engine in (*ENGINES, *READERS)]


@pytest.mark.parametrize("engine", engines((*ENGINES, *READERS)))
@pytest.mark.parametrize("family", FAMILIES)
def test_operations_on_one_column(engine, family):
    exprs = [expr for name in FAMILIES[family] for expr in of_one(name)]
    check(engine, singles(FAMILIES[family]), quick(exprs, engine))


@pytest.mark.parametrize("engine", engines(ENGINES, settings=False))
def test_operations_on_two_columns_of_numbers(engine):
    exprs = [expr for i, name in enumerate(BESIDE) for other in BESIDE[i:] for expr in of_two(name, other)]
    check(engine, pairs(list(BESIDE), most=300), quick(exprs, engine))


@pytest.mark.parametrize("engine", engines(ENGINES, settings=False))
@pytest.mark.parametrize("family", ["texts", "truths", "times"])
def test_operations_on_two_columns(engine, family):
    exprs = [expr for name in FAMILIES[family] for other in FAMILIES[family] for expr in of_two(name, other)]
    check(engine, pairs(FAMILIES[family], most=300), quick(exprs, engine))


@pytest.mark.long
@pytest.mark.parametrize("engine", engines((*ENGINES, *READERS)))
@pytest.mark.parametrize("name", TYPES)
def test_every_operation_on_one_column(engine, name):
    check(engine, singles([name]), of_one(name))


@pytest.mark.long
@pytest.mark.parametrize("engine", engines(ENGINES))
@pytest.mark.parametrize("name", TYPES)
def test_every_operation_on_two_columns(engine, name):
    for other in TYPES:
        check(engine, pairs([name, other]), of_two(name, other))
