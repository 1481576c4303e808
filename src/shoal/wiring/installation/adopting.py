"""Carries out an adoption, and reverts it. Pods, queues and admissions are not written.

The order of an adoption: the record with the former state; the webhooks of the project, so that no request is refused
when they stop to answer; its controllers, until their pods have ended; its Leases, by which Shoal sees that it has
ended; the conversion of its objects; its aggregated APIs. A revert goes the other way. Before it starts the controllers
again it holds their Leases, so that Shoal leaves the decisions to the project before the project decides.

Guarantees: each write can be repeated, so that after an interruption the same command completes the work, and a revert
restores the former state from each point. A webhook is set aside by a match condition that is never true: the object
stays, and a revert removes that condition alone.

Rejected: deleting the webhook configurations. Their certificates are maintained in place by other programs.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import Any

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.client.kind import API_SERVICES, DEFINITIONS, DEPLOYMENTS, LEASES, PODS
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import NotFoundError, RefusedError
from shoal.install.adoption.facts import HOLDER, live_holder
from shoal.install.adoption.plan import PROVIDED
from shoal.install.adoption.projects import AdoptedProject
from shoal.install.adoption.record import (
    ADOPTED,
    ADOPTING,
    REVERTING,
    AdoptionRecord,
    SavedDeployment,
    SavedHook,
    adoption_address,
    adoption_from_api,
    adoption_to_api,
)
from shoal.install.objects.certificates import WEBHOOK_SERVICE
from shoal.install.release import MANAGED_BY, Release
from shoal.wiring.installation.adoption_reader import HOOK_KINDS
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.stage_waits import NotReadyError

Obj = dict[str, Any]
Report = Callable[[str], None]
ASIDE = "shoal.dev/adopted"
"""The match condition of a webhook that is not called."""
_HOLD_S = 20.0
"""Shoal looks for the project every 15 seconds."""
_EVERY_S = 1.0
_LEASE_S = 15


async def find_adoption(writer: ClusterWriter, project: str, namespace: str) -> AdoptionRecord | None:
    """`namespace`: of the release. Raises UserError for a record of another form."""
    found = await writer.find(adoption_address(project, namespace))
    return None if found is None else adoption_from_api(found)


class Adopter:
    def __init__(self, writer: ClusterWriter, release: Release, report: Report, timeout_s: float) -> None:
        self._writer = writer
        self._api = writer.api
        self._release = release
        self._report = report
        self._ends_s = writer.clock.seconds() + timeout_s

    async def adopt(self, project: AdoptedProject, present: AdoptionRecord) -> AdoptionRecord:
        """`present`: the state now. Raises NotReadyError if something does not end in time."""
        former = await find_adoption(self._writer, project.name, self._release.namespace)
        record = present.over(former)
        if former is None or former.state != ADOPTED:
            await self._save(record.with_state(ADOPTING))
        for hook in present.hooks:
            await self._set_aside(hook)
        self._report(f"webhooks: {len(present.hooks)} set aside")
        for one in present.deployments:
            await self._scale(one.namespace, one.name, 0)
            # A controller that restores others must have ended before these are stopped.
            await self._until_no_pods(one)
            self._report(f"Deployment {one.namespace}/{one.name}: stopped")
        for name in project.leases:
            await self._until_no_leader(record.namespace, name)
            await self._release_lease(record.namespace, name)
        await self._take_conversions(record)
        for obj in record.api_services:
            await self._remove_api_service(obj["metadata"]["name"])
        if former is None or former != record.with_state(ADOPTED):
            await self._save(record.with_state(ADOPTED))
        return record.with_state(ADOPTED)

    async def revert(self, project: AdoptedProject, record: AdoptionRecord) -> None:
        """Raises NotReadyError if the controllers are not ready in time; the webhooks are not called then."""
        if record.state != REVERTING:
            await self._save(record.with_state(REVERTING))
        await self._hold_leases(project, record)
        for one in reversed(record.deployments):
            await self._scale(one.namespace, one.name, one.replicas)
        for one in record.deployments:
            await self._until_ready(project, one)
        for saved in record.definitions:
            body = {
                "metadata": {"labels": {PROVIDED: saved.provided}},
                "spec": {"conversion": _whole(saved.conversion)},
            }
            await self._patch(DEFINITIONS, "", saved.name, Patch("merge", body))
        for obj in record.api_services:
            await self._restore_api_service(obj)
        for hook in record.hooks:
            await self._put_back(hook)
        for name in project.leases:
            await self._release_lease(record.namespace, name, held_by=HOLDER)
        await self._writer.delete(adoption_address(project.name, self._release.namespace))
        self._report(f"{project.title} decides again")

    async def _save(self, record: AdoptionRecord) -> None:
        await self._writer.apply(adoption_to_api(record, self._release))

    async def _patch(self, kind: Any, namespace: str, name: str, patch: Patch) -> bool:
        """False if the object does not exist any more: there is nothing to change then."""
        try:
            await self._writer.patiently(lambda: self._api.patch(kind, namespace, name, patch))
        except NotFoundError:
            return False
        return True

    # -- webhooks ---------------------------------------------------------------------------------------------------

    async def _set_aside(self, hook: SavedHook) -> None:
        kind = HOOK_KINDS[hook.kind]
        found = [{"name": name, "matchConditions": [{"name": ASIDE, "expression": "false"}]} for name in hook.hooks]
        await self._apply_hook(kind, hook.name, {"webhooks": found})

    async def _put_back(self, hook: SavedHook) -> None:
        """What this program applied before is removed, because it is not applied again."""
        kind = HOOK_KINDS[hook.kind]
        try:
            await self._writer.patiently(lambda: self._api.get(kind, "", hook.name))
        except NotFoundError:
            return
        await self._apply_hook(kind, hook.name, {})

    async def _apply_hook(self, kind: Any, name: str, fields: Obj) -> None:
        body = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": name}, **fields}
        await self._writer.patiently(lambda: self._api.patch(kind, "", name, Patch("apply", body, force=True)))

    # -- controllers ------------------------------------------------------------------------------------------------

    async def _scale(self, namespace: str, name: str, replicas: int) -> None:
        try:
            found = await self._writer.patiently(lambda: self._api.get(DEPLOYMENTS, namespace, name))
        except NotFoundError:
            self._report(f"Deployment {namespace}/{name}: it does not exist any more")
            return
        if found.obj()["spec"].get("replicas", 1) != replicas:
            await self._patch(DEPLOYMENTS, namespace, name, Patch("merge", {"spec": {"replicas": replicas}}))

    async def _until_no_pods(self, one: SavedDeployment) -> None:
        while True:
            found = await self._deployment(one)
            labels = ((found or {}).get("spec", {}).get("selector") or {}).get("matchLabels") or {}
            selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
            pods = await self._writer.all(PODS, selector, one.namespace) if found and selector else []
            left = [pod["metadata"]["name"] for pod in pods if not _has_ended(pod)]
            if not left:
                return
            if self._writer.clock.seconds() >= self._ends_s:
                what = f"pod {one.namespace}/{left[0]} of the Deployment {one.name} has not ended"
                raise NotReadyError(f"{what}; see kubectl describe pod -n {one.namespace} {left[0]}, then repeat")
            await self._writer.clock.sleep(_EVERY_S)

    async def _until_ready(self, project: AdoptedProject, one: SavedDeployment) -> None:
        while one.replicas:
            found = await self._deployment(one)
            if found is None or (found.get("status") or {}).get("readyReplicas", 0) > 0:
                return
            if self._writer.clock.seconds() >= self._ends_s:
                what = f"Deployment {one.namespace}/{one.name} has no ready pod"
                raise NotReadyError(f"{what}; its webhooks are not called yet: repeat the command when it is ready")
            await self._write_leases(project, one.namespace)
            await self._writer.clock.sleep(_EVERY_S)

    async def _deployment(self, one: SavedDeployment) -> Obj | None:
        try:
            return (await self._writer.patiently(lambda: self._api.get(DEPLOYMENTS, one.namespace, one.name))).obj()
        except NotFoundError:
            return None

    # -- Leases -----------------------------------------------------------------------------------------------------

    async def _until_no_leader(self, namespace: str, name: str) -> None:
        """Another Deployment may run the project too. A leader is named after its pod."""
        while True:
            try:
                lease = (await self._writer.patiently(lambda: self._api.get(LEASES, namespace, name))).obj()
            except NotFoundError:
                return
            holder = live_holder(lease, self._writer.clock.now())
            pod = holder.partition("_")[0]
            pods = await self._writer.all(PODS, "", namespace) if holder else []
            if not any(one["metadata"]["name"] == pod and not _has_ended(one) for one in pods):
                return
            if self._writer.clock.seconds() >= self._ends_s:
                what = f"pod {namespace}/{pod} still holds the Lease {name}, and decides"
                fix = f"stop its controller, see kubectl describe pod -n {namespace} {pod}; then repeat, or --revert"
                raise NotReadyError(f"{what}: {fix}")
            await self._writer.clock.sleep(_EVERY_S)

    async def _release_lease(self, namespace: str, name: str, held_by: str = "") -> None:
        """As a controller does that ends: others need not wait until the Lease expires."""
        try:
            lease = (await self._writer.patiently(lambda: self._api.get(LEASES, namespace, name))).obj()
        except NotFoundError:
            return
        holder = (lease.get("spec") or {}).get("holderIdentity")
        if not holder or held_by not in ("", holder):
            return
        version = lease["metadata"]["resourceVersion"]
        if holder == HOLDER and (lease["metadata"].get("labels") or {}).get(MANAGED_BY) == "shoal":
            await self._delete_lease(namespace, name, int(version))
            return
        body = {"metadata": {"resourceVersion": version}, "spec": {"holderIdentity": ""}}
        try:
            await self._api.patch(LEASES, namespace, name, Patch("merge", body))
        except RefusedError:
            # Another process has just taken it.
            return

    async def _delete_lease(self, namespace: str, name: str, version: int) -> None:
        """One that this program created, and no other process has taken since."""
        try:
            await self._api.delete(LEASES, namespace, name, Deletion(version=version))
        except RefusedError:
            return

    async def _hold_leases(self, project: AdoptedProject, record: AdoptionRecord) -> None:
        """Until each process of Shoal has seen it."""
        if not any(one.replicas for one in record.deployments):
            return
        self._report(f"waiting until Shoal leaves the decisions to {project.title}")
        ends_s = self._writer.clock.seconds() + _HOLD_S
        while self._writer.clock.seconds() < ends_s:
            await self._write_leases(project, record.namespace)
            await self._writer.clock.sleep(_EVERY_S)

    async def _write_leases(self, project: AdoptedProject, namespace: str) -> None:
        """The Lease of a leader of the project that has begun to work is not taken."""
        name = await self._lease_in_use(project, namespace)
        now = _micro_time(self._writer.clock.now())
        spec = {"holderIdentity": HOLDER, "leaseDurationSeconds": _LEASE_S, "renewTime": now}
        try:
            lease = (await self._writer.patiently(lambda: self._api.get(LEASES, namespace, name))).obj()
        except NotFoundError:
            meta = {"name": name, "namespace": namespace, "labels": {MANAGED_BY: "shoal"}}
            obj = {"metadata": meta, "spec": {**spec, "acquireTime": now}}
            with suppress(NotFoundError):
                # The namespace may have been removed with the project.
                await self._writer.patiently(lambda: self._api.create(LEASES, obj))
            return
        if (lease.get("spec") or {}).get("holderIdentity") in (None, "", HOLDER):
            await self._patch(LEASES, namespace, name, Patch("merge", {"spec": spec}))

    async def _lease_in_use(self, project: AdoptedProject, namespace: str) -> str:
        for name in project.leases:
            try:
                await self._writer.patiently(lambda name=name: self._api.get(LEASES, namespace, name))  # type: ignore[misc]
            except NotFoundError:
                continue
            return name
        return project.leases[0]

    # -- conversion and aggregated APIs -----------------------------------------------------------------------------

    async def _take_conversions(self, record: AdoptionRecord) -> None:
        """Shoal's webhook serves the conversion of definitions with that label."""
        for saved in record.definitions:
            await self._patch(
                DEFINITIONS, "", saved.name, Patch("merge", {"metadata": {"labels": {PROVIDED: record.project}}})
            )
        for saved in record.definitions:
            while not await self._is_converted_here(saved.name):
                if self._writer.clock.seconds() >= self._ends_s:
                    what = f"Shoal's webhook does not convert {saved.name}"
                    fix = f"kubectl logs -n {self._release.namespace} deployment/shoal; then repeat"
                    raise NotReadyError(f"{what}; its log: {fix}")
                await self._writer.clock.sleep(_EVERY_S)

    async def _is_converted_here(self, name: str) -> bool:
        try:
            found = (await self._writer.patiently(lambda: self._api.get(DEFINITIONS, "", name))).obj()
        except NotFoundError:
            return True
        client = ((found["spec"].get("conversion") or {}).get("webhook") or {}).get("clientConfig") or {}
        service = client.get("service") or {}
        is_ours = (service.get("namespace"), service.get("name")) == (self._release.namespace, WEBHOOK_SERVICE)
        return bool(client.get("url")) or is_ours

    async def _remove_api_service(self, name: str) -> None:
        try:
            await self._writer.patiently(lambda: self._api.delete(API_SERVICES, "", name))
        except NotFoundError:
            return

    async def _restore_api_service(self, obj: Obj) -> None:
        name = obj["metadata"]["name"]
        try:
            await self._writer.patiently(lambda: self._api.get(API_SERVICES, "", name))
        except NotFoundError:
            await self._writer.patiently(lambda: self._api.create(API_SERVICES, obj))


def _whole(conversion: Obj) -> Obj:
    """As a merge patch that leaves nothing of another conversion."""
    hook = conversion.get("webhook")
    if not hook:
        return {"webhook": None, **conversion}
    client = {"url": None, "service": None, "caBundle": None, **(hook.get("clientConfig") or {})}
    if client["service"]:
        client["service"] = {"path": None, "port": None, **client["service"]}
    return {**conversion, "webhook": {**hook, "clientConfig": client}}


def _has_ended(pod: Obj) -> bool:
    return (pod.get("status") or {}).get("phase") in TERMINAL_PHASES


def _micro_time(now: datetime) -> str:
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
