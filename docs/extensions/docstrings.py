"""Docstrings as reStructuredText: the parts Input, Output, Bound, Source and Errors become a list of fields."""

from __future__ import annotations

import re
from typing import Any

FIELDS = ("Input", "Output", "Bound", "Source", "Errors", "Warns")
_FIELD = re.compile(rf"({'|'.join(FIELDS)}):\s+(.*)")
_CODE = re.compile(r"(`[^`]+`)")


def prose(line: str) -> str:
    """A line of a docstring: `code` is literal, and what reStructuredText would read as markup is escaped."""
    parts = _CODE.split(line)
    for i, part in enumerate(parts):
        if part.startswith("`"):
            parts[i] = f"`{part}`"
            if i + 1 < len(parts) and parts[i + 1][:1].isalnum():
                parts[i] += "\\ "
        else:
            parts[i] = re.sub(
                r"([*|\\])", r"\\\1", re.sub(r"(\w)_(?=\W|$)", r"\1\\_", part)
            )
    return "".join(parts)


def converted(lines: list[str]) -> list[str]:
    """A whole docstring."""
    out: list[str] = []
    fenced = example = inside = False
    for line in lines:
        if line.strip().startswith("```"):
            fenced = not fenced
            out += ["", ".. code-block:: text", ""] if fenced else [""]
            inside = False
            continue
        if fenced:
            out.append(f"   {line}")
            continue
        if line.startswith(">>>"):
            if not example:
                out.append("")
            example, inside = True, False
        elif not line.strip():
            example = False
        if example or not line.strip():
            out.append(line)
            continue
        field = _FIELD.fullmatch(line)
        if field:
            if not inside:
                out.append("")
            out.append(f":{field[1]}: {prose(field[2])}")
            inside = True
        elif inside and line.startswith(" "):
            out.append(f"    {prose(line.strip())}")
        else:
            if inside:
                out.append("")
            out.append(prose(line))
            inside = False
    return out


def process(
    app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]
) -> None:
    """Called by autodoc for each docstring."""
    lines[:] = converted(lines)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
