"""PostgreSQL, through Ibis, with SQL that no cell makes fail.

`operations` holds the SQL of single operations, `written` puts operands into it, `reach` bounds the
size of a float, `compiler` writes a query, `server` runs it, and `dialect` is the interface for the
backend of Ibis.

In PostgreSQL an operation on floats is an error where its result is too large or too small, and a
cast of a number or text that does not fit is an error too. Such an error after the charge would
reveal, without noise, that some row has such a cell. So dpframe writes its queries with a compiler
of its own, derived from that of Ibis. It writes each operation so that no value of its operands
makes it fail, and with the results of IEEE 754, bit for bit. An operation that is not on its list
is refused before the charge. The user's own steps before `dp.protect` are sent as Ibis writes them.

Each operation is total by itself, so the order in which PostgreSQL computes filters and columns
does not matter. An operation is a CASE, and PostgreSQL computes only the arm that applies. Constant
arms are an exception: PostgreSQL computes them when it plans a query, also on a table without rows,
and that happens before the charge.

An operand is written once. An operand that is more than a column is first computed in a subquery of
its own, and "OFFSET 0" keeps the planner from merging the subquery with the query around it. If
nested CASEs repeated their operands, the length of the query would grow exponentially.

Texts are compared by their bytes: every text gets the collation "C" where it enters the query, from
a column, a literal, a cast or a public table.
"""

from dpframe.engine.backends.postgres.dialect import DIALECT

__all__ = ["DIALECT"]
