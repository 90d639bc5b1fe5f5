"""How a release looks and leaves: charts, HTML with margins of error,
files with the privacy statement.
"""

import datetime as dt
import io
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import altair as alt
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from scipy import stats

import dpframe as dp
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.release.shown import error_table
from dpframe.release.shown.charts import margin, shown
from dpframe.theory import max_divergence, renyi_divergence
from dpframe.theory.checks import plots
from inside import numbers_of

LONG = [
    "Administrative and support service workers",
    "Craft and related trades workers",
    "<b>other</b>",
]
JOBS = [job for job, people in zip(LONG, (200, 80, 20), strict=True) for _ in range(people)]
# Jobs differ in size, so that their means and shares differ in their margins of error, whatever the
# noise is.
ROWS = {"id": range(300), "job": JOBS, "sex": ["f", "m"] * 150, "age": range(300)}
STAY = dt.timedelta(hours=5)
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.fixture(params=KINDS)
def frame(request):
    return dp.protect(
        KINDS[request.param](ROWS), unit="id", budget=dp.Budget(epsilon=1e9, delta=0.5)
    )


def grouped(frame, epsilon=1.0):
    query = frame.group_by("job", keys=LONG, max_groups=1, max_rows=1)
    return query.agg(n=dp.count(), age=dp.mean("age", bounds=(0, 300))).release(epsilon=epsilon)


def crosstab(frame, **options):
    return frame.crosstab(
        "job", "sex", keys={"job": LONG, "sex": ["f", "m"]}, max_rows=1, **options
    ).release(epsilon=1)


def rows_of(chart):
    """The data of a chart as it will be drawn."""
    (rows,) = chart.to_dict()["datasets"].values()
    return rows


def png(chart):
    buffer = io.BytesIO()
    chart.save(buffer, format="png")
    data = buffer.getvalue()
    assert data[:4] == b"\x89PNG"
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def test_bars_show_every_group_with_its_error_in_order(frame):
    out = grouped(frame)
    chart = out.plot()
    assert isinstance(chart, alt.LayerChart)
    rows = rows_of(chart)
    assert [row["key0"] for row in rows] == LONG
    assert [row["value"] for row in rows] == out.to_polars()["n"].to_list()
    error = error_table(numbers_of(out), 0.05)["error"][0]
    assert all(row["upper"] - row["lower"] == pytest.approx(2 * error) for row in rows)
    assert [row["value"] for row in rows_of(out.plot("age"))] == pytest.approx(
        out.to_polars()["age"].to_list()
    )
    width, height = png(chart)
    assert 400 < width < 900
    assert height > 90


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "options", [{}, {"margins": True}, {"margins": True, "normalize": "index"}]
)
def test_a_crosstab_is_a_heatmap_with_unshaded_margins(frame, options):
    out = crosstab(frame, **options)
    rows = rows_of(out.plot())
    table = out.to_pandas()
    assert len(rows) == table.size
    assert sum(row["value"] is None for row in rows) == table.size - 6
    assert all(row["interval"].startswith("± ") for row in rows)
    assert 300 < png(out.plot())[0] < 900


START = dt.datetime(2026, 3, 1)
TIMES = {
    "day": (START.date(), START.date() + dt.timedelta(days=100), pl.Date()),
    "clock": (START, START + dt.timedelta(days=2), pl.Datetime("us")),
    "zoned": (
        *(at.replace(tzinfo=dt.UTC) for at in (START, START + dt.timedelta(days=2))),
        pl.Datetime("ms", "UTC"),
    ),
    "spent": (dt.timedelta(0), dt.timedelta(hours=10), pl.Duration("us")),
}


def at_times(column, aggregate, number=3):
    """A release by group without noise to speak of: the values lie evenly between their bounds."""
    low, high, dtype = TIMES[column]
    keys = [f"group {i}" for i in range(number)]
    rows = {
        "id": range(900),
        "g": [keys[i % number] for i in range(900)],
        "x": [low + (high - low) * i / 899 for i in range(900)],
    }
    table = pl.DataFrame(rows).with_columns(pl.col("x").cast(dtype))
    if column == "zoned":
        table = table.with_columns(pl.col("x").dt.convert_time_zone("Asia/Tokyo"))
    frame = dp.protect(table, unit="id", budget=dp.Budget(epsilon=1e9, delta=0.5))
    groups = frame.group_by("g", keys=keys, max_groups=1, max_rows_per_group=1)
    return groups.agg(v=aggregate("x", (low, high)), n=dp.count()).release(epsilon=1e6)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("number", [3, 20])
@pytest.mark.parametrize("column", ["day", "clock", "zoned"])
@pytest.mark.parametrize("aggregate", [dp.mean, dp.median])
def test_dates_and_times_are_points_on_an_axis_of_time(column, aggregate, number):
    out = at_times(column, aggregate, number)
    chart = out.plot("v")
    made = chart.to_dict()
    point = made["layer"][0]
    shown = point["encoding"]["x"]
    assert point["mark"]["type"] == "point"
    assert (shown["type"], shown["scale"]["type"]) == ("temporal", "utc")
    rows, values = rows_of(chart), out.to_polars()["v"]
    assert [row["text"] for row in rows] == [str(value)[:19] for value in values]
    wall = (
        values.cast(pl.Datetime("ms"))
        if values.dtype == pl.Date
        else values.dt.replace_time_zone(None)
    )
    assert [row["value"] for row in rows] == wall.dt.epoch("ms").to_list()
    low, high = shown["scale"]["domain"]
    assert all(low <= row[end] <= high for row in rows for end in ("value", "lower", "upper"))
    assert {layer["mark"]["type"] for layer in out.plot("n").to_dict()["layer"]} == {
        "bar",
        "rule",
        "tick",
    }


@pytest.mark.parametrize(
    ("column", "aggregate", "unit", "value"),
    [("spent", dp.mean, "hours", 5), ("day", dp.std, "days", 29)],
)
def test_durations_are_bars_in_a_unit(column, aggregate, unit, value):
    chart = at_times(column, aggregate).plot()
    bar = chart.to_dict()["layer"][0]
    assert bar["mark"]["type"] == "bar"
    assert bar["encoding"]["x"]["axis"]["title"].endswith(f" of x ({unit})")
    assert [row["value"] for row in rows_of(chart)] == pytest.approx([value] * 3, abs=0.3)


def test_suppressed_groups_have_no_interval_either(frame):
    chart = grouped(frame).suppress(below=1e6).plot()
    assert {row[part] for row in rows_of(chart) for part in ("value", "lower", "upper")} == {None}
    assert png(chart)[0] < 900
    times = at_times("clock", dp.mean).suppress(below=1e6).plot()
    assert {row["lower"] for row in rows_of(times)} == {None}
    assert png(times)[0] < 900


@pytest.mark.parametrize("column", ["spent", "day", "clock", "zoned"])
def test_marks_of_suppressed_groups_stand_beside_times(column):
    """A duration has no text in Polars, so that nothing could be written."""
    marked = at_times(column, dp.mean).suppress(below=1e6, marker="few")
    assert marked.to_csv().count("few") == 6
    assert all("few" in text for text in (marked.to_html(), marked.to_latex()))
    marked.to_excel(io.BytesIO())


def test_suppressed_cells_are_dashes(frame):
    out = crosstab(frame).suppress(below=1e6)
    assert [row["text"] for row in rows_of(out.plot())] == ["–"] * 6
    assert "–" in out._repr_html_()
    assert "nan" not in out.to_latex().lower()
    assert "nan" not in out.to_html().lower()


def test_what_is_no_picture_is_refused(frame):
    with pytest.raises(UnsupportedOperation, match="no groups"):
        frame.count_units().release(epsilon=1).plot()
    with pytest.raises(InvalidArgument, match="no column 'x'"):
        grouped(frame).plot("x")
    with pytest.raises(InvalidArgument, match="that is a list"):
        grouped(frame).plot(["n"])


def test_the_notebook_shows_the_first_rows_of_a_long_table(frame):
    many = frame.histogram("age", bins=range(1000), max_rows=1).release(epsilon=1)
    assert "… and 939 more rows." in many._repr_html_()


@pytest.mark.parametrize(
    ("module", "package", "ask"),
    [
        ("altair", "altair", lambda out, _: out.plot()),
        ("altair", "altair", lambda *_: plots.averaged_pair()),
        ("openpyxl", "openpyxl", lambda out, folder: out.to_excel(folder / "out.xlsx")),
        ("jinja2", "jinja2", lambda out, _: out.to_latex()),
        ("psycopg", "'psycopg[binary]'", lambda *_: dp.Ledger("postgresql+psycopg://me@/study")),
        ("dp_accounting.pld", "dp-accounting", lambda *_: _together()),
        (
            "scipy.optimize",
            "scipy",
            lambda *_: max_divergence(stats.logistic(0), stats.logistic(1)),
        ),
        ("scipy.integrate", "scipy", lambda *_: renyi_divergence(stats.norm(0), stats.norm(1), 2)),
    ],
)
def test_what_an_extra_brings_is_asked_for_by_the_name_of_its_package(
    frame, tmp_path, monkeypatch, module, package, ask
):
    """A package of the name of this one may be somebody else's."""
    out = grouped(frame)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UnsupportedOperation) as refused:
        ask(out, tmp_path)
    assert f"pip install {package}" in str(refused.value)


def test_no_line_to_type_installs_a_package_by_the_name_of_this_one():
    files = [*Path(dp.__file__).parent.rglob("*.py")]
    assert len(files) > 300
    assert not [file for file in files if re.search(r"pip install ['\"]?dpframe", file.read_text())]


def _together():
    budget = dp.Budget(epsilon=9, delta=1e-6, accountant="pld")
    people = pl.DataFrame({"id": [1], "x": [2]}).dp(unit="id", budget=budget)
    budget.plan([people.count_units(), people.count(max_rows=1)], epsilon=1, delta=1e-7).release()


class Texts(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


def test_the_notebook_shows_margins_of_error_and_escapes_keys(frame):
    # one for the counts, and one for each mean; one for the cells, one for each margin, and the
    # total's own
    for out, numbers in ((grouped(frame), 4), (crosstab(frame, margins=True), 4)):
        page = Texts()
        page.feed(out._repr_html_())
        assert sum("± " in text for text in page.texts) == numbers
        assert "<b>other</b>" in page.texts
        assert "b" not in page.tags
        assert any("ε = 1" in text for text in page.texts)
    fixed = crosstab(frame).nonnegative().round()
    assert "round()" in fixed._repr_html_()


def test_a_margin_of_error_that_all_rows_share_is_under_the_name_of_the_column(frame):
    page = grouped(frame)._repr_html_()
    head, body = page.split("</thead>")
    assert head.count("± ") == 1
    assert ">n<br>" in head
    assert body.count("± ") == 3
    alone = frame.agg(n=dp.count(), max_rows=1).release(epsilon=1)._repr_html_()
    assert "± " not in alone.split("</thead>")[0]
    assert alone.count("± ") == 1
    suppressed = grouped(frame).suppress(below=1e6)._repr_html_()
    assert "± " not in suppressed


def test_margins_of_error_of_a_crosstab_are_beside_what_they_belong_to(frame):
    head, body = crosstab(frame, margins=True)._repr_html_().split("</thead>")
    assert [text.split(" ", 1)[0] for text in re.findall("± ([^<]*)<", head)] == re.findall(
        "± ([^<]*)<", head
    )
    assert head.count("± ") == 2  # of a cell, and under "All"
    last = body.split("<tr>")[-1]
    assert body.count("± ") == last.count("± ") == 2
    parts = crosstab(frame, normalize="index")._repr_html_()
    assert parts.split("</thead>")[1].count("± ") == 6


def test_margins_of_times_have_a_unit():
    days = [dt.datetime(2026, 1, 1) + dt.timedelta(hours=i) for i in range(2000)]
    table = pl.DataFrame({"id": range(2000), "g": "a", "day": days}).with_columns(
        since=pl.col("day") - days[0]
    )
    groups = dp.protect(table, unit="id", budget=dp.Budget(epsilon=9)).group_by(
        "g", keys=["a"], max_groups=1, max_rows_per_group=1
    )
    out = groups.agg(
        day=dp.mean("day", bounds=(dt.date(2026, 1, 1), dt.date(2026, 4, 1))),
        since=dp.mean("since", bounds=(dt.timedelta(0), dt.timedelta(days=90))),
    ).release(epsilon=4)
    margins = re.findall("± ([^<]*)<", out._repr_html_())
    assert len(margins) == 2
    for (text, unit), error in zip(
        map(str.split, margins), out.accuracy()["error"].to_list(), strict=True
    ):
        size = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}[unit]
        assert error * (1 - 1e-6) <= float(text) * size * 1e6 <= 1.011 * error
    assert [f"± {text}" for text in margins] == list(dict(out.report().errors).values())


def test_margins_are_announced_only_where_there_are_some(frame):
    keys = frame.group_by("sex", max_groups=1).keys().release(epsilon=1, delta=0.01)
    modes = frame.mode("sex", keys=["f", "m"], max_rows=1).release(epsilon=1)
    for out, announced in ((keys, False), (modes, False), (grouped(frame), True)):
        assert ("margins of error" in out._repr_html_()) is announced


def test_a_margin_of_error_is_rounded_up():
    assert [margin(x) for x in (181.02, 60.0, 0.01234, 5.0, 1234.2)] == [
        "182",
        "60",
        "0.0124",
        "5",
        "1,235",
    ]


def test_a_number_is_shown_to_two_digits_of_its_error():
    pairs = [
        (-0.8538, 15.9),
        (8.328, 15.9),
        (0.24519, 0.000623),
        (67.71, 1.2),
        (54679.3, 15.9),
        (3, 0.5),
        (2.5, None),
    ]
    assert [shown(*pair) for pair in pairs] == ["-1", "8", "0.24519", "67.7", "54,679", "3", "2.5"]
    assert shown(-0.2, 15.9) == "0"


def test_parquet_keeps_the_table_and_the_statement(frame, tmp_path):
    for out in (grouped(frame), crosstab(frame, margins=True).nonnegative().round()):
        out.to_parquet(tmp_path / "out.parquet")
        assert pl.read_parquet(tmp_path / "out.parquet").rows() == out.to_polars().rows()
        said = json.loads(
            pq.read_schema(tmp_path / "out.parquet").metadata[b"dpframe.privacy_statement"]
        )
        assert said["guarantee"]["epsilon"] == 1
        assert said == json.loads(out.report().to_json())


def test_machines_read_lists_in_full_and_people_the_first_of_them(tmp_path):
    jobs, edges = [f"job {number}" for number in range(40)], list(range(60))
    budget = dp.Ledger(tmp_path / "a.sqlite").budget("b", epsilon=10)
    for _ in range(2):  # drawn, and then stored
        frame = dp.protect(pl.DataFrame(ROWS), unit="id", budget=budget)
        steps = (
            frame.filter(dp.col("job").is_in(jobs)).cut("age", edges, into="band").clip("age", 0, 9)
        )
        out = steps.sum("age", max_rows=1).release(epsilon=1, name="age")
        said = json.loads(out.report().to_json())["bounds"]
        assert [step["step"] for step in said[1:3]] == [
            f"filter(job.is_in({jobs}))",
            f"cut('age', {edges})",
        ]
        assert said[1]["shown"] == "filter(job.is_in(['job 0', 'job 1', 'job 2', … (40 values)]))"
        assert set(said[3]) == {"step", "one_unit_has", "known"}  # of clip all is shown
        for text in (str(out.report()), out.report().to_html(), str(out.derivation)):
            assert "[0, 1, 2, … (60 values)]" in text
            assert "job 5" not in text


def test_csv_latex_and_html(frame, tmp_path):
    out = crosstab(frame, margins=True)
    out.to_csv(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == out.to_csv()
    assert pl.read_csv(tmp_path / "out.csv").rows() == out.to_polars().rows()
    out.to_html(tmp_path / "out.html")
    assert (tmp_path / "out.html").read_text("utf-8") == out.to_html()
    out.to_latex(tmp_path / "out.tex")
    assert (tmp_path / "out.tex").read_text("utf-8") == out.to_latex()
    assert out.to_latex().startswith("\\begin{tabular}")
    assert (
        pd.read_html(io.StringIO(out.to_html()))[0].shape[0] == 4
        if _has_lxml()
        else "<table" in out.to_html()
    )
    assert not grouped(frame).to_latex().splitlines()[4].startswith("0 &")  # no index


def _has_lxml():
    try:
        import lxml  # noqa: F401
    except ImportError:
        return False
    return True


def series(frame):
    nights = frame.budget.series("n", every="1d", horizon=9, epsilon=1.0, unit_periods=1)
    return nights.add(frame.count(max_rows=1), period="2026-01-01")


BOUNDS = {"age": (0, 300), "id2": (0, 300)}
KEYS = {"job": LONG, "sex": ["f", "m"]}
EVERY_KIND = {
    "table": grouped,
    "crosstab": crosstab,
    "marginals": lambda f: f.marginals(["job", "sex"], keys=KEYS, max_rows=1).release(
        epsilon=1, delta=1e-6
    ),
    "hierarchy": lambda f: f.hierarchy(["job"], keys=LONG, max_rows=1).release(epsilon=1),
    "rows": lambda f: f.synthesize(["job", "sex"], keys=KEYS, max_rows=1).release(
        epsilon=1, delta=1e-6
    ),
    "matrix": lambda f: f.corr(["age", "id2"], BOUNDS, max_rows=1).release(epsilon=1),
    "regression": lambda f: f.ols(y="age", x=["id2"], bounds=BOUNDS, max_rows=1).release(epsilon=1),
    "series": series,
}


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_kind_of_answer_has_every_conversion_and_every_file(kind, tmp_path):
    table = pl.DataFrame({**ROWS, "id2": range(300)})
    out = EVERY_KIND[kind](dp.protect(table, unit="id", budget=dp.Budget(epsilon=9.0, delta=1e-3)))
    names = out.to_polars().columns
    assert (
        out.to_arrow().column_names
        == names
        == out.to_csv().splitlines()[0].replace('"', "").split(",")
    )
    assert len(out.to_pandas()) == out.to_polars().height == len(out.to_csv().splitlines()) - 1
    assert out.to_latex().startswith(r"\begin{tabular}")
    assert out.to_html().startswith("<table")
    out.to_parquet(tmp_path / "a.parquet")
    statement = pq.read_schema(tmp_path / "a.parquet").metadata[b"dpframe.privacy_statement"]
    assert json.loads(statement) == out.report().to_dict()
    out.to_excel(tmp_path / "a.xlsx")
    assert list(pd.read_excel(tmp_path / "a.xlsx", sheet_name=None))[-1] == "privacy"


def test_a_table_that_is_longer_than_a_sheet_is_refused(monkeypatch, frame, tmp_path):
    out = grouped(frame)
    monkeypatch.setattr("dpframe.release.shown.files._LINES", 3)
    with pytest.raises(UnsupportedOperation, match="a sheet holds 2 rows"):
        out.to_excel(tmp_path / "a.xlsx")


def test_excel_opens_with_the_table_and_a_sheet_for_the_statement(frame, tmp_path):
    pytest.importorskip("openpyxl")
    out = crosstab(frame, margins=True)
    out.to_excel(tmp_path / "out.xlsx")
    sheets = pd.read_excel(tmp_path / "out.xlsx", sheet_name=None, index_col=0)
    assert list(sheets) == ["table", "95% intervals", "privacy"]
    assert sheets["table"].index.name == " \\ ".join(
        [out.to_pandas().index.name, out.to_pandas().columns.name]
    )
    assert sheets["table"].to_numpy().tolist() == out.to_pandas().to_numpy().tolist()
    assert any("ε = 1" in str(line) for line in sheets["privacy"].index)


def test_excel_gets_times_with_a_zone_as_text_and_durations_as_hours(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    times = [dt.datetime(2026, 1, day, tzinfo=dt.UTC) for day in (1, 2)]
    table = pl.DataFrame(
        {"id": range(40), "at": times * 20, "sex": ["f", "f", "m", "m"] * 10, "took": [STAY] * 40}
    )
    frame = dp.protect(table, unit="id", budget=dp.Budget(epsilon=1000))
    stays = frame.group_by("at", keys=times, max_rows=1).mean(
        "took", bounds=(dt.timedelta(0), 2 * STAY)
    )
    down = frame.crosstab(
        ["sex", "at"], "took", keys={"sex": ["f", "m"], "at": times, "took": [STAY]}, max_rows=1
    )
    for query, written in (
        (
            stays,
            [
                ["at", "took"],
                ["2026-01-01 00:00:00+00:00", STAY],
                ["2026-01-02 00:00:00+00:00", STAY],
            ],
        ),
        (down, [["sex", "at \\ took", STAY], ["f", "2026-01-01 00:00:00+00:00", 10]]),
    ):
        query.release(epsilon=400).to_excel(tmp_path / "out.xlsx")
        cells = list(openpyxl.load_workbook(tmp_path / "out.xlsx")["table"].iter_rows())
        rows = [[_whole_hours(cell.value) for cell in row] for row in cells]
        assert rows[: len(written)] == written
        for cell in (
            cell for row in cells for cell in row if not isinstance(cell.value, str | None)
        ):
            assert cell.number_format == (
                "[h]:mm:ss" if isinstance(cell.value, dt.timedelta) else "#,##0"
            )


_DAY, _SECOND = dt.timedelta(days=1), dt.timedelta(seconds=1)
_START, _END = dt.datetime(2025, 1, 1), dt.datetime(2027, 1, 1)
_MOMENTS = {  # a value, its bounds, and how pages, exchange files and sentences write them
    "days": (2 * _DAY, (0 * _DAY, 30 * _DAY), "2 days", "P2D", "[0:00:00, 30 days]"),
    "hours": (1.25 * _DAY, (-_DAY, 3 * _DAY), "1 day 6:00:00", "P1DT6H", "[-1 day, 3 days]"),
    "date": (
        dt.date(2026, 1, 2),
        (_START.date(), _END.date()),
        *2 * ["2026-01-02"],
        "[2025-01-01, 2027-01-01]",
    ),
    "time": (
        dt.datetime(2026, 1, 2, 6),
        (_START, _END),
        "2026-01-02 06:00:00",
        "2026-01-02T06:00:00",
        "[2025-01-01 00:00:00, 2027-01-01 00:00:00]",
    ),
}


@pytest.mark.parametrize("kind", _MOMENTS)
def test_times_read_well_in_every_output(kind):
    value, bounds, text, iso, ends = _MOMENTS[kind]
    frame = dp.protect(
        pl.DataFrame({"x": [value] * 5000}), unit=dp.Rows(1), budget=dp.Budget(epsilon=1e9)
    )
    out = frame.median("x", bounds=bounds).release(epsilon=1e6, ci=0.95)
    for sentence in (repr(out), str(out.report())):
        assert ends in sentence
    for written in (out.to_latex(), out.to_html(), out._repr_html_()):
        assert text in written
        assert not re.search(", 0:00:00|2026-01-02 00:00:00", written)
    assert f",{iso}," in out.to_sdmx()
    assert iso in out.to_csv()


def test_times_have_no_more_decimals_than_their_margins_leave():
    draw = [1.234567 * number * _DAY for number in range(1, 20)] * 100
    frame = dp.protect(pl.DataFrame({"x": draw}), unit=dp.Rows(1), budget=dp.Budget(epsilon=1e9))
    out = frame.mean("x", bounds=(0 * _DAY, 30 * _DAY)).release(epsilon=1, ci=0.95)
    for written in (
        out.to_csv(),
        out.to_latex(notes=False),
        out.to_html(notes=False),
        out.to_sdmx(),
    ):
        assert not re.search(r"\d\.\d+S?\b", written.replace("(1.0.0)", ""))
    low, value, high = (out.table[name][0] for name in ("x_low", "x", "x_high"))
    ends = [re.findall(r"P[0-9DTHMS]+", out.to_csv())[place] for place in (1, 2)]
    assert ends == [
        pl.Series([end]).dt.to_string("iso")[0] for end in (_second(low), _second(high) + _SECOND)
    ]
    assert low < value < high


def test_numbers_and_times_beside_marks_stay_what_they_are(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    table = pl.DataFrame({"g": ["a"] * 500 + ["b"], "x": [_DAY] * 501})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=1000))
    query = frame.group_by("g", keys=["a", "b"]).agg(
        n=dp.count(), x=dp.mean("x", bounds=(0 * _DAY, 2 * _DAY))
    )
    out = query.release(epsilon=100).suppress(100, marker="few")
    out.to_excel(tmp_path / "out.xlsx")
    rows = [
        row[1:]
        for row in openpyxl.load_workbook(tmp_path / "out.xlsx")["table"].iter_rows(
            values_only=True
        )
    ][1:]
    assert [tuple(map(type, row)) for row in rows] == [(int, dt.timedelta), (str, str)]
    assert rows[1] == ("few", "few")
    assert re.search(r"^a,500,P", out.to_csv(), re.MULTILINE)
    assert "b,few,few" in out.to_csv()


def test_latex_needs_no_package_but_booktabs():
    table = pl.DataFrame({"a": ["x", "y"] * 50, "b": ["u"] * 100, "c": ["v"] * 100})
    frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=9))
    keys = {"a": ["x", "y"], "b": ["u", "w"], "c": ["v", "z"]}
    text = (
        frame.crosstab(["a", "b"], "c", keys=keys, margins=True, subtotals=True)
        .release(epsilon=1)
        .to_latex()
    )
    assert set(re.findall(r"\\([a-zA-Z]+)", text)) <= {
        *(
            "begin",
            "end",
            "toprule",
            "midrule",
            "bottomrule",
            "cline",
            "footnotesize",
            "par",
            "noindent",
        ),
        *("ensuremath", "varepsilon", "pm"),
    }


def _second(length):
    return length // _SECOND * _SECOND


def _whole_hours(value):
    return (
        dt.timedelta(hours=round(value / dt.timedelta(hours=1)))
        if isinstance(value, dt.timedelta)
        else value
    )


def test_excel_takes_no_key_for_a_formula_and_any_key_for_a_text(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    frame = dp.protect(
        pl.DataFrame({"id": [1], "=a": ["=1+1"]}), unit="id", budget=dp.Budget(epsilon=9)
    )
    out = (
        frame.group_by("=a", keys=["=1+1", "a\x00b"], max_groups=1).count_units().release(epsilon=1)
    )
    out.to_excel(tmp_path / "out.xlsx")
    cells = [row[0] for row in openpyxl.load_workbook(tmp_path / "out.xlsx")["table"].iter_rows()]
    assert [(cell.value, cell.data_type) for cell in cells] == [
        ("=a", "s"),
        ("=1+1", "s"),
        ("a\N{REPLACEMENT CHARACTER}b", "s"),
    ]


# too few units: that is what is drawn here
@pytest.mark.filterwarnings("ignore:The released table is empty")
def test_without_a_group_there_is_no_picture(frame):
    for query in (
        frame.crosstab("job", "sex", max_groups=1, max_rows=1),
        frame.group_by("age", max_rows=1).count(),
    ):
        out = query.release(epsilon=0.01, delta=1e-9)
        assert out.to_polars().is_empty()
        with pytest.raises(UnsupportedOperation, match="no group was released"):
            out.plot()
