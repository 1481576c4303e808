"""The controller of driver upgrades carries out the passes on nodes, step by step, and survives everything."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from build.ruled_clusters import RuledCluster
from build.stormy_api import StormyApi
from build.upgrading_clusters import KilledAtWrite, UpgradingCluster, upgrading_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES, MISPLACED_CLUSTER_POLICIES
from shoal.client.kind import DISRUPTION_BUDGETS, NODES, PODS
from shoal.install.objects.permissions import RoleSubjects, manifests
from shoal.operator.upgrades.figures import UpgradeFigures

_LIMITED = {"podDeletion": {"timeoutSeconds": 60}}
_BUDGET = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
_GROUP = {"name": "train", "min-available": "2"}
_NO_DISRUPTION = {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1}


async def messages(run: UpgradingCluster, name: str, reason: str) -> list[str]:
    return [one["message"] for one in await run.cluster.events(name) if one["reason"] == reason]


async def pod_names(run: UpgradingCluster) -> set[str]:
    return {one["metadata"]["name"] for one in await run.cluster.pods()}


@virtual
async def test_nodes_with_a_current_driver_are_done_at_once(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path) as run:
        await run.set_policy()
        await run.until_all("upgrade-done")
        assert run.worst_unavailable == 0


@virtual
@pytest.mark.parametrize("has_validator", [True, False])
async def test_a_new_driver_reaches_node_after_node_and_one_is_cordoned_at_a_time(
    tmp_path: Path, has_validator: bool
) -> None:
    async with upgrading_cluster(tmp_path, has_validator=has_validator) as run:
        await run.set_policy(maxParallelUpgrades=1, maxUnavailable=1)
        await run.until_all("upgrade-done")
        await run.publish("2")
        await run.cluster.pass_time(5)
        await run.until_all("upgrade-done")
        assert await run.drivers() == {"gpu-0": "2", "gpu-1": "2", "gpu-2": "2"}
        assert run.worst_unavailable == 1
        for node in await run.cluster.all(NODES):
            assert not node["spec"].get("unschedulable")
        said = await messages(run, "gpu-0", "DriverUpgrade")
        assert "The driver upgrade is in state cordon-required: the upgrade starts" in said
        assert "The driver upgrade is in state upgrade-done: upgraded" in said


@virtual
async def test_a_policy_of_the_group_of_openshift_upgrades_drivers_too(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path) as run:
        spec = {"driver": {"upgradePolicy": {"autoUpgrade": True}}}
        await run.cluster.create(MISPLACED_CLUSTER_POLICIES, {"metadata": {"name": "gpu-cluster-policy"}, "spec": spec})
        await run.publish("2")
        await run.cluster.pass_time(5)
        await run.until_all("upgrade-done")
        assert set((await run.drivers()).values()) == {"2"}


@virtual
async def test_a_policy_that_the_operator_refuses_upgrades_no_driver(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path) as run:
        await run.set_policy(maxParallelUpgrades=1)
        await run.until_all("upgrade-done")
        wrong = {"spec": {"driver": {"upgradePolicy": {"maxUnavailable": "some"}}}}
        await run.cluster.patch(CLUSTER_POLICIES, "cluster-policy", wrong)
        await run.publish("2")
        await run.cluster.pass_time(60)
        assert set((await run.drivers()).values()) == {"1"}
        said = await messages(run, "cluster-policy", "InvalidUpgradePolicy")
        assert "spec.driver.upgradePolicy" in said[0]


@virtual
async def test_two_nodes_are_upgraded_at_once_if_the_policy_says_so(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path) as run:
        await run.set_policy(maxParallelUpgrades=2, maxUnavailable=2)
        await run.until_all("upgrade-done")
        await run.publish("2")
        await run.cluster.pass_time(5)
        await run.until_all("upgrade-done")
        assert run.worst_unavailable == 2


@virtual
@pytest.mark.parametrize(
    "spec",
    [
        {"driver": {"upgradePolicy": {"autoUpgrade": False}}},
        {"driver": {}},
        {"driver": {"enabled": False, "upgradePolicy": {"autoUpgrade": True}}},
        {"driver": {"upgradePolicy": {"autoUpgrade": True}}, "sandboxWorkloads": {"enabled": True}},
    ],
)
async def test_nothing_is_upgraded_without_an_automatic_policy(tmp_path: Path, spec: dict[str, object]) -> None:
    async with upgrading_cluster(tmp_path) as run:
        await run.cluster.create(CLUSTER_POLICIES, {"metadata": {"name": "p"}, "spec": spec})
        await run.publish("2")
        await run.cluster.pass_time(120)
        assert set((await run.states()).values()) == {""}
        assert set((await run.drivers()).values()) == {"1"}


@virtual
async def test_the_oldest_policy_decides(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path) as run:
        off = {"driver": {"upgradePolicy": {"autoUpgrade": False}}}
        await run.cluster.create(CLUSTER_POLICIES, {"metadata": {"name": "z"}, "spec": off})
        await run.cluster.pass_time(2)
        await run.set_policy()
        await run.cluster.pass_time(60)
        assert set((await run.states()).values()) == {""}


@virtual
async def test_a_policy_that_cannot_be_read_is_reported_once_and_upgrades_nothing(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path) as run:
        await run.set_policy(waitForCompletion={"podSelector": "a in ("})
        await run.publish("2")
        await run.cluster.pass_time(120)
        (said,) = await messages(run, "cluster-policy", "InvalidUpgradePolicy")
        assert said.startswith("No driver is upgraded: ")
        assert "waitForCompletion" in said
        assert set((await run.drivers()).values()) == {"1"}


@virtual
async def test_pods_with_gpus_leave_and_others_stay_without_a_drain(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path, "gpu-0") as run:
        await run.add_pod("training", "gpu-0", gpus=2)
        await run.add_pod("web", "gpu-0")
        await run.set_policy()
        await run.publish("2")
        await run.cluster.pass_time(5)
        await run.until_all("upgrade-done")
        assert "training" not in await pod_names(run)
        assert "web" in await pod_names(run)


@virtual
async def test_a_pod_without_a_controller_stops_the_upgrade_with_its_name(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path, "gpu-0") as run:
        await run.add_pod("alone", "gpu-0", gpus=2, owner="")
        await run.set_policy()
        await run.publish("2")
        await run.until_all("upgrade-failed")
        (said,) = await messages(run, "gpu-0", "DriverUpgradeFailed")
        assert "pod default/alone without a controller would not be made again; set force" in said
        assert "alone" in await pod_names(run)


@virtual
async def test_the_data_of_a_pod_protects_its_gang_on_other_nodes(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path, "gpu-0") as run:
        group = {f"pod-group.scheduling.sigs.k8s.io/{name}": value for name, value in _GROUP.items()}
        await run.cluster.create(NODES, {"metadata": {"name": "other"}})
        await run.add_pod("first", "gpu-0", gpus=2, labels=group)
        await run.add_pod("second", "other", gpus=2, volumes=[{"name": "data", "emptyDir": {}}], labels=group)
        await run.set_policy()
        await run.publish("2")

        async def has_failed() -> bool:
            return (await run.states()).get("gpu-0") == "upgrade-failed"

        await run.cluster.until(has_failed)
        (said,) = await messages(run, "gpu-0", "DriverUpgradeFailed")
        assert "pod default/second would lose the data of emptyDir volumes; set deleteEmptyDir" in said
        assert {"first", "second"} <= await pod_names(run)


async def add_budgeted_pod(run: UpgradingCluster, *, gpus: int) -> None:
    await run.add_pod("web", "gpu-0", gpus=gpus, labels={"app": "web"})
    await run.cluster.create(DISRUPTION_BUDGETS, {"metadata": {"name": "web"}, "spec": _BUDGET})
    status = {"status": {**_NO_DISRUPTION, "observedGeneration": 1}}
    await run.cluster.patch(DISRUPTION_BUDGETS, "web", status, "status")


@virtual
async def test_a_disruption_budget_delays_the_eviction_and_its_end_lets_it_go_on(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path, "gpu-0") as run:
        await add_budgeted_pod(run, gpus=1)
        await run.set_policy(**_LIMITED)
        await run.publish("2")
        await run.until_all("pod-deletion-required")
        await run.cluster.pass_time(30)
        assert await run.states() == {"gpu-0": "pod-deletion-required"}
        assert "web" in await pod_names(run)
        await run.cluster.delete(DISRUPTION_BUDGETS, "web")
        await run.until_all("upgrade-done")
        assert "web" not in await pod_names(run)


@virtual
async def test_an_eviction_that_is_in_progress_is_not_started_again_by_later_passes(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path, "gpu-0", is_started=False) as run:
        await add_budgeted_pod(run, gpus=1)
        await run.set_policy()
        await run.publish("2")
        port = KilledAtWrite(run.cluster.api, NEVER, lambda: None, is_after=False)
        run.start(port)
        await run.until_all("pod-deletion-required")
        await run.cluster.pass_time(2)
        before = port.writes
        for number in range(50):
            # Each change of the node leads to a pass.
            await run.cluster.patch(NODES, "gpu-0", {"metadata": {"labels": {"changed": str(number)}}})
            await run.cluster.pass_time(2)
        # The eviction asks again every five seconds.
        assert 15 <= port.writes - before <= 21


@virtual
async def test_an_eviction_that_takes_too_long_fails_with_the_pod_that_stayed(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path, "gpu-0") as run:
        await add_budgeted_pod(run, gpus=1)
        await run.set_policy(**_LIMITED)
        await run.publish("2")
        await run.until_all("upgrade-failed")
        (said,) = await messages(run, "gpu-0", "DriverUpgradeFailed")
        assert "after 60 s default/web is still there: " in said
        assert "disruption budget" in said


@virtual
async def test_a_drain_follows_an_eviction_that_fails_and_leaves_pods_with_the_skip_label(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path, "gpu-0") as run:
        await run.add_pod("alone", "gpu-0", gpus=1, owner="")
        await run.add_pod("web", "gpu-0")
        skip = {"nvidia.com/gpu-driver-upgrade-drain.skip": "true"}
        await run.add_pod("kept", "gpu-0", labels=skip)
        await run.set_policy(drain={"enable": True, "force": True, "timeoutSeconds": 60})
        await run.publish("2")
        await run.cluster.pass_time(5)
        await run.until_all("upgrade-done")
        assert not {"alone", "web"} & await pod_names(run)
        assert "kept" in await pod_names(run)


@virtual
async def test_a_driver_that_does_not_run_stops_the_rollout_and_a_working_one_continues_it(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path) as run:
        await run.set_policy(maxParallelUpgrades=2, maxUnavailable=1)
        await run.until_all("upgrade-done")
        run.broken = {"gpu-0"}
        await run.publish("2")
        await run.cluster.pass_time(300)
        assert await run.states() == {
            "gpu-0": "upgrade-failed",
            "gpu-1": "upgrade-required",
            "gpu-2": "upgrade-required",
        }
        assert (await run.node("gpu-0"))["spec"]["unschedulable"] is True
        (said,) = await messages(run, "gpu-0", "DriverUpgradeFailed")
        assert said.endswith("the driver pod is not ready after 11 restarts")
        assert run.upgrades().figures == UpgradeFigures(in_progress=0, done=0, failed=1, available=0, pending=2)
        (stopped,) = await messages(run, "cluster-policy", "DriverUpgradesStopped")
        assert stopped.startswith("The driver upgrade failed on node gpu-0; 2 nodes wait until the driver runs there")
        run.broken = set()
        pods = [one for one in await run.cluster.pods() if one["spec"]["nodeName"] == "gpu-0"]
        broken = next(one for one in pods if one["metadata"]["generateName"] == "driver-")
        await run.cluster.delete(PODS, broken["metadata"]["name"])
        await run.until_all("upgrade-done")
        assert set((await run.drivers()).values()) == {"2"}


@virtual
async def test_a_node_that_was_cordoned_before_remains_so(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path, "gpu-0", "gpu-1") as run:
        await run.set_policy()
        await run.until_all("upgrade-done")
        await run.cluster.patch(NODES, "gpu-1", {"spec": {"unschedulable": True}})
        await run.publish("2")
        await run.cluster.pass_time(5)
        await run.until_all("upgrade-done")
        assert set((await run.drivers()).values()) == {"2"}
        assert (await run.node("gpu-1"))["spec"]["unschedulable"] is True
        assert not (await run.node("gpu-0"))["spec"].get("unschedulable")
        assert not (await run.node("gpu-1"))["metadata"].get("annotations")


@virtual
async def test_the_node_whose_drain_loses_least_work_comes_first(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path, "gpu-0", "gpu-1") as run:
        await run.add_pod("training", "gpu-0", gpus=8)
        await run.set_policy(maxParallelUpgrades=1)
        await run.until_all("upgrade-done")
        await run.publish("2")

        async def one_has_begun() -> bool:
            return "cordon-required" in (await run.states()).values()

        await run.cluster.until(one_has_begun)
        assert await run.states() == {"gpu-0": "upgrade-required", "gpu-1": "cordon-required"}


@virtual
async def test_a_deleted_node_does_not_stop_the_others(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path) as run:
        await run.set_policy()
        await run.until_all("upgrade-done")
        await run.publish("2")
        await run.cluster.pass_time(6)
        await run.cluster.delete(NODES, "gpu-0")
        await run.until_all("upgrade-done")
        left = await run.drivers()
        assert (left["gpu-1"], left["gpu-2"]) == ("2", "2")


@virtual
async def test_the_role_of_the_part_suffices_for_all_that_it_does(tmp_path: Path) -> None:
    async with upgrading_cluster(tmp_path, "gpu-0", is_started=False, authorization="rbac") as run:
        ruled = RuledCluster(run.cluster)
        await ruled.apply(manifests(("driver-upgrades",), RoleSubjects(user="upgrader")))
        await run.add_pod("training", "gpu-0", gpus=2)
        await run.set_policy()
        await run.publish("2")
        run.start(ruled.way_in("upgrader"))
        await run.cluster.pass_time(5)
        await run.until_all("upgrade-done")
        assert "training" not in await pod_names(run)
        assert await run.drivers() == {"gpu-0": "2"}
        assert ruled.refused == []


@virtual
async def test_a_process_that_is_killed_before_or_after_any_write_is_followed_by_one_that_finishes(
    tmp_path: Path,
) -> None:
    async with upgrading_cluster(tmp_path, "gpu-0", "gpu-1", is_started=False) as run:
        await run.set_policy(maxParallelUpgrades=1, maxUnavailable=1)
        run.ready_after_s = 1.0
        writes = await killed_rollout(run, 1, NEVER, is_after=False)
        assert writes > 20
        for number in range(writes):
            for is_after in (False, True):
                await killed_rollout(run, 2 + 2 * number + is_after, number + 1, is_after=is_after)


@virtual
@pytest.mark.parametrize("seed", range(3))
async def test_conflicts_lost_answers_and_late_watches_delay_an_upgrade_and_break_no_limit(
    tmp_path: Path, seed: int
) -> None:
    async with upgrading_cluster(tmp_path, is_started=False) as run:
        await run.set_policy(maxParallelUpgrades=1, maxUnavailable=1)
        for number in range(3):
            await run.add_pod(f"training-{number}", f"gpu-{number}", gpus=1)
        storm = StormyApi(run.cluster.api, run.cluster.clock, random.Random(seed))
        run.start(storm)
        await run.publish("2")
        await run.cluster.until(lambda: is_upgraded(run, "2"), 3600)
        assert sum(storm.happened.values()) > 10
        assert run.worst_unavailable == 1
        assert not [one for one in await run.cluster.all(NODES) if one["spec"].get("unschedulable")]
        assert not [name for name in await pod_names(run) if name.startswith("training-")]


NEVER = 1_000_000


async def killed_rollout(run: UpgradingCluster, turn: int, number: int, *, is_after: bool) -> int:
    """A rollout in which the process is killed at its write of that number, and followed by another. Returns how many
    writes the first process made.
    """
    revision = str(turn + 1)
    await run.add_pod(f"training-{turn}", "gpu-0", gpus=1)
    await run.publish(revision)
    death = asyncio.Event()
    port = KilledAtWrite(run.cluster.api, number, death.set, is_after=is_after)
    run.start(port)

    async def is_over() -> bool:
        drivers = set((await run.drivers()).values())
        return death.is_set() or (drivers == {revision} and set((await run.states()).values()) == {"upgrade-done"})

    await run.cluster.until(is_over, 600)
    await run.kill()
    if death.is_set():
        run.start()
        await run.cluster.until(lambda: is_upgraded(run, revision), 600)
        await run.kill()
    assert not [one for one in await run.cluster.all(NODES) if one["spec"].get("unschedulable")]
    assert run.worst_unavailable == 1
    assert f"training-{turn}" not in await pod_names(run)
    return port.writes


async def is_upgraded(run: UpgradingCluster, revision: str) -> bool:
    drivers = set((await run.drivers()).values())
    return drivers == {revision} and set((await run.states()).values()) == {"upgrade-done"}
