"""Every row operation, cast and comparison on every engine, on hostile cells:
the values of `reference`, or a refusal.

The quick tier asks each operation of each kind of column on each engine, of some of the types and
with some of the literals, others on each engine; the long tier asks all of them.
"""

from __future__ import annotations

from collections import defaultdict

import pytest
from cells import FAMILIES, LONG_TEXTS, TYPES, pairs, singles
from engines import ENGINES, READERS
from expressions import of_one, of_two
from reference import family
from suite import check, takes_steps

from dpframe.plan import Call, Literal
from inside import node_of

PLAIN = (
    "polars",
    "duckdb",
    "ibis",
    "postgres",
    "sqlite",
    "datafusion",
)  # the others are one of these, brought in another way or with a setting
BESIDE = ("int8", "int64", "uint64", "int128", "float64", "float32", "decimal38_10")


def marks(engine, quick):
    """Those that share a server or session run in one process, and
    engines that are slow at length only.
    """
    made = [pytest.mark.xdist_group(engine.needs)] if engine.needs else []
    return made if quick and not engine.long else [*made, pytest.mark.long]


def engines(several, settings=True):
    """Engines as parameters, with and without settings. Slow engines run in the long tier alone."""
    return [
        pytest.param(e, id=e.name, marks=marks(e, settings or e.name in PLAIN)) for e in several
    ]


def in_turn():
    """Engines and families of types: an engine that is another one with a setting
    is asked of every second family.
    """
    return [
        pytest.param(
            e, names, id=f"{e.name}-{family}", marks=marks(e, e.name in PLAIN or (i + j) % 2 == 0)
        )
        for i, e in enumerate((*ENGINES, *READERS))
        for j, (family, names) in enumerate(FAMILIES.items())
    ]


def some(exprs, few, turn):
    """At most `few` expressions of each shape (an operation and the kinds of its
    operands), others on each turn.
    """
    shapes = defaultdict(list)
    for expr in exprs:
        shapes[_shape(node_of(expr))].append(expr)
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
    return family(TYPES[node.name[2:]].dtype) if node.name[2:] in TYPES else node.name


def quick(exprs, engine):
    """The expressions of the quick tier: one of each shape, and on most
    engines only a share of these.
    """
    turn = 7 * engines_in_order.index(engine.name)
    chosen = some(exprs, 1, turn)
    step = {"polars": 1, "duckdb": 2, "ibis": 2, "postgres": 2, "sqlite": 2, "datafusion": 2}.get(
        engine.name, 5
    )
    few = chosen[turn % step :: step]
    long = [expr for expr in few if takes_steps(expr)]
    return (
        few if step == 1 else [expr for expr in few if not takes_steps(expr)] + long[turn % 3 :: 3]
    )


engines_in_order = [engine.name for engine in (*ENGINES, *READERS)]


@pytest.mark.one_in(14)
@pytest.mark.parametrize(("engine", "names"), in_turn())
def test_operations_on_one_column(engine, names):
    exprs = [expr for name in names for expr in of_one(name)]
    check(engine, singles(names), quick(exprs, engine))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("engine", engines(ENGINES, settings=False))
def test_operations_on_two_columns_of_numbers(engine):
    exprs = [
        expr
        for i, name in enumerate(BESIDE)
        for other in BESIDE[i:]
        for expr in of_two(name, other)
    ]
    check(engine, pairs(list(BESIDE), most=300), quick(exprs, engine))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("engine", engines(ENGINES, settings=False))
@pytest.mark.parametrize("kinds", ["texts", "truths", "times"])
def test_operations_on_two_columns(engine, kinds):
    names = FAMILIES[kinds]
    exprs = [expr for name in names for other in names for expr in of_two(name, other)]
    check(engine, pairs(names, most=300), quick(exprs, engine))


@pytest.mark.long
@pytest.mark.parametrize("engine", engines((*ENGINES, *READERS)))
def test_operations_on_texts_of_a_million_letters(engine):
    check(
        engine,
        {"a_string": LONG_TEXTS},
        some(of_one("string"), 2, engines_in_order.index(engine.name)),
    )


@pytest.mark.long
@pytest.mark.parametrize("engine", engines((*ENGINES, *READERS)))
@pytest.mark.parametrize("name", TYPES)
def test_every_operation_on_one_column(engine, name):
    """Engines that are others with a setting, and readers, are asked
    for one expression of each shape.
    """
    turn = engines_in_order.index(engine.name)
    check(
        engine,
        singles([name]),
        of_one(name) if engine.name in PLAIN or engine.long else some(of_one(name), 1, turn),
    )


@pytest.mark.long
@pytest.mark.parametrize("engine", engines(ENGINES))
@pytest.mark.parametrize("name", TYPES)
def test_every_operation_on_two_columns(engine, name):
    """Beside each eighth type, and on the next engine beside others:
    each pair of types is asked on two engines.
    """
    turn = engines_in_order.index(engine.name) + list(TYPES).index(name)
    for other in list(TYPES)[turn % 8 :: 8]:
        check(engine, pairs([name, other]), of_two(name, other))
