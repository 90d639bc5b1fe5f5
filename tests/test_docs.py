"""The site: its examples run and print what it shows, and no public name is missing from its reference."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import dpframe as dp
import dpframe.theory

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
REPOSITORY = "https://github.com/dpframe/dpframe"
sys.path.insert(0, str(DOCS))

import examples  # noqa: E402 - it is found by the line above

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
        "```python\nimport pandas as pd, dpframe as dp\nframe = pd.DataFrame({'a': [1]}).dp(dp.Rows(1), dp.Budget(1))\n"
        "frame.count().release(epsilon=1e-3).value\n```\n```output\n2\n```\n",
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


@pytest.mark.parametrize("module", [dp, dpframe.theory, dp.audit], ids=lambda module: module.__name__)
def test_every_public_name_is_in_the_reference(module):
    reference = "\n".join(path.read_text("utf-8") for path in (DOCS / "reference").glob("*.md"))
    missing = [
        name
        for name in module.__all__
        if name not in ("errors", "plots") and not re.search(rf"auto(class|function):: {name}\b", reference)
    ]
    assert missing == []


def test_every_error_is_in_the_reference():
    page = (DOCS / "reference" / "errors.md").read_text("utf-8")
    assert [name for name in dp.errors.__all__ if name != "kind_of" and f"## {name}\n" not in page] == []


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_to_the_repository_lead_to_a_file(path):
    for place in re.findall(rf"{REPOSITORY}/(?:blob|tree|raw)/main/([^)#\s\"]+)", path.read_text("utf-8")):
        assert (ROOT / place).exists(), place


def test_each_card_leads_to_a_page():
    page = (DOCS / "index.md").read_text("utf-8")
    links = re.findall(r"^:link: (\S+)\n:link-type: doc$", page, re.MULTILINE)
    assert len(links) == page.count("{grid-item-card}") > 0
    assert [link for link in links if not (DOCS / f"{link}.md").exists()] == []
