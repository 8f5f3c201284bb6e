"""Users of a database server that have rights on some tables only."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from placement.db import models
from tests import backends

ALL = ("SELECT", "INSERT", "UPDATE", "DELETE")
# What a database made by OpenStack Placement has.
SHARED = ("alembic_version", *sorted(models.Base.metadata.tables))


class Restricted:
    """A user without any right in a database, to begin with."""

    def __init__(self, url: str) -> None:
        self._owner = sa.create_engine(url, isolation_level="AUTOCOMMIT")
        self._name = f"placement_{uuid.uuid4().hex[:16]}"
        self.url = (
            sa.make_url(url)
            .set(username=self._name, password="secret")
            .render_as_string(hide_password=False)
        )
        self._execute(
            f"CREATE ROLE {self._name} LOGIN PASSWORD 'secret'"
            if backends.KIND == "postgresql"
            else f"CREATE USER {self._name} IDENTIFIED BY 'secret'"
        )

    def grant(self, *tables: str, rights: tuple[str, ...] = ALL) -> None:
        self._change("GRANT", "TO", tables, rights)

    def revoke(self, *tables: str, rights: tuple[str, ...] = ALL) -> None:
        self._change("REVOKE", "FROM", tables, rights)

    def _change(
        self, verb: str, link: str, tables: tuple[str, ...], rights: tuple[str, ...]
    ) -> None:
        for table in tables:
            self._execute(f"{verb} {', '.join(rights)} ON {table} {link} {self._name}")

    def grant_sequences(self) -> None:
        """Allow new keys, as PostgreSQL needs it."""
        if backends.KIND == "postgresql":
            self._execute(
                f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {self._name}"
            )

    def _execute(self, statement: str) -> None:
        with self._owner.connect() as connection:
            connection.exec_driver_sql(statement)

    def drop(self) -> None:
        if backends.KIND == "postgresql":
            self._execute(f"DROP OWNED BY {self._name}")
        self._execute(f"DROP USER {self._name}")
        self._owner.dispose()


@contextmanager
def restricted(url: str) -> Iterator[Restricted]:
    """Give a user of a database, and remove it afterwards."""
    user = Restricted(url)
    try:
        yield user
    finally:
        user.drop()
