"""The cells: for each type of column those that make some engine or other fail,
wrap, round or compare its own way.

A cell is what `reference` calls a value, before it is read: floats with NaN, decimals as `Decimal`,
dates in days and times in nanoseconds, whatever their year, or infinite; texts that are no Unicode
as their bytes.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import narwhals as nw
from reference import DAY, FIRST, LAST, whole_range

__all__ = ["FAMILIES", "LONG_TEXTS", "TYPES", "Cells", "pairs", "singles"]


@dataclass(frozen=True)
class Cells:
    """A type of column, and hostile cells of it."""

    name: str
    dtype: Any
    cells: tuple[Any, ...]


class Decimal76(nw.Decimal):
    """Decimals of 76 digits, which Arrow has and narwhals has no name for."""

    def __init__(self, scale: int) -> None:
        super().__init__(38, 0)
        self.precision, self.scale = 76, scale


def _integers(dtype: Any) -> tuple[int | None, ...]:
    low, high = whole_range(dtype)
    near = [low, low + 1, high, high - 1, -1, 0, 1, 2, 7, -7, 100]
    near += [
        2**53,
        2**53 + 1,
        -(2**53) - 1,
        2**62,
        9_200_000_000_000_000_000,
        -9_200_000_000_000_000_000,
    ]
    near += [
        9_199_999_999_999_999_000,
        3_037_000_499,
        3_037_000_500,
        -3_037_000_500,
        2**32,
        2**63 - 512,
        2**63 - 513,
    ]
    near += [
        2**63,
        2**63 - 1,
        -(2**63),
        -(2**63) - 1,
        2**64 - 1,
        2**64,
        10**37,
        -(10**37),
        2**100 + 1,
    ]
    return (*dict.fromkeys(x for x in near if low <= x <= high), None)


def _nearest_single(x: float) -> float:
    return struct.unpack("<f", struct.pack("<f", x))[0]


_FLOATS = (
    *(
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.5,
        -2.5,
        0.1 + 0.2,
        0.49999999999999994,
        3.0,
        7.0,
        127.5,
        -128.5,
        255.9,
        1e15 + 0.5,
    ),
    *(
        1e308,
        -1e308,
        1.7976931348623157e308,
        1e200,
        -1e200,
        1e-200,
        -1e-200,
        5e-324,
        -5e-324,
        2.2e-308,
        1e-310,
    ),
    *(
        2.0**53,
        2.0**53 - 1,
        2.0**53 + 2,
        2.0**63,
        -(2.0**63),
        2.0**63 - 1024,
        2.0**64,
        9.2e18,
        2.0**52 + 0.5,
        2.0**31,
    ),
    *(3.4028235e38, 3.4028235677973366e38, 1e39, 1.401298464324817e-45, 7e-46, 1.0000000596046448),
    *(math.nan, math.inf, -math.inf, None),
)
_SINGLES = (
    *map(
        _nearest_single,
        (
            0.0,
            -0.0,
            1.5,
            0.1,
            -2.5,
            16777217.0,
            2.0**63,
            3.4028235e38,
            -3.4028235e38,
            1.4e-45,
            1e-38,
        ),
    ),
    *(math.nan, math.inf, -math.inf, None),
)


def _decimals(digits: int, scale: int) -> tuple[Decimal | None, ...]:
    most = int("9" * digits)
    whole = [
        0,
        1,
        -1,
        5,
        10**scale,
        -(10**scale),
        3 * 10**scale // 2,
        10 ** (digits - 1),
        most,
        -most,
        most - 1,
    ]
    whole += [
        (2**53 + 1) * 10**scale,
        2**63 * 10**scale,
        (2**63 - 1) * 10**scale,
        1234567890123456789012345678901234567,
    ]
    whole += [9007199254740993, 9007199254740993 * 10 + 1, 2**63, 2**64 + 1, 2**100 + 2**47]
    return (*(_scaled(x, scale) for x in dict.fromkeys(whole) if abs(x) <= most), None)


def _scaled(whole: int, scale: int) -> Decimal:
    digits = tuple(map(int, str(abs(whole))))
    return Decimal((int(whole < 0), digits, -scale))


_TEXTS = (
    *(
        "",
        " ",
        "a",
        "A",
        "ab",
        "b",
        "B",
        "\x00",
        "a\x00b",
        "a\x00",
        "\n",
        "12\n",
        "12\r",
        "12\r\n",
        "+12",
        " 12",
        "12 ",
        "-12",
        "012",
    ),
    *(
        "12",
        "1e400",
        "-1e400",
        "1e-400",
        "1e308",
        "1.8e308",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "Infinity",
        "-0",
        "-0.0",
        "+",
        "-",
        ".",
        "e5",
        "1e",
    ),
    *(
        "1.",
        ".5",
        "0x10",
        "1_000",
        "1,5",
        "٣",
        "12",
        "0.1",
        "1.5",
        "9007199254740993",
        "1e23",
        "2.2250738585072011e-308",
    ),
    *(
        "127",
        "128",
        "-128",
        "-129",
        "255",
        "256",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
    ),
    *(
        "-9223372036854775809",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999999",
        "0" * 400 + "7",
    ),
    *(
        "9" * 400,
        "0." + "0" * 400 + "1",
        "1e99999999999",
        "4.9e-324",
        "true",
        "True",
        "false",
        "t",
        "NULL",
        "null",
    ),
    *(
        "2020-02-30",
        "2020-02-29",
        "2021-02-29",
        "0000-01-01",
        "0001-01-01",
        "9999-12-31",
        "10000-01-01",
        "2020-13-01",
    ),
    *(
        "2020-1-1",
        "2020-01-01 ",
        "2020-01-01\n",
        "-2020-01-01",
        "infinity",
        "epoch",
        "today",
        "now",
        "24:00:00",
    ),
    *(
        "2020-01-01 24:00:00",
        "2020-01-01T23:59:60",
        "2020-01-01T12:00:00",
        "2020-01-01 12:00:00.5",
        "2020-01-01t12:00:00",
    ),
    *(
        "9999-12-31T23:59:59.999999999",
        "0001-01-01T00:00:00",
        "1969-12-31T23:59:59.999999999",
        "1969-12-31 23:59:59.9999995",
    ),
    *(
        "2020-01-01T12:00:00Z",
        "2020-01-01T12:00:00+01:00",
        "0000-01-01T00:00:00",
        "2020-02-30T00:00:00",
        "2020-01-01T12:00",
    ),
    *(
        "1677-09-21T00:12:43.145224193",
        "2262-04-11T23:47:16.854775807",
        "2262-04-12T00:00:00",
        "1582-10-10",
        "1582-10-10T01:02:03",
    ),
    *(
        "é",
        "e\u0301",
        "ß",
        "ss",
        "SS",
        "ẞ",
        "İ",
        "i",
        "I",
        "ı",
        "ǅ",
        "ǆ",
        "Ǆ",
        "ŉ",
        "ﬁ",
        "Σ",
        "ΑΣ",
        "ς",
        "ΐ",
        "ﬃ",
        "Å",
        "Å",
        "K",
    ),
    *(
        "\u200b",
        "a\u200b",
        "\u202eabc",
        "\ufeff",
        "👩‍👩‍👧‍👦",
        "🇩🇪",
        "😀",
        "\U0010ffff",
        "\ud7ff",
        "\ue000",
        "\u0378",
        "ꭰ",
        "Ꭰ",
        "ა",
        "Ა",
    ),
    *(
        "%",
        "_",
        "a%b",
        "a_b",
        "\\",
        "a\\b",
        "'",
        "''",
        '"',
        "a'b",
        "--",
        ";",
        "$1",
        "{}",
        "[a]",
        ".*",
        "^",
        "(",
        "x" * 5000,
        None,
    ),
    # Bytes that are no Unicode: a start without its end, an end alone, half of a pair, a long zero,
    # one too far out.
    *(b"\xff\xfe", b"a\xc3", b"\x80b", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80"),
)
_DAYS = (
    *(
        0,
        1,
        -1,
        FIRST,
        FIRST - 1,
        FIRST - 366,
        FIRST + 1,
        LAST,
        LAST + 1,
        LAST - 1,
        18321,
        18261,
        18262,
        18627,
        -719163 + 32 * 366,
    ),
    *(
        (dt.date(y, m, d) - dt.date(1970, 1, 1)).days
        for y, m, d in ((33, 4, 3), (1582, 10, 4), (1582, 10, 15), (1900, 2, 28), (2000, 2, 29))
    ),
    *(
        (dt.date(y, m, d) - dt.date(1970, 1, 1)).days
        for y, m, d in ((2018, 12, 31), (2020, 12, 31), (2021, 1, 3), (1677, 9, 21), (2262, 4, 12))
    ),
    *(math.inf, -math.inf),
    None,
)


def _moments(unit: int, *, zoned: bool) -> tuple[int | None, ...]:
    """Ends of years, of calendars and of clocks; in the days when the clock of
    Berlin or New York is changed.
    """
    typed = [
        *(
            "1970-01-01T00:00:00",
            "1969-12-31T23:59:59.999999",
            "2020-12-31T23:59:59.999999",
            "2021-01-01T00:00:00",
        ),
        *(
            "0001-01-01T00:00:00",
            "0001-01-02T12:00:00",
            "9999-12-31T23:59:59.999999",
            "9999-12-30T11:00:00",
            "0033-04-03T15:00:00",
        ),
        *(
            "2021-03-28T00:59:59",
            "2021-03-28T01:00:00",
            "2021-03-28T02:30:00",
            "2021-10-31T00:30:00",
            "2021-10-31T01:30:00",
        ),
        *(
            "2021-03-14T06:59:59",
            "2021-03-14T07:00:00",
            "2021-11-07T05:30:00",
            "2021-11-07T06:30:00",
            "1893-03-31T23:06:32",
        ),
        *(
            "1582-10-10T00:00:00",
            "1900-02-28T23:59:59",
            "2038-01-19T03:14:08",
            "1677-09-21T00:12:44",
            "2262-04-11T23:47:16",
        ),
        *(
            "2262-04-12T00:00:00",
            "1678-01-01T00:00:00",
            "2261-12-31T23:59:59.999999",
            "1916-04-30T22:00:00",
        ),
    ]
    nano = [
        (dt.datetime.fromisoformat(x) - dt.datetime(1970, 1, 1))
        // dt.timedelta(microseconds=1)
        * 1000
        for x in typed
    ]
    nano += [(FIRST - 1) * DAY, (LAST + 1) * DAY, FIRST * DAY - 1000]
    nano += [-(2**63) + 1, 2**63 - 1, -1, 1, 999_999_999, -999] if unit == 1 else []
    fits = [x // unit * unit for x in nano if -(2**63) < x // unit < 2**63]
    return (*dict.fromkeys(fits), math.inf, -math.inf, None)


_ENDS = [0, 1, -1, 999_999_999, -1_000_000_001, 86_400 * 10**9, 10**15, -(10**15)]


def _durations(unit: int) -> tuple[int | None, ...]:
    whole = [*(x // unit for x in _ENDS), 2**63 - 1, -(2**63) + 1, 2**53 + 1]
    return (*dict.fromkeys(x * unit for x in whole), None)


def _all() -> list[Cells]:
    integers = (
        "Int8",
        "Int16",
        "Int32",
        "Int64",
        "UInt8",
        "UInt16",
        "UInt32",
        "UInt64",
        "Int128",
        "UInt128",
    )
    made = [
        Cells(name.lower(), getattr(nw, name)(), _integers(getattr(nw, name)()))
        for name in integers
    ]
    made += [Cells("float64", nw.Float64(), _FLOATS), Cells("float32", nw.Float32(), _SINGLES)]
    made += [
        Cells(f"decimal38_{scale}", nw.Decimal(38, scale), _decimals(38, scale))
        for scale in (0, 10, 37)
    ]
    made += [
        Cells(f"decimal76_{scale}", Decimal76(scale), _decimals(76, scale)) for scale in (0, 10, 37)
    ]
    made += [
        Cells("string", nw.String(), _TEXTS),
        Cells("boolean", nw.Boolean(), (True, False, None)),
    ]
    made += [Cells("date", nw.Date(), _DAYS)]
    for name, unit in (("ms", 10**6), ("us", 10**3), ("ns", 1)):
        made.append(Cells(f"datetime_{name}", nw.Datetime(name), _moments(unit, zoned=False)))
        made.append(Cells(f"duration_{name}", nw.Duration(name), _durations(unit)))
    for zone in ("UTC", "Europe/Berlin", "America/New_York"):
        short = zone.rpartition("/")[2].lower()
        made.append(
            Cells(f"datetime_{short}", nw.Datetime("us", zone), _moments(10**3, zoned=True))
        )
    return made


LONG_TEXTS = Cells("a_string", nw.String(), ("ä" * 1_000_000, "ä" * 1_000_000 + "b", "a", None))
TYPES: Mapping[str, Cells] = {made.name: made for made in _all()}
FAMILIES = {
    "numbers": [name for name, made in TYPES.items() if made.dtype.is_numeric()],
    "texts": ["string"],
    "truths": ["boolean"],
    "times": [name for name in TYPES if name.startswith(("date", "duration"))],
}


def pairs(names: list[str], most: int | None = None) -> dict[str, Cells]:
    """Two columns of each type, "a_" and "b_", in rows with each cell of each
    type beside each of each other.

    Of more than `most` pairs some are taken, spread evenly over all.
    """
    size = max(len(TYPES[name].cells) for name in names)
    rows = [(i, j) for i in range(size) for j in range(size)]
    if most is not None and len(rows) > most:
        rows = [rows[k * len(rows) // most] for k in range(most)]
    columns = {}
    for name in names:
        cells = TYPES[name].cells
        first, second = (tuple(cells[pair[side] % len(cells)] for pair in rows) for side in (0, 1))
        columns[f"a_{name}"] = Cells(f"a_{name}", TYPES[name].dtype, first)
        columns[f"b_{name}"] = Cells(f"b_{name}", TYPES[name].dtype, second)
    return columns


def singles(names: list[str]) -> dict[str, Cells]:
    """A column of each type, "a_", that has all its cells."""
    size = max(len(TYPES[name].cells) for name in names)
    return {
        f"a_{name}": Cells(
            f"a_{name}",
            TYPES[name].dtype,
            tuple(TYPES[name].cells[i % len(TYPES[name].cells)] for i in range(size)),
        )
        for name in names
    }
