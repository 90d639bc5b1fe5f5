"""A protected table as the engine holds it, and the kind of table in which a release is returned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import polars as pl
from narwhals.dtypes import DType

from dpframe.errors import UnsupportedOperation
from dpframe.plan import Bounds, ColumnDomain

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # The type of a released table, for type checkers: pd.DataFrame, pl.DataFrame, or Any where it is not known.
    Table_co = TypeVar("Table_co", covariant=True, default=Any)
else:  # `typing.TypeVar` has defaults from Python 3.13 on; type checkers know them in every version
    from typing import TypeVar

    Table_co = TypeVar("Table_co", covariant=True)

Kind = Literal["polars", "pyarrow", "pandas"]


@dataclass(frozen=True, eq=False, repr=False)
class Data:
    """A table that only the engine reads: its schema is public, its rows are not.

    - `scan(names)` gives the named columns as a lazy frame; with `empty=True` these columns without a row;
    - `kind` is the kind of table in which a release is returned: the user's own kind, or pandas for the tables of
      databases and clusters;
    - `lazy`: whether the rows are not in memory yet;
    - `engine` is the name of the engine that reads the rows;
    - `names` maps a column's name to the name under which it is scanned, for engines that cannot tell some names apart;
      a column that it does not list is scanned under its own name;
    - `files` are the files that the table scans, where they are known, and `versions` what `origins.versions` said of
      them when the table was taken in;
    - `own_types` are the user's types of columns where the plan's types say less, without categories;
    - `height` is the number of rows of a table of Polars, pandas or PyArrow in memory, which is not public; None for
      other tables.
    """

    kind: Kind
    schema: tuple[tuple[str, ColumnDomain], ...]
    scan: Callable[..., Any] = field(repr=False)
    lazy: bool = False
    engine: str = "polars"
    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    files: tuple[Path, ...] = field(default=(), repr=False)
    versions: tuple[object, ...] = field(default=(), repr=False)
    own_types: Mapping[str, Any] = field(default_factory=dict, repr=False)
    height: int | None = field(default=None, repr=False)

    def called(self, name: str) -> str:
        """The name under which a column is scanned."""
        return self.names.get(name, name)

    def __repr__(self) -> str:
        return f"<{self.kind if self.engine == 'polars' else self.engine}>"

    def __reduce__(self) -> Any:
        raise UnsupportedOperation("A protected table cannot be pickled or copied out: the copy would hold raw rows.")


def as_kind(table: pl.DataFrame, kind: Kind) -> Any:
    """A released table as the kind of table that the user brought."""
    if kind == "pandas":
        return _pandas(table)
    return _arrow(table) if kind == "pyarrow" else table


def _arrow(table: pl.DataFrame) -> Any:
    """A PyArrow table. Whole numbers of 128 bits, which PyArrow has not, become decimals of 39 digits."""
    import pyarrow as pa

    wide = [name for name, dtype in table.schema.items() if dtype in _WIDE]
    made = table.with_columns(pl.col(wide).cast(pl.String)).to_arrow()
    for name in wide:
        decimals = made[name].cast(pa.string()).cast(pa.decimal256(39, 0))
        made = made.set_column(made.schema.get_field_index(name), name, decimals)
    return made


_WIDE = [getattr(pl, name) for name in ("Int128", "UInt128") if hasattr(pl, name)]  # pandas and PyArrow have none
_WHOLE = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)  # pandas has them too


def _pandas(table: pl.DataFrame) -> Any:
    """A pandas table. A column of whole numbers with nulls becomes Int64 with <NA>, not float64 with NaN."""
    import pandas as pd

    gaps = [column for column in table if column.dtype in _WHOLE and column.null_count()]
    whole: dict[str, Any] = {c.name: pd.Series(c.to_list(), dtype=f"{c.dtype}") for c in gaps}
    wide = {c.name: pd.Series(c.to_list(), dtype=object) for c in table if c.dtype in _WIDE}
    return table.with_columns(pl.lit(None).alias(name) for name in wide).to_pandas().assign(**whole, **wide)


def polars_dtype(dtype: DType) -> Any:
    """The Polars type of a plan's type."""
    if isinstance(dtype, nw.Enum):
        return pl.Enum(list(dtype.categories))
    if isinstance(dtype, nw.Datetime):
        return pl.Datetime("ms" if dtype.time_unit == "s" else dtype.time_unit, dtype.time_zone)
    if isinstance(dtype, nw.Duration):
        return pl.Duration("ms" if dtype.time_unit == "s" else dtype.time_unit)
    if isinstance(dtype, nw.Categorical):
        return pl.String()
    if dtype.is_decimal():
        return pl.Float64()
    return getattr(pl, type(dtype).__name__)()


def domain_of(dtype: DType) -> ColumnDomain:
    """The domain of a column as its type alone gives it.

    The categories of an Enum are public keys. The categories of a Categorical come from the data, so they are not.
    """
    if isinstance(dtype, nw.Enum):
        return ColumnDomain(dtype, True, None, tuple(dtype.categories), "the column's Enum type")
    if isinstance(dtype, nw.Categorical):
        return ColumnDomain(nw.String())
    if isinstance(dtype, nw.Boolean):
        return ColumnDomain(dtype, True, Bounds(0, 1), None, "the column's Boolean type")
    return ColumnDomain(dtype)
