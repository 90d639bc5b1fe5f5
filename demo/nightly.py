"""The nightly job: add one day's sign-ups to a series, write its tables, say what was spent. Copy it and change it.

python demo/nightly.py 2026-11-21 --days days --out out          # reads days/2026-11-21.parquet
python demo/nightly.py 2026-11-21 --days days --out out --retry  # once, after a night was killed
"""

import argparse
import logging
import sys
from pathlib import Path

import polars as pl

import dpframe as dp

LOG = logging.getLogger("nightly")


def nightly(night, days, out, retry):
    budget = dp.Ledger(out / "signups.sqlite").budget("signups", rho=0.1)
    series = budget.series("signups", every="1d", horizon=365, rho=0.05, unit_periods=1)  # each person signs up once

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
    LOG.info("%s: %s", night, tonight.stored or f"added; {budget.spent - before} spent now, {budget.remaining} left")
    return tonight


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("night", help="the day that is added, such as 2026-11-21")
    parser.add_argument("--days", type=Path, default=Path("days"), help="the folder of the days' Parquet files")
    parser.add_argument("--out", type=Path, default=Path("out"), help="the folder of the ledger and the tables")
    parser.add_argument("--retry", action="store_true", help="measure a night again that was killed, and pay for that")
    asked = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    asked.out.mkdir(parents=True, exist_ok=True)
    try:
        print(nightly(asked.night, asked.days, asked.out, asked.retry))
    except (dp.errors.DpFrameError, FileNotFoundError) as error:  # the budget refuses, a night is pending, no such file
        LOG.error("%s: %s", asked.night, error)  # noqa: TRY400 - the words of the refusal are enough
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
