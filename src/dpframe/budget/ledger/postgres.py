"""A ledger in PostgreSQL, for several machines."""

from __future__ import annotations

import importlib.util

import sqlalchemy as sa

from dpframe.budget.ledger.schema import METADATA
from dpframe.budget.ledger.store import Store
from dpframe.errors import InvalidArgument, LedgerDamaged, LedgerUnavailable, UnsupportedOperation

# The first schema of the search path with a ledger, or else the schema in which tables are made.
SCHEMA = """
SELECT coalesce(
    (SELECT s FROM unnest(current_schemas(false)) WITH ORDINALITY AS path (s, i)
     WHERE to_regclass(quote_ident(s) || '.dpframe_ledger') IS NOT NULL ORDER BY i LIMIT 1),
    current_schema())"""
# A schema of the search path that this user may not use: the ledger may be there, and another one
# would be made.
HIDDEN = """
SELECT n.nspname FROM pg_catalog.pg_namespace n
WHERE n.nspname IN (SELECT btrim(s, ' "')
        FROM unnest(string_to_array(current_setting('search_path'), ',')) AS path (s))
    AND NOT has_schema_privilege(n.oid, 'USAGE') LIMIT 1"""
SETTLED = """
SELECT current_setting('transaction_isolation'), set_config('synchronous_commit', 'on', true),
    set_config('row_security', 'off', true), set_config('lock_timeout', %s, true),
    set_config('search_path', quote_ident(%s) || ', pg_temp', true)"""
TABLES = """
SELECT count(*) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = ANY(%s) AND c.relkind = 'r' AND c.relpersistence = 'p'"""


# The user of the session, if it may not make budgets. Another one may charge in the name of others
# too.
SPENDER = (
    "SELECT session_user WHERE NOT has_table_privilege(session_user, 'dpframe_budgets', 'INSERT')"
)

POSTGRES = "dp.Ledger('postgresql+psycopg://user@host/database')"
# The parameters of a URL that are shown; any other may be a password.
SHOWN = frozenset(
    {
        "host",
        "port",
        "dbname",
        "user",
        "service",
        "options",
        "sslmode",
        "target_session_attrs",
        "application_name",
    }
)


SEAT = frozenset({"host", "port", "dbname", "service", "options"})  # of these, those that say where


class PostgresStore(Store):
    """A PostgreSQL database, for several machines.
    The row of a budget is locked during a charge.
    """

    def __init__(self, url: str, timeout: float, *, create: bool) -> None:
        try:
            url.encode()
            parsed = sa.make_url(url)
        except (sa.exc.ArgumentError, ValueError):  # whose words may hold a part of the password
            parsed = None
        if parsed is None:
            raise InvalidArgument(
                f"This is no URL of a database. Type {POSTGRES}; %40 stands for @ in a password."
            )
        query = {key: value if key in SHOWN else "hidden" for key, value in parsed.query.items()}
        hidden = [
            parsed.password,
            *(text for key in set(query) - SHOWN for text in parsed.normalized_query[key]),
        ]
        self._url, self._secrets = parsed, [text for text in hidden if text]
        self.place = repr(parsed.set(query=query).render_as_string(hide_password=True))
        where = {key: value for key, value in parsed.query.items() if key in SEAT}
        nobody = sa.URL.create(
            "postgresql", None, None, parsed.host, parsed.port, parsed.database, where
        )
        self.watched = nobody.render_as_string()
        self._schema: str | None = None
        super().__init__(timeout, create=create)

    def placed(self) -> str:
        """The address of the ledger, and the schema, which follows from the search_path."""
        return f"{self.place}, schema {self._schema!r}"

    def _shown(self, problem: str) -> str:
        return (
            "its URL or password is refused"
            if any(text in problem for text in self._secrets)
            else problem
        )

    def _connecting(self) -> sa.Engine:
        if importlib.util.find_spec(self._url.get_driver_name()) is None:
            raise UnsupportedOperation(
                "A ledger in PostgreSQL needs its driver: pip install 'psycopg[binary]', and "
                f"{POSTGRES}."
            )
        return sa.create_engine(
            self._url,
            pool_pre_ping=True,
            max_overflow=-1,
            hide_parameters=True,
            isolation_level="READ COMMITTED",
        )

    def _check(self, connection: sa.Connection) -> None:
        """Set, for this transaction, the settings that a role, a
        database or a pooler may have changed.

        A commit waits for the disk. Only this ledger's schema is searched, before temporary tables.
        If a policy would hide rows, the statement fails. Each statement sees all earlier commits,
        so a process that waited for the lock reads the latest charge.
        """
        if self._schema is None:
            self._schema = connection.exec_driver_sql(SCHEMA).scalar()
            hidden = connection.exec_driver_sql(HIDDEN).scalar()
            if hidden is not None:
                self._schema = None
                raise LedgerUnavailable(
                    f"The user of the ledger {self.place} may not use the schema {hidden!r} of its "
                    "search_path: permission denied. Nothing is released."
                )
            if self._schema is None:
                raise LedgerUnavailable(
                    f"The ledger {self.place} has no schema. Set the search_path of its role."
                )
        level = connection.exec_driver_sql(
            SETTLED, (str(int(self.timeout * 1000)), self._schema)
        ).scalar()
        if level != "read committed":
            raise LedgerUnavailable(
                f"The ledger {self.place} is read at the isolation level {level!r}; it needs 'read "
                "committed'. Nothing is released."
            )

    def _check_tables(self, connection: sa.Connection) -> None:
        ordinary = connection.exec_driver_sql(
            TABLES, (self._schema, list(METADATA.tables))
        ).scalar()
        if ordinary != len(METADATA.tables):
            raise LedgerDamaged(
                f"The tables of the ledger {self.place} are not ordinary, logged tables of the "
                f"schema {self._schema!r}, so charges could be lost. Nothing is released."
            )
        if connection.exec_driver_sql("SHOW fsync").scalar() != "on":
            raise LedgerUnavailable(
                f"The server of the ledger {self.place} runs with fsync = off, so a crash could "
                "lose charges. Nothing is released. Set fsync = on."
            )

    def role(self, connection: sa.Connection) -> str | None:
        """The user of the session, unless it may make budgets."""
        name = connection.exec_driver_sql(SPENDER).scalar()
        return None if name is None else str(name)

    def _one_at_a_time(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7305242117)")
