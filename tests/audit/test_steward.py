"""`dpframe policy check` and `dpframe policy new`:
what the steward reads, and what a draft does not.
"""

from __future__ import annotations

import datetime as dt
import json
import tomllib

import polars as pl
import pytest

import dpframe as dp
from dpframe.__main__ import main
from dpframe.plan.policy import Policy

ROWS = pl.DataFrame(
    {
        "user": [1, 1, 1, 2, 3, None],
        "city": ["Bonn", "Kiel", "Ulm", "Bonn", "Ulm", "Bonn"],
        "spend": [1.0, 2.0, 30.0, -4.0, 100.0, float("nan")],
        "when": [dt.datetime(2026, 1, 1 + i) for i in range(6)],
        "note": ["a"] * 6,
    }
)
FILE = """
unit = "user"
max_rows = 2
max_groups = 2
max_rows_per_group = 1
[bounds]
spend = [0, 100]
when = [2026-01-02, 2026-12-31]
[keys]
city = ["Bonn", "Kiel", "Trier"]
[because]
spend = "the till takes no more"
"""


def run(capsys, *arguments):
    code = main(["policy", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def files(folder, text=FILE, rows=ROWS):
    (folder / "visits.toml").write_text(text)
    rows.write_parquet(folder / "visits.parquet")
    return folder / "visits.toml", folder / "visits.parquet"


def test_a_check_says_what_the_data_do_beyond_the_file(capsys, tmp_path):
    code, out, err = run(capsys, "check", *files(tmp_path))
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "FOR THE STEWARD ALONE: this reads the data without noise. It is no release; do not pass "
        "it on.",
        "unit 'user': 3 units, 1 row without one, which never count; max_rows = 2: 1 unit has "
        "more (33% of all units), 1 row beyond it",
        "groups by 'city'; max_groups = 2: 1 unit has more (33% of all units), 1 group beyond it; "
        "max_rows_per_group = 1: none has more",
        "bounds of 'spend': 1 values below and 0 above are clipped, 20% of 5",
        "WARNING bounds of 'spend': one bound is exactly the largest value of the column. If it "
        "was read off the data, it tells a person's value; choose it from what is known without "
        "the data",
        "bounds of 'when': 1 values below and 0 above are clipped, 17% of 6",
        "keys of 'city': 3 listed, of which 1 do not occur; 2 rows with 1 value not listed: "
        "['Ulm']",
        "note: [because] has no reason for 'when'",
        "note: [because] has no reason for 'city'",
        "note: the file says nothing of 'note'; analysts type their own bounds and keys",
    ]


def test_a_check_warns_of_what_was_read_off_the_data(capsys, tmp_path):
    text = (
        'unit = "user"\nmax_rows = 3\n[bounds]\nspend = [-4, 200]\n[keys]\ncity = ["Bonn", '
        '"Kiel", "Ulm"]'
    )
    _, out, _ = run(capsys, "check", *files(tmp_path, text))
    warnings = [line.split(":")[0] for line in out.splitlines() if line.startswith("WARNING")]
    assert [line.split(" is ")[0] for line in warnings] == [
        "WARNING max_rows",
        "WARNING bounds of 'spend'",
        "WARNING keys of 'city'",
    ]
    wide = text.replace("3\n", "9\n").replace("-4", "-9").replace('"Ulm"]', '"Ulm", "Trier"]')
    _, out, _ = run(capsys, "check", *files(tmp_path, wide))
    assert "WARNING" not in out


def test_a_file_that_does_not_fit_the_table_is_an_error(capsys, tmp_path):
    text = (
        'unit = "id"\n[bounds]\nspent = [0, 1]\ncity = [0, 1]\n[keys]\nwhen = ["x"]\ntown = ["x"]'
    )
    code, out, _ = run(capsys, "check", *files(tmp_path, text))
    assert code == 1
    errors = [line for line in out.splitlines() if line.startswith("ERROR")]
    assert len(errors) == 5
    assert "ERROR unit 'id': the table has no such column" in errors
    assert "ERROR 'spent': the table has no such column" in errors
    assert any(
        "numbers and times have bounds, not a column of type String" in line for line in errors
    )
    code, out, err = run(capsys, "check", tmp_path / "none.toml", tmp_path / "visits.parquet")
    assert (code, out) == (1, "")
    assert "there is no file" in err
    code, _, err = run(capsys, "check", tmp_path / "visits.toml", tmp_path / "none.parquet")
    assert code == 1
    assert "There is no file" in err
    (tmp_path / "half.parquet").write_bytes(b"PAR1")
    code, _, err = run(capsys, "check", tmp_path / "visits.toml", tmp_path / "half.parquet")
    assert code == 1
    assert "cannot be read as a CSV or Parquet file" in err


def test_a_table_is_compared_with_an_earlier_one_and_rows_without_a_unit_do_not_count(
    capsys, tmp_path
):
    policy, before = files(tmp_path)
    tonight = tmp_path / "tonight.parquet"
    for changed, words in (
        (ROWS, []),
        (ROWS.with_columns(new=1), []),
        (
            ROWS.with_columns(pl.col("user").cast(pl.String)),
            ["ERROR 'user': its type is String, and was Int64"],
        ),
        (ROWS.drop("note"), ["ERROR 'note': the table has no such column any more"]),
        (ROWS.clear(), ["ERROR 0 rows have a unit"]),
        (ROWS.with_columns(user=pl.lit(None, pl.Int64)), ["ERROR 0 rows have a unit"]),
    ):
        changed.write_parquet(tonight)
        code, out, _ = run(capsys, "check", policy, tonight, "--like", before, "--min-rows", "5")
        errors = [line for line in out.splitlines() if line.startswith("ERROR")]
        assert code == bool(words)
        assert len(errors) == len(words)
        assert all(error.startswith(word) for error, word in zip(errors, words, strict=True))


def test_a_check_fails_where_too_much_is_unlisted_or_clipped(capsys, tmp_path):
    """Two of six rows have a key that is not listed, and one of five numbers is clipped."""
    policy, table = files(tmp_path)
    for what, most, words in (
        ("unlisted", "34%", []),
        (
            "unlisted",
            "33",
            ["ERROR keys of 'city': 33.3% are unlisted, more than --max-unlisted 33%"],
        ),
        (
            "unlisted",
            "0%",
            ["ERROR keys of 'city': 33.3% are unlisted, more than --max-unlisted 0%"],
        ),
        ("clipped", "20%", []),
        (
            "clipped",
            "19.9%",
            ["ERROR bounds of 'spend': 20% are clipped, more than --max-clipped 19.9%"],
        ),
    ):
        code, out, _ = run(capsys, "check", policy, table, f"--max-{what}", most)
        assert (code, [line for line in out.splitlines() if line.startswith("ERROR")]) == (
            bool(words),
            words,
        )
    none = files(tmp_path, rows=ROWS.clear())
    assert run(capsys, "check", *none, "--max-unlisted", "0", "--max-clipped", "0")[0] == 0


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_draft_reads_no_value(kind, capsys, tmp_path):
    """Tables with the same columns have the same draft, whatever they hold;
    it is a policy file that locks nothing.
    """
    drafts = []
    odd = ROWS.with_columns(user=7, city=pl.lit("SECRET"), spend=1e9, note=pl.lit("12"))
    for rows in (ROWS, odd.head(1), ROWS.clear()):
        path = tmp_path / f"visits.{kind}"
        rows.write_parquet(path) if kind == "parquet" else rows.write_csv(path)
        code, out, _ = run(capsys, "new", path)
        assert code == 0
        drafts.append(out)
    assert drafts[0] == drafts[1] == drafts[2]
    assert "SECRET" not in drafts[0]
    (tmp_path / "draft.toml").write_text(drafts[0])
    assert (
        repr(dp.Policy(tmp_path / "draft.toml")) == "Policy('draft.toml', locked: unit, neighbors)"
    )


def test_what_files_say_is_listed_with_its_reasons_and_nothing_of_data(capsys, tmp_path):
    text = """unit = "user"
max_rows = {value = 2, default = true}
[bounds]
spend = [0, 100]
[keys]
city = ["Bonn", "Kiel"]
[because]
spend = "a till takes no more"
[caps]
release = {epsilon = 0.5}
"""
    path, _ = files(tmp_path, text)
    code, out, _ = run(capsys, "show", path, path)
    assert code == 0
    assert out.count("a till takes no more") == 2
    code, out, _ = run(capsys, "show", path, "--json")
    (policy,) = json.loads(out)["policies"]
    assert policy["sha256"] == Policy(path).sha256
    assert [(line["entry"], line["value"], line["a_call_may"]) for line in policy["entries"]] == [
        ("unit", "['user']", "not change it"),
        ("max_rows", "2", "change it"),
        ("bounds of 'spend'", "[0, 100]", "be stricter"),
        ("keys of 'city'", "['Bonn', 'Kiel']", "be stricter"),
        ("most of one release", "ε = 0.5, δ = 0", "be stricter"),
    ]
    assert [line["because"] for line in policy["entries"]] == [
        "",
        "",
        "a till takes no more",
        "",
        "",
    ]


def test_a_draft_without_its_signs_is_a_policy_file(capsys, tmp_path):
    rows = ROWS.rename({"note": 'a "b" c\\', "when": "when?"})
    rows.write_parquet(tmp_path / "visits.parquet")
    _, out, _ = run(capsys, "new", tmp_path / "visits.parquet")
    lines = [
        line.removeprefix("# ") for line in out.splitlines()[3:] if "a list, or a file" not in line
    ]
    text = "\n".join(line.replace('["...", "..."]', '["x", "y"]') for line in lines)
    read = tomllib.loads(text)
    assert read["unit"] == "user"
    assert set(read["bounds"]) == {"spend", "when?"}
    assert set(read["keys"]) == {"city", 'a "b" c\\'}
    assert set(read["because"]) == {"spend", "when?", "city", 'a "b" c\\'}
    (tmp_path / "visits.toml").write_text(text)
    assert dp.protect(rows, policy=tmp_path / "visits.toml").count().sensitivity["count"].l1 == 20
