"""The columns that expressions read: those of a table's rows, and those that
hold what was computed of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.engine.backends import (
    Cased,
    CellFunction,
    Frame,
    Parsed,
    Part,
    Piece,
    Replaced,
    Stripped,
    backend_of,
)
from dpframe.engine.stages.coerced import by_edges, int64
from dpframe.plan import ColumnDomain, Floats, Kind, Search, kind

_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
# Forms of the texts that can be converted, in the syntax that the regular expressions of all
# engines share: an expression for the whole text, and one for a character that no such text has.
# The second one is needed because Java's "$" also matches before a line end at the end of the text:
# the first one alone lets "12\n" pass.
_UNSIGNED = (r"^\+?[0-9]+$", r"[^0-9+]")
_FORMS: Mapping[str, tuple[str, str]] = {
    "integer": (r"^[+-]?[0-9]+$", r"[^0-9+-]"),
    "float": (r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$", r"[^0-9eE.+-]"),
    "date": (r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", r"[^0-9-]"),
    "datetime": (rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_CLOCK}$", r"[^0-9T :.-]"),
}


class Operands(NamedTuple):
    """The operands of an operation, with their domains, and its options."""

    values: Sequence[nw.Expr]
    domains: Sequence[ColumnDomain]
    options: Mapping[str, Any]

    @property
    def value(self) -> nw.Expr:
        """The first operand."""
        return self.values[0]

    @property
    def dtype(self) -> DType:
        """The type of the first operand."""
        return self.domains[0].dtype

    @property
    def kind(self) -> Kind:
        """The kind of the first operand."""
        return kind(self.dtype)

    @property
    def whole(self) -> nw.Expr:
        """The first operand, a whole number, as Int64, null where it does not fit."""
        return int64(self.value, self.domains[0])


class Columns:
    """The rows of a table, with columns that the engine computes of others and
    values that are read more than once.

    Input:  rows; keep: the columns that are needed of the rows besides what the expressions read
    """

    def __init__(self, frame: Frame, keep: Iterable[str]) -> None:
        self._frame = frame
        self._keep = frozenset(keep)
        self._names = dict.fromkeys(sorted(self._keep))  # the columns of the frame that are needed
        # new columns; each level reads the frame and lower levels
        self._levels: dict[int, dict[str, nw.Expr]] = {}
        self._level = 0
        self.engine = backend_of(frame)
        self._made: list[str] = []
        # expressions that are a column, by identity
        self._columns: dict[int, tuple[nw.Expr, str]] = {}
        # for each column, how many values read it that have readers to come
        self._readers: Counter[str] = Counter()
        # for each column, the level of the last column that reads it
        self._last: dict[str, int] = {}

    @property
    def frame(self) -> Frame:
        """The rows with all columns that are held so far, less
        those that nothing reads any more.
        """
        for level in sorted(self._levels):
            names = [
                name for name in self._names if name in self._keep or not self._is_over(name, level)
            ]
            self._frame = self._frame.select(*names, **self._levels[level])
            self._names = dict.fromkeys([*names, *self._levels[level]])
        self._levels = {}
        return self._frame

    def _is_over(self, name: str, level: int) -> bool:
        return not self._readers[name] and self._last.get(name, level + 1) <= level

    def constant(self, value: Any) -> Any:
        """A constant in a query: a text in the form in which the rows hold
        texts, any other value as it is.
        """
        return self.engine.texts(self._frame, [value])[0]

    def read(self, value: nw.Expr) -> nw.Expr:
        """A text in the form that functions of texts read."""
        return (
            self._through(value, self.engine.to_text)
            if self.engine.bytewise(self._frame)
            else value
        )

    def held(self, value: nw.Expr) -> nw.Expr:
        """A text that the engine computed, in the form in which the rows hold texts."""
        return (
            self._through(value, self.engine.to_bytes)
            if self.engine.bytewise(self._frame)
            else value
        )

    def hold(self, value: nw.Expr) -> nw.Expr:
        """A value that is read more than once, as a column.
        It is computed once, and a query states it once.
        """
        return self.held_all([value])[0]

    def held_all(self, values: Sequence[nw.Expr]) -> list[nw.Expr]:
        """Several values that are read more than once, as columns of one level.
        None of them reads another.
        """
        new, columns = {}, []
        for value in values:
            if id(value) in self._columns:
                columns.append(value)
                continue
            name = self._name()
            new[name] = value
            columns.append(self._column(name))
        if new:
            self._levels.setdefault(self._level, {}).update(new)
            self._level += 1
        return columns

    def _name(self) -> str:
        self._made.append(f"t{len(self._made)}")
        return self._made[-1]

    def _column(self, name: str) -> nw.Expr:
        column = nw.col(name)
        self._columns[id(column)] = (column, name)
        return column

    def converted(self, value: nw.Expr, dtype: DType) -> nw.Expr:
        """A text converted to another type, null where it does not have
        that type's form (see `_FORMS`).
        """
        forms = _UNSIGNED if dtype.is_unsigned_integer() else _FORMS[kind(dtype)]
        return self.applied(self.read(value), Parsed(dtype), forms)

    def part(self, value: nw.Expr, dtype: DType, part: str) -> nw.Expr:
        """A part of a date or time, through the engine's own calendar."""
        return self.applied(value, Part(dtype, part))

    def of_text(
        self, value: nw.Expr, function: Cased | Replaced | Piece | Stripped | Search
    ) -> nw.Expr:
        """The result of a function of a text; a text in the form in which the rows hold texts."""
        found = self.applied(self.read(value), function)
        return self.held(found) if function.result == "string" else found

    def applied(
        self, value: nw.Expr, function: CellFunction, form: tuple[str, str] | None = None
    ) -> nw.Expr:
        """The result of a function of a value.
        With `form`, a text that does not have the form is null.
        """
        return self._through(
            value, lambda frame, a, b: self.engine.apply(frame, a, function, b), form
        )

    def ending(self, value: nw.Expr, offset: int, length: int) -> nw.Expr:
        """Some of the last characters of a text."""
        return self._through(
            value, lambda frame, a, b: self.engine.ending(frame, a, offset, length, b)
        )

    def divided(self, value: nw.Expr, by: int) -> nw.Expr:
        """A whole number divided by another, rounded down."""
        return self._through(value, lambda frame, a, b: self.engine.divided(frame, a, by, b))

    def _through(
        self,
        value: nw.Expr,
        compute: Callable[[Frame, str, str], Frame],
        form: tuple[str, str] | None = None,
    ) -> nw.Expr:
        """A column that the engine computes from a value.
        With `form`, a text that does not have the form is null.
        """
        before, after = self._name(), self._name()
        frame = self.frame.with_columns(value.alias(before))
        if form is not None:
            text = nw.col(before)
            whole, beside = form
            fits = text.str.contains(whole) & ~text.str.contains(beside)
            frame = frame.with_columns(nw.when(fits).then(text).alias(before))
        self._frame = compute(frame, before, after)
        self._names[after] = None
        return self._column(after)


class TableFloats(Floats):
    """The floats of a table, on its engine."""

    def __init__(self, here: Columns) -> None:
        self.here = here

    def real(self, number: float) -> nw.Expr:
        """A constant."""
        return self.here.engine.real(number)

    def hold(self, *values: nw.Expr) -> list[nw.Expr]:
        """Values that are read more than once, as columns."""
        return self.here.held_all(values)

    def floor(self, value: nw.Expr) -> nw.Expr:
        """A float rounded down."""
        return self.here.engine.floor(value)

    def pick(self, value: nw.Expr, edges: Sequence[float], constants: Sequence[float]) -> nw.Expr:
        """The constant of the interval that holds a value."""
        return by_edges(value, edges, constants, self.real)


Lower = Callable[[Columns, Operands], nw.Expr]
