"""`shoal cluster drain`: who leaves a node, who stays, and who makes it wait; on a control plane in virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.cli.node_faults import break_component, break_gpu, heal_node, node_of
from shoal.client.draining import Eviction, cordon, pods_to_evict
from shoal.client.kind import DISRUPTION_BUDGETS, NODES, PODS
from shoal.client.port import Deletion, Patch
from shoal.units.errors import UserError

NODE = "gpu-0"


async def put(
    cluster: SmallCluster, name: str, owner: str = "ReplicaSet", node: str = NODE, **annotations: str
) -> None:
    """A ready pod on a node."""
    metadata: dict[str, Any] = {"name": name, "labels": {"app": name}, "annotations": annotations}
    if owner:
        one = {"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": f"u-{owner}", "controller": True}
        metadata["ownerReferences"] = [one]
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "x"}], "terminationGracePeriodSeconds": 7}
    await cluster.create(PODS, {"metadata": metadata, "spec": spec})
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await cluster.patch(PODS, name, {"status": ready}, subresource="status")


async def names(cluster: SmallCluster, *, force: bool = False) -> list[str]:
    return [item.name for item in await pods_to_evict(cluster.api, NODE, force=force)]


@virtual
async def test_pods_that_would_come_back_stay_and_others_leave(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await put(cluster, "web")
        await put(cluster, "agent", "DaemonSet")
        await put(cluster, "static", "Node", **{"kubernetes.io/config.mirror": "x"})
        await put(cluster, "elsewhere", node="gpu-1")
        assert await names(cluster) == ["web"]


@virtual
async def test_a_pod_that_nothing_makes_again_needs_force_unless_it_has_ended(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await put(cluster, "alone", owner="")
        with pytest.raises(UserError, match="default/alone again; evict them nevertheless with --force"):
            await names(cluster)
        assert await names(cluster, force=True) == ["alone"]
        await cluster.patch(PODS, "alone", {"status": {"phase": "Succeeded"}}, subresource="status")
        assert await names(cluster) == ["alone"]


@virtual
async def test_a_drained_node_is_cordoned_and_empty(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": NODE}})
        await put(cluster, "web")
        await cordon(cluster.api, NODE)
        assert (await node_of(cluster.api, NODE))["spec"]["unschedulable"] is True
        said: list[str] = []
        pods = await pods_to_evict(cluster.api, NODE, force=False)

        def end_pods() -> None:
            cluster.tasks.append(asyncio.ensure_future(cluster.delete(PODS, "web", Deletion(grace_s=0))))

        cluster.clock.call_later(9, end_pods)
        began = cluster.clock.seconds()
        assert await Eviction(cluster.api, cluster.clock, said.append).run([NODE], pods, 60) == []
        assert 9 <= cluster.clock.seconds() - began < 10
        assert said == ["default/web is evicted", "default/web has left"]
        cluster.tasks.clear()


@virtual
async def test_an_eviction_that_a_budget_forbids_is_tried_until_the_time_is_up(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await put(cluster, "web")
        spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
        await cluster.create(DISRUPTION_BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
        said: list[str] = []
        pods = await pods_to_evict(cluster.api, NODE, force=False)
        began = cluster.clock.seconds()
        [line] = await Eviction(cluster.api, cluster.clock, said.append).run([NODE], pods, 30)
        assert line.startswith("default/web is still there: Cannot evict pod as it would violate the pod's disruption")
        assert cluster.clock.seconds() - began == pytest.approx(30, abs=1)
        assert len(said) == 1, "the same refusal is said once"


@virtual
async def test_a_pod_that_does_not_end_is_named(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await put(cluster, "web")
        pods = await pods_to_evict(cluster.api, NODE, force=False)
        left = await Eviction(cluster.api, cluster.clock, lambda _: None).run([NODE], pods, 5)
        assert left == ["default/web is still there: it has not ended"]


@virtual
async def test_a_gpu_fails_although_somebody_writes_to_its_node_meanwhile(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        simulated = {"shoal.dev/endpoint": "127.0.0.1:1"}
        labels = {"nvidia.com/gpu.count": "8"}
        await cluster.create(NODES, {"metadata": {"name": NODE, "labels": labels, "annotations": simulated}})

        class Racing:
            """The first patch comes after somebody else's."""

            raced = False

            def __getattr__(self, name: str) -> Any:
                return getattr(cluster.api, name)

            async def patch(self, *asked: Any) -> Any:
                if not self.raced:
                    self.raced = True
                    theirs = {"metadata": {"annotations": {"shoal.dev/gpu-faults": '{"1":48}'}}}
                    await cluster.api.patch(NODES, "", NODE, Patch("merge", theirs))
                return await cluster.api.patch(*asked)

        await break_gpu(Racing(), NODE, 3, 79)
        found = (await node_of(cluster.api, NODE))["metadata"]["annotations"]["shoal.dev/gpu-faults"]
        assert found == '{"1":48,"3":79}'


@virtual
async def test_faults_of_several_components_are_kept_together_until_the_node_is_healed(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        written = {"shoal.dev/endpoint": "127.0.0.1:1", "shoal.dev/gpu-software": "pods"}
        await cluster.create(NODES, {"metadata": {"name": NODE, "annotations": written}})
        await break_component(cluster.api, NODE, "toolkit", "image-pull")
        await break_component(cluster.api, NODE, "driver", "error")
        found = (await node_of(cluster.api, NODE))["metadata"]["annotations"]
        assert found["shoal.dev/component-faults"] == '{"driver":"error","toolkit":"image-pull"}'
        assert await heal_node(cluster.api, NODE)
        assert "shoal.dev/component-faults" not in (await node_of(cluster.api, NODE))["metadata"]["annotations"]


@virtual
@pytest.mark.parametrize(
    ("annotations", "component", "said"),
    [
        ({"shoal.dev/gpu-software": "pods"}, "drivers", 'there is no component "drivers"'),
        ({}, "driver", "has its GPU software from the start"),
    ],
)
async def test_a_component_that_cannot_fail_is_refused(
    tmp_path: Path, annotations: dict[str, str], component: str, said: str
) -> None:
    async with small_cluster(tmp_path) as cluster:
        written = {"shoal.dev/endpoint": "127.0.0.1:1", **annotations}
        await cluster.create(NODES, {"metadata": {"name": NODE, "annotations": written}})
        with pytest.raises(UserError, match=said):
            await break_component(cluster.api, NODE, component, "error")
