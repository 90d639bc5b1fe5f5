"""Statistics of two columns: ratios, weighted means, covariances and correlations, with their totals."""

from dpframe.plan.pairs.statistics import Corr, Cov, Moment, Ratio, WeightedMean

__all__ = ["Corr", "Cov", "Moment", "Ratio", "WeightedMean"]
