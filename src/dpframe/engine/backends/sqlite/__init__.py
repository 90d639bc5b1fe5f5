"""SQLite, through Ibis, with SQL that no cell makes fail.

`functions` holds the functions that SQLite calls in Python. `dialect` registers them, runs queries,
and is the interface for the backend of Ibis. `compiler` writes a query, and `written` its
constants.

A column of SQLite may hold a cell of any type, whatever type it declares. dpframe reads a cell of
another type than the declared one as null, and never converts it: if "5" became 5, two units could
become one. So there are no whole numbers in a column of texts, no texts in a column of whole
numbers, and no bytes anywhere.

SQLite raises an error where a sum of whole numbers, or the absolute value of -2^63, leaves 64 bits.
Such an error after the charge would reveal, without noise, that some row has such a cell. So sums
are added in two halves of 32 bits, and an operation that is not on the compiler's list is refused
before the charge. In SQLite a number that leaves 64 bits in another way becomes a float, a division
by zero is null, and NaN is null.

Texts are held as the bytes of their UTF-8, which have no collation, no zero byte that ends them,
and no letter case that a comparison ignores. SQLite compares them byte by byte. Functions that read
letters are Python's.
"""

from dpframe.engine.backends.sqlite.dialect import DIALECT

__all__ = ["DIALECT"]
