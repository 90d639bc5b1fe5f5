"""The protected frame as a user meets it: what may be typed, what is
refused, and what the refusal says.
"""

import copy
import datetime as dt
import pickle

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpframe as dp
from dpframe import errors
from inside import question_of

ROWS = {"id": [1, 1, 2], "city": ["a", "b", "a"], "spend": [1.5, 250.0, None], "age": [10, 20, 30]}


@pytest.fixture
def frame():
    return dp.protect(pl.DataFrame(ROWS), unit="id", budget=dp.Budget(epsilon=10, delta=1e-3))


def test_figures_of_common_questions(frame):
    grouped = frame.group_by("city", max_rows=4, max_rows_per_group=2, max_groups=3)
    n = grouped.agg(n=dp.count()).sensitivity["n"]
    assert (n.l0, n.l1, n.linf) == (3, 4, 2)
    assert n.l2 == pytest.approx(8**0.5)
    total = grouped.agg(s=dp.sum("spend", bounds=(-3, 10))).sensitivity["s"]
    assert (total.l0, total.l1, total.linf) == (3, 40, 20)
    assert total.l2 == pytest.approx(10 * 8**0.5)


def test_names_of_measures(frame):
    q = frame.drop_nulls("spend").agg(
        n=dp.count(), spend=dp.mean("spend", bounds=(0, 9)), max_rows=2
    )
    assert set(q.sensitivity) == {"n", "spend.sum", "spend.count"}
    # the count of rows that cannot be missing is the count of rows
    assert len(question_of(q).allotments) == 2
    assert set(frame.sum("age", bounds=(0, 9), max_rows=1).sensitivity) == {"age"}
    assert set(frame.count(max_rows=1).sensitivity) == {"count"}
    assert set(frame.count("age", max_rows=1).sensitivity) == {"age"}
    assert set(frame.count_units().sensitivity) == {"count_units"}


def test_limits_said_before_and_here_are_both_kept(frame):
    q = frame.bound(max_rows=5).bound(max_rows=9).sum("age", bounds=(0, 1), max_rows=7)
    assert q.sensitivity["age"].l1 == 5


REFUSED = [
    (
        lambda f: f.sum("spend", max_rows=2),
        errors.MissingBounds,
        r"clip\('spend', 0, 100\).*bounds=dp.Auto\(\)",
    ),
    (
        lambda f: f.sum("spend", bounds=(0, 1)),
        errors.UnboundedContribution,
        r"sum\('spend'.*max_rows=20\);.*dp.Auto",
    ),
    (
        lambda f: f.group_by("city").count(),
        errors.UnboundedContribution,
        r"group_by\('city', max_groups=3, max_rows_per_group=2\);.*limits=dp.Auto",
    ),
    (
        lambda f: f.group_by("city", max_groups=2).count(),
        errors.UnboundedContribution,
        r"group_by\('city', max_groups=2, max_rows_per_group=2\)",
    ),
    (
        lambda f: f.group_by("city", max_rows_per_group=9),
        errors.UnboundedContribution,
        r"group_by\('city', max_groups=3, max_rows_per_group=9\)",
    ),
    (
        lambda f: f.histogram("age", bins=[0, 1]),
        errors.UnboundedContribution,
        r"histogram\('age', bins=\.\.\., max_groups=3, max_rows_per_group=2\)",
    ),
    (
        lambda f: f.crosstab("city", "age"),
        errors.UnboundedContribution,
        r"crosstab\('city', 'age', max_groups=3, max_rows_per_group=2\)",
    ),
    (
        lambda f: f.crosstab("city", "age", keys={"city": ["a"], "age": [1]}, margins="measured"),
        errors.UnboundedContribution,
        # no dp.Auto()
        r"keys=\.\.\., max_groups=3, max_rows_per_group=2\); "
        r"or once [^;]*max_rows_per_group=2\)\.$",
    ),
    (lambda f: f.group_by("id", max_groups=1), errors.UnsupportedOperation, "one person"),
    (lambda f: f.with_columns(id=dp.col("age")), errors.UnsupportedOperation, "another name"),
    (lambda f: f.clip("id", 0, 1), errors.UnsupportedOperation, "rewritten"),
    (lambda f: f.fill_null("id", 0), errors.UnsupportedOperation, "rewritten"),
    (lambda f: f.cast("id", "string"), errors.UnsupportedOperation, "rewritten"),
    (lambda f: f.sum("nope"), errors.UnknownColumn, "id, city, spend, age"),
    (lambda f: f.filter(dp.col("nope") > 1), errors.UnknownColumn, "nope"),
    (lambda f: f.filter(dp.col("city") > 1), errors.WrongType, "compare"),
    (lambda f: f.filter(dp.col("age")), errors.WrongType, "true or false"),
    (lambda f: f.filter(True & (dp.col("age") > 1) and 1), errors.UnsupportedOperation, "&"),
    (lambda f: f.filter("city" == "a"), errors.InvalidArgument, "Python has compared"),
    (lambda f: f.filter(True), errors.InvalidArgument, "not about the rows"),
    (lambda f: f.mean(dp.col("age") > 1, max_rows=1), errors.InvalidArgument, "with_columns"),
    (
        lambda f: f.mode("city", max_rows=1),
        errors.InvalidArgument,
        r"top_k\('city', 1, .*group_by\('city'.*delta=1e-6",
    ),
    (
        lambda f: f.top_k("city", 3),
        errors.UnboundedContribution,
        r"top_k\('city', 3, max_groups=3, max_rows_per",
    ),
    (
        lambda f: f.top_k("city", 3, max_groups=2),
        errors.UnboundedContribution,
        "max_rows_per_group=2",
    ),
    (
        lambda f: f.top_k("city", 3, max_rows=1).release(epsilon=0.1),
        errors.DeltaRequired,
        r"top_k\('city', 3, keys=",
    ),
    (lambda f: f.top_k("city", 1, ["a"], max_groups=2), errors.InvalidArgument, "max_rows=5"),
    (lambda f: f.top_k("city", 0, max_rows=1), errors.InvalidArgument, "k must be"),
    (
        lambda f: f.group_by("city", keys=[dt.date(2026, 3, 1)], max_groups=1),
        errors.WrongType,
        r"cast\('x', 'date'\) or 'datetime'",
    ),
    (
        lambda f: (
            f.group_by("city", keys=["a"], max_groups=1, max_rows_per_group=1)
            .agg(n=dp.count(), m=dp.mean("age", bounds=(0, 9)))
            .epsilon_for(error=9)
        ),
        errors.UnsupportedOperation,
        "column='n'",
    ),
    (lambda f: f.mean("city", max_rows=1), errors.WrongType, r"yes=dp\.col\('city'\) == 'yes'"),
    (lambda f: f.clip("city", 0, 1), errors.WrongType, "String"),
    (lambda f: f.clip("age", 5, 1), errors.InvalidBounds, "above"),
    (
        lambda f: f.clip("age", dp.Auto()),
        errors.InvalidBounds,
        r"dp.mean\('age', bounds=dp.Auto\(\)\)",
    ),
    (lambda f: f.clip("age"), errors.InvalidBounds, "lower"),
    (lambda f: f.clip("age", 0, float("nan")), errors.InvalidBounds, "finite"),
    (lambda f: f.clip("age", 0.2, 0.8), errors.WrongType, "whole number"),
    (lambda f: f.sum("age", bounds=(0, float("inf")), max_rows=1), errors.InvalidBounds, "finite"),
    (lambda f: f.sum("age", bounds=5, max_rows=1), errors.InvalidBounds, "pair"),
    (lambda f: f.sum("age", bounds=dp.Auto, max_rows=1), errors.InvalidBounds, r"dp.Auto\(\)"),
    (
        lambda f: f.sum("age", bounds=dp.Auto(0.2, scaled=False), max_rows=1),
        errors.InvalidBounds,
        r"about limits.* bounds=dp\.Auto\(0\.2\) here.* limits=dp\.Auto\(scaled=False\)",
    ),
    (
        lambda f: f.median("age", bounds=dp.Auto(scaled=False), max_rows=1),
        errors.InvalidBounds,
        "about limits",
    ),
    (lambda f: f.sum("age", bounds=(0, 1), unit_bounds=(0, 1)), errors.InvalidBounds, "not both"),
    (lambda f: f.bound(max_rows=0), errors.InvalidArgument, "max_rows"),
    (lambda f: f.bound(max_rows=True), errors.InvalidArgument, "max_rows"),
    (lambda f: f.bound(), errors.InvalidArgument, "max_rows"),
    (lambda f: f.group_by("city", max_groups=1.5), errors.InvalidArgument, "max_groups"),
    (lambda f: f.group_by(max_groups=1), errors.InvalidArgument, "column"),
    (lambda f: f.group_by("city", "city", max_groups=1), errors.InvalidArgument, "twice"),
    (lambda f: f.group_by("city", keys=[], max_groups=1), errors.InvalidArgument, "no key"),
    (lambda f: f.group_by("city", keys=["a", "a"], max_groups=1), errors.InvalidArgument, "twice"),
    *(
        (
            lambda f, made=made: f.group_by("city", keys=made({"city": ["a", "a"]}), max_groups=1),
            errors.InvalidArgument,
            "a key of 'city' twice",
        )
        for made in (pl.DataFrame, pd.DataFrame, pa.table)
    ),
    (
        lambda f: f.group_by(
            "city", "age", keys=pl.DataFrame({"age": [1, 1], "city": ["a", "a"]}), max_groups=1
        ),
        errors.InvalidArgument,
        "a combination twice",
    ),
    (lambda f: f.group_by("city", keys=[1], max_groups=1), errors.WrongType, "city"),
    (lambda f: f.group_by("city", keys="ab", max_groups=1), errors.InvalidArgument, "list"),
    (
        lambda f: f.group_by("city", "age", keys={"city": ["a"]}, max_groups=1),
        errors.InvalidArgument,
        "'age'",
    ),
    (
        lambda f: f.group_by("city", keys={"age": [1]}, max_groups=1),
        errors.InvalidArgument,
        "'age'",
    ),
    (
        lambda f: f.group_by("age", max_rows=1).sum("age", bounds=(0, 1)),
        errors.InvalidArgument,
        "two columns",
    ),
    (
        lambda f: f.rename({"age": "count"}).histogram("count", keys=[1]),
        errors.InvalidArgument,
        "rename\\({'count': '",
    ),
    (lambda f: f.agg(), errors.InvalidArgument, "aggregate"),
    (lambda f: f.agg(n=3), errors.InvalidArgument, r"dp.count\(\)"),
    (lambda f: f.agg(n=dp.count(share=0), max_rows=1), errors.InvalidArgument, "share"),
    (lambda f: f.cut("age", 5), errors.InvalidArgument, "edges"),
    (lambda f: f.cut("age", [3, 2]), errors.InvalidArgument, "above"),
    (lambda f: f.cut("age", [1, 2, 3], labels=["x"]), errors.InvalidArgument, "2 different labels"),
    (lambda f: f.cut("city", [1, 2]), errors.WrongType, "number"),
    (lambda f: f.histogram("age", max_rows=1), errors.InvalidArgument, "bins"),
    (
        lambda f: f.histogram("age", bins=[1, 2], keys=[1], max_rows=1),
        errors.InvalidArgument,
        "not both",
    ),
    (
        lambda f: f.crosstab("city", "age", margins=True, max_rows=1),
        errors.UnsupportedOperation,
        "margins",
    ),
    (lambda f: f.rename({"city": "age"}), errors.InvalidArgument, "same name"),
    (lambda f: f.select("city", "city"), errors.InvalidArgument, "twice"),
    (lambda f: f.cast("age", "complex"), errors.InvalidArgument, "complex"),
    (lambda f: f.cast("spend", "string"), errors.WrongType, "every engine"),
    (lambda f: f.fill_null("age", None), errors.InvalidArgument, "missing"),
    (lambda f: f.fill_null("age", 1.5), errors.WrongType, "whole"),
    (lambda f: f.fill_null("spend", float("nan")), errors.InvalidArgument, "finite"),
    (lambda f: f.count_units().release(), errors.InvalidPrice, r"epsilon=0.1"),
    (lambda f: f.count_units().release(epsilon=-1), errors.InvalidPrice, "above 0"),
    (lambda f: f.count_units().release(epsilon=1, delta=1), errors.InvalidPrice, "delta"),
    (lambda f: f.count_units().release(rho=-1), errors.InvalidPrice, "rho"),
    (lambda f: f.count_units().release(epsilon=11), errors.BudgetExceeded, "Nothing was spent"),
    (lambda f: f.count_units().release(epsilon=1, noise="gaussian"), errors.DeltaRequired, "delta"),
    (
        lambda f: f.group_by("city", max_groups=1).count_units().release(epsilon=1),
        errors.DeltaRequired,
        "keys=",
    ),
    (lambda f: f.count_units().accuracy(epsilon=1, alpha=0), errors.InvalidArgument, "alpha"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_a_refusal_is_typed_says_what_to_do_and_costs_nothing(frame, case):
    call, error, words = REFUSED[case]
    with pytest.raises(error, match=words) as caught:
        call(frame)
    assert isinstance(caught.value, errors.DpFrameError)
    assert frame.budget.spent.epsilon == 0
    assert "250" not in str(caught.value)


def test_without_an_identifier_limits_are_declared_not_enforced():
    frame = dp.protect(pl.DataFrame(ROWS), unit=dp.Rows(2))
    assert frame.count().sensitivity["count"].l1 == 2
    with pytest.raises(errors.UnsupportedOperation, match=r"dp\.Rows"):
        frame.count(max_rows=1)
    with pytest.raises(errors.UnsupportedOperation, match=r"dp\.Rows"):
        frame.bound(max_rows=1)
    with pytest.raises(errors.UnboundedContribution, match="unit_bounds"):
        frame.sum("age", unit_bounds=(0, 1))


@pytest.mark.parametrize(
    "ask",
    [
        lambda f, values: f.group_by(values),
        lambda f, values: f.group_by(*values),
        lambda f, values: f.select("id", values),
        lambda f, values: f.drop(values),
        lambda f, values: f.drop_nulls(values),
        lambda f, values: f.join({"id": [1]}, on=values),
        lambda f, values: f.crosstab("id", values),
        lambda f, values: f.crosstab(values, "id"),
        lambda f, values: f.marginals(values),
        lambda f, values: f.hierarchy(values, [(1,)]),
        lambda f, values: f.marginals(["age"], [tuple(values)], keys={"age": [1]}),
        lambda f, values: dp.protect(pl.DataFrame(ROWS), unit=values),
    ],
)
def test_values_in_the_place_of_names_are_not_shown(frame, ask):
    with pytest.raises(errors.UnknownColumn) as caught:
        ask(frame, ["Anna", "Berta", "Berta", "Cleo"])
    assert "give names of columns; these seem to be values" in str(caught.value)
    assert not any(value in str(caught.value) for value in ("Anna", "Berta", "Cleo"))


@pytest.mark.parametrize("bad", [None, "", (), dp.Rows, 3, ("id", "id"), "nope", ["id", "nope"]])
def test_a_unit_that_is_none_is_refused(bad):
    with pytest.raises(errors.DpFrameError):
        dp.protect(pl.DataFrame(ROWS), unit=bad)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "1", None, 2**31])
def test_declared_rows_are_a_count(bad):
    with pytest.raises(errors.InvalidArgument):
        dp.Rows(bad)


def test_a_composite_unit_is_one_person_per_combination():
    rows = {"house": [1, 1, 1, 2, None], "person": [1, 2, 2, 1, 1]}
    frame = dp.protect(pl.DataFrame(rows), unit=("house", "person"), budget=dp.Budget(epsilon=1e12))
    assert frame.count_units().release(epsilon=1e9).value == 3
    assert frame.group_by("house", keys=[1, 2], max_groups=1).count_units().release(
        epsilon=1e9
    ).table["count_units"].to_list() == [2, 1]
    with pytest.raises(errors.UnsupportedOperation):
        frame.group_by("house", "person", max_groups=1)


def test_protected_objects_cannot_be_looked_at_or_copied_out(frame):
    grouped = frame.group_by("city", max_groups=1)
    for thing in (frame, grouped, grouped.count_units()):
        for name in ("__iter__", "__array__", "__dataframe__", "__arrow_c_stream__", "shape"):
            assert not hasattr(thing, name)
        for leave in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(errors.UnsupportedOperation):
                leave(thing)
        assert "250" not in repr(thing)
        assert not any(c in repr(thing) for c in ("1.5",))


def test_a_protected_frame_does_not_follow_later_changes_of_pandas():
    table = pd.DataFrame(ROWS)
    frame = table.dp(unit="id", budget=dp.Budget(epsilon=1e12))
    table["age"] = 0
    assert frame.sum("age", bounds=(0, 100), max_rows=2).release(epsilon=1e9).value == 60


def test_explain_reads_as_text_and_html(frame):
    q = (
        frame.filter(dp.col("age") >= 18)
        .clip("spend", 0, 100)
        .group_by("city", max_groups=2, max_rows_per_group=1)
        .agg(s=dp.sum("spend"))
    )
    text, html = str(q.explain()), q.explain()._repr_html_()
    for words in (
        "filter((age >= 18))",
        "clip('spend', 0, 100)",
        "enforced",
        "threshold",
        "in [0, 100]",
    ):
        assert words in text
    assert "<table>" in html
    assert "&gt;= 18" in html
    declared = dp.protect(pl.DataFrame(ROWS), unit=dp.Rows(2)).count().explain()
    assert "declared by dp.Rows(2)" in str(declared)


def test_long_lists_are_cut_where_people_read_them(frame):
    towns = [f"town {number}" for number in range(40)]
    among, edges = dp.col("city").is_in(towns), list(range(60))
    steps = (
        frame.filter(among)
        .with_columns(known=~among, few=dp.col("city").is_in(towns[:5]))
        .cut("age", edges)
    )
    few, many = (
        f"city.is_in({towns[:5]})",
        "city.is_in(['town 0', 'town 1', 'town 2', … (40 values)])",
    )
    query = steps.clip("spend", 0, 100).sum("spend", max_rows=1)
    for text in (
        str(query.explain()),
        query.explain()._repr_html_().replace("&#x27;", "'"),
        repr(among),
    ):
        assert many in text
        assert "town 5" not in text
    text = str(query.explain())
    assert f"with_columns(known=(~{many}), few={few})" in text
    assert "cut('age', [0, 1, 2, … (60 values)])" in text
    with pytest.raises(errors.WrongType) as caught:
        frame.filter(dp.col("age").is_in(towns))
    assert "… (40 values)" in str(caught.value)


def test_default_budget_and_its_absence():
    frame = dp.protect(pl.DataFrame(ROWS), unit="id")
    with pytest.raises(errors.BudgetRequired, match=r"dp\.set_budget"):
        frame.count_units().release(epsilon=1)
    budget = dp.Budget(epsilon=1)
    dp.set_budget(budget)
    try:
        frame.count_units().release(epsilon=0.25)
        assert budget.remaining.epsilon == 0.75
    finally:
        dp.set_budget(None)
    with pytest.raises(errors.InvalidArgument):
        dp.set_budget(3)


def test_a_budget_serves_one_unit_and_one_relation():
    table, budget = pl.DataFrame(ROWS), dp.Budget(epsilon=10)
    table.dp(unit="id", budget=budget).count_units().release(epsilon=1)
    for other in (
        table.dp(unit=dp.Rows(1), budget=budget),
        table.dp(unit="id", budget=budget, neighbors="replace"),
    ):
        with pytest.raises(errors.BudgetMismatch):
            other.count_units().release(epsilon=1)
    with pytest.raises(errors.BudgetMismatch):
        table.rename({"id": "other"}).dp(unit="other", budget=budget)
    late = dp.Budget(epsilon=10)
    first, second = (
        table.dp(unit="id", budget=late),
        table.rename({"id": "other"}).dp(unit="other", budget=late),
    )
    first.count_units().release(epsilon=1)
    with pytest.raises(errors.BudgetMismatch):
        second.count_units().release(epsilon=1)
    assert budget.spent.epsilon == 1


@pytest.mark.parametrize(
    "bad", [[1], {"a": 1}, None, "text", 3.0, pl.Series([1]), pd.Series([1]), pa.array([1])]
)
def test_what_is_no_table_is_refused(bad):
    with pytest.raises(errors.DpFrameError):
        dp.protect(bad, unit="id")


def test_the_price_of_an_error_is_the_inverse_of_the_error_of_a_price(frame):
    q = frame.group_by("city", keys=["a", "b"], max_groups=2, max_rows=4).agg(
        n=dp.count(), s=dp.sum("age", bounds=(0, 50)), m=dp.mean("age", bounds=(0, 50))
    )
    for column, error, rows in (
        ("n", 20, None),
        ("s", 500, None),
        ("m", 2.5, 1000),
        (None, 300, 1000),
    ):
        epsilon = q.epsilon_for(error, column, assume_rows=rows)

        def worst(price, column=column, rows=rows):
            table = q.accuracy(epsilon=price, assume_rows=rows)
            return max(
                e
                for c, e in zip(table["column"], table["error"], strict=True)
                if column in (None, c)
            )

        assert worst(epsilon) <= error < worst(epsilon * 0.99)
    with pytest.raises(errors.UnsupportedOperation, match="assume_rows"):
        q.epsilon_for(1.0, "m")
    with pytest.raises(errors.InvalidArgument):
        q.epsilon_for(1.0, "nope")
    with pytest.raises(errors.InvalidArgument):
        q.epsilon_for(-1.0)
    with pytest.raises(errors.UnsupportedOperation, match=r"^epsilon_for: dp\.Auto"):
        frame.count(limits=dp.Auto()).epsilon_for(1.0)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_brute_force_over_a_small_universe_reaches_the_claim(neighbors):
    from dpframe.theory import empirical_sensitivity

    universe = pd.DataFrame(
        {
            "id": [1, 1, 1, 2, 2, 3],
            "city": list("aababb"),
            "spend": [9.0, 10.0, -4.0, 10.0, 10.0, -5.0],
            "age": [1] * 6,
        }
    )
    query = dp.protect(universe, unit="id", neighbors=neighbors).group_by(
        "city", keys=["a", "b"], max_groups=2, max_rows=2
    )
    query = query.agg(n=dp.count(), s=dp.sum("spend", bounds=(-3, 10)))
    found = empirical_sensitivity(query, universe, size=2, neighbors=neighbors)
    for name, claim in query.sensitivity.items():
        assert found[name].l0 <= claim.l0
        assert found[name].l1 <= claim.l1
        assert found[name].l2 <= claim.l2
        assert found[name].linf <= claim.linf
    if neighbors == "add-remove":
        assert found["s"].l1 == query.sensitivity["s"].l1 == 20


def test_one_refusal_names_all_the_limits_that_a_grouped_question_needs(frame):
    """What it says to type is enough, and the second limit is no cost to a
    question that needs only the first.
    """
    for ask in (
        lambda **limits: frame.group_by("city", keys=["a", "b"], **limits).count(),
        lambda **limits: frame.group_by("city", keys=["a", "b"], **limits).mean(
            "age", bounds=(0, 9)
        ),
        lambda **limits: frame.histogram("age", bins=[0, 9], **limits),
        lambda **limits: frame.crosstab("city", "age", keys={"city": ["a"], "age": [1]}, **limits),
    ):
        with pytest.raises(
            errors.UnboundedContribution, match=r"max_groups=3, max_rows_per_group=2\)"
        ):
            ask()
        assert ask(max_groups=3, max_rows_per_group=2).sensitivity
    for limits in ({"max_groups": 3}, {"max_groups": 3, "max_rows_per_group": 2}):
        grouped = frame.group_by("city", keys=["a", "b", "c"], **limits)
        assert grouped.count_units().sensitivity["count_units"].l1 == 3
        assert grouped.sum("age", unit_bounds=(0, 9)).sensitivity["age"].l1 == 27


@pytest.mark.parametrize(
    ("upper", "rows", "whole"), [(2**26, 2**16, True), (2**26 + 1, 1, False), (2**26, 2**17, False)]
)
def test_a_sum_of_integers_is_an_integer_up_to_the_size_that_its_docstring_says(
    frame, upper, rows, whole
):
    out = frame.sum("age", bounds=(0, upper), max_rows=rows).release(epsilon=1)
    assert isinstance(out.value, int if whole else float)
    assert "2^26" in dp.sum.__doc__
    assert "2^42" in dp.sum.__doc__


def test_a_column_that_cannot_be_read_says_what_to_type_first():
    table = pd.DataFrame([[1, 2, 3, 4]], columns=["id", "a", "a", 7]).assign(
        when=pd.period_range("2020", periods=1)
    )
    frame = dp.protect(table, unit="id")
    for name, line in (
        ("a", r"2 columns have this name; first: df.columns = \[...\]"),
        ("7", r"df.columns.astype\(str\)"),
        ("when", r"df\['when'\].dt.to_timestamp\(\)"),
    ):
        assert name in frame.columns
        for ask in (
            lambda n=name: frame.count(n, max_rows=1),
            lambda n=name: frame.group_by(n, max_groups=1),
        ):
            with pytest.raises(errors.WrongType, match=line):
                ask()
    assert "df.columns.astype(str)" in repr(frame)
    flat = table["when"].dt.to_timestamp()
    assert dp.protect(pd.DataFrame({"id": [1], "when": flat}), unit="id").count("when", max_rows=1)
    nested = pd.DataFrame(
        [[1, 2]], columns=pd.MultiIndex.from_tuples([("id", ""), ("spend", "sum")])
    )
    with pytest.raises(
        errors.UnknownColumn,
        match=r"df.columns = \['_'.join\(map\(str, c\)\) for c in df.columns\]",
    ):
        dp.protect(nested, unit="id")
    nested.columns = ["_".join(map(str, c)) for c in nested.columns]
    assert dp.protect(nested, unit="id_").columns == ["id_", "spend_sum"]


def test_a_column_that_cannot_be_read_does_not_take_the_place_of_one_that_can():
    table = pd.DataFrame([[1, 2]], columns=["0", 0])
    assert dp.protect(table, unit="0").count_units().sensitivity["count_units"].l1 == 1
