"""Matrices of moments, and what follows from them: covariances, correlations and linear regressions."""

from dpframe.release.regression.matrices import MatrixRelease
from dpframe.release.regression.ols import INTERCEPT, Regression
from dpframe.release.regression.reading import moments_of

__all__ = ["INTERCEPT", "MatrixRelease", "Regression", "moments_of"]
