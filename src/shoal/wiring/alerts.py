"""Composes the evaluation of alerts beside the recorder of the history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from shoal.api.alert_targets import AlertTargets
from shoal.client.context import Context
from shoal.client.fetched_text import fetched_text
from shoal.controllers.alerting.alert_loop import AlertLoop, AlertReceiver, MetricSources
from shoal.controllers.alerting.receivers import AlertmanagerReceiver, EventReceiver, WebhookReceiver
from shoal.controllers.alerting.scraped_metrics import ScrapedMetrics
from shoal.controllers.history.sampler import Sampler
from shoal.policy.alert_messages import prometheus_answer
from shoal.prometheus.registry import Reading, Registry
from shoal.store.history.history import UsageHistory

if TYPE_CHECKING:
    import aiohttp

    from shoal.wiring.telemetry import Telemetry

_PATIENCE_S = 5.0
ALERTS_PATH = "/api/v1/alerts"
"""As Prometheus serves them."""


def _readings(telemetry: Telemetry | None) -> Iterable[Reading]:
    return () if telemetry is None else telemetry.registry.read()


async def run_alerts(
    outside: tuple[Context, aiohttp.ClientSession],
    inside: tuple[UsageHistory, Sampler, Telemetry | None],
    targets: AlertTargets,
    addresses: Sequence[str],
) -> None:
    """`addresses`: the metrics of other processes that are scraped too."""
    async with scraped_metrics(addresses, inside[2]) as scraped:
        await alert_loop(outside, inside, targets, scraped).run()


def alert_loop(
    outside: tuple[Context, aiohttp.ClientSession],
    inside: tuple[UsageHistory, Sampler, Telemetry | None],
    targets: AlertTargets,
    scraped: ScrapedMetrics,
) -> AlertLoop:
    """The alerts that are active are also a document of the telemetry."""
    (context, session), (history, sampler, telemetry) = outside, inside
    post = partial(posted, session)
    receivers: list[AlertReceiver] = [AlertmanagerReceiver(one, post) for one in targets.alertmanagers]
    receivers += [WebhookReceiver(one, post) for one in targets.webhooks]
    receivers += [EventReceiver(context)] if targets.has_events else []
    own = partial(_readings, telemetry)
    sources = MetricSources(lambda: sampler.texts, own, scraped.texts)
    loop = AlertLoop(context.clock, sources, history.alerts, receivers, asyncio.to_thread)
    if telemetry is not None:
        telemetry.documents[ALERTS_PATH] = lambda: msgspec.json.encode(prometheus_answer(loop.states.alerts()))
    return loop


@asynccontextmanager
async def scraped_metrics(addresses: Sequence[str], telemetry: Telemetry | None) -> AsyncIterator[ScrapedMetrics]:
    """Each scrape has a connection of its own, so that a Service may lead it to another pod."""
    import aiohttp

    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=_PATIENCE_S)) as session:
        registry = Registry() if telemetry is None else telemetry.registry
        yield ScrapedMetrics(addresses, partial(fetched_text, session), registry)


async def posted(session: aiohttp.ClientSession, address: str, body: bytes) -> None:
    """Redirects are not followed: they would carry what the alerts say elsewhere. Raises OSError or TimeoutError."""
    import aiohttp

    headers = {"Content-Type": "application/json"}
    try:
        async with session.post(address, data=body, headers=headers, allow_redirects=False) as answer:
            if not 200 <= answer.status < 300:
                raise OSError(f"status {answer.status}")
    except aiohttp.ClientError as error:
        # Its text may have the address with a password.
        raise OSError(type(error).__name__) from None
