"""Keys, names and marks that a terminal, a spreadsheet, a page or LaTeX would
run: every writer on every text.
"""

import csv
import io
import json
import logging
import re
import warnings
import xml.dom.minidom
from html.parser import HTMLParser

import openpyxl
import polars as pl
import pyarrow.parquet as pq
import pytest

import dpframe as dp
from dpframe.__main__ import main
from dpframe.errors import DpFrameError
from dpframe.safe_text import for_latex, for_spreadsheets, visible

TEXTS = [
    *(
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "<img src=x onerror=alert(1)>",
        "\"'><b>",
        "&lt;b&gt;",
    ),
    *(
        "=cmd|' /C calc'!A1",
        "+1+1",
        "@SUM(A1)",
        "-2+3",
        "\t=1",
        "\r=1",
        "\n=1",
        "a;=1",
        "a\t@b",
        "#N/A",
    ),
    *("\x1b[31mred\x1b[0m", "\x9b2J", "\x1b]0;title\x07", "a\rb", "\u202eevil", "\x7f"),
    *("50% off", "\\input{/etc/passwd}", "$x$ & y # z_1 {b} ~ ^", "[1cm]", "*", "line\n\nbreak"),
]
NAME = "</script>=\x1b[1m% _&"
SEXES = ["f", "<m>"]
PEOPLE = range(len(TEXTS) * 20)
ROWS = pl.DataFrame(
    {
        "u": PEOPLE,
        NAME: TEXTS * 20,
        "sex": [SEXES[i // len(TEXTS) % 2] for i in PEOPLE],
        "=x\x1b<b>": [1.0] * len(PEOPLE),
    }
)
LISTED = {NAME: TEXTS, "sex": SEXES}
ONE = {"max_groups": 1, "max_rows_per_group": 1}
ASKED = {
    "found": lambda f: f.group_by(NAME, **ONE).agg(
        **{"=n</script>\x1b": dp.count(), "m": dp.mean("=x\x1b<b>", bounds=(0, 2))}
    ),
    "top": lambda f: f.top_k(NAME, 99, max_rows=1),
    "crosstab": lambda f: f.crosstab(NAME, "sex", keys=LISTED, margins=True, max_rows=1),
    "across": lambda f: f.crosstab("sex", NAME, keys=LISTED, max_rows=1),
    "marginals": lambda f: f.marginals([NAME, "sex"], "2-way", keys=LISTED, max_rows=1),
    "hierarchy": lambda f: f.hierarchy(
        ["sex", NAME], keys=ROWS.select("sex", NAME).unique(), max_rows=1
    ),
    "synthetic": lambda f: f.synthesize([NAME, "sex"], keys=LISTED, max_rows=1),
    "description": lambda f: f.describe(bounds={"=x\x1b<b>": (0, 3)}, max_rows=1),
}
PRICE = {"epsilon": 50.0, "delta": 1e-6}
CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
TAGS = {
    *re.findall("[a-z0-9]+", "div p b i table thead tbody tr th td span br style h1 h2 h3 h4 ul li")
}
TAGS |= {"html", "head", "body", "title", "meta", "svg", "line", "rect", "text"}


def frame(budget=None):
    return dp.protect(ROWS, unit="u", budget=budget or dp.Budget(epsilon=9e3, delta=1e-3))


@pytest.fixture(scope="module")
def outs():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        protected = frame()
        out = {name: ask(protected).release(**PRICE) for name, ask in ASKED.items()}
        out["marked"] = out["crosstab"].suppress(below=1e9, marker="=1+1\x1b<b>")
    return out


@pytest.fixture(params=[*ASKED, "marked"])
def out(request, outs):
    return outs[request.param]


def methods(out, *names):
    return [getattr(out, name) for name in names if hasattr(type(out), name)]


# Terminals


def shown_of(out):
    yield from (repr(out), str(out.report()), str(out.derivation))
    yield from (repr(part()) for part in methods(out, "explain"))


def test_nothing_that_is_printed_moves_a_terminal(out):
    for text in shown_of(out):
        assert not CONTROL.search(text), repr(CONTROL.search(text))


@pytest.mark.parametrize("name", ASKED)
def test_questions_neither(name):
    protected = frame()
    query = ASKED[name](protected)
    texts = [repr(protected), repr(query), str(query.explain()), repr(dp.col(NAME) == "\x1b")]
    assert not CONTROL.search("".join(texts))


def test_errors_warnings_and_log_lines_neither(caplog):
    protected = frame()
    calls = (
        lambda: protected.sum("\x1b[2J", bounds=(0, 1)),
        lambda: protected.sum(NAME, bounds=(0, 1)),
        lambda: protected.group_by(NAME).count(),
        lambda: protected.synthesize([NAME]),
        lambda: protected.top_k(NAME, 3, keys=["\x1b", "\x1b"]),
    )
    for call in calls:
        with pytest.raises(DpFrameError) as caught:
            call()
        assert not CONTROL.search(str(caught.value))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        dp.usage.warn("a \x1b[31mname")
    assert str(told[0].message) == "a \\u001b[31mname"
    with caplog.at_level(logging.INFO, logger="dpframe"):
        for _ in range(2):
            protected.count(max_rows=1).release(epsilon=0.1, name="=1</script>a")
    assert "=1</script>a: " in caplog.text
    with pytest.raises(DpFrameError) as caught:
        protected.count(max_rows=1).release(epsilon=0.1, name="\x1b[2Ja\nb")
    assert not CONTROL.search(str(caught.value))


def test_the_ledger_s_commands_neither(tmp_path, capsys):
    path = tmp_path / "a.sqlite"
    ledger = dp.Ledger(path)
    with pytest.raises(DpFrameError) as caught:
        ledger.budget("=1\x1b[2J\nfake: 0 spent", epsilon=5.0)
    assert not CONTROL.search(str(caught.value))
    budget = ledger.budget("=1</script>: 0 spent", epsilon=5.0)
    frame(budget).group_by(NAME, keys=TEXTS, **ONE).count().release(
        epsilon=0.5, name="@SUM(1)</script>"
    )
    ledger.close()
    for verb in (
        ["show"],
        ["verify"],
        ["forecast"],
        ["report"],
        *(["export", "--format", f] for f in ("json", "csv")),
    ):
        assert main(["ledger", verb[0], str(path), *verb[1:]]) == 0
        text, error = capsys.readouterr()
        assert not CONTROL.search(text + error), (verb, repr(CONTROL.search(text)))
        if verb == ["show"]:
            assert not any(line.startswith("fake") for line in text.splitlines())
        if verb[-1] == "json":
            assert "=1</script>: 0 spent" in json.loads(text)
        if verb[-1] == "csv":
            assert_no_formula(text)
        if verb == ["report"]:
            assert tags(text) <= TAGS
    assert main(["ledger", "resolve", str(path), "\x1b[2J"]) == 1
    assert "\x1b" not in capsys.readouterr().err


# Spreadsheets


def assert_no_formula(text):
    for separators in (",", ";", "\t"):  # as a spreadsheet of another language may cut it
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=separators):
            for cell in row:
                number = re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", cell.lower())
                assert number or not re.match(r"[=+\-@\t\r].", cell, re.DOTALL), (separators, cell)


def test_csv_has_no_formula_and_no_command(out, tmp_path):
    for write in methods(out, "to_csv"):
        text = write()
        assert_no_formula(text)
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]", text)
        assert write(tmp_path / "a.csv") is None
        assert (tmp_path / "a.csv").read_bytes() == text.encode()


def test_numbers_stay_numbers_and_plain_texts_as_they_are():
    for text in ("-3", "+4.5e-7", "-", "a", "", "a=b", "x-y", "St. Gallen", "a;b", "5-6", "é"):
        assert for_spreadsheets(text) == text


def test_excel_has_texts_in_the_place_of_formulas_and_errors(out, tmp_path):
    for write in methods(out, "to_excel"):
        write(tmp_path / "a.xlsx")
        book = openpyxl.load_workbook(tmp_path / "a.xlsx")
        cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
        assert not [cell.value for cell in cells if cell.data_type in ("f", "e")]
        assert any(str(cell.value).startswith("=") for cell in cells if cell.data_type == "s")


def test_parquet_keeps_what_it_was_given(outs, tmp_path):
    outs["top"].to_parquet(tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    assert set(table[NAME].to_pylist()) == set(TEXTS)
    assert (
        json.loads(table.schema.metadata[b"dpframe.privacy_statement"])
        == outs["top"].report().to_dict()
    )


# Pages


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = set()

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]


def tags(page):
    reader = _Tags()
    reader.feed(page)
    return reader.found


def test_no_page_has_a_tag_of_a_text(out):
    pages = [out._repr_html_(), out.report()._repr_html_(), out.derivation._repr_html_()]
    pages += [write() for write in methods(out, "to_html")]
    for page in pages:
        assert tags(page) <= TAGS


@pytest.mark.parametrize("name", ASKED)
def test_no_page_of_a_question_neither(name):
    rows = ROWS.rename({"u": "<img src=x onerror=alert(1)>"})
    protected = dp.protect(
        rows, unit="<img src=x onerror=alert(1)>", budget=dp.Budget(epsilon=1.0, delta=1e-6)
    )
    assert tags(protected._repr_html_()) <= TAGS
    assert tags(ASKED[name](protected)._repr_html_()) <= TAGS


CHARTS = ["found", "top", "crosstab", "across", "hierarchy", "synthetic", "marked"]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_ends_no_script_and_needs_no_network(name, outs, tmp_path):
    chart = outs[name].plot()
    chart.save(tmp_path / "a.html")
    changed = chart.properties(title="changed")
    for page in (chart.to_html(), (tmp_path / "a.html").read_text(), changed.to_html()):
        assert page.lower().count("</script") == 2
        assert tags(page) == {"html", "head", "meta", "style", "script", "body", "div"}
        assert not re.search(r"<(script|link)[^>]*(src|href)=", page)
        assert "cdn.jsdelivr.net/npm/vega" not in page[-20_000:]
    bundle = chart._repr_mimebundle_()
    shown = (bundle[0] if isinstance(bundle, tuple) else bundle).get("text/html", "")
    assert shown.lower().count("</script") <= 1
    assert "cdn.jsdelivr.net" in chart.to_html(inline=False)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CHARTS)
def test_a_control_character_ends_no_process_that_draws(name, outs, tmp_path):
    """The library that makes pictures aborts the process where a text is no XML."""
    chart = outs[name].plot(title="a\x1b\x01b")
    chart.save(tmp_path / "a.svg")
    xml.dom.minidom.parse(str(tmp_path / "a.svg"))
    chart.save(tmp_path / "a.png")


def test_labels_that_were_typed_end_no_process_neither(tmp_path):
    cut = (
        frame()
        .cut("=x\x1b<b>", [0, 2, 3], labels=["\x1b</script>", "b"])
        .group_by("=x\x1b<b>", **ONE)
        .count()
    )
    chart = cut.release(**PRICE).plot()
    chart.save(tmp_path / "a.png")
    assert chart.to_html().count("</script") == 2


# LaTeX


def test_latex_runs_no_key(out):
    """Each sign that LaTeX takes for more than a letter stands
    behind a backslash, or names a sign.
    """
    for write in methods(out, "to_latex"):
        text = write()
        assert "50\\% off" in text or "off" not in text
        signs = (
            r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater)\{\}|\\[&%$#_{}]"
        )
        cells = re.sub(signs, "", text)
        assert not re.search(r"[%$#~^]", cells)
        assert "\\input" not in cells
        assert not re.search(r"\\\\\s*[\[*]", cells), "a length or a star after the end of a line"
        begun = re.findall(r"\\([a-zA-Z]+)", cells)
        notes = {
            "footnotesize",
            "par",
            "noindent",
            "ensuremath",
            "varepsilon",
            "delta",
            "rho",
            "pm",
            "geq",
            "leq",
        }
        assert {*begun} - notes <= {
            *[
                "begin",
                "end",
                "toprule",
                "midrule",
                "bottomrule",
                "cline",
                "multicolumn",
                "multirow",
            ]
        }
        assert not CONTROL.search(cells)


def test_latex_is_left_alone_where_that_is_asked_for(outs):
    assert "50% off" in outs["top"].to_latex(escape=False)


def test_a_bin_is_no_length():
    out = frame().histogram("=x\x1b<b>", bins=[0, 1, 2], max_rows=1).release(epsilon=5.0)
    assert "{[}0, 1) &" in out.to_latex()


def test_the_rules_on_single_texts():
    assert for_latex("a_b\\") == r"a\_b\textbackslash{}"
    assert visible("tab\tline\n") == "tab\\u0009line\\u000a"
    assert visible("line\n", keep="\n") == "line\n"
    assert for_spreadsheets("=1") == "'=1"
