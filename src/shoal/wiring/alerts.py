"""Composes the evaluation of alerts beside the recorder of the history."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from shoal.api.alert_targets import AlertTargets
from shoal.client.context import Context
from shoal.controllers.alerting.alert_loop import AlertLoop, AlertReceiver, MetricSources
from shoal.controllers.alerting.receivers import AlertmanagerReceiver, EventReceiver, WebhookReceiver
from shoal.controllers.history.sampler import Sampler
from shoal.policy.alert_messages import prometheus_answer
from shoal.store.history.history import UsageHistory

if TYPE_CHECKING:
    import aiohttp

    from shoal.wiring.telemetry import Telemetry

ALERTS_PATH = "/api/v1/alerts"
"""As Prometheus serves them."""


def alert_loop(
    outside: tuple[Context, aiohttp.ClientSession],
    inside: tuple[UsageHistory, Sampler, Telemetry | None],
    targets: AlertTargets,
) -> AlertLoop:
    """The alerts that are active are also a document of the telemetry."""
    (context, session), (history, sampler, telemetry) = outside, inside
    post = partial(posted, session)
    receivers: list[AlertReceiver] = [AlertmanagerReceiver(one, post) for one in targets.alertmanagers]
    receivers += [WebhookReceiver(one, post) for one in targets.webhooks]
    receivers += [EventReceiver(context)] if targets.has_events else []
    sources = MetricSources(lambda: sampler.texts, lambda: () if telemetry is None else telemetry.registry.read())
    loop = AlertLoop(context.clock, sources, history.alerts, receivers, asyncio.to_thread)
    if telemetry is not None:
        telemetry.documents[ALERTS_PATH] = lambda: msgspec.json.encode(prometheus_answer(loop.states.alerts()))
    return loop


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
