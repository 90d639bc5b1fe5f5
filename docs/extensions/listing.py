"""Every public name on the pages of the reference, with its members, and an
index of them in one line each.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from extensions.docstrings import prose

REFERENCE = Path(__file__).parent.parent / "reference"
_DIRECTIVE = re.compile(r"\.\. (currentmodule|autofunction|autoclass):: ([\w.]+)")
_KEPT = (FunctionType, classmethod, staticmethod, property, cached_property)
_OPTION = re.compile(r"\s+:([\w-]+):\s*(.*)")


@dataclass(frozen=True)
class Documented:
    """A class or function of a page of the reference; members are names of a class."""

    page: str
    module: str
    name: str
    obj: Any
    members: tuple[str, ...]

    @property
    def path(self) -> str:
        """Its name in full, as references are made to it."""
        return f"{self.module}.{self.name}"


def documented(*pages: str) -> Iterator[Documented]:
    """Every class and function of these pages of the reference, in
    their order; by default of all.
    """
    for path in sorted(REFERENCE.glob("*.md")):
        if pages and path.stem not in pages:
            continue
        module, lines = "dpframe", path.read_text("utf-8").split("\n")
        for at, line in enumerate(lines):
            found = _DIRECTIVE.match(line)
            if found is None:
                continue
            if found[1] == "currentmodule":
                module = found[2]
                continue
            options: dict[str, str] = {}
            for option in map(_OPTION.fullmatch, lines[at + 1 :]):
                if option is None:
                    break
                options[option[1]] = option[2]
            obj = getattr(importlib.import_module(module), found[2])
            yield Documented(
                path.stem, module, found[2], obj, tuple(_members(obj, options))
            )


def _members(obj: Any, options: dict[str, str]) -> Iterator[str]:
    if "members" not in options or not inspect.isclass(obj):
        return
    hidden = {word.strip() for word in options.get("exclude-members", "").split(",")}
    beyond = {word.strip() for word in options.get("inherited-members", "").split(",")}
    owners = [obj]
    if "inherited-members" in options:
        owners = [
            kind
            for kind in obj.__mro__
            if kind.__module__.startswith("dpframe") and kind.__name__ not in beyond
        ]
    for name in sorted({name for kind in owners for name in vars(kind)} - hidden):
        kept = isinstance(inspect.getattr_static(obj, name), _KEPT)
        if not name.startswith("_") and kept and inspect.getdoc(getattr(obj, name)):
            yield name


def summary(obj: Any) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join((inspect.getdoc(obj) or "").partition("\n\n")[0].split())


class Index(Directive):
    """`..
    index-of:: frame query`: one line for each name and member of these pages, with a link.
    """

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Called by docutils."""
        lines: list[str] = []
        for entry in documented(*self.arguments[0].split()):
            role = "class" if inspect.isclass(entry.obj) else "func"
            lines += [
                f"- :py:{role}:`{entry.name} <{entry.path}>`: {prose(summary(entry.obj))}",
                "",
            ]
            for name in entry.members:
                member = getattr(entry.obj, name)
                kind = "meth" if callable(member) else "attr"
                lines.append(
                    f"  - :py:{kind}:`{name} <{entry.path}.{name}>`: {prose(summary(member))}"
                )
            lines.append("")
        section = nodes.section()
        section.document = self.state.document
        self.state.nested_parse(
            StringList(lines, source="index-of"), self.content_offset, section
        )
        return section.children


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("index-of", Index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
