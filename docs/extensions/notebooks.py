"""Notebooks as pages of the site: their text, code and committed outputs."""

from __future__ import annotations

import json
import re
from typing import Any

from myst_parser.parsers.sphinx_ import MystParser


def page_of(notebook: dict[str, Any]) -> str:
    """Markdown with a block for each code cell, and one for what it printed;
    pictures are part of the page.
    """
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        printed = "".join(_text(output) for output in cell["outputs"])
        if printed:
            parts.append(f"```output\n{printed.rstrip()}\n```")
        parts += [
            "```{raw} html\n<div "
            f"class='table-wrapper'>{_plain(''.join(data['text/html']))}</div>\n```"
            for output in cell["outputs"]
            if "text/html" in (data := output.get("data", {}))
            and "image/png" not in data
        ]
        parts += [
            f"![What this code draws](data:image/png;base64,{''.join(data['image/png']).strip()})"
            for output in cell["outputs"]
            if "image/png" in (data := output.get("data", {}))
        ]
    return "\n\n".join(parts) + "\n"


def _text(output: dict[str, Any]) -> str:
    if "text" in output:
        return "".join(output["text"])
    data = output.get("data", {})
    shown = {"image/png", "text/html"} & set(data)
    return "" if shown else "".join(data.get("text/plain", "")) + "\n"


def _plain(html: str) -> str:
    """A table as HTML, without styles of its own."""
    return re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL).replace(
        "<table", "<table class='docutils'"
    )


class NotebookParser(MystParser):
    """Reads a notebook as the Markdown page that it stands for."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: Any) -> None:
        """Called by Sphinx with the text of the file."""
        super().parse(page_of(json.loads(inputstring)), document)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
