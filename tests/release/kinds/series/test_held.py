"""The question of each night against the noise that the first night bought, total by
total: every pair of questions.
"""

import datetime as dt
import itertools
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe import engine, errors
from dpframe.release.kinds.series import answer, noise
from dpframe.release.kinds.series.shape import Shape
from dpframe.release.kinds.series.unit_change import TotalChange, UnitChange
from inside import question_of

DAYS = [dt.date(2026, 3, 1 + night) for night in range(4)]
RELATIONS = ["add-remove", "replace"]
PERSON = [
    (7, g, x, n)
    for g in (0, 1)
    for x, n in ((99.0, 9), (-99.0, -9), (0.25, None), (None, 1))
    for _ in range(2)
]
REST = [(unit, unit % 3, 1.0 * unit, unit) for unit in range(3)]
OTHER = [(8, 1, -99.0, -9)] * 5
SCHEMA = {"u": pl.Int64, "g": pl.Int64, "x": pl.Float64, "n": pl.Int64}


def table(rows, nights=2):
    made = pl.DataFrame(rows, SCHEMA, orient="row")
    return pl.concat([made.with_columns(day=pl.lit(day)) for day in DAYS[:nights]])


def computed(frame, **columns):
    return frame.with_columns(**columns).clip(next(iter(columns)), 0, 10)


STEPS = {  # what comes before the question; each leaves a limit on rows and bounds for x and n
    "1 row": lambda f: f.bound(max_rows=1).clip("x", 0, 10),
    "5 rows": lambda f: f.bound(max_rows=5).clip("x", 0, 10),
    "2 rows": lambda f: f.bound(max_rows=4).bound(max_rows=2).clip("x", 0, 10),
    "smaller bounds": lambda f: f.bound(max_rows=1).clip("x", 0, 3),
    "larger bounds": lambda f: f.bound(max_rows=1).clip("x", 0, 30_000),
    "as large, of both signs": lambda f: f.bound(max_rows=1).clip("x", -10, 10),
    "below 0": lambda f: f.bound(max_rows=1).clip("x", -9, 0),
    "filter": lambda f: f.filter(dp.col("g") == 1).bound(max_rows=1).clip("x", 0, 10),
    "computed": lambda f: computed(f.bound(max_rows=1), x=dp.col("x") * 50),
    "whole numbers": lambda f: f.bound(max_rows=1).with_columns(x=dp.col("n")).clip("x", 0, 10),
    "truth": lambda f: f.bound(max_rows=1).with_columns(x=dp.col("x") > 1),
    "no nulls": lambda f: f.fill_null("x", 0.0).bound(max_rows=1).clip("x", 0, 10),
    "a public table": lambda f: (
        f.bound(max_rows=1)
        .join({"g": [0, 0, 1], "w": [1, 2, 3]}, on="g")
        .bound(max_rows=2)
        .clip("x", 0, 10)
    ),
    "one row each": lambda f: f.per_unit(x=dp.sum("x", unit_bounds=(0, 10)), g=dp.max("g")),
    "larger rows each": lambda f: f.per_unit(x=dp.sum("x", unit_bounds=(0, 500)), g=dp.max("g")),
}
ASKS = {
    "rows": lambda f: f.count(),
    "values": lambda f: f.count("x"),
    "sum": lambda f: f.sum("x"),
    "groups": lambda f: f.group_by("g", keys=[0, 1], max_groups=2, max_rows_per_group=1).agg(
        n=dp.count(), s=dp.sum("x"), people=dp.count_units()
    ),
    "two sums": lambda f: (
        f.with_columns(y=dp.col("x").cast("float64"))
        .clip("y", 0, 10)
        .agg(a=dp.sum("x"), b=dp.sum("y"))
    ),
}
DECLARED = {  # each moves further than the one before it
    "rows": lambda f: f.clip("x", 0, 10),
    "larger bounds": lambda f: f.clip("x", 0, 11),
    "joined": lambda f: f.clip("x", 0, 10).join({"g": [0, 0, 1], "w": [1, 2, 3]}, on="g"),
}


def added(rows, relation, unit, queries, *, function):
    """A series to which each query is added as a night;
    the query is that of all nights, as a function or with on=.
    """
    budget = dp.Budget(epsilon=50)
    frame = dp.protect(rows, unit=unit, budget=budget, neighbors=relation)
    said = {} if function else {"on": "day"}
    series = budget.series("s", every="1d", horizon=2, epsilon=1.0, unit_periods=1, **said)
    for day, query in zip(DAYS, queries, strict=False):
        asked = query(frame)
        of = (
            (lambda night, q=query: q(frame.filter(dp.col("day") == dt.date.fromisoformat(night))))
            if function
            else asked
        )
        yield series, day, of, budget


def bought(budget):
    """What the noise of the series was bought for, as the ledger has it."""
    (record,) = [entry.body["opens"] for entry in budget.entries() if "opens" in entry.body]
    return [TotalChange.from_json(fields) for fields in record["totals"]]


def measured_by(rows, relation, unit, queries, *, function):
    """The exact integers of the second night; or the refusal, after
    which nothing was read or charged.
    """
    read = []
    with pytest.MonkeyPatch.context() as patch:
        totals = engine.totals
        patch.setattr(
            answer.engine, "totals", lambda q, salt: read.append(totals(q, 3)) or read[-1]
        )
        for number, (series, day, of, budget) in enumerate(
            added(rows, relation, unit, queries, function=function)
        ):
            lines, before = budget.entries(), len(read)
            try:
                series.add(of, day)
            except errors.ReleaseMismatch as refusal:
                assert number == 1, "the first night bought its noise"
                assert budget.entries() == lines
                assert len(read) == before
                return refusal, budget
    return [values.astype(object) for values in read[-1].values], budget


def ends(change):
    """The smallest and the largest entry of one unit."""
    return change.lower, change.lower + change.swing


def check_pair(relation, unit, first, second, *, function):
    """Hold two nights against each other; whether the second was accepted."""
    queries, whole = [first, second], REST + PERSON
    here, budget = measured_by(table(whole), relation, unit, queries, function=function)
    most = UnitChange(tuple(bought(budget)), 1, relation)
    frame = dp.protect(table(whole), unit=unit, budget=budget, neighbors=relation)
    now = UnitChange.of(question_of(second(frame.filter(dp.col("day") == DAYS[1]))), 1)
    if isinstance(here, errors.ReleaseMismatch):
        places = range(min(len(most.totals), len(now.totals)))
        larger = [
            now.over(i, 1, 1).scaled(now.totals[i].unit).l1
            > most.over(i, 1, 1).scaled(most.totals[i].unit).l1
            or now.over(i, 1, 1).scaled(now.totals[i].unit).linf
            > most.over(i, 1, 1).scaled(most.totals[i].unit).linf
            or now.over(i, 1, 1).l0 > most.over(i, 1, 1).l0
            or now.totals[i].unit != most.totals[i].unit
            or (relation == "replace" and ends(now.totals[i])[0] < ends(most.totals[i])[0])
            or (relation == "replace" and ends(now.totals[i])[1] > ends(most.totals[i])[1])
            for i in places
        ]
        assert any(larger) or len(now.totals) != len(most.totals), str(here)
        return False
    there, _ = measured_by(
        table(REST + (OTHER if relation == "replace" else [])),
        relation,
        unit,
        queries,
        function=function,
    )
    for i, (one, other) in enumerate(zip(here, there, strict=True)):
        changes, bound = (
            [abs(a - b) for a, b in zip(one.tolist(), other.tolist(), strict=True)],
            most.over(i, 1, 1),
        )
        assert sum(change > 0 for change in changes) <= bound.l0
        assert sum(changes) <= bound.exact_l1
        assert max(changes) <= bound.exact_linf
    return True


@pytest.mark.one_in(40)
@pytest.mark.parametrize("function", [False, True])
# as the step of a second night each of them stays quick
@pytest.mark.parametrize(
    "first", [pytest.param(s, marks=pytest.mark.long if i % 2 else ()) for i, s in enumerate(STEPS)]
)
@pytest.mark.parametrize(("relation", "ask"), list(itertools.product(RELATIONS, ASKS)))
def test_a_second_night_moves_by_no_more_than_the_first_or_is_refused(
    relation, ask, first, function
):
    def query(name):
        return lambda frame: ASKS[ask](STEPS[name](frame))

    accepted = {
        s: check_pair(relation, "u", query(first), query(s), function=function) for s in STEPS
    }
    assert accepted[first], "the same question again"
    assert accepted["filter"] or first != "1 row", "a condition on rows takes nothing more"
    assert accepted["1 row"] or first != "5 rows", "fewer rows"


@pytest.mark.parametrize("relation", RELATIONS)
def test_declared_rows_that_a_join_multiplies(relation):
    for one, two in itertools.product(DECLARED, repeat=2):
        pair = [lambda f, name=name: DECLARED[name](f).sum("x") for name in (one, two)]
        accepted = check_pair(relation, dp.Rows(16), *pair, function=True)
        assert accepted == (list(DECLARED).index(two) <= list(DECLARED).index(one))


def test_the_attack_of_two_nights_and_what_to_type():
    """One person moved the answer of the second night by 500, at a
    price of ε = 1 for all nights.
    """
    rows = pl.DataFrame({"u": [1] * 500, "day": [DAYS[1]] * 500})
    queries = [lambda f: f.bound(max_rows=1).count(), lambda f: f.bound(max_rows=500).count()]
    for function in (False, True):
        refusal, _ = measured_by(rows, "add-remove", "u", queries, function=function)
        assert "'count' by more: l1 500, not 1; linf 500, not 1." in str(refusal)
        assert "Type bound(max_rows=1)" in str(refusal)
    queries = [lambda f, top=top: f.clip("x", 0, top).sum("x", max_rows=1) for top in (30_000, 3)]
    refusal, _ = measured_by(table(PERSON), "add-remove", "u", queries, function=False)
    assert "'x' is added up in steps of" in str(refusal)
    assert "Type clip('x', 0, 30000)" in str(refusal)


def opened(budget, **said):
    return budget.series("s", every="1d", horizon=8, epsilon=1.0, unit_periods=1, **said)


def test_every_other_night_of_a_block_is_held_too():
    days = [DAYS[0] + dt.timedelta(days=night) for night in range(20)]
    budget, most = dp.Budget(epsilon=50), {}
    frame = dp.protect(pl.DataFrame({"u": range(20), "day": days}), unit="u", budget=budget)
    series = budget.series("s", every="1d", horizon=60, epsilon=1.0, unit_periods=1)

    def of(night):
        return (
            frame.filter(dp.col("day") == dt.date.fromisoformat(night))
            .bound(max_rows=most.get(night, 1))
            .count()
        )

    series.add(of, days[0])
    for day in days[1:]:
        earlier = series.reads(day)[0]
        if earlier != str(day):
            break
        series.add(of, day)
    most[earlier], lines = 2, budget.entries()
    with pytest.raises(errors.ReleaseMismatch, match=f"for {earlier} one unit"):
        series.add(of, day)
    assert budget.entries() == lines


def test_a_function_is_called_once_for_its_night_so_the_question_that_is_checked_is_measured():
    budget, calls = dp.Budget(epsilon=50), []
    frame, series = dp.protect(table(PERSON), unit="u", budget=budget), opened(budget)

    def of(night):
        calls.append(night)
        return frame.bound(max_rows=5 ** (calls.count(night) - 1)).count()

    series.add(of, DAYS[0])
    series.add(of, DAYS[1])
    assert calls.count(str(DAYS[1])) == 1


def test_measuring_again_costs_what_the_noise_was_bought_for(monkeypatch):
    """Other nights of the block may need all of it, so a small
    question of tonight is no discount.
    """
    costs = []
    for most in (5, 1):
        budget = dp.Budget(epsilon=50)
        frame, series = dp.protect(table(PERSON), unit="u", budget=budget), opened(budget, on="day")
        series.add(frame.bound(max_rows=5).count(), DAYS[0])
        with monkeypatch.context() as patch:
            patch.setattr(
                type(budget), "store", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
            )
            with pytest.raises(KeyboardInterrupt):
                series.add(frame.bound(max_rows=most).count(), DAYS[1])
        costs.append(
            series.add(frame.bound(max_rows=most).count(), DAYS[1], on_pending="retry").cost
        )
    assert costs[0] == costs[1]
    assert costs[0].epsilon > 0


def test_another_process_holds_the_next_night_against_the_first(tmp_path):
    def again():
        budget = dp.Ledger(tmp_path / "ledger.sqlite").budget("b", epsilon=50)
        return (
            dp.protect(table(PERSON), unit="u", budget=budget),
            budget.series("s", on="day"),
            budget,
        )

    frame, _, budget = again()
    opened(budget, on="day").add(frame.bound(max_rows=2).count(), DAYS[0])
    frame, series, budget = again()
    with pytest.raises(errors.ReleaseMismatch, match=r"Type bound\(max_rows=2\)"):
        series.add(frame.bound(max_rows=3).count(), DAYS[1])
    series.add(frame.bound(max_rows=1).count(), DAYS[1])


def test_a_series_of_an_earlier_version_goes_on_with_a_question_that_needs_its_noise():
    budget = dp.Budget(epsilon=50)
    frame, series = dp.protect(table(PERSON), unit="u", budget=budget), opened(budget, on="day")
    series.add(frame.bound(max_rows=2).count(), DAYS[0])
    record = next(entry.body["opens"] for entry in budget.entries() if "opens" in entry.body)
    del record["totals"], record["limits"]  # which earlier versions did not store
    for most in (1, 3):
        with pytest.raises(errors.ReleaseMismatch, match="an earlier version"):
            series.add(frame.bound(max_rows=most).count(), DAYS[1])
    series.add(frame.bound(max_rows=2).count(), DAYS[1])


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_series_that_an_earlier_version_began_goes_on_with_its_blocks(relation, monkeypatch):
    budget = dp.Budget(rho=50)
    frame = dp.protect(table(PERSON, nights=4), unit="u", budget=budget, neighbors=relation)
    series = budget.series("s", every="1d", horizon=8, rho=1.0, unit_periods=1, on="day")

    def asked(lower, upper):
        return frame.bound(max_rows=2).clip("x", lower, upper).sum("x")

    with monkeypatch.context() as earlier:
        earlier.setattr(
            noise,
            "_shape",
            lambda length, *_: (Shape.of_degree(length, 2, 2), (Fraction(1, 2),) * 2),
        )
        series.add(asked(0, 8), DAYS[0])
    (record,) = [entry.body["opens"] for entry in budget.entries() if "opens" in entry.body]
    for change in record["totals"]:
        del change["lower"]  # which earlier versions did not store
    assert [len(level) for level in record["scales"][0]] == [1, 1]
    again = budget.series("s", on="day")
    assert again.reads(DAYS[1]) == [str(day) for day in DAYS[:2]]
    if relation == "replace":
        with pytest.raises(
            errors.ReleaseMismatch, match=r"the other side of 0.*Type clip\('x', 0, 8\)"
        ):
            again.add(asked(-8, 0), DAYS[1])
    again.add(asked(0, 8), DAYS[1])
    again.add(frame.bound(max_rows=1).clip("x", 0, 8).sum("x"), DAYS[2])
    assert [len(values) for values in again._estimates(again._opened()).blocks.values()] == [
        1,
        2,
        1,
    ]


def test_names_of_other_charges_are_no_series():
    budget = dp.Budget(epsilon=50)
    frame = dp.protect(table(PERSON), unit="u", budget=budget)
    frame.count(max_rows=1).release(epsilon=1, name="series s")
    with pytest.raises(errors.ReleaseMismatch):
        opened(budget, on="day").add(frame.count(max_rows=1), DAYS[0])
