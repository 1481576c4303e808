"""A cluster with Kueue's kinds only in v1beta1, where fields have other names and some are missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from build.live_schedulers import add_node
from build.queue_admission import start_admission, start_pods, workload
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, WORKLOADS
from shoal.client.informer import Informer
from shoal.client.item import Item, Obj
from shoal.client.kind import DEFINITIONS, Kind
from shoal.client.kueue_versions import KueueVersionsApi
from shoal.client.port import Patch
from shoal.client.write_through import WriteThroughApi
from shoal.controllers.queued_pods.workload_drafts import WorkloadPriority
from shoal.embedded.apiserver.foreign.converting import kueue_definitions

_NEWER = {
    "ClusterQueue": (("spec", "cohortName"),),
    "LocalQueue": (("status", "flavorsUsage"),),
    "Workload": (("spec", "priorityClassRef"), ("status", "accumulatedPastExecutionTimeSeconds")),
}
"""Words of v1beta2. As the definitions of Kueue's own releases have it, the older version knows none of them."""


def _older(kind: Kind) -> Kind:
    return kind._replace(version="v1beta1")


@asynccontextmanager
async def _older_cluster(folder: Path) -> AsyncIterator[SmallCluster]:
    async with small_cluster(folder) as cluster:
        for definition in kueue_definitions():
            (version,) = [one for one in definition["spec"]["versions"] if one["name"] == "v1beta1"]
            version["storage"] = True
            parts = version["schema"]["openAPIV3Schema"]["properties"]
            for part, name in _NEWER.get(definition["spec"]["names"]["kind"], ()):
                del parts[part]["properties"][name]
            definition["spec"]["versions"] = [version]
            await cluster.create(DEFINITIONS, definition)

        async def are_served() -> bool:
            return "kueue.x-k8s.io" in {one.kind.group for one in await cluster.api.served()}

        await cluster.until(are_served)
        await add_node(cluster, "n1", cpu="8")
        await cluster.create(_older(RESOURCE_FLAVORS), {"metadata": {"name": "default"}, "spec": {}})
        quota = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "4"}]}
        groups = [{"coveredResources": ["cpu"], "flavors": [quota]}]
        spec: Obj = {"namespaceSelector": {}, "resourceGroups": groups}
        await cluster.create(_older(CLUSTER_QUEUES), {"metadata": {"name": "cq"}, "spec": spec})
        await cluster.create(_older(LOCAL_QUEUES), {"metadata": {"name": "cq"}, "spec": {"clusterQueue": "cq"}})
        yield cluster


class Counting(WriteThroughApi):
    """Counts what is written into statuses."""

    writes = 0

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        self.writes += subresource == "status"
        return await super().patch(kind, namespace, name, patch, subresource)


@virtual
async def test_statuses_show_usage_in_the_older_fields_and_are_written_once(tmp_path: Path) -> None:
    async with _older_cluster(tmp_path) as cluster:
        api = Counting(cluster.api, cluster.informers)
        start_admission(cluster, api=KueueVersionsApi(api))
        await cluster.create(_older(WORKLOADS), workload("a", cpu="2"))

        async def is_used() -> bool:
            status = (await cluster.get(_older(LOCAL_QUEUES), "cq")).get("status", {})
            used = status.get("flavorUsage") or [{}]
            return [one.get("total") for one in used[0].get("resources", ())] == ["2"]

        await cluster.until(is_used)
        await start_pods(cluster, "a", cpu="2")
        await cluster.pass_time(5)
        before = api.writes
        await cluster.pass_time(60)
        await cluster.create(_older(WORKLOADS), workload("unknown", queue="nobodys"))
        await cluster.pass_time(60)
        assert api.writes - before < 8, "what is there already is not written after every round"


@virtual
async def test_newer_fields_are_converted_and_read_back(tmp_path: Path) -> None:
    async with _older_cluster(tmp_path) as cluster:
        kind, api = _older(WORKLOADS), KueueVersionsApi(cluster.api)
        informer = Informer(api, kind, cluster.clock, cluster.draw)
        rank = WorkloadPriority(7, "kueue.x-k8s.io", "WorkloadPriorityClass", "high").to_api()
        made = workload("a", **rank)
        made["metadata"]["namespace"] = "default"
        found = [(await api.create(kind, made)).obj()]
        written = {"status": {"accumulatedPastExecutionTimeSeconds": 5}}
        found.append((await api.patch(kind, "default", "a", Patch("merge", written), "status")).obj())
        cluster.tasks.append(asyncio.ensure_future(informer.run()))
        await informer.synced()
        found += [item.obj() for item in informer]
        found.append((await api.get(kind, "default", "a")).obj())
        assert [obj["spec"]["priorityClassRef"]["name"] for obj in found] == ["high"] * 4
        assert [obj["status"]["accumulatedPastExecutionTimeSeconds"] for obj in found[1:]] == [5] * 3
        kept = await cluster.get(kind, "a")
        assert (kept["spec"]["priorityClassName"], kept["spec"]["priority"]) == ("high", 7)
        assert kept["status"]["accumulatedPastExexcutionTimeSeconds"] == 5
        await api.patch(kind, "default", "a", Patch("merge", {"spec": {"priority": 8}}))
        await cluster.pass_time(1)
        assert [item.obj()["spec"]["priority"] for item in informer] == [8]
        assert [item.obj()["spec"]["priorityClassRef"]["name"] for item in informer] == ["high"]


@pytest.mark.parametrize("kind", [WORKLOADS, _older(RESOURCE_FLAVORS)], ids=["the newest version", "no difference"])
@virtual
async def test_objects_without_renamed_fields_are_passed_on_unchanged(tmp_path: Path, kind: Kind) -> None:
    async with small_cluster(tmp_path) as cluster:
        for definition in kueue_definitions():
            await cluster.create(DEFINITIONS, definition)
        await cluster.pass_time(2)
        api = KueueVersionsApi(cluster.api)
        obj = workload("a") if kind is WORKLOADS else {"metadata": {"name": "a"}, "spec": {}}
        made = await api.create(kind, {**obj, "metadata": {"name": "a", "namespace": "default"}})
        assert made.data == (await cluster.api.get(kind, made.namespace, "a")).data
