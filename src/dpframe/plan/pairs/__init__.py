"""Statistics of two columns: ratios, weighted means, covariances and correlations, with their totals."""

from dpframe.plan.pairs.statistics import NARROWING, Corr, Cov, Moment, Ratio, WeightedMean

__all__ = ["NARROWING", "Corr", "Cov", "Moment", "Ratio", "WeightedMean"]
