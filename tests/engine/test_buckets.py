"""The totals of parts of the units add up to the totals of the whole table, for
every question and number of parts.
"""

from __future__ import annotations

import pathlib
import random
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe import engine, progress
from dpframe.engine import histograms as profile
from dpframe.engine.parts import buckets
from dpframe.errors import DpFrameError, EngineError
from inside import question_of
from strategies import KINDS, answer, as_frame, bring, random_plan, random_question, random_rows

AGGREGATES = {
    "n": dp.count(),
    "nx": dp.count("x"),
    "units": dp.count_units(),
    "cities": dp.n_unique("city"),
    "s": dp.sum("x", bounds=(-3, 10)),
    "t": dp.sum("a", unit_bounds=(0, 50)),
    "m": dp.mean("a", bounds=(-5, 20)),
    "v": dp.var("x", bounds=(-3, 10)),
    "med": dp.median("x", bounds=(-3, 10)),
    "low": dp.min("a", bounds=(-10, 10)),
}


@pytest.fixture
def in_parts(monkeypatch):
    """Set the number of parts, and record the parts that are made."""
    seen = []

    def ask_for(number):
        def split(ask):
            parts = (
                [buckets._part(ask, i, number) for i in range(number)] if ask.table.unit else [ask]
            )
            seen.append(len(parts))
            return parts

        monkeypatch.setattr(buckets, "split", split)
        return seen

    return ask_for


def _totals(query, salt):
    """Every total of a question by its group, ranks as tuples."""
    found = engine.totals(question_of(query), salt)
    keys = found.keys.rows() if question_of(query).by else [()]
    return [dict(zip(keys, np.asarray(values).tolist(), strict=True)) for values in found.values]


BY = [(), ("city",), ("city", "level"), ("yes",)]
SPLIT = [
    (kind, by, public)
    for kind in KINDS
    for by in BY
    for public in (True, False)
    if by or not public
]
_QUICK = [("polars", by, False) for by in BY] + [(kind, ("city", "level"), True) for kind in KINDS]


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    ("kind", "by", "public"),
    [pytest.param(*one, marks=() if one in _QUICK else pytest.mark.long) for one in SPLIT],
)
def test_every_total_is_that_of_the_whole(in_parts, kind, by, public):
    rng = random.Random(f"{kind} {by} {public}")
    levels = {
        "city": ["Bonn", None, "Celle", "Nowhere"],
        "level": ["low", "high"],
        "yes": [True, None],
    }
    frame = dp.protect(
        bring(as_frame(random_rows(rng, units=12)), kind), unit=rng.choice(["u", "w", ("u", "w")])
    )
    limits = {"max_rows": 5, **({"max_groups": 2, "max_rows_per_group": 3} if by else {})}
    asked = {name: one for name, one in AGGREGATES.items() if name not in by}
    if by:
        keys = {name: levels[name] for name in by} if public else None
        query = frame.group_by(*by, keys=keys, **limits).agg(**asked)
    else:
        query = frame.agg(**limits, **asked)
    salt = rng.getrandbits(64)
    whole = _totals(query, salt)
    for number in (2, 3, 17):
        seen = in_parts(number)
        assert _totals(query, salt) == whole
        assert seen.pop() == number


def test_random_questions_and_plans(in_parts):
    rng, held = random.Random(8), 0
    while held < 15:
        rows, plan, question = random_rows(rng, units=9), random_plan(rng), random_question(rng)
        unit = rng.choice(["u", "w", ("w", "u"), dp.Rows(3)])
        try:
            query = question(
                plan(dp.protect(bring(as_frame(rows), rng.choice(["polars", "lazy"])), unit=unit))
            )
            whole = answer(query, held)
        except (DpFrameError, EngineError):
            continue
        in_parts(rng.choice([2, 5]))
        assert answer(query, held) == whole
        held += 1


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (pl.Int8, pl.Int64),
        (pl.UInt32, pl.Int16),
        (pl.String, pl.Categorical),
        (pl.UInt64, pl.UInt64),
    ],
)
def test_a_unit_s_rows_of_several_tables_are_in_one_part(in_parts, mine, theirs):
    names = [str(i) for i in range(9)]
    visits = pl.DataFrame({"id": names * 3, "city": ["Bonn", "Kiel", "Bonn"] * 9}).with_columns(
        pl.col("id").cast(mine)
    )
    people = pl.DataFrame({"id": names[2:], "age": range(7)}).with_columns(
        pl.col("id").cast(theirs)
    )
    visits, people = dp.protect(visits, unit="id"), dp.protect(people, unit="id")
    joined = visits.join(people, on="id", how="left").group_by(
        "city", max_groups=2, max_rows_per_group=2
    )
    stacked = dp.concat([visits.select("id"), people.select("id")]).agg(
        max_rows=3, n=dp.count(), u=dp.count_units()
    )
    each = visits.per_unit(n=dp.count()).mean("n", bounds=(0, 9))
    queries = [
        joined.agg(n=dp.count(), s=dp.sum("age", bounds=(0, 9)), d=dp.n_unique("age")),
        stacked,
        each,
    ]
    for query in queries:
        whole = answer(query)
        assert any(sum(total.values()) for total in whole)
        in_parts(4)
        assert answer(query) == whole


@pytest.mark.parametrize(
    "values", [[0.0, -0.0, float("nan"), None], ["a", "", None, "é"], [2**64 - 1, 1, None, 0]]
)
def test_no_unit_is_split_whatever_its_identifier(in_parts, values):
    dtype = pl.UInt64 if 1 in values and isinstance(values[0], int) else None
    frame = pl.DataFrame({"id": pl.Series(values * 3, dtype=dtype), "x": range(12)})
    query = dp.protect(frame, unit="id").agg(max_rows=2, n=dp.count(), units=dp.count_units())
    whole = answer(query)
    in_parts(13)
    assert answer(query) == whole


def test_private_limits_come_from_the_whole_table(in_parts):
    frame = as_frame(random_rows(random.Random(3), units=40))
    query = dp.protect(frame, unit="u").group_by("city", keys=["Bonn"], limits=dp.Auto()).count()
    sizes = ["rows", "groups", "rows_per_group"]
    whole = profile.size_profile(question_of(query), sizes), profile.key_profile(question_of(query))
    in_parts(6)
    found = profile.size_profile(question_of(query), sizes)
    assert {name: found[name].tolist() for name in sizes} == {
        name: whole[0][name].tolist() for name in sizes
    }
    assert profile.key_profile(question_of(query)).tolist() == whole[1].tolist()


def test_totals_wider_than_64_bits_add_up(in_parts):
    frame = pl.DataFrame({"u": range(300), "x": pl.Series([2**31 - 1] * 300, dtype=pl.Int64)})
    query = dp.protect(frame, unit="u").sum("x", bounds=(0, 2**26), max_rows=2**15)
    whole = answer(query)
    in_parts(7)
    assert answer(query) == whole


def test_large_tables_are_split_and_small_ones_are_not(monkeypatch, tmp_path):
    frame = pl.DataFrame({"u": range(1000), "g": ["a", "b"] * 500})
    frame.write_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(buckets, "_rows_of_a_part", lambda _: 300)
    for table in (
        frame,
        frame.lazy(),
        frame.to_pandas(),
        frame.to_arrow(),
        pl.scan_parquet(tmp_path / "t.parquet"),
    ):
        asked = (
            dp.protect(table, unit="u")
            .group_by("g", keys=["a", "b"], max_groups=1, max_rows_per_group=1)
            .count()
        )
        assert len(buckets.split(question_of(asked))) == 4
        assert answer(asked) == [{("a",): 500, ("b",): 500}]
    assert (
        len(buckets.split(question_of(dp.protect(frame.head(300), unit="u").count(max_rows=1))))
        == 1
    )
    assert len(buckets.split(question_of(dp.protect(frame, unit=dp.Rows(1)).count()))) == 1


def parts_of(query):
    return len(buckets.split(question_of(query)))


def test_the_number_of_parts_follows_from_the_memory_and_the_question(monkeypatch):
    """With less memory there are more parts, with more numbers too, and the totals
    are the same; nothing is refused.
    """
    frame = pl.DataFrame({"u": range(400_000), "x": [1.0] * 400_000, "y": [2.0] * 400_000})
    grouped = dp.protect(frame.with_columns(g=pl.lit("a")), unit="u").group_by(
        "g", keys=["a"], max_groups=1, max_rows=1
    )
    one, two = (grouped.agg(*[dp.mean(x, bounds=(0, 4)) for x in names]) for names in ("x", "xy"))
    assert (parts_of(one), parts_of(two)) == (1, 1)
    whole = answer(two)
    try:
        dp.set_memory(0.02)
        assert 1 < parts_of(one) < parts_of(two)
        assert answer(two) == whole
        dp.set_memory(1e-6)  # a part has at least 65,536 rows
        assert parts_of(one) == 7
    finally:
        dp.set_memory(None)
    for limit in ("_address_space", "_container"):
        with monkeypatch.context() as patch:
            patch.setattr(buckets, limit, lambda: -1)
            assert parts_of(one) == 7


@pytest.mark.parametrize("gib", [0, -1, "2", True, float("nan"), float("inf")])
def test_memory_is_a_number_of_gib(gib):
    with pytest.raises(dp.errors.InvalidArgument, match="set_memory"):
        dp.set_memory(gib)


@pytest.mark.long
@pytest.mark.skipif(
    not pathlib.Path("/proc/self/statm").exists(), reason="how much is taken is read from Linux"
)
def test_ten_million_rows_are_released_where_the_address_space_is_3_gib(tmp_path):
    """Without parts, the engine ends the process at a limit that it
    cannot keep, after the charge.
    """
    rows, path = 10_000_000, tmp_path / "t.parquet"
    pl.select(
        u=pl.int_range(rows) % 1_000_000, g=pl.int_range(rows) % 20, x=pl.int_range(rows) / rows
    ).write_parquet(path)
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, 3 * 2**30))
import dpframe as dp, polars as pl
scanned, budget = pl.scan_parquet({str(path)!r}), dp.Budget(epsilon=1)
rows = dp.protect(scanned, unit="u", budget=budget, max_rows=10, max_groups=10)
out = rows.group_by("g", keys=list(range(20))).agg(dp.mean("x", bounds=(0, 1))).release(epsilon=0.5)
print(len(out.table))
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=500)
    assert (said.returncode, said.stdout) == (0, "20\n"), said.stderr[-2000:]


def test_parts_are_about_the_same_size(in_parts):
    frame = pl.DataFrame({"u": range(4000)})
    ask = question_of(dp.protect(frame, unit="u").count(max_rows=1))
    sizes = [int(engine.totals(buckets._part(ask, i, 8), 1).values[0][0]) for i in range(8)]
    assert sum(sizes) == 4000
    # false alarm below 1e-7; seed fixed
    assert all(abs(size - 500) < 6 * (4000 * 7 / 64) ** 0.5 for size in sizes)


def test_a_progress_line_is_for_long_work_that_somebody_watches(monkeypatch, capfd):
    frame = pl.DataFrame({"u": ["canary"] * 900 + ["other"] * 100})
    query = dp.protect(frame, unit="u").count(max_rows=1)
    monkeypatch.setattr(buckets, "_rows_of_a_part", lambda _: 300)
    answer(query)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setattr(progress, "_visible", lambda: True)
    answer(query)
    assert capfd.readouterr() == ("", "")  # it took less than two seconds
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    answer(query)
    out, err = capfd.readouterr()
    assert out == ""
    assert "4 of 4 parts of the units" in err
    assert "canary" not in err
