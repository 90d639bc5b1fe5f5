"""Apache DataFusion, through Ibis, with queries that no cell makes fail.

`functions` holds the functions that DataFusion calls, `compiler` writes a query, `session` runs it,
and `dialect` is the interface for the backend of Ibis.

DataFusion's own arithmetic fails on some cells: a division by zero, the absolute value of -2^63, a
cast of "abc". It compares floats by the order of their bits, in which 0.0 and -0.0 are two keys. So
Polars computes all that could fail or differ: DataFusion hands each batch of a column to a function
of dpframe, which is a Polars expression, and gets a column back. DataFusion itself filters, joins,
groups, ranks and counts, adds whole numbers, and compares. An operation that is not on the
compiler's list is refused before the charge.

A query runs in a session of dpframe's own, in which the user's tables are the only tables. So
neither a setting nor a function of the user's session changes what a query means, and nothing of
dpframe's stays in that session.
"""

from dpframe.engine.backends.datafusion.dialect import DIALECT

__all__ = ["DIALECT"]
