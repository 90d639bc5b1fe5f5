"""Add one day's sign-ups to a series, write its tables, say what was spent. Copy and change it.

python demo/nightly.py 2026-11-20 --out out --limit 0.1  # once: makes the ledger and its budget
python demo/nightly.py 2026-11-21 --days days --out out  # reads days/2026-11-21.parquet
"""

import logging
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path

import polars as pl

import dpframe as dp

LOG = logging.getLogger("nightly")


def nightly(night, days, out, limit, retry):
    ledger = dp.Ledger(out / "signups.sqlite", create=limit is not None)
    budget = ledger.budget("signups", rho=limit)
    # each person signs up once, so one is in one period
    series = budget.series("signups", every="1d", horizon=365, rho=0.05, unit_periods=1)

    def signups(day):
        """The question of one day, from its file; the series asks for earlier days again."""
        rows = pl.scan_parquet(days / f"{day}.parquet")
        frame = dp.protect(rows, unit="user_id", budget=budget)
        return frame.group_by("country", keys=["de", "fr", "other"], max_groups=1).count_units()

    before = budget.spent
    tonight = series.add(signups, period=night, on_pending="retry" if retry else "refuse")
    table = series.table(window="7d")
    table.to_polars().write_csv(out / "signups.csv")
    (out / "signups.html").write_text(table.report().to_html(), encoding="utf-8")
    added = f"added; {budget.spent - before} spent now, {budget.remaining} left"
    LOG.info("%s: %s", night, tonight.stored or added)
    return tonight


def main():
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("night", help="the day that is added, such as 2026-11-21")
    add("--days", type=Path, default="days", help="folder of the days' Parquet files")
    add("--out", type=Path, default="out", help="folder of the ledger and the tables")
    add("--limit", type=float, help="make the ledger and its budget, once: the ρ of all nights")
    add("--retry", action="store_true", help="pay again for a night that was killed")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        print(nightly(**vars(asked)))
    except (dp.errors.DpFrameError, FileNotFoundError) as error:  # such as a pending night
        LOG.error("%s: %s", asked.night, error)  # noqa: TRY400
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
