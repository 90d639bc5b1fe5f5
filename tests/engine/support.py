"""The table of questions and engines in the documentation, from what the tests ask of each engine.

`test_engines.py` asks each question of each engine. It holds the totals against those of Polars, or
the line to type in the refusal against `REFUSED`. So the table says what the tests hold. `python
tests/engine/support.py` writes it.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from questions import ABSENT, AREAS, REFUSED

PAGE = Path(__file__).parents[2] / "docs/reference/support.md"
START, END = "<!-- questions and engines: written by tests/engine/support.py -->", "<!-- end -->"
TITLES = {
    "polars": "Polars",
    "polars-lazy": "Polars, lazy",
    "pandas": "pandas",
    "pyarrow": "PyArrow",
    "duckdb": "DuckDB",
    "ibis": "Ibis on DuckDB",
    "postgres": "Ibis on PostgreSQL",
    "sqlite": "Ibis on SQLite",
    "datafusion": "Ibis on DataFusion",
    "spark": "Spark",
    "dask": "Dask",
}


def lines() -> list[str]:
    """The table: one row for each question, and one column for each engine."""
    header = ["question", *TITLES.values()]
    rows = [header, ["---", *[":---:"] * len(TITLES)]]
    for area, questions in AREAS.items():
        rows.append([f"**{area}**", *[""] * len(TITLES)])
        rows += [[name, *(_cell(engine, name) for engine in TITLES)] for name in questions]
    return [f"| {' | '.join(row)} |" for row in rows]


def _cell(engine: str, question: str) -> str:
    if (engine, question) in ABSENT:
        return "no such type"
    line = REFUSED.get((engine, question))
    return "same" if line is None else f"`{line}`"


def page(text: str) -> str:
    """The page with the table of today."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return "\n".join([before + START, "", *lines(), "", END + after])


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
