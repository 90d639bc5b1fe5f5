"""What was typed, where its type shows that it was computed from a table: such keys and bounds may tell of the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dpframe.plan.columns import Table
from dpframe.usage import warn

_LIBRARIES = {"pandas": "pandas", "polars": "Polars", "numpy": "NumPy", "pyarrow": "PyArrow", "modin": "Modin"}
_WORDS = {"ndarray": "array"}


def warn_of_computed_keys(keys: object, asked: str) -> None:
    """Warn of keys in a column or array of a dataframe library, alone or in a dict. A list, tuple or range is public.

    Input:  keys as they were typed; asked, the verb with its columns
    Bound:  nothing is read: the types of what was typed decide. Keys that were computed from the protected column show
            which values it has, also those that one unit alone has, and no noise hides that
    Warns:  DpFrameWarning, once for a call

    A public dataframe is a list of keys, and no warning. An index of times with a fixed step, as `pd.date_range` makes
    it, is a range.
    """
    listed = keys.items() if isinstance(keys, Mapping) else [(None, keys)]
    for name, values in listed:
        if _is_column(values) and getattr(values, "freq", None) is None:
            of = "" if name is None else f" of {name!r}"
            warn(
                f"{asked}: the keys{of} are {_described(values)}. If they were computed from the protected column, the "
                "table shows which values it has, and no noise hides that. If they are public, type them as a list: "
                "keys=['Bonn', 'Kiel'], or keys=list(...). Keys that only the data tell are found by group_by without "
                "keys=, and release(epsilon=1.0, delta=1e-6)."
            )
            return


def warn_of_computed_bounds(bounds: object, asked: str) -> None:
    """Warn of bounds in a column or array, or of NumPy's numbers, as `df["wage"].max()` gives them in pandas.

    Input:  bounds as they were typed: a pair, or anything; asked, the verb with its column
    Bound:  nothing is read. Bounds that were computed from the protected column are values of single units
    Warns:  DpFrameWarning, once for a call
    """
    ends = [bounds] if _is_column(bounds) else list(bounds) if isinstance(bounds, (tuple, list)) else []
    computed = next((end for end in ends if _is_number(end) or _is_column(end)), None)
    if computed is not None:
        what = f"are {_described(computed)}" if _is_column(computed) else "hold a number of NumPy"
        warn(
            f"{asked}: the bounds {what}. If they were computed from the protected column, as df['x'].max() is, they "
            "are values of single units, and no noise hides them. If they are public, type them as numbers: "
            "bounds=(0, 100). Bounds that only the data tell are chosen privately inside the release: bounds=dp.Auto()."
        )


def warn_of_public_units(other: object, table: Table, on: Iterable[str]) -> None:
    """Warn of a table that is joined as public on the columns that identify the unit: it may have a row for each unit.

    Input:  other: the table as it was typed; table: the protected one; on: columns that both have
    Bound:  nothing is read: the names and the type of what was typed decide. Only `table` is protected by the join
    Warns:  DpFrameWarning; a dict of columns is typed by hand, and no warning
    """
    ids = {column.id for column in table.unit}
    if not ids or isinstance(other, Mapping) or not ids <= {table.column(name, "join").id for name in on}:
        return
    warn(
        "join: on= holds the columns that identify the unit, and the other table is taken as public: no noise hides "
        "its rows. If it tells about single units, protect it too: join(other.dp(unit=..., budget=budget), on=...), "
        "with the unit and the budget of this table. If it is public, give it as a dict of columns."
    )


def _library(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _is_number(value: object) -> bool:
    """Whether a value is a number of NumPy. Its times are typed, as Python's are."""
    return isinstance(value, (np.integer, np.floating)) and not isinstance(value, np.timedelta64)


def _is_column(value: Any) -> bool:
    """Whether a value is a series, an index or an array of a dataframe library, and no table."""
    listed = _library(value) in _LIBRARIES and isinstance(value, Iterable) and not hasattr(value, "columns")
    return listed and getattr(value, "ndim", 1) == 1


def _described(value: object) -> str:
    library, name = _LIBRARIES[_library(value)], type(value).__name__
    word = _WORDS.get(name, name)
    return f"{'an' if library[0] in 'aeiou' else 'a'} {library} {word}"
