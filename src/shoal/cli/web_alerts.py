"""Reads active alerts: from a Prometheus or an Alertmanager, whichever answers at the address, or from the history in
which `shoal up` keeps those that it has evaluated itself.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from urllib.parse import urlsplit

from shoal.client.fetched_text import StatusError, fetched_text
from shoal.policy.alert_states import RuleAlert
from shoal.store.history.history import read_history
from shoal.units.errors import ShoalError, UserError, Where, one_line
from shoal.views.active_alerts import AlertsAnswer, alertmanager_alerts, evaluated_alerts, prometheus_alerts

RECORDED = "history"
"""Instead of an address: the alerts that a process of Shoal has evaluated and keeps in the history."""
_OWN = "Shoal"
_PATIENCE_S = 5.0
_ABSENT = frozenset({404, 405, 410})


def shown_address(url: str) -> str:
    """Without a user and a password; a word that is no address as it is."""
    parts = urlsplit(url)
    if not parts.hostname:
        return url
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}".rstrip("/")


class RecordedAlerts:
    """Implements `Alerts` with the history in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def active(self) -> AlertsAnswer:
        try:
            found = await asyncio.to_thread(self._read)
        except (sqlite3.Error, ShoalError) as error:
            return AlertsAnswer(_OWN, fault=one_line(str(error)))
        return AlertsAnswer(_OWN, evaluated_alerts(found))

    def _read(self) -> list[RuleAlert]:
        history = read_history(self._folder)
        try:
            return history.alerts.active()
        finally:
            history.close()


class FetchedAlerts:
    """Implements `Alerts`."""

    def __init__(self, url: str) -> None:
        """Raises UserError for an address that cannot be one."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            fix = "write it as in http://prometheus.monitoring:9090"
            raise UserError("is no address of a server", where=Where(path="--alerts-from"), fix=fix)
        self._url = url.rstrip("/")
        self._shown = shown_address(url)

    async def active(self) -> AlertsAnswer:
        import aiohttp

        try:
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_PATIENCE_S)) as session:
                try:
                    found = prometheus_alerts((await fetched_text(session, f"{self._url}/api/v1/alerts")).encode())
                except StatusError as error:
                    if error.status not in _ABSENT:
                        raise
                    found = alertmanager_alerts((await fetched_text(session, f"{self._url}/api/v2/alerts")).encode())
        except TimeoutError:
            return AlertsAnswer(self._shown, fault=f"it did not answer within {_PATIENCE_S:.0f} s")
        except (OSError, ShoalError) as error:
            return AlertsAnswer(self._shown, fault=one_line(str(error)))
        return AlertsAnswer(self._shown, found)
