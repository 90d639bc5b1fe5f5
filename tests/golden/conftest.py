"""The engines, as the tests of engines make them."""

from engine.conftest import dask_here, spark_session

__all__ = ["dask_here", "spark_session"]
