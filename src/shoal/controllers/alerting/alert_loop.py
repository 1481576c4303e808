"""Reads the metrics of Shoal's processes and of the nodes' exporters every 30 seconds, evaluates the rules of
alerts, and sends what has changed.

Guarantees: an alert is sent until its receiver has accepted it; a receiver that does not answer holds up neither the
others nor the evaluation. Rules are evaluated one at a time, so that other tasks run between them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from shoal.client.clock import Clock
from shoal.policy.alert_rules import ALERTS
from shoal.policy.alert_states import INTERVAL_MS, AlertChanges, AlertRound, AlertStates, RuleAlert
from shoal.prometheus.exposition import text_of
from shoal.prometheus.promql.scraped import TextReader
from shoal.prometheus.promql.tokens import PromqlError
from shoal.prometheus.registry import Reading
from shoal.store.history.alert_rows import AlertRows

_log = logging.getLogger("shoal.alerts")
_LEAST_S = 0.5
_SUFFIXES = ("", "_bucket", "_sum", "_count")
_OWN = "this process"
_PATIENCE_S = 20.0
_MOST_UNSENT = 1_000


Compute = Callable[[Callable[[], AlertChanges | None]], Awaitable[AlertChanges | None]]
"""Computes a step, which takes up to 0.2 s for 8,000 GPUs: in a thread, or at once in virtual time."""


async def _at_once(step: Callable[[], AlertChanges | None]) -> AlertChanges | None:
    return step()


async def _none_scraped() -> Mapping[str, str]:
    return {}


class AlertReceiver(Protocol):
    @property
    def name(self) -> str: ...

    async def send(self, told: AlertRound) -> None:
        """Raises OSError or TimeoutError where it is not accepted."""
        ...


class MetricSources(NamedTuple):
    exporters: Callable[[], Mapping[str, str]]
    """What the exporters said last, by address."""
    readings: Callable[[], Iterable[Reading]]
    """The metrics of this process."""
    scraped: Callable[[], Awaitable[Mapping[str, str]]] = _none_scraped
    """The metrics of other processes of Shoal now, by address."""


class AlertLoop:
    def __init__(
        self,
        clock: Clock,
        sources: MetricSources,
        rows: AlertRows,
        receivers: Sequence[AlertReceiver],
        compute: Compute = _at_once,
    ) -> None:
        self._clock, self._sources, self._rows, self._receivers = clock, sources, rows, receivers
        self.states = AlertStates(ALERTS)
        self._compute = compute
        self._texts = TextReader(self.states.store)
        self._unsent: dict[str, AlertChanges] = {}
        self._faults: dict[str, str] = {}

    async def run(self) -> None:
        self.states.restore(self._rows.open())
        while True:
            await self.step()
            await asyncio.gather(self._clock.sleep(INTERVAL_MS / 1000), asyncio.sleep(_LEAST_S))

    async def step(self) -> None:
        now = round(self._clock.seconds() * 1000)
        await self._read(now)
        changes = await self._evaluated(now)
        self._rows.write(self.states.alerts(), changes.ended)
        firing = [one for one in self.states.alerts() if one.state == "firing"]
        told = AlertRound(now, firing, changes)
        await asyncio.gather(*(self._send(one, told) for one in self._receivers))

    async def _read(self, now: int) -> None:
        store = self.states.store
        texts = {**self._sources.exporters(), **await self._sources.scraped()}
        for address, text in texts.items():
            store.scrape(address, now, self._texts.values(text))
            await asyncio.sleep(0)
        kept = store.kept
        readings = [one for one in self._sources.readings() if any(one.head.name + end in kept for end in _SUFFIXES)]
        store.scrape(_OWN, now, self._texts.values(text_of(readings).decode()))
        store.keep_sources({*texts, _OWN}, now)

    async def _evaluated(self, now: int) -> AlertChanges:
        fired, ended = list[RuleAlert](), list[RuleAlert]()
        try:
            steps = self.states.evaluate(now)
            while (changes := await self._compute(partial(next, steps, None))) is not None:
                fired += changes.fired
                ended += changes.ended
                await asyncio.sleep(0)
        except PromqlError as error:
            # Series of two sources with equal labels.
            self._complain("evaluation", f"a rule cannot be evaluated: {error}")
        else:
            self._faults.pop("evaluation", None)
        return AlertChanges(fired, ended)

    async def _send(self, receiver: AlertReceiver, told: AlertRound) -> None:
        before = self._unsent.pop(receiver.name, AlertChanges([], []))
        fired = [*before.fired, *told.changes.fired][-_MOST_UNSENT:]
        ended = [*before.ended, *told.changes.ended][-_MOST_UNSENT:]
        both = AlertChanges(fired, ended)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await receiver.send(AlertRound(told.at_ms, told.firing, both))
        except (OSError, TimeoutError) as error:
            self._unsent[receiver.name] = both
            self._complain(receiver.name, f"alerts cannot be sent to {receiver.name}: {str(error) or 'no answer'}")
        else:
            self._faults.pop(receiver.name, None)

    def _complain(self, what: str, message: str) -> None:
        """Once for each fault."""
        if self._faults.get(what) != message:
            self._faults[what] = message
            _log.warning("%s", message)
