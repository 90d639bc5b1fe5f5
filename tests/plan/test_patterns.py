"""Text methods that take patterns in Polars or pandas:
what is accepted means the same there, the rest is refused.
"""

import random
import re
from itertools import product

import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.engine.stages import lower
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.plan import Pattern
from dpframe.plan.nodes import text
from inside import node_of, step_of

SIGNS = r"\.^$*+?{}[]()|"
TEXTS = [
    "a",
    "ab",
    "aab",
    "b-a",
    "a.b",
    "A",
    "ba ab",
    "a,b",
    "%a_",
    "",
    *(f"a{sign}b" for sign in SIGNS),
]
S, s = pl.col("s"), dp.col("s")

# By name: the method of one text, and the text that it is typed with.
METHODS = {
    "contains": lambda e, x, **said: e.str.contains(x, **said),
    "replace": lambda e, x, **said: e.str.replace(x, "z", **said),
    "replace_all": lambda e, x, **said: e.str.replace_all(x, "z", **said),
    "split": lambda e, x, **said: e.str.split(f"{x},", **said).list.get(0),
}
OF_POLARS = ["contains", "replace", "replace_all"]  # in Polars split takes no pattern


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("method", METHODS)
def test_a_sign_of_a_pattern_is_refused_with_the_lines_to_type(method, sign):
    with pytest.raises(UnsupportedOperation, match="signs of a pattern") as refused:
        METHODS[method](s, f"a{sign}b")
    line = re.search(r"meant, type (\.str.*literal=True\))\.$", str(refused.value))[1]
    typed = eval(f"s{line}", {"s": s})
    typed = typed.list.get(0) if method == "split" else typed
    assert text(node_of(typed)) == text(node_of(METHODS[method](s, f"a{sign}b", literal=True)))
    assert (line.replace("literal=", "regex=") in str(refused.value)) == (method != "split")


@pytest.mark.parametrize(
    "pattern",
    [
        "a|b",
        "^a",
        "b$",
        "a.b",
        "a?b",
        r"\.|\*",
        "[^a-z]+",
        "(?i)AB",
        "a{2}",
        r"\s",
        "(a)b",
        r"\d*a",
    ],
)
@pytest.mark.parametrize("method", OF_POLARS)
def test_a_pattern_means_what_it_means_in_polars_and_python(method, pattern):
    table = pl.DataFrame({"r": range(len(TEXTS)), "s": TEXTS})
    frame = dp.protect(table, unit=dp.Rows(1))
    for typed in (METHODS[method](S, pattern), METHODS[method](s, pattern, regex=True)):
        assert (
            made_of(frame.with_columns(x=typed))
            == table.select(METHODS[method](S, pattern)).to_series().to_list()
        )
    own, times = re.compile(pattern), int(method == "replace")
    want = [
        own.search(x) is not None if method == "contains" else own.sub("z", x, times) for x in TEXTS
    ]
    assert made_of(frame.with_columns(x=METHODS[method](s, pattern, regex=True))) == want


def made_of(frame: dp.PrivateFrame) -> list[object]:
    """The cells of the column x, in order."""
    names = {name: column.id for name, column in step_of(frame).table.columns.items()}
    rows = lower(step_of(frame), set(names.values())).to_native().collect()
    return rows.sort(names["r"])[names["x"]].to_list()


CERTAIN = {
    **dict.fromkeys(
        [
            "[0-9]+",
            "id ([0-9]+)",
            "^([^-]+)-",
            "(?:cat|dog)s?",
            "(?:ab)*c",
            "a{2,3}b",
            r"(\w+)@(\w+)",
        ],
        True,
    ),
    **dict.fromkeys(
        ["a|ab", "a?a", "(.*)x", "a+?", "(?:a+)+", "(?:a{2,3}){1,2}", "(?:^|-)0", "(?:b?|a)c"],
        False,
    ),
}


@pytest.mark.parametrize("pattern", CERTAIN)
def test_which_patterns_are_certain(pattern):
    assert Pattern(pattern).certain == CERTAIN[pattern]


def test_a_certain_pattern_has_no_longer_match_than_the_one_that_is_tried_first():
    """On all texts of three letters up to a length; of other patterns, some have a longer one."""
    chance, texts = (
        random.Random(1),
        ["".join(x) for n in range(6) for x in product("abc", repeat=n)],
    )
    longer = {True: 0, False: 0}
    for typed in {part_of_chance(chance, 3) for _ in range(400)}:
        try:
            certain = Pattern.read(typed, "x").certain
        except UnsupportedOperation:
            continue
        own = re.compile(typed)
        for x in texts:
            found = own.search(x)
            most = max(
                (
                    end
                    for end in range(len(x) + 1)
                    if found and own.fullmatch(x, found.start(), end)
                ),
                default=0,
            )
            longer[certain] += found is not None and most > found.end()
    assert longer[True] == 0 < longer[False]


def part_of_chance(chance, depth):
    """A pattern of three letters."""
    if not depth:
        return chance.choice(["a", "b", "c", "[ab]", "[^a]"])
    one, other = (part_of_chance(chance, chance.randrange(depth)) for _ in range(2))
    times = chance.choice(["", "?", "*", "+", "{2}", "{1,2}", "{2,3}", "*?"])
    return chance.choice(
        [f"{one}{other}", f"(?:{one}|{other})", f"(?:{one}){times}", f"{one}(?:{other}){times}"]
    )


OUTSIDE = {
    "a**": "repetition of a repetition",
    "a*+": "repetition of a repetition",
    "(?:a*)*": "may be empty",
    "^*": "may be empty",
    "(?:a?){2}": "may be empty",
    "(a": r"\(",
    "a)": r"\)",
    "[a": "too early",
    "[]a]": "type",
    "[[:alpha:]]": "Sets are not within each other",
    "[a&&b]": "Sets are not within each other",
    "[z-a]": "later one",
    "a|": "empty",
    "()": "empty",
    "(?P<x>a)": r"\(\?",
    "(?=a)": r"\(\?",
    "a(?i)b": r"\(\?",
    r"\B.": "not .B",
    r"(a)\1": "not .1",
    r"\pL": "not .p",
    r"\Aa": "not .A",
    "{a}": "sign",
    "a{101}": "up to 100",
    "a{3,2}": "up to 100",
    "(?:a{100}){100}": "1,000",
    "(?i)é": "ASCII",
    r"[^\d\D]": "no characters",
    "(" * 21 + "a" + ")" * 21: "20 groups",
}


@pytest.mark.parametrize("pattern", OUTSIDE)
def test_what_engines_read_differently_is_refused_by_name(pattern):
    with pytest.raises(UnsupportedOperation, match=OUTSIDE[pattern]):
        s.str.contains(pattern, regex=True)


@pytest.mark.parametrize(
    "typed", [S.str.contains(r"\w+"), S.str.extract(r"\b(a)"), S.str.replace(r"\\\W", "")]
)
def test_words_of_all_scripts_in_an_expression_of_polars_are_refused(typed):
    frame = dp.protect(pl.DataFrame({"u": [1], "s": ["a"]}), unit="u")
    with pytest.raises(UnsupportedOperation, match="all scripts"):
        frame.with_columns(x=typed)


@pytest.mark.parametrize("pattern", ["a|(b)", "(a)?b", "(a)+", "a", "(?:a)", "(a){2}"])
def test_a_group_that_is_not_in_every_match_is_refused(pattern):
    with pytest.raises(InvalidArgument, match="group_index=0"):
        s.str.extract(pattern)


def test_matches_of_no_characters_are_neither_counted_nor_replaced():
    for call in (s.str.count_matches, lambda x, **said: s.str.replace(x, "z", **said)):
        for pattern in ("a*", "^", "(?:a|b?)"):
            with pytest.raises(InvalidArgument, match="no characters"):
                call(pattern, regex=True)


def test_groups_are_not_put_back_in():
    for value in ("$1", "${1}", r"\1"):
        with pytest.raises(UnsupportedOperation, match="put groups"):
            s.str.replace("(a)", value, regex=True)


@pytest.mark.parametrize("part", [*TEXTS[:9], *SIGNS])
def test_what_is_accepted_is_the_same_in_polars_and_pandas(part):
    """Each method either refuses a text, or no library would read it as a pattern."""
    rows, series = pl.Series("s", TEXTS), pd.Series(TEXTS, dtype=object)
    same = {
        "contains": ([part in x for x in TEXTS], rows.str.contains, series.str.contains),
        "replace_all": (
            [x.replace(part, "z") for x in TEXTS],
            rows.str.replace_all,
            series.str.replace,
        ),
        "split": ([x.split(part) for x in TEXTS], rows.str.split, series.str.split),
    }
    accepted = 0
    for method, (literally, polars, pandas) in same.items():
        said = ("z",) if method == "replace_all" else ()
        try:
            getattr(s.str, method)(part, *said)
        except UnsupportedOperation:
            continue
        accepted += 1
        more = {"regex": True} if method == "replace_all" else {}
        assert polars(part, *said).to_list() == literally
        assert pandas(part, *said, **more).tolist() == literally
    expected = 1 if part in SIGNS else 0 if set(part) & set(SIGNS) else 3
    assert accepted == expected, "split takes any single sign literally, as both libraries do"


def test_a_part_of_a_match_in_the_new_text_is_refused():
    for call in (s.str.replace, s.str.replace_all):
        with pytest.raises(UnsupportedOperation, match=r"'a', '\$1', literal=True"):
            call("a", "$1")
        call("a", "$1", literal=True)


def test_beginnings_and_ends_are_literal_everywhere():
    for sign in SIGNS:
        s.str.starts_with(sign)
        s.str.ends_with(sign)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("literal", [None, 1, "yes", 0])
def test_literal_is_true_or_false(method, literal):
    with pytest.raises(InvalidArgument, match="literal="):
        METHODS[method](s, "a", literal=literal)


def test_the_released_number_is_that_of_the_characters():
    """6,054 rows match the pattern of one city or another, and none holds these characters."""
    table = pl.DataFrame({"u": range(900), "s": ["Bonn", "Kiel", "Ulm"] * 300})
    frame = dp.protect(table, unit="u", budget=dp.Budget(epsilon=5000))
    with pytest.raises(UnsupportedOperation, match=r"'Bonn\|Kiel', literal=True"):
        frame.filter(dp.col("s").str.contains("Bonn|Kiel"))
    found = frame.filter(dp.col("s").str.contains("Bonn|Kiel", regex=True)).count(max_rows=1)
    assert abs(found.release(epsilon=500).value - 600) <= 1
    made = frame.filter(dp.col("s").str.contains("Bonn|Kiel", literal=True)).count(max_rows=1)
    assert abs(made.release(epsilon=500).value) <= 1
    either = dp.col("s").str.contains("Bonn") | dp.col("s").str.contains("Kiel")
    assert abs(frame.filter(either).count(max_rows=1).release(epsilon=500).value - 600) <= 1
