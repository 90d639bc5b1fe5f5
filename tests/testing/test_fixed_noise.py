"""Fixed noise, and that no real ledger pays under it."""

import sqlite3
import threading
from contextlib import ExitStack

import polars as pl
import pytest

import dpframe as dp
from dpframe import dpframe_check, errors, testing
from dpframe.noise import bits
from dpframe.release import run

ROWS = pl.DataFrame(
    {"user": [1, 1, 2, 3], "city": ["Bonn", "Kiel", "Bonn", "Bonn"], "spend": [3.0, 4.0, 5.0, 8.0]}
)


def visits(budget, epsilon=0.5, **options):
    people = dp.protect(ROWS, unit="user", budget=budget, max_rows=2)
    return (
        people.group_by("city", keys=["Bonn", "Kiel"]).count().release(epsilon=epsilon, **options)
    )


def test_a_seed_is_a_noise():
    def with_seed(seed):
        with testing.fixed_noise(seed):
            return visits(testing.budget(), 0.01).table.get_column("count").to_list()

    assert with_seed(7) == with_seed(7)
    assert len({tuple(with_seed(seed)) for seed in (1, 2, "two", 3)}) == 4
    assert bits.are_replaced() is False
    with pytest.raises(errors.InvalidArgument):
        with_seed(None)


def test_blocks_in_threads_that_overlap_leave_nothing_behind():
    """The salts of partitions too are fixed inside of a block alone, in its own
    thread: a real ledger has others.
    """

    def salt_of(budget):
        return budget.partition({"of": "rows"}, 2)[1]

    begun, go_on, salts = threading.Event(), threading.Event(), []

    def longer():
        with testing.fixed_noise(2):
            begun.set()
            go_on.wait(60)
            salts.append(salt_of(testing.budget()))

    thread = threading.Thread(target=longer)
    with testing.fixed_noise(1):
        thread.start()
        begun.wait(60)
        first = salt_of(testing.budget())
    real = salt_of(dp.Budget(epsilon=1.0))
    go_on.set()
    thread.join()
    after = salt_of(dp.Budget(epsilon=1.0))
    with testing.fixed_noise(1):
        again = salt_of(testing.budget())
    assert again == first
    assert len({first, real, after, *salts}) == 4


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    return (
        tmp_path / "a.sqlite" if request.param == "sqlite" else request.getfixturevalue("postgres")
    )


WAYS = {
    "fixed_noise": lambda: testing.fixed_noise(7),
    "substitute": lambda: bits.substitute(testing.Words("a")),
    "replay": lambda: bits.replay([1] * 1000),
    "record": bits.record,
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("way", WAYS)
def test_a_real_ledger_never_pays_under_fixed_noise(where, way):
    """Whatever replaces the noise, and whatever is asked of the budget:
    nothing is charged, stored or shown.
    """
    ledger = dp.Ledger(where)
    budget = ledger.budget("visits", epsilon=5)
    kept = visits(budget, name="kept")
    before = budget.history()
    asks = (
        lambda: visits(budget),
        lambda: visits(budget, name="kept", refresh=True),
        lambda: visits(budget, name="new"),
        lambda: budget.allocate(nights=2, epsilon=1),
        lambda: visits(budget.for_spender("Ada")),
        lambda: budget.plan(
            [dp.protect(ROWS, unit="user", budget=budget).count(max_rows=2)], epsilon=0.1
        ).release(),
    )
    for ask in asks:
        with WAYS[way](), pytest.raises(errors.UnsupportedOperation, match="real ledger"):
            ask()
    assert budget.history() == before
    assert visits(budget, name="kept").table.equals(kept.table)


def test_noise_that_is_fixed_after_the_charge_is_not_shown(tmp_path, monkeypatch):
    """Whatever fixes the noise while rows are read: the answer is not stored, so nobody sees it."""
    budget, reading = dp.Ledger(tmp_path / "a.sqlite").budget("visits", epsilon=5), run._answer_all

    def fixed(*arguments):
        entered.enter_context(testing.fixed_noise(7))
        return reading(*arguments)

    monkeypatch.setattr(run, "_answer_all", fixed)
    with ExitStack() as entered, pytest.raises(errors.UnsupportedOperation, match="real ledger"):
        visits(budget)
    assert [line.status for line in budget.history()] == ["pending"]


def test_a_test_ledger_is_one_for_ever(where):
    tests = testing.ledger(where)
    with testing.fixed_noise(7):
        first = visits(tests.budget("visits", epsilon=5), name="a")
    again = dp.Ledger(where)
    assert again.is_test
    assert visits(again.budget("visits"), name="a").table.equals(first.table)
    assert testing.ledger(where).is_test
    again.verify()


def test_a_real_ledger_is_never_marked(where, tmp_path):
    ledger = dp.Ledger(where)
    ledger.budget("visits", epsilon=5)
    with pytest.raises(errors.UnsupportedOperation, match="no ledger for tests"):
        testing.ledger(where)
    (tmp_path / "here").mkdir()
    dp.Ledger(tmp_path / "here" / "b.sqlite", witness=tmp_path / "b.witness")
    with pytest.raises(errors.UnsupportedOperation, match="no ledger for tests"):
        testing.ledger(tmp_path / "here" / "b.sqlite", witness=tmp_path / "b.witness")


def test_a_real_ledger_whose_id_is_changed_is_another_one(tmp_path):
    (tmp_path / "here").mkdir()
    path, witness = tmp_path / "here" / "a.sqlite", tmp_path / "a.witness"
    dp.Ledger(path, witness=witness).budget("visits", epsilon=5)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE dpframe_ledger SET id = 'test-' || id")
    connection.close()
    with pytest.raises(errors.LedgerDamaged):
        dp.Ledger(path, witness=witness)


def test_a_copy_of_a_test_ledger_is_one(tmp_path):
    tests = testing.ledger(tmp_path / "a.sqlite")
    tests.budget("visits", epsilon=5)
    tests.backup(tmp_path / "b.sqlite")
    assert dp.Ledger.restore(
        tmp_path / "b.sqlite", tmp_path / "c.sqlite", by="Ada", why="?", lost="none"
    ).is_test


def test_a_release_says_that_its_noise_was_fixed(tmp_path):
    tests = testing.ledger(tmp_path / "a.sqlite").budget("visits", epsilon=5)
    with testing.fixed_noise(7):
        out = visits(tests, name="a")
    again = visits(tests, name="a")  # read again, without fixed noise
    for release in (out, again):
        assert "protects nobody" in repr(release)
        assert "protects nobody" in release.report()
        assert "protects nobody" in release.report().to_html()
        assert "protects nobody" in release.report().to_dict()["test"]
    real = visits(testing.budget())
    assert "protects nobody" not in repr(real) + real.report().to_json()


def test_no_certificate_of_fixed_noise_is_proved():
    """Neither that of a release, nor that of a night of a series."""
    rows = pl.DataFrame({"id": [1, 1, 2]})

    def certificates():
        budget = testing.budget()
        people = rows.dp(unit="id", budget=budget)
        series = budget.series("visits", "1d", 4, epsilon=1, unit_periods=1)
        return [
            people.count(max_rows=2).release(epsilon=0.5).certificate(),
            series.add(people.count(max_rows=2), "2026-01-01").certificate(),
        ]

    with testing.fixed_noise(7):
        fixed = certificates()
    real = certificates()
    assert [dpframe_check.Check(one).verdict for one in real] == ["PROVED"] * 2
    for one in fixed:
        check = dpframe_check.Check(one)
        assert check.verdict == "REFUSED"
        assert "does not follow: it was made in a test" in check.text


PEOPLE = pl.DataFrame(
    {
        "user": [*range(40)],
        "x": [*range(40)],
        "y": [1, 3] * 20,
        "city": ["Bonn", "Ulm"] * 20,
        "shop": ["a", "b"] * 20,
    }
)
KEYS = {"city": ["Bonn", "Ulm"], "shop": ["a", "b"]}


def every_kind(budget):
    """A release of every kind of answer, and what is made of one."""
    people = dp.protect(PEOPLE, unit="user", budget=budget, max_rows=1)
    cities, price = people.group_by("city", keys=KEYS["city"]), {"epsilon": 0.5, "delta": 1e-3}
    yield "count", people.count().release(**price)
    yield "mean", cities.agg(m=dp.mean("x", bounds=(0, 40)), n=dp.count()).release(**price)
    yield "median", cities.agg(m=dp.median("x", bounds=(0, 40))).release(**price)
    yield "found keys", people.group_by("city").count().release(**price)
    yield (
        "keys in rounds",
        dp.protect(PEOPLE, unit="user", budget=budget)
        .group_by("city")
        .keys()
        .release(epsilon=5, delta=1e-2),
    )
    yield "chosen bounds", cities.agg(s=dp.sum("x", bounds=dp.Auto())).release(**price)
    yield (
        "regression",
        people.ols(y="x", x=["y"], bounds={"x": (0, 40), "y": (0, 3)}).release(**price),
    )
    marginals = people.marginals(["city", "shop"], keys=KEYS).release(**price)
    yield "marginals", marginals
    yield "a table of marginals", marginals["city", "shop"]
    hierarchy = people.hierarchy(["city", "shop"], keys=KEYS).release(**price)
    yield "hierarchy", hierarchy
    yield "synthetic rows", people.synthesize(["city", "shop"], keys=KEYS).release(**price)
    crosstab = people.crosstab("city", "shop", keys=KEYS).release(**price)
    yield "crosstab", crosstab
    yield "shares", cities.count().release(**price).share()
    yield "rounded", cities.count().release(**price).round(5)
    queries = [people.count(), people.agg(s=dp.sum("x", bounds=(0, 40)))]
    yield from zip(
        ("first of a batch", "second"), budget.plan(queries, **price).release(), strict=True
    )
    series = budget.series("nights", "1d", 4, epsilon=1, unit_periods=1)
    yield "a night", series.add(people.count(), "2026-01-01")
    yield "the series", series.table()
    yield "its sum", series.total()
    yield "a stored night", series.add(people.count(), "2026-01-01")


def said_by(out):
    """What an answer shows of itself; what is computed from a release shows no HTML of its own."""
    page = [out._repr_html_()] if hasattr(out, "_repr_html_") else []
    report = [out.report()] if hasattr(out, "report") else []
    return [
        repr(out),
        *page,
        *(words for one in report for words in (str(one), one.to_html(), one.to_json())),
    ]


def test_every_kind_of_release_says_that_its_noise_was_fixed():
    with testing.fixed_noise(7):
        made = dict(every_kind(dp.Budget(epsilon=100, delta=0.1)))
    for kind, out in made.items():
        assert ["protects nobody" in words for words in said_by(out)] == [True] * len(
            said_by(out)
        ), kind
        if hasattr(out, "certificate") and getattr(out, "_certified", True):
            assert out.certificate()["test"] == "the noise was fixed", kind


def test_no_kind_of_release_says_so_of_noise_that_is_not_fixed():
    for kind, out in every_kind(dp.Budget(epsilon=100, delta=0.1)):
        assert "protects nobody" not in " ".join(said_by(out)), kind


@pytest.mark.parametrize("fixed", [(0,), (1,), (2,)])
def test_a_series_says_so_if_any_of_its_nights_was_added_in_a_test(tmp_path, fixed):
    """Or its first one, which opens it; read again by another process too."""
    tests = testing.ledger(tmp_path / "a.sqlite").budget("visits", epsilon=5)
    people = PEOPLE.dp(unit="user", budget=tests)
    series = tests.series("nights", "1d", 4, epsilon=1, unit_periods=1)
    for night in range(3):
        with testing.fixed_noise(7) if night in fixed else ExitStack():
            series.add(people.count(max_rows=1), f"2026-01-0{night + 1}")
    again = dp.Ledger(tmp_path / "a.sqlite").budget("visits").series("nights")
    for one in (series, again):
        assert "protects nobody" in repr(one)
        assert "protects nobody" in one.table().report()
