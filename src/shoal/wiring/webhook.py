"""Runs the admission webhook of a Shoal process, if it needs one.

Each process has one, standby processes too: the API server calls any of them, and the leader may have just ended. A
process that starts together with an embedded server has a webhook on loopback, at any free port, if that server has no
admission policies: the configuration of an earlier process refers to a closed port and is replaced before jobs are
created. Where no process replaces it, it is removed, or labelled jobs would be refused forever.

Rejected: a webhook wherever Shoal runs. A laptop that a cluster cannot reach would be asked about every job. Taking it
away at the end of each process: jobs would slip in at the start of the next one, and a killed one takes nothing away.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from shoal.api.webhook_rules import OPEN_DOOR, WebhookRules
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES
from shoal.client.kind import DEFINITIONS, SERVICES
from shoal.client.port import Api
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.client.served import Served
from shoal.client.wanted_fields import says
from shoal.controllers.gatekeeping.hooks import BESIDE, HOOKS, NAME, PROVIDED, WebhookAddress
from shoal.controllers.gatekeeping.policies import OLDER_POLICIES, OURS, POLICIES
from shoal.controllers.gatekeeping.rule_policies import RULE_HOOK, RULE_HOOKS
from shoal.units.errors import ShoalError
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.queue_rules import QueueRules
from shoal.wiring.run_choice import RunChoice

if TYPE_CHECKING:
    from shoal.controllers.gatekeeping.webhook import Webhook, WebhookSettings

_log = logging.getLogger("shoal.gatekeeping")
GATEKEEPER = "gatekeeper"
_NAME = "shoal-webhook"
_EVERY_S = 60.0
_RETRY_S = 5.0
_PATIENCE_S = 5.0
_LOOPBACK = "127.0.0.1"
NO_POLICIES = (
    "the server has no MutatingAdmissionPolicy (v1, Kubernetes 1.36), and no way to this process is known: jobs that "
    "ask for a queue are suspended after they were created, and pods are not held; to hold them from the start, set "
    "webhook.url in a ShoalConfiguration given with --config, or webhook.address and make the Service "
    "shoal-system/shoal-webhook"
)


CONVERTED = (
    "the definitions of Kueue's kinds refer to a webhook at %s, and this process has none: unless another process "
    "answers there, objects of these kinds cannot be read or written in v1beta1. Set webhook.url (or webhook.address "
    "and the Service shoal-system/shoal-webhook) in a ShoalConfiguration given with --config; or, without conversion, "
    "set spec.conversion to {strategy: None} in each CustomResourceDefinition of kueue.x-k8s.io"
)
_CONVERTED_KIND = f"{CLUSTER_QUEUES.plural}.{CLUSTER_QUEUES.group}"
"""All of Kueue's definitions refer to the same webhook; this one is read."""


def start_webhook(tasks: ProcessTasks, api: Api, choice: RunChoice, *, is_beside: bool = False) -> WebhookTask | None:
    """Start the webhook once it is needed; it ends with `tasks`. `is_beside`: the embedded server on this machine
    starts together with this process."""
    if GATEKEEPER not in choice.controllers:
        # Without this part, definitions may not be read.
        return None
    if choice.own.webhook.enabled == "never":
        tasks.start("conversion", lambda: report_conversion(api))
        return None
    # Caches of its own: those of the leader end with its leadership.
    inner = ProcessTasks(api, api, tasks.clock)
    inner.informers.outage = tasks.informers.outage
    tasks.at_end(inner.end)
    hook = WebhookTask(inner, choice, is_beside=is_beside)
    inner.start(_NAME, hook.run)
    return hook


class WebhookTask:
    def __init__(self, tasks: ProcessTasks, choice: RunChoice, *, is_beside: bool) -> None:
        self._tasks = tasks
        self._rules = choice.own.webhook
        self._budgets = choice.own.leader_election.resource_namespace
        self._is_beside = is_beside
        self._modes = choice.rule_modes()
        self._context = tasks.context(_NAME, tasks.api)
        self._served = Served(self._context)
        self._served.when_there(POLICIES, None, OLDER_POLICIES)
        self._rules_in_force = QueueRules(self._context, choice)
        self._is_settled = asyncio.Event()
        self._warned = ""

    async def ready(self) -> None:
        """Returns when the webhook answers and is configured, when it is not needed, or after a timeout."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._is_settled.wait(), _PATIENCE_S)

    async def run(self) -> None:
        """Returns when the webhook has started."""
        # A server with admission policies needs no webhook beside it.
        await self._retry(self._has_read_kinds)
        if self._is_beside and self._has_policies() and self._modes is None:
            await self._retry(self._has_removed_former)
            self._is_settled.set()
            return
        await self._retry(self._is_wanted)
        webhook = self._new_webhook()
        # The webhook has registered further kinds.
        await self._retry(self._has_read_kinds)
        await self._rules_in_force.begin(self._tasks, (GATEKEEPER,))
        self._tasks.start("caches", self._tasks.informers.run)
        self._tasks.start("served kinds", self._served.run)
        self._tasks.start("webhook", webhook.run)
        await webhook.is_serving.wait()
        _log.info("the webhook listens on port %d", webhook.server.port)
        self._is_settled.set()

    def _new_webhook(self) -> Webhook:
        # Imported here: certificates and a server cost memory that most processes need not spend.
        from shoal.controllers.gatekeeping.webhook import Webhook

        settings = settings_beside() if self._is_beside else settings_of(self._rules)
        settings = msgspec.structs.replace(settings, budgets=self._budgets)
        return Webhook(self._context, self._served, settings, self._rules_in_force.holding, self._modes)

    def _has_policies(self) -> bool:
        return self._served.find(POLICIES) is not None

    async def _is_wanted(self) -> bool:
        rules = self._rules
        is_wanted_here = self._is_beside or await is_webhook_wanted(self._tasks.api, rules)
        is_shut = not self._is_beside and not rules.url and rules.is_on_loopback
        if is_wanted_here and not is_shut:
            return True
        if not self._is_settled.is_set() and not self._is_beside:
            await report_conversion(self._tasks.api)
        self._is_settled.set()
        warning = unreachable_text(rules) if is_wanted_here else "" if self._has_policies() else NO_POLICIES
        if warning and warning != self._warned:
            _log.warning("%s", warning)
            self._warned = warning
        return False

    async def _has_removed_former(self) -> bool:
        await remove_former_webhook(self._tasks.api)
        return True

    async def _has_read_kinds(self) -> bool:
        await self._served.look()
        return True

    async def _retry(self, ask: Callable[[], Awaitable[bool]]) -> None:
        """Call it until it returns True, also while the server does not answer."""
        while True:
            delay_s = _EVERY_S
            try:
                if await ask():
                    return
            except ShoalError as error:
                _log.info("cannot check whether a webhook is needed: %s", error)
                delay_s = _RETRY_S
            await self._context.clock.sleep(delay_s)


async def report_conversion(api: Api) -> None:
    """Reports once that definitions refer to the webhook of a process that has ended."""
    try:
        definition = (await api.get(DEFINITIONS, "", _CONVERTED_KIND)).obj()
    except ShoalError:
        return
    if (definition["metadata"].get("labels") or {}).get(PROVIDED) != "kueue":
        return
    client = ((definition["spec"].get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
    service = client.get("service") or {}
    where = client.get("url") or f"the Service {service.get('namespace')}/{service.get('name')}" if client else ""
    if where:
        _log.warning(CONVERTED, where)


async def remove_former_webhook(api: Api) -> None:
    """The configurations that an earlier process beside the server has written, if there are any."""
    for kind, name in ((HOOKS, NAME), (RULE_HOOKS, RULE_HOOK)):
        with contextlib.suppress(NotFoundError):
            present = (await api.get(kind, "", name)).obj()
            if says(present["metadata"].get("labels") or {}, {**OURS, **BESIDE}):
                await api.delete(kind, "", name)


async def is_webhook_wanted(api: Api, rules: WebhookRules) -> bool:
    if rules.enabled != "auto":
        return rules.enabled == "always"
    if rules.url:
        return True
    try:
        await api.get(SERVICES, rules.service_namespace, rules.service_name)
    except (NotFoundError, ForbiddenError):
        return False
    return True


def unreachable_text(rules: WebhookRules) -> str:
    service = f"{rules.service_namespace}/{rules.service_name}"
    return (
        f"the Service {service} refers to a webhook that listens on {rules.address} only: it is not configured, or "
        f"jobs would be refused; {OPEN_DOOR}"
    )


def settings_of(rules: WebhookRules) -> WebhookSettings:
    from shoal.controllers.gatekeeping.webhook import WebhookSettings

    address = WebhookAddress(
        rules.url,
        rules.service_namespace,
        rules.service_name,
        rules.service_port,
        injected_from=rules.injected_from,
    )
    folder = Path(rules.certificate_folder) if rules.certificate_folder else None
    return WebhookSettings(rules.address, rules.port, address, rules.all_names(), folder=folder)


def settings_beside() -> WebhookSettings:
    """The webhook listens on loopback, at any free port. The embedded server converts by itself."""
    from shoal.controllers.gatekeeping.webhook import WebhookSettings

    address = WebhookAddress(f"https://{_LOOPBACK}", is_beside=True)
    return WebhookSettings(_LOOPBACK, 0, address, (_LOOPBACK,), converts=False)
