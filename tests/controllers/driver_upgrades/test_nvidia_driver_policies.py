"""Nodes of an NVIDIADriver with an upgrade policy of its own follow it; all others follow the ClusterPolicy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.upgrading_clusters import UpgradingCluster, upgrading_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES, NVIDIA_DRIVERS
from shoal.client.item import Obj
from shoal.client.kind import NODES
from shoal.operator.upgrades.figures import UpgradeFigures

ON, OFF = {"autoUpgrade": True}, {"autoUpgrade": False}
_ALL = ("gpu-0", "gpu-1", "gpu-2", "gpu-3")


async def _prepared(
    run: UpgradingCluster, cluster_policy: Obj, own: Any, *, gold: tuple[str, ...], uses_drivers: bool = True
) -> None:
    """`gold`: the nodes of the NVIDIADriver with the policy `own`."""
    for name in gold:
        await run.cluster.patch(NODES, name, {"metadata": {"labels": {"pool": "gold"}}})
    await run.add_nvidia_driver("gold", own, "gold")
    driver = {"upgradePolicy": cluster_policy, "useNvidiaDriverCRD": uses_drivers}
    await run.cluster.create(CLUSTER_POLICIES, {"metadata": {"name": "cluster-policy"}, "spec": {"driver": driver}})
    await run.cluster.pass_time(10)
    await run.publish("2")
    await run.cluster.pass_time(300)


CASES: dict[str, tuple[Obj, Any, bool, set[str]]] = {
    "a driver without a policy follows that of the cluster": (ON, None, True, {*_ALL}),
    "a driver that is not upgraded stays, and the others go on": (ON, OFF, True, {"gpu-2", "gpu-3"}),
    "a driver is upgraded although the cluster is not": (OFF, ON, True, {"gpu-0", "gpu-1"}),
    "a policy that cannot be read upgrades none of its nodes": (ON, {"maxUnavailable": "x"}, True, {"gpu-2", "gpu-3"}),
    "without useNvidiaDriverCRD its policy has no effect": (ON, OFF, False, {*_ALL}),
}


@virtual
@pytest.mark.parametrize("case", CASES)
async def test_which_nodes_are_upgraded(tmp_path: Path, case: str) -> None:
    of_cluster, own, uses_drivers, upgraded = CASES[case]
    async with upgrading_cluster(tmp_path, *_ALL) as run:
        await _prepared(run, of_cluster, own, gold=("gpu-0", "gpu-1"), uses_drivers=uses_drivers)
        assert {node for node, revision in (await run.drivers()).items() if revision == "2"} == upgraded


@virtual
async def test_the_limits_of_a_driver_hold_among_its_own_nodes(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path, *_ALL) as run:
        one = {**ON, "maxParallelUpgrades": 1, "maxUnavailable": 1}
        await _prepared(run, one, one, gold=("gpu-0", "gpu-1"))
        assert set((await run.drivers()).values()) == {"2"}
        assert run.worst_unavailable == 2


@virtual
async def test_a_failed_node_stops_only_the_nodes_of_its_driver_and_is_reported_there(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path, *_ALL) as run:
        run.broken = {"gpu-0"}
        one = {**ON, "maxParallelUpgrades": 1}
        await _prepared(run, one, one, gold=("gpu-0", "gpu-1"))
        assert await run.drivers() == {"gpu-0": "2", "gpu-1": "1", "gpu-2": "2", "gpu-3": "2"}
        said = [one["message"] for one in await run.cluster.events("gold") if one["reason"] == "DriverUpgradesStopped"]
        assert said
        assert said[0].startswith("The driver upgrade failed on node gpu-0; 1 nodes wait")
        assert run.upgrades().figures == UpgradeFigures(done=2, failed=1, pending=1)


@virtual
async def test_a_policy_that_cannot_be_read_is_reported_on_the_driver_and_followed_once_it_is_right(
    tmp_path: Path,
) -> None:
    async with upgrading_cluster(tmp_path, *_ALL) as run:
        await _prepared(run, ON, {"maxUnavailable": "x"}, gold=("gpu-0",))
        (event,) = [one for one in await run.cluster.events("gold") if one["reason"] == "InvalidUpgradePolicy"]
        assert event["message"].startswith('No driver is upgraded: spec.upgradePolicy.maxUnavailable: "x" is neither')
        patch = {"spec": {"upgradePolicy": {"maxUnavailable": 1, "autoUpgrade": True}}}
        await run.cluster.patch(NVIDIA_DRIVERS, "gold", patch)
        await run.cluster.pass_time(120)
        assert set((await run.drivers()).values()) == {"2"}
