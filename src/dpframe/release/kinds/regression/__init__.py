"""Matrices of moments, and what follows from them:
covariances, correlations and linear regressions.
"""

from dpframe.release.kinds.regression.matrices import MatrixRelease, moments_of
from dpframe.release.kinds.regression.ols import INTERCEPT, Regression

__all__ = ["INTERCEPT", "MatrixRelease", "Regression", "moments_of"]
