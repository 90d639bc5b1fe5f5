"""Docstrings as reStructuredText: the parts Input, Output, Bound, Source and
Errors become a list of fields.

Each parameter has its own line in the list of inputs, and names of errors lead to the page that
says what to do about them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from dpframe import errors
from extensions.parameters import lines_of

FIELDS = ("Input", "Output", "Bound", "Source", "Errors", "Warns")
_FIELD = re.compile(rf"({'|'.join(FIELDS)}):\s+(.*)")
_CODE = re.compile(r"(`[^`]+`)")
_ERROR = re.compile(rf"\b({'|'.join(sorted(errors.__all__, key=len, reverse=True))})\b")


def prose(line: str) -> str:
    """A line of a docstring: `code` is literal, and what reStructuredText
    would read as markup is escaped.
    """
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


def converted(lines: list[str], obj: Any = None) -> list[str]:
    """A whole docstring of a function, a method or a class."""
    out: list[str] = []
    rest = list(lines)
    if callable(obj) and not any(line.startswith("Input:") for line in rest):
        _add_input(rest, obj)
    while rest:
        line = rest.pop(0)
        field = _FIELD.fullmatch(line)
        if line.strip().startswith("```"):
            out += ["", ".. code-block:: text", ""]
            while not rest[0].strip().startswith("```"):
                out.append(f"   {rest.pop(0)}")
            rest.pop(0)
            out.append("")
        elif line.startswith(">>>"):
            out += ["", line]
            while rest and rest[0].strip():
                out.append(rest.pop(0))
        elif field:
            words = [field[2]]
            while rest and rest[0].startswith(" "):
                words.append(rest.pop(0).strip())
            if out and not out[-1].startswith((":", "    ")):
                out.append("")
            out += _field(field[1], " ".join(words), obj)
            if rest and rest[0].strip() and not _FIELD.fullmatch(rest[0]):
                out.append("")
        else:
            out.append(prose(line))
    return out


def _add_input(rest: list[str], obj: Any) -> None:
    """An empty part Input, after the prose, where a function with parameters has none."""
    if inspect.isclass(obj) or not any(words for _, words in lines_of(obj, "")):
        return
    stops = (
        i
        for i, line in enumerate(rest)
        if line.startswith(">>>") or _FIELD.fullmatch(line)
    )
    at = next(stops, len(rest))
    rest[at:at] = ["Input: .", ""] if at < len(rest) else ["", "Input: ."]


def _field(name: str, text: str, obj: Any) -> Iterator[str]:
    """One part of a docstring, as a field of reStructuredText."""
    items = lines_of(obj, text) if name == "Input" and callable(obj) else []
    if any(words for _, words in items):
        yield f":{name}:"
        for parameter, words in items:
            if words:
                yield f"    - **{prose(parameter)}**: {prose(words)}"
    elif name in ("Errors", "Warns"):
        yield f":{name}: {_ERROR.sub(_link, prose(text))}"
    else:
        yield f":{name}: {prose(text)}"


def _link(match: re.Match[str]) -> str:
    return f"`{match[1]} <errors.html#{match[1].lower()}>`__"


def process(
    app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]
) -> None:
    """Called by autodoc for each docstring."""
    lines[:] = converted(lines, obj)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
