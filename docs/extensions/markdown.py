"""Markdown beside each page, and `llms.txt`, which lists the pages:
for readers that are programs.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from extensions.listing import Documented, documented, summary

DOCS = Path(__file__).parent.parent
_BLOCK = re.compile(r"```\{eval-rst\}\n(.*?)```\n", re.DOTALL)
_AUTO = re.compile(r"auto(?:class|function):: ([\w.]+)|index-of:: (.+)")
_TOCTREE = re.compile(r"```\{toctree\}\n.*?```\n", re.DOTALL)


def page(path: Path) -> str:
    """A page of the site as plain Markdown: docstrings stand where the reference has them."""
    text = path.read_text("utf-8")
    entries = (
        {entry.name: entry for entry in documented(path.stem)}
        if path.parent.name == "reference"
        else {}
    )

    def expanded(block: re.Match[str]) -> str:
        parts: list[str] = []
        for name, pages in _AUTO.findall(block[1]):
            parts += _indexed(pages) if pages else _described(entries[name])
        return "\n".join(parts) + "\n"

    return _TOCTREE.sub("", _BLOCK.sub(expanded, text))


def _described(entry: Documented) -> Iterator[str]:
    yield from (
        f"### `{entry.path}{_signature(entry.obj)}`",
        "",
        inspect.getdoc(entry.obj) or "",
        "",
    )
    for name in entry.members:
        member = getattr(entry.obj, name)
        yield from (
            f"#### `{entry.name}.{name}{_signature(member)}`",
            "",
            inspect.getdoc(member) or "",
            "",
        )


def _indexed(pages: str) -> Iterator[str]:
    for entry in documented(*pages.split()):
        yield f"- `{entry.path}`: {summary(entry.obj)}"
        for name in entry.members:
            yield f"  - `{name}`: {summary(getattr(entry.obj, name))}"


def _signature(obj: Any) -> str:
    if inspect.isclass(obj):
        return ""
    return str(inspect.signature(obj)) if callable(obj) else ""


def pages() -> list[Path]:
    """Every page in Markdown, in the order of the site: start, how to, understand, reference."""
    order = ["index.md", "start.md", "howto", "understand", "reference"]
    found = [
        path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] in order
    ]
    return sorted(
        found,
        key=lambda path: (
            order.index(path.relative_to(DOCS).parts[0]),
            path.name != "index.md",
            path,
        ),
    )


def llms() -> str:
    """The file `llms.txt` (llmstxt.org): what the project is, and a line for each page."""
    lines = [
        "# dpframe",
        "",
        "> Differentially private statistics of pandas, Polars and other tables, in Python. "
        "`df.dp(unit=..., budget=...)` protects a table, methods ask, and `release(epsilon=...)` "
        "answers and pays.",
        "",
        "## Pages",
        "",
    ]
    for path in pages():
        name = path.relative_to(DOCS).as_posix()
        title, _, body = (
            ("\n" + path.read_text("utf-8")).partition("\n# ")[2].partition("\n")
        )
        lines.append(f"- [{title}]({name}): {_first_sentence(body)}")
    return "\n".join(lines) + "\n"


def _first_sentence(body: str) -> str:
    plain = _TOCTREE.sub("", _BLOCK.sub("", body))
    paragraph = next(
        part
        for part in plain.split("\n\n")
        if part.strip() and not part.strip().startswith(("```", "#", ":", "(", "|"))
    )
    text = re.sub(r"\[([^]]+)\]\([^)]+\)|\*\*", r"\1", " ".join(paragraph.split()))
    return re.split(r"(?<=[.:]) ", text)[0].rstrip(":")


def write(app: Any, error: Exception | None) -> None:
    """Called by Sphinx when the site is built."""
    if error is None and app.builder.name == "html":
        for path in pages():
            target = Path(app.outdir) / path.relative_to(DOCS)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(page(path), "utf-8")
        (Path(app.outdir) / "llms.txt").write_text(llms(), "utf-8")


def link(
    app: Any, name: str, template: str, context: dict[str, Any], tree: Any
) -> None:
    """The head of a page says where its Markdown is."""
    if (DOCS / f"{name}.md").exists():
        beside = f"{name.rpartition('/')[2]}.md"
        context["metatags"] = (
            context.get("metatags", "")
            + f'<link rel="alternate" type="text/markdown" href="{beside}">'
        )


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("build-finished", write)
    app.connect("html-page-context", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
