"""The doors of the library: every public call that does not fit is explained,
and a refusal is two frames long.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import traceback
from pathlib import Path
from types import FunctionType

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import (
    DeltaRequired,
    DpFrameError,
    InvalidArgument,
    UnknownAttribute,
    UnsupportedOperation,
    WrongCall,
)
from dpframe.usage import Hints

TABLE = {"user": [1, 1, 2], "basket": [3.0, 4.0, 5.0], "items": [1, 2, 3], "shop": ["a", "b", "a"]}


def kinds(kind=Hints):
    for below in kind.__subclasses__():
        yield below
        yield from kinds(below)


PUBLIC = sorted(
    {x for x in kinds() if x.__module__.startswith("dpframe.") and x.__name__[0] != "_"},
    key=lambda kind: kind.__qualname__,
)
METHODS = [
    (kind, name, value)
    for kind in PUBLIC
    for name, value in inspect.getmembers(kind)
    if isinstance(inspect.unwrap(getattr(value, "__func__", value)), FunctionType)
    and inspect.unwrap(getattr(value, "__func__", value)).__module__.startswith("dpframe")
    and not name.startswith("_")
]


@pytest.fixture
def frame():
    return pd.DataFrame(TABLE).dp(unit="user", budget=dp.Budget(epsilon=10))


def test_public_classes_are_doors():
    names = {kind.__name__ for kind in PUBLIC}
    classes = {name for name in dp.__all__ if inspect.isclass(getattr(dp, name))} - {"Sensitivity"}
    assert names >= classes | {
        "Series",
        "PeriodQuery",
        "Allowance",
        "PartBudget",
        "When",
        "Report",
        "Derivation",
        "Batch",
    }
    assert len(METHODS) > 400


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__qualname__)
def test_a_call_that_does_not_fit_is_explained(kind):
    """No bare TypeError from any public method, whatever is typed in its brackets."""
    for of, name, value in METHODS:
        if of is not kind:
            continue
        mine = () if inspect.ismethod(value) else (None,)
        parameters = inspect.signature(value).parameters.values()
        if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
            continue
        with pytest.raises(WrongCall) as caught:
            value(*mine, *range(40))
        assert str(caught.value).count(". ") >= 1, name


def test_an_unknown_name_of_an_argument_is_answered_with_the_nearest(frame):
    for ask, near in (
        (lambda: frame.mean("basket", bound=(0, 1)), "'bounds'"),
        (lambda: frame.count(maxrows=1), "'max_rows'"),
        (lambda: dp.protect(TABLE, units="user"), "'unit'"),
        (lambda: frame.count(max_rows=1).release(epsilonn=1), "'epsilon'"),
        (lambda: dp.Auto(shares=0.2), "'share'"),
        (lambda: dp.Budget(epsilons=1), "'epsilon'"),
    ):
        with pytest.raises(WrongCall, match=f"Did you mean {near}"):
            ask()


@pytest.mark.parametrize(
    "name",
    [name for name in dp.__all__ if isinstance(inspect.unwrap(getattr(dp, name)), FunctionType)],
)
def test_a_call_of_a_function_that_does_not_fit_is_explained(name):
    question = getattr(dp, name)
    if not any(
        p.kind is inspect.Parameter.VAR_POSITIONAL
        for p in inspect.signature(question).parameters.values()
    ):
        with pytest.raises(WrongCall, match=r"too many positional arguments\."):
            question(*range(40))


def test_an_unknown_attribute_is_answered(frame):
    groups = frame.group_by("shop", keys=["a", "b"], max_groups=1, max_rows_per_group=1)
    out = groups.count().release(epsilon=1)
    for thing in (
        frame,
        groups,
        groups.count(),
        out,
        out.report(),
        frame.budget,
        dp.Rows(1),
        dp.when(dp.col("x") > 1),
    ):
        with pytest.raises(UnknownAttribute, match="no 'nothing_like_it'"):
            thing.nothing_like_it  # noqa: B018


REFUSED = {
    "a question": lambda frame: frame.mean("basket", max_rows=1),
    "a step": lambda frame: frame.filter(dp.col("basket")),
    "a group": lambda frame: frame.group_by("nowhere"),
    "a release": lambda frame: frame.count(max_rows=1).release(epsilon=-1),
    "an operator": lambda frame: dp.col("x") < {},
    "a budget": lambda frame: dp.Budget(epsilon=0),
    "an index": lambda frame: frame["basket"],
    "a length": lambda frame: len(frame),
    "the accessor": lambda frame: pd.DataFrame(TABLE).dp(unit="nobody"),
    "a module": lambda frame: dp.release([]),
    "an aggregate": lambda frame: frame.agg(m=dp.mean("shop"), max_rows=1),
}


@pytest.mark.parametrize("ask", REFUSED.values(), ids=REFUSED)
def test_a_refusal_shows_the_line_that_was_typed_and_nothing_within(ask, frame):
    with pytest.raises(DpFrameError) as caught:
        ask(frame)
    own = [
        line
        for line in traceback.extract_tb(caught.value.__traceback__)
        if "dpframe/" in line.filename.replace("\\", "/")
    ]
    assert len([line for line in own if "/src/" in line.filename]) <= 1
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_environment_keeps_the_way_that_led_to_an_error(frame, monkeypatch):
    monkeypatch.setenv("DPFRAME_TRACEBACK", "full")
    with pytest.raises(DpFrameError) as caught:
        frame.mean("basket", max_rows=1)
    assert len(traceback.extract_tb(caught.value.__traceback__)) > 8


def test_an_error_that_is_not_ours_keeps_its_way(frame, monkeypatch):
    def fails(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("dpframe.api.query.answer_kind", fails)
    with pytest.raises(ZeroDivisionError) as caught:
        frame.count(max_rows=1).explain()
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fails"


def test_in_plain_python_a_refusal_is_short():
    lines = [
        "import pandas as pd, dpframe as dp",
        f"frame = pd.DataFrame({TABLE!r}).dp(unit='user', budget=dp.Budget(epsilon=1))",
        "frame.mean('basket', max_rows=1)",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False
    )
    assert done.stderr.count("  File ") == 2
    assert "clip('basket', 0, 100)" in done.stderr


def test_examples_have_the_columns_of_the_table_that_was_asked(frame):
    groups = frame.group_by("shop", keys=["a", "b"], max_groups=1, max_rows_per_group=1)
    for ask, own, others in (
        (lambda: frame.mean(), "'basket'", "'wage'"),
        (lambda: frame.mean("items", bound=1), "'items'", "'wage'"),
        (lambda: frame.filter(), "'basket'", "'age'"),
        (lambda: frame[["x"]], "'shop'", "'city'"),
        (lambda: frame.group_by(), "'shop'", "'city'"),
        (lambda: frame.partition(), "'shop', keys=[...]", "'Bonn'"),
        (lambda: frame.corr(), "'basket', 'items'", "'wage'"),
        (lambda: groups.mean(), "'basket'", "'wage'"),
    ):
        with pytest.raises(DpFrameError) as caught:
            ask()
        assert own in str(caught.value)
        assert others not in str(caught.value)


def test_what_was_typed_is_never_exchanged(frame):
    with pytest.raises(DpFrameError, match="no column 'wage'"):
        frame.mean("wage", bounds=(0, 1), max_rows=1)
    own = pl.DataFrame({"user": [1], "x": [1.0], "wage": [2.0]}).dp(unit="user")
    with pytest.raises(WrongCall, match=r"mean\('wage', bounds"):
        own.mean("wage", bound=1)


def test_completion_shows_public_names_alone(frame):
    assert set(dir(dp)) == {*dp.__all__, "audit", "testing", "theory", "__version__"}
    report = frame.count(max_rows=1).release(epsilon=1).report()
    assert set(dir(report)) == {"errors", "items", "to_dict", "to_html", "to_json", "to_registry"}


def test_a_frame_is_true_and_has_no_length(frame):
    assert frame
    with pytest.raises(InvalidArgument, match="ask about them"):
        len(frame)
    with pytest.raises(UnsupportedOperation, match=r"query\.release\(epsilon=0\.1\)"):
        dp.release([])
    with pytest.raises(UnknownAttribute, match="remaining"):
        dp.Budget(epsilon=1).left  # noqa: B018


def test_examples_leave_out_what_the_table_declares():
    declared = {
        "max_rows": 9,
        "max_groups": 2,
        "bounds": {"basket": (0, 50)},
        "keys": {"shop": ["a", "b"]},
    }
    frame = pd.DataFrame(TABLE).dp(unit="user", budget=dp.Budget(epsilon=10), **declared)
    for ask, line, other in (
        (lambda: frame.groupby("shop", as_index=False), "group_by('shop'", "max_groups="),
        (lambda: len(frame), "count().release(epsilon=0.1)", "max_rows="),
        (lambda: frame.mean("basket", bound=3), "mean('basket').release(epsilon=0.1)", "(0, 100)"),
        (
            lambda: frame.mean("items", bound=3),
            "mean('items', bounds=(0, 100)).release(epsilon=0.1)",
            "max_rows=",
        ),
        (
            lambda: frame.group_by(max_group=3),
            "group_by('shop', max_rows_per_group=5)",
            "max_groups=1",
        ),
    ):
        with pytest.raises(DpFrameError) as caught:
            ask()
        assert line in str(caught.value)
        assert other not in str(caught.value)


def test_a_budget_in_a_file_is_a_ledger():
    with pytest.raises(WrongCall, match=r"dp\.Ledger\('study\.sqlite'\)\.budget"):
        dp.Budget(epsilon=1.0, ledger="study.sqlite")


def test_a_release_says_where_its_numbers_are(frame):
    out = frame.count(max_rows=1).release(epsilon=1)
    assert int(out) == out.value
    for ask in (
        lambda: out + 1,
        lambda: 2 * out,
        lambda: out / out,
        lambda: out > 3,
        lambda: round(out, 1),
    ):
        with pytest.raises(InvalidArgument, match=r"\.value, or \.table"):
            ask()


def test_found_keys_without_a_delta_are_answered_in_the_verb_that_was_typed(frame):
    limits = {"max_groups": 1, "max_rows_per_group": 1}
    for query, line in (
        (frame.group_by("shop", **limits).count(), "group_by('shop', keys=[...])"),
        (frame.histogram("shop", **limits), "histogram('shop', keys=[...])"),
        (frame.crosstab("shop", "items", **limits), "crosstab('shop', 'items', keys={...})"),
        (frame.top_k("shop", 1, **limits), "top_k('shop', 1, keys=[...])"),
    ):
        with pytest.raises(DeltaRequired) as caught:
            query.release(epsilon=1)
        assert line in str(caught.value)


def _described():
    """Each public function, and each method and constructor of a public class that people type."""
    for name in dp.__all__:
        asked = getattr(dp, name)
        if isinstance(asked, FunctionType):
            yield name, asked
    for kind, name, function in METHODS:
        if getattr(dp, kind.__name__, None) is kind and name not in getattr(kind, "_inner", ()):
            yield f"{kind.__name__}.{name}", function


# docstrings that name another one
_ELSEWHERE = ("see `", "See `", "as in `", "as `", "as for `", "As `", "`quantile`")


@pytest.mark.parametrize(
    ("name", "function"), list(_described()), ids=lambda x: x if isinstance(x, str) else ""
)
def test_docstrings_name_each_parameter(name, function):
    text = inspect.getdoc(function) or ""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    typed = [p.name for p in inspect.signature(function).parameters.values() if p.kind not in kinds]
    missing = [
        one for one in typed if one not in ("self", "cls") and not re.search(rf"\b{one}\b", text)
    ]
    assert not missing or any(words in text for words in _ELSEWHERE), missing


def test_what_tests_look_at_inside_is_named_in_one_module():
    tests = Path(__file__).parent
    names = re.findall(r"return \w+\.(_\w+)", (tests / "inside.py").read_text())
    assert len(names) > 3
    seen = re.compile(rf"(?<!self)\.({'|'.join(names)})\b")
    files = {path: path.read_text() for path in tests.rglob("*.py") if path.name != "inside.py"}
    assert not [str(path) for path, text in files.items() if seen.search(text)]
