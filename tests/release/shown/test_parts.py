"""Parts of a crosstab's rows, columns and total:
their intervals, and how each output shows them.
"""

import re

import numpy as np
import polars as pl
import pytest

import dpframe as dp

ROWS = 500  # rows of a table that are alike, so that one release is as many trials
GAUSSIAN = {"epsilon": 0.5, "delta": 1e-6, "noise": "gaussian"}
STEPS = {
    "as released": lambda out: out,
    "nonnegative": lambda out: out.nonnegative(),
    "round": lambda out: out.round(5),
    "suppress": lambda out: out.suppress(below=10),
    "round and suppress": lambda out: out.round(5).suppress(below=10),
    "nonnegative and suppress": lambda out: out.nonnegative().suppress(below=10),
    "all three": lambda out: out.nonnegative().round(5).suppress(below=10),
}


def asked(counts, rows, **options):
    """A crosstab of so many equal rows, each with these counts."""
    columns = np.tile(np.repeat(np.arange(len(counts)), counts), rows)
    table = pl.DataFrame({"a": np.repeat(np.arange(rows), sum(counts)), "b": columns})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=2, delta=1e-3))
    keys = {"a": range(rows), "b": range(len(counts))}
    return frame.crosstab(
        options.pop("down", "a"), options.pop("across", "b"), keys=keys, **options
    )


@pytest.mark.one_in(12)
@pytest.mark.parametrize(
    "price", [{"epsilon": 0.5}, {"epsilon": 0.1}, GAUSSIAN], ids=["laplace", "cheap", "gaussian"]
)
@pytest.mark.parametrize("counts", [(60, 40), (100, 2), (50, 0), (40, 30, 20, 10), (12, 12)])
@pytest.mark.parametrize(
    "options", [{}, {"margins": "measured"}, {"normalize": "columns", "down": "b", "across": "a"}]
)
def test_intervals_of_parts_hold_in_95_of_100(counts, price, options):
    """At least 2,000 rows: fewer than 92.5% have a chance below 1e-6;
    a missing part could be anything.
    """
    held = np.zeros(len(counts))
    for _ in range(2_000 // ROWS):
        errors = (
            asked(counts, ROWS, **{"normalize": "index", **options}).release(**price).accuracy()
        )
        errors = errors.head(ROWS * len(counts)).with_columns(pl.col("a", "b").cast(pl.Int64))
        for part, number in enumerate(counts):
            own, share = errors.filter(pl.col("b") == part), number / sum(counts)
            outside = (own["lower"] > share + 1e-12) | (own["upper"] < share - 1e-12)
            held[part] += ROWS - outside.fill_null(value=False).sum()
    assert (held >= 0.925 * 2_000).all()


def test_the_bound_without_what_cells_and_margins_share_would_not_hold():
    """The control of the test above: a part of two cells whose margins are
    half as wide holds far less often.
    """
    errors = (
        asked((60, 40), ROWS, normalize="index")
        .release(epsilon=0.5)
        .accuracy()
        .filter(pl.col("b") == 0)
    )
    halves = (errors["upper"] - errors["lower"]) / 4
    assert ((errors["value"] - 0.6).abs() <= halves).mean() < 0.9


@pytest.mark.one_in(6)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("normalize", ["index", "columns", "all"])
@pytest.mark.parametrize("margins", [False, True])
def test_every_output_shows_parts_with_the_decimals_that_say_something(
    normalize, margins, step, tmp_path
):
    openpyxl = pytest.importorskip("openpyxl")
    out = STEPS[step](
        asked((60, 3, 21), 4, normalize=normalize, margins=margins).release(epsilon=1.0)
    )
    whole = max(len(re.sub(r".*\.", "", cell)) for cell in re.findall(r"\.\d+", out.to_csv()))
    assert whole <= 5, "in CSV"
    errors = out.accuracy()
    shown = errors.drop_nulls("value")
    assert shown["value"].is_between(-0.2, 1.2).all(), "parts, not counts"
    ends = errors.drop_nulls("lower")
    assert ends["lower"].min() is None or (ends["lower"].min() >= 0 and ends["upper"].max() <= 1)
    assert (ends["upper"] - ends["lower"] < 1).all(), "what says nothing is missing"
    veiled = step in ("nonnegative and suppress", "all three")
    assert bool(len(ends)) != veiled
    assert ("No intervals" in out.to_csv(notes=True)) == veiled
    sdmx = pl.read_csv(out.to_sdmx().encode(), infer_schema=False)
    assert sdmx.height == errors.height
    assert sdmx["DECIMALS"].drop_nulls().cast(int).max() <= 5
    assert (sdmx["OBS_VALUE"].cast(float) - errors["value"]).abs().max() <= 0.05
    out.to_excel(tmp_path / "parts.xlsx")
    first, second = openpyxl.load_workbook(tmp_path / "parts.xlsx").worksheets[:2]
    cells = [
        cell for row in first.iter_rows(min_row=2) for cell in row if isinstance(cell.value, float)
    ]
    assert all(
        re.fullmatch(r"#,##0\.0{1,5}", cell.number_format) for cell in cells if cell.column > 1
    )
    told = [row[3].value for row in second.iter_rows(min_row=2)]
    assert [value is None for value in told] == errors["value"].is_null().to_list()
    assert all(
        abs(cell - value) < 0.05
        for cell, value in zip(told, errors["value"], strict=True)
        if value is not None
    )
    long = re.compile(r"\d\.\d{6}")
    assert not any(
        long.search(text) for text in (out.to_html(), out._repr_html_(), str(out.to_latex()))
    )
    assert out.plot() is not None


def test_two_complementary_parts_have_one_margin_of_error():
    errors = asked((30, 10), 6, normalize="index").release(epsilon=1.0).accuracy()
    for (_,), row in errors.group_by("a"):
        assert row["error"][0] == pytest.approx(row["error"][1])
        assert row["lower"].to_list() == pytest.approx((1 - row["upper"].reverse()).to_list())


def test_the_part_of_a_total_in_itself_is_exact():
    out = asked((30, 10), 6, normalize="all", margins=True).release(epsilon=1.0)
    last = out.accuracy().row(-1, named=True)
    assert [last[name] for name in ("value", "lower", "upper")] == pytest.approx([1, 1, 1])
    assert "count as a share of all ± 0." in out.to_csv(notes=True)


def test_parts_that_could_be_anything_are_missing_and_said_to_be():
    with dp.testing.fixed_noise(3):
        out = asked((2, 1), 3, normalize="index").release(epsilon=0.1)
    assert out.to_polars().select("0", "1").null_count().row(0) == (3, 3)
    assert "Shares: missing in 6 of 6 cells" in repr(out)
    assert "Shares: missing" in out._repr_html_()
    assert "–: no number" in out.to_html()
    filled = out.fill()
    assert "missing" not in repr(filled)
    ends = filled.accuracy().select("lower", "upper").rows()
    assert set(ends) == {(0.0, 1.0)}


def test_parts_of_signed_sums_have_no_ends_to_cut_at():
    rng = np.random.default_rng(1)
    table = pl.DataFrame(
        {"a": np.repeat([0, 1], 500), "b": [0, 1] * 500, "v": rng.normal(2, 1, 1000)}
    )
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=2))
    keys = {"a": [0, 1], "b": [0, 1]}
    query = frame.crosstab(
        "a", "b", keys=keys, values="v", aggfunc="sum", bounds=(-1, 5), normalize="index"
    )
    errors = query.release(epsilon=1.0).accuracy()
    sums = table.group_by("a", "b").agg(v=pl.col("v").clip(-1, 5).sum()).sort("a", "b")
    truth = sums.select(pl.col("v") / pl.col("v").sum().over("a"))["v"]
    assert (errors["lower"] < errors["value"]).all()
    assert (errors["upper"] - errors["lower"]).max() < 0.2
    assert ((errors["value"] - truth).abs() < 0.2).all()
