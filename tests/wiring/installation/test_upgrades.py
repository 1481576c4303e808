"""Upgrades that are not ready in time, and what the record, the objects and the message say then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from build.small_clusters import ADMIN, SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.kind import DEPLOYMENTS, NODES
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.install.inventory import DEPLOYED, FAILED, ReleaseRecord
from shoal.install.progress_rows import failed_upgrade
from shoal.install.release import FIELD_MANAGER, Release
from shoal.install.values.reading import ValuesText, read_values
from shoal.units.errors import UserError
from shoal.wiring.installation.applying import Installer, Patience
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.facts_reader import POLICIES
from shoal.wiring.installation.preparing import InstallRequest, Preparation, prepare
from shoal.wiring.installation.release_store import find_record
from shoal.wiring.installation.stage_waits import NotReadyError

RELEASE = Release("prod", "gpu-operator", "0.2.0")
QUICK = ("crds.projects={gpu-operator}", "controllers={scheduler}", "smokeTest.enabled=false")


class Upgraded:
    """A cluster in which Deployments get ready, unless their image is tagged `bad`."""

    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.told: list[str] = []
        self.writer = ClusterWriter(InsideApi(cluster.plane, ADMIN, FIELD_MANAGER), cluster.clock)
        self.installer = Installer(self.writer, self.told.append, Patience(timeout_s=30))

    async def prepared(self, *sets: str, kept: dict[str, Any] | None = None) -> Preparation:
        values = read_values([ValuesText("--set", one) for one in sets], kept)
        found = await prepare(self.writer, InstallRequest(RELEASE, values, "v1.36.0"))
        assert found.errors == []
        return found

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


@virtual
async def test_an_upgrade_that_is_not_ready_returns_to_the_revision_before(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        await tried.installer.apply(await tried.prepared(*QUICK))
        before = await tried.image()
        kept = (await tried.record()).current.values
        prepared = await tried.prepared("image.tag=bad", "replicas=1", kept=kept)
        with pytest.raises(NotReadyError) as caught:
            await tried.installer.upgrade(prepared, rolls_back=True)
        assert "workloads: Deployment gpu-operator/shoal" in str(caught.value)
        assert str(caught.value).endswith("revision 1 is in force again; shoal status shows what failed")
        assert await tried.image() == before
        record = await tried.record()
        assert (record.state, record.current.number, record.current.values) == (DEPLOYED, 1, kept)
        names = {one.kind for one in record.inventory}
        assert "PodDisruptionBudget" in names
        assert failed_upgrade(record).startswith(
            "image.tag=bad, replicas=1: workloads: Deployment gpu-operator/shoal: "
        )
        await tried.installer.apply(await tried.prepared(*QUICK))
        assert (await tried.record()).failed == record.failed
        await tried.installer.upgrade(await tried.prepared("replicas=1", kept=kept), rolls_back=True)
        assert failed_upgrade(await tried.record()) == ""


@virtual
async def test_a_failed_upgrade_can_be_kept_and_completed(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        await tried.installer.apply(await tried.prepared(*QUICK))
        with pytest.raises(NotReadyError):
            await tried.installer.upgrade(await tried.prepared(*QUICK, "image.tag=bad"), rolls_back=False)
        record = await tried.record()
        assert record.state == FAILED
        assert failed_upgrade(record).startswith("the same values: workloads: ")
        await tried.installer.upgrade(await tried.prepared(*QUICK, "image.tag=good"), rolls_back=True)
        record = await tried.record()
        assert (record.state, record.current.number) == (DEPLOYED, 2)
        assert record.former is not None
        assert (await tried.image()).endswith(":good")
        returned = await tried.installer.roll_back(record)
        assert (returned.current.number, await tried.image()) == (3, "shoal:0.2.0")


@virtual
async def test_without_a_former_revision_there_is_no_way_back(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        record = await tried.installer.apply(await tried.prepared(*QUICK))
        with pytest.raises(UserError, match="has no former revision"):
            await tried.installer.roll_back(record)


@virtual
async def test_an_installation_that_is_not_ready_names_the_stage_and_is_completed_later(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        with pytest.raises(NotReadyError, match="workloads: Deployment gpu-operator/shoal"):
            await tried.installer.apply(await tried.prepared(*QUICK, "image.tag=bad"))
        record = await tried.installer.apply(await tried.prepared(*QUICK))
        assert (record.state, record.current.number, record.former) == (DEPLOYED, 1, None)
        assert "GPU stack: 1 object ready" in tried.told


@virtual
async def test_the_definition_of_the_policy_is_upgraded_unless_the_values_say_otherwise(tmp_path: Path) -> None:
    async with upgraded(tmp_path) as tried:
        await tried.installer.apply(await tried.prepared(*QUICK))
        kinds = [obj["kind"] for obj in (await tried.prepared(*QUICK, "replicas=1")).plan.applied]
        assert kinds.count("CustomResourceDefinition") == 2
        prepared = await tried.prepared(*QUICK, "replicas=1", "operator.upgradeCRD=false")
        assert "CustomResourceDefinition" not in [obj["kind"] for obj in prepared.plan.applied]
        await tried.installer.upgrade(prepared, rolls_back=True)
        assert [one.kind for one in (await tried.record()).inventory].count("CustomResourceDefinition") == 2
