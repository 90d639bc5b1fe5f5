"""What is listed as different is different: what an engine has mended leaves the list."""

from __future__ import annotations

import pytest
from cells import TYPES, Cells
from engines import ENGINES, rows_of
from known import KNOWN
from suite import wanted

import dpframe as dp


@pytest.mark.parametrize("entry", KNOWN, ids=lambda entry: entry.reason)
def test_a_known_difference_is_there(entry):
    expr, name, cell = entry.example
    engine = next(e for e in ENGINES if e.name.startswith(entry.engines))
    brought = engine.bring({"x": Cells("x", TYPES[name].dtype, (cell,))})
    frame = dp.protect(brought.native, unit=dp.Rows(1))
    assert rows_of(frame.with_columns(made=expr), ["made"])["made"] != wanted(expr, brought.cells, frame)
