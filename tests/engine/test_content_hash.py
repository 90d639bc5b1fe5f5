"""Labels that follow from the content of files."""

import os
import shutil

import polars as pl
import pytest

import dpframe as dp
from dpframe import errors

KEY = "a key of our team"


def test_a_copy_keeps_its_label_and_a_change_does_not(tmp_path):
    path, folder = tmp_path / "a.parquet", tmp_path / "folder"
    pl.DataFrame({"id": [1, 2]}).write_parquet(path)
    folder.mkdir()
    for name in ("one.csv", "two.csv"):
        (folder / name).write_text("id\n1\n")
    labels = dp.content_hash(path, KEY), dp.content_hash(folder, KEY)
    shutil.copy(path, tmp_path / "b.parquet")
    shutil.copytree(folder, tmp_path / "copied")
    os.utime(path, (1, 1))
    assert (
        dp.content_hash(tmp_path / "b.parquet", KEY),
        dp.content_hash(str(tmp_path / "copied"), KEY),
    ) == labels
    assert dp.content_hash(path, KEY) == labels[0]
    seen = {*labels, dp.content_hash(path, f"{KEY}!")}
    (folder / "two.csv").write_text("id\n2\n")
    seen.add(dp.content_hash(folder, KEY))
    (folder / "two.csv").rename(folder / "three.csv")
    seen.add(dp.content_hash(folder, KEY))
    pl.DataFrame({"id": [1, 3]}).write_parquet(path)
    seen.add(dp.content_hash(path, KEY))
    assert len(seen) == 6


def test_a_name_stands_for_content(tmp_path):
    path, budget = tmp_path / "a.csv", dp.Budget(epsilon=5)

    def nightly():
        rows = dp.protect(
            pl.read_csv(path), unit="id", budget=budget, data=dp.content_hash(path, KEY)
        )
        return rows.count_units().release(epsilon=0.5, name="a")

    path.write_text("id\n1\n2\n")
    first = nightly()
    os.utime(path, (1, 1))
    assert nightly().table.equals(first.table)
    path.write_text("id\n1\n3\n")
    with pytest.raises(errors.ReleaseMismatch, match="data"):
        nightly()


@pytest.mark.parametrize("key", ["", "short", b"bytes that are long enough", None])
def test_a_key_is_a_long_text(tmp_path, key):
    with pytest.raises(errors.InvalidArgument, match="key"):
        dp.content_hash(tmp_path, key)
    with pytest.raises(errors.InvalidArgument, match="There is no file"):
        dp.content_hash(tmp_path / "nothing", KEY)
