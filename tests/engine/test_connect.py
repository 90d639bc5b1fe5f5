"""Spark Connect: the suite's questions through a server of its own, in a
process without a classic session.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("spark")]
SCRIPT = """
import warnings

warnings.simplefilter("ignore")
from pyspark.sql import SparkSession

from dpframe.errors import DpFrameError
from questions import ABSENT, QUESTIONS, REFUSED, TABLE, exact, expected, protected

settings = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
}
builder = SparkSession.builder.remote("local[2]")
for key, value in settings.items():
    builder = builder.config(key, value)
session = builder.getOrCreate()
table = session.createDataFrame(TABLE.to_arrow())
assert "connect" in type(table).__module__
for name, ask in QUESTIONS.items():
    if ("spark", name) in ABSENT:
        continue
    try:
        assert exact(ask(protected(table))) == expected(name), name
        assert ("spark", name) not in REFUSED
    except DpFrameError as error:
        assert REFUSED.get(("spark", name), "answered") in str(error), (name, error)
    print("as on Polars, or refused:", name, flush=True)
stated = "On Spark, a release starts at most 4 jobs, and its plan has 3 shuffles."
frame = protected(table).group_by("city", keys=["a", "b"], max_groups=2, max_rows=4)
assert stated in str(frame.count().explain())
print("as on Spark classic: explain", flush=True)
session.stop()
"""


def test_totals_through_connect_are_those_of_polars(tmp_path):
    pytest.importorskip("pyspark")
    pytest.importorskip("grpc_status")
    paths = os.pathsep.join([str(Path(__file__).parent.parent), *sys.path])
    here = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, **here},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("as on Polars, or refused") > 40
    assert "as on Spark classic: explain" in done.stdout
