"""What a chart shows: marks, places, colours, titles and notes, of released numbers
alone; and that it can be drawn.

Numbers are made up here: errors as `Release.accuracy` gives them, which a chart is made of.
"""

import datetime as dt
import io
import math

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidArgument, InvalidPrice, UnsupportedOperation
from dpframe.release.shown import Grouped, Heading, grouped_chart, read_look
from dpframe.release.shown.charts import Look, heatmap, margin, shown
from dpframe.release.shown.charts.look import labels_of, wrapped
from dpframe.release.shown.charts.places import (
    BinPlace,
    NamePlace,
    NumberPlace,
    TimePlace,
    place_of,
)
from dpframe.release.shown.crosstab import Crosstab

HEADING = Heading("Number of rows by key", ("Released at ε = 1; protected: unit 'user'.",))
NO_LOOK = Look()
DAYS = [dt.date(2026, 1, 1) + dt.timedelta(days=i) for i in range(40)]


def errors_of(keys, values, error=10.0, **types):
    """A table of errors: keys by name, then what `Release.accuracy` says of one column."""
    value = pl.Series("value", values, dtype=pl.Float64)
    errors = pl.Series("error", [error] * len(value), dtype=pl.Float64)
    table = pl.DataFrame(keys, schema_overrides=types)
    numbers = pl.DataFrame({"column": ["n"] * len(value), "value": value, "error": errors})
    known = pl.when(pl.col("value").is_not_null())
    numbers = numbers.with_columns(
        error=known.then("error"),
        lower=known.then(value - errors),
        upper=known.then(value + errors),
    )
    return pl.concat([table, numbers], how="horizontal")


def chart_of(keys, values, error=10.0, look=NO_LOOK, *, dtype=None, rest=False, **types):
    errors = errors_of(keys, values, error, **types)
    return grouped_chart(
        Grouped(tuple(keys), errors, dtype or pl.Int64(), "Number of rows", rest=rest),
        HEADING,
        look,
    )


def spec(chart, made={}):  # noqa: B006 - a chart is written once
    if id(chart) not in made:
        made[id(chart)] = chart, chart.to_dict()
    return made[id(chart)][1]


def rows_of(chart):
    (rows,) = spec(chart)["datasets"].values()
    return rows


def marks_of(chart):
    return [layer["mark"]["type"] for layer in spec(chart)["layer"]]


def notes_of(chart):
    return " ".join(spec(chart)["title"]["subtitle"])


def png(chart):
    """Width and height of the chart, drawn."""
    buffer = io.BytesIO()
    chart.save(buffer, format="png")
    data = buffer.getvalue()
    assert data[:4] == b"\x89PNG"
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


KINDS = {
    "names": lambda: chart_of({"k": ["a", None, "c"]}, [100, -50, 3]),
    "long names": lambda: chart_of(
        {"k": [LONG * 50, "数" * 300, "line\nend", "", "\x00"]}, [100] * 5
    ),
    "many names": lambda: chart_of({"k": [f"{LONG} {i}" for i in range(500)]}, range(500)),
    "one name": lambda: chart_of({"k": ["a"]}, [100]),
    "steps": lambda: chart_of({"k": [1, 2, 5, None]}, [100, -50, 3, 1]),
    "many steps": lambda: chart_of({"k": range(1000)}, range(1000)),
    "colours": lambda: chart_of({"k": [1, 1, 2, 2], "sex": ["f", "m"] * 2}, [100, 200, 300, 5]),
    "colours of names": lambda: chart_of(
        {"k": list("aabb"), "sex": ["f", "m"] * 2}, [100, 200, 300, 5]
    ),
    "days": lambda: chart_of({"day": DAYS}, [*range(20), None, *range(19)]),
    "one day": lambda: chart_of({"day": DAYS[:1]}, [5]),
    "nothing": lambda: chart_of({"k": ["a", "b"]}, [None, None]),
    "huge": lambda: chart_of(
        {"k": ["a", "b", "c"]}, [1.7e308, -1e300, None], 1e300, dtype=pl.Float64()
    ),
    "tiny": lambda: chart_of({"k": DAYS[:2]}, [1e-300, -1e-300], 1e-300, dtype=pl.Float64()),
    "moments": lambda: chart_of({"k": ["a", "b"]}, [20_000.0, 20_009.0], 2.5, dtype=pl.Date()),
    "moments of steps": lambda: chart_of({"k": [1, 2]}, [20_000.0, 20_009.0], 2.5, dtype=pl.Date()),
    "crosstab": lambda: heat(grid_of([[100, 9, 109], [None, 0, 0]], margins=True)),
    "signed": lambda: heat(grid_of([[1e300, -1e300], [None, 0.0]], error=1e299), signed=True),
    "large crosstab": lambda: heat(grid_of(np.arange(1, 7 * 24 + 1).reshape(7, 24) * 100)),
    "huge crosstab": lambda: heat(
        grid_of(np.arange(1, 300 * 200 + 1).reshape(300, 200), margins=True)
    ),
    "long crosstab": lambda: heat(grid_of(np.full((8, 8), 500), rows=LONGS, columns=LONGS)),
}
LONG = (
    "Armed forces occupations, including commissioned and non-commissioned officers, and "
    "everybody else there is"
)
LONGS = [(f"{LONG} {i}",) for i in range(8)]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_within_800_pixels(kind):
    width, height = png(KINDS[kind]())
    assert 100 < width <= 800
    assert 60 < height <= 800


# Names, steps and dates


def test_names_lie_and_bins_stand_however_many_there_are():
    for number in (1, 3, 20):
        names = spec(
            chart_of({"city": [f"city {i}" for i in range(number)]}, range(20, 20 + number))
        )
        assert names["layer"][0]["encoding"]["y"]["field"] == "label"
        labels = [f"[{i}, {i + 1})" for i in range(number)]
        bins = spec(chart_of({"age": labels}, range(20, 20 + number), age=pl.Enum(labels)))
        assert bins["layer"][0]["encoding"]["x"]["field"] == "left"
        assert "y" in bins["layer"][0]["encoding"]


def test_bins_have_their_edges_below_them():
    labels = ["< 18", "[18, 30)", "[30, 65)", "≥ 65"]
    axis = spec(chart_of({"age": [*labels, None]}, [5, 50, 60, 70, 1], age=pl.Enum(labels)))[
        "layer"
    ][0]["encoding"]["x"]
    assert axis["axis"]["values"][:3] == [1.0, 2.0, 3.0]
    for text in (
        '"1": "18"',
        '"2": "30"',
        '"3": "65"',
        '"0.5": "< 18"',
        '"3.5": "\\u2265 65"',
        '"null"',
    ):
        assert text in axis["axis"]["labelExpr"]


def test_more_bins_than_can_be_seen_as_bars_are_a_line():
    labels = [f"[{i}, {i + 1})" for i in range(1000)]
    chart = chart_of({"age": labels}, range(1000), age=pl.Enum(labels))
    assert marks_of(chart) == ["area", "line"]
    assert len(rows_of(chart)) == 1000


@pytest.mark.parametrize(
    ("dtype", "keys", "place"),
    [
        (pl.String(), ["a", "b"], NamePlace),
        (pl.Boolean(), [True, False], NamePlace),
        (pl.Enum(["low", "high"]), ["low"], NamePlace),
        (pl.Enum(["[0, 1)", "[2, 3)"]), ["[0, 1)"], NamePlace),  # a gap between them
        (pl.Enum(["[0, 1)", "[1, 3]"]), ["[0, 1)"], BinPlace),
        (
            pl.Enum(["[2026-01-01, 2026-02-01)", "[2026-02-01, 2026-03-01]"]),
            ["[2026-01-01, 2026-02-01)"],
            TimePlace,
        ),
        (pl.Int64(), [3, 1], NumberPlace),
        (pl.Float64(), [0.5, 1.5], NumberPlace),
        (pl.Date(), DAYS[:2], TimePlace),
        (pl.Datetime("us", "UTC"), [dt.datetime(2026, 1, 1, tzinfo=dt.UTC)], TimePlace),
        (pl.String(), [None], NamePlace),
        (pl.Date(), [None], NamePlace),
    ],
)
def test_keys_stand_by_their_type(dtype, keys, place):
    assert isinstance(place_of(dtype, keys), place)


def test_whole_numbers_leave_room_for_those_that_are_missing():
    ages = NumberPlace((18, 20, 21))
    assert [ages.position(age) for age in ages.keys] == [0, 2, 3]
    far = NumberPlace((1, 10**6, 10**9))
    assert [far.position(key) for key in far.keys] == [0, 1, 2]
    assert ages.ticks(10) == {2.5: "20"}


def test_dates_are_a_line_in_a_band_and_one_date_a_point():
    chart = chart_of({"day": DAYS}, range(40))
    assert marks_of(chart) == ["area", "line", "point"]
    x = spec(chart)["layer"][0]["encoding"]["x"]
    assert (x["type"], x["scale"]["type"]) == ("temporal", "utc")
    assert [row["place"] for row in rows_of(chart)] == [
        1000.0 * 86_400 * (day - dt.date(1970, 1, 1)).days for day in DAYS
    ]
    one = chart_of({"day": DAYS[:1]}, [5])
    assert "rule" in marks_of(one)


@pytest.mark.parametrize(
    ("keys", "form", "every"),
    [
        ([dt.date(2026, month, 1) for month in range(1, 13)], "%Y-%m-%d", 2),
        ([dt.date(2010 + i // 4, 1 + 3 * (i % 4), 1) for i in range(31)], "%Y-%m-%d", 5),
        (DAYS[:3], "%Y-%m-%d", 1),
        (DAYS[:1], "%Y-%m-%d", 1),
        ([dt.datetime(2026, 1, 1, hour) for hour in (0, 6, 12)], "%Y-%m-%d %H:%M", 1),
        ([dt.datetime(2026, 1, 1, 6, 0, second) for second in (0, 30)], "%Y-%m-%d %H:%M:%S", 1),
    ],
)
def test_ticks_of_few_dates_are_at_dates_of_the_table_and_show_them_in_full(keys, form, every):
    axis = spec(chart_of({"k": keys}, range(len(keys))))["layer"][0]["encoding"]["x"]["axis"]
    moments = [row["place"] for row in rows_of(chart_of({"k": keys}, range(len(keys))))]
    assert (axis["values"], axis["format"]) == (moments[::every], form)


def test_ticks_of_many_dates_and_of_bins_of_dates_are_round_dates():
    bins = pl.Enum(["[2026-01-01, 2026-01-11)", "[2026-01-11, 2026-01-21)"])
    for chart in (
        chart_of({"day": DAYS}, range(40)),
        chart_of({"k": bins.categories.to_list()}, [1, 2], k=bins),
    ):
        assert "values" not in spec(chart)["layer"][0]["encoding"]["x"]["axis"]


def test_bins_of_dates_are_a_line_through_their_middles():
    labels = ["[2026-01-01, 2026-01-03)", "[2026-01-03, 2026-01-05]"]
    chart = chart_of({"day": labels}, [5, 6], day=pl.Enum(labels))
    first, second = [row["place"] for row in rows_of(chart)]
    assert second - first == 2 * 86_400_000
    assert first == 1000.0 * 86_400 * ((dt.date(2026, 1, 2)) - dt.date(1970, 1, 1)).days


def test_what_has_no_date_is_said_beside_the_line():
    chart = chart_of({"day": [*DAYS, None]}, range(41))
    assert len(rows_of(chart)) == 40
    assert "Not on the axis: null: 40 ± 10." in notes_of(chart)


def test_a_suppressed_date_is_a_gap():
    values = [*range(20), None, *range(19)]
    rows = rows_of(chart_of({"day": DAYS}, values))
    assert rows[20]["value"] is None


def test_more_rows_than_altair_draws_by_itself():
    hours = [dt.datetime(2026, 1, 1) + dt.timedelta(hours=i) for i in range(5001)]
    assert len(rows_of(chart_of({"at": hours}, range(5001)))) == 5001


# Two keys


def test_the_second_key_is_the_colour():
    keys = {"city": ["Bonn", "Bonn", "Kiel", "Kiel"], "sex": ["f", "m"] * 2}
    chart = chart_of(keys, [100, 200, 300, 5])
    encoding = spec(chart)["layer"][0]["encoding"]
    assert encoding["fill"]["field"] == encoding["yOffset"]["field"] == "series"
    assert encoding["fill"]["scale"]["domain"] == ["f", "m"]
    assert encoding["fill"]["legend"]["title"] == "sex:"
    assert [row["label"] for row in rows_of(chart)] == ["Bonn", "Bonn", "Kiel", "Kiel"]


def test_names_are_the_colour_beside_dates_and_bins_wherever_they_are_named():
    keys = {"city": ["Bonn"] * 40 + ["Kiel"] * 40, "day": DAYS * 2}
    chart = chart_of(keys, range(80))
    assert spec(chart)["layer"][1]["encoding"]["color"]["scale"]["domain"] == ["Bonn", "Kiel"]
    labels = ["[0, 18)", "[18, 65]"]
    bins = chart_of(
        {"age": labels * 2, "sex": ["f", "f", "m", "m"]}, [100] * 4, age=pl.Enum(labels)
    )
    assert [layer["encoding"]["x"]["field"] for layer in spec(bins)["layer"]] == ["left"] + [
        "middle"
    ] * 3


def test_two_keys_of_many_values_are_one_label():
    keys = {
        "a": [f"a{i}" for i in range(10) for _ in range(10)],
        "b": [f"b{i}" for _ in range(10) for i in range(10)],
    }
    chart = chart_of(keys, range(100))
    assert rows_of(chart)[0]["label"] == "a9, b9"  # the largest
    assert "of 100 groups" in notes_of(chart)


def test_of_many_lines_the_largest_are_shown():
    keys = {"day": DAYS * 20, "city": [f"city {i}" for i in range(20) for _ in DAYS]}
    chart = chart_of(keys, [i for i in range(20) for _ in DAYS])
    assert {row["series"] for row in rows_of(chart)} == {f"city {i}" for i in range(14, 20)}
    assert "The 6 largest of 20 are shown." in notes_of(chart)


# Order, and how many


def test_a_few_groups_keep_their_order_and_many_are_sorted_and_cut():
    assert [row["label"] for row in rows_of(chart_of({"k": ["b", "a"]}, [1, 2]))] == ["b", "a"]
    chart = chart_of({"k": [f"key {i}" for i in range(5000)]}, range(5000))
    rows = rows_of(chart)
    assert [row["value"] for row in rows] == list(range(4999, 4999 - len(rows), -1))
    assert (
        f"The {len(rows)} largest of 5,000 groups; {5000 - len(rows):,} are not shown."
        in notes_of(chart)
    )


@pytest.mark.parametrize(
    ("order", "first", "which"),
    [
        ("descending", "key 99", "largest"),
        ("ascending", "key 0", "smallest"),
        ("keys", "key 0", "first"),
    ],
)
def test_the_order_that_is_asked_for(order, first, which):
    chart = chart_of(
        {"k": [f"key {i}" for i in range(100)]}, range(100), look=read_look(None, None, None, order)
    )
    assert rows_of(chart)[0]["label"] == first
    assert f" {which} of 100 groups" in notes_of(chart)


def test_bins_in_the_order_of_their_numbers_lie():
    labels = ["[0, 18)", "[18, 65]"]
    chart = chart_of(
        {"age": labels}, [1, 2], look=read_look(None, None, None, "descending"), age=pl.Enum(labels)
    )
    assert [row["label"] for row in rows_of(chart)] == ["[18, 65]", "[0, 18)"]


def test_the_row_of_suppressed_groups_stays_last():
    chart = chart_of(
        {"k": [*(f"key {i}" for i in range(100)), "(other)"]}, [*range(100), 10**6], rest=True
    )
    assert rows_of(chart)[-1]["label"] == "(other)"
    assert "of 100 groups" in notes_of(chart)
    numbers = chart_of({"k": [5, 6, -1]}, [100, 200, 7], rest=True)
    assert [row["left"] for row in rows_of(numbers)][:2] == [0.08, 1.08]
    dates = chart_of({"day": DAYS}, range(40), rest=True)
    assert "Not on the axis: 2026-02-09: 39 ± 10." in notes_of(dates)


# Numbers


def test_what_is_noise_alone_is_hollow():
    chart = chart_of({"k": ["a", "b", "c", "d"]}, [100, 9, -10, 0])
    assert [row["noise"] for row in rows_of(chart)] == [False, True, True, True]
    assert "Hollow: no larger than the margin of error." in notes_of(chart)
    assert "Hollow" not in notes_of(chart_of({"k": ["a"]}, [100]))
    assert [row["noise"] for row in rows_of(chart_of({"k": ["a", "b"]}, [0, 5], error=0.0))] == [
        False,
        False,
    ]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 1e7, 1e10, 1e16, 1e300, 1.7e308])
def test_tiny_and_huge_numbers_are_drawn(size):
    for values in ([size, -size / 2, 0.0], [size] * 3):
        for keys in ({"k": ["a", "b", "c"]}, {"k": [1, 2, 3]}, {"k": DAYS[:3]}):
            chart = chart_of(keys, values, error=size / 10, dtype=pl.Float64())
            layers = [
                layer["encoding"]["x" if "a" in keys["k"] else "y"]
                for layer in spec(chart)["layer"]
            ]
            domain = next(axis["scale"]["domain"] for axis in layers if "scale" in axis)
            assert all(map(math.isfinite, domain))
            assert domain[0] < domain[1]
            assert all(len(row["text"]) < 60 for row in rows_of(chart))


def test_missing_and_endless_numbers_are_drawn():
    values = [None, math.nan, math.inf, -math.inf, 3.0]
    for keys in (
        {"k": ["a", "b", "c", "d", None]},
        {"k": [1, 2, 3, None, 5]},
        {"k": [*DAYS[:4], None]},
    ):
        chart = chart_of(keys, values, dtype=pl.Float64())
        assert {row["value"] for row in rows_of(chart)} <= {None, 3.0}
        assert "Suppressed or hidden by noise: " in notes_of(chart)


def test_numbers_as_text_stay_short():
    assert [shown(x) for x in (1e300, -1e-300, 10**18, 2.5e15)] == [
        "1e+300",
        "-1e-300",
        "1,000,000,000,000,000,000",
        "2.5e+15",
    ]
    assert [margin(x) for x in (1e-300, 3e-10, 2.5e15, 1e300)] == [
        "1e-300",
        "3e-10",
        "2.5e+15",
        "1e+300",
    ]


def test_no_group_is_no_picture():
    with pytest.raises(UnsupportedOperation, match="no group was released"):
        chart_of({"k": []}, [], k=pl.String())


def test_null_and_its_name_are_two_labels():
    assert labels_of([(None,), ("null",), ("null",)], 200) == ["null", "null_", "null__"]


def test_long_labels_are_shown_in_full_on_several_lines():
    assert " ".join(wrapped(LONG, 200)) == LONG
    chart = chart_of({"k": [LONG, "short"]}, [100, 200])
    assert rows_of(chart)[0]["label"].count("\n") >= 2
    assert len("".join(wrapped("数" * 300, 200))) < 301


def test_values_that_are_dates_are_points_also_beside_one_another():
    ticks = [float((day - dt.date(1970, 1, 1)).days) for day in DAYS[:3]]
    for keys in ({"k": ["a", "b", "c"]}, {"k": [1, 2, 3]}, {"k": DAYS[:3]}):
        chart = chart_of(keys, ticks, error=2.5, dtype=pl.Date())
        assert "bar" not in marks_of(chart)
        assert rows_of(chart)[0]["text"] == "2026-01-01"


# Size, title


def test_the_size_is_that_of_the_whole_picture():
    assert png(chart_of({"k": ["a", LONG]}, [100, 200], look=read_look(None, 380, 300, None))) == (
        380,
        300,
    )
    wide, _ = png(heat(grid_of([[100, 200], [300, 400]]), read_look(None, 380, 300, None)))
    assert 250 < wide <= 380


def test_the_look_is_that_which_was_asked_for():
    for keys in ({"k": ["a", "b"]}, {"k": [1, 2]}, {"k": DAYS}):
        values = range(len(keys["k"]))
        made = spec(chart_of(keys, values, look=read_look(None, 380, 300, None)))
        assert (made["width"], made["height"], made["autosize"]["type"]) == (380, 300, "fit")
        assert spec(chart_of(keys, values, look=read_look("Mine", None, None, None)))["title"][
            "text"
        ] == ["Mine"]
        assert spec(chart_of(keys, values))["title"]["text"] == ["Number of rows by key"]
        assert spec(chart_of(keys, values, look=read_look("", None, None, None)))["title"][
            "text"
        ] == [" "]


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": 3},
        {"width": 10},
        {"width": 500.5},
        {"height": "high"},
        {"sort": "-y"},
        {"sort": True},
    ],
)
def test_a_look_that_cannot_be_is_refused_with_what_to_type(wrong):
    with pytest.raises(InvalidArgument, match=rf"plot: {next(iter(wrong))}= is"):
        read_look(**{"title": None, "width": None, "height": None, "sort": None, **wrong})


def test_a_chart_has_no_background_and_one_grey_for_both_kinds_of_page():
    made = spec(chart_of({"k": ["a"]}, [100]))
    assert made["background"] == "transparent"

    def luminance(color):
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for grey in (
        made["config"]["axis"]["labelColor"],
        made["title"]["color"],
        made["title"]["subtitleColor"],
    ):
        for page in ("#ffffff", "#111111"):
            ends = sorted([luminance(grey), luminance(page)])
            assert (ends[1] + 0.05) / (ends[0] + 0.05) > 4


# Crosstabs


def grid_of(values, error=10.0, *, margins=False, rows=None, columns=None):
    values = np.array(values, np.object_)
    height, width = values.shape
    down = rows or [(f"row {i}",) for i in range(height)]
    across = columns or [(f"column {j}",) for j in range(width)]
    known = values.astype(float)
    ends = (known - error, known + error)
    return Crosstab(
        ("a",), ("b",), down, across, values, *ends, (height - margins, width - margins), True
    )


def heat(grid, look=NO_LOOK, **options):
    return heatmap(grid, "Number of rows", HEADING, look, **{"signed": False, **options})


def test_cells_that_are_noise_alone_are_hatched():
    chart = heat(grid_of([[100, 9], [-10, 50]]))
    assert [row["noise"] for row in rows_of(chart)] == [False, True, True, False]
    hatched = [layer for layer in spec(chart)["layer"] if layer["mark"]["type"] == "point"]
    assert hatched
    assert hatched[0]["mark"]["shape"].startswith("M")
    assert "Hatched: no larger than the margin of error." in notes_of(chart)
    assert "point" not in marks_of(heat(grid_of([[100, 90]])))


def test_a_margin_of_error_that_all_cells_share_is_said_once():
    chart = heat(grid_of([[100, 90], [80, 70]]))
    assert {row["error"] for row in rows_of(chart)} == {""}
    assert "95% margin of error of a cell: ± 10" in notes_of(chart)
    uneven = heat(grid_of([[100, 90]], error=np.array([[10.0, 12.0]])))
    assert [row["error"] for row in rows_of(uneven)] == ["± 10", "± 12"]


def test_colours_part_at_zero_where_numbers_can_be_negative():
    grid = grid_of([[100, -50], [20, -300]])
    scale = spec(heat(grid, signed=True))["layer"][0]["encoding"]["color"]["scale"]
    assert scale["domain"] == [-300.0, 0, 300.0]
    assert len(set(scale["range"])) == 3
    counts = spec(heat(grid))["layer"][0]["encoding"]["color"]["scale"]
    assert counts["domain"] == [0, 300.0]
    assert spec(heat(grid_of([[100, 50]]), signed=True))["layer"][0]["encoding"]["color"]["scale"][
        "domain"
    ] == [
        0,
        100.0,
    ]


def test_a_large_crosstab_is_shades_alone_and_a_larger_one_is_cut():
    large = heat(grid_of(np.arange(1, 7 * 24 + 1).reshape(7, 24) * 100))
    assert "text" not in marks_of(large)
    huge = heat(grid_of(np.arange(1, 300 * 200 + 1).reshape(300, 200), margins=True))
    assert "largest of 299 rows" in notes_of(huge)
    assert "largest of 199 columns" in notes_of(huge)


def test_a_crosstab_is_sorted_by_rows_and_columns():
    grid = grid_of([[1, 200, 201], [300, 400, 700], [301, 600, 901]], margins=True)
    chart = heat(grid, read_look(None, None, None, "descending"))
    x, y = (spec(chart)["layer"][0]["encoding"][axis]["sort"] for axis in "xy")
    assert (y, x) == (["row 1", "row 0", "row 2"], ["column 1", "column 0", "column 2"])


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1e16, 1e300])
def test_cells_of_any_size_are_short_texts(size):
    chart = heat(grid_of([[size, -size], [None, 0.0]], error=size / 9), signed=True)
    assert all(len(row[part]) < 40 for row in rows_of(chart) for part in ("text", "interval"))


def test_parts_are_shown_in_percent():
    rows = rows_of(heat(grid_of([[0.25, None]], error=0.01).in_percent()))
    assert [row["text"] for row in rows] == ["25.0", "–"]


# Of releases, by themselves


ROWS = {
    "id": range(300),
    "city": ["Bonn", "Kiel", "Ulm"] * 100,
    "age": [18 + i % 60 for i in range(300)],
    "day": [DAYS[i % 40] for i in range(300)],
}


def frame(table=None):
    return dp.protect(
        pl.DataFrame(ROWS) if table is None else table,
        unit="id",
        budget=dp.Budget(epsilon=1e9, delta=0.5),
    )


ONE = {"max_groups": 1, "max_rows_per_group": 1}
CITIES = ["Bonn", "Kiel", "Ulm"]
TITLES = {
    "Number of rows by city": lambda f: f.group_by("city", keys=CITIES, **ONE).count(),
    "Number of units by city": lambda f: f.group_by("city", keys=CITIES, **ONE).count_units(),
    "Mean of age by city, where age >= 18 and city != 'Ulm'": lambda f: (
        f.filter(dp.col("age") >= 18)
        .filter(dp.col("city") != "Ulm")
        .group_by("city", keys=CITIES, **ONE)
    ).mean("age", (0, 100)),
    "Median of age by city": lambda f: f.group_by("city", keys=CITIES, **ONE).median(
        "age", (0, 100)
    ),
    "Quantile 0.9 of age by city": lambda f: f.group_by("city", keys=CITIES, **ONE).quantile(
        "age", 0.9, (0, 100)
    ),
    "Standard deviation of age by city": lambda f: f.group_by("city", keys=CITIES, **ONE).std(
        "age", (0, 100)
    ),
    "Number of different values of age by city": lambda f: f.group_by(
        "city", keys=CITIES, **ONE
    ).n_unique("age"),
    "Sum of age by city and day": lambda f: f.group_by(
        "city", "day", keys={"city": CITIES, "day": DAYS[:3]}, **ONE
    ).sum("age", (0, 100)),
    "Number of rows by age": lambda f: f.histogram("age", bins=[0, 30, 60, 90], max_rows=1),
    "Number of rows by city and age": lambda f: f.crosstab(
        "city", "age", keys={"city": CITIES, "age": [20]}, max_rows=1
    ),
    "Number of rows by city and age, in % of the row": lambda f: f.crosstab(
        "city", "age", keys={"city": CITIES, "age": [20, 21]}, normalize="index", max_rows=1
    ),
}


@pytest.mark.parametrize("title", TITLES)
def test_a_title_says_what_was_asked_and_a_subtitle_the_price_and_the_unit(title):
    chart = TITLES[title](frame()).release(epsilon=50).plot()
    made = spec(chart)["title"]
    assert " ".join(made["text"]) == title
    assert made["subtitle"][0] == "Released at ε = 50; protected: unit 'id'."
    assert "95% margin" in " ".join(made["subtitle"])


def test_the_subtitle_names_what_was_done_after_the_release():
    out = (
        TITLES["Number of rows by city"](frame())
        .release(epsilon=1)
        .nonnegative()
        .round()
        .suppress(below=3)
    )
    assert "After nonnegative(), round(), suppress(below=3)." in notes_of(out.plot())


def test_a_batch_says_for_how_many_questions_it_was_paid():
    f = frame()
    first, _ = f._budget.plan(
        [TITLES["Number of rows by city"](f), f.count_units()], epsilon=1
    ).release()
    assert "Released at ε = 1 for 2 queries together; protected" in notes_of(first.plot())


def test_a_margin_that_is_not_proved_is_called_likely():
    out = TITLES["Median of age by city"](frame())
    assert "likely and not proved" in notes_of(out.release(epsilon=50).plot())
    assert "likely" not in notes_of(out.release(epsilon=50, ci=0.95).plot())


def test_one_of_several_marginals_has_a_title_too():
    tables = (
        frame()
        .cut("age", [0, 50, 100], into="band")
        .marginals(["city", "band"], keys={"city": CITIES}, max_rows=1)
    )
    out = tables.release(epsilon=5, delta=1e-6)
    assert spec(out["city", "band"].plot())["title"]["text"] == ["Number of rows by city and band"]
    assert spec(out["band"].plot())["title"]["text"] == ["Number of rows by band"]
    made = spec(tables.plot(epsilon=[0.1, 1], delta=1e-6))
    assert made["title"]["text"] == ["Error to expect: Number of rows by city × band"]


def test_a_picture_reads_no_row(monkeypatch):
    f = frame()
    asked = list(TITLES.values())
    outs = [ask(f).release(epsilon=1) for ask in (asked[0], asked[2], asked[8], asked[9])]
    query = TITLES["Number of rows by city"](f)
    before = len(f._budget.history())

    def read(*_, **__):
        raise AssertionError("a row is read")

    for name in ("collect", "to_native"):
        monkeypatch.setattr(nw.DataFrame if name == "to_native" else nw.LazyFrame, name, read)
    monkeypatch.setattr("dpframe.engine.totals", read)
    monkeypatch.setattr("dpframe.release.run.engine.totals", read)
    for out in outs:
        spec(out.plot())
    spec(query.plot(epsilon=[0.1, 1]))
    assert len(f._budget.history()) == before


# Prices


def test_errors_at_several_prices_are_one_table():
    query = (
        frame().group_by("city", keys=CITIES, **ONE).agg(n=dp.count(), m=dp.mean("age", (0, 100)))
    )
    table = query.accuracy(epsilon=[0.1, 1, 3], assume_rows=2000)
    assert table.columns == [
        "epsilon",
        "column",
        "aggregate",
        "mechanism",
        "scale",
        "error",
        "useful_from",
    ]
    assert table["epsilon"].to_list() == [0.1, 0.1, 1.0, 1.0, 3.0, 3.0]
    for price in (0.1, 1, 3):
        alone = query.accuracy(epsilon=price, assume_rows=2000)
        assert table.filter(pl.col("epsilon") == price).drop("epsilon").rows() == alone.rows()
    assert query.accuracy(epsilon=np.array([0.1, 1.0]))["epsilon"].to_list() == [0.1, 0.1, 1.0, 1.0]


def test_prices_in_rho_are_a_table_and_a_picture_too():
    f = dp.protect(pl.DataFrame(ROWS), unit="id", budget=dp.Budget(rho=1.0))
    assert f.count_units().accuracy(rho=(0.1, 1))["rho"].to_list() == [0.1, 1.0]
    made = spec(f.count_units().plot(rho=[0.1, 1]))
    assert made["layer"][0]["encoding"]["x"]["axis"]["title"] == "price, ρ"


@pytest.mark.parametrize("prices", [[], range(0), [0.1, -1], ["x"], [[0.1]], [None], [1.0] * 2000])
def test_prices_that_cannot_be_are_refused(prices):
    with pytest.raises(InvalidPrice):
        frame().count_units().accuracy(epsilon=prices)
    with pytest.raises(InvalidPrice):
        frame().count_units().plot(epsilon=prices)


def test_error_against_price_is_a_line_with_its_numbers():
    query = (
        frame().group_by("city", keys=CITIES, **ONE).agg(n=dp.count(), m=dp.mean("age", (0, 100)))
    )
    chart = query.plot("n", epsilon=[3, 0.1, 1])
    rows = rows_of(chart)
    assert [row["price"] for row in rows] == [0.1, 1.0, 3.0]
    assert [row["error"] for row in rows] == query.accuracy(epsilon=[0.1, 1, 3])["error"].to_list()[
        ::2
    ]
    assert all(row["text"].startswith("± ") for row in rows)
    assert spec(chart)["title"]["text"] == ["Error to expect: Number of rows by city"]


def test_every_column_has_a_panel_and_what_is_not_known_is_named():
    query = (
        frame()
        .group_by("city", keys=CITIES, **ONE)
        .agg(
            n=dp.count(),
            m=dp.mean("age", (0, 100)),
            d=dp.mean("day", (DAYS[0], DAYS[-1])),
            q=dp.mode("age", keys=[18, 19]),
        )
    )
    known = query.plot(epsilon=[0.1, 0.3, 1, 3], assume_rows=50)
    assert len(spec(known)["vconcat"]) == 4
    assert "Not known without the data: d, m" in notes_of(query.plot(epsilon=[0.1, 1]))
    with pytest.raises(UnsupportedOperation, match="assume_rows=100"):
        query.plot("m", epsilon=[0.1, 1])
    with pytest.raises(UnsupportedOperation, match="keys alone"):
        frame().group_by("city", max_groups=1).keys().plot(epsilon=[0.1, 1], delta=1e-6)
    with pytest.raises(InvalidPrice, match=r"plot\(epsilon=\[0\.1, 0\.3, 1, 3\]\)"):
        query.plot()
    with pytest.raises(InvalidArgument, match="no column 'x'"):
        query.plot("x", epsilon=[1])


def test_an_error_of_nothing_is_drawn():
    chart = frame().count_units().plot(epsilon=[100, 1000])
    assert [row["error"] for row in rows_of(chart)] == [0.0, 0.0]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("size", [4, 30])
@pytest.mark.parametrize("ask", ["crosstab", "bars", "by two"])
def test_what_is_wholly_suppressed_is_in_the_picture(ask, size, tmp_path):
    """With numbers in its cells or without, a chart has each released key, and
    says that numbers are not there.
    """
    keys = {name: [f"{name}{i}" for i in range(size)] for name in ("down", "across")}
    few = {name: listed[:4] for name, listed in keys.items()}
    levels = (pl.DataFrame({name: listed[1:]}) for name, listed in keys.items())
    cells = next(levels).join(next(levels), how="cross")
    rows = pl.concat([cells] * 20).with_row_index("u")
    frame = dp.protect(rows, unit="u", budget=dp.Budget(epsilon=900))
    queries = {
        "crosstab": lambda: frame.crosstab("down", "across", keys=keys, max_rows=1),
        "bars": lambda: frame.histogram("down", keys=keys["down"], max_rows=1),
        "by two": lambda: frame.group_by("down", "across", keys=few, max_rows=1).count(),
    }
    chart = queries[ask]().release(epsilon=90).suppress(below=5).plot(height=900)
    chart.save(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    assert ">down0<" in text, "a key whose numbers are all suppressed"
    assert ask == "bars" or ">across0<" in text
    words = "no number is released" if ask == "crosstab" else "Suppressed or hidden by noise: "
    assert words in text
    full = (
        frame.drop_nulls().histogram("down", keys=keys["down"][1:], max_rows=1).release(epsilon=90)
    )
    assert "Suppressed" not in str(full.plot().to_dict()["title"])
