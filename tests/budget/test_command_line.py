"""The command line: a ledger as a page, releases that were killed, a reader that goes away."""

import argparse
import datetime as dt
import json
import re
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from html.parser import HTMLParser

import polars as pl
import pytest

import dpframe as dp
from dpframe.__main__ import main
from dpframe.budget import Ledger, Loss, NamedPeriod, account
from dpframe.budget.entries import texts_of
from dpframe.cli.running import _parser
from inside import book_of

WHO = "unit 'id', add-remove"
HOSTILE = "<script>alert('x')</script> & \"y\""


@pytest.fixture
def ledger(tmp_path):
    """Two budgets: charges of all kinds, an allowance, names that are not to be trusted."""
    ledger = Ledger(tmp_path / "study.sqlite")
    budget = ledger.budget(HOSTILE, epsilon=2, delta=1e-6)
    for name in (HOSTILE, "pending"):
        receipt = budget.charge(
            Loss.charged(Fraction(1, 4), Fraction(0)), WHO, f"count() {HOSTILE}", name=name, plan={}
        )
        if name == HOSTILE:
            budget.store(receipt, b"", {})
    nightly = budget.allocate(nights=30, epsilon=1, delta=1e-6)
    receipt = nightly.charge(Loss.charged_rho(Fraction(1, 10**6), Fraction(0)), WHO, "count()")
    nightly.store(receipt, b"", {})
    ledger.budget("other", rho=0.5)
    return ledger


class Tags(HTMLParser):
    """Every tag and attribute of a page, and whether tags are closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.attributes = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        if tag not in ("meta", "rect", "line", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_ledger_as_one_page_that_loads_and_runs_nothing(ledger, tmp_path, capsys):
    assert (
        main(["ledger", "report", str(ledger._opened[0]), "--html", str(tmp_path / "out.html")])
        == 0
    )
    assert "out.html" in capsys.readouterr().out
    page = (tmp_path / "out.html").read_text()
    tags = Tags(page)
    assert tags.open == []
    assert not {"script", "link", "img", "iframe", "a", "object"} & set(tags.tags)
    assert not [
        name for name, value in tags.attributes if name.startswith("on") or "//" in (value or "")
    ]
    assert "url(" not in page
    assert page.count("&lt;script&gt;") >= 3
    for words in (
        "ε = 1.5",
        "30 nights from",
        "pending",
        "released",
        "open",
        "ρ = 1e-06 of #",
        "there were no regular charges",
    ):
        assert words in page, words
    assert tags.tags.count("svg") == 2


def test_the_page_is_printed_where_no_file_is_named(ledger, capsys):
    assert main(["ledger", "report", str(ledger._opened[0])]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")


def test_a_forecast_is_printed(ledger, capsys):
    assert main(["ledger", "forecast", str(ledger._opened[0])]) == 0
    assert "allowance nightly: 30 nights" in capsys.readouterr().out


def test_a_release_that_was_killed_is_marked_as_lost(ledger, capsys):
    path = str(ledger._opened[0])
    assert main(["ledger", "resolve", path, "pending"]) == 1
    assert "--budget NAME" in capsys.readouterr().err
    assert main(["ledger", "resolve", path, "pending", "--budget", HOSTILE, "--by", "Ada"]) == 0
    assert "marked as lost; its charge stays" in capsys.readouterr().out
    assert [line.status for line in ledger.budget(HOSTILE).history()] == [
        "released",
        "lost",
        "open",
        "released",
    ]
    assert main(["ledger", "resolve", path, "pending", "--budget", HOSTILE]) == 1
    assert "not pending" in capsys.readouterr().err
    assert main(["ledger", "resolve", path, "3", "--budget", HOSTILE]) == 1
    ledger.verify()


def test_a_reader_that_goes_away_is_no_error(ledger):
    """`ledger export | head`, on a ledger that is longer than a pipe holds."""
    budget = ledger.budget("other")
    with book_of(budget).write() as page:
        for _ in range(400):
            page.append(
                "charge",
                {
                    "loss": texts_of(page.spent),
                    "subject": WHO,
                    "query": "count() " * 60,
                    "events": [],
                },
                dp.budget.account.now(),
            )
    command = [sys.executable, "-m", "dpframe", "ledger", "export", str(ledger._opened[0])]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout.readline() == "{\n"
        job.stdout.close()
        assert job.stderr.read() == ""
        assert job.wait(120) == 0


def test_version_and_help(capsys):
    for option, words in (("--version", r"dpframe \d+\.\d+\.\d+"), ("--help", "ledger")):
        with pytest.raises(SystemExit) as stopped:
            main([option])
        assert stopped.value.code == 0
        assert re.search(words, capsys.readouterr().out)


def test_every_command_speaks_json_and_says_in_its_exit_code_how_it_went(ledger, tmp_path, capsys):
    path = str(ledger._opened[0])

    def said(*words):
        code = main(["ledger", words[0], path, *words[1:], "--json"])
        return json.loads(capsys.readouterr().out), code

    shown, code = said("show")
    assert (code, shown["budgets"][HOSTILE]["limit"]) == (0, {"epsilon": 2.0, "delta": 1e-6})
    assert [charge["status"] for charge in shown["budgets"][HOSTILE]["charges"]][:2] == [
        "released",
        "pending",
    ]
    assert said("verify")[0]["entries"]["other"] == 1
    assert set(said("export")[0]) == {HOSTILE, "other"}
    assert said("export", "--format", "csv")[0].startswith("budget,number")
    assert said("report", "--html", str(tmp_path / "out.html"))[0]["budgets"] == [HOSTILE, "other"]
    assert said("forecast")[0]["budgets"][HOSTILE]["words"]
    ledger.budget(HOSTILE).fail(ledger.budget(HOSTILE).charge(Loss.none(), WHO, "count()"))
    assert said("acknowledge", "--budget", HOSTILE, "--by", "Ada") == (
        {"acknowledged": 1, "budget": HOSTILE},
        0,
    )
    assert said("acknowledge", "--budget", "nobody")[1] == 1
    assert said("resolve", "pending", "--budget", HOSTILE)[0]["name"] == "pending"
    assert said("resolve", "pending", "--budget", HOSTILE) == (
        {
            "error": "InvalidArgument",
            "message": "resolve: release 'pending' is not pending: it was marked as lost before.",
        },
        1,
    )
    other = ledger.budget("third", epsilon=1)
    for share in ("bo", "ana"):
        other.allocate(name=share, epsilon=0.25)
    moved, code = said("transfer", "bo", "ana", "--epsilon", "0.125", "--budget", "third")
    assert (code, moved["moved"]["epsilon"], moved["remaining"]["epsilon"]) == (0, 0.125, 0.125)
    assert said("close", "ana", "--budget", "third")[0]["returned"]["epsilon"] == 0.375
    assert other.remaining.epsilon == 0.875
    assert said("close", "ana", "--budget", "third")[1] == 1
    for words, code in (
        (("show", "--warn-below", "5%"), 0),
        (("show", "--warn-below", "99%"), 3),
        (("forecast", "--warn-below", "7d"), 3),  # a quarter of the limit on the first day
        (("forecast", "--warn-below", "1h"), 0),
        (("show", "--warn-below", "99%", "--budget", "other"), 0),
        (("forecast", "--warn-below", "7d", "--budget", "other"), 0),
        (("show", "--budget", "nobody"), 1),
    ):
        assert said(*words)[1] == code, words


def _options(parser, *words):
    """Every option that reads its value, with the words of its command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, command in action.choices.items():
                yield from _options(command, *words, verb)
        elif action.option_strings and action.type is not None:
            yield words, action.option_strings[0]


NUMBERS = [*_options(_parser())]
REST = {
    "transfer": ("bo", "ana", "--budget", "third"),
    "restore": ("NEW", "--by", "Ada", "--why", "a test"),
    "adopt": ("--by", "Ada", "--why", "a test"),
    "caps": ("--budget", "third"),
    "--delta": ("--epsilon", "0.125"),
}
NONSENSE = (
    "-1",
    "nan",
    "inf",
    "-inf",
    "1e999",
    "",
    "much",
    "-1%",
    "101%",
    "nan%",
    "-1d",
    "visits=much",
    "third=-1",
)
SENSE = ("1", "1e-7", "5%", "1d", "2026-01-31", "all")


@pytest.mark.one_in(10)
@pytest.mark.parametrize(("words", "option"), NUMBERS)
def test_a_value_that_makes_no_sense_is_refused_by_every_option(words, option, ledger, tmp_path):
    """By options that are numbers, parts or times:
    nothing is written, and no check is passed for want of a floor.
    """
    third = ledger.budget("third", epsilon=5, delta=1e-6)
    for name in ("bo", "ana"):
        third.allocate(name=name, epsilon=1, delta=1e-7)
    (tmp_path / "p.toml").write_text("unit = 'id'")
    (tmp_path / "t.csv").write_text("id\n1\n")
    ledger.backup(tmp_path / "backup.sqlite")
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    place = {"restore": ["backup.sqlite"], "adopt": ["backup.sqlite"], "check": ["p.toml", "t.csv"]}
    names = [str(tmp_path / name) for name in place.get(words[-1], ["study.sqlite"])]
    rest = [word.replace("NEW", str(tmp_path / "new.sqlite")) for word in REST.get(words[-1], ())]

    def code(value):
        try:
            return main([*words, *names, *rest, *REST.get(option, ()), f"{option}={value}"])
        except SystemExit as stopped:
            return stopped.code

    assert [value for value in NONSENSE if code(value) not in (1, 2)] == []
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files
    # it is the value that was refused
    assert option == "--rho" or any(code(value) in (0, 3) for value in SENSE)


def test_options_of_numbers_are_found():
    found = {option for _, option in NUMBERS}
    assert found >= {
        "--min-rows",
        "--max-unlisted",
        "--warn-below",
        "--warn-stuck",
        "--since",
        "--day",
        "--epsilon",
    }


@pytest.mark.parametrize(
    ("change", "least"),
    [
        ("at = 'never'", 4),
        pytest.param("body = '{}'", 5, marks=pytest.mark.long),
        pytest.param('body = \'{"statement": "AAAA"}\'', 2, marks=pytest.mark.long),
    ],
)
def test_a_value_that_nobody_wrote_is_one_line_of_error(change, least, ledger, capsys):
    """Commands that read entries refuse one whose time, price or statement is none,
    and say what to do in one line.
    """
    budget, commands = ledger.budget("other"), [("show",), ("report",), ("forecast",)]
    commands += [("export", "--format", form) for form in ("json", "jsonl", "csv", "dp_accounting")]
    budget.store(
        budget.charge(Loss.charged_rho(Fraction(1, 9), Fraction(0)), WHO, "count()"), b"", {}
    )
    with closing(sqlite3.connect(ledger.where)) as connection, connection:
        connection.execute(
            f"UPDATE dpframe_entries SET {change} WHERE budget = 'other' AND number > 1"
        )
    codes = [main(["ledger", command, str(ledger.where), *more]) for command, *more in commands]
    said = capsys.readouterr().err.splitlines()
    assert codes.count(1) == len(said) >= least
    assert all("ledger.verify() names what was changed" in line for line in said)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("policy", "check", "p.toml", "t.csv", "--like", ""), 1, "cannot be read"),
        (("check", "p.toml", "--table", ""), 2, "directory"),
        (("check", "p.toml", "--ledger", ""), 2, "directory"),
        (("ledger", "caps", "LEDGER", "--budget", "other", "--zone", "UTC"), 1, "--day 0.5"),
    ],
)
def test_an_option_that_says_nothing_is_refused(
    words, code, told, ledger, tmp_path, monkeypatch, capsys
):
    """As of a variable of the shell that is not set:
    nothing is compared, or changed, in silence.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text("{}" if words[0] == "check" else "unit = 'id'")
    (tmp_path / "t.csv").write_text("id\n1\n")
    assert main([word.replace("LEDGER", str(ledger.where)) for word in words]) == code
    said = capsys.readouterr()
    assert told in said.out + said.err
    assert len((said.out + said.err).splitlines()) == 1


def test_what_is_stuck_is_an_alarm_until_somebody_ends_it(ledger, capsys, monkeypatch):
    """A release that is pending for longer than was said, and failures;
    each with the command that ends it.
    """
    budget, path = ledger.budget(HOSTILE), str(ledger.where)

    def stuck(since="1h"):
        code = main(["ledger", "show", path, "--warn-stuck", since, "--json"])
        return code, json.loads(capsys.readouterr().out)["stuck"]

    assert stuck() == (0, [])  # a release that runs is no alarm
    budget.fail(budget.charge(Loss.none(), WHO, "count()"))
    (_, (failed,)), later = stuck(), dt.datetime.now(dt.UTC) + dt.timedelta(hours=2)
    assert "ledger acknowledge" in failed
    monkeypatch.setattr("dpframe.budget.account.now", lambda: later)
    assert stuck("3h") == (3, [failed])
    code, lines = stuck()
    assert code == 3
    assert lines[1] == failed
    for line in lines:
        words = shlex.split(line[line.index("python -m dpframe ") :])[3:]
        assert main([word.replace("NAME", "Ada") for word in words]) == 0
    capsys.readouterr()
    assert stuck() == (0, [])


def test_a_budget_of_a_year_that_is_over_is_no_alarm(tmp_path, capsys):
    ledger = Ledger(tmp_path / "years.sqlite")
    for name in ("visits-2013", "visits-9999", "visits"):
        spent = Loss.charged(Fraction(95, 100), Fraction(0))
        ledger.budget(name, epsilon=1, create=True).charge(
            spent, WHO, "count()", name="all", plan={}
        )
    for words in (("show", "--warn-below", "10%"), ("forecast", "--warn-below", "7d")):
        assert main(["ledger", words[0], str(ledger.where), *words[1:], "--json"]) == 3
        below = json.loads(capsys.readouterr().out)["below"]
        assert [one if isinstance(one, str) else one[0] for one in below] == [
            "visits",
            "visits-9999",
        ]


def test_an_alarm_is_about_what_parts_have_left_and_not_about_what_was_allocated(
    tmp_path, monkeypatch, capsys
):
    here = [dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)]
    monkeypatch.setattr(account, "now", lambda: here[0])
    ledger = Ledger(tmp_path / "team.sqlite", clock_skew=dt.timedelta(days=90))
    budget = ledger.budget("team", epsilon=4)

    def alarms(verb, least):
        code = main(["ledger", verb, str(ledger.where), "--warn-below", least, "--json"])
        said = json.loads(capsys.readouterr().out)
        return code, said["below"], said.get("parts_below")

    ana, month = budget.allocate(name="ana", epsilon=2), budget.allocate(nights=20, epsilon=2)
    assert alarms("show", "20%") == (0, [], []), "all is allocated, and nothing is spent"
    assert alarms("forecast", "30d") == (0, [], None), "nights end as they were planned"
    ana.charge(Loss.charged(Fraction(199, 100), Fraction(0)), WHO, "count()", name="x", plan={})
    assert alarms("show", "20%") == (3, [], [["team", "allowance ana"]])
    assert alarms("show", "51%")[:2] == (3, ["team"])
    ana.close()
    assert alarms("show", "20%") == (0, [], []), "a closed part is no alarm"
    here[0] += dt.timedelta(days=19)
    month.charge(Loss.charged(Fraction(1, 10), Fraction(0)), WHO, "count()", name="y", plan={})
    assert alarms("show", "1%") == (3, ["team"], []), "nights that are over are not left"


def test_a_witness_that_is_lost_is_replaced_in_a_shell(tmp_path, capsys):
    path, witness = tmp_path / "a" / "study.sqlite", tmp_path / "b" / "witness"
    path.parent.mkdir()
    witness.parent.mkdir()
    Ledger(path, witness=witness).budget("visits", epsilon=1)
    witness.unlink()
    words = ["ledger", "verify", str(path), "--witness", str(witness)]
    assert main(words) == 1
    assert "--new-witness" in capsys.readouterr().err
    assert main([*words, "--new-witness"]) == 0
    assert main(words) == 0


def test_a_forecast_counts_named_days_after_a_catch_up():
    """Thirty nights that were made up for in one morning cost what thirty
    nights cost, not thirty a day.
    """

    def lasting(names):
        budget = dp.Budget(epsilon=10)
        for name in names:
            budget.charge(
                Loss.charged(Fraction(1, 10), Fraction(0)), WHO, "count()", name=name, plan={}
            )
        return budget.forecast()

    caught_up = lasting([f"visits 2026-11-{day:02}" for day in range(1, 31)])
    assert "at 0.1 a day, the mean of the last 30 named days" in repr(caught_up)
    assert caught_up.lasts["budget"] == dt.date(2026, 11, 30) + dt.timedelta(days=70)
    at_once = lasting([f"visits {number}" for number in range(30)])
    assert "at 3 a day" in repr(at_once)
    assert "at 3 a day" in repr(lasting([f"visits 2026-11-{day}, 2026-12-01" for day in range(30)]))
    assert "at 0.3 a day, as on the named day" in repr(
        lasting([f"{kind} 2026-11-01" for kind in "abc"])
    )
    assert "9999" not in repr(lasting(["visits 9999-99-99"]))
    nights = [f"visits 2026-11-{day:02}" for day in range(1, 31)]
    for more in (
        ["a look at the launch"],
        [None],
        ["the month 2026-10"],
    ):  # what is beside the nights is spread over them
        for names in (more + nights, nights + more):
            assert "of the last 30 named days" in repr(lasting(names))
        assert "at 0.1033 a day" in repr(lasting(nights + more))
    # it was paid before the first of them
    assert "at 0.1 a day" in repr(lasting(["a look", *nights]))


def test_a_forecast_counts_named_days_after_a_restore_and_beside_parts(tmp_path):
    """What was counted as lost with a copy has no day, and neither has what a
    part was paid, moves or spends.
    """
    ledger = Ledger(tmp_path / "a.sqlite")
    budget = ledger.budget("visits", epsilon=10)
    for day in range(1, 31):
        loss = Loss.charged(Fraction(1, 10), Fraction(0))
        budget.charge(loss, WHO, "count()", name=f"visits 2026-11-{day:02}", plan={})
    ledger.backup(tmp_path / "b.sqlite")
    again = Ledger.restore(
        tmp_path / "b.sqlite", tmp_path / "c.sqlite", lost={"visits": 1}, by="Ada", why="a test"
    )
    assert "at 0.1 a day, the mean of the last 30 named days" in repr(
        again.budget("visits").forecast()
    )
    ana, bo = (again.budget("visits").allocate(name=name, epsilon=1) for name in ("ana", "bo"))
    ana.charge(Loss.charged(Fraction(1, 10), Fraction(0)), WHO, "count()")
    ana.transfer(bo, epsilon=0.1)
    ana.close()
    assert "at 0.1 a day, the mean of the last 30 named days" in repr(
        again.budget("visits").forecast()
    )


NAMED = {
    "year": (["2024", "2025", "FY2026"], "2030-12-31"),
    "quarter": (["2026-Q1", "2026Q2", "Q3 2026"], "2027-09-30"),
    "month": (["2026-01", "2026_02", "202603"], "2026-07-31"),
    "months by name": (["Jan 2026", "february-2026", "2026 Mar"], "2026-07-31"),
    "week": (["2026-W05", "2026w06", "week 7 2026"], "2026-03-15"),
    "day": (["2026-01-30", "20260131", "01.02.2026"], "2026-02-05"),
    "hour": (["2026-01-31T22", "2026-01-31 23:00", "2026-02-01T00:00:00Z"], "2026-02-01"),
}


@pytest.mark.parametrize("case", NAMED)
def test_a_forecast_counts_the_periods_that_releases_are_named_after(case, ledger):
    """Three periods paid for in one go, at 0.1 each of 0.7, leave four more,
    which follow the last named one.
    """
    (names, last), word = NAMED[case], case.split()[0].removesuffix("s")
    budget = dp.Budget(epsilon=0.7)
    for name in names:
        charged = Loss.charged(Fraction(1, 10), Fraction(0))
        budget.charge(charged, WHO, "count()", name=f"visits_{name}", plan={})
    told = budget.forecast()
    each = "an hour" if word == "hour" else f"a {word}"
    assert f"at 0.1 {each}, the mean of the last 3 named {word}s" in repr(told)
    assert told.lasts["budget"] == dt.date.fromisoformat(last)
    expected = told.table.filter(pl.col("kind") == "expected")
    assert expected["spent"].sum() == pytest.approx(0.4)
    assert expected["day"].is_unique().all()
    assert expected["day"].min() > dp.budget.account.now().date()
    assert told.plot() is not None


@pytest.mark.parametrize(
    "name", ["visits 7", "2026-13-01 x", "ids 12026", "a 2026-01 to 2026-02", "v20261", "abc2026"]
)
def test_names_without_one_period_are_no_periods(name):
    assert NamedPeriod.of(name) is None
