"""Synthetic rows: their schema, their price, what they are made of, and what one
unit can move before the noise.
"""

import datetime as dt
import itertools
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine
from dpframe.budget import Loss, read_rho
from dpframe.errors import (
    DeltaRequired,
    DpFrameError,
    InvalidArgument,
    InvalidBounds,
    UnboundedContribution,
    UnknownAttribute,
    UnknownColumn,
    UnsupportedOperation,
    WrongType,
)
from dpframe.noise import bits
from dpframe.release.kinds.synthesis import row_layout as rows_of_model
from dpframe.release.kinds.synthesis.rounds import _Purse
from inside import question_of
from strategies import bring

PRICE = {"epsilon": 5.0, "delta": 1e-6}
DAYS = (dt.date(2026, 1, 1), dt.date(2026, 12, 31))
SAID = {
    "keys": {"city": ["Bonn", "Kiel"]},
    "bounds": {"age": (0, 100), "wage": (0.0, 50.0), "day": DAYS},
    "nulls": ["wage"],
    "max_rows": 3,
}


def people(rows=1500, seed=0):
    draw = np.random.default_rng(seed)
    city = draw.random(rows) < 0.3
    return pl.DataFrame(
        {
            "u": draw.integers(0, max(rows // 2, 1), rows),
            "city": np.where(city, "Kiel", "Bonn"),
            "smokes": city ^ (draw.random(rows) < 0.1),
            "age": draw.integers(0, 90, rows),
            "wage": pl.Series(draw.gamma(3, 5, rows)).cast(pl.Float32),
            "day": [DAYS[0] + dt.timedelta(days=int(day)) for day in draw.integers(0, 200, rows)],
            "level": pl.Series(draw.choice(["low", "high"], rows), dtype=pl.Enum(["low", "high"])),
        }
    ).with_columns(wage=pl.when(pl.col("age") >= 18).then("wage"))


def protected(rows=None, **more):
    budget = more.pop("budget", None) or dp.Budget(epsilon=1000, delta=0.1)
    return dp.protect(people() if rows is None else rows, **{"unit": "u", "budget": budget, **more})


@pytest.fixture(scope="module")
def out():
    return protected().synthesize(**SAID).release(**PRICE)


# What the rows are


def test_rows_have_the_schema_of_the_table(out):
    assert out.table.schema == people().drop("u").schema
    assert abs(out.table.height - 1500) < 300


def test_values_stay_within_bins_bounds_and_keys(out):
    table = out.table
    assert set(table["city"].unique()) <= {"Bonn", "Kiel", None}
    assert table["age"].drop_nulls().is_between(0, 100).all()
    assert table["wage"].drop_nulls().is_between(0, 50).all()
    assert table["day"].drop_nulls().is_between(*DAYS).all()
    assert table["age"].n_unique() > 40, "numbers are drawn within their bins"


def test_what_goes_together_still_does(out):
    table = out.table.drop_nulls(["city", "smokes"])
    alike = (table["city"] == "Kiel") == table["smokes"]
    assert alike.mean() > 0.75, "nine in ten are alike in the table"


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "lazy", "duckdb"])
def test_the_kind_of_table_is_the_users(kind):
    rows = people(200).select("u", "city", "age")
    brought = duckdb.from_arrow(rows.to_arrow()) if kind == "duckdb" else bring(rows, kind)
    made = protected(brought).synthesize(
        keys=SAID["keys"], bounds={"age": (0, 100)}, max_rows=3, rows=50
    )
    table = made.release(**PRICE).table
    assert len(table) == 50
    assert isinstance(table, pd.DataFrame) == (kind in ("pandas", "duckdb"))


def test_a_bin_that_holds_single_values_keeps_them():
    rows = pl.DataFrame({"u": range(400), "n": [1, 2, 3, 4] * 100}).with_columns(
        pl.col("n").cast(pl.Int8)
    )
    frame = protected(rows).drop_nulls("n")
    table = (
        frame.synthesize(bounds={"n": (1, 4)}, max_rows=1, rows=1000)
        .release(epsilon=500, delta=1e-3)
        .table
    )
    assert table.schema == {"n": pl.Int8}
    assert table["n"].value_counts()["count"].to_list() == pytest.approx([250] * 4, abs=25)


def test_values_outside_of_bins_count_as_the_nearest_inside():
    rows = pl.DataFrame({"u": range(300), "x": [float("-inf"), 5.0, float("inf")] * 100})
    query = protected(rows).synthesize(bins={"x": [0, 1, 9, 10]}, max_rows=1)
    noisy = query.release(epsilon=500, delta=1e-3).marginals["x",].table
    assert noisy["count"].to_list() == pytest.approx([100, 100, 100], abs=5)


def test_null_is_a_value_where_it_is_asked_for():
    rows = pl.DataFrame({"u": range(300), "x": [1.0, None, float("nan")] * 100})
    said = {"bins": {"x": [0, 9]}, "max_rows": 1}
    (noisy,) = (
        protected(rows)
        .synthesize(**said, nulls=["x"])
        .release(epsilon=500, delta=1e-3)
        .marginals.values()
    )
    assert noisy.table["count"].to_list() == pytest.approx([100, 200], abs=5)
    out = protected(rows).synthesize(**said).release(epsilon=500, delta=1e-3)
    assert out.marginals["x",].table["count"].to_list() == pytest.approx([100], abs=5), (
        "other rows are left out"
    )
    assert out.table["x"].null_count() == 0
    with pytest.raises(InvalidArgument, match="nulls= names 'y'"):
        protected(rows).synthesize(**said, nulls=["y"])


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "pyarrow"])
def test_no_null_is_made_up(kind):
    """So much noise that each cell of each table is noise:
    no value appears that no list, bin or type has.
    """
    when, day = dt.datetime(2026, 1, 1), dt.date(2026, 1, 1)
    columns = {
        **{"whole": [1, 2], "real": [0.5, 1.5], "text": ["a", ""], "yes": [True, False]},
        **{"when": [when] * 2, "day": [day] * 2, "long": [dt.timedelta(1), dt.timedelta(2)]},
    }
    rows = pl.DataFrame({"u": range(200), **{name: cells * 100 for name, cells in columns.items()}})
    spans = {"when": (when, when + dt.timedelta(9)), "day": (day, day + dt.timedelta(9))}
    bounds = {"real": (0, 9), "long": (dt.timedelta(0), dt.timedelta(9)), **spans}
    ways = (
        {"keys": {"whole": [1, 2], "text": ["a", ""]}, "bounds": bounds},
        {
            "keys": {name: cells for name, cells in columns.items() if name not in spans},
            "bounds": spans,
        },
    )
    for said in ways:
        out = (
            protected(bring(rows, kind))
            .synthesize(**said, rows=300, max_rows=1)
            .release(epsilon=0.01, delta=1e-9)
        )
        assert sum(out.to_polars().null_count().row(0)) == 0
        assert all(None not in level for level in out._tables.levels)
    asked = protected(bring(rows, kind)).synthesize(**ways[0], nulls=["real", "text"], max_rows=1)
    levels = dict(zip(columns, question_of(asked._query).keys.levels, strict=False))
    assert [name for name, level in levels.items() if None in level] == ["real", "text"]


def test_types_of_pandas_that_have_no_missing_value_stay_as_they_are():
    rows = pd.DataFrame(
        {"u": range(200), "n": [1, 2] * 100, "yes": [True, False] * 100, "text": ["a", None] * 100}
    )
    frame = protected(rows)
    keys = {"n": [1, 2], "text": ["a", None]}
    table = frame.synthesize(keys=keys, max_rows=1).release(epsilon=0.01, delta=1e-9).table
    assert [str(dtype) for dtype in table.dtypes[["n", "yes"]]] == ["int64", "bool"]
    query = frame.synthesize(keys=keys, nulls=["yes"], max_rows=1)
    assert [None in level for level in question_of(query._query).keys.levels] == [False, True, True]


def test_whole_numbers_of_any_size_and_times_are_drawn_within_their_bins():
    when = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    rows = pl.DataFrame(
        {
            "u": range(60),
            "big": [2**64 - 1, 2**64 - 9, 2**63] * 20,
            "when": [when + dt.timedelta(hours=5)] * 60,
        },
        schema_overrides={"big": pl.UInt64, "when": pl.Datetime("ms", "UTC")},
    )
    bounds = {"big": (2**63, 2**64 - 1), "when": (when, when + dt.timedelta(days=1))}
    table = protected(rows).synthesize(bounds=bounds, max_rows=1, rows=200).release(**PRICE).table
    assert table.schema == rows.drop("u").schema
    assert table["big"].drop_nulls().min() >= 2**63
    assert table["when"].drop_nulls().is_between(when, when + dt.timedelta(days=1)).all()


def test_for_model_asks_more_about_that_column():
    frame = protected().drop_nulls()
    plain = question_of(frame.synthesize(**SAID)._query)
    model = question_of(frame.synthesize(**SAID, workload="2-way", for_model="smokes")._query)
    place = model.by.index("smokes")
    assert set(model.candidates) < set(plain.candidates)
    assert all(place in part for part in model.candidates if len(part) == 3)
    with_it, without = (
        {w for p, w in model.candidates.items() if len(p) == 2 and (place in p) == y}
        for y in (1, 0)
    )
    assert min(with_it) > max(without)


# What it costs, and what it is made of


def test_it_is_charged_once_and_stored_under_its_name():
    budget = dp.Budget(epsilon=2.0, delta=1e-5)
    query = protected(budget=budget).synthesize(**SAID)
    first = query.release(epsilon=1.5, delta=1e-6, name="rows")
    again = query.release(epsilon=1.5, delta=1e-6, name="rows")
    assert (
        (budget.spent.epsilon, budget.spent.delta)
        == (first.cost.epsilon, first.cost.delta)
        == (1.5, 1e-6)
    )
    assert again.table.equals(first.table)
    assert list(again.marginals) == list(first.marginals)
    assert "Stored answer" in repr(again)


def test_a_budget_in_rho_pays_in_rho():
    budget = dp.Budget(rho=1.0)
    out = protected(budget=budget).synthesize(**SAID).release(rho=0.5)
    assert budget.spent.rho == 0.5
    assert out.cost.rho == 0.5


@pytest.mark.parametrize("rho", [Fraction(1, 10**6), Fraction(1, 3), Fraction(50)])
def test_rounds_never_spend_more_than_the_price(rho, monkeypatch):
    paid = []
    take = _Purse.take
    monkeypatch.setattr(_Purse, "take", lambda self, cost: (take(self, cost), paid.append(cost)))
    budget = dp.Budget(rho=100)
    protected(budget=budget).synthesize(**SAID).release(rho=float(rho))
    assert Fraction(9, 10) * rho < sum(paid) <= read_rho(float(rho))


@pytest.mark.parametrize("most", [1, 2**31 - 1])
@pytest.mark.parametrize("epsilon", [1e-12, 1e6])
def test_any_price_gives_rows(epsilon, most):
    frame = protected(people(50), budget=dp.Budget(epsilon=1e9, delta=0.1)).drop_nulls()
    query = frame.synthesize(
        ["city", "smokes", "age"], 5, keys=SAID["keys"], bounds={"age": (0, 9)}, max_rows=most
    )
    out = query.release(epsilon=epsilon, delta=1e-12)
    assert out.table.height == 5
    assert out.accuracy().height == 7
    assert repr(out)


@pytest.mark.parametrize("rows", [people(1).head(0), people(1)], ids=["none", "one"])
def test_tables_of_no_row_or_one_give_rows(rows):
    assert protected(rows).synthesize(**{**SAID, "rows": 3}).release(**PRICE).table.height == 3
    out = protected(rows).synthesize(**SAID).release(**PRICE)
    assert out.table.schema == rows.drop("u").schema


def test_a_purse_refuses_what_is_not_left():
    purse = _Purse(Fraction(1))
    purse.take(Fraction(1, 2))
    for cost in (Fraction(51, 100), Fraction(0), Fraction(-1)):
        with pytest.raises(DpFrameError):
            purse.take(cost)


def test_rows_are_drawn_when_the_raw_tables_are_gone(monkeypatch):
    """The first thing after the last noisy table is to draw rows.
    By then the raw tables hold other numbers.
    """
    query, words = (
        protected().synthesize(**SAID),
        np.random.default_rng(5).integers(0, 2**64, 10**6, dtype=np.uint64),
    )
    with bits.replay(words):
        expected = query.release(**PRICE).table
    raw = []
    monkeypatch.setattr(
        engine, "contingency", lambda *a, read=engine.contingency: raw.append(read(*a)) or raw[0]
    )
    drawn = rows_of_model.drawn_rows

    def later(*args, **options):
        object.__setattr__(raw[0], "codes", np.zeros_like(raw[0].codes))
        object.__setattr__(raw[0], "weights", np.full_like(raw[0].weights, 10**9))
        return drawn(*args, **options)

    monkeypatch.setattr(rows_of_model, "drawn_rows", later)
    monkeypatch.setattr("dpframe.release.run.engine.contingency", engine.contingency)
    with bits.replay(words):
        assert query.release(**PRICE).table.equals(expected)
    assert raw[0].weights.min() == 10**9, "the raw tables were replaced"


# What one unit can move


UNITS = {
    "rows that are linked": ("u", {"max_rows": 2, "per_unit": ["g"]}),
    "a unit of several rows": ("u", {"max_rows": 2}),
    "one row": (dp.Rows(1), {}),
    "two rows": (dp.Rows(2), {}),
}


def tables_of(rows, unit, limits, relation):
    frame = dp.protect(
        pl.DataFrame(rows, {"u": pl.Int64, "g": pl.String, "n": pl.Int64}, orient="row"),
        unit=unit,
        neighbors=relation,
    )
    query = frame.synthesize(["g", "n"], keys={"g": ["a", "b"]}, bounds={"n": (0, 1)}, **limits)
    raw = engine.contingency(question_of(query._query), 3)
    parts = [*((i,) for i in range(len(raw.sizes))), (0, 1)]
    return query.sensitivity["each table"], [raw.table(p) * 0.5**raw.fraction for p in parts]


def neighbours(unit, relation):
    """Tables of up to four rows with those of one person taken away, or exchanged for another's."""
    kinds = [("a", 0), ("b", 1), ("z", 0), (None, None)]
    most = unit.max_rows if isinstance(unit, dp.Rows) else 3
    own = [
        part for n in range(most + 1) for part in itertools.combinations_with_replacement(kinds, n)
    ]
    for rest in ([], [(1, "a", 0)], [(1, "b", 1), (2, "a", None)]):
        for one in own:
            here = [(7, *row) for row in one]
            for other in own if relation == "replace" else [()]:
                yield rest + here, rest + [(8, *row) for row in other]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize(
    "name", [*list(UNITS)[1:], pytest.param("rows that are linked", marks=pytest.mark.long)]
)
def test_no_neighbour_moves_a_table_by_more_than_is_claimed_and_one_does(name, relation):
    unit, limits = UNITS[name]
    most = np.zeros(3)
    seen = {}

    def exact(rows):
        key = tuple(rows)
        if key not in seen:
            seen[key] = tables_of(rows, unit, limits, relation)
        return seen[key]

    for one, other in neighbours(unit, relation):
        (claim, here), (_, there) = exact(one), exact(other)
        for a, b in zip(here, there, strict=True):
            apart = np.abs(a - b)
            most = np.maximum(most, [apart.sum(), (apart**2).sum(), apart.max()])
    assert most[0] <= claim.exact_l1
    assert most[1] <= claim.l2_squared
    assert most[2] <= claim.exact_linf
    assert (most == [claim.exact_l1, claim.l2_squared, claim.exact_linf]).all(), (
        "the claim is no larger than needed"
    )


HELD = {
    "decimals": ([Decimal("0.25"), Decimal("1.5")], pl.Decimal(10, 2), (0, 2)),
    "durations": (
        [dt.timedelta(0), dt.timedelta(hours=3)],
        pl.Duration("us"),
        (dt.timedelta(0), dt.timedelta(1)),
    ),
    "last days": (
        [dt.date(9999, 12, 31), dt.date(9999, 12, 1)],
        pl.Date,
        (dt.date(9999, 12, 1), dt.date(9999, 12, 31)),
    ),
}


@pytest.mark.parametrize("name", list(HELD))
def test_no_neighbour_moves_a_table_of_other_types_by_more_than_is_claimed(name):
    """All tables of one column, of how finely it is given, and of both:
    each row is in one cell of each.
    """
    values, dtype, bounds = HELD[name]
    most = np.zeros(3)
    for rest in ([], [0], [0, 1]):
        tables = []
        for own in ([], [0], [1], [0, 0], [0, 1], [1, 1, 1], [None, 0, 1]):
            held = [None if place is None else values[place] for place in (*rest, *own)]
            units = [*range(len(rest)), *[7] * len(own)]
            frame = dp.protect(
                pl.DataFrame(
                    {"u": units, "n": pl.Series(held, dtype=dtype)}, {"u": pl.Int64, "n": dtype}
                ),
                unit="u",
            )
            query = frame.synthesize(["n"], bounds={"n": bounds}, max_rows=2)
            raw = engine.contingency(question_of(query._query), 3)
            claim, parts = query.sensitivity["each table"], [(i,) for i in range(len(raw.sizes))]
            tables.append(
                [raw.table(p) * 0.5**raw.fraction for p in (*parts, tuple(range(len(raw.sizes))))]
            )
        for other in tables[1:]:
            for a, b in zip(tables[0], other, strict=True):
                apart = np.abs(a - b)
                most = np.maximum(most, [apart.sum(), (apart**2).sum(), apart.max()])
    assert (most == [claim.exact_l1, claim.l2_squared, claim.exact_linf]).all()


# What is refused


REFUSED = {
    "no limit": (UnboundedContribution, "max_rows=1", {**SAID, "max_rows": None}),
    "no keys of a text": (
        UnsupportedOperation,
        r"keys=\{'city': \[...\]\}",
        {**SAID, "keys": None},
    ),
    "no bounds": (
        UnsupportedOperation,
        r"data: bounds=\{'age': \(0, 100\), 'wage'",
        {**SAID, "bounds": None},
    ),
    "the unit": (UnsupportedOperation, "identifies the unit", {**SAID, "columns": ["u", "city"]}),
    "another column": (UnknownColumn, "no column 'nope'", {**SAID, "columns": ["nope", "city"]}),
    "keys of no column": (
        InvalidArgument,
        "none of",
        {**SAID, "keys": {"city": ["Bonn"], "nope": [1]}},
    ),
    "keys and bounds": (InvalidArgument, "give one of", {**SAID, "bins": {"age": [0, 9]}}),
    "bins of a text": (
        WrongType,
        "needs a number",
        {"columns": ["city"], "bins": {"city": [0, 1]}, "max_rows": 1},
    ),
    "an empty bin": (
        InvalidArgument,
        "no value",
        {"columns": ["age"], "bins": {"age": [0, 0.2, 0.8]}, "max_rows": 1},
    ),
    "bounds that are chosen": (
        InvalidBounds,
        "dp.Auto",
        {**SAID, "bounds": {**SAID["bounds"], "age": dp.Auto()}},
    ),
    "rows that are no number": (InvalidArgument, "rows=", {**SAID, "rows": -1}),
    "no rows": (InvalidArgument, "from 1 on", {**SAID, "rows": 0}),
    "a workload of too many columns": (InvalidArgument, "workload=", {**SAID, "workload": "9-way"}),
    "linked rows without a limit": (
        UnboundedContribution,
        "max_rows=5",
        {**SAID, "max_rows": 101, "per_unit": True},
    ),
    "one value a unit in no column": (
        InvalidArgument,
        "per_unit= names",
        {**SAID, "per_unit": ["nope"]},
    ),
    "a model of no column": (InvalidArgument, "for_model=", {**SAID, "for_model": "nope"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_with_the_line_to_type(name):
    error, words, said = REFUSED[name]
    with pytest.raises(error, match=words):
        protected().synthesize(**said)


def test_rows_of_nobody_are_not_linked():
    with pytest.raises(UnsupportedOperation, match="per_unit="):
        protected(unit=dp.Rows(1)).synthesize(**{**SAID, "max_rows": None}, per_unit=True)


def test_a_noisy_table_that_is_not_there_is_answered_with_those_that_are():
    out = protected().synthesize(**SAID).release(**PRICE)
    first = next(names for names in out.marginals if len(names) == 1)
    with pytest.raises(UnknownColumn, match=rf"Type out.marginals\['{first[0]}',\]"):
        out.marginals[first[0]]
    with pytest.raises(KeyError, match="Measured: "):
        out.marginals["nope"]
    assert "nope" not in out.marginals


def test_errors_are_asked_of_the_release_and_not_of_the_query():
    with pytest.raises(UnknownAttribute, match=r"out.accuracy\(\)"):
        _ = protected().synthesize(**SAID).accuracy


def test_prices_that_cannot_pay_are_refused_before_the_charge():
    budget = dp.Budget(epsilon=10.0, delta=1e-5)
    query = protected(budget=budget).synthesize(**SAID)
    with pytest.raises(DeltaRequired, match="delta=1e-9"):
        query.release(epsilon=1.0)
    with pytest.raises(UnsupportedOperation, match="Gaussian"):
        query.release(epsilon=1.0, delta=1e-9, noise="laplace")
    with pytest.raises(InvalidArgument, match="accuracy"):
        query.release(epsilon=1.0, delta=1e-9, ci=0.95)
    with pytest.raises(InvalidArgument, match="takes queries"):
        budget.plan([query], epsilon=1.0, delta=1e-9)
    assert budget.spent == Loss(0.0, 0.0)
    with pytest.raises(UnsupportedOperation, match="rho="):
        protected(budget=dp.Budget(rho=1.0)).synthesize(**SAID).release(epsilon=1.0)


def test_no_text_of_a_release_shows_a_cell():
    rows = people(100).with_columns(city=pl.lit("canary-4711"))
    frame = protected(rows)
    out = frame.synthesize(**SAID).release(**PRICE)
    said = [
        repr(out),
        out._repr_html_(),
        str(out.report()),
        out.report().to_json(),
        out.to_csv(),
        str(out.noise),
    ]
    said += [
        str(out.accuracy()),
        str(out.marginals),
        str(out.derivation),
        repr(frame.synthesize(**SAID)),
    ]
    assert not any("canary" in text for text in said)


# What is shown


def test_the_report_says_how_far_rows_are_from_the_noisy_tables(out):
    table = out.accuracy()
    assert table.columns == ["table", "columns", "distance", "noise"]
    assert table["columns"].max() == 3
    assert table.drop_nulls()["distance"].is_between(0, 1).all()
    report = str(out.report())
    assert "noisy tables in total variation" in report
    assert "table_rounds" in report
    assert out.plot().to_dict()["layer"]


def test_noisy_tables_are_beside_the_rows(out):
    for names, noisy in out.marginals.items():
        assert noisy.table.columns == [*names, "count", "error", "synthetic"]
        assert noisy.accuracy()["error"].equals(noisy.table["error"])
        assert noisy.with_ci().table.columns[len(names) :] == [
            "count",
            "count_low",
            "count_high",
            "error",
            "synthetic",
        ]
        assert noisy.nonnegative().round().table["count"].min() >= 0
        assert noisy.noise["scale"].to_list() == pytest.approx(
            out.noise.filter(pl.col("table") == " × ".join(names))["deviation"].to_list()
        )
        assert noisy.plot().to_dict()
    assert set(out.noise["table"]) >= {"city", "smokes", "age", "wage", "day", "level"}


def test_files_hold_the_rows(out, tmp_path):
    out.to_parquet(tmp_path / "rows.parquet")
    assert pl.read_parquet(tmp_path / "rows.parquet").height == out.table.height
    assert out.to_csv().splitlines()[0] == "city,smokes,age,wage,day,level"
    assert len(out.to_pandas()) == out.to_arrow().num_rows == out.table.height


def test_one_line_does_it_all():
    budget = dp.Budget(epsilon=10, delta=1e-5)
    out = people().dp.synthesize(
        ["city", "smokes"], keys=SAID["keys"], unit="u", budget=budget, max_rows=1, **PRICE
    )
    assert out.table.columns == ["city", "smokes"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("epsilon", [0.5, 50.0])
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"workload": "2-way"},
        {"workload": [("city", "wage"), ("age", "wage")]},
        {"for_model": "wage"},
    ],
    ids=str,
)
def test_each_pair_of_columns_is_measured_or_said_not_to_be(asked, epsilon):
    frame = protected()
    names = ["city", "smokes", "age", "wage"]
    said = {**SAID, "bounds": {name: SAID["bounds"][name] for name in ("age", "wage")}}
    out = frame.synthesize(names, **said, **asked).release(epsilon=epsilon, delta=1e-6)
    missing = (
        out.accuracy()
        .filter(pl.col("distance").is_null(), pl.col("columns") == 2)["table"]
        .to_list()
    )
    pairs = [title.replace(" × ", " and ") for title in missing]
    texts = (repr(out), out._repr_html_(), str(out.report()), out.to_csv(notes=True))
    for text in texts:
        assert all(pair in text for pair in pairs)
        assert ("are not in these rows" in text) == bool(pairs)
    measured = [set(table) for table in out.marginals]
    for pair in itertools.combinations(names, 2):
        held = any(set(pair) <= table for table in measured)
        assert held != (" and ".join(pair) in pairs)
    named = asked.get("workload", [])
    assert isinstance(named, str) or all(
        any(set(part) <= table for table in measured) for part in named
    )
