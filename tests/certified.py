"""Questions of every kind, and prices, for tests of certificates and of their checker."""

import dpframe as dp
from questions import QUESTIONS

PRICES = {
    "epsilon": {"epsilon": 1.0},
    "delta": {"epsilon": 1.0, "delta": 1e-6},
    "gaussian": {"epsilon": 1.0, "delta": 1e-6, "noise": "gaussian"},
    "rho": {"rho": 0.1, "delta": 1e-6},
}


def _found(frame):
    groups = frame.group_by("city", max_groups=2, max_rows_per_group=2, max_rows=3)
    return groups.agg(n=dp.count(), u=dp.count_units(), s=dp.sum("x", bounds=(0, 5)))


OTHERS = {
    "hierarchy": lambda f: f.hierarchy(
        ["city", "yes"], keys=[("Bonn", True), ("", False)], max_groups=2, max_rows=3
    ),
    "marginals": lambda f: f.marginals(
        ["city", "yes"], "2-way", keys={"city": ["Bonn", ""], "yes": [True, False]}, max_rows=3
    ),
    "margins": lambda f: f.crosstab(
        "city", "yes", keys={"city": ["", "Bonn"], "yes": [True]}, margins=True, max_rows=2
    ),
    "ols": lambda f: f.ols("x ~ a", bounds={"x": (0, 9), "a": (0, 9)}, max_rows=2),
    "chosen limits": lambda f: f.group_by("city", keys=["Bonn", ""], limits=dp.Auto()).agg(
        n=dp.count()
    ),
    "keys in rounds": lambda f: f.group_by("city").keys(),
    "suppressed": lambda f: f.group_by(
        "city", max_groups=2, max_rows_per_group=2, other="rest"
    ).agg(n=dp.count_units(), m=dp.mean("x", bounds=(0, 5))),
    "of many units": lambda f: f.group_by(
        "city", max_groups=2, max_rows_per_group=2, min_units=3
    ).agg(n=dp.count()),
    "limits of a column": lambda f: f.group_by(
        "city", keys=["", "Bonn"], max_groups=2, max_rows_per_group=2
    ).agg(n=dp.count(), m=dp.mean("x", bounds=(0, 5), max_rows=1)),
}
ASKED = {**QUESTIONS, "keys of few groups": _found, **OTHERS}
