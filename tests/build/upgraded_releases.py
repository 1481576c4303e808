"""A cluster in which a release is installed and upgraded; Deployments get ready, unless their image is tagged `bad`.

async with upgraded(tmp_path) as tried:
    await tried.installer.apply(await tried.prepared(*QUICK))
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from build.small_clusters import ADMIN, SmallCluster, small_cluster
from shoal.client.kind import DEPLOYMENTS, NODES
from shoal.client.port import Api
from shoal.embedded.apiserver.foreign.definitions import storing_the_oldest
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.install.inventory import ReleaseRecord
from shoal.install.release import FIELD_MANAGER, Release
from shoal.install.values.reading import ValuesText, read_values
from shoal.wiring.installation.applying import Installer, Patience
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.facts_reader import POLICIES
from shoal.wiring.installation.preparing import InstallRequest, Preparation, prepare
from shoal.wiring.installation.release_store import find_record

Obj = dict[str, Any]
RELEASE = Release("prod", "gpu-operator", "0.2.0")
QUICK = ("crds.projects={gpu-operator}", "controllers={scheduler}", "smokeTest.enabled=false")


class Upgraded:
    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.told: list[str] = []
        self.use(InsideApi(cluster.plane, ADMIN, FIELD_MANAGER))

    def use(self, api: Api) -> None:
        """As a new process of the command does."""
        self.writer = ClusterWriter(api, self.cluster.clock)
        self.installer = Installer(self.writer, self.told.append, Patience(timeout_s=30))

    async def prepared(self, *sets: str, kept: dict[str, Any] | None = None, release: Release = RELEASE) -> Preparation:
        """Without an error."""
        found = await self.tried(*sets, kept=kept, release=release)
        assert found.errors == []
        return found

    async def tried(self, *sets: str, kept: dict[str, Any] | None = None, release: Release = RELEASE) -> Preparation:
        values = read_values([ValuesText("--set", one) for one in sets], kept)
        return await prepare(self.writer, InstallRequest(release, values, "v1.36.0"))

    async def record(self) -> ReleaseRecord:
        found = await find_record(self.writer, RELEASE.name, RELEASE.namespace)
        assert found is not None
        return found

    async def image(self) -> str:
        found = await self.cluster.get(DEPLOYMENTS, "shoal", RELEASE.namespace)
        return str(found["spec"]["template"]["spec"]["containers"][0]["image"])

    async def keep_ready(self) -> None:
        """In place of the controllers and the operator."""
        while True:
            for obj in await self.cluster.all(DEPLOYMENTS):
                if ":bad" not in obj["spec"]["template"]["spec"]["containers"][0]["image"]:
                    wanted = obj["spec"]["replicas"]
                    status = dict.fromkeys(
                        ("replicas", "updatedReplicas", "availableReplicas", "readyReplicas"), wanted
                    )
                    status["observedGeneration"] = obj["metadata"]["generation"]
                    meta = obj["metadata"]
                    await self.cluster.patch(DEPLOYMENTS, meta["name"], {"status": status}, "status", meta["namespace"])
            for obj in await self.writer.all(POLICIES):
                await self.cluster.patch(POLICIES, obj["metadata"]["name"], {"status": {"state": "ready"}}, "status")
            await self.cluster.clock.sleep(0.5)


@asynccontextmanager
async def upgraded(folder: Path) -> AsyncIterator[Upgraded]:
    async with small_cluster(folder) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n", "labels": {"nvidia.com/gpu.present": "true"}}})
        found = Upgraded(cluster)
        keeping = asyncio.ensure_future(found.keep_ready())
        try:
            yield found
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)


def with_older_definitions(prepared: Preparation) -> Preparation:
    """As by a release that did not know the newest version of the kinds of Kueue, nor a field of the ClusterPolicy."""
    objects = tuple(
        _older_definition(one) if one["kind"] == "CustomResourceDefinition" else one for one in prepared.plan.applied
    )
    return replace(prepared, plan=replace(prepared.plan, applied=objects))


def _older_definition(definition: Obj) -> Obj:
    spec, name = definition["spec"], definition["metadata"]["name"]
    if name == "clusterpolicies.nvidia.com":
        fields = spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        del fields["properties"]["kataManager"]
        fields.pop("x-kubernetes-preserve-unknown-fields", None)
    if spec["group"] == "kueue.x-k8s.io" and "v1beta1" in [one["name"] for one in spec["versions"]]:
        older = [one for one in spec["versions"] if one["name"] != "v1beta2"]
        return storing_the_oldest({**definition, "spec": {**spec, "versions": older}})
    return definition
