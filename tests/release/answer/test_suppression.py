"""What is hidden beside small numbers: no reader finds a hidden number
within less than the promised width.
"""

import csv
import io
import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import linprog

import dpframe as dp
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.release.answer import OTHER, Reader, hidden_in_tree, nonnegative
from dpframe.release.answer.hidden_tables import _Lines, hidden_in_table
from dpframe.release.answer.rounding import rounded_table
from dpframe.release.answer.table_lines import TableLines, with_margins
from dpframe.release.kinds.hierarchy.agreeing import Agreeing, whole_levels
from dpframe.theory.formulas.trees import Levels
from hidden_numbers import (
    random_groups,
    random_table,
    random_tree,
    table_equations,
    tree_equations,
    widths,
)

TABLE = pl.DataFrame({"age": list("aaaabbbbcc") * 30, "town": list("xxyyxxyzxx") * 30})
KEYS = {"age": ["a", "b", "c"], "town": ["x", "y", "z"]}


class Former(Reader):
    """A reader as the rule before took them to be:
    one who knows nothing of signs, of limits and of marks.
    """

    def room(self, values, small, *, told):
        return np.full(values.shape, self.width), np.full(values.shape, self.width)


def narrow_in_table(cells, reader, known, groups=None):
    """How many hidden numbers of a table are narrower than promised, how many
    are known, how many are hidden.

    A margin of a line in which every cell is missing adds up nothing, so everybody knows it.
    """
    values, codes = with_margins(cells, groups), hidden_in_table(cells, reader, groups)
    there = np.isfinite(values)
    of_none = with_margins(np.where(np.isfinite(cells), 1.0, np.nan), groups) == 0
    codes = np.where(of_none, 0, codes)
    values = np.where(there, values, 0.0)
    small = there & (values < known.below) & ~of_none
    assert np.all(codes[small] > 0)
    assert not codes[~there].any()
    told = not (codes[small] == OTHER).any()
    equations = table_equations(*cells.shape, np.isfinite(cells), groups)
    found = widths(
        equations,
        values.ravel(),
        codes.ravel(),
        known.below,
        known.floor,
        whole=known.whole,
        told=told,
    )
    return np.array([(found < known.width - 1e-6).sum(), (found < 1e-6).sum(), len(found)])


def lines_of(full, small, reader):
    places = TableLines.of(*np.subtract(full.shape, 1))
    return _Lines.of(full, small, np.ones_like(small), reader, places, told=True)


def narrow_in_tree(tree, values, reader, known):
    """How many hidden numbers of a tree are narrower than promised, how many
    are known, how many are hidden.
    """
    codes = hidden_in_tree(tree, values, reader)
    total = np.zeros(3, int)
    for cell in range(values[0].shape[1]):
        numbers = np.concatenate([level[:, cell] for level in values])
        code = np.concatenate([level[:, cell] for level in codes])
        assert np.all(code[numbers < known.below] > 0)
        told = not any(
            (c[v < known.below] == OTHER).any() for c, v in zip(codes, values, strict=True)
        )
        found = widths(
            tree_equations(tree),
            numbers,
            code,
            known.below,
            known.floor,
            whole=known.whole,
            told=told,
        )
        total += [(found < known.width - 1e-6).sum(), (found < 1e-6).sum(), len(found)]
    return total


@pytest.mark.parametrize("number", [18, pytest.param(400, marks=pytest.mark.long)])
def test_every_hidden_number_of_a_table_is_as_wide_as_promised(number):
    rng, total, control = np.random.default_rng(0), 0, 0
    for i in range(number):
        reader = Reader(float(rng.choice([2, 3, 5, 10, 20])), 0.0, whole=True)
        cells = random_table(rng, i % 3)
        total += narrow_in_table(cells, reader, reader)
        if i < 60:
            control += narrow_in_table(cells, Former(reader.below, 0.0, whole=True), reader)
    assert total[2] > 8 * number
    assert total[0] == total[1] == 0
    # the control: closed walks alone leave numbers narrow, and some known
    assert control[0] > number / 5
    assert control[1] > 0


@pytest.mark.parametrize("number", [8, pytest.param(100, marks=pytest.mark.long)])
def test_every_hidden_number_of_a_tree_is_as_wide_as_promised(number):
    rng, total, control = np.random.default_rng(1), 0, 0
    for i in range(number):
        reader = Reader(float(rng.choice([2, 3, 5, 10, 20])), 0.0, whole=True)
        tree, values = random_tree(rng, i % 2, 1 + i % 2)
        total += narrow_in_tree(tree, values, reader, reader)
        control += narrow_in_tree(tree, values, Former(reader.below, 0.0, whole=True), reader)
    assert total[2] > 3 * number
    assert total[0] == total[1] == 0
    assert control[0] > number / 5


@pytest.mark.parametrize("floor", [0.0, -math.inf])
@pytest.mark.parametrize("whole", [True, False])
def test_the_promise_holds_for_numbers_as_drawn_and_where_cells_are_missing(floor, whole):
    rng, total = np.random.default_rng(2), 0
    for i in range(15):
        cells = random_table(rng, i % 3)
        if floor:
            cells += rng.integers(-4, 5, cells.shape)
        if not whole:
            cells += rng.random(cells.shape)
        if i % 2 and min(cells.shape) > 1:
            cells[np.arange(min(cells.shape)), np.arange(min(cells.shape))] = (
                np.nan
            )  # one in a line, so no line is empty
        reader = Reader(7.5, floor, whole=whole)
        total += narrow_in_table(cells, reader, reader)
    assert total[2] > 100
    assert total[0] == 0


def test_numbers_that_are_wide_by_flows_through_one_point_are_wide_by_their_own():
    rng, sure = np.random.default_rng(3), 0
    for kind in range(3):
        cells = rng.poisson(1, (30, 25)) if kind == 0 else rng.poisson(rng.gamma(0.5, 20, (30, 25)))
        full = with_margins(cells * 1.0 * (1 + 4 * (kind == 2)))
        small = full < 10
        lines = lines_of(full, small, Reader(10, 0.0, whole=True))
        wide = np.argwhere(lines._surely_wide())
        for row, column in wide[:: max(len(wide) // 60, 1)].tolist():
            assert not lines._missing(row, column)
        sure += len(wide)
    assert sure > 1000


def test_where_marks_alone_would_tell_everything_there_is_one_mark():
    # below 3 and at least 3, these marks fit no other whole numbers
    cells = np.array([[1.0, 1.0], [2.0, 2.0]])
    codes = hidden_in_table(cells, Reader(3, 0.0, whole=True))
    assert set(codes.ravel().tolist()) <= {0, OTHER}
    tree = Levels((np.array([0]),), 2)
    codes = hidden_in_tree(
        tree, [np.array([[2.0]]), np.array([[1.0], [1.0]])], Reader(2, 0.0, whole=True)
    )
    assert [level.ravel().tolist() for level in codes] == [[OTHER], [OTHER, OTHER]]


def test_few_more_numbers_are_hidden_than_are_needed():
    """On 2 to 3 rows and columns the fewest are found by trying all sets:
    no more than a tenth beyond these.
    """
    rng, ours, fewest = np.random.default_rng(5), 0, 0
    for i in range(20):
        cells = random_table(rng, i % 3)[:2, :3]
        values, reader = with_margins(cells), Reader(10, 0.0, whole=True)
        small = values < 10
        codes = hidden_in_table(cells, reader)
        if (codes[small] == OTHER).any():
            continue
        ours += int((codes > 0).sum())
        fewest += int(small.sum()) + fewest_more(values, small, reader, int((codes == OTHER).sum()))
    assert fewest <= ours <= 1.1 * fewest


def fewest_more(values, small, reader, most):
    shown = np.argwhere(~small).tolist()
    for number in range(most):
        for more in itertools.combinations(shown, number):
            lines = lines_of(values, small, reader)
            lines._hide(more)
            if not any(lines._missing(*step) for step in np.argwhere(lines.hidden).tolist()):
                return number
    return most


def test_as_few_cells_as_one_more_pair_of_lines_are_hidden():
    cells = np.array([[3.0, 50, 60], [40, 60, 70], [80, 90, 99]])
    codes = hidden_in_table(cells, Reader(10, 0.0, whole=True))
    assert (codes > 0).sum() == 4
    assert not codes[-1].any()
    assert not codes[:, -1].any()


@pytest.mark.parametrize("number", [12, pytest.param(300, marks=pytest.mark.long)])
def test_every_hidden_subtotal_is_as_wide_as_promised_too(number):
    """The control hides a subtotal only where it adds up hidden numbers, as the rule before did."""
    rng, total, control = np.random.default_rng(11), 0, 0
    for i in range(number):
        cells, floor = random_table(rng, i % 3), 0.0 if i % 2 else -math.inf
        if i % 4 == 1:
            cells[rng.random(cells.shape) < 0.1] = np.nan
        groups = random_groups(rng, len(cells))
        reader = Reader(float(rng.choice([2, 3, 5, 10, 20])), floor, whole=True)
        total += narrow_in_table(cells, reader, reader, groups)
        codes = hidden_in_table(cells, reader)
        tells = np.array(
            [(codes[:-1][groups == group] > 0).any(axis=0) for group in range(max(groups) + 1)]
        )
        codes = np.vstack([codes[:-1], np.where(tells, OTHER, 0), codes[-1:]])
        values = np.nan_to_num(with_margins(cells, groups))
        equations = table_equations(*cells.shape, np.isfinite(cells), groups)
        found = widths(equations, values.ravel(), codes.ravel(), reader.below, floor, told=False)
        control += int((found < reader.width - 1e-6).sum())
    assert total[2] > 8 * number
    assert total[0] == total[1] == 0
    assert control > number / 3


@pytest.mark.parametrize("base", [5, 10])
def test_multiples_are_as_wide_as_promised_for_whoever_knows_that_they_are_multiples(base):
    """Widths are counted in the base, in which the numbers are whole;
    the promise is half of the limit in ones.
    """
    rng, hidden = np.random.default_rng(7), 0
    for i in range(12):
        below = float(base + rng.integers(1, 40))
        cells, reader = (
            np.rint(random_table(rng, i % 3) * 3 / base),
            Reader(below, 0.0, whole=True).in_base(base),
        )
        assert reader.width * base >= below // 2
        groups = random_groups(rng, len(cells)) if i % 2 else None
        narrow = narrow_in_table(cells, reader, reader, groups)
        assert narrow[0] == 0
        hidden += narrow[2]
    assert hidden > 40


# Rounded numbers beside hidden ones


def another(rng, equations, values, hidden, floor):
    """Whole numbers that differ from these in hidden places alone and fulfil the
    equations; None if there are none.

    An end of a linear program over a network has whole coordinates.
    """
    at = np.flatnonzero(hidden)
    if not len(at):
        return None
    ends = np.column_stack([np.maximum(floor - values[at], -9), np.full(len(at), 9)])
    found = linprog(
        rng.normal(size=len(at)), A_eq=equations[:, at], b_eq=np.zeros(len(equations)), bounds=ends
    )
    other = values.astype(float)
    other[at] += np.rint(found.x)
    return other if np.abs(found.x).max() > 0.5 else None


@pytest.mark.parametrize("base", [1, 5, 10])
def test_whatever_fits_a_rounded_table_would_have_been_published_as_it(base):
    """So whoever knows how tables are rounded excludes no hidden numbers: see `Numbers.moved`.

    The control: of the numbers before rounding, a reader who sees the shown ones excludes some.
    """
    rng, tried, excluded = np.random.default_rng(12), 0, 0
    for i in range(40):
        cells = random_table(rng, i % 3) + rng.random() * (i % 2)
        groups = random_groups(rng, len(cells)) if i % 4 < 2 else None
        whole = rounded_table(cells, base, groups) / base
        shown = with_margins(whole, groups)
        assert np.abs(shown * base - with_margins(cells, groups)).max() < base + 1e-6
        hidden = hidden_in_table(whole, Reader(11.0, 0.0, whole=True).in_base(base), groups) > 0
        equations = table_equations(*cells.shape, None, groups)
        other = another(rng, equations, shown.ravel(), hidden.ravel(), 0)
        if other is None:
            continue
        other = other.reshape(shown.shape)[: len(cells), :-1]
        again = rounded_table(nonnegative(other * base), base, groups)
        assert np.array_equal(again, other * base)
        assert np.array_equal(with_margins(again / base, groups)[~hidden], shown[~hidden])
        moved = rounded_table(
            cells + np.where(hidden[: len(cells), :-1], rng.random(cells.shape), 0), base, groups
        )
        excluded += not np.array_equal(with_margins(moved / base, groups)[~hidden], shown[~hidden])
        tried += 1
    assert tried > 25
    assert excluded > tried / 4


@pytest.mark.parametrize("base", [1, 5])
def test_whatever_fits_rounded_levels_would_have_been_published_as_they_are(base):
    rng, tried = np.random.default_rng(13), 0
    for i in range(40):
        tree, values = random_tree(rng, i % 2)
        units = [(level * 8).astype(np.int64) for level in values]
        whole = [
            level // base for level in whole_levels(tree, Agreeing(tuple(units), -3), base).levels
        ]
        hidden = hidden_in_tree(
            tree, [level * 1.0 for level in whole], Reader(11.0, 0.0, whole=True).in_base(base)
        )
        joined = [np.concatenate([level[:, 0] for level in levels]) for levels in (whole, hidden)]
        other = another(rng, tree_equations(tree), *joined, 0)
        if other is None:
            continue
        parts = np.split(other[:, None].astype(np.int64), np.cumsum(tree.sizes)[:-1])
        again = whole_levels(tree, Agreeing(tuple(part * base * 8 for part in parts), -3), base)
        assert all(
            np.array_equal(a, part * base) for a, part in zip(again.levels, parts, strict=True)
        )
        tried += 1
    assert tried > 15


def test_shown_numbers_without_margins_do_not_depend_on_hidden_ones():
    """42 becomes 40 whatever is hidden beside it; the control:
    where nothing is hidden, the total is kept.
    """
    numbers, kept = set(), set()
    for other in range(8):
        table = pl.DataFrame({"town": ["x"] * 42 + ["y"] * 17 + ["z"] * other})
        frame = dp.protect(table, unit=dp.Rows(1), budget=dp.Budget(epsilon=1e6))
        out = frame.group_by("town", keys=["x", "y", "z"]).agg(n=dp.count()).release(epsilon=1000)
        for steps in (out.round(5).suppress(10), out.suppress(10).round(5)):
            numbers.add(tuple(steps.table["n"].to_list()[:2]))
        kept.add(tuple(out.round(5).table["n"].to_list()[:2]))
    assert numbers == {(40, 15)}
    assert len(kept) > 1


def test_intervals_beside_rounded_and_hidden_numbers_are_about_the_rounded_ones():
    """Else readers would see the numbers before rounding.
    They are wider by the base, so that they hold as before.
    """
    out, tree = asked().release(epsilon=2), hierarchy().release(epsilon=2)
    for release in (out, tree):
        plain, public = (
            pl.DataFrame(r.accuracy())
            for r in (release, release.round(5).suppress(40, secondary=True))
        )
        there = public["value"].is_not_null()
        ends = public.filter(there).with_columns(pl.col("value", "lower", "upper").cast(pl.Float64))
        middle = (ends["lower"] + ends["upper"]) / 2
        assert 4 < there.sum() < len(there)
        assert (middle - ends["value"]).abs().max() <= 0.5
        wider = (ends["upper"] - ends["lower"]) - (
            plain.filter(there)["upper"] - plain.filter(there)["lower"]
        )
        assert wider.min() > 9.5
        assert wider.max() < 11.5
    with pytest.raises(UnsupportedOperation, match=r"before round\(\)"):
        out.round(5).suppress(40).difference(("c", "x"), ("b", "x"))
    shown = [key for key in KEYS["age"] if not pd.isna(out.suppress(10).table.loc[key, "x"])]
    out.round().suppress(10).difference((shown[0], "x"), (shown[1], "x"))


# Whole releases


@pytest.fixture
def out():
    return asked().release(epsilon=1000)


def asked(table=TABLE, **how):
    frame = dp.protect(table.to_pandas(), unit=dp.Rows(1), budget=dp.Budget(epsilon=1e6))
    return frame.crosstab("age", "town", keys=KEYS, **({"margins": True} | how))


def hierarchy():
    frame = dp.protect(TABLE, unit=dp.Rows(1), budget=dp.Budget(epsilon=1e6))
    return frame.hierarchy(["age", "town"], [(a, b) for a in "abc" for b in "xyz"])


def read(text):
    """The numbers of a CSV file with margins: NaN for marks; and the marks."""
    cells = [row[1:] for row in csv.reader(io.StringIO(text))][1:]
    numbers = [
        [float(cell) if cell.lstrip("-").isdigit() else math.nan for cell in row] for row in cells
    ]
    return np.array(numbers), np.array(cells)


@pytest.mark.parametrize("measured", [True, "measured"])
def test_no_reader_of_a_file_finds_a_hidden_number(measured):
    rng, hidden = np.random.default_rng(6), 0
    for _ in range(4):
        cells = [(a, t) for a in "abc" for t in "xyz" for _ in range(rng.choice([0, 1, 3, 8, 30]))]
        out = asked(pl.DataFrame(cells, ["age", "town"], orient="row"), margins=measured).release(
            epsilon=2
        )
        steps = out.nonnegative().round()
        values = with_margins(np.asarray(steps.table)[:-1, :-1].astype(float))
        texts = [
            made.to_csv()
            for made in (
                steps.suppress(10, "s", secondary=True),
                out.suppress(10, ("s", "*"), secondary=True).nonnegative().round(),
                out.nonnegative().suppress(10, secondary=True).round().suppress(3, "s"),
            )
        ]
        assert len(set(texts)) == 1
        shown, marks = read(texts[0])
        codes = np.where(marks == "s", 1, np.where(marks == "*", 2, 0))
        assert np.array_equal(shown[codes == 0], values[codes == 0])
        found = widths(table_equations(3, 3), values.ravel(), codes.ravel(), 10)
        assert np.all(found > 5 - 1e-6)
        hidden += len(found)
    assert hidden > 20


def test_shares_are_hidden_where_their_numbers_are(out):
    shares = (
        asked(normalize="index", margins=False).release(epsilon=1000).suppress(40, secondary=True)
    )
    cells = out.suppress(40, secondary=True).table.isna().to_numpy()
    assert np.array_equal(shares.table.isna().to_numpy(), (cells | cells[:, -1:])[:-1, :-1])


def test_a_crosstab_of_listed_pairs_hides_more_than_small_cells():
    frame = dp.protect(TABLE, unit=dp.Rows(1), budget=dp.Budget(epsilon=1e6))
    pairs = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("b", "z")]
    out = frame.crosstab("age", "town", keys=pairs, margins=True).release(epsilon=1000)
    shown = out.nonnegative().round().suppress(31, "s", secondary=True)
    numbers, marks = read(shown.to_csv())
    assert (marks == "s").sum() == 3  # two cells, and the margin of the column of one
    assert (marks == "*").sum() >= 1
    assert numbers[-1, -1] == 240 or np.isnan(numbers[-1, -1])


def test_both_states_of_the_shown_numbers_would_tell_which_hidden_ones_are_0():
    """The attack that intervals of the numbers as drawn would allow;
    of hidden cells it reads sums alone.
    """
    drawn = np.array([[-6.0, 36, 170], [40, 60, 180], [190, 195, 199]])
    lifted = nonnegative(drawn)
    codes = hidden_in_table(lifted, Reader(18, 0.0, whole=False))
    hidden = codes[:-1, :-1] > 0
    assert np.argwhere(hidden).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    values = with_margins(lifted)
    assert np.all(
        widths(table_equations(3, 3), values.ravel(), codes.ravel(), 18, whole=False) >= 9
    )
    fell = drawn - lifted  # of a cell above 0 it is one number for its row and one for its column
    would = fell[:2, 2:] + fell[2:, :2] - fell[2, 2]
    risen = [(lifted[:2, :2] - drawn[:2, :2] + would).sum(axis=axis) for axis in (1, 0)]
    # in the first row and column, and in no other, some cell was lifted to 0: it is their common
    # one
    for line in risen:
        assert line[0] > 1
        assert abs(line[1]) < 1e-6
    assert lifted[0, 0] == 0


def test_beside_hidden_numbers_that_were_lifted_there_are_no_intervals(out, tmp_path):
    tree = dp.protect(TABLE, unit=dp.Rows(1), budget=dp.Budget(epsilon=1e6))
    tree = tree.hierarchy(["age", "town"], [(a, b) for a in "abc" for b in "xyz"]).release(
        epsilon=1000
    )
    for release in (out, tree):
        veiled = release.nonnegative().round().suppress(40, secondary=True)
        assert pl.DataFrame(veiled.accuracy()).select(
            pl.col("error", "lower", "upper").count()
        ).row(0) == (0, 0, 0)
        for fine in (
            release.round().suppress(40),
            release.nonnegative().suppress(40, secondary=False),
        ):
            errors = pl.DataFrame(fine.accuracy())
            assert errors["lower"].count() == errors["value"].count() > 0
        assert str(veiled.report())
        assert veiled._repr_html_()
        assert veiled.plot().to_dict()
        veiled.to_excel(tmp_path / "t.xlsx")
    assert (
        tree.nonnegative().suppress(40, secondary=True).with_ci()["age"].table["count_low"].count()
        == 0
    )


def test_what_reads_hidden_numbers_is_refused_beside_them():
    counts = {(a, t): 5 if (a, t) == ("a", "x") else 100 for a in "abc" for t in "xyz"}
    table = pl.DataFrame(
        [key for key, n in counts.items() for _ in range(n)], ["age", "town"], orient="row"
    )
    cells = asked(table).release(epsilon=1000)
    hidden = cells.suppress(40, secondary=True)
    shown = [("a", "z"), ("c", "z")]
    for read in (hidden, cells.suppress(40, secondary=False)):
        with pytest.raises(UnsupportedOperation, match="Test before"):
            read.independence()
    cells.suppress(2, secondary=False).independence()
    hidden.difference(*shown)
    with pytest.raises(UnsupportedOperation, match="Compare before"):
        hidden.nonnegative().difference(*shown)


def test_part_of_a_table_that_was_released_with_it_has_other_tables_beside_it():
    frame = dp.protect(TABLE, unit=dp.Rows(1), budget=dp.Budget(epsilon=1e6, delta=1e-3))
    out = frame.marginals(["age", "town"], [("age", "town")], keys=KEYS).release(
        epsilon=10, delta=1e-6
    )
    out["age", "town"].suppress(10, secondary=True)
    with pytest.raises(UnsupportedOperation, match="other tables"):
        out["age"].suppress(10, secondary=True)


def test_a_limit_that_tells_the_number_is_refused(out):
    with pytest.raises(InvalidArgument, match="below=2"):
        out.suppress(1, secondary=True)


def test_marks_are_in_every_file_and_numbers_stay_numbers_in_the_table(out, tmp_path):
    shown = out.nonnegative().round().suppress(below=40, marker=("<40", "c"), secondary=True)
    assert shown.table.dtypes.tolist() == ["Int64"] * 4
    assert (
        shown.table.isna().to_numpy().sum()
        > out.suppress(below=40, secondary=False).table.isna().to_numpy().sum()
    )
    assert "<40" in shown.to_csv()
    assert ",c" in shown.to_csv()
    assert "&lt;40" in shown.to_html()
    assert "&lt;40" in shown._repr_html_()
    assert r"\textless{}40" in shown.to_latex()
    shown.to_excel(tmp_path / "t.xlsx")
    sheets = pd.read_excel(tmp_path / "t.xlsx", sheet_name=None)
    assert list(sheets) == ["table", "95% intervals", "privacy"]
    table = sheets["table"]
    assert table.columns.tolist() == ["age \\ town", "x", "y", "z", "All"]
    assert table["z"].tolist()[0] == "<40"
    assert table["x"].tolist()[-1] == 180
    intervals = sheets["95% intervals"]
    assert intervals["lower"].isna().all()
    assert any("nor others" in step for step in shown.report().to_dict()["post_processing"])


def test_without_a_marker_nothing_is_written(out):
    assert "*" not in out.suppress(below=40, secondary=True).to_csv()


def test_several_steps_are_one_of_the_strictest(out):
    one = out.suppress(below=5, marker="a", secondary=False).suppress(below=100).suppress(below=1)
    other = out.suppress(below=100, marker="a", secondary=True)
    assert one.to_csv() == other.to_csv()


def test_margins_beside_hidden_cells_protect_them_unless_told_otherwise(out):
    tree = dp.protect(TABLE, unit=dp.Rows(1), budget=dp.Budget(epsilon=1e6))
    tree = tree.hierarchy(["age", "town"], [(a, b) for a in "abc" for b in "xyz"]).release(
        epsilon=1000
    )
    for release in (out, asked(normalize="all", margins=False).release(epsilon=1000), tree):
        hides, plain = release.suppress(40), release.suppress(40, secondary=False)
        assert hides.to_csv() == release.suppress(40, secondary=True).to_csv() != plain.to_csv()
    alone = asked(margins=False).release(epsilon=1000)
    assert alone.suppress(40).to_csv() == alone.suppress(40, secondary=False).to_csv()
    # below 1 nothing can be protected
    assert out.suppress(1).to_csv() == out.suppress(1, secondary=False).to_csv()


def test_a_limit_is_above_the_base_of_rounded_numbers(out):
    out.round(10).suppress(11)
    out.round(10).suppress(10, secondary=False)
    for step in (lambda: out.round(10).suppress(10), lambda: out.suppress(10).round(10)):
        with pytest.raises(InvalidArgument, match="below=11"):
            step()


@pytest.mark.parametrize("margins", [True, False])
def test_rounding_and_hiding_come_to_the_same_in_either_order(margins):
    release = asked(margins=margins).release(epsilon=1000)
    for base, below in [(5, 40), (10, 15), (30, 40)]:
        texts = {
            made.to_csv()
            for made in (
                release.round(base).suppress(below, "s"),
                release.suppress(below, "s").round(base),
                release.round().suppress(below, "s").round(base).round(),
            )
        }
        assert len(texts) == 1
        numbers = read(texts.pop())[0]
        assert np.isnan(numbers).any()
        assert np.nanmin(numbers) >= below
        assert np.nanmax(np.mod(numbers, base)) == 0


def test_numbers_that_change_later_are_hidden_as_they_are_then(out):
    assert out.suppress(40, "<40").round().to_csv() == out.round().suppress(40, "<40").to_csv()


def test_long_tables_and_hierarchies_are_marked(out, tmp_path):
    frame = dp.protect(TABLE, unit=dp.Rows(1), budget=dp.Budget(epsilon=1e6))
    listed = frame.group_by("town", keys=["x", "w"]).agg(n=dp.count())
    assert listed.release(epsilon=100).suppress(10, "<10").to_csv() == "town,n\nx,180\nw,<10\n"
    tree = frame.hierarchy(["age", "town"], [(a, b) for a in "abc" for b in "xyz"]).release(
        epsilon=1000
    )
    tree = tree.nonnegative().round().suppress(10, "<10", secondary=True)
    assert "<10" in tree.to_csv(level="town")
    assert ",*" in tree.to_csv(level="town")
    assert "&lt;10" in tree.to_html()
    assert r"\textless{}10" in tree.to_latex()
    tree.to_excel(tmp_path / "h.xlsx")
    assert "<10" in pd.read_excel(tmp_path / "h.xlsx", sheet_name="3 town")["count"].tolist()


@pytest.mark.parametrize(
    "wrong",
    [
        {"below": 0},
        {"below": "a"},
        {"below": 5, "marker": 3},
        {"below": 5, "marker": ("a",)},
        {"below": 5, "secondary": 1},
    ],
)
def test_wrong_arguments_are_refused(out, wrong):
    with pytest.raises(InvalidArgument, match="suppress"):
        out.suppress(**wrong)
