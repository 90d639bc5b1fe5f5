"""The noise of the quick tier is the same in each run, so that no test of it fails by chance.

Each test draws words that follow from its name, in place of those of the operating system. That of
the long tier is new in each run, and `DPFRAME_NOISE=new make test` shows what the quick tier does
under noise that it has not seen. A child of a fork draws its own words.
"""

from __future__ import annotations

import os
import random
from types import SimpleNamespace

import pytest

from dpframe.noise import bits


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before the fixtures of the test, which may draw."""
    is_new = os.environ.get("DPFRAME_NOISE") == "new" or item.get_closest_marker("long") is not None
    bits.os = os if is_new else SimpleNamespace(urandom=_words_of(item.nodeid))


def _words_of(name: str):
    words, process = random.Random(name), os.getpid()
    return lambda count: words.randbytes(count) if os.getpid() == process else os.urandom(count)
