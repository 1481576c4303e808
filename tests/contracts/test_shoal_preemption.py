"""Who yields to whom, how it is told, and who never has to."""

from __future__ import annotations

from typing import Any

import pytest

from build.cluster_api import Api, Obj
from build.live_waits import conditions, name_of, until, until_gone, until_said
from build.shoal_pods import (
    KUBE,
    SHOAL,
    asking,
    create_pod,
    node_of,
    own_nodes,
    priority,
    until_bound,
    until_refused,
    waiting_pod,
    words,
)

pytestmark = [pytest.mark.needs("controllers"), pytest.mark.usefixtures("shoal")]
both = pytest.mark.parametrize("scheduler", [KUBE, SHOAL])


async def low(api: Api, name: str, gpus: int, **spec: Any) -> Obj:
    """A pod without importance, on its node."""
    await create_pod(api, waiting_pod(api, name, asking(gpus), **spec))
    return await until_bound(api, name)


def ending(pod: Obj) -> bool:
    return "deletionTimestamp" in pod["metadata"]


@both
async def test_the_less_important_yields_with_its_grace_and_both_are_told(api: Api, scheduler: str) -> None:
    async with own_nodes(api) as (node,), priority(api, 1000) as rank:
        # Without a kubelet it stays until somebody ends it for good.
        before = await low(api, "low", 4, schedulerName=scheduler, terminationGracePeriodSeconds=55)
        await create_pod(api, waiting_pod(api, "high", asking(3), schedulerName=scheduler, priorityClassName=rank))
        yielding = await until(api, api.core("pods", "low"), ending)
        assert yielding["metadata"]["uid"] == before["metadata"]["uid"]
        assert yielding["metadata"]["deletionGracePeriodSeconds"] == 55
        assert conditions(yielding)["DisruptionTarget"] == (
            "True",
            "PreemptionByScheduler",
            f"{scheduler}: preempting to accommodate a higher priority pod",
        )
        high = await until(api, api.core("pods", "high"), lambda one: one["status"].get("nominatedNodeName"))
        assert (high["status"]["nominatedNodeName"], node_of(high)) == (node, "")
        assert "1 Insufficient nvidia.com/gpu" in words(await until_refused(api, "high"))
        (event, *_) = await until_said(api, "low", "Preempted")
        assert event["message"] == f"Preempted by pod {high['metadata']['uid']} on node {node}"
        await api.delete(api.core("pods", "low"), gracePeriodSeconds=0)
        assert node_of(await until_bound(api, "high")) == node


@both
async def test_no_more_yield_than_have_to(api: Api, scheduler: str) -> None:
    async with own_nodes(api), priority(api, 10) as some, priority(api, 1000) as rank:
        await low(api, "least", 2, schedulerName=scheduler)
        await low(api, "some", 2, schedulerName=scheduler, priorityClassName=some)
        await create_pod(api, waiting_pod(api, "high", asking(2), schedulerName=scheduler, priorityClassName=rank))
        await until_bound(api, "high")
        await until_gone(api, api.core("pods", "least"))
        assert not ending((await api.get(api.core("pods", "some"))).ok())


@both
async def test_whoever_never_preempts_waits_and_says_so(api: Api, scheduler: str) -> None:
    async with own_nodes(api), priority(api, 1000, preemptionPolicy="Never") as rank:
        await low(api, "low", 4, schedulerName=scheduler)
        await create_pod(api, waiting_pod(api, "high", asking(1), schedulerName=scheduler, priorityClassName=rank))
        said = words(await until_refused(api, "high"))
        assert "preemption: not eligible due to preemptionPolicy=Never." in said
        assert not ending((await api.get(api.core("pods", "low"))).ok())


@both
async def test_pods_under_a_budget_are_spared_where_others_can_yield(api: Api, scheduler: str) -> None:
    async with own_nodes(api), priority(api, 1000) as rank:
        made = waiting_pod(api, "kept", asking(2), schedulerName=scheduler)
        made["metadata"]["labels"] = {"app": "kept"}
        await create_pod(api, made)
        await until_bound(api, "kept")
        # Whoever places the next pod has heard of it before the one after that comes.
        await budget(api)
        await low(api, "low", 2, schedulerName=scheduler)
        await create_pod(api, waiting_pod(api, "high", asking(2), schedulerName=scheduler, priorityClassName=rank))
        await until_bound(api, "high")
        await until_gone(api, api.core("pods", "low"))
        assert not ending((await api.get(api.core("pods", "kept"))).ok())


async def test_a_budget_that_allows_nothing_is_kept(api: Api) -> None:
    async with own_nodes(api), priority(api, 1000) as rank:
        made = waiting_pod(api, "kept", asking(4))
        made["metadata"]["labels"] = {"app": "kept"}
        await create_pod(api, made)
        await until_bound(api, "kept")
        await budget(api)
        await create_pod(api, waiting_pod(api, "high", asking(2), priorityClassName=rank))
        await until_refused(api, "high")
        await api.delete(api.group("policy/v1", "poddisruptionbudgets", "kept"))
        await until_bound(api, "high")
        await until_gone(api, api.core("pods", "kept"))


async def test_a_pod_that_is_not_to_be_preempted_stays(api: Api) -> None:
    async with own_nodes(api), priority(api, 1000) as rank:
        made = waiting_pod(api, "lasting", asking(2))
        made["metadata"]["annotations"] = {"shoal.dev/preemptible": "false"}
        await create_pod(api, made)
        await until_bound(api, "lasting")
        await low(api, "low", 2)
        await create_pod(api, waiting_pod(api, "high", asking(2), priorityClassName=rank))
        await until_bound(api, "high")
        await create_pod(api, waiting_pod(api, "higher", asking(4), priorityClassName=rank))
        await until_refused(api, "higher")
        assert not ending((await api.get(api.core("pods", "lasting"))).ok())


async def budget(api: Api) -> None:
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "kept"}}}
    body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "kept"}, "spec": spec}
    path = api.group("policy/v1", "poddisruptionbudgets")
    (await api.post(path, body)).ok(201)
    await until(api, f"{path}/{name_of(body)}", lambda one: one.get("status", {}).get("observedGeneration"))
