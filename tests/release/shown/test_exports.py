"""What offices publish: decimals by the margin of error, footnotes, number
formats, CSV on the Web, SDMX-CSV.
"""

import csv
import datetime as dt
import io
import json
import re

import openpyxl
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidArgument

CITIES = ["Bonn", "=1+1", "Kiel"]
DAYS = [dt.date(2026, 1, day) for day in (1, 2)]
ROWS = {
    "city": ["Bonn", "=1+1"] * 500,
    "day": [DAYS[n // 2 % 2] for n in range(1000)],
    "x": [n / 7 for n in range(1000)],
}
ROWS["year"] = [2025 + n % 2 for n in range(1000)]


@pytest.fixture
def frame():
    return dp.protect(pl.DataFrame(ROWS), unit=dp.Rows(1), budget=dp.Budget(epsilon=1e6))


@pytest.fixture
def out(frame):
    groups = frame.group_by("city", keys=CITIES)
    return groups.agg(n=dp.count(), m=dp.mean("x", bounds=(0, 150))).release(epsilon=2).with_ci()


@pytest.fixture
def crosstab(frame):
    return frame.crosstab("city", "day", keys={"city": CITIES, "day": DAYS}, margins=True).release(
        epsilon=2
    )


def records(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_numbers_have_the_decimals_that_their_margin_leaves_and_ends_stay_outside(out):
    full = {row["city"]: row for row in out.to_polars().iter_rows(named=True)}
    for row, city in zip(records(out.to_csv()), CITIES, strict=True):
        exact = full[city]
        assert row["n"] == str(exact["n"])
        if exact["m"] is None:
            continue
        assert len(row["m"].partition(".")[2]) <= 2
        assert abs(float(row["m"]) - exact["m"]) <= 0.005
        assert float(row["m_low"]) <= exact["m_low"]
        assert float(row["m_high"]) >= exact["m_high"]
    assert re.search(
        r"Bonn & -?\d+ & -?\d+ & -?\d+ & \d+\.\d\d & \d+\.\d\d & \d+\.\d\d ", out.to_latex()
    )
    assert "." not in out.to_latex(float_format="%.0f").splitlines()[4]
    assert out.to_polars()["m"].drop_nulls().to_list() != [
        round(m, 2) for m in out.to_polars()["m"].drop_nulls()
    ]


def test_shares_have_decimals_too(frame):
    out = frame.crosstab(
        "city", "day", keys={"city": CITIES[:2], "day": DAYS}, normalize="index"
    ).release(epsilon=2)
    assert all(len(cell) <= 7 for row in records(out.to_csv()) for cell in [*row.values()][1:])
    assert re.search(r"Bonn & 0\.\d{3,4} & 0\.\d{3,4} ", out.to_latex())


def _series(frame):
    nights = frame.budget.series("nights", every="1d", horizon=2, unit_periods=1, epsilon=1.0)
    for day in DAYS:
        nights.add(frame.sum("x", bounds=(0, 150)), day)
    return nights.table()


KINDS = {
    "correlations": lambda frame: frame.corr(
        ["x", "year"], bounds={"x": (0, 150), "year": (2025, 2026)}
    ).release(2),
    "covariances": lambda frame: frame.cov(
        ["x", "year"], bounds={"x": (0, 150), "year": (2025, 2026)}
    ).release(2),
    "regression": lambda frame: frame.ols(
        y="x", x=["year"], bounds={"x": (0, 150), "year": (2025, 2026)}
    ).release(2),
    "description": lambda frame: frame.describe(["x"], bounds={"x": (0, 150)}).release(2),
    "series": _series,
    "hierarchy": lambda frame: frame.hierarchy(
        ["city", "day"], keys=[(city, day) for city in CITIES for day in DAYS]
    ).release(2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_every_kind_of_release_have_decimals_that_say_something(frame, kind):
    """Noise of at least a thousandth of a number leaves its fourth
    digit behind the point to chance.
    """
    out = KINDS[kind](frame)
    numbers = [
        cell
        for row in records(out.to_csv())
        for cell in row.values()
        if re.fullmatch(r"-?\d+\.\d+", cell)
    ]
    assert all(len(number.partition(".")[2]) <= 5 for number in numbers), numbers
    assert numbers or kind == "hierarchy"


@pytest.mark.parametrize("kind", ["to_csv", "to_latex", "to_html"])
def test_footnotes_say_the_price_the_unit_the_intervals_and_what_was_suppressed(
    out, kind, tmp_path
):
    hidden = out.suppress(10, "<10")
    text, plain = (getattr(hidden, kind)(notes=notes) for notes in (True, False))
    text = text.replace(r"\ensuremath{\varepsilon}", "ε")
    for words in ("ε = 2", "at most 1 row", "95", "suppress(below=10)"):
        assert words in text.replace("{", "").replace("}", "")
        assert words == "95" or words not in plain
    assert text.startswith(plain.rstrip("\n"))
    getattr(hidden, kind)(tmp_path / "file", notes=True)
    assert (tmp_path / "file").read_text("utf-8") == getattr(hidden, kind)(notes=True)
    if kind == "to_csv":
        assert pd.read_csv(io.StringIO(text), comment="#").shape == (3, 7)


def test_a_cell_that_looks_like_a_note_is_none(frame):
    out = frame.group_by("city", keys=["Bonn"]).agg(**{"a\n# b": dp.count()}).release(epsilon=1)
    assert len(list(csv.reader(io.StringIO(out.to_csv())))) == 2


def test_excel_shows_thousands_and_decimals_of_numbers_and_leaves_keys(frame, out, tmp_path):
    out.to_excel(tmp_path / "a.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx")["table"]
    assert [cell.number_format for cell in sheet[2]] == [
        "General",
        *["#,##0"] * 3,
        *["#,##0.00"] * 3,
    ]
    assert out.to_polars()["n"][0] == sheet["B2"].value
    years = frame.group_by("year", keys=[2025, 2026]).count().release(epsilon=1)
    years.to_excel(tmp_path / "b.xlsx")
    book = openpyxl.load_workbook(tmp_path / "b.xlsx")
    assert [cell.number_format for cell in book["table"][2]] == ["General", "#,##0"]
    assert "released at ε = 1" in book["privacy"]["A2"].value


def test_metadata_of_csv_on_the_web_describe_the_columns_as_they_are(crosstab, out, tmp_path):
    for release, marks in (
        (out.suppress(10, "<10"), ["<10", "*"]),
        (crosstab.suppress(10, ("<", "c")), ["<", "c"]),
    ):
        path = tmp_path / "table.csv"
        release.to_csv(path, metadata=True)
        about = json.loads((tmp_path / "table.csv-metadata.json").read_text("utf-8"))
        assert about["@context"] == "http://www.w3.org/ns/csvw"
        assert about["url"] == "table.csv"
        assert any("suppress" in note for note in about["notes"])
        columns, rows = (
            about["tableSchema"]["columns"],
            list(csv.reader(io.StringIO(path.read_text("utf-8")))),
        )
        assert [column["titles"] for column in columns] == rows[0]
        read = {"integer": int, "double": float, "string": str}
        for row in rows[1:]:
            for column, cell in zip(columns, row, strict=True):
                assert cell in column["null"] or read[column["datatype"]](cell) is not None
        assert columns[1]["null"] == ["", *marks]
    with pytest.raises(InvalidArgument, match="path"):
        out.to_csv(metadata=True)


def check_sdmx(text):
    """The rules of SDMX-CSV 2.0 that a file must keep, and its rows."""
    rows = records(text)
    names = list(rows[0])
    assert names[:3] == ["STRUCTURE", "STRUCTURE_ID", "ACTION"]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Z][A-Z0-9_]*", name) for name in names)
    dimensions = names[3 : names.index("OBS_VALUE")]
    assert len({tuple(row[name] for name in dimensions) for row in rows}) == len(rows)
    for row in rows:
        assert row["STRUCTURE"] == "dataflow"
        assert re.fullmatch(r"[A-Za-z][\w.-]*:[\w@$-]+\(\d+\.\d+(\.\d+)?\)", row["STRUCTURE_ID"])
        assert row["ACTION"] in ("I", "A", "R", "D", "M")
        assert all(row[name] for name in dimensions)
        assert re.fullmatch(r"\d{4}-\d\d-\d\d|_T", row.get("TIME_PERIOD", "_T"))
        assert (row["OBS_STATUS"] == "A") == bool(row["OBS_VALUE"])
        if row["OBS_VALUE"]:
            assert float(row["LOWER"]) <= float(row["OBS_VALUE"]) <= float(row["UPPER"])
            assert row["CONF_STATUS"] == "F"
        else:
            assert (row["OBS_STATUS"], row["CONF_STATUS"]) in (("Q", "C"), ("Q", "D"), ("M", "F"))
    return rows


def test_sdmx_has_a_line_for_each_number_with_its_status(crosstab, out):
    rows = check_sdmx(out.to_sdmx(structure="DESTATIS:VISITS(2.1)"))
    assert [(row["CITY"], row["MEASURE"]) for row in rows[:4]] == [
        ("Bonn", "n"), ("'=1+1", "n"), ("Kiel", "n"), ("Bonn", "m"),
    ]  # fmt: skip
    whole = check_sdmx(crosstab.to_sdmx())
    assert len(whole) == 4 * 3
    assert whole[-1]["CITY"] == whole[-1]["TIME_PERIOD"] == "_T"
    assert int(whole[-1]["OBS_VALUE"]) == sum(int(row["OBS_VALUE"]) for row in whole[:6])
    hidden = check_sdmx(crosstab.suppress(10).to_sdmx())
    assert {row["CONF_STATUS"] for row in hidden} >= {"F", "C"}
    shown = [row["OBS_VALUE"] for row in hidden if row["OBS_VALUE"]]
    assert len(shown) == int(crosstab.suppress(10).to_pandas().notna().to_numpy().sum())
    for wrong in ("x", None, "A:B", "A:B(1)"):
        with pytest.raises(InvalidArgument, match="AGENCY"):
            out.to_sdmx(structure=wrong)


def test_sdmx_of_subtotals_and_of_keys_without_a_value(frame):
    rows = pl.DataFrame(
        {"region": ["n", "n", "s"] * 90, "town": ["a", "b", None] * 90, "sex": ["f", "m"] * 135}
    )
    people = dp.protect(rows, unit=dp.Rows(1), budget=dp.Budget(epsilon=1e6))
    keys = [("n", "a"), ("n", "b"), ("s", None)]
    asked = {
        "keys": [(*key, sex) for key in keys for sex in "fm"],
        "margins": True,
        "subtotals": True,
    }
    text = (
        people.crosstab(["region", "town"], "sex", **asked)
        .release(epsilon=9)
        .suppress(60)
        .to_sdmx()
    )
    found = check_sdmx(text)
    assert len(found) == 6 * 3
    assert {row["TOWN"] for row in found} == {"a", "b", "_U", "_T"}


# Charts


def cells_of(chart):
    (rows,) = chart.to_dict()["datasets"].values()
    return rows


def test_all_quantiles_of_a_column_are_drawn_and_one_where_it_is_named(frame):
    groups = frame.group_by("city", keys=CITIES[:2])
    out = groups.agg(x=dp.quantile("x", [0.25, 0.5, 0.75], bounds=(0, 150))).release(epsilon=9)
    chart = out.plot(label="minutes").to_dict()
    assert chart["title"]["text"] == ["minutes by city"]
    assert len(cells_of(out.plot())) == 6
    assert {row["series"] for row in cells_of(out.plot())} == {"0.25", "0.5", "0.75"}
    assert len(cells_of(out.plot("x_0.5"))) == 2


def test_a_label_is_the_title_and_the_axis(frame):
    out = frame.group_by("day", keys=DAYS).count().release(epsilon=1)
    for chart in (
        out.plot(label="people per day"),
        out.rolling(2).mean().plot(label="people per day"),
    ):
        text = json.dumps(chart.to_dict())
        assert text.count("people per day") >= 2
        assert "Number of rows" not in text
    for wrong in ("", 3):
        with pytest.raises(InvalidArgument, match="people per day"):
            out.plot(label=wrong)


def test_a_cohort_table_is_drawn_as_shaded_cells(frame):
    cohorts = frame.with_columns(late=dp.col("x") > 70).group_by("city", keys=CITIES)
    out = cohorts.agg(first=dp.mean("x", bounds=(0, 150)), late=dp.mean("late")).release(epsilon=9)
    rows = cells_of(out.plot(kind="heatmap"))
    assert {(row["row"], row["column"]) for row in rows} == {
        (city, name) for city in CITIES for name in ("first", "late")
    }
    assert {row["text"] for row in rows if row["row"] == "Kiel"} == {"–"}  # nobody is there
    with pytest.raises(InvalidArgument, match="heatmap"):
        out.plot(kind="pie")


def test_suppressed_cells_of_a_crosstab_stay_with_their_marks(crosstab):
    hidden = crosstab.suppress(10, "<10")
    texts = {(row["row"], row["column"]): row["text"] for row in cells_of(hidden.plot())}
    assert len(texts) == 4 * 3
    assert {texts["Kiel", column] for column in ("2026-01-01", "2026-01-02")} <= {"<10", "*"}
    assert "<10" in json.dumps(
        hidden.plot(sort="descending").to_dict()["title"], ensure_ascii=False
    )


def test_sdmx_of_a_hierarchy_has_totals_in_the_levels_below(frame):
    people = protect_tree()
    rows = check_sdmx(people.to_sdmx())
    assert [(row["REGION"], row["TOWN"]) for row in rows] == [
        *[("_T", "_T"), ("n", "_T"), ("s", "_T")],
        *[("n", "Husum"), ("n", "Kiel"), ("s", "Ulm")],
    ]
    assert people.to_sdmx(level="region").splitlines()[1:] != people.to_sdmx().splitlines()[1:]


def protect_tree():
    table = pl.DataFrame({"region": ["n", "n", "s"] * 30, "town": ["Kiel", "Husum", "Ulm"] * 30})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=100))
    return frame.hierarchy(
        ["region", "town"], keys=[("n", "Husum"), ("n", "Kiel"), ("s", "Ulm")]
    ).release(epsilon=9)


def test_a_dash_stands_for_a_suppressed_number_where_people_read(out, crosstab, tmp_path):
    for released in (out, crosstab, protect_tree()):
        hidden = released.suppress(1000)
        assert "<td>\N{EN DASH}</td>" in hidden.to_html()
        assert "\N{EN DASH}: no number is released." in hidden.to_latex()
        hidden.to_excel(tmp_path / "table.xlsx")
        sheet = openpyxl.load_workbook(tmp_path / "table.xlsx").worksheets[0]
        assert "\N{EN DASH}" in [cell for row in sheet.iter_rows(values_only=True) for cell in row]
        assert "\N{EN DASH}" not in hidden.to_csv()
    assert "\N{EN DASH}" not in protect_tree().to_html()
    assert "few" in out.suppress(1000, marker="few").to_html(notes=False)


def test_intervals_of_rates_are_for_the_population_by_default():
    table = pl.DataFrame(
        {"city": ["a", "b"] * 500, "yes": [True, False, False, False] * 250, "x": [1.5] * 1000}
    )
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=100))
    groups = frame.group_by("city", keys=["a", "b"])
    ends = ["city", "yes", "yes_low", "yes_high"]
    assert groups.mean("yes").release(epsilon=1.0, ci=0.95).table.columns == ends
    out = groups.mean("yes").release(epsilon=1.0)
    assert out.with_ci().table.columns == ends
    assert any("sampling of people" in line for line in out.plot().to_dict()["title"]["subtitle"])
    # a typed word holds, and other numbers have intervals of their noise
    for covers in ("noise", None):
        asked = (
            groups.agg(yes=dp.mean("yes"), n=dp.count()) if covers is None else groups.mean("yes")
        )
        assert asked.release(epsilon=1.0, ci=0.95, covers=covers).table.columns[2] == "yes_low"
    assert groups.mean("x", bounds=(0, 9)).release(epsilon=1.0, ci=0.95).table.columns[2] == "x_low"
    assert out.with_ci(covers="noise").table.columns[2] == "yes_low"


def test_a_heatmap_of_a_cohort_has_no_counts():
    table = pl.DataFrame({"first": [1, 2] * 500, "month 2": [True, False, False, True] * 250})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=100))
    out = frame.group_by("first", keys=[1, 2]).agg(
        **{"people": dp.count(), "month 2": dp.mean("month 2")}
    )
    assert len(cells_of(out.release(epsilon=1.0).plot(kind="heatmap"))) == 2
