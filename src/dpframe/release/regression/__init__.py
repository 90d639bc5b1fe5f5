"""Matrices of moments, and what follows from them: covariances, correlations and linear regressions."""

from dpframe.release.regression.matrices import MatrixRelease
from dpframe.release.regression.ols import Regression

__all__ = ["MatrixRelease", "Regression"]
