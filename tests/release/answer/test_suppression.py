"""What is hidden beside small numbers: nothing hidden follows from what is shown, by linear algebra on all of it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpframe as dp
from dpframe.errors import InvalidArgument
from dpframe.release.answer.suppression import hidden_in_table, hidden_in_tree, with_margins
from dpframe.theory.formulas.hierarchies import Levels

TABLE = pl.DataFrame({"age": list("aaaabbbbcc") * 30, "town": list("xxyyxxyzxx") * 30})
KEYS = {"age": ["a", "b", "c"], "town": ["x", "y", "z"]}


def revealed(equations, hidden):
    """The hidden numbers that are fixed by equations (rows) and shown numbers: those at which the null space is 0."""
    matrix = equations[:, hidden]
    _, sizes, right = np.linalg.svd(matrix, full_matrices=True)
    null = right[int((sizes > 1e-9).sum()) :]
    return int((np.abs(null).max(axis=0, initial=0.0) < 1e-9).sum()) if len(null) else int(hidden.sum())


def table_equations(height, width):
    full = np.zeros((height + 1, width + 1), int)
    rows = []
    for i in range(height + 1):
        one = full.copy()
        one[i, :-1], one[i, -1] = 1, -1
        rows.append(one.ravel())
    for j in range(width + 1):
        one = full.copy()
        one[:-1, j], one[-1, j] = 1, -1
        rows.append(one.ravel())
    return np.array(rows)


def tree_equations(tree):
    offsets = np.concatenate([[0], np.cumsum(tree.sizes)])
    rows = []
    for level, first in enumerate(tree.first):
        for node, (start, number) in enumerate(zip(first, tree.children[level], strict=True)):
            one = np.zeros(offsets[-1])
            one[offsets[level] + node] = -1
            one[offsets[level + 1] + start : offsets[level + 1] + start + number] = 1
            rows.append(one)
    return np.array(rows)


@pytest.mark.parametrize("part", [0.05, 0.3, 0.7])
def test_no_hidden_cell_of_a_table_follows_from_the_others_and_the_margins(part):
    rng, told = np.random.default_rng(0), 0
    for _ in range(150):
        shape = rng.integers(1, 7, 2)
        cells = np.where(rng.random(shape) < part, rng.integers(-3, 10, shape), rng.integers(10, 300, shape)) * 1.0
        equations = table_equations(*shape)
        small = hidden_in_table(cells, 10, secondary=False)
        hidden = hidden_in_table(cells, 10, secondary=True)
        assert np.array_equal(small, with_margins(cells) < 10)
        assert np.all(hidden[small])
        assert not revealed(equations, hidden.ravel())
        told += revealed(equations, small.ravel()) > 0
    assert told > 10  # the control: without the second step much follows


def test_no_hidden_node_follows_from_its_parent_and_siblings():
    rng, told = np.random.default_rng(1), 0
    for _ in range(150):
        first, nodes = [], 1
        for _ in range(3):
            children = rng.integers(1, 5, nodes)
            first.append(np.concatenate([[0], np.cumsum(children)[:-1]]))
            nodes = int(children.sum())
        tree = Levels(tuple(first), nodes)
        values = [rng.integers(0, 40, (nodes, 2)).astype(float)]
        for level in range(2, -1, -1):
            values.append(tree.up(values[-1], level))
        values = values[::-1]
        for secondary in (False, True):
            hidden = hidden_in_tree(tree, values, 10, secondary=secondary)
            for cell in range(2):
                number = revealed(tree_equations(tree), np.concatenate([level[:, cell] for level in hidden]))
                assert not (secondary and number)
                told += bool(number)
    assert told > 10


def test_as_few_cells_as_one_more_pair_of_lines_are_hidden():
    cells = np.array([[3.0, 50, 60], [40, 60, 70], [80, 90, 99]])
    hidden = hidden_in_table(cells, 10, secondary=True)
    assert hidden.sum() == 4
    assert not hidden[-1].any()
    assert not hidden[:, -1].any()


@pytest.fixture
def out():
    frame = dp.protect(TABLE.to_pandas(), unit=dp.Rows(1), budget=dp.Budget(epsilon=1e6))
    return frame.crosstab("age", "town", keys=KEYS, margins=True).release(epsilon=1000)


def test_marks_are_in_every_file_and_numbers_stay_numbers_in_the_table(out, tmp_path):
    shown = out.nonnegative().round().suppress(below=40, marker=("<40", "c"), secondary=True)
    assert shown.table.dtypes.tolist() == ["Int64"] * 4
    assert shown.table.isna().to_numpy().sum() > out.suppress(below=40).table.isna().to_numpy().sum()
    assert "<40" in shown.to_csv()
    assert ",c" in shown.to_csv()
    assert "&lt;40" in shown.to_html()
    assert "&lt;40" in shown._repr_html_()
    assert "<40" in shown.to_latex()
    shown.to_excel(tmp_path / "t.xlsx")
    sheets = pd.read_excel(tmp_path / "t.xlsx", sheet_name=None)
    assert list(sheets) == ["table", "95% intervals", "privacy"]
    table = sheets["table"]
    assert table.columns.tolist() == ["age \\ town", "x", "y", "z", "All"]
    assert table["z"].tolist()[0] == "<40"
    assert table["x"].tolist()[-1] == 180
    intervals = sheets["95% intervals"]
    assert intervals["lower"].isna().sum() == shown.table.isna().to_numpy().sum()
    assert any("nor others" in step for step in shown.report().to_dict()["post_processing"])


def test_without_a_marker_nothing_is_written(out):
    assert "*" not in out.suppress(below=40, secondary=True).to_csv()


def test_several_steps_are_one_of_the_strictest(out):
    one = out.suppress(below=5, marker="a").suppress(below=100, secondary=True).suppress(below=1)
    other = out.suppress(below=100, marker="a", secondary=True)
    assert one.to_csv() == other.to_csv()


def test_numbers_that_change_later_are_hidden_as_they_are_then(out):
    assert out.suppress(40, "<40").round().to_csv() == out.round().suppress(40, "<40").to_csv()


def test_long_tables_and_hierarchies_are_marked(out, tmp_path):
    frame = dp.protect(TABLE, unit=dp.Rows(1), budget=dp.Budget(epsilon=1e6))
    listed = frame.group_by("town", keys=["x", "w"]).agg(n=dp.count())
    assert listed.release(epsilon=100).suppress(10, "<10").to_csv() == "town,n\nx,180\nw,<10\n"
    tree = frame.hierarchy(["age", "town"], [(a, b) for a in "abc" for b in "xyz"]).release(epsilon=1000)
    tree = tree.nonnegative().round().suppress(10, "<10", secondary=True)
    assert "<10" in tree.to_csv(level="town")
    assert ",*" in tree.to_csv(level="town")
    assert "&lt;10" in tree.to_html()
    assert "<10" in tree.to_latex()
    tree.to_excel(tmp_path / "h.xlsx")
    assert "<10" in pd.read_excel(tmp_path / "h.xlsx", sheet_name="3 town")["count"].tolist()
    assert (
        tree["town"]["count"].null_count() == tree.accuracy()["error"].null_count() - tree["age"]["count"].null_count()
    )
    assert tree.with_ci()["town"]["count_low"].null_count() == tree["town"]["count"].null_count()


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
