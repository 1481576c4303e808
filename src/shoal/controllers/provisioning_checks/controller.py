"""Requests capacity for Workloads whose ClusterQueue requires that: one ProvisioningRequest for each check and attempt.

It acts on AdmissionChecks of the controller `kueue.x-k8s.io/provisioning-request` and on Workloads with reserved quota.
It writes only the states of these checks into the status of a Workload; what follows from them (admission, requeueing,
deactivation) the queues decide. It does nothing while Kueue runs, which has such a controller itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import msgspec

from shoal.autoscale.provisioning_requests.request import request_of
from shoal.client import conditions
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import (
    ADMISSION_CHECKS,
    PROVISIONING_CONFIGS,
    PROVISIONING_REQUESTS,
    RESOURCE_FLAVORS,
    WORKLOADS,
)
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import POD_TEMPLATES, Kind
from shoal.client.loop import Loop
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import AlreadyExistsError, NotFoundError
from shoal.client.served import Served
from shoal.controllers.provisioning_checks.request_objects import (
    CheckConfig,
    config_of,
    managed_pod_sets,
    request_name,
    request_objects,
)
from shoal.controllers.provisioning_checks.results import (
    NOT_NEEDED,
    CheckedWorkload,
    CheckResult,
    check_result,
)
from shoal.controllers.queued_work.pod_set_info import pod_set_infos
from shoal.engine.queues.admission_checks import PROVISIONING
from shoal.store.queues.job_parts import dig

_CONFIG_GROUP: Final = "kueue.x-k8s.io"
_NEEDED: Final = (WORKLOADS, ADMISSION_CHECKS, PROVISIONING_CONFIGS, PROVISIONING_REQUESTS)
_LONGEST_MESSAGE: Final = 1024


class _ListedChecks(msgspec.Struct, rename="camel"):
    admission_checks: list[Obj] = []


class _Listed(msgspec.Struct):
    status: _ListedChecks = msgspec.field(default_factory=_ListedChecks)


class ProvisioningChecks:
    def __init__(self, context: Context, served: Served, is_left: Callable[[], bool] = lambda: False) -> None:
        """`is_left`: whether Kueue runs, to which the checks are left."""
        self.name = context.name
        self._context = context
        self._is_left = is_left
        self._loop = Loop(context, self._reconcile, workers=1)
        self._missing = set(_NEEDED)
        self._found = asyncio.Event()
        self._requests = PROVISIONING_REQUESTS
        for kind in _NEEDED:
            served.when_there(kind, partial(self._found_kind, kind))

    def _found_kind(self, wanted: Kind, found: Kind) -> None:
        if wanted == PROVISIONING_REQUESTS:
            self._requests = found
        self._missing.discard(wanted)
        if not self._missing:
            self._found.set()

    async def run(self) -> None:
        """Until cancelled. Nothing is read before the server has all kinds."""
        await self._found.wait()
        self._loop.follow(WORKLOADS)
        self._loop.follow(ADMISSION_CHECKS)
        self._loop.follow(PROVISIONING_CONFIGS, lambda _: self._all_keys())
        self._loop.follow(self._requests, _owners)
        self._loop.need(RESOURCE_FLAVORS)
        await self._loop.run()

    def _all_keys(self) -> Iterable[Key]:
        return [item.key for kind in (ADMISSION_CHECKS, WORKLOADS) for item in self._context.informers.of(kind)]

    async def _reconcile(self, key: Key) -> float | None:
        if self._is_left():
            return None
        item = self._context.informers.of(WORKLOADS if key[0] else ADMISSION_CHECKS).get(*key)
        if item is not None:
            await (self._workload(item) if key[0] else self._check(item))
        return None

    # -- AdmissionChecks ----------------------------------------------------------------------------------------------

    async def _check(self, item: Item) -> None:
        """Whether its configuration is there."""
        check = item.obj()
        if dig(check, ("spec", "controllerName")) != PROVISIONING:
            return
        status: Obj = dict(check.get("status") or {})
        says = (True, "Active", "The admission check is active")
        if self._config(check) is None:
            named = dig(check, ("spec", "parameters", "name"))
            what = f"ProvisioningRequestConfig {named} not found" if named else "spec.parameters names no configuration"
            says = (False, "BadParametersRef", what)
        clock = self._context.clock
        if conditions.put(status, "Active", says, conditions.WriteTime(clock.text(), clock.seconds())):
            patch = Patch("merge", {"metadata": {"uid": item.uid}, "status": {"conditions": status["conditions"]}})
            await self._context.api.patch(ADMISSION_CHECKS, "", item.name, patch, "status")

    def _config(self, check: Obj) -> CheckConfig | None:
        named: Obj = dig(check, ("spec", "parameters")) or {}
        if named.get("apiGroup") != _CONFIG_GROUP or named.get("kind") != PROVISIONING_CONFIGS.name:
            return None
        item = self._context.informers.of(PROVISIONING_CONFIGS).get("", str(named.get("name")))
        return None if item is None else config_of(item.obj())

    # -- Workloads ----------------------------------------------------------------------------------------------------

    async def _workload(self, item: Item) -> None:
        if not item.read(_Listed).status.admission_checks and not self._requests_of(item):
            return
        workload = item.obj()
        status: Obj = workload.get("status") or {}
        if conditions.is_true(status, "Finished"):
            return
        wanted: set[str] = set()
        states: list[Obj] = [dict(each) for each in status.get("admissionChecks") or ()]
        if conditions.is_true(status, "QuotaReserved"):
            for state in states:
                check = self._context.informers.of(ADMISSION_CHECKS).get("", str(state.get("name")))
                raw = check.obj() if check is not None else {}
                config = self._config(raw) if dig(raw, ("spec", "controllerName")) == PROVISIONING else None
                if config is not None and state.get("state") in ("Pending", "Ready"):
                    attempt = int(state.get("retryCount") or 0) + 1
                    name = request_name(item.name, item.uid, str(state["name"]), attempt)
                    wanted.add(name)
                    _set(state, await self._result(workload, name, config, attempt), self._context.clock.text())
        await self._delete_others(item, wanted)
        if states != (status.get("admissionChecks") or []):
            guard = {"uid": item.uid, "resourceVersion": str(item.version)}
            patch = Patch("merge", {"metadata": guard, "status": {"admissionChecks": states}})
            await self._context.api.patch(WORKLOADS, item.namespace, item.name, patch, "status")

    async def _result(self, workload: Obj, name: str, config: CheckConfig, attempt: int) -> CheckResult | None:
        pod_sets = managed_pod_sets(workload, config)
        if not pod_sets:
            return NOT_NEEDED
        meta = workload["metadata"]
        item = self._context.informers.of(self._requests).get(meta["namespace"], name)
        if item is None:
            return await self._create(workload, name, config)
        raw = item.obj()
        if meta["uid"] not in _owner_uids(raw):
            words = f"ProvisioningRequest {name} does not belong to this Workload; delete it to have capacity requested"
            return CheckResult("Pending", words)
        is_admitted = conditions.is_true(workload.get("status") or {}, "Admitted")
        names = [str(each.get("name", "main")) for each in pod_sets]
        details: dict[str, str] = dig(raw, ("status", "provisioningClassDetails")) or {}
        return check_result(request_of(raw), details, config, CheckedWorkload(attempt, is_admitted, names))

    async def _create(self, workload: Obj, name: str, config: CheckConfig) -> CheckResult | None:
        """The PodTemplates first: a request without them would fail."""
        if conditions.is_true(workload.get("status") or {}, "Admitted"):
            return None
        infos = pod_set_infos(workload, self._flavor, frozenset())
        if infos is None:
            return None
        request, templates = request_objects(workload, name, config, {info.name: info for info in infos})
        for kind, obj in (*((POD_TEMPLATES, each) for each in templates), (self._requests, request)):
            try:
                await self._context.api.create(kind, obj)
            except AlreadyExistsError:
                continue
        about = {"kind": WORKLOADS.name, "apiVersion": WORKLOADS.api_version, "metadata": workload["metadata"]}
        self._context.events.record(about, "ProvisioningRequestCreated", f'Created ProvisioningRequest: "{name}"')
        return None

    def _flavor(self, name: str) -> Obj | None:
        item = self._context.informers.of(RESOURCE_FLAVORS).get("", name)
        return None if item is None else item.obj()

    async def _delete_others(self, item: Item, wanted: set[str]) -> None:
        """Requests of earlier attempts, and all of them once the quota is no longer reserved."""
        for each in self._requests_of(item):
            if each.name not in wanted:
                try:
                    await self._context.api.delete(self._requests, *each.key, Deletion(uid=each.uid))
                except NotFoundError:
                    continue

    def _requests_of(self, item: Item) -> list[Item]:
        return list(self._context.informers.of(self._requests).index("workload", _owner_names)["/".join(item.key)])


def _set(state: Obj, result: CheckResult | None, now: str) -> None:
    if result is None:
        return
    if state.get("state") != result.state:
        state["lastTransitionTime"] = now
    state["state"], state["message"] = result.state, result.message[:_LONGEST_MESSAGE]
    for field, value in (("podSetUpdates", list(result.updates)), ("requeueAfterSeconds", result.again_s)):
        if value:
            state[field] = value
        else:
            state.pop(field, None)


def _owners(item: Item) -> list[Key]:
    """The Workload of a ProvisioningRequest."""
    owners: list[dict[str, Any]] = item.obj()["metadata"].get("ownerReferences") or []
    return [(item.namespace, str(each["name"])) for each in owners if each.get("kind") == WORKLOADS.name]


def _owner_uids(raw: Obj) -> set[str]:
    return {str(each.get("uid")) for each in raw["metadata"].get("ownerReferences") or ()}


def _owner_names(item: Item) -> list[str]:
    return ["/".join(key) for key in _owners(item)]
