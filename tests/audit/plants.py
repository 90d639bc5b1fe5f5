"""Bugs to plant: each a change of a few words in one function, made while a
test runs and taken back after it.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


def _function(thing: Any) -> Any:
    """The plain function under a property, a cached property, a dispatcher or a decorator."""
    for name in ("fget", "func", "__func__"):
        thing = getattr(thing, name, None) or thing
    return inspect.unwrap(thing)


def _code(function: Any) -> str:
    """A function as a statement a line, however its source is laid out, quoted or commented."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    tree.body[0].decorator_list = []  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _replaced(code: str, old: str, new: str) -> str:
    """Other words in a function, below its first line; texts stand in single quotes."""
    if old.startswith("re:"):
        return re.sub(old[3:], new, code)
    head, _, rest = code.partition(":\n")
    old, new = (words.replace('"', "'") for words in (old, new))
    return f"{head}:\n{rest.replace(old, new)}"


def _forget(thing: Any) -> None:
    """Keep no result that was worked out without a bug, or with it."""
    getattr(thing, "cache_clear", lambda: None)()


@contextlib.contextmanager
def changed(thing: Any, old: str, new: str) -> Iterator[None]:
    """Run the block with other words in a function's source (after "re:" a
    pattern), wherever it is referred to.
    """
    function = _function(thing)
    _forget(thing)
    code = _code(function)
    other = _replaced(code, old, new)
    assert other != code, (
        f"the plant does not fit any more: {old!r} is not in {function.__qualname__}"
    )
    space: dict[str, Any] = {}
    flags = __future__.annotations.compiler_flag
    exec(
        compile(other, f"<planted in {function.__qualname__}>", "exec", flags),
        function.__globals__,
        space,
    )
    kept = function.__code__
    function.__code__ = space[function.__name__].__code__
    try:
        yield
    finally:
        function.__code__ = kept
        _forget(thing)


@dataclass(frozen=True)
class Plant:
    """A bug: where, which words, and what must notice it.
    `pitfall` is the number of a bug that others shipped.
    """

    name: str
    thing: Any
    old: str
    new: str
    caught: Callable[[], bool]
    pitfall: int = 0
