"""A release as other kinds of tables, as files and as markup."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import polars as pl

from dpframe.engine import Kind, as_kind
from dpframe.release.answer import Numbers
from dpframe.release.publish.error_tables import error_table
from dpframe.release.publish.files import check_installed, write_excel, write_parquet
from dpframe.release.publish.report import Report

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Exports"]


class Exports:
    """What is written of a released table, and its conversions."""

    _numbers: Numbers

    @abstractmethod
    def _laid_out(self, kind: Kind) -> Any:
        """The released table as a table of this kind, in the layout that was asked for."""

    @abstractmethod
    def _marked(self, kind: Kind) -> Any:
        """The table as it is written to files: suppressed numbers are marked, if marks were typed."""

    @abstractmethod
    def report(self) -> Report:
        """The privacy statement."""

    def to_polars(self) -> pl.DataFrame:
        """The released table as a Polars DataFrame."""
        return self._laid_out("polars")  # type: ignore[no-any-return]

    def to_pandas(self) -> pd.DataFrame:
        """The released table as a pandas DataFrame."""
        return self._laid_out("pandas")  # type: ignore[no-any-return]

    def to_arrow(self) -> Any:
        """The released table as a PyArrow Table."""
        return self._laid_out("pyarrow")

    def to_csv(self, path: Any = None) -> str | None:
        """The released table as CSV: a text, or a file if there is a path. A crosstab has one line of names.

        Durations are written as in ISO 8601: PT5H is five hours. Beside marks of suppressed numbers they are 5:00:00.

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"city": ["Bonn", "Kiel"]}).dp(unit=dp.Rows(1), budget=dp.Budget(epsilon=1.0))
        >>> out = frame.histogram("city", keys=["Bonn", "Kiel"]).release(epsilon=0.5)
        >>> out.to_csv().splitlines()[0]
        'city,count'
        """
        table: pl.DataFrame = self._marked("polars").with_columns(pl.selectors.duration().dt.to_string("iso"))
        if path is None:
            return table.write_csv()
        table.write_csv(path)
        return None

    def to_parquet(self, path: Any) -> None:
        """The released table as a Parquet file, with the privacy statement as JSON in its metadata.

        It is under the key `dpframe.privacy_statement`: `pyarrow.parquet.read_schema(path).metadata`.
        """
        write_parquet(self.to_arrow(), path, self.report().to_dict())

    def to_excel(self, path: Any) -> None:
        """The released table as an Excel file, with the privacy statement on the last sheet; needs the extra `excel`.

        The numbers are those that are shown: rounded, with marks for suppressed ones. A crosstab has its columns' name
        in the first cell, after those of its rows, and a sheet with the 95% interval of each number. Excel has no
        zones: a time with one is written as text, in ISO 8601. Durations are in hours, minutes, seconds.

        Errors: UnsupportedOperation without it
        """
        crossed = self._numbers.layout.form == "crosstab"
        sheets = {"table": (self._marked("pandas"), not self._numbers.layout.is_long)}
        if crossed:
            sheets["95% intervals"] = as_kind(error_table(self._numbers, 0.05), "pandas"), False
        write_excel(sheets, path, self.report())

    def to_latex(self, path: Any = None, **options: Any) -> str | None:
        """The released table in LaTeX: a text, or a file where a path is given; needs the extra `latex`.

        The options are those of pandas' `DataFrame.to_latex`.

        Errors: UnsupportedOperation without the extra
        """
        check_installed("jinja2", "to_latex() needs Jinja2")
        options.setdefault("index", not self._numbers.layout.is_long)
        return self._to_text().to_latex(path, **options)  # type: ignore[no-any-return]

    def to_html(self, path: Any = None, **options: Any) -> str | None:
        """The released table in plain HTML: a text, or a file where a path is given.

        The options are those of pandas' `DataFrame.to_html`. The privacy statement is `report().to_html()`.
        """
        options.setdefault("index", not self._numbers.layout.is_long)
        return self._to_text().to_html(path, **options)  # type: ignore[no-any-return]

    def _to_text(self) -> Any:
        """The pandas table with a mark, or an empty text, for each suppressed number."""
        table = self._marked("pandas")
        return table.astype(object).where(table.notna(), "") if self._numbers.below is not None else table
