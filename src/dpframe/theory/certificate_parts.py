"""Whether the parts of a certificate fit each other, so that a chain may be made of them.

A certificate that somebody wrote by hand may name limits that its question does not have, or rules
that its laws do not have. A chain of these parts has a map, but it is not that of the release.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpframe.noise import TAILS

Facts = Mapping[str, Any]
_ADDED = tuple(TAILS)  # laws of noise on one number, which a threshold may be held against
_ROUNDS, _JOINT = "gaussian_rounds", ("window", "cube")
_KEY_RULES = {
    "truncated_geometric": "start",
    _ROUNDS: "thresholds",
    **dict.fromkeys(_ADDED, "threshold"),
}
# totals with entries of their own
MADE_OF_GROUPS = ("merged", "histogram", "count_of_pairs", "interaction")


_WITHOUT_CELLS = ("tree", "blocks", "rounds")  # entries are no groups, and in any number
_OF_UNITS = ("units", "unit_sum")
_SUMS = ("rows", "values", "sum", *_OF_UNITS)
_FIXED = {"rows": (1, 1), "values": (0, 1), "units": (1, 1)}


def ends_of(total: Facts) -> Sequence[int]:
    """The least and the most that a row or a unit adds to a sum;
    of a count these are fixed, whatever is stated.
    """
    return _FIXED.get(total["kind"]) or total["range"]


def finding(mechanisms: Sequence[Facts]) -> list[Facts]:
    """The mechanisms that decide which keys are shown."""
    return [one for one in mechanisms if "finds" in one]


def misfits(certificate: Facts) -> Iterator[str]:
    """Each part that does not fit the others, in words.
    A certificate without questions has totals of one question.
    """
    totals = {total["id"]: total for total in certificate["totals"]}
    mechanisms = certificate["mechanisms"]
    for parts in (certificate["totals"], mechanisms):
        names = [part["id"] for part in parts if "id" in part]
        if len(set(names)) < len(names):
            yield "two parts have one id"
    if "questions" in certificate:
        enforced = "columns" in certificate["unit"]
        if enforced and not certificate["unit"]["columns"]:
            yield "a unit has columns that identify it, or a number of rows"
        if any(
            question["cells"] is not None and question["cells"] < 1
            for question in certificate["questions"]
        ):
            yield "a question has a group"
        yield from (
            f"the limits of {name} are not those of its question"
            for name, total in totals.items()
            if not _limited(total, certificate["questions"][total["question"]], enforced=enforced)
        )
        yield from _keys(certificate, mechanisms, totals)
    for total in totals.values():
        if total.get("factor") and not _product(total, totals[total["factor"]["of"]]):
            yield "the other factor of a product is about the same rows"
        if total["kind"] == "merged" and totals[total["of"]]["kind"] in _WITHOUT_CELLS:
            yield "what is merged are groups"
    for mechanism in mechanisms:
        read = [totals[name] for name in mechanism["of"]]
        yield from _law(mechanism, read)
        yield from _one_noise(mechanism, read, certificate["relation"])


def _limited(total: Facts, question: Facts, *, enforced: bool) -> bool:
    """Whether a total's limits follow from its question's: the tightest of them, or larger ones."""
    place, cells = total.get("own_limits"), question["cells"]
    if place is not None and place not in range(len(question["own_limits"])):
        return False
    limits = question["limits"] if place is None else question["own_limits"][place]["limits"]
    given = {
        name: limits[name] if enforced else None for name in ("groups", "rows_per_group", "rows")
    }
    leaves, before, stated = total.get("leaves"), total.get("before"), total.get("limits", {})
    rows = _least(given["rows"], question["contribution"]["rows"])
    groups = _least(given["groups"], rows, None if leaves else cells)
    each = _least(given["rows_per_group"], rows)
    rows = _least(rows, None if groups is None or each is None else groups * each)
    if leaves is not None:
        if cells is None or total["cells"] * leaves < cells:
            return False
        each = _least(rows, None if each is None or groups is None else each * min(groups, leaves))
    if before is not None:
        if cells is None or not total["cells"] == before < cells:
            return False
        groups = None if groups is None else max(min(groups - 1, before), 1)
    elif (
        leaves is None
        and total["kind"] not in (*MADE_OF_GROUPS, *_WITHOUT_CELLS)
        and total["cells"] != cells
    ):
        return False
    found = {"groups": groups, "rows_per_group": each, "rows": rows}
    in_parts = total["kind"] in ("values", "sum")  # as a row may weigh less than 1
    if total["kind"] == "rows" and groups is not None and each is not None and rows is not None:
        in_parts = rows < groups * each
    fine = bool(total["fraction"]) or not enforced or not in_parts
    return fine and all(
        found[name] is not None and claim >= found[name] for name, claim in stated.items()
    )


def _least(*limits: int | None) -> int | None:
    return min((limit for limit in limits if limit is not None), default=None)


def _product(total: Facts, other: Facts) -> bool:
    """Whether a product's other factor is about the same rows, and its numbers make sense."""
    factor, about = total["factor"], ("question", "own_limits", "cells")
    sound = min(factor["times"], factor["off"], Fraction(factor["scale"])) >= 0
    return (
        sound
        and other["kind"] in ("rows", "values", "sum")
        and all(total.get(x) == other.get(x) for x in about)
    )


def _weighs_one(rows: Facts) -> bool:
    """Whether every row that is counted counts whole:
    no limit on all rows is stricter than those on groups.
    """
    limits = rows["limits"]
    return bool(
        rows["fraction"] == 0 and limits["rows"] >= limits["groups"] * limits["rows_per_group"]
    )


def _keys(
    certificate: Facts, mechanisms: Sequence[Facts], totals: Mapping[str, Facts]
) -> Iterator[str]:
    """Each question whose groups are found has one rule for them, by its
    number of units, whose δ is counted.
    """
    rules = [(one, totals[one["of"][0]]) for one in finding(mechanisms)]
    if sorted(of["question"] for _, of in rules) != [
        place
        for place, question in enumerate(certificate["questions"])
        if question["cells"] is None
    ]:
        yield "groups are listed, or found by one rule"
    for one, of in rules:  # a row that is weighted may count 0
        is_whole = of["kind"] == "rows" and ("rows" in certificate["unit"] or _weighs_one(of))
        by_units = of["fraction"] == 0 and (of["kind"] == "units" or is_whole)
        if of.get("own_limits") is not None or not (by_units or one["law"] == _ROUNDS):
            yield "groups are found by the number of their units"


def _one_noise(mechanism: Facts, read: Sequence[Facts], relation: str) -> Iterator[str]:
    """One noise for several numbers is on sums of the same rows;
    but for cubes one unit moves all of them one way.
    """
    law, first = mechanism["law"], read[0]
    if law not in ("k_norm", *_JOINT) and "common" not in mechanism:
        return
    if any(one["kind"] not in _SUMS for one in read):
        yield "one noise is on sums over rows or units"
        return
    factors = mechanism.get("factors", [1])
    ends = [factor * end for factor, one in zip(factors, read, strict=True) for end in ends_of(one)]
    # which is rounded up and down
    shifted = any(one.get("shift") and one["fraction"] for one in read)
    if not all(factors):
        yield "a factor of one noise is not 0"
    if law != "cube" and (shifted or min(ends) < 0 < max(ends)):
        yield "one unit moves all numbers of one noise up, or all down"
    if (law == "k_norm" or "common" in mechanism) and (
        first["cells"] is None or ("common" in mechanism and relation == "replace")
    ):
        yield "one noise for all groups is on listed ones"
    if law in _JOINT and any(one["cells"] != 1 for one in read):
        names = ("question", "limits", "cells", "leaves")
        about = [(*map(one.get, names), one["kind"] in _OF_UNITS) for one in read]
        if shifted or any(one != about[0] for one in about):
            yield "the numbers of one noise are about the same rows"


def _law(mechanism: Facts, read: Sequence[Facts]) -> Iterator[str]:
    """The fields of a mechanism are those of its law, and its totals are about the same rows."""
    law, finds, (first, *beside) = mechanism["law"], mechanism.get("finds"), read
    for name, laws in (("rest", _ADDED), ("common", ("gaussian",)), ("finds", _KEY_RULES)):
        if name in mechanism and law not in laws:
            yield f"the law {law!r} has no {name!r}"
    if finds is None and law in ("truncated_geometric", _ROUNDS):
        yield f"the law {law!r} decides about keys"
    if finds is not None and _KEY_RULES.get(law) not in {*finds, *mechanism}:
        yield f"the rule for keys is none of {law!r}"
    if law == _ROUNDS and finds is not None and finds["least"] != 0:
        yield "rounds have no least number"
    if finds is not None and not 0 <= Fraction(finds.get("start", 0)) <= 1:
        yield "a chance is between 0 and 1"
    if min(Fraction(mechanism["scale"]), Fraction(mechanism.get("rest", 1))) <= 0 or {
        "rest",
        "common",
    } <= {*mechanism}:
        yield "scales are above 0, and noise that groups share has no rest"
    if (law == _ROUNDS) != (first["kind"] == "key_weights"):
        yield "rounds are about weights of keys"
    if (law in ("permute_and_flip", "exponential")) != (first["kind"] == "choice"):
        yield "choices are by the rows at places"
    if first["kind"] == "interaction" and law != "gaussian":
        yield "an interaction has normal noise"
    rows = [
        (one.get("question"), one.get("own_limits"), one.get("limits"), one["cells"])
        for one in read
    ]
    if "weight" in mechanism:
        kinds = [one["kind"] for one in read]
        size = max(map(abs, first["range"])) * Fraction(2) ** (
            first["fraction"] - beside[0]["fraction"]
        )
        counted = {*beside[0].get("present", ())} <= {*first.get("present", ())}
        pairs = (["sum", "rows"], ["sum", "values"], ["sum", "values", "rows"])
        if (
            kinds not in pairs
            or any(one != rows[0] for one in rows)
            or mechanism["weight"] > size
            or not counted
            or first.get("shift")
        ):
            yield "a pair is a sum and the number of its rows"
        if (
            len(beside) > 1
            and beside[1]["fraction"] != beside[0]["fraction"]
            and not _weighs_one(beside[1])
        ):
            yield "numbers of rows and of values are in one unit"
    elif beside and law not in _JOINT:
        yield f"the law {law!r} is for one total"
