"""Fences that show what an example prints: ```output is exact, ```noisy holds
numbers that differ in each run.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

KINDS = ("output", "noisy")
_ERROR = re.compile(r"[A-Z][A-Za-z]+: ")  # a name and a message


def mark(app: Any, tree: nodes.document) -> None:
    """Show these blocks as plain text, with a class that the style sheet labels;
    messages are folded by the browser.
    """
    for block in tree.findall(nodes.literal_block):
        kind = block.get("language")
        if kind not in KINDS:
            continue
        block["language"] = "text"
        block["classes"].append(kind)
        if _ERROR.match(block.astext()):
            message = " ".join(block.astext().split())
            block.rawsource = message
            block.children = [nodes.Text(message)]
            block["classes"].append("message")


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
