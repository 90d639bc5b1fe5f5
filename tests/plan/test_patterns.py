"""Text methods that take patterns in Polars or pandas: what is accepted means the same there, the rest is refused."""

import re

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan.nodes import text

SIGNS = r"\.^$*+?{}[]()|"
TEXTS = ["a", "ab", "aab", "b-a", "a.b", "A", "ba ab", "a,b", "%a_", "", *(f"a{sign}b" for sign in SIGNS)]
S, s = pl.col("s"), dp.col("s")

# By name: the method of one text, and the text that it is typed with.
METHODS = {
    "contains": lambda e, x, **said: e.str.contains(x, **said),
    "replace": lambda e, x, **said: e.str.replace(x, "z", **said),
    "replace_all": lambda e, x, **said: e.str.replace_all(x, "z", **said),
    "split": lambda e, x, **said: e.str.split(f"{x},", **said).list.get(0),
}
OF_POLARS = ["contains", "replace", "replace_all"]  # in Polars split takes no pattern


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("method", METHODS)
def test_a_sign_of_a_pattern_is_refused_with_the_line_to_type(method, sign):
    with pytest.raises(UnsupportedOperation, match="no patterns here") as refused:
        METHODS[method](s, f"a{sign}b")
    line = re.search(r"type (\.str.*literal=True\))\.$", str(refused.value))[1]
    typed = eval(f"s{line}", {"s": s})
    typed = typed.list.get(0) if method == "split" else typed
    assert text(typed._node) == text(METHODS[method](s, f"a{sign}b", literal=True)._node)


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("method", OF_POLARS)
def test_an_expression_of_polars_too(method, sign):
    frame = dp.protect(pl.DataFrame({"u": [1], "s": ["a"]}), unit="u", budget=dp.Budget(epsilon=1.0))
    with pytest.raises(UnsupportedOperation, match="literal=True"):
        frame.with_columns(x=METHODS[method](S, f"a{sign}b"))
    assert "x" in frame.with_columns(x=METHODS[method](S, f"a{sign}b", literal=True)).columns


@pytest.mark.parametrize("part", [*TEXTS[:9], *SIGNS])
def test_what_is_accepted_is_the_same_in_polars_and_pandas(part):
    """Each method either refuses a text, or no library would read it as a pattern."""
    rows, series = pl.Series("s", TEXTS), pd.Series(TEXTS, dtype=object)
    same = {
        "contains": ([part in x for x in TEXTS], rows.str.contains, series.str.contains),
        "replace_all": ([x.replace(part, "z") for x in TEXTS], rows.str.replace_all, series.str.replace),
        "split": ([x.split(part) for x in TEXTS], rows.str.split, series.str.split),
    }
    accepted = 0
    for method, (literally, polars, pandas) in same.items():
        said = ("z",) if method == "replace_all" else ()
        try:
            getattr(s.str, method)(part, *said)
        except UnsupportedOperation:
            continue
        accepted += 1
        more = {"regex": True} if method == "replace_all" else {}
        assert polars(part, *said).to_list() == literally
        assert pandas(part, *said, **more).tolist() == literally
    expected = 1 if part in SIGNS else 0 if set(part) & set(SIGNS) else 3
    assert accepted == expected, "split takes any single sign literally, as both libraries do"


def test_a_part_of_a_match_in_the_new_text_is_refused():
    for call in (s.str.replace, s.str.replace_all):
        with pytest.raises(UnsupportedOperation, match=r"'a', '\$1', literal=True"):
            call("a", "$1")
        call("a", "$1", literal=True)


def test_beginnings_and_ends_are_literal_everywhere():
    for sign in SIGNS:
        s.str.starts_with(sign)
        s.str.ends_with(sign)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("literal", [None, 1, "yes", 0])
def test_literal_is_true_or_false(method, literal):
    with pytest.raises(InvalidArgument, match="literal="):
        METHODS[method](s, "a", literal=literal)


def test_the_released_number_is_that_of_the_characters():
    """6,054 rows match the pattern of one city or another, and none holds these characters."""
    table = pl.DataFrame({"u": range(900), "s": ["Bonn", "Kiel", "Ulm"] * 300})
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=5000))
    with pytest.raises(UnsupportedOperation, match=r"'Bonn\|Kiel', literal=True"):
        frame.filter(dp.col("s").str.contains("Bonn|Kiel"))
    made = frame.filter(dp.col("s").str.contains("Bonn|Kiel", literal=True)).count(max_rows=1)
    assert abs(made.release(epsilon=500).value) <= 1
    either = dp.col("s").str.contains("Bonn") | dp.col("s").str.contains("Kiel")
    assert abs(frame.filter(either).count(max_rows=1).release(epsilon=500).value - 600) <= 1
