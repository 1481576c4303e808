"""Scrapes the metrics of other processes of Shoal, which alerts need and the process that evaluates them lacks.

Behind a Service there may be a leader and its standbys, which have no figures of queues: an answer of a standby is not
used, and the Service is asked again. What cannot be read is a line of the log, once, and 0 in a metric.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence

from shoal.api.alert_targets import shown
from shoal.prometheus.registry import Registry
from shoal.prometheus.samples import samples_of

_log = logging.getLogger("shoal.alerts")
_LEADS = "leader_election_master_status"
_MOST_TRIES = 16
"""With three replicas, all of these reach standbys in one of 600 scrapes."""
_PATIENCE_S = 10.0
"""For all tries; alerts are evaluated every 30 seconds."""


class ScrapedMetrics:
    """`fetch`: the text at an address, with a new connection each time. Raises OSError or TimeoutError."""

    def __init__(self, addresses: Sequence[str], fetch: Callable[[str], Awaitable[str]], registry: Registry) -> None:
        self._addresses, self._fetch = addresses, fetch
        help_ = "1 if the last scrape of metrics for alerts succeeded, else 0."
        self._up = registry.gauge("shoal_alerts_scrape_up", help_, ("address",))
        self._faults: dict[str, str] = {}

    async def texts(self) -> Mapping[str, str]:
        """By address, without those that cannot be read."""
        found = await asyncio.gather(*map(self._text, self._addresses))
        return {address: text for address, text in zip(self._addresses, found, strict=True) if text is not None}

    async def _text(self, address: str) -> str | None:
        text, fault = None, ""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                text = await self._of_leader(address)
        except (OSError, TimeoutError) as error:
            fault = str(error) or "no answer"
        place = shown(address)
        self._up.of(place).set(0 if fault else 1)
        if fault and self._faults.get(address) != fault:
            _log.warning("the metrics at %s cannot be read: %s", place, fault)
        self._faults[address] = fault
        return text

    async def _of_leader(self, address: str) -> str:
        for _ in range(_MOST_TRIES):
            text = await self._fetch(address)
            if not _is_standby(text):
                return text
        raise OSError("only standbys answer")


def _is_standby(text: str) -> bool:
    lines = "\n".join(line for line in text.splitlines() if line.startswith(_LEADS))
    leading = [one.value for one in samples_of(lines) if one.name == _LEADS]
    return bool(leading) and not any(leading)
