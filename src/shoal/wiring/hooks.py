"""The webhook of a process that runs Shoal on a cluster: whether there is one, and what it needs to answer.

Each process has one, also those that stand by: the API server comes to any of them, and whoever leads may have ended
just now. Where the embedded server converts by itself and has admission policies, nobody needs it.

Rejected: a webhook wherever Shoal runs. A laptop that a cluster cannot reach would be asked about every job.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from shoal.api.webhook_rules import WebhookRules
from shoal.store.live.context import Controller
from shoal.store.live.kind import SERVICES
from shoal.store.live.port import Api
from shoal.store.live.refusals import ForbiddenError, NotFoundError
from shoal.store.live.served import Served
from shoal.units.errors import ShoalError
from shoal.wiring.life import Life
from shoal.wiring.queue_ruling import QueueRuling
from shoal.wiring.run_choice import RunChoice

if TYPE_CHECKING:
    from shoal.controllers.gatekeeping.webhook import WebhookSettings

_log = logging.getLogger("shoal.gatekeeping")
GATEKEEPER = "gatekeeper"
_NAME = "shoal-webhook"
_EVERY_S = 60.0
_AGAIN_S = 5.0


def start_webhook(life: Life, api: Api, choice: RunChoice) -> None:
    """From when it is wanted on, for as long as `life`. `api` is its way in."""
    if choice.own.webhook.enabled == "never" or GATEKEEPER not in choice.controllers:
        return
    # Caches of its own: those of whoever leads end with that.
    inner = Life(api, api, life.clock)
    life.at_end(inner.end)
    inner.start(_NAME, Hook(inner, choice).run)


class Hook:
    def __init__(self, life: Life, choice: RunChoice) -> None:
        self._life = life
        self._rules = choice.own.webhook
        self._context = life.context(_NAME, life.api)
        self._served = Served(self._context)
        self._ruling = QueueRuling(self._context, choice)

    async def run(self) -> None:
        """Returns when everything of it is started."""
        await self._again(self._is_wanted)
        webhook = self._made()
        # What it does depends on whether the server has policies.
        await self._again(self._has_looked)
        await self._ruling.begin(self._life, (GATEKEEPER,))
        self._life.start("caches", self._life.informers.run)
        self._life.start("served kinds", self._served.run)
        _log.info("the webhook listens on %s port %d", self._rules.address, self._rules.port)
        self._life.start("webhook", webhook.run)

    def _made(self) -> Controller:
        # Imported here: certificates and a server cost memory that most processes need not spend.
        from shoal.controllers.gatekeeping.webhook import webhook_controller

        return webhook_controller(self._context, self._served, settings_of(self._rules), self._ruling.holding)

    async def _is_wanted(self) -> bool:
        return await is_wanted(self._life.api, self._rules)

    async def _has_looked(self) -> bool:
        await self._served.look()
        return True

    async def _again(self, ask: Callable[[], Awaitable[bool]]) -> None:
        """Until it says so; the server may be away meanwhile."""
        while True:
            delay_s = _EVERY_S
            try:
                if await ask():
                    return
            except ShoalError as error:
                _log.info("whether a webhook is wanted cannot be told: %s", error)
                delay_s = _AGAIN_S
            await self._context.clock.sleep(delay_s)


async def is_wanted(api: Api, rules: WebhookRules) -> bool:
    if rules.enabled != "auto":
        return rules.enabled == "always"
    if rules.url:
        return True
    try:
        await api.get(SERVICES, rules.service_namespace, rules.service_name)
    except (NotFoundError, ForbiddenError):
        return False
    return True


def settings_of(rules: WebhookRules) -> WebhookSettings:
    from shoal.controllers.gatekeeping.hooks import Address
    from shoal.controllers.gatekeeping.webhook import WebhookSettings

    address = Address(rules.url, rules.service_namespace, rules.service_name, rules.service_port)
    return WebhookSettings(rules.address, rules.port, address, rules.all_names())
