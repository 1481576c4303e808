"""Asks a PostgreSQL server for the number that a query returns, with psycopg, which the extra `triggers` installs.

Guarantees: the connection goes to a checked address over TCP; no file, service or password file of the server's host is
read for it; an error contains the code of the server and no text of it.
"""

from __future__ import annotations

import math
import os
from importlib.util import find_spec
from typing import Any

from shoal.autoscale.scaled_objects.trigger_metadata import USUAL_TIMEOUT_S, TriggerError
from shoal.autoscale.scaled_objects.trigger_sources import PostgresQuery
from shoal.controllers.scaled_objects.sources.connections import Connections, asking, failed

_MISSING = (
    "the Python package psycopg is not installed where Shoal runs; install it with: pip install 'shoal[triggers]'"
)
_ALLOWED = frozenset({"host", "port", "user", "password", "dbname", "sslmode", "connect_timeout", "application_name"})
"""The keywords of a connection string that are used. Others name files or run commands of the host."""


def check_connection(asked: PostgresQuery) -> None:
    """Raises TriggerError if the connection cannot be made at all: psycopg is missing, or its settings are wrong."""
    if find_spec("psycopg") is None:
        raise TriggerError(_MISSING)
    _settings(asked)


async def query_value(connections: Connections, asked: PostgresQuery, timeout_s: float = USUAL_TIMEOUT_S) -> float:
    """Raises TemporaryError. The connection has been checked."""
    import psycopg

    settings = _settings(asked)
    host, port = settings["host"], settings["port"]
    server = f"postgresql at {host}:{port}"
    async with asking(server, timeout_s):
        settings["hostaddr"] = await connections.resolved(host, int(port))
        # psycopg waits in the event loop; its own connection timeout is for single addresses.
        try:
            connection = await psycopg.AsyncConnection.connect(**settings, autocommit=True)
            async with connection, connection.cursor() as cursor:
                await cursor.execute(f"SET statement_timeout = {round(timeout_s * 1000)}")
                await cursor.execute(asked.query.encode())
                row = await cursor.fetchone()
        except psycopg.Error as error:
            raise failed(server, _words(error)) from None
    return _number(server, row)


def _settings(asked: PostgresQuery) -> dict[str, Any]:
    """Raises TriggerError, without the value of any parameter."""
    from psycopg import Error
    from psycopg.conninfo import conninfo_to_dict

    if asked.connection:
        try:
            found = {name: str(value) for name, value in conninfo_to_dict(asked.connection).items()}
        except Error:
            raise TriggerError("the connection string of postgresql cannot be read") from None
        if not_allowed := sorted(found.keys() - _ALLOWED):
            raise TriggerError(f"the connection string of postgresql must not have {', '.join(not_allowed)}")
    else:
        written = {"host": asked.host, "port": asked.port, "user": asked.user, "password": asked.password}
        found = {name: text for name, text in {**written, "dbname": asked.database}.items() if text}
        if asked.ssl_mode:
            found["sslmode"] = asked.ssl_mode
    host, port = found.get("host", ""), found.setdefault("port", "5432")
    if not host or "," in host or "/" in host or host.startswith("@") or not port.isdecimal():
        raise TriggerError("postgresql needs one host and one port, reached by TCP")
    if found.get("sslmode") in ("verify-ca", "verify-full"):
        found |= {"sslmode": "verify-full", "sslrootcert": "system"}
    # Without these, libpq would read files of the home folder.
    return {**found, "passfile": os.devnull, "sslcertmode": "disable", "gssencmode": "disable"}


def _words(error: Any) -> str:
    state = getattr(error, "sqlstate", None)
    return f"{type(error).__name__}, SQLSTATE {state}" if state else type(error).__name__


def _number(server: str, row: Any) -> float:
    if not row:
        raise failed(server, "the query returns no row")
    try:
        found = float(row[0])
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise failed(server, "the query does not return a number")
    return found
