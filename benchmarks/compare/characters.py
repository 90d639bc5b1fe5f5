"""Characters of ten common questions, typed in pandas, dpframe, OpenDP and Tumult Analytics.

What each library lets you say once is said once, and not counted: limits, bounds and keys here,
margins in OpenDP's Context, KeySets in Tumult. The lines of OpenDP 0.16 and Tumult 0.20 follow
their public documentation and are not run. `None`: their documentation has no verb for it. Run it:
python benchmarks/compare/characters.py
"""

import warnings

import pandas as pd
import polars as pl

import dpframe as dp

ASK = 'session.evaluate(QueryBuilder("visits").{}, PureDPBudget(0.5))'
QUERY = "context.query().{}.release().collect()"
MONTH = '{"month": ColumnType.DATE}'
QUESTIONS = {  # pandas, dpframe, OpenDP, Tumult
    "count by group": (
        'visits.groupby("city").size()',
        'people.group_by("city").count().release(0.5)',
        QUERY.format('group_by("city").agg(dp.len())'),
        ASK.format("groupby(cities).count()"),
    ),
    "mean by group": (
        'visits.groupby("city")["spend"].mean()',
        'people.group_by("city").mean("spend").release(0.5)',
        QUERY.format('group_by("city").agg(pl.col.spend.fill_null(0.0).dp.mean((0, 100)))'),
        ASK.format('groupby(cities).average("spend", 0, 100)'),
    ),
    "median": (
        'visits["spend"].median()',
        'people.median("spend").release(0.5)',
        QUERY.format("select(pl.col.spend.fill_null(0.0).dp.median(range(101)))"),
        ASK.format('median("spend", 0, 100)'),
    ),
    "quantiles": (
        'visits["spend"].quantile([0.1, 0.5, 0.9])',
        'people.quantile("spend", [0.1, 0.5, 0.9]).release(0.5)',
        QUERY.format(
            "select(*[pl.col.spend.fill_null(0.0).dp.quantile(q, range(101)) for q in (0.1, 0.5, "
            "0.9)])"
        ),
        "[" + ASK.format('quantile("spend", q, 0, 100)') + " for q in (0.1, 0.5, 0.9)]",
    ),
    "histogram": (
        'pd.cut(visits["spend"], edges).value_counts()',
        'people.histogram("spend", edges).release(0.5)',
        QUERY.format('with_columns(pl.col.spend.cut(edges)).group_by("spend").agg(dp.len())'),
        ASK.format('histogram("spend", BinningSpec(edges))'),
    ),
    "crosstab": (
        'pd.crosstab(visits["city"], visits["sex"])',
        'people.crosstab("city", "sex").release(0.5)',
        QUERY.format('group_by("city", "sex").agg(dp.len())'),
        ASK.format("groupby(cities * sexes).count()"),
    ),
    "most frequent": (
        'visits["city"].value_counts().head(2)',
        'people.top_k("city", 2).release(0.5)',
        None,
        None,
    ),
    "people": (
        'visits["user"].nunique()',
        "people.count_units().release(0.5)",
        QUERY.format("select(pl.col.user.dp.n_unique())"),
        ASK.format('count_distinct(["user"])'),
    ),
    "by month": (
        'visits.resample("MS", on="when").size()',
        'people.group_by(month=dp.col("when").dt.truncate("1mo"), keys=months)'
        ".count().release(0.5)",
        QUERY.format('with_columns(pl.col.when.dt.truncate("1mo")).group_by("when").agg(dp.len())'),
        ASK.format(
            f'map(lambda r: {{"month": r["when"].replace(day=1)}}, {MONTH}).groupby(months).count()'
        ),
    ),
    "rate of a condition": (
        '(visits["spend"] > 50).mean()',
        'people.agg((pl.col("spend") > 50).mean()).release(0.5)',
        QUERY.format("select((pl.col.spend > 50).fill_null(False).cast(float).dp.mean((0, 1)))"),
        ASK.format(
            'map(lambda r: {"high": int(r["spend"] > 50)}, {"high": '
            'ColumnType.INTEGER}).average("high", 0, 1)'
        ),
    ),
}


def run() -> None:
    """Run the lines of pandas and dpframe, and print the characters of each line."""
    days = pd.date_range("2026-01-01", periods=90)
    visits = pd.DataFrame(
        {"user": range(90), "city": ["Bonn", "Kiel", "Ulm"] * 30, "sex": ["f", "m"] * 45}
    )
    visits = visits.assign(spend=[float(k % 101) for k in range(90)], when=days)
    people = visits.dp(
        unit="user",
        budget=dp.Budget(epsilon=5.0),
        max_rows=1,
        bounds={"spend": (0, 100)},
        keys={"city": ["Bonn", "Kiel", "Ulm"], "sex": ["f", "m"]},
    )
    months = pd.date_range("2026-01-01", periods=3, freq="MS")
    names = {
        "visits": visits,
        "people": people,
        "months": months,
        "edges": [0, 50, 100],
        "pd": pd,
        "pl": pl,
        "dp": dp,
    }
    print(f"{'':22}{'pandas':>8}{'dpframe':>8}{'OpenDP':>8}{'Tumult':>8}")
    sums = [0] * 4
    for question, lines in QUESTIONS.items():
        for line in lines[:2]:
            eval(line, names)
        sizes = [None if line is None else len(line) for line in lines]
        print(f"{question:22}" + "".join(f"{'' if n is None else n:>8}" for n in sizes))
        sums = [total + (n or 0) for total, n in zip(sums, sizes, strict=True)]
    print(f"{'all that have a verb':22}" + "".join(f"{n:>8}" for n in sums))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run()
