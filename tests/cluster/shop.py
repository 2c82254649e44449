"""A source of the story that keeps a build waiting: a table in PostgreSQL whose readers stand still while the test
holds a lock. So a build is surely in its middle, and where it reads is known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

LOCK = 21
#: The lock is asked for at each row, so that the question for columns, WHERE 1=0, does not wait.
TABLE = f"""
CREATE TABLE things AS SELECT i AS id, 0 AS n FROM generate_series(1, 40) t(i);
CREATE VIEW held AS SELECT id, n FROM things WHERE pg_advisory_xact_lock_shared({LOCK} + 0 * id)::text IS NOT NULL;
"""
READERS = """SELECT pid, host(client_addr), client_port FROM pg_stat_activity
WHERE wait_event = 'advisory' AND query LIKE '%held%' AND pid <> pg_backend_pid()"""
TOML = """[connections.shop]
type = "jdbc"
url = "jdbc:postgresql://{place}"
user = "app"
password = {{ env = "SHOP_PASSWORD" }}
"""


@dataclass(frozen=True)
class Shop:
    """`url` is its address, with the password."""

    url: str

    def opens(self) -> None:
        with psycopg.connect(self.url) as connection:
            connection.execute(TABLE)

    @property
    def toml(self) -> str:
        return TOML.format(place=self.url.partition("@")[2])

    @property
    def environment(self) -> dict[str, str]:
        return {"SHOP_PASSWORD": str(psycopg.conninfo.conninfo_to_dict(self.url)["password"])}

    def raises(self) -> None:
        """Every row is another."""
        with psycopg.connect(self.url) as connection:
            connection.execute("UPDATE things SET n = n + 1")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Whoever reads waits until the block has ended."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", [LOCK])
            yield

    def reading(self) -> set[int]:
        """The sessions that wait. One whose client is gone stays among them: the server has not looked yet."""
        return {int(pid) for pid, *_ in self._waiting()}

    def readers(self) -> set[tuple[str, int]]:
        """The addresses and ports that they come from."""
        return {(str(address), int(port)) for _, address, port in self._waiting()}

    def _waiting(self) -> list[tuple[int, str, int]]:
        with psycopg.connect(self.url) as connection:
            return list(connection.execute(READERS).fetchall())
