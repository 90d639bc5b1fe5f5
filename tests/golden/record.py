"""A question's record: everything that it shows, as text that can be
read and compared byte for byte.

Random words come from a stream that follows from the question's name, so released numbers are the
same in each run. What depends on the clock, on versions and on folders is replaced by <now>,
<version> and <folder>. Floats are written with all their digits. Those of mathematical functions,
whose last digit is the processor's, are written with twelve: see `Page.near`.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import platform
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl

from dpframe.errors import DpFrameError, DpFrameWarning
from dpframe.noise import bits
from dpframe.testing import Words

EXPECTED = Path(__file__).parent / "expected"
VERSIONED = (
    "polars",
    "pandas",
    "numpy",
    "narwhals",
    "python-flint",
    "altair",
    "dp-accounting",
    "scipy",
    "openpyxl",
)
_NAMED = ("dpframe", "polars", "narwhals", "numpy", "python-flint")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00)?")

Bring = Callable[[pl.DataFrame], Any]


@dataclass(frozen=True)
class Question:
    """What is asked, and in which file its record is.

    `everywhere`: each engine must give the same record. `versions`: packages whose versions must be
    those that the expected records were made with, because what they write is part of the record.
    `long`: for the long tier alone.
    """

    topic: str
    name: str
    fill: Callable[[Page], None]
    everywhere: bool = False
    versions: tuple[str, ...] = ()
    long: bool = False


class Stream(Words):
    """Words of which the highest bits of one, at the place `flipped`, are
    inverted: the negative control.
    """

    def __init__(self, name: str, flipped: int | None = None) -> None:
        super().__init__(name)
        self._flipped = flipped

    def __call__(self, count: int) -> np.ndarray:
        first, words = self.drawn, super().__call__(count)
        if self._flipped is not None and first <= self._flipped < first + count:
            words[self._flipped - first] ^= np.uint64(0xFFFF << 48)
        return words


class Page:
    """The record of one question while it is written."""

    def __init__(self, name: str, bring: Bring, folder: Path) -> None:
        self._name, self._bring, self.folder = name, bring, folder
        self._parts: list[str] = []

    def bring(self, frame: pl.DataFrame) -> Any:
        """A table as users of the engine hold it."""
        return self._bring(frame)

    def note(self, title: str, value: Any, number: Callable[[float], str] = repr) -> None:
        """A part of the record: a title, and a value in any number of lines."""
        written = text(value, number)
        apart = "\n" if "\n" in written or written.startswith("  ") else " "
        self._parts.append(f"[{title}]{apart}{written}")

    def near(self, title: str, value: Any) -> None:
        """Numbers that come from exp, log and the like, whose last digits
        may differ between processors.
        """
        self.note(title, value, _twelve)

    def refused(self, title: str, call: Callable[[], Any]) -> None:
        """The refusal of a call; a call that is not refused is an error of the question."""
        try:
            call()
        except DpFrameError as error:
            self.note(title, refusal(error))
        else:
            raise AssertionError(f"{self._name}, {title}: nothing was refused")

    def read(self) -> str:
        """The whole record."""
        return _neutral("\n".join([f"=== {self._name}", *self._parts]), self.folder) + "\n"


def refusal(error: DpFrameError) -> str:
    """The kind of an error and its message."""
    return f"{type(error).__name__}: {error.args[0]}"


def record(
    question: Question, bring: Bring = lambda frame: frame, flipped: int | None = None
) -> str:
    """The record of a question, from one engine's tables."""
    return _recorded(question, bring, flipped)[0]


def words_of(question: Question) -> int:
    """How many random words a question draws."""
    return _recorded(question, lambda frame: frame, None)[1]


@cache
def on_polars(question: Question) -> str:
    """The record of a question on Polars."""
    return record(question)


def _recorded(question: Question, bring: Bring, flipped: int | None) -> tuple[str, int]:
    with (
        tempfile.TemporaryDirectory() as folder,
        replayed(question.name, flipped) as stream,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", DpFrameWarning)
        page = Page(question.name, bring, Path(folder))
        question.fill(page)
        return page.read(), stream.drawn


@contextmanager
def replayed(name: str, flipped: int | None = None) -> Iterator[Stream]:
    """All randomness replaced: the words of the noise, and the
    tokens by which partitions choose.
    """
    stream = Stream(name, flipped)
    salt = hashlib.shake_256(name.encode()).hexdigest(16)
    with bits.substitute(stream), mock.patch.object(bits, "random_salt", return_value=salt):
        yield stream


# Values as text


def text(value: Any, number: Callable[[float], str] = repr) -> str:
    """A value in one line, or in several: a table with a line for each row, a
    mapping with one for each key.
    """
    if isinstance(value, (pd.DataFrame, pl.DataFrame)) or hasattr(value, "to_pydict"):
        return _table(_polars(value), number)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Mapping):
        return "\n".join(f"  {key}: {_cell(item, number)}" for key, item in value.items())
    if isinstance(value, (list, tuple)) and any(
        isinstance(item, (str, list, tuple, Mapping)) for item in value
    ):
        return "\n".join(f"  {_cell(item, number)}" for item in value)
    return _cell(value, number)


def as_json(value: Any) -> str:
    """JSON with a line for each item."""
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=False)


def rounded(value: Any) -> Any:
    """The same nested lists and mappings, with floats to twelve digits."""
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item) for item in value]
    return float(_twelve(value)) if isinstance(value, float) else value


def _table(table: pl.DataFrame, number: Callable[[float], str]) -> str:
    rows = [" | ".join(_cell(item, number) for item in row) for row in table.rows()]
    return "\n".join(["  " + " | ".join(table.columns), *(f"  {row}" for row in rows)])


def _polars(table: Any) -> pl.DataFrame:
    if isinstance(table, pl.DataFrame):
        return table
    return (
        pl.from_pandas(table)
        if isinstance(table, pd.DataFrame)
        else pl.DataFrame(pl.from_arrow(table))
    )


def _cell(item: Any, number: Callable[[float], str]) -> str:
    if isinstance(item, (float, np.floating)):
        return number(float(item))
    if isinstance(item, (dt.date, dt.timedelta)):
        return str(item)
    if isinstance(item, np.generic):
        return repr(item.item())
    if isinstance(item, (list, tuple)):
        inside = ", ".join(_cell(one, number) for one in item)
        return f"[{inside}]" if isinstance(item, list) else f"({inside})"
    return repr(item)


def _twelve(value: float) -> str:
    return f"{value:.12g}"


def _neutral(record: str, folder: Path) -> str:
    """The record without what another run or machine would write differently."""
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)

    def moment(match: re.Match[str]) -> str:
        read = dt.datetime.fromisoformat(match[0]).replace(tzinfo=None)
        return "<now>" if abs(now - read) < dt.timedelta(hours=1) else match[0]

    record = _MOMENT.sub(moment, record).replace(str(folder), "<folder>")
    for package, version in {
        **{name: metadata.version(name) for name in _NAMED},
        **_python(),
    }.items():
        for between in (" ", '": "'):
            record = record.replace(f"{package}{between}{version}", f"{package}{between}<version>")
    return record


def _python() -> Mapping[str, str]:
    return {"python": platform.python_version()}


# Files


def versions() -> dict[str, str]:
    """Versions of the packages that questions may depend on."""
    return {name: _version(name) for name in VERSIONED}


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


def recorded_versions() -> dict[str, str]:
    """Versions that the expected records were made with."""
    lines = (EXPECTED / "versions.txt").read_text("utf-8").splitlines()
    return dict(line.split(" ", 1) for line in lines)


@cache
def expected(topic: str) -> Mapping[str, str]:
    """The expected records of a file, by the name of the question."""
    path = EXPECTED / f"{topic}.txt"
    whole = path.read_text("utf-8") if path.exists() else ""
    sections = re.split(r"^(?==== )", whole, flags=re.MULTILINE)
    return {
        section.partition("\n")[0].removeprefix("=== "): section for section in sections if section
    }


def write(questions: Sequence[Question]) -> list[Path]:
    """Write the expected records of all questions anew, and remove
    files that no question belongs to.
    """
    EXPECTED.mkdir(exist_ok=True)
    files = {
        f"{topic}.txt": "" for topic in dict.fromkeys(question.topic for question in questions)
    }
    for question in questions:
        files[f"{question.topic}.txt"] += record(question)
    files["versions.txt"] = "".join(f"{name} {version}\n" for name, version in versions().items())
    for path in EXPECTED.glob("*.txt"):
        if path.name not in files:
            path.unlink()
    for name, content in files.items():
        (EXPECTED / name).write_text(content, "utf-8", newline="\n")
    return [EXPECTED / name for name in files]
