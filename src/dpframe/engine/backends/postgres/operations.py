"""Operations of PostgreSQL, each as SQL that no value of its operands makes fail.

The SQL calls the operands a, b and c. `written.once` replaces these names by the operands.
"""

from __future__ import annotations

import math
import re


def literal(value: float) -> str:
    """SQL of a float, exactly. PostgreSQL would read a plain number as a decimal."""
    return f"CAST('{value!r}' AS DOUBLE PRECISION)".replace("inf", "Infinity")


_INF = literal(math.inf)
_SIGNED = "CASE WHEN (a > 0) = (b > 0) THEN {0} ELSE -{0} END"
_INFINITE, _NOTHING = _SIGNED.format(_INF), _SIGNED.format(literal(0.0))
_UP, _DOWN, _TINY = literal(2.0**537), literal(2.0**-537), literal(2.0**-530)

# Operations on floats a and b. To see whether a result overflows, the operation is done on operands
# that are multiplied by a power of two. That multiplication is exact, and the scaled result is
# neither too large nor too small, so it is rounded just as the result would be.

SUM = f"""CASE WHEN ABS(a) > 1e290 AND ABS(b) > 1e290 AND ABS(a) < {_INF} AND ABS(b) < {_INF}
THEN CASE WHEN ABS(a * 0.5 {{0}} b * 0.5) >= {literal(2.0**1023)}
    THEN CASE WHEN a > 0 THEN {_INF} ELSE -{_INF} END ELSE a {{0}} b END
ELSE a {{0}} b END"""

# A product is rounded to 0 if it is at most 2^-1075, half of the smallest float (a tie is rounded
# to even). So the product times 2^1074 is compared with 1/2. Where that scaled product is rounded
# to exactly 1/2, its rounding error decides. The algorithm of T. J. Dekker (Numerische Mathematik
# 18, 1971) computes this error: it splits the operands into halves and adds up the products of the
# halves, each of which is exact.
_EXACT = f"""(SELECT CASE WHEN ((h * k - 0.5) + h * (q - k) + (p - h) * k) + (p - h) * (q - k) > 0
    THEN r ELSE CASE WHEN r > 0 THEN {literal(0.0)} ELSE -{literal(0.0)} END END
FROM (SELECT p, q, r, p * 134217729.0 - (p * 134217729.0 - p) AS h,
    q * 134217729.0 - (q * 134217729.0 - q) AS k
    FROM (SELECT ABS(a) * {_UP} AS p, ABS(b) * {_UP} AS q,
        {_SIGNED.format(literal(5e-324))} AS r OFFSET 0) AS e OFFSET 0) AS d)"""
PRODUCT = f"""CASE WHEN ABS(a) > 1 AND ABS(b) > 1 AND ABS(a) < {_INF} AND ABS(b) < {_INF}
THEN CASE WHEN (ABS(a) * {_DOWN}) * (ABS(b) * {_DOWN}) >= {literal(2.0**-50)}
    THEN {_INFINITE} ELSE a * b END
WHEN ABS(a) < 1 AND ABS(b) < 1 AND a <> 0 AND b <> 0 AND (ABS(a) < {_TINY} OR ABS(b) < {_TINY})
THEN CASE WHEN (ABS(a) * {_UP}) * (ABS(b) * {_UP}) < 0.5 THEN {_NOTHING}
    WHEN (ABS(a) * {_UP}) * (ABS(b) * {_UP}) > 0.5 THEN a * b ELSE {_EXACT} END
ELSE a * b END"""

# A quotient is rounded to 0 if it is at most 2^-1075. The scaled operands are compared, which is
# exact: a quotient of two floats above 2^-1075 is never so close to it that it would be rounded to
# it.
QUOTIENT = f"""CASE WHEN b = 0 THEN NULL
WHEN ABS(b) < 1 AND ABS(a) > {literal(2.0**-60)} AND ABS(a) < {_INF}
THEN CASE WHEN ABS(b) < ABS(a) * {literal(2.0**-500)}
    THEN CASE WHEN (ABS(a) * {_DOWN}) / (ABS(b) * {_UP}) >= {literal(2.0**-50)}
        THEN {_INFINITE} ELSE a / b END
    ELSE a / b END
WHEN ABS(b) > 1 AND ABS(b) < {_INF} AND ABS(a) < 1 AND a <> 0
THEN CASE WHEN ABS(a) * {literal(2.0**538)} <= ABS(b) * {_DOWN} THEN {_NOTHING} ELSE a / b END
ELSE a / b END"""

ROOT = "CASE WHEN a >= 0 THEN SQRT(a) END"
LOGARITHM = "CASE WHEN a > 0 THEN LN(a) / LN({base}) END"
SINGLE = f"""CASE WHEN ABS(a) <= {literal(2.0**-150)} THEN CAST(a * {literal(0.0)} AS REAL)
WHEN ABS(a) >= {literal(3.4028235677973366e38)} AND ABS(a) < {_INF}
THEN CAST(CASE WHEN a > 0 THEN {_INF} ELSE -{_INF} END AS REAL) ELSE CAST(a AS REAL) END"""
TRUNCATED = (
    f"CASE WHEN a >= {literal(-(2.0**63))} AND a < {literal(2.0**63)} THEN CAST(TRUNC(a) AS "
    "BIGINT) END"
)
# A decimal becomes the nearest float: 0 where it is too small for a float, infinite where it is too
# large.
FROM_DECIMAL = f"""CASE WHEN a = 'NaN' THEN {literal(math.nan).replace("nan", "NaN")}
WHEN ABS(a) >= {2**1024 - 2**970} THEN CASE WHEN a > 0 THEN {_INF} ELSE -{_INF} END
WHEN ABS(a) <= 2.4703282292062327208e-324
THEN CASE WHEN a >= 0 THEN {literal(0.0)} ELSE -{literal(0.0)} END
ELSE CAST(a AS DOUBLE PRECISION) END"""

# Ibis states types that PostgreSQL does not use: it states 64 bits for a sum of whole numbers and a
# float for 1.5, and both are decimals in PostgreSQL. It states a 64-bit integer for an oid, and
# PostgreSQL fails when it compares an oid with a negative number.
_TYPES = "CAST('{}' AS REGTYPE)"
_IS_WHOLE = (
    f"PG_TYPEOF(a) IN ({', '.join(map(_TYPES.format, ('smallint', 'integer', 'bigint', 'oid')))})"
)
_IS_FLOAT = f"PG_TYPEOF(a) IN ({', '.join(map(_TYPES.format, ('real', 'double precision')))})"
WHOLE_OF = f"""(SELECT CASE WHEN w BETWEEN {{low}} AND {{high}} THEN CAST(w AS BIGINT) END
FROM (SELECT CASE WHEN {_IS_WHOLE} THEN CAST(CAST(a AS BIGINT) AS NUMERIC)
    ELSE CAST(CAST(a AS TEXT) AS NUMERIC) END AS w
OFFSET 0) AS v)"""
_NUMERIC = re.sub(r"\ba\b", "CAST(a AS NUMERIC)", FROM_DECIMAL)
FLOAT_OF = f"CASE WHEN {_IS_FLOAT} THEN CAST(a AS DOUBLE PRECISION) ELSE {_NUMERIC} END"

FROM_TRUTH = "CASE WHEN a THEN 1 WHEN NOT a THEN 0 END"

# Conversions of texts. Each checks the form of the text before it casts, so the cast cannot fail.
_DIGITS = "LTRIM(a, '+-0')"
INTEGER = f"""CASE WHEN a ~ '^[+-]?[0-9]+$' THEN CASE WHEN LENGTH({_DIGITS}) <= 20
THEN CAST((CASE WHEN a LIKE '-%' THEN '-0' ELSE '0' END) || {_DIGITS} AS NUMERIC) END END"""
_MANTISSA, _EXPONENT = "SPLIT_PART(LOWER(a), 'e', 1)", "SPLIT_PART(LOWER(a), 'e', 2)"
_POWER = f"LTRIM({_EXPONENT}, '+-0')"
REAL = f"""CASE WHEN a ~ '^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$'
THEN CASE WHEN LENGTH({_MANTISSA}) <= 1000
    THEN CASE WHEN LENGTH({_POWER}) <= 3 THEN CAST(a AS NUMERIC)
        WHEN {_MANTISSA} !~ '[1-9]' OR {_EXPONENT} LIKE '-%' THEN 0
        WHEN a LIKE '-%' THEN -1e400 ELSE 1e400 END END END"""
_NUMBERS = (
    "CAST(LEFT(a, 4) AS INTEGER) AS y, CAST(SUBSTR(a, 6, 2) AS INTEGER) AS m, CAST(SUBSTR(a, 9, "
    "2) AS INTEGER) AS d"
)
DATE = f"""CASE WHEN a ~ '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}' THEN (SELECT CASE
WHEN y >= 1 AND m BETWEEN 1 AND 12 AND d BETWEEN 1 AND CASE m WHEN 2
    THEN CASE WHEN y % 4 = 0 AND (y % 100 <> 0 OR y % 400 = 0) THEN 29 ELSE 28 END
    WHEN 4 THEN 30 WHEN 6 THEN 30 WHEN 9 THEN 30 WHEN 11 THEN 30 ELSE 31 END
THEN CAST(MAKE_DATE(y, m, d) - DATE '1970-01-01' AS BIGINT) END
FROM (SELECT {_NUMBERS} OFFSET 0) AS p) END"""
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?"
TIME = f"""CASE WHEN a ~ '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_CLOCK}$'
THEN ({DATE}) * 86400000000 + CAST(SUBSTR(a, 12, 2) AS BIGINT) * 3600000000
    + CAST(SUBSTR(a, 15, 2) AS BIGINT) * 60000000 + CAST(SUBSTR(a, 18, 2) AS BIGINT) * 1000000
    + CAST(RPAD(SUBSTR(a, 21, 6), 6, '0') AS BIGINT) END"""

# PostgreSQL's functions of texts fail if their result needs more than 1 GiB, and some reserve 4
# bytes for each letter.
_LONGEST = 2**24  # largest length of a text in bytes; a longer text becomes null
TEXT = f"CASE WHEN OCTET_LENGTH(CAST(a AS TEXT)) <= {_LONGEST} THEN CAST(a AS TEXT) END"

# Letters are looked up in our table: for a text of Latin letters in a short part of it, for ASCII
# not at all.
CASED = """CASE WHEN a ~ '^[\\u0001-\\u007f]*$' THEN {function}(a COLLATE "C")
WHEN a ~ '^[{near}]*$' THEN TRANSLATE(a, '{near_have}', '{near_want}')
ELSE TRANSLATE(a, '{have}', '{want}') END"""

# The edge of a word of ASCII in a regular expression; PostgreSQL's own sign for it depends on the
# locale.
_WORD = "[0-9A-Za-z_]"
AT_WORD = f"(?:(?<!{_WORD})(?={_WORD})|(?<={_WORD})(?!{_WORD}))"


def text(value: str) -> str:
    """A text by the numbers of its characters, in which no operand's name stands."""
    return "(U&'" + "".join(f"\\+{ord(character):06x}" for character in value) + '\' COLLATE "C")'


# Times as their ticks, and parts of times from ticks.
DAYS = (
    "CASE WHEN a BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN CAST(a - DATE '1970-01-01' "
    "AS BIGINT) END"
)
MICROSECONDS = """CASE WHEN a BETWEEN TIMESTAMP '0001-01-01 00:00:00'
    AND TIMESTAMP '9999-12-31 23:59:59.999999'
THEN CAST(EXTRACT(EPOCH FROM a) * 1000000 AS BIGINT) END"""
ON_DAY = "CASE WHEN a BETWEEN -719162 AND 2932896 THEN {0} END"
AT_TIME = "CASE WHEN a BETWEEN -62135596800000000 AND 253402300799999999 THEN {0} END"
OF_DAY = {
    "year": "EXTRACT(YEAR FROM {0})",
    "month": "EXTRACT(MONTH FROM {0})",
    "day": "EXTRACT(DAY FROM {0})",
    "weekday": "EXTRACT(ISODOW FROM {0})",
    "ordinal_day": "EXTRACT(DOY FROM {0})",
}
# for a >= 0, in microseconds
OF_CLOCK = {"hour": "a / 3600000000 % 24", "minute": "a / 60000000 % 60"}
# microseconds in 2,000 years of 365 days: adding whole days does not change the hour
YEARS = 63072000000000000
