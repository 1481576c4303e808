"""PodDisruptionBudgets as their controller counts them, and evictions that heed them."""

from __future__ import annotations

from typing import Any

import pytest

from build.cluster_api import Answer, Api, Obj
from build.live_waits import conditions, create, name_of, until, until_pods
from build.live_workloads import workload
from build.played_pods import everything_runs, run

pytestmark = pytest.mark.needs("controllers")


def at(api: Api) -> str:
    return api.group("policy/v1", "poddisruptionbudgets", "budget")


async def make(api: Api, **spec: Any) -> None:
    whole = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "budget"}, "spec": whole}
    (await api.post(api.group("policy/v1", "poddisruptionbudgets"), body)).ok(201)


async def until_counted(api: Api, *, healthy: int, allowed: int) -> Obj:
    def holds(one: Obj) -> bool:
        status = one.get("status", {})
        is_seen = status.get("observedGeneration") == one["metadata"]["generation"]
        return is_seen and (status["currentHealthy"], status["disruptionsAllowed"]) == (healthy, allowed)

    return await until(api, at(api), holds)


async def evict(api: Api, pod: Obj) -> Answer:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name_of(pod)}}
    return await api.post(api.core("pods", name_of(pod), "eviction"), body)


async def ready_pods(api: Api, number: int) -> list[Obj]:
    async with everything_runs(api):
        await create(api, workload("ReplicaSet", replicas=number), "replicasets")
        path = api.group("apps/v1", "replicasets", "web")
        await until(api, path, lambda one: one["status"].get("readyReplicas") == number)
    return await until_pods(api, number)


async def test_as_many_may_go_as_the_budget_leaves(api: Api) -> None:
    first, second, _ = await ready_pods(api, 3)
    await make(api, minAvailable=2)
    found = await until_counted(api, healthy=3, allowed=1)
    assert (found["status"]["desiredHealthy"], found["status"]["expectedPods"]) == (2, 3)
    assert conditions(found)["DisruptionAllowed"][:2] == ("True", "SufficientPods")
    (await evict(api, first)).ok(201)
    answer = await evict(api, second)
    words = "Cannot evict pod as it would violate the pod's disruption budget."
    assert answer.refused(429, "TooManyRequests") == words
    assert answer.body["details"]["causes"][0]["reason"] == "DisruptionBudget"
    after = await until_counted(api, healthy=2, allowed=0)
    assert conditions(after)["DisruptionAllowed"][:2] == ("False", "InsufficientPods")
    (cause,) = (await evict(api, second)).body["details"]["causes"]
    assert cause["message"] == "The disruption budget budget needs 2 healthy pods and has 2 currently"
    # The replacement gets ready, and there is one to spare again.
    (new,) = [pod for pod in await until_pods(api, 3) if pod["status"]["phase"] == "Pending"]
    await run(api, name_of(new))
    await until_counted(api, healthy=3, allowed=1)
    (await evict(api, second)).ok(201)


async def test_percentages_are_of_what_the_owner_wants(api: Api) -> None:
    await ready_pods(api, 4)
    await make(api, maxUnavailable="50%")
    found = await until_counted(api, healthy=4, allowed=2)
    assert (found["status"]["desiredHealthy"], found["status"]["expectedPods"]) == (2, 4)


async def test_a_pod_that_is_not_ready_may_be_taken_always_where_that_is_said(api: Api) -> None:
    first, second = await ready_pods(api, 2)
    await run(api, name_of(first), ready=False)
    await make(api, minAvailable=2, unhealthyPodEvictionPolicy="AlwaysAllow")
    await until_counted(api, healthy=1, allowed=0)
    assert (await evict(api, second)).code == 429
    (await evict(api, first)).ok(201)


async def test_a_budget_that_asks_too_much_leaves_nothing(api: Api) -> None:
    (only,) = await ready_pods(api, 1)
    await make(api, minAvailable="100%")
    await until_counted(api, healthy=1, allowed=0)
    assert (await evict(api, only)).code == 429
    (await api.patch(at(api), {"spec": {"minAvailable": 0}})).ok()
    await until_counted(api, healthy=1, allowed=1)
    (await evict(api, only)).ok(201)


async def test_an_evicted_pod_on_a_node_says_why_it_goes(api: Api) -> None:
    await make(api, minAvailable=0)
    (pod,) = await ready_pods(api, 1)
    await until_counted(api, healthy=1, allowed=1)
    # Held, so that it can be looked at.
    path = api.core("pods", name_of(pod))
    (await api.patch(path, {"metadata": {"finalizers": ["example.com/held"]}})).ok()
    (await evict(api, pod)).ok(201)
    going = await until(api, path, lambda one: "DisruptionTarget" in conditions(one))
    words = ("True", "EvictionByEvictionAPI", "Eviction API: evicting")
    assert conditions(going)["DisruptionTarget"] == words
    (await api.patch(path, {"metadata": {"finalizers": None}})).ok()
