"""Every engine through one fixture: `engine(frame)` is a Polars table
as that engine's users hold it.
"""

from __future__ import annotations

import itertools
import os
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from datafusion_tables import stored as stored_in_datafusion
from postgres_tables import connected, stores
from sqlite_tables import stored as stored_in_sqlite
from strategies import bring

ENGINES = (
    "polars",
    "polars-lazy",
    "pandas",
    "pyarrow",
    "duckdb",
    "ibis",
    "postgres",
    "sqlite",
    "datafusion",
    "spark",
    "dask",
)
SLOW = ("postgres", "datafusion", "spark")
_NUMBERS = itertools.count()
_LONG_ON = {  # which take 2 to 7 seconds each there, most of them to write the SQL or to plan it
    "test_every_engine_has_the_same_influences": SLOW,
    "test_influences_beside_columns_with_limits_of_their_own": ("datafusion",),
    "test_a_column_has_the_totals_of_a_question_of_its_own": ("datafusion", "spark"),
    "test_odd_names_are_names": ("datafusion", "spark"),
    "test_a_long_chain_has_the_value_of_its_terms": ("spark",),
}


def pytest_configure(config):
    config.addinivalue_line(
        "markers",
        "spark: is quick enough to run on Spark, PostgreSQL and DataFusion each time, not only "
        "in the long tier",
    )


def pytest_generate_tests(metafunc):
    """Slow engines: a query takes a second on Spark, half a second on PostgreSQL
    and DataFusion, less on others.
    """
    if "engine" in metafunc.fixturenames:
        quick = metafunc.definition.get_closest_marker("spark") is not None
        slow = {
            name: [pytest.mark.xdist_group(name), *([] if quick else [pytest.mark.long])]
            for name in SLOW
        }
        for name in _LONG_ON.get(metafunc.definition.originalname, ()):
            slow[name].append(pytest.mark.long)
        params = [pytest.param(name, marks=slow.get(name, ())) for name in ENGINES]
        metafunc.parametrize("engine", params, indirect=True)


class Engine:
    """An engine by its name, with functions that make and read its tables."""

    def __init__(self, name, make):
        self.name, self._make = name, make
        self._made = {}

    def __call__(self, frame):
        """A table that is requested twice is created once."""
        if id(frame) not in self._made:
            self._made[id(frame)] = (frame, self._make(frame))
        return self._made[id(frame)][1]


@pytest.fixture(scope="session")
def engines():
    return {}


@pytest.fixture
def engine(request, engines):
    name = request.param
    if name not in engines:
        engines[name] = Engine(name, _makers(name, request))
    return engines[name]


def _makers(name, request):
    if name == "duckdb":
        connection = pytest.importorskip("duckdb").connect()
        # its times have the zone of the connection
        connection.execute("SET TimeZone = 'Europe/Berlin'")
        return lambda frame: connection.table(_stored(connection, frame))
    if name == "ibis":
        pytest.importorskip("duckdb")
        backend = pytest.importorskip("ibis").duckdb.connect()
        backend.raw_sql("SET TimeZone = 'Europe/Berlin'")
        return lambda frame: backend.table(_stored(backend.con, frame))
    if name == "sqlite":
        pytest.importorskip("ibis.backends.sqlite")
        backend = pytest.importorskip("ibis").sqlite.connect()
        return lambda frame: stored_in_sqlite(backend, frame)
    if name == "datafusion":
        context = pytest.importorskip("datafusion").SessionContext()
        backend = pytest.importorskip("ibis").datafusion.connect(context)
        return lambda frame: backend.table(stored_in_datafusion(context, frame.to_arrow()))
    if name == "postgres":
        return request.getfixturevalue("stored_in_postgres")
    if name == "spark":
        session = request.getfixturevalue("spark_session")
        return lambda frame: session.createDataFrame(frame.to_arrow())
    if name == "dask":
        dask = request.getfixturevalue("dask_here")
        return lambda frame: dask.from_pandas(
            _arrow_pandas(_dealt(frame)), npartitions=3, sort=False
        )
    if name == "pandas":
        return _arrow_pandas
    return lambda frame: bring(frame, {"polars-lazy": "lazy"}.get(name, name))


def _arrow_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    return frame.to_arrow().to_pandas(types_mapper=pd.ArrowDtype)


def _dealt(frame: pl.DataFrame) -> pl.DataFrame:
    """Reorder the rows, so that adjacent rows of a unit are spread over all three partitions."""
    return (
        frame.with_row_index("dealt").sort(pl.col("dealt") % 3, maintain_order=True).drop("dealt")
    )


def _stored(connection, frame: pl.DataFrame) -> str:
    table = f"t{next(_NUMBERS)}"
    connection.register("brought", frame.to_arrow())
    connection.execute(f"CREATE TABLE {table} AS SELECT * FROM brought")
    connection.unregister("brought")
    return table


@pytest.fixture(scope="session")
def in_postgres(postgres_server):
    """Ibis on a live PostgreSQL."""
    with connected(postgres_server) as backend:
        yield backend


@pytest.fixture(scope="session")
def stored_in_postgres(in_postgres):
    """A function that stores a Polars table in the database, and returns it as an Ibis table."""
    return stores(in_postgres)


@pytest.fixture(scope="session")
def dask_here():
    """Dask dataframes, whose tasks run in this thread."""
    dask = pytest.importorskip("dask")
    dataframes = pytest.importorskip("dask.dataframe")
    with dask.config.set(scheduler="synchronous"):
        yield dataframes


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory):
    """Spark, for all tests."""
    pytest.importorskip("pyspark")
    with spark_here(tmp_path_factory.mktemp("spark")) as session:
        yield session


@contextmanager
def spark_here(home: Path):
    """Spark on two cores of this machine: no network, no page, no colour of its own;
    tasks may be tried four times.
    """
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Dderby.system.home={home}",
        "spark.local.dir": str(home / "local"),
        "spark.sql.warehouse.dir": str(home / "tables"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.sql.codegen.wholeStage": "false",  # small tables: nothing is worth compiling
        "spark.sql.session.timeZone": "Europe/Berlin",
        # Arrow's times without a zone have none in Spark either
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.log.level": "OFF",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark's own, of pandas 3
        builder = SparkSession.builder.master("local[2,4]")
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.createDataFrame([(1,)], ["x"]).toArrow()
    yield session
    session.stop()
