"""The base of everything that is released: its facts, its table in every kind,
files, and the privacy statement.
"""

from __future__ import annotations

import datetime as dt
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Generic

import polars as pl

from dpframe.budget import Loss
from dpframe.engine import Kind, Table_co, as_kind
from dpframe.errors import UnsupportedOperation
from dpframe.fields import FieldDict, Fields
from dpframe.plan import Covers, Derivation
from dpframe.release.shown.charts import MISSING, Heading
from dpframe.release.shown.files import (
    check_beside,
    formats,
    in_decimals,
    in_file,
    write_certificate,
    write_csv,
    write_csvw,
    write_excel,
    write_latex,
    write_parquet,
    write_sql,
)
from dpframe.release.shown.left_out import left_out_words
from dpframe.release.shown.report import Report, completed
from dpframe.safe_text import visible
from dpframe.usage import Hints

if TYPE_CHECKING:
    import pandas as pd


class Exports(Hints):
    """Conversions and files of a released table, and its text in a terminal."""

    _numbered = False  # whether the sheets of an Excel file have numbers in front of their names

    @abstractmethod
    def _in_kind(self, kind: Kind) -> Any:
        """The released table as a table of this kind, in the layout that was asked for."""

    def _marked(self, kind: Kind) -> Any:
        """The table as it is written to files: in its decimals;
        suppressed numbers are marked, if marks were typed.
        """
        if self._indexed and kind == "pandas":
            return self._in_kind(kind)
        return as_kind(in_decimals(self._in_kind("polars"), self._decimals), kind)

    @property
    def _decimals(self) -> Mapping[str, int]:
        """The decimals of each column of the table in files, where its margins of
        error say how many tell something.
        """
        return {}

    @property
    def _footnotes(self) -> list[str]:
        """Lines below the table in files: the price, the coverage of
        intervals, suppressions and changes.
        """
        return list(self._notes)

    @property
    def _nulls(self) -> list[str]:
        """The marks of numbers that are not shown."""
        return [""]

    @abstractmethod
    def report(self) -> Report:
        """The privacy statement: prints as text, shows as HTML, `to_json()` for machines."""

    @property
    @abstractmethod
    def _words(self) -> str:
        """The text in a terminal, without `_notes`."""

    @property
    def _notes(self) -> Sequence[str]:
        """Sentences that follow the text in a terminal, a line for each."""
        return ()

    @property
    def _notes_html(self) -> str:
        return "".join(f"<br>{escape(note)}" for note in self._notes)

    @property
    def _indexed(self) -> bool:
        """Whether the keys are the index of the pandas table."""
        return False

    def to_polars(self) -> pl.DataFrame:
        """The released table as a Polars DataFrame."""
        table: pl.DataFrame = self._in_kind("polars")
        return table

    def to_pandas(self) -> pd.DataFrame:
        """The released table as a pandas DataFrame."""
        table: pd.DataFrame = self._in_kind("pandas")
        return table

    def to_arrow(self) -> Any:
        """The released table as a PyArrow Table."""
        return self._in_kind("pyarrow")

    def certificate(self) -> FieldDict:
        """Everything that the privacy claim rests on: see `Release.certificate`."""
        raise UnsupportedOperation(
            "certificate(): totals and windows of a series follow from the numbers of its "
            "periods. Each of these has a certificate: series.add(query, period).certificate()."
        )

    def to_csv(
        self,
        path: Any = None,
        *,
        certificate: bool = False,
        metadata: bool = False,
        notes: bool = False,
    ) -> str | None:
        """The released table as CSV: a text, or a file if there is a path.
        A crosstab has one line of names.

        Input:  path: the file; without one, the text is returned; certificate: whether the
                certificate is written beside the file, as `table.csv.certificate.json`; metadata:
                whether its columns, keys, marks and notes are described beside it, as
                `table.csv-metadata.json` (CSV on the Web); notes: whether lines that begin with "#"
                follow, with the price, what intervals cover and what was suppressed, which
                `pd.read_csv(path, comment="#")` leaves out

        Numbers have the decimals that their margins of error leave, here and in Excel, LaTeX and
        HTML. Durations are written as in ISO 8601: PT5H is five hours. A text that a spreadsheet
        would run as a formula has a quote first.

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"city": ["Bonn", "Kiel"]}).dp(
        ...     unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0)
        ... )
        >>> out = frame.histogram("city", keys=["Bonn", "Kiel"]).release(epsilon=0.5)
        >>> out.to_csv().splitlines()[0]
        'city,count'
        """
        check_beside(path, certificate=certificate or metadata)
        if certificate:
            write_certificate(self.certificate(), path)
        table = self._marked("polars")
        if metadata:
            write_csvw(self._in_kind("polars"), path, self._row_keys, self._nulls, self._footnotes)
        return write_csv(table, path, self._footnotes if notes else ())

    @property
    def _row_keys(self) -> tuple[str, ...]:
        """The columns that name a row."""
        return ()

    def to_parquet(self, path: Any) -> None:
        """The released table as a Parquet file, with the privacy statement and
        the certificate in its metadata.

        They are JSON under the keys `dpframe.privacy_statement` and `dpframe.certificate`:
        `pyarrow.parquet.read_schema(path).metadata`. Input: path, of the file.
        """
        certificate = {"certificate": self.certificate()} if self._certified else {}
        write_parquet(
            self.to_arrow(), path, {"privacy_statement": self.report().to_dict(), **certificate}
        )

    @property
    def _certified(self) -> bool:
        """Whether there is a certificate."""
        return False

    def to_excel(self, path: Any) -> None:
        """The released table as an Excel file, with the privacy statement on the last
        sheet; needs the extra `excel`.

        The numbers are those that are shown: rounded, with marks for suppressed ones, and with a
        format that has the decimals which their margins of error leave. Notes stand above the
        statement. A release of several tables has a sheet for each. A crosstab has its columns'
        name in the first cell, after those of its rows, and a sheet with the 95% interval of each
        number. Excel has no zones: a time with one is written as text, in ISO 8601. Durations are
        in hours, minutes, seconds.

        Input:  path: of the file
        Errors: UnsupportedOperation without it, and for a table with more rows than a sheet can
                hold
        """
        lines = [*self._below, "", *self.report().splitlines()[1:]]
        write_excel(self._sheets(), path, lines, self._decimals, numbered=self._numbered)

    def _sheets(self) -> dict[str, tuple[Any, bool]]:
        """The sheets of an Excel file by name: a pandas table, and whether its index is written."""
        return {"table": (self._to_text(), self._indexed)}

    def to_latex(self, path: Any = None, *, notes: bool = True, **options: Any) -> str | None:
        """The released table in LaTeX: a text, or a file where a path is
        given; needs the extra `latex`.

        Keys and names are escaped: `escape=False` leaves them.

        Input:  path: of the file; notes: footnotes below the table, with the price, what intervals
                cover and what was suppressed; options: those of pandas' `DataFrame.to_latex`
        Errors: UnsupportedOperation without the extra
        """
        table = self._to_text()
        more = {**self._formats(table, options), **options}
        return write_latex(table, path, self._indexed, more, self._below if notes else ())

    def to_html(self, path: Any = None, *, notes: bool = True, **options: Any) -> str | None:
        """The released table in plain HTML: a text, or a file where a path is given.

        The privacy statement is `report().to_html()`.

        Input:  path: of the file; notes: footnotes below the table, as in `to_latex`; options:
                those of pandas' `DataFrame.to_html`
        """
        table = self._to_text()
        more = {"index": self._indexed, **self._formats(table, options), **options}
        below = "".join(f"\n<p>{escape(note)}</p>" for note in self._below) if notes else ""
        return in_file(table.to_html(**more) + below, path)

    def _formats(self, table: Any, options: Fields) -> FieldDict:
        """The option of pandas that writes numbers in their decimals,
        unless their format was typed.
        """
        typed = {"float_format", "formatters"} & set(options)
        found = {} if typed else formats(table, self._decimals)
        return {"formatters": found} if found else {}

    def to_sql(self, table: str, connection: Any, *, if_exists: str = "fail") -> None:
        """Write the released table into a database, in one transaction:
        readers see all of it, or what was there.

        A column `release` has the name of the release. So a job that runs again and appends takes
        out its own rows first, and no row is there twice.

        Input:  table: its name; connection: a connection or an engine of SQLAlchemy, or its URL; a
                connection that is in a transaction is not committed; if_exists: "fail", "replace"
                the table, or "append" to it
        Errors: InvalidArgument; what the database raises, for instance of a table that is there
                already
        """
        frame = self.to_pandas()
        keyed = frame.reset_index() if self._indexed else frame
        write_sql(keyed, table, connection, if_exists, self.report().to_dict().get("name"))

    def _to_text(self) -> Any:
        """The pandas table that pages, LaTeX and Excel are written from:
        a dash for a number that is not shown.
        """
        table = self._marked("pandas")
        if not self._hides:
            return table
        keys = [isinstance(name, str) and name in self._row_keys for name in table.columns]
        return table.astype(object).where(table.notna() | keys, MISSING)

    @property
    def _hides(self) -> bool:
        """Whether there may be numbers that are not shown."""
        return False

    @property
    def _below(self) -> list[str]:
        """The footnotes of a table for readers."""
        return [*self._footnotes, *([f"{MISSING}: no number is released."] if self._hides else [])]

    def __repr__(self) -> str:
        return visible("\n".join([self._words, *self._notes]), keep="\n")


@dataclass(frozen=True)
class Filed:
    """Things kept with a charge beside the statements:
    one certificate for all of its questions, and who ran them.

    Both are None for releases that earlier versions stored. `question` is the place of the question
    of a release.
    """

    certificate: Fields | None = None
    question: int = 0
    run: Fields | None = None


@dataclass(frozen=True)
class Record:
    """Facts about one release that do not depend on the kind of its answer.

    `kind` is the kind of table that was protected, `when` the time (UTC) at which the noise was
    drawn, and `statement` the privacy statement as it is stored. `filed` is what else was kept with
    the charge.
    """

    cost: Loss
    derivation: Derivation
    kind: Kind
    when: dt.datetime
    statement: Fields
    filed: Filed = Filed()


@dataclass(frozen=True, eq=False, repr=False)
class Released(Exports, Generic[Table_co]):
    """A released answer of any kind, with the facts of its release."""

    _record: Record
    # a sentence for each step of post-processing
    _steps: tuple[str, ...] = field(default=(), kw_only=True)

    # Facts

    @property
    def cost(self) -> Loss:
        """The loss that was charged."""
        return self._record.cost

    @property
    def derivation(self) -> Derivation:
        """Every step, and how far one unit moves each total."""
        return self._record.derivation

    @property
    def when(self) -> dt.datetime:
        """The time (UTC) at which the noise was drawn."""
        return self._record.when

    @property
    def _kind(self) -> Kind:
        return self._record.kind

    @property
    def _statement(self) -> Fields:
        return self._record.statement

    # The table

    @property
    def table(self) -> Table_co:
        """The released table, in the layout of the question and in the
        kind of table that was protected.

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"]})
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> query = frame.group_by("city", keys=["Bonn", "Kiel"], max_groups=2, max_rows=2).count()
        >>> dict(query.release(epsilon=0.5).table.schema)
        {'city': String, 'count': Int64}
        """
        table: Table_co = self._in_kind(self._kind)
        return table

    @property
    def _footnotes(self) -> list[str]:
        unit = self._statement.get("unit_of_privacy")
        whose = f"; protected: {unit}" if unit else ""
        margins = "; ".join(f"{name} {error}" for name, error in self._margins())
        errors = (
            [f"95% margins of error {self._margins_are}, at most: {margins}."] if margins else []
        )
        return [
            f"Differential privacy: released at {self.cost}{whose}.",
            *super()._footnotes,
            *errors,
            *self._steps,
        ]

    # In words

    def report(self) -> Report:
        """The privacy statement of this release: prints as text, shows as
        HTML, `to_json()` for machines.

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"city": ["Bonn", "Kiel"]}).dp(
        ...     unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0)
        ... )
        >>> print(str(frame.count().release(epsilon=0.5).report()).splitlines()[5])
        Privacy loss: ε = 0.5: pure differential privacy (ε).
        """
        steps = {"post_processing": list(self._steps)} if self._steps else {}
        beyond = self._left_out()
        said = {"beyond": beyond} if beyond else {}
        return Report(
            {**self._statement, **said, **steps, **self._stated()}, tuple(self._margins())
        )

    @property
    def _certified(self) -> bool:
        return self._record.filed.certificate is not None

    def certificate(self) -> FieldDict:
        """Everything that the privacy claim of this release rests on, and
        nothing of the data, as plain values.

        `json.dumps(out.certificate())` is the document that others can check: see the reference.
        The stored release of a name has the certificate of its first release.

        Raises
        ------
        UnsupportedOperation
            For a release that an earlier version stored.

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"user": [1, 1, 2], "city": ["Bonn", "Kiel", "Bonn"]})
        >>> frame = visits.dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> out = frame.count(max_rows=2).release(epsilon=0.5)
        >>> out.certificate()["mechanisms"][0]["loss"]
        {'epsilon': '1/2'}
        """
        stored, number = self._record.filed.certificate, self._record.filed.question
        if stored is None:
            raise UnsupportedOperation(
                "certificate(): this release was stored by a version that wrote none. Release it "
                "again to have one: release(..., refresh=True) pays again."
            )
        said = {**self._statement, "post_processing": list(self._steps)}
        return completed(
            self.to_csv(), stored, said, drawn=self._statement["drawn"], question=number
        )

    def manifest(self) -> FieldDict:
        """Who ran this release, on what, and under which rules, as plain values.

        `by` is the user of the machine, `data` what is known of the origin of the rows (`data=` of
        `dp.protect`, and files), `policies` the hashes of policy files, and `ledger` the entry of
        the charge. It may hold names of people and files, so it is not part of the certificate.

        Raises
        ------
        UnsupportedOperation
            For a release that an earlier version stored.

        >>> import polars as pl, dpframe as dp
        >>> visits = pl.DataFrame({"user": [1, 1, 2]})
        >>> frame = dp.protect(
        ...     visits, unit="user", budget=dp.Budget(epsilon=1.0), data="visits of 2026"
        ... )
        >>> manifest = frame.count(max_rows=2).release(epsilon=0.5).manifest()
        >>> manifest["charge"], manifest["data"]
        ({'delta': '0/1', 'epsilon': '1/2'}, [{'': 'visits of 2026', 'said': 'visits of 2026'}])
        """
        certificate, names = self.certificate(), ("charge", "drawn", "ledger", "versions")
        questions = certificate["questions"]
        policies = [policy for question in questions for policy in question["policies"]]
        about = {"asked": [question["asked"] for question in questions], "policies": policies}
        return {
            **(self._record.filed.run or {}),
            **about,
            **{name: certificate[name] for name in names},
        }

    def _stated(self) -> Fields:
        """Items of the privacy statement that depend on what was released."""
        return {}

    @property
    def _margins_are(self) -> str:
        """The subject of the margins of error, after these words."""
        return Covers.NOISE.margins

    def _margins(self) -> Sequence[tuple[str, str]]:
        """Each column or table with its 95% margin of error in words."""
        return ()

    @property
    def _notes(self) -> Sequence[str]:
        """The sentence that the answer is a stored one, and what the numbers leave out."""
        return [*self._origin, *self._scope, *self.derivation.rows]

    @property
    def _origin(self) -> list[str]:
        """The sentence that the answer is a stored one; empty for a new answer."""
        return [self._statement[key] for key in ("test", "stored") if key in self._statement]

    @property
    def _scope(self) -> list[str]:
        """The effect of limits and bounds on the released numbers."""
        return self._left_out()

    def _left_out(self, column: str | None = None) -> list[str]:
        """The effect of limits and bounds on one released column, by
        default on all: see `beyond_words`.
        """
        return left_out_words(self.derivation.beyond, self._statement.get("left_out", ()), column)

    def _noted(self, table: Any, kind: Kind) -> Any:
        """A table that carries the price and the notes, if it is one of pandas: in `attrs`."""
        if kind == "pandas":
            table.attrs["dpframe"] = " ".join([f"Released at {self.cost}.", *self._notes])
        return table

    def _heading(self, title: str, lines: Sequence[str] = ()) -> Heading:
        """The heading of a chart: title, price and unit, the steps of
        post-processing by name, and more lines.
        """
        together = self._statement.get("guarantee", {}).get("charged_for_queries", 1)
        batch = f" for {together} queries together" if together > 1 else ""
        unit = self._statement.get("unit_of_privacy")
        whose = f"; protected: {unit}" if unit else ""
        verbs = [
            verb
            for verb, _, _ in (step.partition(":") for step in self._steps)
            if verb.endswith(")")
        ]
        after = f" After {', '.join(verbs)}." if verbs else ""
        return Heading(title, (f"Released at {self.cost}{batch}{whose}.{after}", *lines))
