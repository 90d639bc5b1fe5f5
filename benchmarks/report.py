"""What `speed.py` measured, as a table, a chart, and what it comes to on a cluster.

python benchmarks/report.py      # again from benchmarks/results/speed.json
"""

from __future__ import annotations

import json
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
QUESTION, ON_SPARK, ONE_SUM = (
    "count and sum by group",
    "count and sum by group, on Spark",
    "one sum",
)
TARGETS = {
    ("plain", QUESTION): "at most 1.6",
    ("plain", ON_SPARK): "at most 1.6",
    ("opendp", QUESTION): "at least 4",
    ("opendp", ONE_SUM): "at least 100",
    ("pipelinedp", QUESTION): "at least 100",
}
NAMES = {
    "plain": "the same without privacy",
    "opendp": "OpenDP 0.16",
    "pipelinedp": "PipelineDP 0.3, local",
}


def write(figures):
    """The table, which is also kept beside the figures and the chart."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "speed.json").write_text(json.dumps(figures, indent=1) + "\n")
    parts = [heading(figures), beside(figures), growth(figures), memory(figures), cluster(figures)]
    text = "\n\n".join("\n".join(part) for part in parts if part)
    (RESULTS / "speed.md").write_text(text + "\n")
    chart(figures).save(RESULTS / "speed.svg")
    return text


def times(figures):
    """What was measured, by question, rows, groups and what."""
    return {
        (question, rows, keys, what): found
        for question, rows, keys, all_found in figures["rows"]
        for what, found in all_found.items()
    }


def heading(figures):
    busy = figures["load"] > figures["cores"]
    beside_it = (
        f", shared with other work (load {figures['load']}), so single times are pessimistic"
        if busy
        else ""
    )
    return [
        f"# Speed, {figures['date']}",
        "",
        f"{figures['cores']} cores, {figures['memory_gib']} GiB{beside_it}. Ten rows a person in "
        "random groups;",
        "at most 3 groups a person and 2 rows in each; listed keys; ε = 1; validation, budget "
        "and noise included.",
    ]


def beside(figures):
    """dpframe beside the others, on the same rows."""
    found = times(figures)
    lines = [
        "| question | rows | groups | beside | seconds | dpframe | ratio | in processor time | "
        "target |",
        "|---|---:|---:|---|---:|---:|---:|---:|---|",
    ]
    for (question, rows, keys, what), other in found.items():
        ours = found.get((question, rows, keys, "dpframe"))
        if what == "dpframe" or ours is None:
            continue
        top, bottom = (ours, other) if what == "plain" else (other, ours)
        wall, cpu = (_ratio(top[time] / bottom[time]) for time in ("seconds", "cpu_seconds"))
        cells = [
            question,
            f"{rows:,}",
            f"{keys:,}",
            NAMES[what],
            f"{other['seconds']:.3g}",
            f"{ours['seconds']:.3g}",
        ]
        largest = max(entry[1] for entry in found if (entry[0], entry[3]) == (question, what))
        goal = (
            TARGETS[what, question]
            if rows == largest and keys == (1 if question == ONE_SUM else 1000)
            else ""
        )
        lines.append(f"| {' | '.join([*cells, wall, '' if question == ON_SPARK else cpu, goal])} |")
    return lines


def _ratio(value):
    return f"{value:.2f} ×" if value < 10 else f"{value:,.0f} ×"


def growth(figures):
    """dpframe alone, from few rows and groups to many."""
    lines = [
        "| rows | groups | dpframe, s | a million rows, s | processor, s |",
        "|---:|---:|---:|---:|---:|",
    ]
    for (question, rows, keys, what), found in sorted(times(figures).items()):
        if what == "dpframe" and question == QUESTION:
            each = found["seconds"] / rows * 10**6
            lines.append(
                f"| {rows:,} | {keys:,} | {found['seconds']:.3g} | {each:.3g} | "
                f"{found['cpu_seconds']:.3g} |"
            )
    return lines


def memory(figures):
    large = figures["large"]
    return [
        f"From a Parquet file of {large['rows']:,} rows ({large['file_gib']:.1f} GiB), "
        f"{large['rows'] // 10:,} people,",
        f"three groups each: {large['seconds']:.0f} s, {large['cpu_seconds']:.0f} s of processor "
        "time, and",
        f"{large['peak_gib']:.1f} GiB of memory at most.",
    ]


def cluster(figures, rows=10**11, units=10**9, groups=10**6, cores=1000):
    """What the largest run on Spark comes to at another size:
    rows shuffled, partials, driver memory, time.

    Every stage is linear in rows, but for a sort among the rows of a partition. Each row is moved
    once, to its unit's partition; then one row for each group and task is. In the run hardly two
    rows of a person fell into one group, so there were as many partials as rows: an upper end.
    Driver and result hold a key, two totals, their noise and the released numbers of each group,
    and a copy of each.
    """
    runs = [
        (size, found["dpframe"])
        for question, size, _, found in figures["rows"]
        if question == ON_SPARK
    ]
    if not runs:
        return []
    size, found = max(runs, key=lambda run: run[0])
    used = min(figures["cores"], 2)
    per_row, seconds = found["shuffled_bytes"] / size, found["seconds"] * used / size
    held = groups * 8 * (1 + 3 * 2) * 2 / 2**30
    lines = [
        (
            "measured",
            f"{size:,} rows on {used} local cores: {found['seconds']:.1f} s, {per_row:.0f} bytes "
            "moved a row",
        ),
        ("rows shuffled", f"{rows:.0e}, once: {per_row * rows / 1e12:.1f} TB"),
        (
            "partials",
            f"at most {rows:.0e}; of 3 groups each at most {3 * units:.0e} are kept and added up",
        ),
        ("memory of the driver", f"{groups:.0e} groups: {held:.2f} GiB, whatever the rows"),
        (
            "time",
            f"{seconds * rows / 3600:,.0f} core hours; on {cores:,} cores "
            f"{seconds * rows / cores / 60:.0f} minutes",
        ),
    ]
    return [
        f"| Spark, {rows:.0e} rows, {units:.0e} people, {groups:.0e} groups | extrapolated |",
        "|---|---|",
        *(f"| {what} | {how} |" for what, how in lines),
    ]


def chart(figures):
    """Seconds against rows, both axes by powers of ten."""
    import altair as alt

    large = figures["large"]
    rows = [
        {"rows": size, "seconds": found["seconds"], "what": NAMES.get(what, what)}
        for (question, size, keys, what), found in times(figures).items()
        if question == QUESTION and keys == 1000
    ]
    rows.append(
        {"rows": large["rows"], "seconds": large["seconds"], "what": "dpframe, from Parquet"}
    )
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=_by_tens("rows", [10.0**i for i in range(5, 9)], "~s"),
        y=_by_tens("seconds", [10.0**i for i in range(-3, 4)], "~g"),
        color=alt.Color("what:N", title=None, scale=alt.Scale(scheme="tableau10")),
    )
    return (base.mark_line() + base.mark_point(filled=True, size=60)).properties(
        width=460, height=260
    )


def _by_tens(what, marks, form):
    import altair as alt

    channel, axis = alt.X if what == "rows" else alt.Y, alt.Axis(values=marks, format=form)
    return channel(f"{what}:Q", scale=alt.Scale(type="log"), axis=axis, title=what)


if __name__ == "__main__":
    print(write(json.loads((RESULTS / "speed.json").read_text())))
