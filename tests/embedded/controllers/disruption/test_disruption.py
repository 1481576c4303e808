"""Disruption budgets on a control plane in virtual time: what they allow, and what they forget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.api.conditions import Condition
from shoal.api.meta import ObjectMeta
from shoal.client.item import Obj
from shoal.client.kind import DISRUPTION_BUDGETS, PODS, REPLICA_SETS
from shoal.client.refusals import BusyError
from shoal.embedded.controllers.disruption.budgets import (
    BudgetedPod,
    BudgetedPodStatus,
    BudgetSpec,
    DisruptionBudget,
    counts,
)
from shoal.embedded.controllers.disruption.controller import disruption_controller, stale_disruption_controller

SELECTOR = {"matchLabels": {"app": "web"}}


async def add_budget(cluster: SmallCluster, **spec: Any) -> None:
    whole = {"selector": SELECTOR, **spec}
    await cluster.create(DISRUPTION_BUDGETS, {"metadata": {"name": "pdb"}, "spec": whole})


async def add_pod(cluster: SmallCluster, name: str, *, owner: Obj | None = None, ready: bool = True) -> None:
    meta: Obj = {"name": name, "labels": {"app": "web"}}
    if owner is not None:
        meta["ownerReferences"] = [owner]
    spec = {"nodeName": "n1", "containers": [{"name": "main", "image": "i"}]}
    await cluster.create(PODS, {"metadata": meta, "spec": spec})
    await set_ready(cluster, name, ready=ready)


async def set_ready(cluster: SmallCluster, name: str, *, ready: bool) -> None:
    condition = {"type": "Ready", "status": str(ready)}
    await cluster.patch(PODS, name, {"status": {"phase": "Running", "conditions": [condition]}}, subresource="status")


async def status(cluster: SmallCluster) -> Obj:
    await cluster.pass_time(1)
    found: Obj = (await cluster.get(DISRUPTION_BUDGETS, "pdb"))["status"]
    return found


@virtual
async def test_what_is_ready_beyond_the_least_may_go(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [disruption_controller]) as cluster:
        await add_budget(cluster, minAvailable=2)
        for name in "abc":
            await add_pod(cluster, name)
        await add_pod(cluster, "d", ready=False)
        told = await status(cluster)
        figures_told = [
            told[name] for name in ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
        ]
        assert figures_told == [4, 3, 2, 1]
        assert told["observedGeneration"] == 1
        (condition,) = told["conditions"]
        assert (condition["type"], condition["status"], condition["reason"]) == (
            "DisruptionAllowed",
            "True",
            "SufficientPods",
        )


@virtual
async def test_a_budget_over_many_pods_is_looked_at_less_often_and_ends_right(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [disruption_controller]) as cluster:
        await add_budget(cluster, minAvailable=2)
        for number in range(300):
            await add_pod(cluster, f"p{number}")
        await cluster.pass_time(1)
        told: list[int] = []
        cluster.informers.of(DISRUPTION_BUDGETS).on_change(lambda _, after: told.append(after.version if after else 0))
        for number in range(60):
            await set_ready(cluster, f"p{number}", ready=False)
            await cluster.pass_time(0.03)
        assert 2 < len(told) < 60 * 0.03 / 0.11 + 2
        assert (await status(cluster))["currentHealthy"] == 240


@virtual
async def test_a_part_is_of_what_the_controller_wants_not_of_what_is_there(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [disruption_controller]) as cluster:
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
        spec = {"replicas": 5, "selector": SELECTOR, "template": template}
        made = await cluster.create(REPLICA_SETS, {"metadata": {"name": "rs"}, "spec": spec})
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "rs",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
        await add_budget(cluster, maxUnavailable="30%")
        for name in "abc":
            await add_pod(cluster, name, owner=owner)
        told = await status(cluster)
        assert (told["expectedPods"], told["desiredHealthy"], told["disruptionsAllowed"]) == (5, 3, 0)
        assert told["conditions"][0]["reason"] == "InsufficientPods"


@virtual
async def test_evictions_stop_where_the_budget_ends_and_go_on_when_pods_come_back(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [disruption_controller]) as cluster:
        await add_budget(cluster, minAvailable=1)
        for name in "ab":
            await add_pod(cluster, name)
        await status(cluster)
        await cluster.api.post(PODS, "default", "a", "eviction", _eviction("a"))
        with pytest.raises(BusyError):
            await cluster.api.post(PODS, "default", "b", "eviction", _eviction("b"))
        await add_pod(cluster, "c")
        assert (await status(cluster))["disruptionsAllowed"] == 1
        await cluster.api.post(PODS, "default", "b", "eviction", _eviction("b"))


def _eviction(name: str) -> Obj:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}


@virtual
async def test_a_pod_let_go_that_stays_counts_again_after_two_minutes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [disruption_controller]) as cluster:
        await add_budget(cluster, minAvailable=1)
        for name in "ab":
            await add_pod(cluster, name)
        await status(cluster)
        let_go = {"disruptedPods": {"a": "2026-01-01T00:00:01Z"}}
        await cluster.patch(DISRUPTION_BUDGETS, "pdb", {"status": let_go}, subresource="status")
        told = await status(cluster)
        assert (told["currentHealthy"], told["disruptionsAllowed"]) == (1, 0)
        await cluster.pass_time(125)
        told = await status(cluster)
        assert (told["currentHealthy"], told["disruptionsAllowed"], told.get("disruptedPods")) == (2, 1, None)
        assert [one["reason"] for one in await cluster.events("a")] == ["NotDeleted"]


@virtual
async def test_a_budget_that_cannot_be_worked_out_allows_nothing(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [disruption_controller]) as cluster:
        await add_budget(cluster, maxUnavailable=1)
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone", "uid": "u", "controller": True}
        await add_pod(cluster, "a", owner=owner)
        told = await status(cluster)
        assert told["disruptionsAllowed"] == 0
        assert told["conditions"][0]["reason"] == "SyncFailed"
        assert "CalculateExpectedPodCountFailed" in [one["reason"] for one in await cluster.events("pdb")]


@virtual
async def test_a_disruption_that_never_came_is_taken_back(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [stale_disruption_controller]) as cluster:
        await add_pod(cluster, "a")
        told = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        body = {"status": {"conditions": [told | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
        await cluster.patch(PODS, "a", body, subresource="status")
        await cluster.pass_time(60)
        assert await _told(cluster) == "True"
        await cluster.pass_time(90)
        assert await _told(cluster) == "False"


async def _told(cluster: SmallCluster) -> str:
    conditions = (await cluster.get(PODS, "a"))["status"]["conditions"]
    return str(next(one["status"] for one in conditions if one["type"] == "DisruptionTarget"))


@pytest.mark.parametrize(
    ("spec", "scale", "ready", "desired", "allowed"),
    [
        (BudgetSpec(min_available=2), 3, 3, 2, 1),
        (BudgetSpec(min_available="50%"), 5, 5, 3, 2),
        (BudgetSpec(min_available="100%"), 3, 3, 3, 0),
        (BudgetSpec(max_unavailable=1), 3, 3, 2, 1),
        (BudgetSpec(max_unavailable="34%"), 3, 3, 1, 2),
        (BudgetSpec(max_unavailable=9), 3, 2, 0, 2),
        (BudgetSpec(max_unavailable=0), 3, 3, 3, 0),
        (BudgetSpec(min_available=0), 0, 0, 0, 0),
    ],
)
def test_percentages_round_up_on_both_sides(
    spec: BudgetSpec, scale: int, ready: int, desired: int, allowed: int
) -> None:
    state = BudgetedPodStatus((Condition("Ready", "True"),))
    pods = [BudgetedPod(ObjectMeta(name=str(number)), state) for number in range(ready)]
    found = counts(DisruptionBudget(ObjectMeta(), spec), pods, scale, {})
    assert (found.desired, found.allowed) == (desired, allowed)
