"""Runs the webhook: renews its certificates, serves reviews, and configures the API server to use it.

It converts Kueue's kinds between their versions, and holds jobs where admission policies are not served. Any number of
replicas run it at the same time: they share their certificates, write the same configurations, and each answers.

Only definitions that Shoal installed are changed: Kueue's own refer to Kueue's webhook.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec.structs import replace

from shoal.client.clock import Clock
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import KUEUE, LOCAL_QUEUES
from shoal.client.item import Item, Obj
from shoal.client.kind import DEFINITIONS, NAMESPACES, Kind
from shoal.client.port import Patch
from shoal.client.refusals import NotFoundError
from shoal.client.served import Served
from shoal.client.wanted_fields import says
from shoal.controllers.gatekeeping.held_kinds import DEFAULT_QUEUE, Rules
from shoal.controllers.gatekeeping.hooks import (
    CONVERTING_PATH,
    HOLDING_PATH,
    HOOKS,
    NAME,
    PROVIDED,
    RENDEZVOUS_PATH,
    WebhookAddress,
    configuration,
    conversion,
)
from shoal.controllers.gatekeeping.installer import is_ours
from shoal.controllers.gatekeeping.policies import BINDINGS, CHECKING, OLDER_BINDINGS, OLDER_POLICIES, POLICIES
from shoal.controllers.gatekeeping.reviews import admitted, converted
from shoal.controllers.gatekeeping.rule_lookups import RuleLookups
from shoal.controllers.gatekeeping.rule_policies import RULE_HOOK, RULE_HOOKS, RULES_PATH, rule_configuration
from shoal.controllers.gatekeeping.webhook_cert_folder import WebhookCertFolder
from shoal.controllers.gatekeeping.webhook_cert_secret import WebhookCertSecret
from shoal.controllers.gatekeeping.webhook_certs import WebhookCerts, machine_date
from shoal.controllers.gatekeeping.webhook_server import Answer, WebhookServer
from shoal.policy.admission_rules.modes import RuleModes
from shoal.policy.admission_rules.reviews import reviewed
from shoal.units.errors import ConflictError, ShoalError

_log = logging.getLogger("shoal.gatekeeping")
_PAPERS = "shoal-webhook-papers"
_POLL_S = 60.0
_AGAIN_S = 2.0


class WebhookSettings(msgspec.Struct, frozen=True):
    host: str = "127.0.0.1"
    port: int = 9443
    """0: any free port, which then replaces the port of the address's URL."""
    address: WebhookAddress = WebhookAddress()
    names: tuple[str, ...] = ()
    """Further names and addresses in its certificate."""
    converts: bool = True
    """Whether the definitions of Kueue's kinds that Shoal installed refer to this webhook."""
    is_last_resort: bool = True
    """Whether the webhook holds jobs only where admission policies are not served."""
    date: Callable[[], datetime] = machine_date
    folder: Path | None = None
    """Where another program renews the certificate."""
    budgets: str = ""
    """The namespace of the report of what cost budgets have spent."""


class Webhook:
    def __init__(
        self,
        context: Context,
        served: Served,
        settings: WebhookSettings,
        rules: Rules,
        modes: RuleModes | None = None,
    ) -> None:
        """`modes`: of the admission rules; None: the webhook does not check them."""
        self.name = context.name
        self._context = context
        self._served = served
        self._settings = settings
        self._rules = rules
        self._modes = modes
        self._lookups = None if modes is None else RuleLookups(context, served, settings.budgets)
        address = settings.address
        hosts = (*settings.names, *address.hosts())
        self._certs: WebhookCertSecret | WebhookCertFolder = (
            WebhookCertFolder(settings.folder)
            if settings.folder is not None
            else WebhookCertSecret(context, (address.namespace, _PAPERS), hosts, settings.date)
        )
        answers: dict[str, Answer] = {HOLDING_PATH: self._held, RENDEZVOUS_PATH: self._met, CONVERTING_PATH: converted}
        answers[RULES_PATH] = self._reviewed
        self.server = WebhookServer(answers)
        self._papers: WebhookCerts | None = None
        self._wakeup = asyncio.Event()
        self._brake = _Brake(context.clock)
        self.is_serving = asyncio.Event()
        """Set when the webhook answers and the API server is configured."""
        served.when_there(POLICIES, None, OLDER_POLICIES)
        served.when_there(BINDINGS, None, OLDER_BINDINGS)
        older = LOCAL_QUEUES._replace(version="v1beta1")
        served.when_there(LOCAL_QUEUES, self._follow, older)
        context.informers.of(HOOKS).on_change(self._heard)
        served.when_there(CHECKING, None)
        if modes is not None:
            context.informers.of(NAMESPACES).on_change(self._heard_of_namespace)
        if settings.converts:
            context.informers.of(DEFINITIONS).on_change(self._heard)

    def _follow(self, kind: Kind) -> None:
        self._context.informers.of(kind).on_change(self._heard_of_queue)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            if self._lookups is not None:
                group.create_task(self._lookups.run())
            try:
                while True:
                    self._wakeup.clear()
                    await self._wait(await self._looked())
            finally:
                await self.server.close()

    async def _looked(self) -> float:
        try:
            await self.look()
        except ConflictError:
            return _AGAIN_S
        except ShoalError as error:
            _log.warning("webhook update failed: %s", error)
            return _AGAIN_S * 5
        except Exception:  # noqa: BLE001 - logged below; the running server continues
            # The server keeps its certificate and rules, and still holds jobs, which is better than no answer.
            _log.exception("webhook update failed")
            return _AGAIN_S * 5
        return _POLL_S

    async def look(self) -> None:
        """Correct certificates, server and configurations where they differ from the desired state."""
        papers = await self._certs.papers()
        if papers != self._papers:
            self.server.show(papers)
            self._papers = papers
        if not self.server.port:
            await self.server.start(self._settings.host, self._settings.port)
        address = self._address()
        queues = self._served.find(LOCAL_QUEUES)
        if queues is not None:
            # Before the default queues are known, jobs would not be held.
            await self._context.informers.synced((queues,))
        if self._has_policies() and self._settings.is_last_resort:
            await self._take_away()
        else:
            await self._configure(configuration(address, papers.bundle, self._rules(), self._defaults()))
        await self._configure_rules(address, papers.bundle)
        if self._settings.converts:
            await self._context.informers.synced((DEFINITIONS,))
            wanted = conversion(address, papers.bundle)
            for item in self._context.informers.of(DEFINITIONS):
                await self._lead(item, wanted)
        self.is_serving.set()

    def _address(self) -> WebhookAddress:
        address = self._settings.address
        if self._settings.port or not address.url:
            return address
        return replace(address, url=f"{address.url}:{self.server.port}")

    def _has_policies(self) -> bool:
        return self._served.find(POLICIES) is not None and self._served.find(BINDINGS) is not None

    async def _configure_rules(self, address: WebhookAddress, bundle: bytes) -> None:
        if self._modes is None or self._lookups is None:
            return
        await self._context.informers.synced((NAMESPACES,))
        has_policies = self._served.find(CHECKING) is not None
        namespaces = self._lookups.namespaces()
        wanted = rule_configuration(address, bundle, self._modes, namespaces, has_policies=has_policies)
        if wanted is None:
            await self._take_away(RULE_HOOKS, RULE_HOOK)
        else:
            await self._configure(wanted, RULE_HOOKS, RULE_HOOK)

    def _reviewed(self, review: Obj) -> Obj:
        if self._modes is None or self._lookups is None:
            # A configuration of an earlier process may still lead here.
            answer = {"uid": review["request"]["uid"], "allowed": True}
            return {"apiVersion": review.get("apiVersion"), "kind": review.get("kind"), "response": answer}
        has_policies = self._served.find(CHECKING) is not None
        return reviewed(review, self._lookups, self._modes, has_policies=has_policies)

    def _held(self, review: Obj) -> Obj:
        is_queued = self._served.find(LOCAL_QUEUES) is not None
        return admitted(review, self._rules() if is_queued else None, self._has_default)

    def _met(self, review: Obj) -> Obj:
        return admitted(review, None, self._has_default)

    def _has_default(self, namespace: str) -> bool:
        kind = self._served.find(LOCAL_QUEUES)
        return kind is not None and self._context.informers.of(kind).get(namespace, DEFAULT_QUEUE) is not None

    def _defaults(self) -> list[str]:
        kind = self._served.find(LOCAL_QUEUES)
        present = () if kind is None else self._context.informers.of(kind)
        return [item.namespace for item in present if item.name == DEFAULT_QUEUE]

    async def _configure(self, wanted: Obj, kind: Kind = HOOKS, name: str = NAME) -> None:
        present = await self._configured(kind, name)
        if present is not None and (says(present, wanted) or not is_ours(present)):
            return
        body = {"apiVersion": kind.api_version, "kind": kind.name, **wanted}
        self._brake.writes()
        await self._context.api.patch(kind, "", name, Patch("apply", body, force=True))

    async def _take_away(self, kind: Kind = HOOKS, name: str = NAME) -> None:
        present = await self._configured(kind, name)
        if present is not None and is_ours(present):
            self._brake.writes()
            await self._context.api.delete(kind, "", name)

    async def _configured(self, kind: Kind, name: str) -> Obj | None:
        try:
            return (await self._context.api.get(kind, "", name)).obj()
        except NotFoundError:
            return None

    async def _lead(self, item: Item, wanted: Obj) -> None:
        """Let a definition that Shoal installed use this webhook for conversion."""
        if not item.name.endswith(f".{KUEUE}"):
            return
        obj = item.obj()
        if (obj["metadata"].get("labels") or {}).get(PROVIDED) != "kueue" or len(obj["spec"]["versions"]) < 2:
            return
        annotations = self._settings.address.annotations
        present = obj["metadata"].get("annotations") or {}
        if says(obj["spec"].get("conversion"), wanted) and says(present, annotations):
            return
        # It may have had another address: only one of url and service is allowed.
        client = {"url": None, "service": None, **wanted["webhook"]["clientConfig"]}
        written = {**wanted, "webhook": {**wanted["webhook"], "clientConfig": client}}
        meta: Obj = {"resourceVersion": str(item.version)}
        if annotations:
            meta["annotations"] = annotations
        body = {"metadata": meta, "spec": {"conversion": written}}
        self._brake.writes()
        await self._context.api.patch(DEFINITIONS, "", item.name, Patch("merge", body))

    def _heard(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None and (item.name == NAME or item.name.endswith(f".{KUEUE}")):
            self._brake.when_free(self._wakeup.set)

    def _heard_of_namespace(self, before: Item | None, after: Item | None) -> None:
        if before is None or after is None or before.data != after.data:
            self._brake.when_free(self._wakeup.set)

    def _heard_of_queue(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None and item.name == DEFAULT_QUEUE and (before is None or after is None):
            self._wakeup.set()

    async def _wait(self, seconds: float) -> None:
        timer = self._context.clock.call_later(seconds, self._wakeup.set)
        try:
            await self._wakeup.wait()
        finally:
            timer.cancel()


class _Brake:
    """Limits conflicts between processes that write different configurations: each waits longer after every write of
    its own.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pause_s = 0.0
        self._until_s = -math.inf

    def writes(self) -> None:
        now_s = self._clock.seconds()
        if now_s >= self._until_s:
            is_calm = now_s >= self._until_s + _POLL_S
            self._pause_s = _AGAIN_S if is_calm else min(2 * self._pause_s, _POLL_S)
            self._until_s = now_s + self._pause_s

    def when_free(self, do: Callable[[], None]) -> None:
        """Run `do` now, or after the delay since the last write."""
        left_s = self._until_s - self._clock.seconds()
        if left_s > 0:
            self._clock.call_later(left_s, do)
        else:
            do()
