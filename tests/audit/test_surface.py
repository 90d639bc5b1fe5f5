"""Every public name of what is protected is known and says nothing of the rows;
one that nobody classified fails.
"""

import copy
import pickle
from collections.abc import Container, Iterable
from functools import partial

import polars as pl
import pytest
from test_exhaustive import OPERATIONS
from test_malformed import CALLS
from watched import COLUMNS, Watched

import dpframe as dp
from dpframe import usage
from dpframe.accessors import FrameAccessor, SeriesAccessor
from dpframe.api.regression import MomentsQuery
from dpframe.api.synthesis import SynthesisQuery
from dpframe.budget import Allowance
from dpframe.errors import DpFrameError, InvalidArgument, UnsupportedOperation
from dpframe.release import Batch, Series
from dpframe.release.kinds.regression import MatrixRelease, Regression
from dpframe.release.kinds.series.numbers import SeriesNumbers
from statistics_table import of

# facts: the schema and what was said, the same for any rows. steps, groups, questions: give another
# protected object and read nothing. pays: reads rows, after it was paid. given: works on a table
# that the caller brings. released: made of what was released.
WRITTEN = (
    "certificate report to_arrow to_csv to_excel to_html to_latex to_pandas to_parquet to_polars "
    "to_sql"
)
RELEASED = f"{WRITTEN} manifest accuracy cost derivation table when"
ASKED = " ".join(made.verb for made in of("groups").values())
CLASSES = {
    dp.PrivateFrame: {
        "facts": "budget columns neighbors unit",
        "steps": "bound cast clip cut drop drop_nulls fill_null filter join per_unit rename select "
        "with_columns",
        "groups": "group_by partition",
        "other names": "groupby",
        "questions": "agg crosstab describe hierarchy histogram marginals ols synthesize top_k "
        f"{ASKED}",
    },
    dp.PrivateGroupBy: {
        "questions": f"agg keys top_k {ASKED}",
    },
    dp.Query: {
        "facts": "accuracy epsilon_for explain only_in_both plot sensitivity unit_columns",
        "pays": "release tune",
        "given": "check exact_totals",
    },
    MomentsQuery: {"facts": "accuracy explain sensitivity", "pays": "release"},
    MatrixRelease: {"released": f"{RELEASED} release values fill"},
    Regression: {"released": f"{RELEASED} coefficients explain is_told plot predict release"},
    Batch: {"facts": "cost noise", "pays": "release"},
    dp.Release: {
        "released": f"{RELEASED} ci compare covers diff difference fill independence noise "
        "nonnegative pct_change plot rebase rolling round share shrink suppress to_sdmx value "
        "with_ci"
    },
    Series: {"facts": "explain reads", "pays": "add", "released": "table total window"},
    SeriesNumbers: {"released": f"{WRITTEN} cost error plot statement stored table title value"},
    Allowance: {
        "facts": "accountant charge check_subject close entries fail failures for_spender forecast "
        "history limit name open pace part paying protects remaining series share spender spent "
        "store terms tonight transfer whole",
        "released": "tables",
    },
    dp.MarginalsRelease: {"released": f"{RELEASED} get items keys noise nonnegative round values"},
    dp.HierarchyRelease: {
        "released": f"{RELEASED} get items keys levels noise nonnegative plot round suppress "
        "to_sdmx values with_ci"
    },
    SynthesisQuery: {"facts": "explain sensitivity", "pays": "release"},
    dp.SyntheticRelease: {"released": f"{RELEASED} marginals noise plot sample"},
    FrameAccessor: {
        "pays": f"agg crosstab describe hierarchy histogram marginals ols synthesize top_k {ASKED}",
    },
    SeriesAccessor: {
        "pays": f"describe histogram top_k {' '.join(made.verb for made in of('frames').values())}",
    },
}
PROTECTED = (dp.PrivateFrame, dp.PrivateGroupBy, dp.Query, MomentsQuery, SynthesisQuery, Batch)
DOORS = """
    __len__ __iter__ __contains__ __reversed__ __array__ __array_interface__ __array_struct__
    __arrow_array__ __arrow_c_stream__ __arrow_c_array__
    __dataframe__ __dataframe_consortium_standard__ __narwhals_dataframe__ __narwhals_lazyframe__
    __polars_dataframe__ __dlpack__ __buffer__ __bool__ __index__ __int__ __float__ __next__
    shape size ndim height width values to_numpy to_dict to_list collect head tail sample item
    iloc loc lazy dtypes schema __getstate__
""".split()  # noqa: SIM905 - a list of fifty names


def unclassified(kind, known):
    """Public names that no class of the table holds."""
    made = {name for name in dir(kind) if not name.startswith("_")}
    made |= {name for name in getattr(kind, "__dataclass_fields__", {}) if not name.startswith("_")}
    return made - set(" ".join(known.values()).split())


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_public_name_is_classified(kind):
    assert not unclassified(kind, CLASSES[kind])


def test_a_new_name_is_noticed():
    class Sub(dp.PrivateFrame):
        def rows(self):
            return []

    assert unclassified(Sub, CLASSES[dp.PrivateFrame]) == {"rows"}


def test_a_new_step_is_in_every_list():
    """It has a line to type, and is tried with bad arguments, on all small tables
    and on a table that counts reads.
    """
    steps, groups = (set(CLASSES[dp.PrivateFrame][kind].split()) for kind in ("steps", "groups"))
    assert usage.STEPS.keys() == STEPS.keys() == steps | groups
    assert steps | groups <= CALLS.keys()
    assert steps <= {name.partition(" ")[0] for name in OPERATIONS}


@pytest.mark.parametrize("kind", PROTECTED, ids=lambda kind: kind.__name__)
def test_there_is_no_door_to_the_rows(kind):
    own = [
        name
        for name in DOORS
        if hasattr(kind, name) and getattr(kind, name) is not getattr(object, name, None)
    ]
    assert set(own) <= {"__len__", "__bool__"}  # which refuse, and say yes


OPERATORS = {
    "add": lambda x: x + 1, "divide": lambda x: x / 2,
    "from a number": lambda x: 1 - x, "less": lambda x: x < 3,
    "power": lambda x: x**2, "minus": lambda x: -x, "a length": len,
    "a list": list, "item": lambda x: x["x"],
    "write": lambda x: x.__setitem__("m", 1),
    "remove": lambda x: x.__delitem__("x"), "round": round,
}  # fmt: skip


@pytest.mark.parametrize("ask", OPERATORS.values(), ids=OPERATORS)
def test_an_operator_is_answered_with_the_line_to_type(ask):
    frame = protected()
    groups = frame.group_by("city", keys=["a", "b"], max_groups=1, max_rows=1)
    for thing in (
        frame,
        groups,
        groups.count(),
        frame.corr(["x", "n"], bounds={"x": (0, 1), "n": (0, 1)}, max_rows=1),
    ):
        with pytest.raises(
            InvalidArgument,
            match=r"type|Type|Compute|Ask|ask|in (a|the) question|one frame for each key",
        ):
            ask(thing)
        assert thing


def test_an_attribute_of_a_frame_is_not_written():
    with pytest.raises(InvalidArgument, match=r"frame = frame\.with_columns\(m=\.\.\.\)"):
        protected().m = 1


def test_a_length_is_refused_and_a_frame_is_true_before_rows_are_read():
    frame = protected()
    assert frame
    for asks in (len, list, tuple, sorted):
        with pytest.raises((InvalidArgument, TypeError, UnsupportedOperation)):
            asks(frame)


ASKED = [
    "x",
    "user",
    "nothing",
    0,
    -1,
    slice(None),
    [0],
    ["x"],
    ("x", "city"),
    [True, False],
    None,
    dp.col("x") > 0,
]


def test_names_and_brackets_refuse_whatever_is_asked():
    for thing in everything(protected()):
        absent = [
            name
            for name in [*DOORS, *COLUMNS, "_ipython_display_", "_repr_png_"]
            if name not in dir(type(thing))
        ]
        assert "loc" in absent
        for name in absent:
            assert not hasattr(thing, name)
            with pytest.raises(AttributeError) as caught:
                getattr(thing, name)
            assert isinstance(caught.value, DpFrameError) is not (
                name.startswith("_") or isinstance(thing, Batch)
            )
        for asked in ASKED:
            with pytest.raises((InvalidArgument, TypeError)):
                thing[asked]
        assert not isinstance(thing, Iterable | Container)


# What reads

TABLE = Watched()
STEPS = {
    "bound": lambda f: f.bound(max_rows=2),
    "cast": lambda f: f.cast("n", "float64"),
    "clip": lambda f: f.clip("x", 0, 1),
    "cut": lambda f: f.cut("x", [0, 1, 2]),
    "drop": lambda f: f.drop("user", "x"),
    "drop_nulls": lambda f: f.drop_nulls(),
    "fill_null": lambda f: f.fill_null("x", 0),
    "filter": lambda f: f.filter(dp.col("x") > 0),
    "join": lambda f: f.join({"city": ["Bonn"], "sea": [False]}, on="city"),
    "per_unit": lambda f: f.per_unit(n=dp.count()),
    "rename": lambda f: f.rename({"x": "z"}),
    "select": lambda f: f.select("city"),
    "with_columns": lambda f: f.with_columns(z=dp.col("x") + 1),
    "group_by": lambda f: f.group_by("city", max_groups=1),
    "partition": lambda f: f.partition("city", ["Bonn"])["Bonn"],
}
ONE = {"max_rows": 2}
QUESTIONS = [
    lambda f: f.agg(a=dp.count(), **ONE),
    lambda f: f.crosstab("city", "yes", keys={"city": ["Bonn"]}, **ONE),
    lambda f: f.describe(bounds={"x": (0, 9)}, **ONE),
    lambda f: f.histogram("x", bins=[0, 1, 2], **ONE),
    lambda f: f.top_k("city", 1, ["Bonn"], **ONE),
    *(partial(made.ask, **ONE) for made in of("frames").values()),
]
PAIR = {"x": (0, 9), "n": (0, 9)}
MATRICES = [
    lambda f: f.cov(["x", "n"], PAIR, **ONE),
    lambda f: f.corr(["x", "n"], PAIR, **ONE),
    lambda f: f.ols(y="x", x=["n", "city"], bounds=PAIR, keys={"city": ["Bonn", "Kiel"]}, **ONE),
]
GROUPED = [lambda g: g.agg(a=dp.count()), *(made.ask for made in of("groups").values())]


def protected(table=TABLE):
    return dp.protect(table.frame, unit="user", budget=dp.Budget(epsilon=1e6, delta=0.1))


def everything(frame):
    """One object of each kind that a protected frame can give: steps, groups and questions."""
    groups = frame.group_by("city", keys=["Bonn", "Kiel"], max_groups=1, max_rows_per_group=1)
    made = [frame, groups, *(make(frame) for make in [*STEPS.values(), *QUESTIONS, *MATRICES])]
    return [*made, *(make(groups) for make in GROUPED)]


def test_steps_and_questions_read_nothing_and_give_protected_objects():
    before = TABLE.reads
    for thing in everything(protected()):
        assert isinstance(thing, PROTECTED)
        repr(thing)
        getattr(thing, "_repr_html_", lambda: "")()
        if isinstance(thing, dp.Query):
            thing.explain()._repr_html_()
            _ = (thing.sensitivity, thing.unit_columns)
            thing.accuracy(epsilon=1.0, delta=1e-6)
        if isinstance(thing, MomentsQuery):
            thing.explain()._repr_html_()
            _ = (thing.sensitivity, thing.accuracy(epsilon=1.0, delta=1e-6))
    assert TABLE.reads == before
    protected().count_units().release(epsilon=1.0)
    assert TABLE.reads == before + 1, "the table does not notice that it is read"


def test_facts_are_the_same_whatever_the_rows_are():
    others = {name: [None if name != "user" else "zoe"] * 2 for name in COLUMNS}

    def facts(table):
        words = []
        for thing in everything(protected(table)):
            words += [repr(thing), getattr(thing, "_repr_html_", lambda: "")()]
            if isinstance(thing, dp.Query | MomentsQuery):
                words += [
                    str(thing.explain()),
                    repr(dict(thing.sensitivity)),
                    str(thing.accuracy(1.0, 1e-6)),
                ]
        return words

    assert facts(TABLE) == facts(Watched(others))
    shown = "\n".join(facts(TABLE))
    for cell in ("ada", "bea", "cyd", "40.0"):
        assert cell not in shown


@pytest.mark.filterwarnings("ignore:With 9 rows in a group")
def test_errors_to_expect_are_the_same_whatever_the_rows_are():
    others = {name: [None if name != "user" else "zoe"] * 2 for name in COLUMNS}
    prices = {"epsilon": [0.1, 1.0], "delta": 1e-6, "assume_rows": 9}

    def errors(table):
        queries = [thing for thing in everything(protected(table)) if isinstance(thing, dp.Query)]
        # they are made of these tables
        charts = [query.plot(**prices).to_dict() for query in queries[::4]]
        return [str(query.accuracy(**prices)) for query in queries], charts

    reads = TABLE.reads
    assert errors(TABLE) == errors(Watched(others))
    assert TABLE.reads == reads


def test_nothing_protected_can_be_pickled_or_copied():
    frame = protected()
    batch = frame.budget.plan([frame.count_units()], epsilon=1)
    for thing in [*everything(frame), batch]:
        for how in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(UnsupportedOperation):
                how(thing)


@pytest.mark.parametrize(
    "read",
    [
        len,
        lambda thing: next(iter(thing)),
        list,
        bool,
        pl.DataFrame,
        lambda thing: thing[0],
        lambda thing: 1 in thing,
    ],
)
def test_python_s_own_ways_in_are_closed(read):
    for thing in everything(protected()):
        if read is bool:
            assert bool(thing) is True  # an object like any other, whatever its rows are
            continue
        with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
            read(thing)
        assert "ada" not in str(caught.value)
