"""Removes a release: what its inventory and its labels name, and what its programs wrote while they ran.

The order: the ClusterPolicy while its operator still runs, then the Deployments, then admission webhooks and policies,
so that nothing is refused because Shoal does not answer; permissions and definitions; at last the record and the
namespace. Pods that Shoal placed keep running. It may be killed at any write: another run continues.

Rejected: deleting the namespace first. Objects without a namespace would be left without a record of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from shoal.client.kind import (
    CONFIG_MAPS,
    DAEMON_SETS,
    DEFINITIONS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    Kind,
)
from shoal.client.port import Patch
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.data.permissions import ELECTION_NAMESPACE
from shoal.install.inventory import REMOVING
from shoal.install.manifest import STAGES, Address, stage_of
from shoal.install.release import MANAGED_BY, Release
from shoal.install.written_fields import removal_patch
from shoal.units.errors import UserError, Where
from shoal.wiring.installation.bound_releases import subject_namespaces
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.release_store import (
    find_record,
    record_address,
    save_record,
    selector_of,
)
from shoal.wiring.installation.stored_versions import defined_kind
from shoal.wiring.installation.written_objects import remove_written_objects

Obj = dict[str, Any]
Report = Callable[[str], None]
_DEFINITION, _CLAIM, _POLICY = "CustomResourceDefinition", "PersistentVolumeClaim", ("ClusterPolicy", "NVIDIADriver")
_OF_USERS = (PODS, DEPLOYMENTS, DAEMON_SETS, STATEFUL_SETS, JOBS, SERVICES, CONFIG_MAPS, SECRETS, VOLUME_CLAIMS)
_OF_NAMESPACES = frozenset({"kube-root-ca.crt", "openshift-service-ca.crt"})
_EVERY_S, _PATIENCE_S = 1.0, 120.0
_QUIET_PASSES, _MOST_PASSES = 4, 30


class RemovalRequest(msgspec.Struct, frozen=True):
    release: Release
    keeps_definitions: bool = False
    deletes_objects: Callable[[str, int], bool] | None = None
    """Asked for each definition that has objects: whether they are deleted with it. None: they are kept."""
    deletes_volume: Callable[[str], bool] | None = None
    """Asked for each claim of a volume: whether it is deleted with its data. None: it is kept."""


class RemovalPlan(msgspec.Struct, frozen=True):
    """The objects of the release that exist, in the order of their removal; definitions with objects separately."""

    addresses: tuple[Address, ...] = ()
    with_objects: tuple[tuple[Address, int], ...] = ()


class Remover:
    def __init__(self, writer: ClusterWriter, report: Report) -> None:
        self._writer = writer
        self._report = report

    async def plan(self, release: Release) -> RemovalPlan:
        """From the record and the labels: each may be missing after an interruption. Raises UserError if the labels are
        those of a release of another namespace."""
        record = await find_record(self._writer, release.name, release.namespace)
        found = {
            address: obj
            for address, obj in await self._writer.labelled(selector_of(release.name))
            if address.namespace in ("", release.namespace, ELECTION_NAMESPACE)
        }
        _check_namespace(release, found.values())
        for address in record.inventory if record is not None else ():
            obj = await self._writer.find(address)
            if obj is not None and release.owns(obj["metadata"].get("labels") or {}):
                found.setdefault(address, obj)
        found.pop(record_address(release.name, release.namespace), None)
        counted: list[tuple[Address, int]] = []
        for address, obj in found.items():
            if address.kind == _DEFINITION:
                number = await self._number_of_objects(obj, release)
                if number:
                    counted.append((address, number))
        ordered = sorted(found, key=_rank, reverse=True)
        return RemovalPlan(tuple(ordered), tuple(counted))

    async def remove(self, request: RemovalRequest, planned: RemovalPlan) -> list[Address]:
        """What stays, because the user keeps it."""
        release = request.release
        record = await find_record(self._writer, release.name, release.namespace)
        if record is not None and record.state == REMOVING:
            self._report(f"release {release.name}: its removal was interrupted and is completed now")
        elif record is not None:
            await save_record(self._writer, record.with_state(REMOVING))
        has_other_process = record is not None and record.has_other_process
        kept = self._kept(request, planned)
        going = [one for one in planned.addresses if one not in kept and one.kind != "Namespace"]
        for stage in reversed(STAGES[1:]):
            addresses = [one for one in going if stage_of(one.kind) == stage]
            if stage == "definitions":
                await self._clean_nodes(had_labels=record is None or record.had_gpu_labels)
                await self._stop_conversion(release, going)
            for address in addresses:
                await self._writer.delete(address)
            if stage in ("GPU stack", "workloads"):
                await self._until_gone(addresses)
            if stage == "GPU stack":
                # They would write the labels of nodes again.
                await self._until_components_end(release.namespace)
            if stage == "workloads" and not has_other_process:
                await remove_written_objects(self._writer, release.namespace)
            self._report(f"{stage}: {len(addresses)} removed" if addresses else f"{stage}: nothing is left")
        await self._until_gone([one for one in going if one.kind == _DEFINITION])
        await self._remove_namespace(release, planned, [one.name for one in kept if one.kind == _CLAIM])
        return kept

    def _kept(self, request: RemovalRequest, planned: RemovalPlan) -> list[Address]:
        volume, asks = request.deletes_volume, request.deletes_objects
        claims = [one for one in planned.addresses if one.kind == _CLAIM and (volume is None or not volume(one.name))]
        if request.keeps_definitions:
            return [*(one for one in planned.addresses if one.kind == _DEFINITION), *claims]
        with_objects = [one for one, number in planned.with_objects if asks is None or not asks(one.name, number)]
        return [*with_objects, *claims]

    async def _number_of_objects(self, definition: Obj, release: Release) -> int:
        """Without those of the release."""
        objects = await self._writer.all(defined_kind(definition))
        return sum(not release.owns(one["metadata"].get("labels") or {}) for one in objects)

    async def _stop_conversion(self, release: Release, going: Iterable[Address]) -> None:
        """Definitions that stay must not lead to Shoal's webhook, or their objects could not be read."""
        gone = {one.name for one in going if one.kind == _DEFINITION}
        for obj in await self._writer.all(DEFINITIONS):
            hook = (obj["spec"].get("conversion") or {}).get("webhook") or {}
            service = (hook.get("clientConfig") or {}).get("service") or {}
            name = obj["metadata"]["name"]
            if name not in gone and (service.get("namespace"), service.get("name")) == (
                release.namespace,
                "shoal-webhook",
            ):
                patch = Patch("merge", {"spec": {"conversion": {"strategy": "None", "webhook": None}}})
                await self._patch(DEFINITIONS, name, patch)

    async def _clean_nodes(self, *, had_labels: bool) -> None:
        """Labels and annotations that the operator and the agents wrote. A component that has just ended may have one
        more write under way, so the nodes are read until nothing is left for a while."""
        quiet = 0
        for _ in range(_MOST_PASSES):
            patches = [
                (node["metadata"]["name"], body)
                for node in await self._writer.all(NODES)
                if (body := removal_patch(node, had_labels=had_labels))
            ]
            for name, body in patches:
                await self._patch(NODES, name, Patch("merge", body))
            quiet = 0 if patches else quiet + 1
            if quiet == _QUIET_PASSES:
                return
            await self._writer.clock.sleep(_EVERY_S)

    async def _patch(self, kind: Kind, name: str, patch: Patch) -> None:
        try:
            await self._writer.patiently(lambda: self._writer.api.patch(kind, "", name, patch))
        except NotFoundError:
            return

    async def _until_gone(self, addresses: Iterable[Address]) -> None:
        """A time limit, because a controller that removes them may not run; the objects end later then."""
        ends_s = self._writer.clock.seconds() + _PATIENCE_S
        left = list(addresses)
        while True:
            left = [one for one in left if await self._writer.find(one) is not None]
            if not left:
                return
            if self._writer.clock.seconds() >= ends_s:
                self._report(f"{left[0]} is still terminating; see its finalizers: kubectl get {left[0].kind} -o yaml")
                return
            await self._writer.clock.sleep(_EVERY_S)

    async def _until_components_end(self, namespace: str) -> None:
        """The garbage collector removes what the ClusterPolicy owned."""
        ends_s = self._writer.clock.seconds() + _PATIENCE_S
        while self._writer.clock.seconds() < ends_s:
            sets = [
                one for one in await self._writer.all(DAEMON_SETS, "", namespace) if _is_owned(one, "ClusterPolicy")
            ]
            pods = [one for one in await self._writer.all(PODS, "", namespace) if _is_owned(one, "DaemonSet")]
            if not sets and not pods:
                return
            await self._writer.clock.sleep(_EVERY_S)
        self._report(f"GPU stack: pods of components are still there: kubectl get pods -n {namespace}")

    async def _remove_namespace(self, release: Release, planned: RemovalPlan, claims: Iterable[str]) -> None:
        await self._writer.delete(record_address(release.name, release.namespace))
        namespace = Address("v1", "Namespace", "", release.namespace)
        if namespace not in planned.addresses:
            return
        others = [*(f"{_CLAIM} {name}" for name in claims), *await self._others(release.namespace)]
        if others:
            shown = ", ".join(others[:3])
            self._report(f"namespace: {release.namespace} stays, because it has other objects: {shown}")
            return
        await self._writer.delete(namespace)
        await self._until_gone([namespace])
        self._report(f"namespace: {release.namespace} removed")

    async def _others(self, namespace: str) -> list[str]:
        """Objects of users; what a controller of theirs owns is not named separately."""
        found: list[str] = []
        for kind in _OF_USERS:
            try:
                listed = await self._writer.all(kind, f"{MANAGED_BY}!=shoal", namespace)
            except ForbiddenError:
                continue
            for obj in listed:
                meta = obj["metadata"]
                if "deletionTimestamp" in meta or meta.get("ownerReferences") or meta["name"] in _OF_NAMESPACES:
                    continue
                if obj.get("type") != "kubernetes.io/service-account-token":
                    found.append(f"{kind.name} {meta['name']}")
        return found


def _is_owned(obj: Obj, kind: str) -> bool:
    return any(one.get("kind") == kind for one in obj["metadata"].get("ownerReferences") or ())


def _check_namespace(release: Release, objects: Iterable[Obj]) -> None:
    spaces = {inside for obj in objects for inside in subject_namespaces(obj)}
    if spaces and release.namespace not in spaces:
        other = min(spaces)
        what = f"release {release.name} is in the namespace {other} and not in {release.namespace}"
        fix = f"remove it with: shoal uninstall {release.name} -n {other}"
        raise UserError(what, where=Where(path="--namespace"), fix=fix)


def _rank(address: Address) -> int:
    return STAGES.index(stage_of(address.kind))
