"""Sorted words keep the groups that ranks keep, for all hashes and identifiers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from dpframe.engine.backends import Selection, lowest, runs

MOST = 2**64 - 1


def _table(seed):
    """Rows of a few units and groups; hashes that tie in all, in the upper or in
    the lower bits, or not at all.
    """
    draw = np.random.default_rng(seed)
    rows, wide = int(draw.choice([0, 1, 30, 200])), int(draw.choice([1, 5, 2**31, 2**31]))
    shift = int(draw.choice([0, 32, 33]))
    units = draw.integers(-3, int(draw.choice([-2, 4, 20, 10**12])), rows)
    keys = draw.integers(0, int(draw.choice([3, 9, 1000])), rows)
    hashes = {
        pair: int(draw.integers(0, wide)) << shift
        for pair in zip(units.tolist(), keys.tolist(), strict=True)
    }
    words = [hashes[pair] for pair in zip(units.tolist(), keys.tolist(), strict=True)]
    table = pl.DataFrame({"u": units, "k": keys, "h": pl.Series(words, dtype=pl.UInt64)})
    held = [pl.Int64, pl.Int64, pl.Int64, pl.String, pl.Float64, pl.Int128][seed % 6]
    return table.with_columns(pl.col("u").cast(held)), int(draw.integers(1, 8))


def _by_rank(partials, most):
    return partials.filter(pl.col("h").rank("max").over("u") <= most)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("sample", [1, 64])
def test_groups_are_those_of_the_ranks(monkeypatch, sample):
    monkeypatch.setattr(lowest, "_SAMPLE", sample)
    fewer = 0
    for seed in range(400):
        rows, most = _table(seed)
        partials = rows.unique(maintain_order=True)
        kept = _by_rank(partials, most)
        assert lowest.lowest(partials, ["u"], "h", most).equals(kept), seed
        assert (
            lowest.lowest(partials.with_columns(v=1), ["u", "v"], "h", most).drop("v").equals(kept)
        ), seed
        sifted = lowest.sifted(rows, ["u"], "h", most)
        assert _by_rank(sifted.unique(maintain_order=True), most).equals(kept), seed
        fewer += sifted.height < rows.height
    assert fewer > 20  # it does leave rows out


@pytest.mark.parametrize(
    "ids", [[-128, 127], [0, 2**64 - 1], [-(2**63), 2**63 - 1], [-(2**100), 2**100]]
)
def test_no_difference_of_identifiers_wraps(ids):
    types = {127: pl.Int8, 2**64 - 1: pl.UInt64, 2**63 - 1: pl.Int64, 2**100: pl.Int128}
    table = pl.DataFrame(
        {"u": pl.Series(ids * 3, dtype=types[ids[1]]), "h": pl.Series(range(6), dtype=pl.UInt64)}
    )
    table = table.with_columns(pl.col("h") * 2**32)
    assert lowest.lowest(table, ["u"], "h", 2).get_column("h").to_list() == [
        i << 32 for i in range(4)
    ]
    assert lowest.sifted(table, ["u"], "h", 2).height >= 4


def test_units_whose_hash_is_the_same_are_told_apart(monkeypatch):
    monkeypatch.setattr(pl.Expr, "hash", lambda expr, *_: expr.is_null().cast(pl.UInt64))
    table = pl.DataFrame(
        {"u": ["a", "b"] * 4, "h": pl.Series([i << 32 for i in range(8)], dtype=pl.UInt64)}
    )
    assert lowest.lowest(table, ["u"], "h", 1).get_column("u").to_list() == ["a", "b"]


def test_the_largest_hash_and_limit():
    table = pl.DataFrame({"u": [1, 1, 1], "h": pl.Series([MOST, MOST - 1, 0], dtype=pl.UInt64)})
    for most, kept in (
        (1, [0]),
        (2, [MOST - 1, 0]),
        (3, [MOST, MOST - 1, 0]),
        (2**31 - 1, [MOST, MOST - 1, 0]),
    ):
        assert lowest.lowest(table, ["u"], "h", most).get_column("h").to_list() == kept


def _in_sums(rows, most, cap):
    """Partials by grouping and by ranks, as rows of Python."""
    partials = rows.group_by("u", "k").agg(
        pl.col("h").first(), n=pl.len().cast(pl.Int64), s=pl.col("x").sum()
    )
    kept = _by_rank(partials, most).with_columns(a=pl.col("n").clip(0, cap).sum().over("u"))
    return sorted(kept.select("u", "k", "n", "a", "s").rows())


@pytest.mark.parametrize("bits", [12, 46, 64])
def test_partials_from_one_sort_are_those_of_the_ranks(monkeypatch, bits):
    """With at least 46 bits asked for, large tables have no room for them; with 64, none has."""
    monkeypatch.setattr(runs, "_LEAST_BITS", bits)
    lost = steps = 0
    in_steps = runs._in_steps

    def noted(table, *rest):
        nonlocal steps
        steps += 1
        return in_steps(table, *rest)

    monkeypatch.setattr(runs, "_in_steps", noted)
    for seed in range(150):
        rows, most = _table(seed)
        # sums of these wrap nowhere else
        rows = rows.with_columns(x=pl.int_range(rows.height, dtype=pl.Int64) * 2**54)
        kept = runs.kept_partials(rows, Selection(["u"], ["k"], "h", most, 2, {"s": "x"}))
        assert kept.columns == ["u", "k", "n", "a", "s"]
        assert sorted(kept.rows()) == _in_sums(rows, most, 2), seed
        assert kept.schema == {
            "u": rows.schema["u"],
            "k": pl.Int64,
            "n": pl.Int64,
            "a": pl.Int64,
            "s": pl.Int64,
        }
        lost += kept.get_column("n").sum() < rows.height
    assert lost > 20
    assert steps == 150 if bits == 64 else 20 < steps < 150  # both ways are taken


def test_partials_whose_upper_bits_are_alike_are_told_apart():
    """The words of two groups of the unit 1 are equal, and those of the unit 2 are not."""
    hashes = pl.Series([5, 6, 5, 1, 2**63, 1], dtype=pl.UInt64)
    table = pl.DataFrame(
        {"u": [1, 1, 1, 2, 2, 2], "k": list("abacdc"), "h": hashes, "x": [1, 2, 4, 8, 16, 32]}
    )
    for most, kept in ((1, [(1, "a", 2, 2, 5)]), (2, [(1, "a", 2, 3, 5), (1, "b", 1, 3, 2)])):
        partials = runs.kept_partials(table, Selection(["u"], ["k"], "h", most, 9, {"s": "x"}))
        assert sorted(row for row in partials.rows() if row[0] == 1) == kept
    tied = table.with_columns(h=pl.lit(7, pl.UInt64))
    assert runs.kept_partials(tied, Selection(["u"], ["k"], "h", 1, 9, {})).height == 0
