"""Gangs of Shoal's scheduler: all of their pods get a node, or none does."""

from __future__ import annotations

from typing import Any

import pytest

from build.api_objects import ready_for_pods
from build.cluster_api import Api, Obj
from build.live_waits import until_items, until_said
from build.shoal_pods import (
    asking,
    create_pod,
    is_refused,
    node_of,
    own_nodes,
    until_all_bound,
    until_all_refused,
    until_bound,
    until_refused,
    waiting_pod,
    words,
)

pytestmark = [pytest.mark.needs("controllers"), pytest.mark.usefixtures("shoal")]
GROUPS = "scheduling.x-k8s.io/v1alpha1"


def together(api: Api, name: str, pods: int, gpus: int = 1, says: str = "true", **spec: Any) -> Obj:
    template = {"metadata": {"labels": {"team": name}}, "spec": waiting_pod(api, container=asking(gpus))["spec"]}
    template["spec"]["restartPolicy"] = "Never"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": {"shoal.dev/gang": says}},
        "spec": {"parallelism": pods, "completions": pods, "template": template, **spec},
    }


async def create_job(api: Api, made: Obj) -> None:
    await ready_for_pods(api)
    (await api.post(api.group("batch/v1", "jobs"), made)).ok(201)


async def test_a_gang_that_does_not_fit_takes_no_room_and_starts_when_it_fits(api: Api) -> None:
    async with own_nodes(api) as (node,):
        await create_job(api, together(api, "train", 5))
        await until_all_refused(api, 5)
        told = await until_items(api, api.core("pods"), lambda pods: all("now is 4 of 5" in words(one) for one in pods))
        assert {words(one).partition("/")[0] for one in told} == {"0"}
        await create_pod(api, waiting_pod(api, "alone", asking(4)))
        assert node_of(await until_bound(api, "alone")) == node
        await api.delete(api.core("pods", "alone"), gracePeriodSeconds=0)
        async with own_nodes(api) as (more,):
            placed = await until_all_bound(api, 5)
            assert {node_of(one) for one in placed} == {node, more}


async def test_of_two_gangs_for_one_room_one_starts_and_the_other_holds_nothing(api: Api) -> None:
    async with own_nodes(api):
        for name in ("first", "second"):
            await create_job(api, together(api, name, 3))
        found = await until_items(
            api,
            api.core("pods"),
            lambda pods: sum(bool(node_of(one)) for one in pods) == 3 == sum(map(is_refused, pods)),
        )
        assert len({one["metadata"]["labels"]["team"] for one in found if node_of(one)}) == 1
        winner = next(one["metadata"]["labels"]["team"] for one in found if node_of(one))
        (await api.delete(api.group("batch/v1", "jobs", winner), propagationPolicy="Background")).ok()
        loser = {"first": "second", "second": "first"}[winner]
        await until_all_bound(api, 3, f"team={loser}")


async def test_a_gang_needs_no_more_than_it_says(api: Api) -> None:
    async with own_nodes(api):
        await create_job(api, together(api, "elastic", 5, says="3"))
        found = await until_items(
            api,
            api.core("pods"),
            lambda pods: sum(bool(node_of(one)) for one in pods) == 4 and any(map(is_refused, pods)),
        )
        assert len(found) == 5


async def test_pods_wait_for_the_last_of_their_group(api: Api) -> None:
    if (await api.get(f"/apis/{GROUPS}")).code != 200:
        pytest.skip(f"{GROUPS} is not served")
    group = {"apiVersion": GROUPS, "kind": "PodGroup", "metadata": {"name": "team"}, "spec": {"minMember": 3}}
    (await api.post(api.group(GROUPS, "podgroups"), group)).ok(201)

    async def join(name: str) -> None:
        made = waiting_pod(api, name, asking(1))
        made["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "team"}
        await create_pod(api, made)

    async with own_nodes(api):
        for name in ("a", "b"):
            await join(name)
        await until_refused(api, "a")
        await until_all_refused(api, 2)
        await join("c")
        placed = await until_all_bound(api, 3)
        assert len({node_of(one) for one in placed}) == 1
        assert await until_said(api, "c", "Scheduled")
