"""The tables that are asked: made by arithmetic alone, so that they are
the same wherever they are made.

Units choose nothing by hash: each has one home and at most five shops, and every typed limit on
groups is at least that. The hash of an engine, which a new version may change, is then in no
recorded number.
"""

from __future__ import annotations

import datetime as dt

import polars as pl

UNITS = 240
HOMES = ("Aachen", "Bonn", "Düren", "Kiel")
SHOPS = ("a", "b", "c", "d", "e")
LEVELS = ("low", "middle", "high")
START = dt.datetime(2025, 1, 1)


def _home(unit: int) -> str | None:
    """Half of the units live in Aachen, few in Düren, one each in places that
    nobody else has; three nowhere.
    """
    if unit % 80 == 79:
        return None
    if unit % 60 == 59:
        return f"only {unit}"
    return HOMES[0 if unit % 2 else 1 if unit % 3 else 3 if unit % 4 else 2]


def _row(unit: int, number: int) -> dict[str, object]:
    place = 97 * unit + 31 * number
    when = START + dt.timedelta(hours=7 * place % 8760, minutes=place % 60)
    return {
        "user": unit,
        "site": f"s{unit % 3}",
        "home": _home(unit),
        "shop": SHOPS[(unit + 2 * number) % 5],
        "member": None if unit % 17 == 5 else unit % 5 < 2,
        "level": LEVELS[(unit + number) % 3],
        "age": 18 + 13 * unit % 67,
        "items": None if place % 19 == 0 else place % 12,
        "spend": None if place % 23 == 0 else (place * 29 % 2401) / 16,
        "day": None if place % 37 == 0 else when.date(),
        "when": when,
        "stay": dt.timedelta(minutes=5 + place % 300),
    }


SCHEMA = {
    "user": pl.Int64,
    "site": pl.String,
    "home": pl.String,
    "shop": pl.String,
    "member": pl.Boolean,
    "level": pl.String,
    "age": pl.Int64,
    "items": pl.Int64,
    "spend": pl.Float64,
    "day": pl.Date,
    "when": pl.Datetime("us"),
    "stay": pl.Duration("us"),
}
VISITS = pl.DataFrame([_row(u, j) for u in range(UNITS) for j in range(1 + 7 * u % 5)], SCHEMA)
PLAIN = VISITS.drop("stay")  # durations are refused by databases
REGIONS = {
    "home": ["Aachen", "Bonn", "Kiel", "Nowhere"],
    "area": [160.5, 141.0, 118.5, 1.0],
    "sea": [False, False, True, None],
}
