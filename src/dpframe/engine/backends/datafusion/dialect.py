"""The operations in which DataFusion differs from other databases of Ibis."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import ibis
import narwhals as nw
import polars as pl
from ibis.expr.datatypes import DataType
from narwhals.dtypes import DType

from dpframe.engine.backends.base import CellFunction, Parsed, Part
from dpframe.engine.backends.datafusion import session
from dpframe.engine.backends.ibis_compiler import CompiledDialect, called
from dpframe.engine.backends.ibis_dialect import microseconds_of
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Kind, kind, zone_of

_DIGITS = sys.float_info.dig
# others are whole numbers
_HELD_AS = {Kind.STRING: "string", Kind.BOOLEAN: "boolean", Kind.FLOAT: "float64"}


class _DataFusionDialect(CompiledDialect):
    integers = "the integers of a question in DataFusion"

    def opened(self, table: ibis.Table) -> ibis.Table:
        return session.opened(table)

    def types(self, table: ibis.Table) -> dict[str, DType]:
        """DataFusion's own types: Ibis states others of some columns
        that the user's own steps compute.

        A decimal of at most 15 digits is held as a float. No two such decimals have one float.
        """
        schema = session.schema_of(table)
        held = super().types(ibis.table(schema))
        return held | {
            name: nw.Float64()
            for name, dtype in schema.items()
            if dtype.is_decimal() and _is_short(dtype)
        }

    def against(self, table: ibis.Table, types: Mapping[str, DType]) -> dict[str, str]:
        """Columns of types that dpframe does not hold, each with the cast to type."""
        held = {name: _reason(name, dtype) for name, dtype in types.items()}
        return {name: reason for name, reason in held.items() if reason}

    def held(self, value: ibis.Value, dtype: DType) -> ibis.Value:
        source = dict(value.op().rel.types)[value.get_name()]
        held = _HELD_AS.get(kind(dtype), "int64")
        return called("held", [value], held, source)

    def settled(self, rows: ibis.Table) -> ibis.Table:
        """Each column through a function that gives it back, and that
        DataFusion does not call twice.
        """
        return rows.select(
            **{
                name: called("same", [rows[name]], str(dtype))
                for name, dtype in rows.schema().items()
            }
        )

    def brings_keys(self, rows: ibis.Table) -> bool:
        return True

    def keyed_hash(self, rows: ibis.Table, columns: Sequence[str], salt: str) -> ibis.Value:
        return called("hash", [rows[column] for column in columns], "int64", int(salt))

    def stable_hash(self, rows: ibis.Table, columns: Sequence[str], salt: str) -> ibis.Value:
        return called("stable_hash", [rows[column] for column in columns], "string", salt)

    def apply(self, value: ibis.Value, function: CellFunction) -> ibis.Value:
        match function:
            case Parsed(dtype=nw.UInt64()):
                raise UnsupportedOperation(
                    "cast: DataFusion's uint64 is not held. Take 'int64', or 'float64'."
                )
            case Parsed():
                return called(
                    "parsed", [value], _HELD_AS.get(kind(function.dtype), "int64"), function
                )
            case Part():
                value = microseconds_of(value, function.dtype)
        return called("applied", [value], function.result, function)

    def planned(self, rows: ibis.Table) -> pl.DataFrame:
        return session.planned(rows)

    def try_threads(self, rows: ibis.Table) -> None:
        session.try_threads()

    def read(self, rows: ibis.Table) -> pl.DataFrame:
        return session.answered(rows)


def _is_short(dtype: DataType) -> bool:
    """Whether no two numbers of a decimal type have one float."""
    return (dtype.scale or 0) >= 0 and (dtype.precision or 38) <= _DIGITS


def _reason(name: str, dtype: DType) -> str:
    """Why a column cannot be held, with the cast to type; "" for one that is held."""
    reason, cast = "", "string"
    if dtype == nw.UInt64:
        reason = "numbers from 2^63 on do not fit, and 'float64' rounds them"
    elif kind(dtype) == Kind.DECIMAL:
        reason, cast = f"a float does not hold more than {_DIGITS} digits", "float64"
    elif kind(dtype) == Kind.DURATION:
        reason, cast = "a duration is held as a number", "int64"
    elif zone_of(dtype) is not None:
        reason, cast = "a time is held without a zone, in UTC", "timestamp"
    elif getattr(dtype, "time_unit", "") == "ns":
        reason, cast = "times are held in microseconds", "timestamp(6)"
    elif kind(dtype) == Kind.OTHER:
        reason = "dpframe does not read it"
    return (
        f"{reason}: cast it before, table.mutate(x=table[{name!r}].cast({cast!r}))"
        if reason
        else ""
    )


DIALECT = _DataFusionDialect()
