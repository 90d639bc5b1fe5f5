"""Tables in a lake: Delta, Iceberg, and Parquet in partitions, through scans of Polars and DuckDB.
No network.
"""

import datetime as dt
import pathlib

import polars as pl
import pytest

import dpframe as dp
from dpframe import engine, errors

DAYS = [dt.date(2026, 11, 1) + dt.timedelta(days=day) for day in range(3)]
ROWS = pl.DataFrame(
    {
        "id": [f"p{i % 70}" for i in range(300)],
        "day": [str(DAYS[i % 3]) for i in range(300)],
        "spend": [float(i % 11) for i in range(300)],
    }
)


def delta(folder):
    """A Delta table of two transactions; the second one adds all
    rows but those of the first day.
    """
    pytest.importorskip("deltalake")
    place = str(folder / "delta")
    ROWS.filter(pl.col("day") == str(DAYS[0])).write_delta(place)
    ROWS.filter(pl.col("day") != str(DAYS[0])).write_delta(place, mode="append")
    return place


def iceberg(folder):
    """An Iceberg table of two snapshots, in a catalog that is a file."""
    pytest.importorskip("pyiceberg")
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    (folder / "warehouse").mkdir()
    catalog = sql.SqlCatalog(
        "lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.visits", schema=ROWS.to_arrow().schema)
    table.append(ROWS.filter(pl.col("day") == str(DAYS[0])).to_arrow())
    table.append(ROWS.filter(pl.col("day") != str(DAYS[0])).to_arrow())
    catalog.engine.dispose()
    return table


def partitions(folder):
    """Parquet files in a folder for each day, whose name says the day."""
    for day in DAYS:
        place = folder / "visits" / f"day={day}"
        place.mkdir(parents=True)
        ROWS.filter(pl.col("day") == str(day)).drop("day").write_parquet(place / "part-0.parquet")
    return folder / "visits"


def polars_delta(folder):
    return pl.scan_delta(delta(folder))


def polars_iceberg(folder):
    return pl.scan_iceberg(iceberg(folder))


def polars_partitions(folder):
    return pl.scan_parquet(
        partitions(folder), hive_partitioning=True, hive_schema={"day": pl.String}
    )


_HELD = []  # connections: in DuckDB 1 a relation does not hold its own


def _held(duckdb):
    _HELD.append(duckdb.connect())
    return _HELD[-1]


def duckdb_delta(folder):
    """DuckDB reads the files that the table names;
    its own extension for Delta is fetched from the network.
    """
    duckdb = pytest.importorskip("duckdb")
    deltalake = pytest.importorskip("deltalake")
    files = deltalake.DeltaTable(delta(folder)).file_uris()
    return _held(duckdb).read_parquet(files)


def duckdb_iceberg(folder):
    connection = iceberg(folder).scan().to_duckdb("visits")
    _HELD.append(connection)
    return connection.table("visits")


def duckdb_partitions(folder):
    connection = _held(pytest.importorskip("duckdb"))
    pattern = f"{partitions(folder)}/**/*.parquet"
    options = "hive_partitioning = true, hive_types = {'day': VARCHAR}"
    return connection.sql(f"SELECT * FROM read_parquet('{pattern}', {options})")


LAKES = [
    polars_delta,
    polars_iceberg,
    polars_partitions,
    duckdb_delta,
    duckdb_iceberg,
    duckdb_partitions,
]


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:pyiceberg")
@pytest.mark.parametrize("scan", LAKES)
def test_a_table_in_a_lake_is_asked_as_any_other(scan, tmp_path):
    frame = dp.protect(scan(tmp_path), unit="id", budget=dp.Budget(epsilon=1e6))
    asked = frame.group_by(
        "day", keys=[str(day) for day in DAYS], max_groups=3, max_rows_per_group=9
    ).agg(n=dp.count(), spend=dp.sum("spend", (0, 10)))
    out = asked.release(epsilon=1e5, name="days").to_polars()
    wanted = ROWS.group_by("day").agg(n=pl.len(), spend=pl.col("spend").sum()).sort("day")
    assert out["day"].to_list() == wanted["day"].to_list()
    assert out["n"].to_list() == wanted["n"].to_list()
    assert out["spend"].to_list() == pytest.approx(wanted["spend"].to_list(), abs=0.1)


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:pyiceberg")
@pytest.mark.parametrize("make", [delta, iceberg])
def test_a_name_is_about_one_version_of_a_table(make, tmp_path):
    """A label of the version, which the table's object knows, and no cell:
    another version is another name.
    """
    made = make(tmp_path)
    if make is delta:
        deltalake = pytest.importorskip("deltalake")
        first, second = (deltalake.DeltaTable(made, version=version) for version in (0, 1))
        words = "version 0.*version 1"
    else:
        first, second = _Then(made), made
        words = (
            f"snapshot {made.snapshots()[0].snapshot_id}.*snapshot "
            f"{made.current_snapshot().snapshot_id}"
        )
    budget = dp.Budget(epsilon=10)

    def released(table):
        frame = dp.protect(ROWS, unit="id", budget=budget, data=table)
        return frame.count_units().release(epsilon=1.0, name="visits")

    value = released(first).value
    assert released(first).value == value
    with pytest.raises(errors.ReleaseMismatch, match=f"(?s){words}"):
        released(second)
    assert budget.spent.epsilon == 1.0


class _Then:
    """An Iceberg table as it was before its last snapshot."""

    __module__ = "pyiceberg.table"

    def __init__(self, table):
        self._table = table

    def name(self):
        return self._table.name()

    def current_snapshot(self):
        return self._table.snapshots()[0]


@pytest.mark.skipif(
    pl.__version__ < "2", reason="Polars 1 does not show which files of partitions a plan scans"
)
def test_a_folder_in_partitions_says_by_itself_which_files_it_is(tmp_path):
    budget = dp.Budget(epsilon=10)

    def released():
        rows = pl.scan_parquet(tmp_path / "visits", hive_partitioning=True)
        return (
            dp.protect(rows, unit="id", budget=budget)
            .count_units()
            .release(epsilon=1.0, name="visits")
        )

    place = partitions(tmp_path)
    value = released().value
    assert released().value == value
    more = pathlib.Path(place / "day=2026-11-04")
    more.mkdir()
    ROWS.head(5).drop("day").write_parquet(more / "part-0.parquet")
    with pytest.raises(errors.ReleaseMismatch, match=r"part-0\.parquet"):
        released()


# Tables that are written while they are asked: 40 people with two rows each, and 400 people later

FEW, MANY = (
    pl.DataFrame({"id": [i % people for i in range(800)], "x": 1.0}) for people in (40, 400)
)
FEW = FEW.head(80)


def written_delta(folder):
    pytest.importorskip("deltalake")
    FEW.write_delta(folder / "delta")
    return pl.scan_delta(folder / "delta"), lambda: MANY.write_delta(
        folder / "delta", mode="overwrite"
    )


def written_iceberg(folder):
    pytest.importorskip("pyiceberg")
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    (folder / "warehouse").mkdir()
    catalog = sql.SqlCatalog(
        "lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.visits", schema=FEW.to_arrow().schema)
    table.append(FEW.to_arrow())
    other = catalog.load_table("shop.visits")

    def change():
        other.overwrite(MANY.to_arrow())
        catalog.engine.dispose()

    return pl.scan_iceberg(table), change


def written_folder(folder):
    (folder / "visits").mkdir()
    FEW.write_parquet(folder / "visits" / "a.parquet")
    return pl.scan_parquet(folder / "visits"), lambda: MANY.write_parquet(
        folder / "visits" / "b.parquet"
    )


def written_parquet(folder):
    FEW.write_parquet(folder / "a.parquet")

    def change():
        MANY.write_parquet(folder / "b.parquet")
        (folder / "b.parquet").replace(folder / "a.parquet")

    return pl.scan_parquet(folder / "a.parquet"), change


def written_csv(folder):
    FEW.write_csv(folder / "a.csv")
    return pl.scan_csv(folder / "a.csv"), lambda: MANY.write_csv(folder / "a.csv")


def released_under_chosen_limits(table, change, when, budget, monkeypatch):
    """A sum under limits of a first reading.
    The table changes before the question, or before its totals are read.
    """
    frame = dp.protect(table, unit="id", budget=budget)
    asked = frame.sum("x", bounds=(0, 2), limits=dp.Auto())
    if when == "protected":
        change()
    else:
        totals = engine.totals
        monkeypatch.setattr(
            engine, "totals", lambda *args, **options: (change(), totals(*args, **options))[1]
        )
    return asked.release(epsilon=1e6)


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:pyiceberg")
@pytest.mark.parametrize("when", ["protected", "chosen"])
@pytest.mark.parametrize("make", [written_delta, written_iceberg, written_folder])
def test_a_lake_is_read_in_the_version_that_was_protected(make, when, tmp_path, monkeypatch):
    out = released_under_chosen_limits(*make(tmp_path), when, dp.Budget(epsilon=1e9), monkeypatch)
    assert out.value == pytest.approx(80, abs=1)


@pytest.mark.parametrize("make", [written_parquet, written_csv])
def test_files_that_were_written_since_they_were_protected_are_refused_before_the_charge(
    make, tmp_path, monkeypatch
):
    budget = dp.Budget(epsilon=1e9)
    with pytest.raises(
        errors.EngineError, match=r"written after dp\.protect.*Protect the table again"
    ):
        released_under_chosen_limits(*make(tmp_path), "protected", budget, monkeypatch)
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize("make", [written_parquet, written_csv])
def test_limits_of_one_version_and_totals_of_another_are_not_released_together(
    make, tmp_path, monkeypatch
):
    with pytest.raises(errors.EngineError):
        released_under_chosen_limits(*make(tmp_path), "chosen", dp.Budget(epsilon=1e9), monkeypatch)
