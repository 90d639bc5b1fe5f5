"""PostgreSQL, through Ibis: the SQL that Ibis writes, made total.

`operations` holds the SQL, `written` puts operands into it, `reach` says how large a float can be, `compiler` writes a
query, `server` runs it, and `dialect` is what the backend of Ibis asks.

In PostgreSQL arithmetic on floats is an error where its result is too large or too small, and so are casts of numbers
and texts that do not fit. Such a failure after the charge would say, without noise, that some row has such a cell. So
what is sent is written by a compiler of our own, derived from that of Ibis: it writes each operation so that no value
of its operands makes it fail, with the results that IEEE 754 gives, bit for bit. An operation that it does not know to
be total is refused, before the charge. The user's own steps before `dp.protect` are sent as Ibis writes them.

Nothing rests on the order in which filters and columns are computed: an operation is total by itself. It is written as
a CASE, whose arms PostgreSQL computes only when they are taken, unless they are constant: then it computes them when it
plans, on any table, also on one without rows, which is before the charge.

An operand is written once. Where it is more than a column, it is first computed in a subquery of its own, which
"OFFSET 0" keeps apart from what is around it: a CASE that repeats its operand, inside of another, would grow and grow.

Texts are compared by their bytes: each is collated by "C" where it comes in, be it from a column, a literal, a cast or
a public table.
"""

from dpframe.engine.backends.postgres.dialect import DIALECT

__all__ = ["DIALECT"]
