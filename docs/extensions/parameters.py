"""Each parameter of a public function in its own line:
from its docstring, else from the words that many share.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

SHARED = {  # parameters that mean the same wherever they stand
    "accountant": 'how losses add up: "gdp" (ε or μ²), "basic" (ε and δ), "zcdp" (ρ and δ) or "pld" (for '
    "batches)",
    "aggregates": "the numbers to release, by the names of their columns, such as `n=dp.count()`",
    "alpha": "the probability that an interval misses, by default 0.05",
    "bounds": "the smallest and the largest value that counts (column unit), or `dp.Auto()`; of "
    "several columns a dict",
    "assume_rows": "how many rows to assume in each group (rows)",
    "base": "the base of the logarithm, by default e",
    "budget": "the budget that pays",
    "by": "the column that decides which row is the first or the last; for a budget, who did it",
    "ci": "0.95 gives each number the ends of its 95% interval",
    "closed": 'which ends belong to the range: "both", "left", "right" or "none"',
    "column": "the name of a column",
    "columns": "names of columns",
    "condition": "an expression that is true or false in each row",
    "conditions": "expressions that are true or false in each row",
    "covers": '"noise" for intervals of the noise alone, "population" for noise and sampling '
    "together",
    "data": "which rows these are: a date, a text or a path, so that one name never stands for two "
    "sets of rows",
    "ddof": "what is subtracted from the number of values in the divisor, as in pandas",
    "decimals": "how many decimals to keep",
    "default": "what stands where nothing fits",
    "delta": "the part δ of the price, or of the limit",
    "dtype": 'a type, such as "int64", "float64", "date" or `pl.Int64`',
    "epsilon": "the part ε of the price, or of the limit",
    "error": "the largest error that is allowed (column unit)",
    "exponent": "a whole number from 0 to 64",
    "factor": "how many times as far",
    "format": 'how the text is written, such as "%d.%m.%Y"',
    "formula": 'the regression in one line, such as "wage ~ education"; needs the extra `formula`',
    "frames": "protected tables with the same columns, unit and budget",
    "in_rho": "whether losses are counted in ρ",
    "index": "the columns that go down; of the pieces of a text, which one, from 0",
    "inline": "whether the page has all scripts in it, so that it opens without a network",
    "k": "how many values",
    "key": "which table",
    "keys": "the groups or values to release, listed without looking at the data",
    "l0": "how many groups one unit changes",
    "l1": "how far one unit moves all totals, added up (column unit)",
    "l2_squared": "the same as the sum of squares (column unit, squared)",
    "length": "how many characters",
    "level": "the level to write, by default all",
    "limits": "`dp.Auto()`: limits are chosen privately inside the release",
    "linf": "how far one unit moves one total (column unit)",
    "literal": "the text to look for, taken as it is; with `pattern=`, whether it is taken as "
    "it is",
    "lower": "the lower end (column unit)",
    "mapping": "a dict from old values to new ones",
    "marker": "what stands in files in place of a hidden number",
    "max_groups": "in how many groups one unit counts at most (groups)",
    "max_rows": "how many rows of one unit count at most, over all groups (rows)",
    "max_rows_per_group": "how many rows of one unit count at most in each group (rows)",
    "min_units": "the fewest units of a group that is released, where keys are found in the "
    "data (units)",
    "n": "how many",
    "name": "the name",
    "names": "names of columns",
    "narrow": "whether the release first finds narrower bounds inside the typed ones, for 20% of "
    "its price",
    "neighbors": '"add-remove" (one unit joins or leaves) or "replace" (one unit\'s rows are exchanged '
    "for others)",
    "noise": 'the kind of noise, by default "auto": the smallest that the price allows',
    "null_on_oob": "whether a piece that does not exist is missing; here it always is",
    "nulls": "columns in which null is one more value",
    "offset": "at which character to begin, from 0; from the end where it is negative",
    "on": "the columns that both tables have",
    "on_pending": '"retry" pays again for a release that was killed after it was charged',
    "opening": "the charge that paid in advance",
    "options": "what `dp.protect` and `Query.release` take; of a file, what pandas takes",
    "other": "what it is compared or joined with",
    "path": "the file to write; without it the text is returned",
    "pattern": "the text to look for",
    "percentiles": "which quantiles to show, by default the quartiles",
    "plan": "the releases that are planned",
    "points": "values of the column",
    "price": "epsilon and delta, or rho, of all of them together",
    "q": "a rank between 0 and 1, or a list of ranks",
    "queries": "the questions, in the order in which they are answered",
    "refresh": "whether to pay again for a name, and draw again",
    "release": "the name of a release",
    "rho": "the price or the limit in ρ, in place of ε",
    "rows": "rows to predict, as columns by their names",
    "separator": "what stands between the texts",
    "share": "how large a part of the price this number gets, beside 1 of each other",
    "sort": 'the order of bars: "descending", "ascending", or "keys"',
    "table": "rows that you made up",
    "title": "the title of the chart",
    "unit": "the column, or tuple of columns, that says whose row it is; or `dp.Rows(k)`",
    "unit_bounds": "the smallest and the largest total of one unit that counts (column unit)",
    "unnamed": "aggregates without a name, which are named after their column",
    "upper": "the upper end (column unit)",
    "value": "the value to write",
    "values": "the values",
    "weight_bounds": "the smallest and the largest weight that counts, from 0 on",
    "weights": "a column of numbers from 0 on that weighs each value",
    "width": "the width of the chart (pixels)",
    "height": "the height of the chart (pixels)",
    "workload": 'which sets of columns, such as "2-way" or a list of them',
    "x": "the first column",
    "y": "the second column",
    "part": "how large a part",
    "caps": "the most that one release, spender, day, week or month may cost: `dp.Caps(...)`, or a "
    "dict",
    "characters": "the characters to take off, by default white space",
    "create": "whether to make a new budget, also when its name is nearly that of another one",
    "equal": 'values that columns have, as in `filter(city="Bonn")`',
    "function": "what is done with two numbers",
    "group_index": "which group of the pattern, from 1; 0 is the whole match",
    "people": "a name for the units, where several tables call them by other columns",
    "policy": "a policy file: its path, or a `dp.Policy`",
    "prefix": "the text to take off the beginning",
    "suffix": "the text to take off the end",
    "regex": "whether it is a regular expression",
    "spender": "who pays, for caps and the history",
    "purpose": "what for, in the history",
    "fill": "whether numbers that noise hides altogether are shown and not missing",
    "supersedes": "the name of a release that this one corrects",
    "because": "why it corrects that release",
    "keep": "whether amounts that are not named, and the time zone, stay as they are",
    "split": "the part of δ that is for pairs, where Gaussian noise is asked for",
    "subject": "whose privacy it is: unit and neighbour relation, in words",
    "time_zone": 'the name of a zone, such as "Europe/Berlin"',
    "zone": "the time zone whose clock says when a day, week or month begins",
    "day": "the most for one day",
    "week": "the most for one week",
    "month": "the most for one calendar month",
    **{
        unit: f"how many {unit}"
        for unit in ("weeks", "days", "hours", "minutes", "seconds")
    },
}
LIMITS = (
    "max_rows",
    "max_groups",
    "max_rows_per_group",
    "limits",
)  # one sentence for several says too little


def names(obj: Any) -> list[str]:
    """Its parameters, without the object that a method is of."""
    try:
        signature = inspect.signature(obj)
    except (TypeError, ValueError):
        return []
    return [name for name in signature.parameters if name not in ("self", "cls")]


def described(text: str, parameters: list[str]) -> dict[str, str]:
    """What the part Input of a docstring says of each parameter.

    >>> described(
    ...     "lower, upper: the ends. epsilon > 0, the price",
    ...     ["lower", "upper", "epsilon"],
    ... )["epsilon"]
    'epsilon > 0, the price'
    >>> described("x: one of the columns; y as in z. name: of it", ["x", "y", "name"])[
    ...     "name"
    ... ]
    'of it'
    """
    if not parameters:
        return {}
    one = rf"(?:{'|'.join(map(re.escape, sorted(parameters, key=len, reverse=True)))})"
    several = rf"{one}(?:(?:, and |, | and | or |, or ){one})*"
    found: dict[str, str] = {}
    starts = list(re.finditer(rf"(?:^|(?<=[;.,:)] ))({several}): ", text))
    bounds = [match.start() for match in starts] + [len(text)]
    for match, end in zip(starts, bounds[1:], strict=True):
        for name in re.findall(rf"\b{one}\b", match[1]):
            found.setdefault(name, text[match.end() : end].strip(" ;,."))
    for words in (
        text[: bounds[0]],
        *list(found.values()),
    ):  # "epsilon > 0 and delta >= 0, the price"
        for piece in re.split(r"; |\. ", words):
            begun = re.match(rf"(?:or )?(?:the |with )?{one}\b[^,]*", piece)
            for name in (
                re.findall(rf"\b{one}\b", begun[0])
                if begun and begun[0] != piece
                else ()
            ):
                found.setdefault(name, piece.strip(" ;,."))
    return found


def lines_of(obj: Any, text: str) -> list[tuple[str, str]]:
    """Each parameter with its words; no words where nobody wrote any."""
    own = described(text, names(obj)) | {name: SHARED[name] for name in LIMITS}
    return [(name, own.get(name) or SHARED.get(name, "")) for name in names(obj)]
