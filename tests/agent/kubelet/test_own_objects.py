"""A joined machine reads its own Node, its own pods and their namespaces, and nothing else."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.agent.kubelet.own_objects import OwnObjectsApi
from shoal.client.informers import Informers
from shoal.client.item import Obj
from shoal.client.kind import NAMESPACES, NODES, PODS


def pod(name: str, node: str) -> Obj:
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "x"}]}}


async def with_nodes(cluster: SmallCluster) -> tuple[OwnObjectsApi, Informers]:
    for name in ("n1", "n2"):
        await cluster.create(NODES, {"metadata": {"name": name}})
    own = OwnObjectsApi(cluster.api, "n1")
    informers = Informers(own, cluster.clock, random.Random(1))
    for kind in (PODS, NODES):
        informers.of(kind)
    cluster.tasks.append(asyncio.ensure_future(informers.run()))
    with suppress(asyncio.CancelledError):
        await informers.synced()
    return own, informers


@virtual
async def test_the_caches_have_the_own_objects_only(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        _, informers = await with_nodes(cluster)
        await cluster.create(PODS, pod("mine", "n1"))
        await cluster.create(PODS, pod("theirs", "n2"))

        await cluster.until(lambda: len(informers.of(PODS)) == 1)
        await cluster.pass_time(5.0)

        assert [item.name for item in informers.of(PODS)] == ["mine"]
        assert [item.name for item in informers.of(NODES)] == ["n1"]


@virtual
async def test_the_labels_of_a_namespace_are_known_before_its_pod_and_read_anew_for_the_next(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        own, informers = await with_nodes(cluster)
        seen: list[tuple[str, str]] = []
        informers.of(PODS).on_change(
            lambda before, after: (
                seen.append((after.name, own.namespace_labels("default").get("allowed", "")))
                if before is None and after is not None
                else None
            )
        )

        await cluster.create(PODS, pod("first", "n1"))
        await cluster.until(lambda: len(seen) == 1)
        await cluster.patch(NAMESPACES, "default", {"metadata": {"labels": {"allowed": "yes"}}})
        await cluster.create(PODS, pod("second", "n1"))
        await cluster.until(lambda: len(seen) == 2)

        assert seen == [("first", ""), ("second", "yes")]
        assert own.namespace_labels("other") == {}
