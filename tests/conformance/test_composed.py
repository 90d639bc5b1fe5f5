"""Operations that are made of others: what is declared of their size and bounds,
and the answers of Polars itself.
"""

import datetime as dt
import itertools
import random
import zoneinfo

import narwhals as nw
import polars as pl
import pytest
from engines import rows_of
from reference import Typed, by_column, value

import dpframe as dp
from dpframe.errors import InvalidArgument, WrongType
from dpframe.plan import Bounds, Call, ColumnDomain, Name, composed
from dpframe.plan.expressions.composed import COMPOSED
from dpframe.plan.operations import OPERATIONS, Applied
from inside import node_of, step_of

ROWS = pl.DataFrame(
    {
        "r": list(range(8)),
        "a": [7, -7, 7, -7, 0, None, 2**53 + 1, 5],
        "b": [2, 2, -2, -2, 3, 1, 3, 0],
        "s": ["abcdef", "ab", "", None, "é👩x", "-7", "+12", "31.01.2020"],
        "t": [
            *(
                dt.datetime(2020, 1, 31, 5, 6, 7),
                dt.datetime(1969, 12, 31, 23, 59, 59),
                None,
                dt.datetime(2020, 2, 29),
            ),
            *(
                dt.datetime(1970, 1, 5),
                dt.datetime(1999, 12, 31, 12),
                dt.datetime(2024, 3, 31),
                dt.datetime(1583, 1, 1),
            ),
        ],
        "u": [dt.datetime(2020, 2, 1)] * 7 + [None],
        "x": [True, True, False, False, None, True, None, False],
        "y": [True, False, True, False, True, None, None, False],
    }
)
A, B, S, T, U, X, Y = (pl.col(name) for name in "abstuxy")
D, E = T.dt.date(), U.dt.date()
ALIKE = {
    "quotient": A // B,
    "remainder": A % B,
    "quotient of a constant": 100 // B,
    "exclusive": X ^ Y,
    "same": A.eq_missing(B),
    "another": X.ne_missing(Y),
    **{closed: A.is_between(-7, 7, closed=closed) for closed in ("both", "left", "right", "none")},
    "chain": pl.when(A > 5).then(1).when(A > 0).then(B).when(X).then(3).otherwise(A),
    "first": pl.coalesce(A, B, 9),
    "sum of texts": S + "x" + S,
    "joined": pl.concat_str(S, pl.lit("a"), separator=", "),
    **{f"slice {x}": S.str.slice(*x) for x in ((-1,), (-3,), (-3, 2), (-5, 2), (-100, 98))},
    **{f"head {n}": S.str.head(n) for n in (-1, -3, -100, 2)},
    **{f"tail {n}": S.str.tail(n) for n in (-1, -3, 0, 2, 100)},
    "zeros": S.str.zfill(4),
    "replaced": S.replace({"ab": "x", None: "none"}),
    "replaced strictly": A.replace_strict({7: "p", -7: "m"}, default="other"),
    "date": S.str.to_date("%d.%m.%Y", strict=False),
    "time": (S + " 05:06").str.to_datetime("%d.%m.%Y %H:%M", strict=False),
    "days": D - E,
    "whole days": (D - E).dt.total_days(),
    "between": T - U,
    **{
        f"total {unit}": getattr((T - U).dt, f"total_{unit}")()
        for unit in ("days", "hours", "minutes", "seconds")
    },
    "later": T + pl.duration(days=3, hours=5),
    "earlier": T - dt.timedelta(days=400),
    "later day": D + pl.duration(days=3),
    **{
        f"offset {by}": T.dt.offset_by(by)
        for by in ("3d", "-2h", "2w", "1mo", "-1mo", "13mo", "-1q", "4y")
    },
    **{
        f"window {e}": T.dt.truncate(e)
        for e in ("1h", "1w", "2w", "3w", "1mo", "2mo", "5mo", "1q", "2q", "1y", "3y")
    },
    "offset of a date": D.dt.offset_by("-1mo"),
    "window of a date": D.dt.truncate("2mo"),
    "month end": T.dt.month_end(),
    "second": T.dt.second(),
    "zone": T.dt.convert_time_zone("Europe/Berlin"),
    "clock": T.dt.replace_time_zone("Asia/Tokyo"),
    "hours of a zone": T.dt.convert_time_zone("Europe/Berlin").dt.truncate("1h"),
    "months of a zone": T.dt.convert_time_zone("Europe/Berlin")
    .dt.truncate("1mo")
    .dt.replace_time_zone(None),
    "matches": S.str.contains("(?i)A|^-[0-9]$"),
    "group": S.str.extract("([a-z])([^a])", 2),
    "match": S.str.extract("a|ab", 0),
    "many": S.str.count_matches("[a-c0-9]"),
    "many, literally": S.str.count_matches(".", literal=True),
    "matches replaced": S.str.replace_all("[a-c]+|[0-9]", "+"),
    "first match replaced": S.str.replace("[a-c]|[0-9]", "+"),
    "stripped": S.str.strip_chars("a-+x"),
    "stripped of white space": ("\u3000 " + S + "\n\x1f").str.strip_chars(),
    "start stripped": S.str.strip_chars_start("a-"),
    "end stripped": S.str.strip_chars_end("0f"),
    "without a prefix": S.str.strip_prefix("ab"),
    "without a suffix": S.str.strip_suffix("ef"),
}


@pytest.mark.parametrize("typed", ALIKE)
def test_the_answers_are_those_of_polars(typed):
    frame = dp.protect(ROWS, unit=dp.Rows(1)).with_columns(ALIKE[typed].alias("made"))
    native = ROWS.lazy().select("r", made=ALIKE[typed])
    want = native.collect()["made"]
    scale = 1000 if getattr(want.dtype, "time_unit", "") == "us" else 1
    want = (want.to_physical() if want.dtype.is_temporal() else want).to_list()
    want = [None if x is None else x * scale for x in want]
    assert rows_of(frame, ["made"])["made"] == want


def test_quotients_and_remainders_are_exact():
    rng = random.Random(1)
    near = [1, 3, 2**53 + 1, 2**62, 9 * 10**18 - 1]
    numbers = [sign * x for x in near for sign in (1, -1)]
    pairs = list(itertools.product([0, *numbers], [0, *numbers]))
    pairs += [
        (
            rng.randint(-(2 ** rng.randint(1, 62)), 2**62),
            rng.randint(-(2 ** rng.randint(1, 62)), 2**20),
        )
        for _ in range(150)
    ]
    pairs += [
        (b * q + r, b)
        for b in numbers
        for q in (-3, -1, 1, 2)
        for r in (-1, 0, 1)
        if abs(b * q + r) < 9 * 10**18
    ]
    table = step_of(dp.protect(pl.DataFrame({"a": [1], "b": [1]}), unit=dp.Rows(1))).table
    for operation, rule in (
        ("floor_divide_by", lambda a, b: a // b),
        ("modulo_by", lambda a, b: a % b),
    ):
        node = composed(Call(operation, (Name("a"), Name("b"))), table)
        for a, b in pairs:
            row = [Typed(nw.Int64(), a), Typed(nw.Int64(), b)]
            assert value(node, dict(zip("ab", row, strict=True))) == by_column(rule)(row, {}), (
                operation,
                a,
                b,
            )


@pytest.mark.parametrize("operation", ["floor_divide_by", "modulo_by"])
def test_bounds_of_quotients_hold(operation):
    by_hand = {"floor_divide_by": lambda a, b: a // b, "modulo_by": lambda a, b: a % b}[operation]
    ends = list(itertools.combinations_with_replacement(range(-4, 5), 2))
    for top, by in itertools.product(ends, ends):
        domains = [ColumnDomain(nw.Int64(), False, Bounds(*limits)) for limits in (top, by)]
        known = OPERATIONS[operation].rule(Applied("", domains, {}))
        values = [
            by_hand(a, b) for a in range(top[0], top[1] + 1) for b in range(by[0], by[1] + 1) if b
        ]
        assert known.nullable == (by[0] <= 0 <= by[1])
        assert all(known.bounds.lower <= x <= known.bounds.upper for x in values), (
            top,
            by,
            known.bounds,
        )


OPTIONS = {
    "str.zfill": {"length": 100},
    "concat_str": {"separator": ", "},
    "str.strip_prefix": {"literal": "ab"},
    "str.strip_suffix": {"literal": "ab"},
    "str.count_matches": {"pattern": "ab"},
    "dt.convert_time_zone": {"zone": "Asia/Tokyo"},
    "dt.replace_time_zone": {"zone": "Asia/Tokyo"},
    "dt.truncate": {"every": "1d"},
    "str.to_date": {"format": node_of(dp.col("s").str.to_date("%d.%m.%Y")).options[0][1]},
    "str.to_datetime": {
        "format": node_of(dp.col("s").str.to_datetime("a%db%mc%Yd%He%Mf%Sg")).options[0][1]
    },
    **{f"dt.total_{unit}": {"unit": unit[0]} for unit in ("days", "hours", "minutes", "seconds")},
}


# whose numbers are no composition
@pytest.mark.parametrize("operation", sorted(COMPOSED.keys() - {"add", "subtract"}))
def test_an_operation_is_no_larger_than_its_declaration(operation):
    """So an expression that can be typed can be computed:
    limits of its depth and size hold for what it is made of.
    """
    zoned = dt.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
    rows = pl.DataFrame({"a": [1], "b": [1], "s": ["x"], "z": [zoned], "d": [dt.timedelta(1)]})
    table = step_of(dp.protect(rows, unit=dp.Rows(1))).table
    families = {"str.": "s", "concat_str": "s", "dt.total": "d", "dt.": "z"}
    column = next(
        (column for start, column in families.items() if operation.startswith(start)), "a"
    )
    args = (Name(column),) if operation.startswith(("str.", "dt.")) else (Name(column), Name("b"))
    call = Call(operation, args, tuple(OPTIONS.get(operation, {}).items()))
    made, declared = composed(call, table), OPERATIONS[operation]
    assert made.depth <= declared.depth
    assert len(_nodes(made)) <= declared.size


def _nodes(node):
    """The operations of an expression, each once."""
    return {id(node)}.union(*map(_nodes, node.args)) if isinstance(node, Call) else set()


def test_four_quotients_stand_within_each_other_and_five_need_a_column_of_their_own():
    four = dp.col("a") // dp.col("b") // dp.col("b") % dp.col("a") // dp.col("b")
    rows = pl.DataFrame({"r": [0, 1, 2], "a": [100, -7, None], "b": [7, 2, 1]})
    frame = dp.protect(rows, unit=dp.Rows(1)).with_columns(
        x=four, y=dp.col("a") / dp.col("b") / dp.col("b")
    )
    assert rows_of(frame, ["x", "y"]) == {
        "x": [100 // 7 // 7 % 100 // 7, -1, None],
        "y": [100 / 7 / 7, -1.75, None],
    }
    with pytest.raises(InvalidArgument, match=r"with_columns\(part=\.\.\.\)"):
        four // dp.col("b")


def test_a_chain_of_conditions_is_one_operation():
    chain = dp.when(dp.col("a") == 0).then(0)
    for i in range(1, 1000):
        chain = chain.when(dp.col("a") == i).then(i)
    rows = pl.DataFrame({"r": [0, 1, 2], "a": [999, 3, -1]})
    frame = dp.protect(rows, unit=dp.Rows(1)).with_columns(x=chain.otherwise(-5))
    assert rows_of(frame, ["x"])["x"] == [999, 3, -5]
    assert node_of(chain).depth == 2


@pytest.mark.parametrize(
    "typed",
    [
        dp.col("a") ^ 1,
        dp.col("t") + dp.col("t"),
        dp.duration(days=1) - dp.col("t"),
        dp.col("s") - "x",
        2.5 // dp.col("a"),
    ],
)
def test_what_has_no_meaning_is_refused(typed):
    with pytest.raises(WrongType):
        dp.protect(ROWS, unit=dp.Rows(1)).with_columns(x=typed)
