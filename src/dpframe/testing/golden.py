"""Outputs that are kept in a file, and compared in each run of a test."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

REWRITE = "DPFRAME_REWRITE"


def assert_golden(out: Any, path: str | Path, *, rewrite: bool | None = None) -> None:
    """Compare a released table with the one that a file holds, as CSV. Release it under `fixed_noise`.

    Parameters
    ----------
    out : Release
        What was released.
    path : str or path
        The file.
    rewrite : bool, optional
        Write the file anew; by default where the environment has DPFRAME_REWRITE=1. Read the difference then.

    Raises
    ------
    AssertionError
        If they differ, with the first line that does, or there is no file.
    """
    path, text = Path(path), out.to_csv()
    if os.environ.get(REWRITE) == "1" if rewrite is None else rewrite:
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    if not path.exists():
        raise AssertionError(f"There is no {path}. Run the test once with {REWRITE}=1, and read what it writes.")
    kept, now = path.read_text(encoding="utf-8").splitlines(), text.splitlines()
    for number, (old, new) in enumerate(zip(kept, now, strict=False), 1):
        if old != new:
            raise AssertionError(f"{path}, line {number} was {old!r}, and is {new!r}. {REWRITE}=1 writes it anew.")
    if len(kept) != len(now):
        raise AssertionError(f"{path} has {len(kept)} lines, and the table {len(now)}. {REWRITE}=1 writes it anew.")
