"""The site's table of engines is what the suite of engines says: each mark stands for questions that it asks."""

from __future__ import annotations

from pathlib import Path

from questions import ABSENT, AREAS, REFUSED

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "support.md"
HEADS = {
    "polars": "pandas, Polars, PyArrow",
    "duckdb": "DuckDB",
    "ibis": "Ibis on DuckDB",
    "postgres": "Ibis on PostgreSQL",
    "spark": "Spark",
    "dask": "Dask",
}


def _mark(engine, asked):
    marks = {
        "no such type" if (engine, name) in ABSENT else "refused" if (engine, name) in REFUSED else "yes"
        for name in asked
    }
    (mark,) = marks  # an area is one thing: all of it or nothing
    return mark


def rendered():
    lines = [f"| | {' | '.join(HEADS.values())} |", f"|---|{':---:|' * len(HEADS)}"]
    lines += [f"| {area} | {' | '.join(_mark(name, asked) for name in HEADS)} |" for area, asked in AREAS.items()]
    return "\n".join(lines)


def test_the_table_of_engines_is_the_suite_s():
    assert rendered() in PAGE.read_text("utf-8"), f"Put this into {PAGE.name}:\n\n{rendered()}"
