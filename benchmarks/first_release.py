"""What a user waits for: importing dpframe, and one bounded sum on 10,000 rows,
beside the same sum in plain Polars.

Prints medians over runs in one process (import: over fresh processes). Figures depend on the
machine; ratios less so.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 60
IMPORT = (
    "import time, pandas, polars; t = time.perf_counter(); import dpframe; "
    "print(time.perf_counter() - t)"
)


def median_ms(call) -> float:
    call()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def main() -> None:
    imports = [float(subprocess.check_output([sys.executable, "-c", IMPORT])) for _ in range(7)]
    print(f"import dpframe after pandas and Polars: {statistics.median(imports):.3f} s")

    import numpy as np
    import polars as pl

    import dpframe as dp
    from dpframe import engine

    draw = np.random.default_rng(1)
    polars = pl.DataFrame(
        {"id": draw.integers(0, 2000, 10_000), "spend": draw.uniform(0, 150, 10_000)}
    )
    for kind, table in (("Polars", polars), ("pandas", polars.to_pandas())):
        budget = dp.Budget(epsilon=1e9)

        def ask(table=table, budget=budget):
            return (
                table.dp(unit="id", budget=budget).clip("spend", 0, 100).sum("spend", max_rows=20)
            )

        query = ask()
        whole = median_ms(lambda ask=ask: ask().release(epsilon=0.1))
        reading = median_ms(lambda query=query: engine.totals(query._question, 1))
        checking = median_ms(lambda query=query: engine.validate(query._question))
        print(
            f"{kind}: protect, clip, sum, release on 10,000 rows: {whole:.1f} ms; of it the "
            f"engine on the rows {reading:.1f} ms, on the empty table {checking:.1f} ms"
        )
    plain = median_ms(
        lambda: (
            polars.lazy()
            .group_by("id")
            .agg(pl.col("spend").clip(0, 100).sum())
            .select(pl.col("spend").sum())
            .collect()
        )
    )
    print(f"the same two-level sum in plain Polars: {plain:.1f} ms")


if __name__ == "__main__":
    main()
