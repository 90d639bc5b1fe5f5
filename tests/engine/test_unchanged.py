"""A table that is another at the release than at `dp.protect` is refused
before the charge, on every engine.
"""

from __future__ import annotations

import gc
import importlib
import shutil
from contextlib import suppress
from functools import partial

import polars as pl
import pyarrow.dataset as dataset
import pytest

import dpframe as dp
from dpframe.errors import EngineError, MissingFile, SchemaError
from tiers import in_turn

ROWS = pl.DataFrame({"user": [*range(40)], "x": [1] * 40, "city": ["bonn", "ulm"] * 20})
TEXTS = ROWS.with_columns(pl.col("x").cast(pl.String))
CHANGES = {
    "type": (
        "ALTER TABLE {t} ALTER COLUMN x TYPE {text}",
        "Column 'x' was .* at dp.protect.*, and is .* now",
    ),
    "wider": (
        "ALTER TABLE {t} ALTER COLUMN x TYPE DOUBLE PRECISION",
        "Column 'x' was .*, and is .* now",
    ),
    "unit": (
        'ALTER TABLE {t} ALTER COLUMN "user" TYPE {text}',
        "Column 'user' was .*, and is .* now",
    ),
    "gone": ("ALTER TABLE {t} DROP COLUMN x", "Column 'x' was there .* gone or renamed"),
    "renamed": ("ALTER TABLE {t} RENAME COLUMN x TO y", "Column 'x' was there .* gone or renamed"),
    "dropped": ("DROP TABLE {t}", "cannot say its columns any more"),
}


def asked(table, budget):
    frame = dp.protect(table, unit="user", budget=budget)
    grouped = frame.group_by("city", keys=["bonn", "ulm"], max_groups=1, max_rows_per_group=1)
    return grouped.agg(s=dp.sum("x", bounds=(0, 5)), m=dp.median("x", bounds=(0, 5)))


def refused(table, change, message, kind=SchemaError):
    budget = dp.Budget(epsilon=10.0)
    query = asked(table, budget)
    change()
    with pytest.raises(kind, match=message):
        query.release(epsilon=1.0)
    assert budget.spent.epsilon == 0.0
    assert not budget.history()


def duckdb_table(through):
    duckdb = pytest.importorskip("duckdb")
    if through == "ibis":
        backend = pytest.importorskip("ibis").duckdb.connect()
        return backend.con, backend.table
    connection = duckdb.connect()
    return connection, connection.table


def fill(connection, name="t"):
    connection.register("brought", ROWS.to_arrow())
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM brought")


@pytest.mark.parametrize("through", ["itself", "ibis"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_table_of_duckdb_with_other_columns_is_refused(through, change):
    connection, table = duckdb_table(through)
    fill(connection)
    sql, message = CHANGES[change]
    refused(table("t"), lambda: connection.execute(sql.format(t="t", text="VARCHAR")), message)


@pytest.mark.parametrize("through", ["itself", "ibis"])
def test_a_view_of_duckdb_that_was_replaced_is_refused(through):
    connection, table = duckdb_table(through)
    if through == "itself" and importlib.import_module("duckdb").__version__ < "2":
        pytest.skip("in DuckDB 1 connection.table('v') keeps the view as it was, and reads by it")
    fill(connection)
    connection.execute("CREATE VIEW v AS SELECT * FROM t")
    other = "CREATE OR REPLACE VIEW v AS SELECT \"user\", 'a' AS x, city FROM t"
    refused(table("v"), lambda: connection.execute(other), "Column 'x' was BIGINT .* VARCHAR now")


def test_more_columns_and_another_order_are_no_change():
    connection, table = duckdb_table("itself")
    fill(connection)
    budget = dp.Budget(epsilon=1.0)
    query = asked(table("t"), budget)
    connection.execute('CREATE OR REPLACE TABLE t AS SELECT city, 1 AS z, x, "user" FROM t')
    query.release(epsilon=1.0)
    assert budget.spent.epsilon == 1.0


@pytest.fixture
def in_postgres(postgres_server):
    """A connection of its own, since other tests end all that a server has."""
    from postgres_tables import connected

    with connected(postgres_server) as backend:
        yield backend


@pytest.fixture
def stored_in_postgres(in_postgres):
    from postgres_tables import stores

    return stores(in_postgres)


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_of_postgres_with_other_columns_is_refused(change, in_postgres, stored_in_postgres):
    table = stored_in_postgres(ROWS)
    sql, message = CHANGES[change]
    refused(
        table,
        lambda: in_postgres.raw_sql(sql.format(t=table.get_name(), text="text")).close(),
        message,
    )


def test_steps_of_ibis_before_protect_are_checked_by_the_table_that_they_begin_with(
    in_postgres, stored_in_postgres
):
    table = stored_in_postgres(ROWS)
    sql, message = CHANGES["wider"]
    steps = table.filter(table.x > 0).mutate(x=table.x + 1)
    refused(
        steps,
        lambda: in_postgres.raw_sql(sql.format(t=table.get_name(), text="text")).close(),
        message,
    )


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "DROP TABLE t; CREATE TABLE t (user INTEGER, x TEXT, city TEXT)",
            "Column 'x' was INTEGER .* TEXT now",
        ),
        ("ALTER TABLE t RENAME COLUMN x TO y", "Column 'x' was there .* gone or renamed"),
        ("DROP TABLE t", "cannot say its columns any more"),
    ],
)
def test_a_table_of_sqlite_with_other_columns_is_refused(sql, message):
    pytest.importorskip("ibis.backends.sqlite")
    backend = pytest.importorskip("ibis").sqlite.connect()
    backend.con.executescript("CREATE TABLE t (user INTEGER, x INTEGER, city TEXT)")
    backend.con.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS.rows())
    refused(backend.table("t"), lambda: backend.con.executescript(sql), message)


def test_the_types_of_a_view_of_sqlite_are_asked_of_no_row():
    """Ibis reads the first row of a column that has no declared type."""
    pytest.importorskip("ibis.backends.sqlite")
    backend = pytest.importorskip("ibis").sqlite.connect()
    backend.con.executescript("CREATE TABLE t (user INTEGER, x INTEGER, city TEXT)")
    backend.con.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS.rows())
    backend.con.executescript("CREATE VIEW v AS SELECT user, x + 0 AS x, city FROM t")
    budget = dp.Budget(epsilon=10.0)
    query = asked(backend.table("v"), budget)
    backend.con.execute("UPDATE t SET x = 'text' WHERE user = 0")
    query.release(epsilon=1.0)
    assert budget.spent.epsilon == 1.0


def test_a_table_of_datafusion_with_other_columns_is_refused():
    datafusion, ibis = pytest.importorskip("datafusion"), pytest.importorskip("ibis")
    context = datafusion.SessionContext()
    context.register_record_batches("t", [ROWS.to_arrow().to_batches()])

    def change():
        context.deregister_table("t")
        context.register_record_batches("t", [TEXTS.to_arrow().to_batches()])

    refused(
        ibis.datafusion.connect(context).table("t"), change, "Column 'x' was int64 .* string now"
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("other", "named"),
    [
        (TEXTS, "rows. Column 'x' was Int64 and is String now. Protect"),
        pytest.param(
            ROWS.drop("x"), "rows. Column 'x' is gone or renamed. Protect", marks=pytest.mark.long
        ),
        (ROWS, "rows. Protect"),
    ],
)
@pytest.mark.parametrize(
    "reader",
    ["polars", "pyarrow", "dask", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))],
)
def test_files_that_were_replaced_are_refused(reader, other, named, tmp_path, request):
    file = tmp_path / "a file.parquet"
    ROWS.write_parquet(file)
    if reader == "spark":
        table = request.getfixturevalue("spark_session").read.parquet(str(file))
    elif reader == "dask":
        request.getfixturevalue("dask_here")
        table = pytest.importorskip("dask.dataframe").read_parquet(file)
    elif reader == "pyarrow":
        folder = dataset.dataset([dataset.dataset(file), dataset.dataset(file)])
        table = pl.scan_pyarrow_dataset(folder).with_columns(pl.col("city").str.to_lowercase())
    else:
        table = pl.scan_parquet(file)

    def change():
        gc.collect()  # a reader may hold the file
        file.unlink()
        other.vstack(other).write_parquet(file)

    refused(
        table, change, f"files of this table were written after.* different {named}", EngineError
    )


DASK_FILES = {"csv": "write_csv", "json": "write_ndjson"}


OTHERS = {
    "type": TEXTS,
    "gone": ROWS.drop("x"),
    "order": ROWS.select("x", "city", "user"),
    "rows": ROWS.head(20),
}


@pytest.mark.parametrize(("form", "change"), in_turn(DASK_FILES, [*OTHERS, "removed"]))
def test_text_files_that_dask_reads_are_those_of_protect(form, change, tmp_path, dask_here):
    """Dask would take a column that is gone for one of nulls, and read others
    by the names of its first look.
    """
    frames, file = pytest.importorskip("dask.dataframe"), tmp_path / f"t.{form}"
    getattr(ROWS, DASK_FILES[form])(file)
    table = frames.read_csv(file) if form == "csv" else frames.read_json(file, lines=True)
    if change == "removed":
        refused(table, file.unlink, "There is no file", MissingFile)
    else:
        wrote = partial(getattr(OTHERS[change], DASK_FILES[form]), file)
        refused(table, wrote, "files of this table were written after", EngineError)


def test_a_dask_table_of_delayed_partitions_is_protected(dask_here):
    """Dask does not know the columns of the steps that make it."""
    frames, delayed = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask").delayed
    budget = dp.Budget(epsilon=1e6)
    asked(frames.from_delayed([delayed(ROWS.to_pandas)()]), budget).release(epsilon=1.0)
    assert budget.spent.epsilon == 1.0


# Lakes: a plan keeps the version that it found, as long as its files are there


def delta_table(folder, with_rows):
    table = pytest.importorskip("deltalake")
    with_rows.write_delta(folder / "lake")

    def change(other, vacuum):
        other.write_delta(
            folder / "lake", mode="overwrite", delta_write_options={"schema_mode": "overwrite"}
        )
        if vacuum:
            again = table.DeltaTable(folder / "lake")
            again.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)

    return pl.scan_delta(folder / "lake"), change


@pytest.mark.parametrize("vacuum", [False, True])
@pytest.mark.parametrize(
    ("other", "message"),
    [
        (TEXTS, "Column 'x' was Int64 at dp.protect.*, and is String now"),
        (ROWS.rename({"x": "z"}), "Column 'x' was there .* gone or renamed"),
        (ROWS.with_columns(z=1), "There is no file"),
    ],
)
def test_a_delta_table_with_other_columns_or_without_its_files_is_refused(
    other, message, vacuum, tmp_path
):
    table, change = delta_table(tmp_path, ROWS)
    if not vacuum and "z" in other.columns and "x" in other.columns:
        budget = dp.Budget(epsilon=10.0)
        query = asked(table, budget)
        change(other, vacuum)
        query.release(epsilon=1.0)  # the version of protect, which has all columns
        assert budget.spent.epsilon == 1.0
    else:
        refused(
            table,
            lambda: change(other, vacuum),
            message,
            MissingFile if "file" in message else SchemaError,
        )


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:pyiceberg")
@pytest.mark.parametrize("kind", ["renamed", "files"])
def test_an_iceberg_table_with_other_columns_or_without_its_files_is_refused(kind, tmp_path):
    pytest.importorskip("pyiceberg")
    memory = pytest.importorskip("pyiceberg.catalog.memory")
    catalog = memory.InMemoryCatalog("lake", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.visits", schema=ROWS.to_arrow().schema)
    table.append(ROWS.to_arrow())

    def change():
        if kind == "files":
            shutil.rmtree(tmp_path / "warehouse")
            return
        with catalog.load_table("shop.visits").update_schema() as update:
            update.rename_column("x", "z")
        table.refresh()

    message, error = {
        "renamed": ("cannot say its columns any more", SchemaError),
        "files": ("There is no file", MissingFile),
    }[kind]
    refused(pl.scan_iceberg(table), change, message, error)


def test_files_of_duckdb_may_have_other_rows_but_no_other_types(tmp_path):
    connection, _ = duckdb_table("itself")
    file = tmp_path / "t.parquet"
    ROWS.write_parquet(file)
    refused(
        connection.read_parquet(str(file)),
        lambda: TEXTS.write_parquet(file),
        "Column 'x' was BIGINT .* VARCHAR",
    )


def test_tables_in_memory_are_those_of_protect():
    """What is done to the user's frame afterwards does not reach a protected table's columns."""
    for table in (ROWS.clone(), ROWS.to_pandas()):
        budget = dp.Budget(epsilon=10.0)
        query = asked(table, budget)
        if isinstance(table, pl.DataFrame):
            table.drop_in_place("x")
        else:
            del table["x"]
        query.release(epsilon=1.0)
        assert budget.spent.epsilon == 1.0


def test_the_look_at_the_types_of_a_query_leaves_no_view_in_postgres(
    in_postgres, stored_in_postgres
):
    name = stored_in_postgres(ROWS).get_name()
    types = in_postgres.table(name).schema()
    rows = in_postgres.sql(f"SELECT * FROM {name}", schema=types)
    asked(rows, dp.Budget(epsilon=1.0)).release(epsilon=1.0)
    sql = CHANGES["type"][0].format(t=name, text="text")
    refused(
        rows, lambda: in_postgres.raw_sql(sql).close(), "Column 'x' was int8 .*, and is text now"
    )
    in_postgres.con.rollback()
    with in_postgres.con.cursor() as cursor:
        assert (
            cursor.execute(
                "SELECT viewname FROM pg_views WHERE schemaname LIKE 'pg_temp%'"
            ).fetchall()
            == []
        )


JDBC = "jdbc:derby:memory:unchanged;create=true"
VISITS = 'CREATE TABLE visits ("user" INT, "x" {type}, "city" VARCHAR(10))'


@pytest.fixture
def derby(spark_session):
    """Run statements in the database in memory that comes with Spark."""
    driver = "org.apache.derby.iapi.jdbc.AutoloadedDriver"
    jvm = spark_session._jvm
    jvm.java.lang.Class.forName(driver)

    def run(*statements):
        connection = jvm.java.sql.DriverManager.getConnection(JDBC)
        for statement in statements:
            connection.createStatement().execute(statement)
        connection.close()

    rows = ", ".join(f"({user}, 1, '{city}')" for user, _, city in ROWS.rows())
    run(VISITS.format(type="INT"), f"INSERT INTO visits VALUES {rows}")
    reader = spark_session.read.format("jdbc").option("url", JDBC).option("driver", driver)
    yield reader.option("dbtable", "visits"), run
    with suppress(Exception):
        run("DROP TABLE visits")


@pytest.mark.long
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (
            ("DROP TABLE visits", VISITS.format(type="VARCHAR(9)")),
            "Column 'x' was int .* is string now",
        ),
        (
            ("DROP TABLE visits", VISITS.format(type="DOUBLE")),
            "Column 'x' was int .* is double now",
        ),
        (('ALTER TABLE visits DROP COLUMN "x"',), "Column 'x' was there .* gone or renamed"),
        (('RENAME COLUMN visits."x" TO "z"',), "Column 'x' was there .* gone or renamed"),
        (("DROP TABLE visits",), "cannot say its columns any more"),
        (("INSERT INTO visits VALUES (99, 1, 'ulm')",), None),
    ],
)
def test_a_table_that_spark_reads_by_jdbc_with_other_columns_is_refused(
    derby, statements, message, computed
):
    """Spark asks a database for its columns once, and casts its cells afterwards."""
    reader, run = derby
    table = reader.load()
    if computed:
        table = table.selectExpr("user", "x + 0 AS x", "city")
    if message is not None:
        refused(table, lambda: run(*statements), message)
        return
    budget = dp.Budget(epsilon=10.0)
    query = asked(table, budget)
    run(*statements)
    query.release(epsilon=1.0)
    assert budget.spent.epsilon == 1.0
