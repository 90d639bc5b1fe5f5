"""PostgreSQL, through Ibis: the SQL that Ibis writes, made total.

In PostgreSQL arithmetic on floats is an error where its result is too large or too small, and so are casts of numbers
and texts that do not fit. Such a failure after the charge would say, without noise, that some row has such a cell. So
what is sent is written by a compiler of our own, derived from that of Ibis: it writes each operation so that no value
of its operands makes it fail, with the results that IEEE 754 gives, bit for bit. An operation that it does not know to
be total is refused, before the charge. The user's own steps before `dp.protect` are sent as Ibis writes them.

Nothing rests on the order in which filters and columns are computed: an operation is total by itself. It is written as
a CASE, whose arms PostgreSQL computes only when they are taken, unless they are constant: then it computes them when it
plans, on any table, also on one without rows, which is before the charge.

An operand is written once. Where it is more than a column, it is first computed in a subquery of its own, which
"OFFSET 0" keeps apart from what is around it: a CASE that repeats its operand, inside of another, would grow and grow.

Texts are compared by their bytes: each is collated by "C" where it comes in, be it from a column, a literal, a cast or
a public table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import ibis
import ibis.expr.datatypes as types
import ibis.expr.operations as ops
import ibis.expr.rules as rules
import narwhals as nw
import polars as pl
import sqlglot.expressions as sge
from ibis.backends.sql.compilers.postgres import PostgresCompiler
from narwhals.dtypes import DType

from dpframe.engine.backends.ibis import Dialect
from dpframe.engine.letters import NEAR, letters
from dpframe.errors import UnsupportedOperation
from dpframe.plan import Kind, integer_range, kind

__all__ = ["DIALECT"]

Reach = tuple[int, int]  # the exponents of two between which all values of a float lie that are not 0

_LEAST, _MOST = -1074, 1023  # those of all floats
_ANY: Reach = (_LEAST, _MOST + 1)
_WHOLE: Reach = (0, 100)  # those of any whole number, also of a sum of many


def _float(value: float) -> str:
    """A float as PostgreSQL reads it, exactly; a plain number would be a decimal there."""
    return f"CAST('{value!r}' AS DOUBLE PRECISION)"


_INF = _float(math.inf).replace("inf", "Infinity")
_SIGNED = "CASE WHEN (a > 0) = (b > 0) THEN {0} ELSE -{0} END"
_INFINITE, _NOTHING = _SIGNED.format(_INF), _SIGNED.format(_float(0.0))
_UP, _DOWN = _float(2.0**537), _float(2.0**-537)

# Operations on floats a and b. What is compared is a result times a power of two, which is exact and neither too large
# nor too small, so that it is rounded just as the result would be.

_SUM = f"""CASE WHEN ABS(a) > 1e290 AND ABS(b) > 1e290 AND ABS(a) < {_INF} AND ABS(b) < {_INF}
THEN CASE WHEN ABS(a * 0.5 {{0}} b * 0.5) >= {_float(2.0**1023)}
    THEN CASE WHEN a > 0 THEN {_INF} ELSE -{_INF} END ELSE a {{0}} b END
ELSE a {{0}} b END"""

# A product is 0 where it is at most half of the least float, 2^-1075: that half itself is rounded to even. Times 2^1074
# it is compared with 1/2. Where it is rounded to 1/2, what was rounded away decides. The product of T. J. Dekker
# (Numerische Mathematik 18, 1971) finds it, which adds up products of halves of the operands: each of these is exact.
_EXACT = f"""(SELECT CASE WHEN ((h * k - 0.5) + h * (q - k) + (p - h) * k) + (p - h) * (q - k) > 0
    THEN r ELSE CASE WHEN r > 0 THEN {_float(0.0)} ELSE -{_float(0.0)} END END
FROM (SELECT p, q, r, p * 134217729.0 - (p * 134217729.0 - p) AS h, q * 134217729.0 - (q * 134217729.0 - q) AS k
    FROM (SELECT ABS(a) * {_UP} AS p, ABS(b) * {_UP} AS q,
        {_SIGNED.format(_float(5e-324))} AS r OFFSET 0) AS e OFFSET 0) AS d)"""
_PRODUCT = f"""CASE WHEN ABS(a) > 1 AND ABS(b) > 1 AND ABS(a) < {_INF} AND ABS(b) < {_INF}
THEN CASE WHEN (ABS(a) * {_DOWN}) * (ABS(b) * {_DOWN}) >= {_float(2.0**-50)} THEN {_INFINITE} ELSE a * b END
WHEN ABS(a) < 1 AND ABS(b) < 1 AND a <> 0 AND b <> 0 AND (ABS(a) < {_float(2.0**-530)} OR ABS(b) < {_float(2.0**-530)})
THEN CASE WHEN (ABS(a) * {_UP}) * (ABS(b) * {_UP}) < 0.5 THEN {_NOTHING}
    WHEN (ABS(a) * {_UP}) * (ABS(b) * {_UP}) > 0.5 THEN a * b ELSE {_EXACT} END
ELSE a * b END"""

# A quotient of two floats is never so near to 1/2 from above, that it is rounded to 1/2: there the operands decide.
_QUOTIENT = f"""CASE WHEN b = 0 THEN NULL
WHEN ABS(b) < 1 AND ABS(a) > {_float(2.0**-60)} AND ABS(a) < {_INF}
THEN CASE WHEN ABS(b) < ABS(a) * {_float(2.0**-500)}
    THEN CASE WHEN (ABS(a) * {_DOWN}) / (ABS(b) * {_UP}) >= {_float(2.0**-50)} THEN {_INFINITE} ELSE a / b END
    ELSE a / b END
WHEN ABS(b) > 1 AND ABS(b) < {_INF} AND ABS(a) < 1 AND a <> 0
THEN CASE WHEN ABS(a) * {_float(2.0**538)} <= ABS(b) * {_DOWN} THEN {_NOTHING} ELSE a / b END
ELSE a / b END"""

_ROOT = "CASE WHEN a >= 0 THEN SQRT(a) END"
_LOGARITHM = "CASE WHEN a > 0 THEN LN(a) / LN({base}) END"
_SINGLE = f"""CASE WHEN ABS(a) <= {_float(2.0**-150)} THEN CAST(a * {_float(0.0)} AS REAL)
WHEN ABS(a) >= {_float(3.4028235677973366e38)} AND ABS(a) < {_INF}
THEN CAST(CASE WHEN a > 0 THEN {_INF} ELSE -{_INF} END AS REAL) ELSE CAST(a AS REAL) END"""
_TRUNCATED = f"CASE WHEN a >= {_float(-(2.0**63))} AND a < {_float(2.0**63)} THEN CAST(TRUNC(a) AS BIGINT) END"
# A decimal, which is read as the nearest float, as a text would be: 0 or infinite beyond the first and last float.
_FROM_DECIMAL = f"""CASE WHEN a = 'NaN' THEN {_float(math.nan).replace("nan", "NaN")}
WHEN ABS(a) >= {2**1024 - 2**970} THEN CASE WHEN a > 0 THEN {_INF} ELSE -{_INF} END
WHEN ABS(a) <= 2.4703282292062327208e-324 THEN CASE WHEN a >= 0 THEN {_float(0.0)} ELSE -{_float(0.0)} END
ELSE CAST(a AS DOUBLE PRECISION) END"""

# Ibis says of a sum of whole numbers that it has 64 bits, and of 1.5 that it is a float: both are decimals there. Of an
# oid, which PostgreSQL compares with negative numbers by failing, it says that it is a whole number of 64 bits.
_TYPES = "CAST('{}' AS REGTYPE)"
_IS_WHOLE = f"PG_TYPEOF(a) IN ({', '.join(map(_TYPES.format, ('smallint', 'integer', 'bigint', 'oid')))})"
_IS_FLOAT = f"PG_TYPEOF(a) IN ({', '.join(map(_TYPES.format, ('real', 'double precision')))})"
_WHOLE_OF = f"""(SELECT CASE WHEN w BETWEEN {{low}} AND {{high}} THEN CAST(w AS BIGINT) END FROM (SELECT CASE
WHEN {_IS_WHOLE} THEN CAST(CAST(a AS BIGINT) AS NUMERIC) ELSE CAST(CAST(a AS TEXT) AS NUMERIC) END AS w
OFFSET 0) AS v)"""
_NUMERIC = re.sub(r"\ba\b", "CAST(a AS NUMERIC)", _FROM_DECIMAL)
_FLOAT_OF = f"CASE WHEN {_IS_FLOAT} THEN CAST(a AS DOUBLE PRECISION) ELSE {_NUMERIC} END"

_FROM_TRUTH = "CASE WHEN a THEN 1 WHEN NOT a THEN 0 END"

# Texts that are converted are all of some form, which they must have here too: what is cast cannot fail.
_DIGITS = "LTRIM(a, '+-0')"
_INTEGER = f"""CASE WHEN a ~ '^[+-]?[0-9]+$' THEN CASE WHEN LENGTH({_DIGITS}) <= 20
THEN CAST((CASE WHEN a LIKE '-%' THEN '-0' ELSE '0' END) || {_DIGITS} AS NUMERIC) END END"""
_MANTISSA, _EXPONENT = "SPLIT_PART(LOWER(a), 'e', 1)", "SPLIT_PART(LOWER(a), 'e', 2)"
_POWER = f"LTRIM({_EXPONENT}, '+-0')"
_REAL = f"""CASE WHEN a ~ '^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$'
THEN CASE WHEN LENGTH({_MANTISSA}) <= 1000
    THEN CASE WHEN LENGTH({_POWER}) <= 3 THEN CAST(a AS NUMERIC)
        WHEN {_MANTISSA} !~ '[1-9]' OR {_EXPONENT} LIKE '-%' THEN 0
        WHEN a LIKE '-%' THEN -1e400 ELSE 1e400 END END END"""
_NUMBERS = (
    "CAST(LEFT(a, 4) AS INTEGER) AS y, CAST(SUBSTR(a, 6, 2) AS INTEGER) AS m, CAST(SUBSTR(a, 9, 2) AS INTEGER) AS d"
)
_DATE = f"""CASE WHEN a ~ '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}' THEN (SELECT CASE
WHEN y >= 1 AND m BETWEEN 1 AND 12 AND d BETWEEN 1 AND CASE m WHEN 2
    THEN CASE WHEN y % 4 = 0 AND (y % 100 <> 0 OR y % 400 = 0) THEN 29 ELSE 28 END
    WHEN 4 THEN 30 WHEN 6 THEN 30 WHEN 9 THEN 30 WHEN 11 THEN 30 ELSE 31 END
THEN CAST(MAKE_DATE(y, m, d) - DATE '1970-01-01' AS BIGINT) END FROM (SELECT {_NUMBERS} OFFSET 0) AS p) END"""
_TIME = f"""CASE WHEN a ~ '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?$'
THEN ({_DATE}) * 86400000000 + CAST(SUBSTR(a, 12, 2) AS BIGINT) * 3600000000
    + CAST(SUBSTR(a, 15, 2) AS BIGINT) * 60000000 + CAST(SUBSTR(a, 18, 2) AS BIGINT) * 1000000
    + CAST(RPAD(SUBSTR(a, 21, 6), 6, '0') AS BIGINT) END"""

# PostgreSQL's functions of texts fail on what takes them beyond 1 GiB, some of them with 4 bytes for each letter.
_LONGEST = 2**24  # bytes of a text; a longer one is missing
_TEXT = f"CASE WHEN OCTET_LENGTH(CAST(a AS TEXT)) <= {_LONGEST} THEN CAST(a AS TEXT) END"

# Letters are looked up in our table, in a short one where it does; what is in ASCII needs none.
_CASED = """CASE WHEN a ~ '^[\\u0001-\\u007f]*$' THEN {function}(a COLLATE "C")
WHEN a ~ '^[{near}]*$' THEN TRANSLATE(a, '{near_have}', '{near_want}') ELSE TRANSLATE(a, '{have}', '{want}') END"""

# Times as their ticks, and back.
_DAYS = "CASE WHEN a BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN CAST(a - DATE '1970-01-01' AS BIGINT) END"
_MICROSECONDS = """CASE WHEN a BETWEEN TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59.999999'
THEN CAST(EXTRACT(EPOCH FROM a) * 1000000 AS BIGINT) END"""
_ON_DAY = "CASE WHEN a BETWEEN -719162 AND 2932896 THEN {0} END"
_AT_TIME = "CASE WHEN a BETWEEN -62135596800000000 AND 253402300799999999 THEN {0} END"
_OF_DAY = {
    "year": "EXTRACT(YEAR FROM {0})",
    "month": "EXTRACT(MONTH FROM {0})",
    "day": "EXTRACT(DAY FROM {0})",
    "weekday": "EXTRACT(ISODOW FROM {0})",
    "ordinal_day": "EXTRACT(DOY FROM {0})",
}
_OF_CLOCK = {"hour": "a / 3600000000 % 24", "minute": "a / 60000000 % 60"}  # of microseconds that are not negative
_YEARS = 63072000000000000  # microseconds in 2,000 years of 365 days: whole days, so that the clock stays


class Written(ops.Value):  # type: ignore[misc]
    """SQL of our own, total, around one value, which is called `a` in it."""

    arg: ops.Value
    text: str
    dtype: types.DataType
    shape = rules.shape_like("arg")


def _written(value: Any, text: str, dtype: str) -> Any:
    return Written(value.op(), text, ibis.dtype(dtype)).to_expr()


# The compiler

_TABLES = """Select Filter Project Aggregate JoinChain JoinLink JoinTable JoinReference SelfReference CTE Union Limit
Distinct DropColumns DropNull FillNull SQLQueryResult DatabaseTable InMemoryTable DummyTable UnboundTable"""
_VALUES = """Field Literal Alias Written Cast Add Subtract Multiply Divide Modulus Floor Abs Sqrt Log Negate
Equals NotEquals Less LessEqual Greater GreaterEqual And Or Not IsNull NotNull IsNan InValues
Coalesce Greatest Least Clip IfElse SearchedCase Count CountStar CountDistinct Sum Min Max Any
WindowFunction WindowBoundary RowNumber MinRank SortKey Hash HexDigest
StringLength StringContains StartsWith EndsWith Substring StringConcat RegexSearch"""
_TOTAL = frozenset(f"{_TABLES} {_VALUES}".split())  # the operations that no cell makes fail, as they are written here


class _Compiler(PostgresCompiler):  # type: ignore[misc]
    """Ibis' own compiler, with each operation that a value could make fail written so that none can."""

    def visit_node(self, op: Any, **parts: Any) -> Any:
        name = type(op).__name__
        if name not in _TOTAL:
            raise UnsupportedOperation(f"PostgreSQL: nobody has shown that no cell makes {name} fail there.")
        return super().visit_node(op, **parts)

    def cast(self, arg: Any, to: Any) -> Any:
        """PostgreSQL has no whole numbers without a sign."""
        return super().cast(arg, types.int64 if to.is_unsigned_integer() else to)

    # Tables

    def visit_Select(self, op: Any, **parts: Any) -> Any:  # noqa: N802
        """Columns that are computed stay apart from what reads them, which may be more than one."""
        rows = super().visit_Select(op, **parts)
        computed = not all(isinstance(value, ops.Field) for value in op.selections.values())
        return rows.offset(0, copy=False) if computed and isinstance(rows, sge.Select) else rows

    # Values

    def visit_Written(self, op: Any, *, arg: Any, text: str, dtype: Any) -> Any:  # noqa: N802
        _check_held(dtype)
        made = _once(text, a=arg)
        return _bytewise(made) if dtype.is_string() else self.cast(made, dtype)

    def visit_Literal(self, op: Any, *, value: Any, dtype: Any) -> Any:  # noqa: N802
        if value is None:
            return self.cast(sge.Null(), dtype) if not dtype.is_null() else sge.Null()
        if dtype.is_boolean():
            return sge.Boolean(this=bool(value))
        if dtype.is_string():
            return _bytewise(sge.convert(_sendable(value)))
        if dtype.is_floating():
            return _raw(_float(value) if math.isfinite(value) else _float(value).replace("inf", "Infinity"))
        return self.cast(sge.convert(value), types.int64 if dtype.is_integer() else dtype)

    def visit_Cast(self, op: Any, *, arg: Any, to: Any) -> Any:  # noqa: N802
        have, listed = op.arg.dtype, _listed(op)
        if listed is not None:
            return _raw(_float(listed) if math.isfinite(listed) else _float(listed).replace("inf", "Infinity"))
        if have.is_boolean() and to.is_numeric():
            return self.cast(_once(_FROM_TRUTH, a=arg), to)
        if to.is_string():
            return _bytewise(self.cast(arg, to))
        if have.is_string():
            raise UnsupportedOperation(f"cast: a text as {to}, in PostgreSQL, could fail on a cell.")
        if have.is_decimal() and to.is_floating():
            return _once(_FROM_DECIMAL, a=arg)
        if to.is_float32() and not have.is_float32():
            return _once(_SINGLE, a=arg)
        _check_held(to)
        if to.is_integer():
            wide = _once(_TRUNCATED, a=arg) if have.is_floating() else arg
            low, high = to.bounds
            if have.is_integer() and low <= have.bounds.lower and have.bounds.upper <= high:
                return self.cast(arg, to)
            return self.cast(_once(f"CASE WHEN a BETWEEN {low} AND {high} THEN a END", a=wide), to)
        if to.is_floating() and (have.is_integer() or have.is_floating()):
            return self.cast(arg, to)
        raise UnsupportedOperation(f"cast: nobody has shown that no cell makes {have} as {to} fail in PostgreSQL.")

    def visit_Add(self, op: Any, *, left: Any, right: Any) -> Any:  # noqa: N802
        return self._sum(op, left, right, "+")

    def visit_Subtract(self, op: Any, *, left: Any, right: Any) -> Any:  # noqa: N802
        return self._sum(op, left, right, "-")

    def visit_Multiply(self, op: Any, *, left: Any, right: Any) -> Any:  # noqa: N802
        if not op.dtype.is_floating():
            return self._plain(op, "*", left, right)
        (low, high), (lower, higher) = _reach(op.left), _reach(op.right)
        safe = low + lower >= _LEAST and high + higher < _MOST
        return _once("a * b" if safe else _PRODUCT, a=left, b=right)

    def visit_Divide(self, op: Any, *, left: Any, right: Any) -> Any:  # noqa: N802
        if not op.left.dtype.is_floating() or not op.right.dtype.is_floating():
            raise UnsupportedOperation("PostgreSQL: only floats are divided there, since whole numbers lose the rest.")
        (low, high), (lower, higher) = _reach(op.left), _reach(op.right)
        safe = low - higher > _LEAST and high - lower < _MOST
        return _once("a / NULLIF(b, 0)" if safe else _QUOTIENT, a=left, b=right)

    def visit_Modulus(self, op: Any, *, left: Any, right: Any) -> Any:  # noqa: N802
        if not op.dtype.is_integer():
            raise UnsupportedOperation("PostgreSQL: only whole numbers leave a rest there.")
        return _once("a % NULLIF(b, 0)", a=self.cast(left, types.int64), b=self.cast(right, types.int64))

    def visit_Negate(self, op: Any, *, arg: Any) -> Any:  # noqa: N802
        return _once("-a", a=arg if op.dtype.is_floating() else self.cast(arg, types.int64))

    def visit_Floor(self, op: Any, *, arg: Any) -> Any:  # noqa: N802
        whole = _once("FLOOR(a)", a=arg)
        return whole if op.dtype.is_floating() else self._whole(whole)

    def visit_Sqrt(self, op: Any, *, arg: Any) -> Any:  # noqa: N802
        return _once(_ROOT, a=arg)

    def visit_Log(self, op: Any, *, arg: Any, base: Any) -> Any:  # noqa: N802
        if not isinstance(op.base, ops.Literal) or not 1 < op.base.value < _INSIDE:
            raise UnsupportedOperation("PostgreSQL: only logarithms to a listed base are total there.")
        return _once(_LOGARITHM.replace("{base}", _float(float(op.base.value))), a=arg)

    def visit_Clip(self, op: Any, *, arg: Any, lower: Any, upper: Any) -> Any:  # noqa: N802
        """GREATEST and LEAST pass over what is missing, which must stay so."""
        ends = [("a > c", upper, "c"), ("a < b", lower, "b")]
        cases = " ".join(f"WHEN {when} THEN {end}" for when, given, end in ends if given is not None)
        return _once(f"CASE {cases} ELSE a END", a=arg, b=lower, c=upper)

    def visit_IsNan(self, op: Any, *, arg: Any) -> Any:  # noqa: N802
        return _once("a = 'NaN'", a=arg)  # which is equal to itself there

    def visit_SearchedCase(self, op: Any, *, cases: Any, results: Any, default: Any) -> Any:  # noqa: N802
        kept = _not_nan(op)
        if kept:
            return _once("NULLIF(a, 'NaN')", a=results[0])
        return super().visit_SearchedCase(op, cases=cases, results=results, default=default)

    def visit_Sum(self, op: Any, *, arg: Any, where: Any) -> Any:  # noqa: N802
        """Sums of whole numbers fit (see `limits`); PostgreSQL makes decimals of them."""
        if not op.arg.dtype.is_integer():
            raise UnsupportedOperation("PostgreSQL: only whole numbers are added up there, which rounds nothing.")
        return self.cast(super().visit_Sum(op, arg=arg, where=where), types.int64)

    def visit_WindowFunction(self, op: Any, *, func: Any, **parts: Any) -> Any:  # noqa: N802
        """A cast of a sum stands around the window."""
        if not isinstance(func, sge.Cast):
            return super().visit_WindowFunction(op, func=func, **parts)
        return self.cast(super().visit_WindowFunction(op, func=func.this, **parts), types.int64)

    # Texts

    def visit_RegexSearch(self, op: Any, *, arg: Any, pattern: Any) -> Any:  # noqa: N802
        """The end of a text is called differently by others."""
        assert isinstance(op.pattern, ops.Literal)
        written = str(op.pattern.value).replace(r"\z", r"\Z").replace("'", "''")
        return _raw(f"({_sql(arg)} ~ '{written}')")

    def visit_Substring(self, op: Any, *, arg: Any, start: Any, length: Any) -> Any:  # noqa: N802
        first, most = _constant(op.start), _constant(op.length)
        if first is None or most is None or first < 0 or most < 0:
            raise UnsupportedOperation("PostgreSQL: only a part of a text of listed ends is total there.")
        return _bytewise(_raw(f"SUBSTR({_sql(arg)}, {first + 1}, {min(most, 2**31 - 2 - first)})"))

    def visit_StringConcat(self, op: Any, *, arg: Any) -> Any:  # noqa: N802
        """Null where one of them is."""
        return _bytewise(_raw(f"({' || '.join(map(_sql, arg))})"))

    # Parts of these

    def _plain(self, op: Any, sign: str, left: Any, right: Any) -> Any:
        if not op.dtype.is_integer():
            raise UnsupportedOperation(f"PostgreSQL: nobody has shown that no cell makes {op.dtype} {sign} fail there.")
        return _once(f"a {sign} b", a=self.cast(left, types.int64), b=self.cast(right, types.int64))

    def _sum(self, op: Any, left: Any, right: Any, sign: str) -> Any:
        if op.dtype.is_string() and sign == "+":
            return self.visit_StringConcat(op, arg=(left, right))
        if not op.dtype.is_floating():
            return self._plain(op, sign, left, right)
        safe = max(_reach(op.left)[1], _reach(op.right)[1]) < _MOST
        return _once(f"a {sign} b" if safe else _SUM.format(sign), a=left, b=right)

    def _whole(self, value: Any) -> Any:
        return _once(_TRUNCATED, a=value)


_INSIDE = 2.0**100


def _constant(op: Any) -> int | None:
    """A whole number that is written out, or the difference of two."""
    if isinstance(op, ops.Subtract):
        left, right = _constant(op.left), _constant(op.right)
        return None if left is None or right is None else left - right
    return int(op.value) if isinstance(op, ops.Literal) and op.dtype.is_integer() else None


def _listed(op: Any) -> float | None:
    """A float that the question lists, which comes as the cast of its text: no cell is in it."""
    if not isinstance(op, ops.Cast) or not isinstance(op.arg, ops.Literal) or not op.arg.dtype.is_string():
        return None
    return float(op.arg.value) if op.to.is_float64() and op.arg.value is not None else None


def _not_nan(op: Any) -> bool:
    """Whether a case is what narwhals makes of "null in place of NaN"."""
    if len(op.cases) != 1 or not isinstance(op.cases[0], ops.Not):
        return False
    if not isinstance(op.default, ops.Literal) or op.default.value is not None:
        return False
    test = op.cases[0].arg
    return isinstance(test, ops.IfElse) and test.false_null_expr == ops.IsNan(op.results[0])


def _reach(op: Any) -> Reach:
    """The exponents of two between which the values of a float lie, if they are not 0: at least their ranges.

    A sum of two floats that are multiples of 2^(l - 52) is one, so it is 0 or not below that.
    """
    if op.dtype.is_integer():
        return _WHOLE
    listed = _listed(op)
    if listed is not None:
        power = math.frexp(listed)[1]
        return _ANY if not math.isfinite(listed) else (power - 1, power) if listed else (0, 0)
    match type(op).__name__:
        case "Literal" if op.value and math.isfinite(op.value):
            power = math.frexp(op.value)[1]
            return power - 1, power
        case "Literal" if op.value == 0:
            return 0, 0
        case "Cast" if op.arg.dtype.is_integer() or op.arg.dtype.is_boolean():
            return _WHOLE
        case "Alias":
            return _reach(op.arg)
        case "Floor":
            return 0, max(_reach(op.arg)[1], 0) + 1
        case "Abs" | "Negate":
            return _reach(op.arg)
        case "Add" | "Subtract":
            (low, high), (lower, higher) = _reach(op.left), _reach(op.right)
            return max(min(low, lower) - 52, _LEAST), min(max(high, higher) + 1, _MOST + 1)
        case "Multiply":
            (low, high), (lower, higher) = _reach(op.left), _reach(op.right)
            return max(low + lower - 1, _LEAST), min(high + higher, _MOST + 1)
        case "Divide":
            (low, high), (lower, higher) = _reach(op.left), _reach(op.right)
            return max(low - higher - 1, _LEAST), min(high - lower + 1, _MOST + 1)
        case "Clip" if isinstance(op.lower, ops.Literal) and isinstance(op.upper, ops.Literal):
            ends = [_reach(end)[1] for end in (op.lower, op.upper) if not end.dtype.is_integer() or end.value]
            return _LEAST, max(ends, default=0)
    return _ANY


_SHORT = 80  # characters of an operand that may stand in several places
_OPERANDS = re.compile(r"(?<![\w'\"])([abc])(?![\w'\"])")


@cache
def _pieces(text: str) -> Sequence[str]:
    """SQL in pieces, every second of which is an operand's name."""
    return _OPERANDS.split(" ".join(text.split()))


def _once(text: str, **operands: Any) -> Any:
    """SQL around some operands, each of which is computed once, however often it stands in it."""
    given = {name: _sql(operand) for name, operand in operands.items() if operand is not None}
    pieces = _pieces(text)
    named = pieces[1::2]
    if any(len(given[name]) > _SHORT and named.count(name) > 1 for name in given):
        inner = ", ".join(f"{operand} AS {name}" for name, operand in given.items())
        return _raw(f"(SELECT {''.join(pieces)} FROM (SELECT {inner} OFFSET 0) AS o)")
    return _raw("(" + "".join(given[x] if i % 2 else x for i, x in enumerate(pieces)) + ")")


def _raw(text: str) -> Any:
    return sge.Var(this=text)


def _sql(value: Any) -> str:
    """An operand as it is written, so that nothing around it takes it apart."""
    text: str = value.sql(PostgresCompiler.dialect, copy=False)
    return text if isinstance(value, (sge.Column, sge.Var, sge.Cast)) else f"({text})"


def _bytewise(text: Any) -> Any:
    return _raw(f'({_sql(text)} COLLATE "C")')


def _check_held(dtype: Any) -> None:
    """Refuses whole numbers of 64 bits without a sign: in PostgreSQL's widest type a cell would not fit, and fail."""
    if dtype.is_uint64():
        raise UnsupportedOperation("cast: PostgreSQL has no uint64. Take 'int64', or 'float64'.")


def _sendable(text: str) -> str:
    """A text that PostgreSQL can hold."""
    if "\0" in text or text.encode("utf-8", "replace").decode() != text:
        raise UnsupportedOperation(
            "PostgreSQL holds no text with a zero byte, or one that is no Unicode: leave it out, as with "
            r"text.replace('\0', '')."
        )
    return text


# The dialect


class _Postgres(Dialect):
    def opened(self, table: Any) -> Any:
        """The user's own steps, as Ibis writes them: their meaning is the user's."""
        if isinstance(table.op(), ops.DatabaseTable):
            return table
        backend = _backend_of(table)
        if backend is None:
            return table
        backend._run_pre_execute_hooks(table)
        return ops.SQLQueryResult(str(backend.compile(table)), table.schema(), backend).to_expr()

    def types(self, table: Any) -> dict[str, DType]:
        held = super().types(table)
        texts = [name for name, dtype in table.schema().items() if dtype.is_uuid()]
        return held | dict.fromkeys(texts, nw.String())

    def against(self, table: Any, types: Mapping[str, DType]) -> dict[str, str]:
        """A type that neither Ibis nor dpframe has a word for is read as text, where that is asked for."""
        encoding = _backend_of(table).con.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise UnsupportedOperation(
                f"dp.protect: this PostgreSQL database holds texts in {encoding}, and a text that is no Unicode could "
                "make a query fail. Bring one in UTF8: CREATE DATABASE study ENCODING 'UTF8' TEMPLATE template0."
            )
        odd = [name for name, dtype in types.items() if kind(dtype) == Kind.OTHER]
        return {name: f"it is not read: cast it before, table.mutate(x=table[{name!r}].cast('string'))" for name in odd}

    def held(self, value: Any, dtype: DType) -> Any:
        family = kind(dtype)
        if family == Kind.STRING:
            return _written(value, _TEXT, "string")
        if family == Kind.DECIMAL:  # 1.0 and 1.00 are one number, and must be one text where it identifies a unit
            return _written(value, "TRIM_SCALE(CAST(a AS NUMERIC))", "decimal")
        if family == Kind.DATE:
            return _written(value, _DAYS, "int64")
        if family == Kind.DATETIME and getattr(dtype, "time_zone", None) is None:
            return _written(value, _MICROSECONDS, "int64")
        return _as_said(value) if family in (Kind.INTEGER, Kind.FLOAT) else value

    def bytewise(self, rows: Any) -> bool:
        """Every text has the collation "C", which compares bytes."""
        return False

    def decimal(self, value: nw.Expr) -> nw.Expr:
        """PostgreSQL rounds once, and a number that no float holds is infinite or 0."""
        return value.cast(nw.Float64)

    def brought(self, table: pl.DataFrame) -> Any:
        wide = [name for name, dtype in table.schema.items() if dtype.is_unsigned_integer()]
        held = table.with_columns(pl.col(wide).cast(pl.Int64, strict=False))
        large = [name for name in wide if held.get_column(name).null_count() > table.get_column(name).null_count()]
        if large:
            raise UnsupportedOperation(
                "join: PostgreSQL has no whole numbers beyond 64 bits with a sign, as in the public column "
                f"{large[0]!r}: cast it to pl.Float64."
            )
        rows = super().brought(held)
        texts = [name for name, dtype in table.schema.items() if dtype == pl.String]
        return rows.mutate(**{name: _written(rows[name], "CAST(a AS TEXT)", "string") for name in texts})

    def parsed(self, rows: Any, column: str, dtype: DType) -> Any:
        text, family = rows[column], kind(dtype)
        if family == Kind.DATE:
            return _written(text, _DATE, "int64")
        if family == Kind.DATETIME:
            return _written(text, _TIME, "int64")
        if family == Kind.FLOAT:
            return _written(text, _REAL, "decimal").cast("float64")
        low, high = integer_range(dtype)
        wide = _written(text, _INTEGER, "decimal")
        return _written(wide, f"CASE WHEN a BETWEEN {low} AND {high} THEN a END", str(dtype).lower())

    def cased(self, value: Any, *, capital: bool) -> Any:
        have, want = letters(capital=capital)
        near_have, near_want = letters(capital=capital, most=0x17F)
        text = _CASED.format(
            function="UPPER" if capital else "LOWER",
            near=NEAR,
            near_have=near_have,
            near_want=near_want,
            have=have,
            want=want,
        )
        return _written(value, text, "string")

    def part(self, value: Any, dtype: DType, part: str) -> Any:
        if kind(dtype) == Kind.DATE:
            day = "(DATE '1970-01-01' + CAST(a AS INTEGER))"
            made = f"TO_CHAR({day}, 'YYYY-MM-DD')" if part == "text" else _OF_DAY[part].format(day)
            return _written(value, _ON_DAY.format(made), "string" if part == "text" else "int64")
        if part in _OF_CLOCK:
            return _written(value, _AT_TIME.format(_OF_CLOCK[part].replace("a", f"(a + {_YEARS})", 1)), "int64")
        # Of whole numbers: PostgreSQL multiplies an interval by a float, which rounds the last microsecond of a day up.
        day = f"(DATE '1970-01-01' + CAST((a + {_YEARS}) / 86400000000 - 730000 AS INTEGER))"
        return _written(value, _AT_TIME.format(_OF_DAY[part].format(day)), "int64")

    def read(self, rows: Any) -> pl.DataFrame:
        """The rows of a query, in the types that it says."""
        backend = _backend_of(rows)
        assert backend is not None
        backend._run_pre_execute_hooks(rows)
        written = _Compiler().to_sqlglot(rows).sql("postgres")
        values = _fetched(backend.con, written)
        columns = zip(*values, strict=True) if values else [()] * len(rows.columns)
        schema = rows.schema().items()
        return pl.DataFrame([_column(name, cells, dtype) for (name, dtype), cells in zip(schema, columns, strict=True)])


def _as_said(value: Any) -> Any:
    """A column of numbers in the type that Ibis says it has, null where it does not fit.

    The type of a table's column is that of the catalog, but for an oid. What the user's own steps computed may be of
    another type than Ibis says, and of a wider one.
    """
    dtype = value.type()
    if not isinstance(value.op().rel, ops.SQLQueryResult):
        return _written(value, "a", str(dtype.copy(nullable=True))) if dtype.is_integer() else value
    if dtype.is_integer():
        low, high = dtype.bounds
        text = _WHOLE_OF.replace("{low}", str(low)).replace("{high}", str(high))
        return _written(value, text, str(dtype.copy(nullable=True)))
    real = _written(value, _FLOAT_OF, "float64")
    return real if dtype.is_float64() else real.cast(dtype)


_SETTINGS = ("client_encoding TO 'UTF8'", "standard_conforming_strings TO on")  # what texts are read and written by


def _fetched(connection: Any, written: str) -> list[Any]:
    """The rows of a query, as the server holds them: as texts, floats could lose digits."""
    with connection.transaction(), connection.cursor(binary=True) as cursor:
        for setting in _SETTINGS:
            cursor.execute(f"SET LOCAL {setting}")
        rows: list[Any] = cursor.execute(written).fetchall()
    return rows


def _column(name: str, cells: Any, dtype: Any) -> pl.Series:
    if dtype.is_integer() or dtype.is_uint64():
        return pl.Series(name, [None if cell is None else int(cell) for cell in cells], pl.Int64)
    if dtype.is_floating() or dtype.is_decimal():
        return pl.Series(name, [None if cell is None else float(cell) for cell in cells], pl.Float64)
    return pl.Series(name, list(cells), pl.Boolean if dtype.is_boolean() else pl.String)


def _backend_of(rows: Any) -> Any:
    backends, _ = rows._find_backends()
    return backends[0] if backends else None


DIALECT = _Postgres()
