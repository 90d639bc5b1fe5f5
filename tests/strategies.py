"""Random small tables, plans and questions, their neighbours, and the distance between two answers.

Everything is drawn from one seeded generator, so that a failing case is its seed. Totals are
integers and claims are exact, so every comparison here is exact too.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa

import datafusion_tables
import dpframe as dp
from dpframe import engine
from dpframe.engine.backends import backend_named
from dpframe.errors import DpFrameError
from dpframe.theory.formulas.sensitivity.sum_and_count import paired_l1
from inside import question_of
from statistics_table import shapes

KINDS = ("pandas", "polars", "lazy", "pyarrow")
CITIES = ["Aachen", "Bonn", "Celle", "Düren", ""]
LEVELS = ["low", "mid", "high"]
DAYS = [dt.date(2020, 1, 1), dt.date(2020, 6, 1), dt.date(2021, 1, 1)]
SCHEMA = {
    "u": pl.Int64,
    "w": pl.String,
    "a": pl.Int8,
    "x": pl.Float64,
    "city": pl.String,
    "level": pl.Enum(LEVELS),
    "yes": pl.Boolean,
    "day": pl.Date,
}
_ODD = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e300, -1e-300, None]


_PANDAS = {
    pl.Int64: "Int64",
    pl.Int8: "Int8",
    pl.Boolean: "boolean",
    pl.Date: pd.ArrowDtype(pa.date32()),
}


def bring(frame: pl.DataFrame, kind: str) -> Any:
    """A table as one kind of user brings it; pandas in types that do not depend
    on whether a value is missing.
    """
    match kind:
        case "pandas":
            return frame.to_pandas().astype(
                {n: _PANDAS[t] for n, t in frame.schema.items() if t in _PANDAS}
            )
        case "lazy":
            return frame.lazy()
        case "pyarrow":
            return frame.to_arrow()
        case "datafusion":
            return datafusion_tables.brought(frame)
    return frame


def hashed_by(patch: Any, hashed: Callable[..., Any], *engines: str) -> None:
    """From now on, engines (Polars, where none is named) choose groups by another hash."""
    for name in engines or ("polars",):
        patch.setattr(type(backend_named(name)), "keyed_hash", staticmethod(hashed))


def rows_of_unit(rng: random.Random, unit: int | None, many: int) -> list[tuple[Any, ...]]:
    """Rows of one unit: now spread over groups, now heaped in one, with extreme
    and missing values among them.
    """
    heaped = rng.random() < 0.4
    city, level = rng.choice([*CITIES, None]), rng.choice([*LEVELS, None])
    strong = rng.choice([None, None, 100, -100])
    return [
        (
            unit,
            None if unit is None else f"w{unit % 2}",
            strong or rng.choice([rng.randint(-128, 127), None, 0, 1, 5]),
            strong or rng.choice([rng.gauss(0, 5), rng.randint(-3, 10), rng.choice(_ODD)]),
            city if heaped else rng.choice([*CITIES, None]),
            level if heaped else rng.choice([*LEVELS, None]),
            rng.choice([True, False, None]),
            rng.choice([*DAYS, None]),
        )
        for _ in range(many)
    ]


def as_frame(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    """Rows as a Polars frame with the shared schema."""
    return pl.DataFrame(
        [(*r[:3], None if r[3] is None else float(r[3]), *r[4:]) for r in rows],
        SCHEMA,
        orient="row",
    )


def random_rows(rng: random.Random, units: int = 5, most: int = 9) -> list[tuple[Any, ...]]:
    """A table of a few units, some with many rows, in random order, with some rows of nobody."""
    rows = rows_of_unit(rng, None, rng.randint(0, 2))
    for unit in range(units):
        rows += rows_of_unit(
            rng, unit, rng.choice([1, 2, rng.randint(1, most), rng.randint(most, 3 * most)])
        )
    rng.shuffle(rows)
    return rows


# Plans

_STEPS: list[Callable[[random.Random, dp.PrivateFrame], dp.PrivateFrame]] = [
    lambda r, f: f.filter(dp.col("a") > r.choice([-50, 0, 3])),
    lambda r, f: f.filter(dp.col("x").is_null() | (dp.col("x") < r.choice([0.0, 5.5, 1e200]))),
    lambda r, f: f.filter(dp.col("yes") | dp.col("city").is_in(["Bonn", "Celle"])),
    lambda r, f: f.filter(~(dp.col("level") == "low")),
    lambda r, f: f.with_columns(x=dp.col("x") / dp.col("a")),
    lambda r, f: f.with_columns(a=dp.col("a") * dp.col("a") - 3, x=dp.col("x").abs() + dp.col("a")),
    lambda r, f: f.with_columns(x=dp.when(dp.col("yes")).then(dp.col("x")).otherwise(dp.col("a"))),
    lambda r, f: f.with_columns(city=dp.col("city").str.to_lowercase(), a=dp.col("a") % 7),
    lambda r, f: f.with_columns(u2=dp.col("a").fill_null(0)),
    lambda r, f: f.drop("u"),
    lambda r, f: f.select("a", "x", "city", "level", "yes"),
    lambda r, f: f.rename({"a": "x", "x": "a"}),
    lambda r, f: f.rename({"city": "where"}).rename({"where": "city"}),
    lambda r, f: f.clip("a", *r.choice([(-3, 10), (0, 5), (2, None), (-200, 300)])),
    lambda r, f: f.clip("x", *r.choice([(-3, 10), (0.5, 7.25), (2, 4), (None, 9)])),
    lambda r, f: f.fill_null("a", r.choice([0, 7])),
    lambda r, f: f.fill_null({"x": r.choice([0, 2.5]), "city": "Bonn"}),
    lambda r, f: f.drop_nulls(r.choice(["a", "x", "city"])),
    lambda r, f: f.drop_nulls(),
    lambda r, f: f.cast("a", r.choice(["int16", "float64", "int64", "float32"])),
    lambda r, f: f.cast({"x": r.choice(["int8", "int32", "float32"])}),
    lambda r, f: f.cut("x", [-5, 0, 2.5, 10], into="city", right=r.random() < 0.5),
    lambda r, f: f.cut("a", [-100, 0, 5, 127], labels=LEVELS, into="level"),
    lambda r, f: f.bound(max_rows=r.randint(1, 6)),
]


def random_plan(rng: random.Random) -> Callable[[dp.PrivateFrame], dp.PrivateFrame]:
    """Up to four random steps that fit the schema; the same steps every time it is called."""
    chosen = [(rng.choice(_STEPS), rng.random()) for _ in range(rng.choice([0, 1, 2, 2, 3, 4]))]

    def plan(frame: dp.PrivateFrame) -> dp.PrivateFrame:
        for step, seed in chosen:
            try:
                frame = step(random.Random(seed), frame)
            except DpFrameError:  # a column that is gone, or has another type by now
                continue
        return frame

    return plan


# Questions

_BOUNDS = [
    (-3, 10),
    (0, 5),
    (2, 4),
    (-7.5, -0.25),
    (0, 0),
    (1e-300, 2e-300),
    (-1e270, 5),
    (-(2**63), 2**63),
]


def _aggregates(rng: random.Random) -> dict[str, Any]:
    offered = {
        "n": dp.count(),
        "na": dp.count("a"),
        "nx": dp.count("x"),
        "units": dp.count_units(),
        "sa": dp.sum("a", bounds=rng.choice(_BOUNDS)),
        "sx": dp.sum("x", bounds=rng.choice(_BOUNDS)),
        "ta": dp.sum("a", unit_bounds=rng.choice(_BOUNDS)),
        "tx": dp.sum("x", unit_bounds=rng.choice(_BOUNDS)),
        "ma": dp.mean("a", bounds=rng.choice(_BOUNDS[:4])),
        "mx": dp.mean("x", bounds=rng.choice(_BOUNDS[:4])),
        **shapes("x", rng.choice(_BOUNDS[:4])),
        "rax": dp.corr(
            "a", "x", bounds={"a": rng.choice(_BOUNDS[:4]), "x": rng.choice(_BOUNDS[:4])}
        ),
        "wxa": dp.mean("x", bounds=rng.choice(_BOUNDS[:4]), weights="a", weight_bounds=(0, 9)),
        "gx": dp.geometric_mean("x", bounds=(0.5, 9)),
        "sy": dp.sum("yes"),
    }
    return {name: offered[name] for name in rng.sample(sorted(offered), rng.choice([1, 1, 2, 4]))}


def _keys(rng: random.Random, by: tuple[str, ...]) -> Any:
    levels = {
        "city": [*rng.sample(CITIES, rng.randint(1, 4)), *rng.choice([[], [None]]), "Nowhere"],
        "level": rng.sample(LEVELS, rng.randint(1, 3)),
        "yes": rng.choice([[True, False], [True, None], [False]]),
        "day": rng.sample(DAYS, 2),
        "a": rng.choice([[0, 1, 5, 100], [None, 1], [-100, 100]]),
    }
    listed = {name: levels[name] for name in by}
    form = rng.choice(["dict", "tuples", "frame", "list"])
    if form == "dict":
        return listed
    if len(by) == 1:
        return (
            listed[by[0]]
            if form != "frame"
            else pl.DataFrame({by[0]: listed[by[0]]}, {by[0]: SCHEMA[by[0]]})
        )
    rows = [(p, q) for p in listed[by[0]] for q in listed[by[1]] if rng.random() < 0.7] or [
        (listed[by[0]][0], listed[by[1]][0])
    ]
    return (
        rows
        if form != "frame"
        else pl.DataFrame(rows, {name: SCHEMA[name] for name in by}, orient="row")
    )


def _limits(rng: random.Random) -> dict[str, int]:
    names = ["max_rows", "max_groups", "max_rows_per_group"]
    most = {"max_rows": 8, "max_groups": 4, "max_rows_per_group": 4}
    chosen = rng.choice(
        [names, names, names[:1], names[1:], [names[0], names[1]], [names[0], names[2]]]
    )
    return {name: rng.choice([rng.randint(1, most[name])] * 7 + [2**31 - 1]) for name in chosen}


def random_question(
    rng: random.Random, *, limited: bool = True
) -> Callable[[dp.PrivateFrame], dp.Query]:
    """A random question, which may be refused; the same one every time it is called."""
    seed, form = (
        rng.random(),
        rng.choice(["plain", "public", "public", "private", "private", "histogram", "crosstab"]),
    )

    def ask(frame: dp.PrivateFrame) -> dp.Query:
        r = random.Random(seed)
        limits = _limits(r) if limited else {}
        by = tuple(r.sample(["city", "level", "yes", "day", "a"], r.choice([1, 1, 2])))
        if form == "plain":
            rows = {"max_rows": limits["max_rows"]} if "max_rows" in limits else {}
            return frame.agg(**rows, **_aggregates(r))
        if form == "histogram":
            bins = r.choice([[-5, 0, 2.5, 10], [0, 1, 2, 3, 4]])
            return frame.histogram(r.choice(["a", "x"]), bins=bins, **limits)
        if form == "crosstab":
            keys = _keys(r, ("city", "day")) if r.random() < 0.7 else None
            return frame.crosstab("city", "day", keys=keys, **limits)
        keys = _keys(r, by) if form == "public" else None
        asked = _aggregates(r)
        other = (None,) * len(by) if form == "private" and r.random() < 0.4 else None
        return frame.group_by(*by, keys=keys, **limits, other=other).agg(**asked)

    return ask


# Answers


@dataclass(frozen=True)
class Distance:
    """How far apart two answers to one question are, for one of its totals."""

    l0: int
    l1: int
    l2_squared: int
    linf: int

    def within(self, claim: Any) -> bool:
        """Whether a claimed sensitivity covers it."""
        return (
            self.l0 <= claim.l0
            and self.l1 <= claim.exact_l1
            and self.l2_squared <= claim.l2_squared
            and self.linf <= claim.exact_linf
        )


def answer(query: dp.Query, salt: int = 1) -> list[dict[tuple[Any, ...], int]]:
    """The exact totals of a question before noise: for each noisy measure, group → integer."""
    totals = engine.totals(question_of(query), salt)
    keys = totals.keys.rows() if question_of(query).by else [()]
    assert all(len(values) == len(keys) for values in totals.values)
    assert len(set(keys)) == len(keys)
    return [dict(zip(keys, map(int, values), strict=True)) for values in totals.values]


def distance(first: dict[Any, int], second: dict[Any, int]) -> Distance:
    """Distance of two totals; a group that is missing counts as 0."""
    gaps = [abs(first.get(key, 0) - second.get(key, 0)) for key in first.keys() | second.keys()]
    return Distance(
        sum(gap > 0 for gap in gaps),
        sum(gaps),
        sum(gap * gap for gap in gaps),
        max(gaps, default=0),
    )


def paired_distance(weight: int, first: Any, second: Any) -> Any:
    """L1 distance of weight · count + sum and weight · count - sum, each of two
    tables a sum and a count by group.
    """
    keys = {key for part in (*first, *second) for key in part}
    ends = [
        [
            weight * count.get(key, 0) + sign * total.get(key, 0)
            for key in sorted(keys, key=str)
            for sign in (1, -1)
        ]
        for total, count in (first, second)
    ]
    return sum(abs(a - b) for a, b in zip(*ends, strict=True))


def _check_rest(
    first: dict[Any, int], second: dict[Any, int], claim: Any, rng: random.Random
) -> None:
    """Whichever groups are released, the total of all the others
    moves by no more than its claim.
    """
    keys = sorted(first.keys() | second.keys(), key=str)
    for shown in ([], *(rng.sample(keys, rng.randint(0, len(keys))) for _ in range(3))):
        rest = [
            sum(total for key, total in totals.items() if key not in shown)
            for totals in (first, second)
        ]
        assert distance({(): rest[0]}, {(): rest[1]}).within(claim), (claim, shown)


def _with_followed(query: dp.Query, first: Any, second: Any) -> list[Any]:
    """Each total with the answers of two tables, also those that follow from two others."""
    answers = list(zip(question_of(query).read, first, second, strict=True))
    by_key = {paid.total.key: both for paid, *both in answers}
    for paid in question_of(query).allotments:
        if paid.total.follows is not None:
            pair = zip(*(by_key[total.key] for total in paid.total.follows), strict=True)
            both = [
                {
                    key: paid.total.added_up(sums.get(key, 0), counts.get(key, 0))
                    for key in sums.keys() | counts.keys()
                }
                for sums, counts in pair
            ]
            answers.append((paid, *both))
    return answers


def check_claims(query: dp.Query, other: dp.Query, salt: int = 1) -> list[tuple[Distance, Any]]:
    """Hold every claim of a question against its answers on two neighbouring
    tables; the distances and claims.
    """
    first, second = answer(query, salt), answer(other, salt)
    held = []
    for alone in [paid.total for paid in question_of(query).allotments if paid.total.collects]:
        (at,) = [
            i
            for i, p in enumerate(question_of(query).read)
            if replace(alone, collects=False).key == p.total.key
        ]
        _check_rest(first[at], second[at], alone.sensitivity, random.Random(salt))
    read = [paid.total.key for paid in question_of(query).read]
    for paid in question_of(query).read:
        if paid.beside is not None:  # both are one mechanism: their distances are held together too
            total, count = (read.index(p.total.key) for p in (paid, paid.beside))
            gap = paired_distance(
                paid.weight, (first[total], first[count]), (second[total], second[count])
            )
            assert gap <= paired_l1(paid.total.sensitivity), (paid.names, gap, query.explain())
            if paid.rows is not None:  # and the rows without a value
                rows = read.index(paid.rows.total.key)
                ones = 2 ** (paid.beside.total.fraction - paid.rows.total.fraction)
                missing = [
                    {key: ones * n - table[count].get(key, 0) for key, n in table[rows].items()}
                    for table in (first, second)
                ]
                gap += 2 * paid.weight * distance(*missing).l1
                assert gap <= 2 * paid.weight * paid.joint, (paid.names, gap, query.explain())
    for paid, mine, theirs in _with_followed(query, first, second):
        measured, claim = distance(mine, theirs), paid.total.sensitivity
        assert measured.within(claim), (paid.names, measured, claim, query.explain())
        for name in paid.names:
            public = query.sensitivity[name]
            assert public.exact_l1 == claim.exact_l1 * paid.total.unit
            assert public.l2_squared == claim.l2_squared * paid.total.unit**2
            assert public.exact_linf == claim.exact_linf * paid.total.unit
            assert (public.l0, isinstance(paid.total.unit, Fraction)) == (claim.l0, True)
        if not question_of(query).private_keys:
            assert mine.keys() == theirs.keys()
        elif question_of(query).threshold is not None:
            assert len(mine.keys() ^ theirs.keys()) <= question_of(query).threshold.sensitivity.l0
        held.append((measured, claim))
    return held
