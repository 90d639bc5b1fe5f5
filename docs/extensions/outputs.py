"""Fences that show what an example prints: ```output is exact, ```noisy holds numbers that differ in each run."""

from __future__ import annotations

from typing import Any

from docutils import nodes

KINDS = ("output", "noisy")


def mark(app: Any, tree: nodes.document) -> None:
    """Show these blocks as plain text, with a class that the style sheet labels."""
    for block in tree.findall(nodes.literal_block):
        kind = block.get("language")
        if kind in KINDS:
            block["language"] = "text"
            block["classes"].append(kind)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
