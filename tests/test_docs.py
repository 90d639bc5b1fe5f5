"""The site: its examples run and print what it shows, and no public name
is missing from its reference.
"""

from __future__ import annotations

import datetime as dt
import doctest
import inspect
import os
import re
import sys
from pathlib import Path

import polars as pl
import pytest

import dpframe as dp
import dpframe.theory
from test_doors import PUBLIC

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
REPOSITORY = "https://github.com/dpframe/dpframe"
sys.path.insert(0, str(DOCS))

import examples  # noqa: E402 - it is found by the line above
from extensions import markdown, parameters  # noqa: E402 - as above
from extensions.docstrings import converted  # noqa: E402 - as above
from extensions.listing import documented, summary  # noqa: E402 - as above

PAGES = examples.pages()
TEXTS = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("noise", ["written", pytest.param("other", marks=pytest.mark.long)])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_its_examples_print_what_it_shows(page, noise):
    found = examples.differences(page, noise)
    assert not found, "\n\n".join(found)


def _page(tmp_path, monkeypatch, text):
    monkeypatch.setattr(examples, "DOCS", tmp_path)
    (tmp_path / "page.md").write_text(text)
    return examples.read(tmp_path / "page.md")


@pytest.mark.parametrize(
    "text",
    [
        "```python\n1 + 1\n```\n```output\n3\n```\n",
        "```python\nimport dpframe as dp\ndp.Budget(epsilon=0)\n```\n",
        "```python raises\n1 + 1\n```\n",
        "```python\nprint('a 1')\n```\n```noisy\nb 2\n```\n",
        # a released number that is shown as if it were exact
        "```python\nimport pandas as pd, dpframe as dp\nframe = pd.DataFrame({'a': "
        "[1]}).dp(dp.Rows(1), "
        "dp.Budget(1))\nframe.count().release(epsilon=1e-3).value\n```\n```output\n2\n```\n",
    ],
    ids=["another value", "an error", "no error", "other words", "a noisy number"],
)
def test_a_page_that_shows_something_else_is_noticed(tmp_path, monkeypatch, text):
    page = _page(tmp_path, monkeypatch, text)
    assert examples.differences(page, "written") + examples.differences(page, "other")


def test_what_is_written_is_what_is_compared(tmp_path, monkeypatch):
    page = _page(tmp_path, monkeypatch, "```python\n'a' * 3\n```\n```output\n\n```\nEnd.\n")
    assert examples.write(page)
    assert page.path.read_text() == "```python\n'a' * 3\n```\n```output\n'aaa'\n```\nEnd.\n"
    assert examples.differences(examples.read(page.path)) == []


@pytest.mark.parametrize(
    "module", [dp, dpframe.theory, dp.audit], ids=lambda module: module.__name__
)
def test_every_public_name_is_in_the_reference(module):
    reference = "\n".join(path.read_text("utf-8") for path in (DOCS / "reference").glob("*.md"))
    missing = [
        name
        for name in module.__all__
        if name not in ("errors", "plots")
        and not re.search(rf"auto(class|function):: {name}\b", reference)
    ]
    assert missing == []


def test_every_error_is_in_the_reference():
    page = (DOCS / "reference" / "errors.md").read_text("utf-8")
    assert [
        name for name in dp.errors.__all__ if name != "kind_of" and f"## {name}\n" not in page
    ] == []


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_to_the_repository_lead_to_a_file(path):
    for place in re.findall(
        rf"{REPOSITORY}/(?:blob|tree|raw)/main/([^)#\s\"]+)", path.read_text("utf-8")
    ):
        assert (ROOT / place).exists(), place


def test_the_loop_of_the_page_on_call_goes_on_behind_a_corrected_night(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    page, job = (DOCS / "howto" / "on-call.md").read_text("utf-8"), {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]:
        exec(block, job)
    for day in ("01", "02", "03"):
        folder = tmp_path / "visits" / f"date=2026-01-{day}"
        folder.mkdir(parents=True)
        pl.DataFrame({"user": [1], "city": ["Bonn"]}).write_parquet(folder / "part-0.parquet")
    assert job["last_nights"](dt.date(2026, 1, 4), nights=3) == 0
    for path in tmp_path.glob("*.csv"):
        path.unlink()
    os.utime(tmp_path / "visits" / "date=2026-01-02" / "part-0.parquet", (1, 1))
    assert job["last_nights"](dt.date(2026, 1, 4), nights=3) == 1
    assert (
        "2026-01-02: 'visits 2026-01-02' is the name of another release" in capsys.readouterr().out
    )
    assert {path.name for path in tmp_path.glob("*.csv")} == {
        f"visits-2026-01-{day}.csv" for day in ("01", "03")
    }


def test_each_card_leads_to_a_page():
    page = (DOCS / "index.md").read_text("utf-8")
    links = re.findall(r"^:link: (\S+)\n:link-type: doc$", page, re.MULTILINE)
    assert len(links) == page.count("{grid-item-card}") > 0
    assert [link for link in links if not (DOCS / f"{link}.md").exists()] == []


REFERENCE = [
    pytest.param(entry, id=entry.path)
    for entry in documented("frame", "aggregates", "expressions", "query", "budget")
]


@pytest.mark.parametrize("entry", REFERENCE)
def test_each_parameter_has_its_own_line_in_the_reference(entry):
    functions = [getattr(entry.obj, name) for name in entry.members] or [entry.obj]
    for function in functions:
        if inspect.isclass(function) or not callable(function):
            continue
        text = "\n".join(converted((inspect.getdoc(function) or "").split("\n"), function))
        own = re.findall(r"^    - \*\*(.+?)\*\*: \S", text, re.MULTILINE)
        assert [name.replace("\\", "") for name in own] == parameters.names(function), (
            function.__qualname__
        )


def test_a_parameter_without_words_is_noticed():
    def unlike(strange): ...

    assert parameters.lines_of(unlike, "column: a name") == [("strange", "")]
    assert parameters.lines_of(unlike, "strange: a name") == [("strange", "a name")]


def test_the_examples_in_the_modules_of_the_site_hold():
    assert doctest.testmod(parameters) == doctest.TestResults(failed=0, attempted=2)


def test_the_index_of_methods_is_whole():
    index = (DOCS / "reference" / "methods.md").read_text("utf-8")
    pages = re.findall(r"index-of:: (\S+)", index)
    listed = list(documented(*pages))
    assert {name for name in dp.__all__ if name != "errors"} <= {entry.name for entry in listed}
    frame = next(entry for entry in listed if entry.name == "PrivateFrame")
    public = {name for name in dir(dp.PrivateFrame) if not name.startswith("_")}
    assert set(frame.members) == public
    assert all(summary(getattr(entry.obj, name)) for entry in listed for name in entry.members)


# Nobody holds one of these, or their methods stand in the reference elsewhere.
ELSEWHERE = {
    "Auto": "dp.Auto",
    "Derivation": "Query.explain, which prints it",
    "PartBudget": "Budget: the account of one part of a partition",
    "PeriodQuery": "the argument of Series.add",
    "SeriesAccessor": "PrivateFrame: the same questions, of one column",
}
HELD = {kind for kind in PUBLIC if not kind.__subclasses__() and kind.__name__ not in ELSEWHERE}
HELD |= {dp.Budget, dp.Query, dp.Release}
# plain values, and no method
FIELDS = {"cost", "errors", "items", "name", "recorded", "stored", "typed"}


@pytest.mark.parametrize("kind", sorted(HELD, key=str), ids=lambda kind: kind.__qualname__)
def test_all_methods_of_what_people_hold_are_in_the_reference(kind):
    """Whatever people type of a class, wherever it is defined:
    `budget.allocate` is that of a class above.
    """
    entries = [entry for entry in documented() if entry.obj in kind.__mro__]
    pages = [(DOCS / "reference" / f"{entry.page}.md").read_text("utf-8") for entry in entries]
    hidden = {
        word
        for page in pages
        for words in re.findall(r":exclude-members: (.+)", page)
        for word in words.split(", ")
    }
    owners = [owner for owner in kind.__mro__ if owner.__module__.startswith("dpframe")]
    public = {name for owner in owners for name in vars(owner) if not name.startswith("_")}
    assert public - hidden - {name for entry in entries for name in entry.members} <= FIELDS
    assert (
        not {"allocate", "answer", "series", "forecast", "history", "remaining", "spent", "add"}
        & hidden
    )


def test_every_page_has_its_markdown_and_its_line_in_llms_txt():
    text = markdown.llms()
    for path in markdown.pages():
        assert re.search(rf"^- \[.+\]\({path.relative_to(DOCS)}\): \S.+", text, re.MULTILINE), path
        assert "{eval-rst}" not in markdown.page(path)
    assert len(markdown.pages()) == len([path for path in TEXTS if path.is_relative_to(DOCS)])
    assert (dp.mean.__doc__ or "").split("\n")[0] in markdown.page(
        DOCS / "reference" / "aggregates.md"
    )


# What people type into the search, and the page that must answer: the word stands in its title or
# in a heading.
SEARCHES = {
    "timezone": "howto/recipes.md",
    "time zone": "howto/recipes.md",
    "retention": "howto/recipes.md",
    "funnel": "howto/recipes.md",
    "rolling": "howto/recipes.md",
    "moving average": "howto/recipes.md",
    "churn": "howto/recipes.md",
    "cohort": "howto/recipes.md",
    "A/B test": "howto/recipes.md",
    "monthly": "howto/recipes.md",
    "undo": "howto/recipes.md",
    **dict.fromkeys(
        ("CSVW", "SDMX", "Excel", "distinct customers", "budget left", "certificate"),
        "howto/recipes.md",
    ),
    "left_on": "howto/joins.md",
    "GDPR": "howto/recipes.md",
    "privacy officer": "howto/recipes.md",
    "offline": "howto/recipes.md",
    "value_counts": "howto/from-pandas.md",
    "regex": "howto/recipes.md",
    "Airflow": "howto/deploy.md",
    "dbt": "howto/deploy.md",
    "Databricks": "howto/deploy.md",
    "attacks": "understand/attacks.md",
}


@pytest.mark.parametrize(("word", "page"), SEARCHES.items())
def test_a_word_of_the_search_finds_its_page(word, page):
    headings = re.findall(r"^#+ (.+)$", (DOCS / page).read_text("utf-8"), re.MULTILINE)
    assert any(word.lower() in heading.lower() for heading in headings), (
        f"no heading of {page} has {word!r}"
    )
