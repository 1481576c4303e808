"""Which changes of nodes reach daemon sets: only those by which a node may be judged differently."""

from __future__ import annotations

from pathlib import Path

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import NODES
from shoal.embedded.controllers.daemon_sets.nodes import DaemonNodes


@virtual
async def test_a_heartbeat_wakes_nobody_and_a_label_does(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        woken: list[float] = []
        DaemonNodes(cluster.informers.of(NODES), lambda: woken.append(cluster.clock.seconds()))
        await cluster.create(NODES, {"metadata": {"name": "n1"}})
        await cluster.pass_time(1)
        woken.clear()
        for _ in range(5):
            condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": cluster.clock.text()}
            await cluster.patch(NODES, "n1", {"status": {"conditions": [condition]}}, "status")
            await cluster.patch(NODES, "n1", {"metadata": {"annotations": {"seen": cluster.clock.text()}}})
            await cluster.pass_time(5)
        assert woken == []
        await cluster.patch(NODES, "n1", {"metadata": {"labels": {"gpu": "yes"}}})
        await cluster.pass_time(1)
        assert len(woken) == 1


@virtual
async def test_verdicts_follow_nodes_and_are_kept_otherwise(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        nodes = DaemonNodes(cluster.informers.of(NODES), lambda: None)
        for name in ("n1", "n2"):
            await cluster.create(NODES, {"metadata": {"name": name, "labels": {"gpu": "yes"}}})
            await cluster.patch(NODES, name, {"spec": {"taints": None}})
        await cluster.pass_time(1)
        spec = {"template": {"spec": {"nodeSelector": {"gpu": "yes"}}}}
        daemon_set = {"metadata": {"uid": "u", "generation": 1}, "spec": spec}
        first = nodes.eligibility(daemon_set)
        assert {name: eligibility.runs for name, eligibility in first.items()} == {"n1": True, "n2": True}
        await cluster.patch(NODES, "n2", {"metadata": {"labels": {"gpu": None}}})
        await cluster.pass_time(1)
        second = nodes.eligibility(daemon_set)
        assert second["n1"] is first["n1"]
        assert not second["n2"].stays
        other = {**daemon_set, "metadata": {"uid": "u", "generation": 2}, "spec": {"template": {"spec": {}}}}
        assert nodes.eligibility(other)["n2"].runs
        await cluster.delete(NODES, "n1")
        await cluster.pass_time(1)
        assert set(nodes.eligibility(other)) == {"n2"}
