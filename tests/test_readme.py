"""The README's table of engines is what the suite of engines says: each mark stands for questions that it asks."""

from __future__ import annotations

from pathlib import Path

from questions import AREAS, REFUSED

README = Path(__file__).parent.parent / "README.md"
HEADS = {"polars": "pandas, Polars, PyArrow", "duckdb": "DuckDB", "ibis": "Ibis", "spark": "Spark"}


def rendered():
    lines = [f"| | {' | '.join(HEADS.values())} |", f"|---|{':---:|' * len(HEADS)}"]
    for area, asked in AREAS.items():
        marks = ["refused" if all((name, ask) in REFUSED for ask in asked) else "yes" for name in HEADS]
        assert all(
            (mark == "yes") == (not any((name, ask) in REFUSED for ask in asked))
            for name, mark in zip(HEADS, marks, strict=True)
        )
        lines.append(f"| {area} | {' | '.join(marks)} |")
    return "\n".join(lines)


def test_the_table_of_engines_is_the_suite_s():
    assert rendered() in README.read_text(), f"Put this into the README:\n\n{rendered()}"
