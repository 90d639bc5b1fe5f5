"""The expressions under test: every operation, every cast, every
comparison, on columns and with literals.
"""

from __future__ import annotations

import datetime as dt
import operator

import polars as pl
from cells import TYPES
from reference import family

import dpframe as dp

__all__ = ["TARGETS", "of_one", "of_two", "on_one", "on_two"]

ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.truediv)
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
WHOLE = (0, 1, -1, 7, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 3_037_000_500)
REAL = (
    0.0,
    0.5,
    0.1 + 0.2,
    0.12345678901234568,
    2 / 3,
    -2.5,
    1e200,
    1e-200,
    5e-324,
    2.0**53,
    9.2e18,
    1e270,
    2.0**63,
)
DIVISORS = (1, 2, 7, 1000, 2**20 - 1, 2**20, 2**31, 2**61, 2**62 - 1)
TARGETS = (
    *(
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float32",
        "float64",
        "boolean",
    ),
    *(
        "string",
        "date",
        "datetime",
        pl.Datetime("ms"),
        pl.Datetime("ns"),
        pl.Datetime("us", "Europe/Berlin"),
    ),
    *(pl.Enum(["1", "", "true", "a", "2020-01-01"]), pl.Int128, pl.Duration("us")),
)
PIECES = (
    "",
    "%",
    "_",
    "\\",
    "a",
    "'",
    '"',
    "a_b",
    "\n",
    "\x00",
    ".",
    "^",
    "ß",
    "é",
    "e\u0301",
    "👩",
    "1",
    "İ",
    "--",
    "{}",
)
CHANGES = (
    *(
        ("a", "b"),
        ("a", ""),
        ("0", "00"),
        ("-", "' --"),
        ("1", "\\1$&"),
        ("aa", "a"),
        ("\x00", "zero"),
        ("e", "\x00"),
    ),
    *(
        ("é", "e"),
        ("e\u0301", "é"),
        ("👩", "👨"),
        ("'", "''"),
        (".", "x"),
        ("\\", "/"),
        ("%", "%%"),
        (" ", "a b c"),
    ),
)
PATTERNS = (
    *(
        r"\d",
        r"^\d+$",
        r"\D",
        r"\w+\W",
        r"\s",
        r"^\s|\s$",
        r"\b1",
        r"a\b",
        r"\b\w{2,3}\b",
        "^.$",
        "^.{2}$",
        "^a",
        "a$",
    ),
    *(
        "(?i)AB?|-x",
        "(?i)[^k]s",
        "[^a]",
        "[^\n]$",
        r"[\d\D]{3}",
        "é",
        "e\u0301|👩",
        "[à-ü]",
        "[👨-👩]",
        r"[\^\-\]&~\[\\]",
        "'",
    ),
    *(
        "(?:a|b|1)+0",
        "(?:a|ab)(?:c|bcd)?",
        "a.*e",
        "a{2,3}",
        "(?:1|12){2}",
        "[0-9]{4}-[0-9]{2}",
        "(?:^|-)0",
        r"\.",
        "x?1",
    ),
    *("(?:ab?)+b", "[ -~]*$"),
)
TAKEN = (
    ("([0-9]+)", 1),
    ("([a-z])([^a-z]?)", 2),
    ("(?i)a|ab", 0),
    ("^(.*?)[ -]", 1),
    ("(.)$", 1),
    (r"\b(\w+)\b", 1),
    ("x*", 0),
)
CHANGED = (
    ("[0-9]+", "#"),
    (r"\s", ""),
    ("a|ab", "é"),
    ("^.", "\x00'"),
    ("[^a-z]{2}", "  "),
    (r"\b\w", "_"),
    ("(?:a|aa)$", "👩"),
)
SEPARATORS = ("-", "0", "00", ".", " ", "a", "\x00", "👩", "\u0301", "'", "\n", "|", "::")
DAY, MOMENT = dt.date(2020, 2, 29), dt.datetime(2021, 3, 28, 1)
EARLY, LATE = dt.date(1, 1, 1), dt.date(9999, 12, 31)
BERLIN = dt.datetime(2021, 3, 28, 1, tzinfo=dt.UTC)


def of_two(first: str, second: str) -> list[dp.Expr]:
    """Every operation on two columns, of any type:
    those of types that do not go together are refused.
    """
    return on_two(dp.col(f"a_{first}"), dp.col(f"b_{second}"))


def on_two(a: dp.Expr, b: dp.Expr) -> list[dp.Expr]:
    """Every operation on two expressions, of any type."""
    made = [op(a, b) for op in (*ARITHMETIC, *COMPARISONS)]
    made += [dp.when(a.is_null()).then(b).otherwise(a), dp.when(a < b).then(a).otherwise(b)]
    made += [
        a // b,
        a % b,
        a ^ b,
        a.eq_missing(b),
        dp.coalesce(a, b),
        dp.concat_str([a, b, a], separator=", "),
    ]
    made.append(dp.when(a > b).then(a).when(a < b).then(b).otherwise(None))
    return [*made, a & b, a | b]


def of_one(name: str) -> list[dp.Expr]:
    """Every operation on one column: with literals of its kind and of others, and every cast."""
    return on_one(dp.col(f"a_{name}"), family(TYPES[name].dtype))


def on_one(a: dp.Expr, kind: str) -> list[dp.Expr]:
    """Every operation on one expression of a kind."""
    made = [
        a.is_null(),
        a.is_not_null(),
        dp.when(a.is_null()).then(a),
        *(a.cast(target) for target in TARGETS),
    ]
    return made + BY_FAMILY[kind](a)


def _numbers(a: dp.Expr) -> list[dp.Expr]:
    made = [-a, a.abs(), a.floor(), a.ceil(), a.sqrt(), a.sign()]
    made += [*(a**x for x in (0, 1, 2, 5, 64)), *(a.round(x) for x in (0, 2, 15))]
    made += [a.log(), a.log(10), a.log1p(), a.exp()]
    made += [op(a, x) for op in (*ARITHMETIC, *COMPARISONS) for x in (*WHOLE, *REAL)]
    made += [op(x, a) for op in ARITHMETIC for x in (*WHOLE, *REAL)]
    made += [
        op(a, by) for op in (operator.floordiv, operator.mod) for by in (*DIVISORS, 0, -1, 2**62)
    ]
    made += [
        a.is_in(x)
        for x in (
            [],
            [0],
            [1, 0.5, -1.0],
            [2**63 - 1, -(2**63)],
            [2**63, 2**64 - 1],
            [2**53 + 1, 2.0**53],
            [-0.0],
        )
    ]
    made += [
        a.is_in([x, x - 1, 1])
        for x in (128, 2**8, 2**15, 2**16, 2**31, 2**32, 2**63, 2**64 - 1, 2.0**63, 1e300)
    ]
    made += [a.is_in([-x, -x - 1]) for x in (2**7, 2**15, 2**31, 2**63 - 1)]
    made += [a.fill_null(x) for x in (0, 5, -1, 300, 2**63 - 1, 2**64 - 1, 0.5, 1e300, -0.0)]
    made += [
        a.clip(low, high)
        for low, high in (
            (-3, 10),
            (0.5, 7.25),
            (None, 9),
            (3, None),
            (-(2**63), 2**63),
            (0, 2**64 - 1),
            (1e200, 1e270),
            (-1e270, -1e200),
        )
    ]
    return [
        *made,
        *(a.is_between(-1, 7, closed=ends) for ends in ("both", "left", "right", "none")),
        *(op(a, dp.col("r") - 3) for op in (operator.floordiv, operator.mod)),
        *(op(x, a) for op in (operator.floordiv, operator.mod) for x in WHOLE),
        a.replace({0: 1, 7: -7}),
        a.replace_strict({x: str(x) for x in range(-9, 30)}, default="other"),
        _chain(a),
        dp.when(a > 0).then(1).otherwise(a),
        dp.when(a > 0).then(0.5),
        (a + 1) * a - a,
        _decimal(a) * _decimal(a) * _decimal(a) * a,
    ]


def _chain(a: dp.Expr) -> dp.Expr:
    """Two hundred conditions, and for each the number of the first one that holds."""
    made = dp.when(a < -100).then(0)
    for i in range(1, 200):
        made = made.when(a < i - 100).then(i)
    return made.otherwise(0.5)


def _decimal(a: dp.Expr) -> dp.Expr:
    """A literal in some of the rows.
    If SQL read it as a decimal, its third power would be too large.
    """
    return dp.when(a > 0).then(123456789012345.6)


def _texts(a: dp.Expr) -> list[dp.Expr]:
    made = [a.str.to_lowercase(), a.str.to_uppercase(), a.str.len_chars()]
    made += [
        part for x in PIECES for part in (a.str.contains(x, literal=True), a.str.starts_with(x))
    ]
    made += [a.str.ends_with(x) for x in PIECES]
    made += [a.str.head(n) for n in (0, 1, 2, 3, 2**31 - 1)]
    made += [
        a.str.slice(*x)
        for x in ((0,), (1,), (2, 3), (0, 0), (1, 2**31 - 2), (2**31 - 2, 2**31 - 2))
    ]
    made += [
        a.str.slice(*x) for x in ((-1,), (-3,), (-3, 2), (-5000, 4999), (-(2**31 - 2), 2**31 - 2))
    ]
    made += [a.str.head(-1), a.str.head(-3), a.str.tail(2), a.str.tail(-2), a.str.tail(0)]
    made += (
        [a.str.zfill(x) for x in (1, 2, 5, 100)]
        + [a + x for x in ("", "a", "\x00", "👩")]
        + ["x" + a]
    )
    made += [
        a.str.to_date(),
        a.str.to_date("%Y-%m-%d\n"),
        a.str.to_date("-%Y-%m-%d"),
        a.str.to_datetime(),
    ]
    made += [a.str.to_datetime(f"%Y-%m-%d{clock}") for clock in ("", "T%H:%M:%S", " %H:%M:%S")]
    day, name = a.str.slice(8) + "." + a.str.slice(5, 2) + "/" + a.str.slice(0, 4), "%d.%m/%Y"
    made += [day.str.to_date(name), (day + " 23").str.to_datetime(f"{name} %H")]
    made += [
        a.replace({"a": "b", None: "none"}),
        a.replace_strict({"a": 1, "'": 2}),
        dp.coalesce(a, dp.lit("none")),
    ]
    made += [a.str.replace(*change, literal=True, n=n) for change in CHANGES for n in (1, -1)]
    made += [a.str.contains(x, regex=True) for x in PATTERNS]
    made += [a.str.extract(*x) for x in TAKEN]
    made += [a.str.count_matches(x, regex=True) for x, _ in CHANGED]
    made += [a.str.count_matches(x, literal=True) for x in ("a", "00", "\x00", "é", ".", "👩")]
    made += [a.str.replace(*x, regex=True, n=n) for x in CHANGED for n in (1, -1)]
    made += [strip(x) for x in (None, "a1", "\x00'", "👩é\u0301") for strip in _strips(a)]
    made += [
        part
        for x in ("", "a", "1", "👩", "\x00")
        for part in (a.str.strip_prefix(x), a.str.strip_suffix(x))
    ]
    made += [
        a.str.split(x, literal=True).list.get(i) for x in SEPARATORS for i in (0, 1, -1, 1 - 2**20)
    ]
    made += [
        op(a, x)
        for op in COMPARISONS
        for x in ("", "a", "A", "é", "'", "\\", "12\n", "\x00", "ß", "👩")
    ]
    made += [
        a.is_in(x)
        for x in ([], ["a"], ["A", "ß", "'"], ["", "\\", "a\x00"], ["%", "_"], ["e\u0301"])
    ]
    made += [a.fill_null(x) for x in ("", "'", "\\", "a\x00", "ß")]
    return [
        *made,
        dp.when(a == "a").then("A").otherwise(a),
        a.cast("int64") + 1,
        a.str.to_lowercase() == "a",
        a.cast("float32") * 2,
    ]


def _strips(a: dp.Expr) -> list:
    return [a.str.strip_chars, a.str.strip_chars_start, a.str.strip_chars_end]


def _truths(a: dp.Expr) -> list[dp.Expr]:
    made = [
        ~a,
        a & True,
        a | False,
        a.fill_null(True),
        a.fill_null(False),
        a.is_in([True]),
        a.is_in([True, False]),
    ]
    return [
        *made,
        *(op(a, True) for op in COMPARISONS),
        dp.when(a).then(1).otherwise(0),
        dp.when(a).then("x"),
        a.is_in([]),
    ]


def _parts(a: dp.Expr) -> list[dp.Expr]:
    parts = (
        "year",
        "month",
        "day",
        "weekday",
        "ordinal_day",
        "hour",
        "minute",
        "date",
        "week",
        "quarter",
    )
    made = [getattr(a.dt, part)() for part in (*parts, "month_start", "month_end", "second")]
    made += [getattr(a.dt, f"total_{unit}")() for unit in ("days", "hours", "minutes", "seconds")]
    made += [
        a.dt.offset_by(by)
        for by in ("3d", "-1d", "-2h", "90s", "1w", "1mo", "-1mo", "-7q", "4y", "-100y")
    ]
    made += [a.dt.convert_time_zone(zone) for zone in ("UTC", "Europe/Berlin", "Asia/Kathmandu")]
    made += [
        a.dt.replace_time_zone(zone) for zone in (None, "UTC", "Europe/Berlin", "America/New_York")
    ]
    there = a.dt.convert_time_zone("America/St_Johns")
    made += [
        there.dt.second(),
        *(there.dt.truncate(every) for every in ("15m", "1h", "2h", "1d", "1q")),
    ]
    made += [a - a, a + a, a + dp.duration(days=3, hours=5)]
    made += [
        a - dp.duration(days=3, hours=5),
        dp.duration(days=400) + a,
        a - dp.lit(DAY),
        dp.lit(MOMENT) - a,
    ]
    return made + [
        a.dt.truncate(every)
        for every in (
            "1w",
            "1mo",
            "1q",
            "1y",
            "1d",
            "7d",
            "1h",
            "15m",
            "7s",
            "2w",
            "5mo",
            "2q",
            "3y",
        )
    ]


def _times(*values: object) -> list:
    def made(a: dp.Expr) -> list[dp.Expr]:
        exprs = [op(a, x) for op in COMPARISONS for x in values]
        exprs += [a.is_in([x]) for x in values] + [a.fill_null(x) for x in values]
        exprs += [
            a.clip(x, y)
            for x in values
            for y in values
            if type(x) is type(y) and _zoned(x) == _zoned(y) and x < y
        ]
        return (
            exprs
            + _parts(a)
            + [
                a.cast("date").cast("datetime"),
                a.cast("date").dt.weekday(),
                a.cast("datetime").dt.hour(),
            ]
        )

    return made


def _zoned(value: object) -> bool:
    return getattr(value, "tzinfo", None) is not None


_DAYS_AND_TIMES = _times(
    DAY,
    EARLY,
    LATE,
    MOMENT,
    BERLIN,
    dt.datetime(1, 1, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
)
BY_FAMILY = {
    **dict.fromkeys(("integer", "float", "decimal"), _numbers),
    "string": _texts,
    "boolean": _truths,
    "date": _DAYS_AND_TIMES,
    "datetime": _DAYS_AND_TIMES,
    "duration": _times(dt.timedelta(0), dt.timedelta(hours=1), dt.timedelta(days=-400)),
}
