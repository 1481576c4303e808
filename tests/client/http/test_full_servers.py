"""A server that has too much to do and says when to come back: that is when one comes back."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from build.told_server import POD, Server, status
from shoal.client.http.api import KubeApi
from shoal.client.kind import PODS
from shoal.client.refusals import BusyError

WAIT_S = 0.05
FULL = (429, status(429, "TooManyRequests", details={"retryAfterSeconds": WAIT_S}))


def page(go_on: str, name: str) -> dict[str, Any]:
    item = {"metadata": {"name": name, "uid": name, "resourceVersion": "1"}}
    return {"kind": "PodList", "metadata": {"resourceVersion": "9", "continue": go_on}, "items": [item]}


def now_s() -> float:
    return asyncio.get_running_loop().time()


async def test_a_list_waits_between_its_pages_and_keeps_those_it_has(server: Server, api: KubeApi) -> None:
    server.script = [page("one", "a"), FULL, FULL, page("", "b")]
    began_s = now_s()
    assert [item.name for item in (await api.list(PODS)).items] == ["a", "b"]
    assert now_s() - began_s >= 2 * WAIT_S
    assert [one.query.get("continue") for one in server.seen] == [None, "one", "one", "one"]


async def test_a_list_does_not_wait_for_ever(server: Server, api: KubeApi) -> None:
    server.script = [(429, status(429, "TooManyRequests", details={"retryAfterSeconds": 0.001}))]
    with pytest.raises(BusyError):
        await api.list(PODS)
    assert len(server.seen) == 10


async def test_all_other_requests_of_the_client_wait_too(server: Server, api: KubeApi) -> None:
    server.script = [FULL, POD]
    with pytest.raises(BusyError) as refused:
        await api.create(PODS, {"metadata": {"namespace": "a"}})
    assert refused.value.delay_s == WAIT_S
    began_s = now_s()
    await asyncio.gather(*(api.get(PODS, "a", "p") for _ in range(3)))
    assert now_s() - began_s >= WAIT_S * 0.9


async def test_a_watch_that_is_refused_says_when_to_come_back(server: Server, api: KubeApi) -> None:
    server.script = [FULL]
    with pytest.raises(BusyError) as refused:
        async with aclosing(api.watch(PODS, 4)) as batches:
            await anext(batches)
    assert refused.value.delay_s == WAIT_S


async def test_what_is_refused_about_one_object_holds_nobody_else_up(server: Server, api: KubeApi) -> None:
    """An eviction that a disruption budget does not allow."""
    causes = [{"reason": "DisruptionBudget", "message": "not now"}]
    budget = status(429, "TooManyRequests", details={"retryAfterSeconds": 30, "causes": causes})
    server.script = [(429, budget), POD]
    with pytest.raises(BusyError):
        await api.post(PODS, "a", "p", "eviction", {})
    async with asyncio.timeout(20):
        await api.get(PODS, "a", "p")
