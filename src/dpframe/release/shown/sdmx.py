"""Released numbers as SDMX-CSV, the format in which statistical offices exchange tables."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from dpframe.errors import InvalidArgument
from dpframe.release.answer import OTHER, Numbers
from dpframe.release.shown.charts import decimals
from dpframe.release.shown.crosstab import as_text, unlike
from dpframe.release.shown.error_tables import crosstab, decimals_of, error_table, margins_at
from dpframe.release.shown.files import in_decimals, in_iso, write_csv

_STRUCTURE = re.compile(r"[A-Za-z][A-Za-z0-9_\-.]*:[A-Za-z0-9_@$\-]+\(\d+\.\d+(\.\d+)?\)")
_TAKEN = {
    "STRUCTURE",
    "STRUCTURE_ID",
    "ACTION",
    "MEASURE",
    "OBS_VALUE",
    "LOWER",
    "UPPER",
    "DECIMALS",
}
_TAKEN |= {"OBS_STATUS", "CONF_STATUS"}


def write_sdmx(tables: Sequence[Numbers], path: Any, structure: object) -> str | None:
    """Released numbers in SDMX-CSV: a text, or a file if there is a path.
    The last table has the dimensions of all.

    Errors: InvalidArgument for a structure that names no data flow
    """
    if not isinstance(structure, str) or not _STRUCTURE.fullmatch(structure):
        raise InvalidArgument(
            "to_sdmx: structure= is AGENCY:ID(VERSION), such as structure='DESTATIS:WAGES(1.0.0)'."
        )
    lines = [_sdmx_table(numbers, structure) for numbers in tables]
    dimensions = [
        name for name in lines[-1].columns if any(name not in table.columns for table in lines)
    ]
    together = pl.concat(lines, how="diagonal").select(lines[-1].columns)
    return write_csv(together.with_columns(pl.col(dimensions).fill_null("_T")), path)


def _sdmx_table(numbers: Numbers, structure: str) -> pl.DataFrame:
    """One row per released number: dimensions, measure, value,
    interval, and why a value is missing.
    """
    errors = error_table(numbers, 0.05)
    by = errors.columns[: len(numbers.by)]
    dated = [
        name for name, key in zip(by, numbers.by, strict=True) if _is_date(numbers.long.schema[key])
    ]
    names = _names(
        numbers.by, dict(zip(by, numbers.by, strict=True))[dated[0]] if len(dated) == 1 else ""
    )
    totals = pl.Series(np.arange(errors.height) >= numbers.long.height * len(numbers.outputs))
    dimensions = [
        pl.when(totals & (keys.str.contains("^All_*$") | (keys == "")))
        .then(pl.lit("_T"))
        .otherwise(keys.fill_null("_U"))
        .alias(name)
        for name, keys in zip(names, map(_key, (errors[key] for key in by)), strict=True)
    ]
    value = errors["value"]
    shares = bool(numbers.layout.normalize)
    least = decimals_of(numbers) if shares else 12
    places = pl.Series([min(decimals(error), least) for error in errors["error"]], dtype=pl.Int64)
    whole = {
        o.name for o in numbers.outputs if numbers.long.schema[o.name].is_integer() and not shares
    }
    places = pl.Series(np.where(errors["column"].is_in(list(whole)), 0, places))
    types = {output.name: numbers.long.schema[output.name] for output in numbers.outputs}
    times = {name: dtype for name, dtype in types.items() if dtype.is_temporal()}
    codes = _codes(numbers)
    missing = pl.when(pl.Series(codes > 0)).then(pl.lit("Q")).otherwise(pl.lit("M"))
    status = (
        pl.when(pl.Series(codes == OTHER))
        .then(pl.lit("D"))
        .when(pl.Series(codes > 0))
        .then(pl.lit("C"))
    )
    lead = {"STRUCTURE": "dataflow", "STRUCTURE_ID": structure, "ACTION": "R"}
    return errors.select(
        *(pl.lit(text).alias(name) for name, text in lead.items()),
        *dimensions,
        pl.col("column").alias("MEASURE"),
        *(
            pl.coalesce(
                *(_times(errors, end, name, dtype) for name, dtype in times.items()),
                pl.Series(_texts(errors[end], places, outward), dtype=pl.String),
            ).alias(title)
            for title, end, outward in (
                ("OBS_VALUE", "value", round),
                ("LOWER", "lower", math.floor),
                ("UPPER", "upper", math.ceil),
            )
        ),
        pl.when(value.is_not_null() & ~errors["column"].is_in(list(times)))
        .then(places)
        .alias("DECIMALS"),
        pl.when(value.is_not_null()).then(pl.lit("A")).otherwise(missing).alias("OBS_STATUS"),
        status.otherwise(pl.lit("F")).alias("CONF_STATUS"),
    )


def _codes(numbers: Numbers) -> Any:
    """Why the value of each line of the table of errors is not shown; 0 where it is."""
    height = numbers.long.height
    grid = crosstab(numbers)
    if grid is not None and numbers.hidden_grid is None:
        return np.zeros(error_table(numbers, 0.05).height, np.int64)
    if grid is None or numbers.hidden_grid is None:
        hidden = (
            numbers.hidden.astype(np.int64)
            if numbers.hidden_together is None
            else numbers.hidden_together
        )
        return np.tile(hidden, len(numbers.outputs))
    codes, places = numbers.hidden_grid
    cells = codes[: grid.sizes[0], : grid.sizes[1]].ravel()[places]
    if len(error_table(numbers, 0.05)) == height:
        return cells
    return np.concatenate([cells, [codes[place] for place in margins_at(grid)]])


def _key(keys: pl.Series) -> pl.Series:
    """Keys as texts; a date or time as SDMX writes it, a time at midnight as its date."""
    texts = as_text(keys)
    if keys.dtype == pl.String:  # beside margins keys are texts already
        return texts.str.replace(r"^(\d{4}-\d\d-\d\d) 00:00:00$", "$1")
    if not _is_date(keys.dtype):
        return texts
    midnight = texts.drop_nulls().str.ends_with(" 00:00:00").all()
    return texts.str.replace(" 00:00:00", "") if midnight else texts.str.replace(" ", "T")


def _texts(
    values: pl.Series, places: pl.Series, outward: Callable[[float], int] = round
) -> list[str | None]:
    """Numbers with their decimals, of which ends of intervals are rounded outward."""
    cells = zip(values.to_list(), places.to_list(), strict=True)
    return [
        None
        if value is None
        else f"{outward(round(value * 10**number, 4)) / 10**number:.{number}f}"
        for value, number in cells
    ]


def _times(errors: pl.DataFrame, end: str, name: str, dtype: pl.DataType) -> pl.Series:
    """The dates, times or durations of one column as ISO 8601 writes them, to its
    decimals; null in other lines.
    """
    title = {"value": "x", "lower": "x_low", "upper": "x_high"}[end]
    here = pl.when(errors["column"] == name).then(errors[end])
    ticks = {"value": here.round(), "lower": here.floor(), "upper": here.ceil()}[end]
    times = errors.select(ticks.cast(pl.Int64, strict=False).cast(dtype).alias(title))
    error = errors.filter(column=name)["error"].min()
    times = in_decimals(
        times, {title: decimals(error if isinstance(error, float) else None, dtype)}
    )
    return in_iso(times[title]).str.replace(r"\.0+(\D|$)", "$1")


def _is_date(dtype: pl.DataType) -> bool:
    return dtype in (pl.Date, pl.Datetime)


def _names(by: tuple[str, ...], dated: str) -> list[str]:
    """Identifiers of the dimensions: capital letters, digits and
    underscores, beginning with a letter.
    """
    names: list[str] = []
    for name in by:
        upper = re.sub(r"[^A-Z0-9_]", "_", name.upper())
        upper = upper if upper[:1].isalpha() else f"D{upper}"
        names.append(unlike("TIME_PERIOD" if name == dated else upper, {*names, *_TAKEN}))
    return names
