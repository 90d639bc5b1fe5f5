"""Differential privacy for pandas and Polars dataframes."""
