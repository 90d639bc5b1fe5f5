"""Answers that are kept: read by name alone, corrected with a reason, written where people read."""

import html

import polars as pl
import pytest
import sqlalchemy as sa

import dpframe as dp
from dpframe import errors

ROWS = pl.DataFrame({"id": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"], "x": [1.0, 2.0, 3.0]})


@pytest.fixture(params=["memory", "ledger"])
def budget(request, tmp_path):
    return (
        dp.Budget(epsilon=9)
        if request.param == "memory"
        else dp.Ledger(tmp_path / "a").budget("b", epsilon=9)
    )


def asked(budget, **options):
    people = dp.protect(ROWS, unit="id", budget=budget, max_rows=2, **options)
    return people.group_by("city", keys=["Bonn", "Kiel"]).agg(
        n=dp.count(), x=dp.mean("x", bounds=(0, 10))
    )


def test_a_stored_answer_is_read_by_its_name(budget, tmp_path):
    out = asked(budget).release(epsilon=1, name="xt v1")
    spent, kept = budget.spent, budget.answer("xt v1")
    assert budget.spent == spent
    assert kept.table.equals(out.to_polars())
    assert (kept.to_csv(), kept.cost, kept.name) == (out.to_csv(), out.cost, "xt v1")
    assert "xt v1" in repr(kept)
    assert kept.certificate() == out.certificate()
    with pytest.raises(
        errors.UnknownAttribute, match=r"release\(..., name='xt v1'\), which is free"
    ):
        _ = kept.with_ci
    own, again = (release.report().to_dict() for release in (out, kept))
    assert all(own[key] == again[key] for key in again if key != "error_95")
    kept.to_parquet(tmp_path / "kept.parquet")
    assert pl.read_parquet(tmp_path / "kept.parquet").equals(kept.table)


def test_what_is_not_stored_is_not_read(budget):
    asked(budget).release(epsilon=1)
    budget.charge(
        dp.budget.Loss.none(), "unit 'id', add-remove", "count()", name="pending", plan={}
    )
    for name in ("nobody", "pending", None, 2):
        with pytest.raises(errors.InvalidArgument, match="no answer is stored"):
            budget.answer(name)
    series = budget.series("daily", every="1d", epsilon=1, unit_periods=1)
    series.add(dp.protect(ROWS, unit="id", budget=budget).count(max_rows=2), period="2026-01-01")
    with pytest.raises(errors.UnsupportedOperation, match="series"):
        budget.answer("daily 2026-01-01")


def test_a_name_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    """Of answers, budgets, parts and releases that are pending:
    a slip is named, and the others are listed.
    """
    ledger = dp.Ledger(tmp_path / "study.sqlite")
    budget = ledger.budget("visits 2026", epsilon=3)
    asked(budget).release(epsilon=1, name="visits 2026-01-01")
    budget.allocate(name="ana", epsilon=1)
    budget.charge(dp.budget.Loss.none(), "unit 'id', add-remove", "count()", name="killed", plan={})
    for missing, words in (
        (lambda: budget.answer("visits 2026-01-02"), "Did you mean 'visits 2026-01-01'?"),
        (lambda: ledger.budget("sales"), "this ledger has 'visits 2026'"),
        (lambda: ledger.budget("visits 2025"), "Did you mean 'visits 2026'?"),
        (lambda: budget.allocate(name="anna"), "this budget has 'ana'. Did you mean 'ana'?"),
        (lambda: budget.resolve("kiled"), "Pending are 'killed'"),
        (lambda: budget.resolve("visits 2026-01-01"), "is not pending: it was released"),
    ):
        with pytest.raises((errors.InvalidArgument, errors.InvalidPrice)) as refused:
            missing()
        assert words in str(refused.value)


def test_a_batch_is_a_list(budget):
    queries = [asked(budget), dp.protect(ROWS, unit="id", budget=budget).count(max_rows=2)]
    first, second = budget.plan(queries, epsilon=1).release(name="both")
    kept = budget.answer("both")
    for one, out in zip(kept, (first, second), strict=True):
        assert one.table.equals(out.to_polars())
        assert one.certificate() == out.certificate()


def test_a_correction_says_what_it_corrects_and_why(budget):
    asked(budget).release(epsilon=1, name="xt v1")
    said = {"name": "xt v2", "supersedes": "xt v1", "because": "the first file lacked a day"}
    out = asked(budget).release(epsilon=1, **said)
    words = "Takes the place of 'xt v1': the first file lacked a day"
    for release in (out, asked(budget).release(epsilon=1, **said), budget.answer("xt v2")):
        assert words in release.report()
        assert words in html.unescape(release.report().to_html())
    assert "'xt v2' has taken the place" in repr(budget.answer("xt v1"))
    assert "'xt v2' has taken the place" in budget.answer("xt v1").report()
    assert budget.spent.epsilon == 2
    with pytest.raises(errors.ReleaseMismatch, match="supersedes"):
        asked(budget).release(epsilon=1, **{**said, "because": "another reason"})
    with pytest.raises(errors.ReleaseMismatch, match="supersedes"):
        asked(budget).release(epsilon=1, name="xt v2")


def test_the_history_says_which_release_a_line_corrects(budget, tmp_path):
    """Each line names the one that it corrects, whatever became of it, also
    where the ledger is opened again.
    """
    rows = dp.protect(ROWS, unit="id", budget=budget, max_rows=2)
    rows.count().release(epsilon=1, name="v1")
    for name, before in (("v2", "v1"), ("v3", "v2")):
        rows.count().release(epsilon=1, name=name, supersedes=before, because="a day was missing")
    # the stored answer
    rows.count().release(epsilon=1, name="v3", supersedes="v2", because="a day was missing")
    rows.count().release(
        epsilon=1, name="v3", supersedes="v2", because="a day was missing", refresh=True
    )
    rows.count().release(epsilon=1)
    told = [("v1", None), ("v2", "v1"), ("v3", "v2"), ("v3", "v2"), (None, None)]
    assert [(line.name, line.supersedes) for line in budget.history()] == told
    plan = {"supersedes": {"name": "v3", "because": "x"}}
    killed = budget.charge(
        dp.budget.Loss.none(), "unit 'id', add-remove", "count()", name="v4", plan=plan
    )
    assert budget.history()[-1][6:8] == ("pending", killed.number)
    assert budget.history()[-1].supersedes == "v3"
    budget.fail(killed)
    assert (budget.history()[-1].status, budget.history()[-1].supersedes) == ("failed", "v3")
    if budget.name is not None:
        again = dp.Ledger(tmp_path / "a").budget("b")
        assert [line.supersedes for line in again.history()] == [before for _, before in told] + [
            "v3"
        ]


@pytest.mark.parametrize(
    "said",
    [
        {"name": "v2", "supersedes": "nobody", "because": "x"},
        {"name": "v2", "supersedes": "v1"},
        {"name": "v2", "because": "x"},
        {"name": "v1", "supersedes": "v1", "because": "x"},
        {"supersedes": "v1", "because": "x"},
        {"name": "v2", "supersedes": "v1", "because": " "},
        {"name": "v2", "supersedes": 1, "because": "x"},
    ],
)
def test_corrections_that_are_none_are_refused(budget, said):
    asked(budget).release(epsilon=1, name="v1")
    with pytest.raises(errors.InvalidArgument):
        asked(budget).release(epsilon=1, **said)
    assert budget.spent.epsilon == 1


# Databases and files


def rows_of(engine):
    with engine.connect() as connection:
        return connection.execute(
            sa.text("SELECT city, release FROM visits ORDER BY release, city")
        ).all()


def test_a_database_gets_each_release_once(budget, tmp_path):
    engine = sa.create_engine(f"sqlite:///{tmp_path}/mart.sqlite")
    for month in ("01", "02", "02", "01"):  # jobs that run again append nothing twice
        asked(budget).release(epsilon=1, name=f"2026-{month}").to_sql(
            "visits", engine, if_exists="append"
        )
    expected = [(city, f"2026-{month}") for month in ("01", "02") for city in ("Bonn", "Kiel")]
    assert rows_of(engine) == expected
    out = asked(budget).release(epsilon=1, name="2026-03")
    with pytest.raises(ValueError, match="visits"):
        out.to_sql("visits", engine)
    with engine.connect() as connection:
        within = connection.begin()
        out.to_sql("visits", connection, if_exists="append")
        within.rollback()
    assert rows_of(engine) == expected
    budget.answer("2026-03").to_sql(
        "visits", f"sqlite:///{tmp_path}/mart.sqlite", if_exists="replace"
    )
    assert rows_of(engine) == [("Bonn", "2026-03"), ("Kiel", "2026-03")]
    for connection, how in ((engine, "other"), (None, "append"), (3, "append")):
        with pytest.raises(errors.InvalidArgument, match="to_sql"):
            out.to_sql("visits", connection, if_exists=how)
    engine.dispose()


def test_a_table_that_fails_half_way_leaves_what_was_there(budget, tmp_path, monkeypatch):
    import pandas as pd

    engine = sa.create_engine(f"sqlite:///{tmp_path}/mart.sqlite")
    out = asked(budget).release(epsilon=1, name="2026-01")
    out.to_sql("visits", engine, if_exists="append")
    write = pd.DataFrame.to_sql

    def fails(self, *arguments, **options):
        write(self, *arguments, **options)
        raise OSError("disk full")

    monkeypatch.setattr(pd.DataFrame, "to_sql", fails)
    with pytest.raises(OSError, match="disk full"):
        out.to_sql("visits", engine, if_exists="append")
    assert rows_of(engine) == [("Bonn", "2026-01"), ("Kiel", "2026-01")]
    engine.dispose()


@pytest.mark.parametrize("ending", ["csv", "parquet", "html", "tex", "xlsx"])
def test_a_file_is_written_whole_or_not_at_all(budget, tmp_path, monkeypatch, ending):
    from dpframe.release.shown import files

    out, path = asked(budget).release(epsilon=1), tmp_path / f"out.{ending}"
    write = {"xlsx": out.to_excel, "tex": out.to_latex}.get(ending) or getattr(out, f"to_{ending}")
    write(path)
    before = path.read_bytes()
    path.chmod(0o640)
    write(str(path))
    assert path.stat().st_mode & 0o777 == 0o640

    def fails(*_):
        raise OSError("disk full")

    monkeypatch.setattr(files.os, "fsync", fails)
    with pytest.raises(OSError, match="disk full"):
        write(path)
    assert path.exists()
    assert ending == "xlsx" or path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith(".")] == []
    with pytest.raises(OSError, match="nowhere"):
        write(tmp_path / "nowhere" / f"out.{ending}")
