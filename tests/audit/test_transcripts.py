"""Releases of several stages and parts, answer by answer:
nothing else is told, and what is told costs no more.

Every two neighbouring tables here are given the same noisy answers, whatever these may be
(`transcripts`). All that can be seen must then be the same, and the exact loss of these answers at
most what was charged. Nothing is random: a right library never fails. How near the charge the loss
comes is the power of the check, and asked for too.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from fractions import Fraction

import polars as pl
import pytest

import dpframe as dp
from dpframe.audit.replaying import given, loss, stated
from dpframe.plan import Bounds, Limits
from dpframe.plan.columns import ColumnDefaults, Lock
from dpframe.plan.declared import Declared
from dpframe.plan.steps.rewrites import UnderPolicy
from dpframe.release.auto import choose
from inside import question_of, step_of
from prices import offer

SCHEMA = {"u": pl.Int64, "g": pl.Int64, "c": pl.String, "x": pl.Float64, "n": pl.Int64}
KEYS = {"g": [0, 1, 2, 3], "c": ["a", "b", "c"]}
TREE = [(g, c) for g in KEYS["g"] for c in KEYS["c"][: g + 1]]
INF, NAN = float("inf"), float("nan")
_X = [0.0, -0.0, 1.0, 2.5, -7.5, 3e40, 1e-40, INF, -INF, NAN, None]
_N = [0, 1, 5, -3, 2**63 - 1, -(2**63), None]
_AUTO = {"limits": dp.Auto()}


def rows_of(rng, unit, number):
    return [
        (
            unit,
            rng.choice([0, 1, 2, 3, 4, None]),
            rng.choice(["a", "b", "c", "d", None]),
            rng.choice(_X),
            rng.choice(_N),
        )
        for _ in range(number)
    ]


def heavy(unit, groups, texts, sign, times):
    """A unit with as many rows in each of some groups, all at one end of whatever is asked."""
    return [
        (unit, g, c, sign * INF, sign * 2**62) for g in groups for c in texts for _ in range(times)
    ]


def table(rows):
    return pl.DataFrame(rows, SCHEMA, orient="row")


def neighbours(rng, relation):
    """A table and one with another unit more, or in the place of one:
    few and many, ordinary and extreme.
    """
    rest = [
        row
        for unit in [*range(rng.choice([0, 1, 6])), None]
        for row in rows_of(rng, unit, rng.randint(1, 4))
    ]
    ordinary = [rows_of(rng, 7, rng.choice([1, 9])), [(7, None, None, None, None)]]
    groups, texts, times = (
        rng.choice([range(20), [0]]),
        rng.choice(["abc", "b"]),
        rng.choice([1, 9, 99]),
    )
    sign = rng.choice([-1, 1])
    one = rng.choice([*ordinary, *[heavy(7, groups, texts, sign, times)] * 3])
    other = heavy(
        8, rng.choice([groups, [2]]), rng.choice(["a", texts]), -sign, rng.choice([1, times])
    )
    another = rng.choice([other, other, rows_of(rng, 8, 3), [(8, None, None, None, None)]])
    return (
        (table(rest + one), table(rest + another))
        if relation == "replace"
        else (table(rest), table(rest + one))
    )


def same(words):
    """The words of a report without the time."""
    said = {name: value for name, value in words.to_dict().items() if name != "drawn"}
    return json.dumps(said, sort_keys=True, default=str)


def seen(release):
    """All that a release shows."""
    if isinstance(release, pl.DataFrame):
        return [dict(release.schema), release.rows()]
    said = [
        dict(release.to_polars().schema),
        release.to_polars().rows(),
        same(release.report()),
        str(release.cost),
    ]
    said += [
        str(release.noise),
        str(release.accuracy()),
        repr(release),
        release._repr_html_(),
        stated(release),
    ]
    return [*said, [str(dtype) for dtype in release.to_pandas().dtypes], str(release.derivation)]


def parts(frame, price):
    """Every part of a partition, of which each person is in two."""
    made = frame.partition("c", keys=KEYS["c"], max_groups=2)
    return [
        part.group_by("g", keys=KEYS["g"], **_AUTO).count().release(**price)
        for part in made.values()
    ]


def declared(frame, **limits):
    """The table of a frame, with what questions need declared once."""
    columns = {"g": ColumnDefaults(keys=tuple(KEYS["g"])), "x": ColumnDefaults(Bounds(0, 5))}
    columns |= {"n": ColumnDefaults(Bounds(0, 9)), "c": ColumnDefaults(keys=tuple(KEYS["c"]))}
    return frame._then(replace(step_of(frame), declared=Declared(Limits(**limits), columns)))


def governed(frame):
    """The table of a frame under a policy file that locks what `declared` declares."""
    said = {
        "x": ColumnDefaults(Bounds(0, 5)),
        "c": ColumnDefaults(keys=("a", "b")),
        "n": ColumnDefaults(Bounds(0, 9)),
    }
    said = {name: own._replace(file=own, locked=("bounds", "keys")) for name, own in said.items()}
    lock = Lock(
        "a.toml", "0" * 64, Limits(max_rows=4, max_groups=2, max_rows_per_group=3), min_units=2
    )
    ends = {name: own.bounds for name, own in said.items() if own.bounds}
    return frame._then(UnderPolicy(step_of(frame), lock, ends, {"c": said["c"].keys}, said))


def batch(frame, price):
    groups = frame.group_by("g", keys=KEYS["g"], max_groups=2, max_rows_per_group=3)
    queries = [
        groups.agg(n=dp.count(), m=dp.mean("x", (0, 5))),
        frame.median("n", (0, 9), max_rows=2),
    ]
    return frame.budget.plan([*queries, groups.mode("c", KEYS["c"])], **price).release()


def alone(ask):
    return lambda frame, price: [ask(frame).release(**price)]


def grouped(frame, **more):
    return frame.group_by("g", keys=KEYS["g"], **{**_AUTO, **more})


TERMS = ("epsilon", "rho")
LIMITED = {"max_groups": 2, "max_rows_per_group": 3}
MANY = {"g": list(range(20))}
QUESTIONS = {
    "limits of a count": alone(lambda f: grouped(f).count()),
    "limits of a count, alone": alone(lambda f: f.count(**_AUTO)),
    "limits of many counts": alone(lambda f: f.group_by("g", keys=MANY["g"], **_AUTO).count()),
    "limits of units": alone(lambda f: grouped(f).count_units()),
    "limits of means": alone(lambda f: grouped(f).agg(m=dp.mean("x", (0, 5)), n=dp.count())),
    "limits of totals of units": alone(lambda f: grouped(f).sum("x", unit_bounds=(-5, 5))),
    "limits of choices": alone(lambda f: grouped(f).mode("c", KEYS["c"])),
    "limits of different values": alone(lambda f: grouped(f, limits=dp.Auto(0.5)).n_unique("n")),
    "bounds of a sum": alone(lambda f: f.sum("x", bounds=dp.Auto(), max_rows=3)),
    "bounds of a median": alone(lambda f: f.median("n", bounds=dp.Auto(share=0.5), max_rows=1)),
    "limits and bounds": alone(
        lambda f: grouped(f).agg(
            s=dp.sum("x", dp.Auto()), v=dp.var("n", dp.Auto(0.25)), k=dp.count_units()
        )
    ),
    "bounds of a regression": lambda f, p: [
        f.ols(y="x", x=["n"], bounds={"x": (-5, 9), "n": (0, 9)}, max_rows=3, narrow=True)
        .release(**p)
        .release
    ],
    "bounds of a matrix": lambda f, p: [
        f.corr(["x", "n"], {"x": (-5, 9), "n": (0, 9)}, max_rows=3, narrow=True)
        .release(**p)
        .release
    ],
    "limits under which groups share a window": lambda f, p: [
        f.group_by("g", keys=MANY["g"], limits=dp.Auto())
        .agg(n=dp.count(), s=dp.sum("n", (0, 9)))
        .release(**p | {"noise": "k-norm"})
    ],
    "limits under which groups share noise": lambda f, p: [
        f.group_by("g", keys=MANY["g"], limits=dp.Auto())
        .agg(n=dp.count(), s=dp.sum("n", (0, 9)))
        .release(**p | {"noise": "elliptic"})
    ],
    "bounds, with noise that columns share": alone(
        lambda f: f.group_by("g", keys=KEYS["g"], **LIMITED).agg(
            k=dp.count(), m=dp.mean("x", dp.Auto()), t=dp.sum("n", dp.Auto())
        )
    ),
    "tune": lambda f, p: [
        grouped(f).count().tune({"max_rows": [1, 9]}, **{k: p[k] for k in p if k in TERMS})
    ],
    "measured margins": alone(
        lambda f: f.crosstab(
            "g", "c", keys=KEYS | MANY, margins="measured", max_groups=2, max_rows_per_group=1
        )
    ),
    "measured margins of sums": alone(
        lambda f: f.crosstab(
            "g", "c", "x", "sum", bounds=(-1, 3), keys=KEYS, margins="measured", max_rows=2
        )
    ),
    "marginals": alone(lambda f: f.marginals(["g", "c"], "2-way", keys=KEYS, max_rows=2)),
    "a hierarchy": alone(
        lambda f: f.hierarchy(["g", "c"], keys=TREE, max_groups=3, max_rows_per_group=2)
    ),
    "a hierarchy of sums, crossed": alone(
        lambda f: f.hierarchy(
            ["g"], KEYS["g"], "x", "sum", by={"c": ["a", "b"]}, bounds=(-1, 3), max_rows=2
        )
    ),
    "synthetic rows": alone(lambda f: f.synthesize(["g", "c"], 5, keys=KEYS, max_rows=2)),
    "synthetic rows of units": alone(
        lambda f: f.synthesize(
            ["g", "x"], 5, keys={"g": KEYS["g"]}, bounds={"x": (-9, 9)}, per_unit=["g"], max_rows=2
        )
    ),
    "synthetic rows with bins": alone(
        lambda f: f.synthesize(
            ["c", "x", "n"],
            keys={"c": KEYS["c"]},
            bounds={"x": (-9, 9), "n": (0, 2)},
            nulls=["n"],
            max_rows=3,
        )
    ),
    "the two most frequent": alone(
        lambda f: f.group_by("g", keys=KEYS["g"], **LIMITED).top_k("c", 2, KEYS["c"])
    ),
    "intervals": lambda f, p: [
        f.group_by("g", keys=KEYS["g"], **LIMITED)
        .agg(m=dp.median("n", (0, 9)), k=dp.count())
        .release(**p, ci=0.9)
    ],
    "a description": alone(lambda f: f.describe(bounds={"x": (0, 5), "n": (0, 9)}, max_rows=3)),
    "a description, chosen": alone(lambda f: f.describe(["x", "n"], dp.Auto(0.4), **_AUTO)),
    "several quantiles": alone(
        lambda f: f.group_by("g", keys=KEYS["g"], **LIMITED).quantile(
            "n", [0.2, 0.5, 0.7], bounds=(0, 9)
        )
    ),
    "bounds of several quantiles": alone(
        lambda f: f.quantile("x", [0.3, 0.6, 0.9], bounds=dp.Auto(), max_rows=2)
    ),
    "a distribution function beside counts": alone(
        lambda f: f.group_by("g", keys=KEYS["g"], **LIMITED).agg(
            c=dp.cdf("n", [2, 5], bounds=(0, 9)), k=dp.count()
        )
    ),
    "second moments of people": lambda f, p: [
        f.group_by("g", keys=KEYS["g"], **LIMITED)
        .agg(m=dp.mean("x", (0, 5)), s=dp.sum("n", (0, 9)), k=dp.count())
        .release(**p, covers="population")
    ],
    "limits of columns": alone(
        lambda f: f.group_by("g", keys=KEYS["g"], **LIMITED).agg(
            n=dp.count(max_rows=9, max_groups=4),
            m=dp.mean("x", (0, 5), max_rows=1),
            k=dp.count(),
            d=dp.n_unique("n"),
        )
    ),
    "what is declared": alone(
        lambda f: (
            declared(f, **LIMITED)
            .filter(dp.col("n") != 1)
            .group_by("g")
            .agg(
                n=dp.count(),
                m=dp.mean("x"),
                r=dp.ratio(dp.sum("n"), dp.sum("x")),
                t=dp.mode("c"),
                q=dp.median("n"),
            )
        )
    ),
    "what is declared, before and after a row for each unit": alone(
        lambda f: (
            declared(f, max_rows=3)
            .per_unit(x=dp.sum("x"), n=dp.max("n"), g=dp.last("g", by="n"))
            .group_by("g")
            .agg(t=dp.sum("x", bounds=(0, 15)), m=dp.mean("n"))
        )
    ),
    "what a policy locks": alone(
        lambda f: (
            governed(f)
            .fill_null("c", "b")
            .with_columns(x=dp.col("x") * 2)
            .group_by("g", keys=KEYS["g"])
            .agg(
                n=dp.count(),
                m=dp.mean("x"),
                r=dp.sum("n"),
                t=dp.mode("c", keys=["a", "b"]),
                q=dp.median("n"),
            )
        )
    ),
    "what a policy locks, in a row for each unit, with limits to choose": alone(
        lambda f: (
            governed(f)
            .filter(dp.col("n") <= 9)
            .per_unit(x=dp.sum("x"), n=dp.count(), c=dp.last("c", by="n"))
            .group_by("c", keys=["a", "b"], limits=dp.Auto())
            .agg(t=dp.sum("x"), m=dp.mean("n"))
        )
    ),
    "limits of columns beside chosen ones": alone(
        lambda f: grouped(f).agg(m=dp.mean("x", (0, 5), max_rows=2), n=dp.count())
    ),
    "noise of one window": lambda f, p: [
        f.group_by("g", keys=MANY["g"], max_groups=15, max_rows_per_group=2)
        .agg(
            k=dp.count(),
            u=dp.count_units(),
            s=dp.sum("n", (0, 9)),
            t=dp.sum("n", unit_bounds=(0, 9)),
        )
        .release(**p | {"noise": "k-norm"})
    ],
    "noise that groups share": lambda f, p: [
        f.group_by("g", keys=MANY["g"], max_groups=15, max_rows_per_group=2)
        .agg(
            k=dp.count(),
            u=dp.count_units(),
            s=dp.sum("n", (0, 9)),
            t=dp.sum("n", unit_bounds=(0, 9)),
        )
        .release(**p | {"noise": "elliptic"})
    ],
    "noise that columns share": lambda f, p: [
        f.group_by("g", keys=KEYS["g"], max_groups=2, max_rows_per_group=3)
        .agg(k=dp.count(), s=dp.sum("n", (0, 9)), t=dp.sum("x", (-5, -1)), w=dp.sum("n", (-9, 0)))
        .release(**p),
        f.bound(max_rows=4)
        .agg(v=dp.count("x"), s=dp.sum("n", (0, 9)), t=dp.sum("n", unit_bounds=(-9, 0)))
        .release(**p),
    ],
    "noise that moments share": lambda f, p: [
        f.group_by("g", keys=KEYS["g"], max_groups=2, max_rows_per_group=3)
        .agg(k=dp.count(), c=dp.cov("x", "n", bounds={"x": (-5, 5), "n": (0, 9)}))
        .release(**p),
        f.bound(max_rows=4)
        .agg(c=dp.corr("x", "n", bounds={"x": (0, 5), "n": (0, 9)}), s=dp.skew("n", (0, 9)))
        .release(**p),
    ],
    "a row for each unit": alone(
        lambda f: f.per_unit(t=dp.sum("x", bounds=(-3, 9))).mean("t", bounds=dp.Auto())
    ),
    "a batch": batch,
    "parts": parts,
}
PRICES = {
    "epsilon": (lambda: dp.Budget(epsilon=100, delta=0.1, accountant="basic"), {"epsilon": 2.0}),
    "delta": (
        lambda: dp.Budget(epsilon=100, delta=0.1, accountant="basic"),
        {"epsilon": 0.5, "delta": 1e-5},
    ),
    "gaussian": (
        lambda: dp.Budget(epsilon=100, delta=0.1, accountant="basic"),
        {"epsilon": 0.5, "delta": 1e-5, "noise": "gaussian"},
    ),
    "rho": (lambda: dp.Budget(rho=100, delta=0.1), {"rho": 0.5}),
}


def transcript(ask, rows, relation, budget, price, seed, unit="u", *, choosing=False):
    """What is seen of a release with the answers of a seed, and what these answers were about."""
    with given(seed, choosing=choosing) as said:
        frame = dp.protect(rows, unit=unit, budget=budget, neighbors=relation)
        shown = [seen(release) for release in ask(frame, price)]
    history = [(c.query, c.epsilon, c.delta, c.rho, c.status) for c in budget.history()]
    return [*shown, history, str(budget.remaining)], said


def held(name, terms, relation, pairs, *, choosing=False):
    """The largest part of its charge that a release was seen to use."""
    ask, price, most = QUESTIONS[name], PRICES[terms][1], 0.0
    rng = random.Random(f"{name} {terms} {relation}")
    for number in range(pairs):
        tables, budgets = neighbours(rng, relation), [PRICES[terms][0]() for _ in range(2)]
        (here, one), (there, other) = (
            transcript(ask, rows, relation, budget, price, number, choosing=choosing)
            for rows, budget in zip(tables, budgets, strict=True)
        )
        assert here == there, (name, terms, relation, tables)
        charged = budgets[0].spent
        used = loss(one, other, "rho" if terms == "rho" else "epsilon", charged.delta)
        claim = charged.rho if terms == "rho" else charged.epsilon
        assert used <= claim * (1 + 1e-9), (name, terms, relation, used, claim, tables)
        most = max(most, used / claim)
    return most


def cases(name):
    """Every price and relation that a question can be asked with."""
    pure, tables = (
        ("epsilon",),
        ("marginals", "synthetic rows", "synthetic rows of units", "synthetic rows with bins"),
    )
    without = dict.fromkeys(tables, pure) | {
        "tune": ("delta", "gaussian"),
        "noise that groups share": pure,
    }
    without["limits under which groups share noise"] = pure
    terms = [t for t in PRICES if t not in without.get(name, ())]
    terms = [
        t
        for t in terms
        if t == "epsilon" or name not in ("noise that columns share", "noise that moments share")
    ]
    elliptic = ("noise that groups share", "limits under which groups share noise")
    relations = ["add-remove"] if name in ("parts", *elliptic) else ["add-remove", "replace"]
    return [(t, relation) for t in terms for relation in relations]


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", QUESTIONS)
def test_nothing_is_told_but_answers_and_they_cost_what_is_charged(name):
    """Of each question every sixth price and relation, others for the next question;
    all of them are asked at length.

    Where the first pair uses less than half of the charge, more are drawn until one uses more.
    """
    asked = cases(name)[list(QUESTIONS).index(name) % 6 :: 6] or cases(name)[:1]
    most = max(held(name, *case, pairs=1) for case in asked)
    assert most > 0.5 or any(held(name, *case, pairs=4) > 0.5 for case in cases(name)), (
        "the check has no power here"
    )


@pytest.mark.long
@pytest.mark.parametrize("name", QUESTIONS)
def test_nothing_is_told_but_answers_and_they_cost_what_is_charged_at_length(name):
    # of its distinct values others have most; without them it is 1
    used = 0.8 if name == "limits of columns" else 0.9
    assert max(held(name, *case, pairs=20) for case in cases(name)) > used


@pytest.mark.one_in(2)
@pytest.mark.parametrize("terms", PRICES)
def test_the_same_where_people_are_declared_to_have_some_rows(terms):
    ask = alone(
        lambda f: f.group_by("g", keys=KEYS["g"]).agg(s=dp.sum("x", bounds=dp.Auto()), n=dp.count())
    )
    rng, most = random.Random(f"declared {terms}"), 0.0
    for seed in range(5):
        rest, few = (
            rows_of(rng, None, rng.choice([0, 9])),
            heavy(None, [0, rng.choice([0, 1])], "b", 1, 3),
        )
        found = [
            transcript(
                ask,
                table(rows),
                "add-remove",
                PRICES[terms][0](),
                PRICES[terms][1],
                seed,
                dp.Rows(6),
            )
            for rows in (rest, rest + few)
        ]
        (here, one), (there, other) = found
        assert here == there
        charged = PRICES[terms][1].get("epsilon", PRICES[terms][1].get("rho"))
        used = loss(
            one, other, "rho" if terms == "rho" else "epsilon", PRICES[terms][1].get("delta", 0.0)
        )
        assert used <= charged * (1 + 1e-9)
        most = max(most, used / charged)
    assert most > 0.5


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [name for name in QUESTIONS if name.startswith(("limits", "bounds", "tune"))]
)
def test_the_same_where_limits_and_bounds_are_chosen_as_they_are(name):
    assert max(held(name, *case, pairs=3, choosing=True) for case in cases(name)) > 0.1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_histograms_beside_keys_that_nobody_listed_cost_their_share(relation):
    """The second stage shows which keys there are, so it is not compared."""
    rng, most = random.Random("keys"), 0.0
    for seed in range(12):
        found = []
        for rows in neighbours(rng, relation):
            with given(seed) as said:
                query = (
                    dp.protect(rows, unit="u", neighbors=relation)
                    .group_by("g", **_AUTO)
                    .agg(n=dp.count())
                )
                chosen = choose(
                    question_of(query), offer("epsilon", Fraction(2), Fraction(1, 10**6), "auto")
                )[2]
            found.append((said, chosen))
        (one, here), (other, there) = found
        assert here == there
        most = max(most, loss(one, other, "epsilon", 0.0) / (2 * 0.1))
    assert 0.9 < most <= 1 + 1e-9
