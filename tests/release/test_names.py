"""Named releases: an answer that was paid once is given again, free, and drawn
once; another question is refused.
"""

import datetime as dt
import io
import os
import subprocess
import sys
import warnings

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine, errors
from dpframe.budget import Ledger, fingerprint
from dpframe.plan import described
from dpframe.release import paying, run
from dpframe.release.kinds import answers as tables
from dpframe.release.stored import Answer, packed, unpacked
from inside import question_of

ROWS = {
    "id": [1, 1, 2, 3, 3],
    "city": ["a", "b", "a", "b", "b"],
    "x": [1.0, 2.0, 3.0, 4.0, None],
    "day": [dt.date(2026, 1, 1)] * 5,
}


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "study.sqlite")


def asked(budget, table=None, limit=2, bins=(0, 2, 5)):
    frame = dp.protect(pl.DataFrame(ROWS) if table is None else table, unit="id", budget=budget)
    frame = (
        frame.filter((dp.col("x") > 0) | (dp.col("city") == "b"))
        .clip("x", 0, 10)
        .cut("x", bins, into="class")
    )
    return frame.group_by(
        "city", "class", keys={"city": ["a", "b"]}, max_groups=limit, max_rows_per_group=1
    ).agg(n=dp.count(), mean=dp.mean("x"))


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_asking_again_gives_the_stored_table_for_free(ledger, kind):
    budget = ledger.budget("visits", epsilon=1)
    first = asked(budget, kind(ROWS)).release(epsilon=0.5, name="daily")
    spent = budget.spent
    again = asked(Ledger(ledger._opened[0]).budget("visits"), kind(ROWS)).release(
        epsilon=0.5, name="daily"
    )
    assert budget.spent == spent
    assert again.to_polars().equals(first.to_polars())
    assert again.accuracy().equals(first.accuracy())
    assert type(again.table) is type(first.table)
    assert (again.when, again.cost) == (first.when, first.cost)
    told = f"Stored answer of {first.when:%Y-%m-%d %H:%M} UTC, nothing charged."
    assert again.report().to_dict() == {**first.report().to_dict(), "stored": told}
    assert told in repr(again)
    assert told in again._repr_html_()
    assert told in again.report()
    assert told not in repr(first) + first._repr_html_() + first.report()
    assert again.noise.equals(first.noise)


def test_the_stored_answer_reads_no_row_and_draws_no_noise(ledger, monkeypatch):
    budget = ledger.budget("visits", epsilon=1)
    asked(budget).release(epsilon=0.5, name="daily")

    def never(*_):
        raise AssertionError("rows were read, or noise was drawn")

    monkeypatch.setattr(engine, "totals", never)
    monkeypatch.setattr(tables, "drawn_table", never)
    asked(budget).release(epsilon=0.5, name="daily")


def test_a_script_that_is_run_again_asks_the_same_question(tmp_path):
    """In another process, with other hash seeds."""
    script = f"""
import polars as pl, dpframe as dp
budget = dp.Ledger({str(tmp_path / "study.sqlite")!r}).budget("visits", epsilon=1)
frame = pl.DataFrame({{"id": [1, 2], "city": ["a", "b"]}}).dp(unit="id", budget=budget)
query = frame.filter(dp.col("city") != "c").group_by("city", keys=["a", "b"], max_groups=1)
out = query.count_units().release(epsilon=0.5, name="daily")
print(out.table["count_units"].to_list(), budget.spent.epsilon)
"""
    runs = [
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in "12"
    ]
    assert runs[0] == runs[1]
    assert runs[0].endswith("0.5\n")


OTHERS = [
    (lambda b: asked(b, limit=1).release(epsilon=0.25, name="daily"), r"max_groups: 2, 1"),
    (
        lambda b: asked(b, bins=(0, 3, 5)).release(epsilon=0.25, name="daily"),
        r"cut\('x', \[0, 3, 5\]\)",
    ),
    (lambda b: asked(b).release(epsilon=0.125, name="daily"), r"price.epsilon: 1/4, 1/8"),
    (
        lambda b: asked(b).release(epsilon=0.25, noise="laplace", name="daily"),
        r"noise: auto, laplace",
    ),
    (
        lambda b: asked(b, pl.DataFrame({**ROWS, "x": [1] * 5})).release(
            epsilon=0.25, name="daily"
        ),
        r"columns.x: Float64",
    ),
]


@pytest.mark.parametrize(("other", "words"), OTHERS)
def test_another_question_of_the_same_name_is_refused_and_says_what_differs(ledger, other, words):
    budget = ledger.budget("visits", epsilon=1)
    asked(budget).release(epsilon=0.25, name="daily")
    spent = budget.spent
    with pytest.raises(errors.ReleaseMismatch, match=words):
        other(budget)
    assert budget.spent == spent


def test_refresh_pays_and_draws_again(ledger):
    budget = ledger.budget("visits", epsilon=1)
    query = dp.protect(pl.DataFrame(ROWS), unit="id", budget=budget).count_units()
    drawn = {query.release(epsilon=0.01, name="daily", refresh=True).value for _ in range(30)}
    assert len(drawn) > 1
    assert budget.spent.epsilon == 0.3
    last = query.release(epsilon=0.01, name="daily").value
    assert last in drawn
    assert query.release(epsilon=0.01, name="daily").value == last


def test_what_no_name_was_given_is_paid_each_time_and_stored(ledger):
    budget = ledger.budget("visits", epsilon=1)
    for _ in range(2):
        asked(budget).release(epsilon=0.25)
    assert budget.spent.epsilon == 0.5
    assert [c.status for c in budget.history()] == ["released", "released"]
    ledger.verify()


def test_the_charge_comes_before_the_rows_and_the_store_before_the_answer(ledger, monkeypatch):
    budget, order = ledger.budget("visits", epsilon=1), []
    charge, store, totals = budget.charge, budget.store, engine.totals
    monkeypatch.setattr(budget, "charge", lambda *a, **k: order.append("charge") or charge(*a, **k))
    monkeypatch.setattr(budget, "store", lambda *a, **k: order.append("store") or store(*a, **k))
    monkeypatch.setattr(engine, "totals", lambda *a, **k: order.append("read") or totals(*a, **k))
    asked(budget).release(epsilon=0.25)
    assert order == ["charge", "read", "store"]


def test_a_table_that_cannot_be_stored_is_not_given(ledger, monkeypatch):
    budget = ledger.budget("visits", epsilon=1)

    def full(*_):
        raise errors.LedgerUnavailable("The disk is full.")

    monkeypatch.setattr(budget, "store", full)
    with pytest.raises(errors.LedgerUnavailable):
        asked(budget).release(epsilon=0.25)
    assert budget.history()[0].status == "pending"


def test_a_ledger_is_no_budget(ledger):
    with pytest.raises(errors.InvalidArgument, match=r"ledger.budget"):
        dp.protect(pl.DataFrame(ROWS), unit="id", budget=ledger)


def test_a_description_holds_no_row():
    secret = pl.DataFrame(
        {"id": ["Ann Smith"], "city": ["Bonn-4711"], "x": [47.11], "day": [dt.date(1947, 1, 1)]}
    )
    said = str(described(question_of(asked(None, secret))))
    assert not any(text in said for text in ("Ann", "4711", "47.11", "1947"))
    assert (
        described(question_of(asked(None, secret)))["ask"]
        == described(question_of(asked(None)))["ask"]
    )


def test_long_lists_of_keys_are_described_by_their_hash():
    def keys(last):
        frame = dp.protect(pl.DataFrame(ROWS), unit="id")
        return described(
            question_of(
                frame.group_by(
                    "city", keys=[*map(str, range(500)), last], max_groups=1
                ).count_units()
            )
        )

    assert len(str(keys("x"))) < 2000
    assert keys("x") == keys("x") != keys("y")


def test_a_name_stands_for_every_value_of_a_list_also_where_people_read_the_first():
    def question(towns, edges):
        frame = dp.protect(pl.DataFrame(ROWS), unit="id")
        steps = frame.filter(dp.col("city").is_in(towns)).with_columns(
            away=~dp.col("city").is_in(towns)
        )
        return steps.cut("x", edges).count(max_rows=1)

    towns, edges = list("abcdefgh"), list(range(8))
    first, *others = [
        question(towns, edges),
        question([*towns[:7], "i"], edges),
        question(towns, [*edges[:7], 9]),
        question([str(n) for n in range(8)], edges),
    ]
    assert str(first.explain()) == str(others[0].explain()) == str(others[1].explain())
    names = [fingerprint(described(question_of(query))) for query in (first, *others)]
    assert len(set(names)) == 4
    assert described(question_of(first))["steps"][0][""] == f"filter(city.is_in({towns}))"


def test_a_set_is_the_same_question_in_every_process():
    frame = dp.protect(pl.DataFrame({"u": [1], "x": [1], "y": [1]}), unit="u")
    # numbers show it here; the order of texts is another one in each process
    assert list({1, 8}) == [8, 1]
    for ask in (
        lambda listed: frame.group_by("x", keys=listed, max_rows=1).count(),
        lambda listed: frame.group_by("x", "y", keys={"x": listed, "y": [1]}, max_rows=1).count(),
        lambda listed: frame.group_by(
            "x", "y", keys=type(listed)(zip(listed, listed, strict=True)), max_rows=1
        ).count(),
        lambda listed: frame.filter(dp.col("x").is_in(listed)).count(max_rows=1),
        lambda listed: frame.mode("x", keys=listed, max_rows=1),
        lambda listed: frame.top_k("x", 2, keys=listed, max_rows=1),
    ):
        names = {
            fingerprint(described(question_of(ask(listed))))
            for listed in ({1, 8}, frozenset((8, 1)), [1, 8])
        }
        assert len(names) == 1
    mixed = frame.mode("x", keys={8, None, 1}, max_rows=1)
    assert fingerprint(described(question_of(mixed))) == fingerprint(
        described(question_of(frame.mode("x", [1, 8, None], max_rows=1)))
    )


def test_tables_survive_bytes():
    long = pl.DataFrame(
        {
            "k": pl.Series(["a", None], dtype=pl.Enum(["a"])),
            "d": [dt.date(2026, 1, 1), None],
            "n": [1, 2],
        }
    )
    answers = [
        Answer(long, {"n": pl.Series([1.5, 2.5]).to_numpy()}),
        Answer(pl.DataFrame({"n": [3]}), {}),
    ]
    back = unpacked(packed(answers))
    assert back[0].long.equals(long)
    assert back[0].long.schema == long.schema
    assert list(back[0].parts["n"]) == [1.5, 2.5]
    assert back[1].long.equals(answers[1].long)
    assert back[1].parts == {}


def test_tables_of_earlier_versions_are_read():
    """They are an Arrow table whose cells are streams."""
    streams = []
    for table in (pl.DataFrame({"k": ["a", "b"], "n": [1, 2]}), pl.DataFrame({"n": [1.5, 2.5]})):
        buffer = io.BytesIO()
        table.write_ipc_stream(buffer)
        streams.append(buffer.getvalue())
    outer = io.BytesIO()
    columns = {"table": [streams[0]], "parts": [streams[1]], "rows": [2]}
    pl.DataFrame(
        columns, {"table": pl.Binary, "parts": pl.Binary, "rows": pl.Int64}
    ).write_ipc_stream(outer)
    (answer,) = unpacked(outer.getvalue())
    assert answer.long.to_dict(as_series=False) == {"k": ["a", "b"], "n": [1, 2]}
    assert list(answer.parts["n"]) == [1.5, 2.5]


# Which rows a name is about


def test_the_name_of_january_is_not_given_february(ledger):
    """A fixed name on February's rows once gave January's table."""
    budget = ledger.budget("visits", epsilon=1)

    def monthly(month):
        return (
            pd.DataFrame(ROWS)
            .dp(unit="id", budget=budget, data=month)
            .count_units()
            .release(epsilon=0.1, name="visits")
        )

    first = monthly("2026-01")
    assert monthly("2026-01").value == first.value
    with pytest.raises(errors.ReleaseMismatch, match=r"data.*2026-01, 2026-02"):
        monthly("2026-02")
    assert budget.spent.epsilon == 0.1


def test_the_rows_may_be_named_at_the_release(ledger):
    query = dp.protect(
        pl.DataFrame(ROWS), unit="id", budget=ledger.budget("visits", epsilon=1)
    ).count_units()
    query.release(epsilon=0.1, name="visits", data=dt.date(2026, 1, 1))
    with pytest.raises(errors.ReleaseMismatch, match="2026-01-01, 2026-02-01"):
        query.release(epsilon=0.1, name="visits", data=dt.date(2026, 2, 1))
    assert query.release(epsilon=0.1, name="visits", data=dt.date(2026, 1, 1)).cost.epsilon == 0.1


def newer(path, rows):
    """The file with other rows, as if it were written a day later."""
    before = os.stat(path)
    pl.DataFrame(rows).write_parquet(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 86_400 * 10**9))


@pytest.mark.parametrize("way", ["scan", "path"])
def test_a_file_that_was_replaced_under_the_same_path_is_noticed(ledger, tmp_path, way):
    budget, path = ledger.budget("visits", epsilon=1), tmp_path / "visits.parquet"
    pl.DataFrame(ROWS).write_parquet(path)

    def asked_of_file():
        said = {} if way == "scan" else {"data": path}
        table = pl.scan_parquet(path) if way == "scan" else pd.read_parquet(path)
        return (
            dp.protect(table, unit="id", budget=budget, **said)
            .count_units()
            .release(epsilon=0.1, name="visits")
        )

    first = asked_of_file()
    assert asked_of_file().value == first.value
    newer(path, {**ROWS, "id": [7, 8, 9, 10, 11]})
    with pytest.raises(
        errors.ReleaseMismatch, match=r"visits\.parquet of .* UTC .*visits\.parquet of "
    ):
        asked_of_file()
    assert budget.spent.epsilon == 0.1


def test_what_is_kept_of_a_file_says_nothing_of_its_rows(ledger, tmp_path):
    """Two files of other sizes, at one time, are one source:
    how large a file is counts its rows.
    """
    path, seen = tmp_path / "visits.parquet", []
    for rows in (ROWS, {name: values * 1000 for name, values in ROWS.items()}):
        pd.DataFrame(rows).to_parquet(path)
        os.utime(path, ns=(10**18, 10**18))
        frame = dp.protect(pl.scan_parquet(path).filter(pl.col("id") > 0), unit="id")
        seen.append(paying.described_origin(question_of(frame.count_units())))
    assert seen[0] == seen[1]
    assert seen[0]["data"][0][""].startswith(f"{path} of 2001-09-09 01:46:40")


def test_the_files_of_a_folder_are_told_by_their_names_and_times(tmp_path):
    for day in (1, 2):
        pl.DataFrame(ROWS).write_parquet(tmp_path / f"day-{day}.parquet")
    frame = dp.protect(pl.DataFrame(ROWS), unit="id", data=tmp_path)
    before = paying.described_origin(question_of(frame.count_units()))
    assert before == paying.described_origin(
        question_of(frame.filter(dp.col("x") > 0).count_units())
    )
    newer(tmp_path / "day-2.parquet", ROWS)
    assert before != paying.described_origin(question_of(frame.count_units()))


@pytest.mark.parametrize("data", ["", " ", 1.5, True, b"x", ["a"], "a\nb", pl.DataFrame(ROWS)])
def test_what_names_no_rows_is_refused(data):
    with pytest.raises(errors.InvalidArgument, match="data="):
        dp.protect(pl.DataFrame(ROWS), unit="id", data=data)


def test_a_stored_answer_is_logged(ledger, caplog):
    query = dp.protect(
        pl.DataFrame(ROWS), unit="id", budget=ledger.budget("visits", epsilon=1)
    ).count_units()
    with caplog.at_level("INFO", logger="dpframe"):
        query.release(epsilon=0.1, name="visits")
        assert "Stored answer" not in caplog.text
        query.release(epsilon=0.1, name="visits")
    assert "visits: Stored answer of" in caplog.text
    assert "nothing charged" in caplog.text


# After a crash


def killed(query, monkeypatch, **said):
    """A release that is interrupted between its charge and its answer."""
    with monkeypatch.context() as patch:
        patch.setattr(engine, "totals", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            query.release(epsilon=0.1, name="visits", **said)


@pytest.fixture
def query(ledger):
    return dp.protect(
        pl.DataFrame(ROWS), unit="id", budget=ledger.budget("visits", epsilon=1)
    ).count_units()


def test_the_next_run_says_how_to_go_on_and_may_be_told_to_pay_again(query, monkeypatch):
    budget = query._budget
    killed(query, monkeypatch)
    with pytest.raises(
        errors.ReleasePending, match=r"stopped here: .* 'retry' pays again\..* again costs ε = 0\.1"
    ):
        query.release(epsilon=0.1, name="visits")
    assert [line.status for line in budget.history()] == ["pending"]
    value = query.release(epsilon=0.1, name="visits", on_pending="retry").value
    assert [line.status for line in budget.history()] == ["lost", "released"]
    assert budget.spent.epsilon == 0.2
    assert query.release(epsilon=0.1, name="visits", on_pending="retry").value == value
    assert budget.spent.epsilon == 0.2


def test_a_release_that_is_resolved_is_paid_again_by_the_next_run(query, ledger, monkeypatch):
    budget = query._budget
    killed(query, monkeypatch)
    assert ledger.resolve("visits", "visits", by="Ada").status == "lost"
    assert budget.entries()[-1].body == {"about": 2, "by": "Ada"}
    query.release(epsilon=0.1, name="visits")
    assert [line.status for line in budget.history()] == ["lost", "released"]
    ledger.verify()
    for other in ("visits", 2, "nothing", 17):
        with pytest.raises(errors.InvalidArgument, match="resolve"):
            budget.resolve(other)


def test_an_answer_that_comes_after_its_release_was_given_up_is_not_shown(
    query, ledger, monkeypatch
):
    """The first run was slow, not dead: nobody may see two answers for what one of them paid."""
    drawn = run._answer_all

    def slow(*arguments):
        answer = drawn(*arguments)
        ledger.resolve("visits", "visits")
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(run, "_answer_all", slow)
        with pytest.raises(errors.ReleaseLost, match="not stored"):
            query.release(epsilon=0.1, name="visits")
    assert [line.status for line in query._budget.history()] == ["lost"]
    query.release(epsilon=0.1, name="visits")
    ledger.verify()


def test_a_refused_retry_changes_nothing(tmp_path, monkeypatch):
    for budget in (
        dp.Budget(epsilon=0.15),
        Ledger(tmp_path / "small.sqlite").budget("b", epsilon=0.15),
    ):
        query = dp.protect(pl.DataFrame(ROWS), unit="id", budget=budget).count_units()
        killed(query, monkeypatch)
        with pytest.raises(errors.BudgetExceeded):
            query.release(epsilon=0.1, name="visits", on_pending="retry")
        assert [line.status for line in budget.history()] == ["pending"]


@pytest.mark.parametrize("label", [None, "January"])
def test_a_stored_answer_warns_at_the_ask_where_nothing_says_which_rows_it_is_about(ledger, label):
    """Once for each ask, whatever the rows are now;
    with data= a name of other rows is refused in place of it.
    """
    budget = ledger.budget("visits", epsilon=2)

    def ask(table, data=label):
        frame = dp.protect(table, unit="id", budget=budget, max_rows=2, data=data)
        return frame.count().release(epsilon=0.5, name="visits")

    first = ask(pl.DataFrame(ROWS))
    for table in (pl.DataFrame(ROWS), pl.DataFrame(ROWS).head(1)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert ask(table).value == first.value
        assert len(caught) == (label is None)
        for warning in caught:
            assert warning.category is errors.StoredAnswerWarning
            assert warning.filename == __file__
            assert "refresh=True" in str(warning.message)
            assert "data=" in str(warning.message)
    if label is not None:
        with pytest.raises(errors.ReleaseMismatch):
            ask(pl.DataFrame(ROWS), "February")
