"""The one place where plan, engine, noise and budget meet."""

from dpframe.release.marginals import MarginalsRelease
from dpframe.release.result import Release
from dpframe.release.run import release

__all__ = ["MarginalsRelease", "Release", "release"]
