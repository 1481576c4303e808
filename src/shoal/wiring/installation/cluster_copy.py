"""Copies the objects on which an upgrade acts into an embedded cluster in this process.

Copied are the objects of the release, its definitions with all their objects, the nodes, and the pods with what they
need to exist. Webhooks are not copied, because the copy must not ask programs of the real cluster; definitions that a
webhook of Shoal converts are converted by the embedded server. Only reads go to the real cluster.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from shoal.client.clock import Clock
from shoal.client.kind import (
    CONFIG_MAPS,
    DEFINITIONS,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    SERVICE_ACCOUNTS,
    Kind,
)
from shoal.client.port import Api
from shoal.client.refusals import AlreadyExistsError, ForbiddenError, RefusedError
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.foreign.definitions import tables
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.apiserver.server.control_plane import open_plane
from shoal.embedded.apiserver.settings import Settings
from shoal.embedded.apiserver.storage.memory import MemoryStorage
from shoal.install.kinds import KINDS
from shoal.install.manifest import Address, address_of
from shoal.install.release import FIELD_MANAGER, Release
from shoal.wiring.installation.cluster_writer import ClusterWriter, request_kind
from shoal.wiring.installation.release_store import record_address, selector_of
from shoal.wiring.installation.stored_versions import defined_kind

Obj = dict[str, Any]
_ADMIN = Actor("rehearsal", ("system:masters", "system:authenticated"))
_SERVER_SIDE = ("resourceVersion", "uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp")
_ADDRESSES = ("clusterIP", "clusterIPs")
_EVERY_S, _ESTABLISHED_TRIES = 0.2, 100
_RUNTIME_CLASSES = Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", is_namespaced=False)
_OF_INSTALLATIONS = tuple(request_kind(one) for one in KINDS if one.name not in ("CustomResourceDefinition", "Pod"))


class ClusterCopy:
    """`writer`: to the copy. `kinds`: of all objects that were copied."""

    def __init__(self, source: ClusterWriter, writer: ClusterWriter) -> None:
        self.writer = writer
        self.kinds: list[Kind] = []
        self.custom: list[Kind] = []
        """Those of the definitions of the release, in each version that was served."""
        self.counts: Counter[str] = Counter()
        self.refused: list[str] = []
        """Objects that could not be copied, with the reason."""
        self._source = source

    async def fill(self, release: Release) -> None:
        labelled = selector_of(release.name)
        await self._copy(NAMESPACES)
        definitions = await self._definitions(labelled)
        for kind in (PRIORITY_CLASSES, _RUNTIME_CLASSES, SERVICE_ACCOUNTS, NODES):
            await self._copy(kind)
        for kind in _OF_INSTALLATIONS:
            if kind not in (NAMESPACES, SERVICE_ACCOUNTS):
                await self._copy(kind, labelled)
        await self._record(release)
        for definition in definitions:
            await self._copy(defined_kind(definition))
            self.custom += _served_kinds(definition)
        await self._copy(PODS)

    async def objects(self) -> dict[Address, Obj]:
        """All that are in the copy, of the kinds that were copied; without the record."""
        found: dict[Address, Obj] = {}
        for kind in (*self.kinds, DEFINITIONS):
            for obj in await self.writer.all(kind):
                found[address_of(obj)] = obj
        return {address: obj for address, obj in found.items() if not _is_record(address)}

    async def custom_objects(self) -> dict[Address, Obj]:
        """The custom resources of users, in each version that was served before."""
        return {address_of(obj): obj for kind in self.custom for obj in await self.writer.all(kind)}

    async def _definitions(self, labelled: str) -> list[Obj]:
        """Those of the release. Others that an installation may apply are copied too, and stay as they are."""
        found = await self._listed(DEFINITIONS, labelled)
        names = {one["metadata"]["name"] for one in found}
        known = {f"{row.plural}.{row.group or table.group}" for _, table in tables() for row in table.kinds} - names
        others = [one for one in await self._listed(DEFINITIONS, "") if one["metadata"]["name"] in known]
        for one in (*found, *others):
            one["spec"].pop("conversion", None)
            await self._create(DEFINITIONS, one)
        await self._until_established()
        return found

    async def _until_established(self) -> None:
        for _ in range(_ESTABLISHED_TRIES):
            states = [_is_established(one) for one in await self.writer.all(DEFINITIONS)]
            if all(states):
                return
            await self.writer.clock.sleep(_EVERY_S)

    async def _record(self, release: Release) -> None:
        record = await self._source.find(record_address(release.name, release.namespace))
        if record is not None:
            await self._create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", **record})

    async def _copy(self, kind: Kind, selector: str = "") -> None:
        if kind not in self.kinds:
            self.kinds.append(kind)
        for obj in await self._listed(kind, selector):
            await self._create(kind, obj)

    async def _listed(self, kind: Kind, selector: str) -> list[Obj]:
        try:
            return await self._source.all(kind, selector)
        except ForbiddenError as error:
            self.refused.append(f"{kind.plural}: {error}")
            return []

    async def _create(self, kind: Kind, obj: Obj) -> None:
        copied = _cleaned(obj)
        try:
            made = (await self.writer.api.create(kind, copied)).obj()
            if kind in (PODS, NODES) and obj.get("status"):
                await self.writer.api.update(kind, {**made, "status": obj["status"]}, "status")
        except AlreadyExistsError:
            return
        except RefusedError as error:
            self.refused.append(f"{kind.name} {obj['metadata']['name']}: {error}")
            return
        self.counts[kind.plural] += 1


@asynccontextmanager
async def cluster_copy(source: ClusterWriter, clock: Clock, release: Release) -> AsyncIterator[ClusterCopy]:
    with tempfile.TemporaryDirectory(prefix="shoal-rehearsal-") as folder:
        settings = Settings(None, Path(folder) / "kubeconfig")
        plane = await open_plane(settings, ("127.0.0.1", 1), MemoryStorage(), clock)
        try:
            api: Api = InsideApi(plane, _ADMIN, FIELD_MANAGER)
            copied = ClusterCopy(source, ClusterWriter(api, clock))
            await copied.fill(release)
            yield copied
        finally:
            await plane.close()


def _cleaned(obj: Obj) -> Obj:
    """A pod keeps its node."""
    meta = {name: value for name, value in obj["metadata"].items() if name not in _SERVER_SIDE}
    found = {name: value for name, value in obj.items() if name not in ("metadata", "status")}
    if obj["kind"] == "Service":
        found["spec"] = {name: value for name, value in obj["spec"].items() if name not in _ADDRESSES}
    return {**found, "metadata": meta}


def _served_kinds(definition: Obj) -> Iterable[Kind]:
    stored = defined_kind(definition)
    for version in definition["spec"]["versions"]:
        if version.get("served"):
            yield Kind(stored.group, version["name"], stored.plural, stored.name, is_namespaced=stored.is_namespaced)


def _is_established(definition: Obj) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _is_record(address: Address) -> bool:
    return address.kind == "ConfigMap" and address.name.startswith("shoal-release-")
