"""What a policy file says, and how one that says something else is refused."""

from __future__ import annotations

import datetime as dt
import hashlib

import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import DpFrameError, InvalidArgument, UnknownColumn, WrongType
from inside import question_of, step_of

TABLE = pl.DataFrame(
    {
        "user": [1, 1, 2],
        "city": ["Bonn", "Kiel", "Ulm"],
        "spend": [3.0, 4.0, 500.0],
        "code": [1, 2, 3],
    }
)


def policy(folder, text):
    path = folder / "visits.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


WRONG = {
    "max_row = 20": r"visits.toml: there is no entry 'max_row'. Did you mean 'max_rows'\?",
    "columns = 20": "there is no entry 'columns'. Entries are unit, people, neighbors, max_rows",
    "max_rows = 0": "max_rows must be a whole number",
    "max_rows = true": "max_rows is a whole number, as in max_rows = 20",
    "max_rows = 2.5": "max_rows is a whole number",
    'max_rows = "20"': "max_rows is a whole number",
    "max_rows = {value = 3, defualt = true}": (
        r"there is no part of max_rows 'defualt'. Did you mean 'default'\?"
    ),
    "max_rows = {default = true}": r"max_rows is a value, or \{value = ..., default = true\}",
    "max_rows = {value = 3, default = 1}": "max_rows is a value, or",
    "min_units = -1": "min_units must be a whole number",
    "unit = 3": "unit is a column",
    "people = 3": "people is what the units are called",
    "unit = []": "unit is a column",
    "unit = {row = 3}": "unit is a column",
    'neighbors = "replaced"': "neighbors is 'add-remove' or 'replace'",
    'neighbors = {value = "replace", default = true}': "no call may change it",
    "bounds = 3": r"bounds is a table, \[bounds\]",
    "[bounds]\nspend = 3": "bounds of 'spend' are a pair",
    "[bounds]\nspend = [0, 1, 2]": "bounds of 'spend' are a pair",
    "[bounds]\nspend = [2, 1]": "spend",
    "[bounds]\nspend = [0, inf]": "spend",
    '[bounds]\nspend = ["a", "b"]': "spend",
    "[keys]\ncity = []": "keys of 'city' are a list of different values",
    '[keys]\ncity = ["Bonn", "Bonn"]': "keys of 'city' are a list of different values",
    '[keys]\ncity = "cities.csv"': "there is no file",
    '[keys]\ncity = "cities.txt"': "there is no file",
    '[because]\nspend = "why"': "there is no reason 'spend'",
    '[bounds]\nspend = [0, 1]\n[because]\nspent = "why"': r"Did you mean 'spend'\?",
    "[bounds]\nspend = [0, 1]\n[because]\nspend = 3": "give a reason in words",
    "[caps]\nweekly = {epsilon = 1}": (
        r"there is no entry of \[caps\] 'weekly'. Did you mean 'week'\?"
    ),
    "[caps]\nday = 1": "caps.day is a price",
    "[caps]\nday = {epsilon = 0}": "caps.day is a price",
    "[caps]\nday = {epsilon = 1, delta = 1}": "caps.day is a price",
    "[caps]\nday = {delta = 1e-6}": "caps.day is a price",
    "[caps]\nday = {epsilon = nan}": "caps.day is a price",
    "[caps]\nday = {eps = 1}": r"there is no part of caps.day 'eps'",
    "max_rows = ": "this is no TOML file",
    b"\xff\xfe": "this is no TOML file",
}


@pytest.mark.parametrize("text", WRONG, ids=str)
def test_a_file_that_says_something_else_is_refused(text, tmp_path):
    with pytest.raises(InvalidArgument, match=WRONG[text]):
        dp.Policy(policy(tmp_path, text))


@pytest.mark.parametrize("path", ["", "nowhere.toml", "a\0b", b"x", 3, None, dp])
def test_what_is_no_file_is_refused(path):
    with pytest.raises(InvalidArgument):
        dp.Policy(path)


def test_a_file_is_read_once(tmp_path):
    path = policy(tmp_path, 'unit = "user"\nmax_rows = 2')
    read = dp.Policy(path)
    path.write_text('unit = "user"\nmax_rows = 20')
    assert dp.protect(TABLE, policy=read).count().sensitivity["count"].l1 == 2
    assert dp.protect(TABLE, policy=str(path)).count().sensitivity["count"].l1 == 20
    assert read.sha256 != dp.Policy(path).sha256
    assert repr(read) == "Policy('visits.toml', locked: unit, max_rows)"


def test_an_entry_that_is_a_default_may_be_typed_otherwise(tmp_path):
    text = """
    unit = "user"
    max_rows = {value = 2, default = true}
    max_groups = {value = 1, default = false}
    min_units = {value = 9, default = true}
    [bounds]
    spend = {value = [0, 10], default = true}
    [keys]
    city = {value = ["Bonn"], default = true}
    """
    frame = dp.protect(TABLE, policy=policy(tmp_path, text))
    assert frame.sum("spend").sensitivity["spend"].l1 == 20
    assert frame.sum("spend", bounds=(0, 50), max_rows=5).sensitivity["spend"].l1 == 250
    assert question_of(frame.group_by("city").count()).keys.levels == (("Bonn",),)
    assert question_of(frame.group_by("city", keys=["Ulm"], max_rows=9).count()).keys.levels == (
        ("Ulm",),
    )
    assert question_of(frame.group_by("code", min_units=3).count()).min_units == 3
    assert question_of(frame.group_by("code").count()).min_units == 9
    words = str(frame.group_by("city").mean("spend").explain())
    assert (
        "declared by visits.toml: max_rows, max_groups, keys of 'city', bounds of 'spend'" in words
    )
    typed = dp.protect(
        TABLE, policy=tmp_path / "visits.toml", max_rows=7, bounds={"spend": (0, 90)}
    )
    assert "declared by visits.toml" not in str(typed.mean("spend").explain())
    assert typed.sum("spend").sensitivity["spend"].l1 == 630


def test_unit_and_relation_come_from_the_file(tmp_path):
    frame = dp.protect(
        TABLE, policy=policy(tmp_path, 'unit = ["user", "code"]\nneighbors = "replace"')
    )
    assert frame.unit == ("user", "code")
    assert frame.neighbors == "replace"
    rows = dp.protect(TABLE, policy=policy(tmp_path, "unit = {rows = 3}"))
    assert rows.count().sensitivity["count"].l1 == 3
    nobody = policy(tmp_path, "max_rows = 3")
    assert dp.protect(TABLE, unit="user", policy=nobody).count().sensitivity["count"].l1 == 3
    with pytest.raises(InvalidArgument, match="Say whose privacy"):
        dp.protect(TABLE, policy=nobody)


def test_what_the_table_does_not_have_is_refused(tmp_path):
    for text, error in (
        ("[bounds]\nspent = [0, 1]", UnknownColumn),
        ('[keys]\ntown = ["Bonn"]', UnknownColumn),
        ("[bounds]\ncity = [0, 1]", WrongType),
        ("[bounds]\nspend = [2020-01-01, 2021-01-01]", WrongType),
        ('[keys]\ncode = ["Bonn"]', WrongType),
        ("[bounds]\nuser = [0, 1]", DpFrameError),
        ("[keys]\nuser = [1]", DpFrameError),
    ):
        with pytest.raises(error, match=r"visits\.toml|user"):
            dp.protect(TABLE, policy=policy(tmp_path, f'unit = "user"\n{text}'))


# Files of keys


def keyed(tmp_path, name, column="city", table=TABLE):
    return dp.protect(table, policy=policy(tmp_path, f'unit = "user"\n[keys]\n{column} = "{name}"'))


def test_keys_are_read_from_files_beside_the_policy(tmp_path):
    (tmp_path / "lists").mkdir()
    cities = pl.DataFrame({"region": ["west", "north"], "city": ["Bonn", "Kiel"]})
    cities.write_csv(tmp_path / "lists" / "cities.csv")
    cities.write_parquet(tmp_path / "cities.parquet")
    for name in ("lists/cities.csv", "cities.parquet"):
        frame = keyed(tmp_path, name)
        assert question_of(
            frame.group_by("city", max_groups=1, max_rows=1).count()
        ).keys.levels == (("Bonn", "Kiel"),)
        (lock,) = step_of(frame).table.locks
        assert lock.files == {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()}
    (tmp_path / "one.csv").write_text("town\nUlm\n")
    assert question_of(
        keyed(tmp_path, "one.csv").group_by("city", max_rows=1).count()
    ).keys.levels == (("Ulm",),)


TYPED = {
    "integers": (pl.Series([1, 7]), "7", (7,)),
    "codes": (pl.Series(["01001", "02000"]), "01001", ("01001",)),
    "true and false": (pl.Series([True, False]), "true", (True,)),
    "dates": (pl.Series([dt.date(2026, 1, 1)] * 2), "2026-01-01", (dt.date(2026, 1, 1),)),
    "floats": (pl.Series([0.5, 1.5]), "1.5", (1.5,)),
}


@pytest.mark.parametrize("name", TYPED)
def test_texts_of_a_csv_file_are_read_for_the_type_of_the_column(name, tmp_path):
    values, text, key = TYPED[name]
    (tmp_path / "k.csv").write_text(f"k\n{text}\n")
    frame = keyed(tmp_path, "k.csv", "k", pl.DataFrame({"user": [1, 2], "k": values}))
    assert question_of(frame.group_by("k", max_rows=1).count()).keys.levels == (key,)


def test_files_of_keys_that_list_something_else_are_refused(tmp_path):
    for name, text, message in (
        ("a.csv", "city\nBonn\nBonn\n", "each once"),
        ("b.csv", "city\n", "at least one value"),
        ("c.csv", "x,y\n1,2\n", "has no column 'city'"),
        ("d.txt", "city\nBonn\n", "neither .csv nor .parquet"),
        ("e.parquet", "city\nBonn\n", "cannot be read as PARQUET"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(InvalidArgument, match=message):
            keyed(tmp_path, name)
    (tmp_path / "k.csv").write_text("code\nseven\n")
    with pytest.raises(InvalidArgument, match="a text of the CSV file is no value of type Int64"):
        keyed(tmp_path, "k.csv", "code")


ENTRIES = [
    "unit",
    "people",
    "neighbors",
    "max_rows",
    "max_groups",
    "max_rows_per_group",
    "min_units",
    "bounds",
    "keys",
]
ENTRIES += [
    "because",
    "caps",
    "bounds.spend",
    "keys.city",
    "keys.code",
    "keys.spend",
    "because.spend",
    "caps.day",
    "x",
]
VALUES = [
    "1",
    "-1",
    "0",
    "2.5",
    "nan",
    "-inf",
    "1e400",
    "true",
    '"x"',
    '""',
    '"\\u0000"',
    "[]",
    "[1]",
    "[1, 2]",
    "[[1], 2]",
]
VALUES += [
    '["a", 1]',
    "[nan, 1]",
    "[true, false]",
    "{}",
    "{a = 1}",
    "{value = [1, 2]}",
    "{value = 2, default = true}",
]
VALUES += [
    "2026-01-01",
    "[2026-01-01, 2026-01-02]",
    "2026-01-01T00:00:00Z",
    "10:00:00",
    "[10:00:00, 11:00:00]",
]
VALUES += [
    "{rows = 0}",
    "{rows = 2}",
    '{rows = "x"}',
    "99999999999999999999999",
    "[1, 99999999999999999999999999]",
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_kind_of_value_is_read_or_refused(entry, tmp_path):
    """Never another error than those of dpframe, from the file or from the
    table; a misread value would be one.
    """
    refused = 0
    for value in VALUES:
        bounded = "bounds.spend = [0, 1]\n" if entry == "because.spend" else ""
        path = policy(tmp_path, f"{bounded}{entry} = {value}")
        try:
            dp.protect(TABLE, policy=path, **({} if entry == "unit" else {"unit": "user"}))
        except DpFrameError as error:
            refused += "visits.toml" in str(error) or entry == "unit"
        else:
            refused += 1j
    assert refused.real > len(VALUES) / 2
    assert refused.real + refused.imag == len(VALUES), "a refusal does not name the file"
