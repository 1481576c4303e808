"""Evictions among other writers: judged, charged and done on one and the same pod, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from build.in_process import MERGE, STRATEGIC, InProcess, Reply, in_process
from shoal.embedded.apiserver.storage.faulty import FaultyStorage
from shoal.embedded.apiserver.storage.memory import MemoryStorage

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
Obj = dict[str, Any]


@pytest.fixture
def storage() -> FaultyStorage:
    return FaultyStorage(MemoryStorage())


@pytest.fixture
async def door(tmp_path: Path, storage: FaultyStorage) -> AsyncIterator[InProcess]:
    async with in_process(tmp_path, storage) as opened:
        yield opened


async def guard(door: InProcess, allowed: int, **spec: Any) -> None:
    selector = {"matchLabels": {"app": "web"}}
    budget = {"metadata": {"name": "guard"}, "spec": {"minAvailable": 1, "selector": selector, **spec}}
    assert (await door.ask("POST", BUDGETS, budget)).code == 201
    counted = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    counted["observedGeneration"] = 1
    assert (await door.ask("PATCH", f"{BUDGETS}/guard/status", {"status": counted}, MERGE)).code == 200


async def running(door: InProcess, ready: bool) -> Obj:
    spec = {"containers": [{"name": "c", "image": "x"}], "nodeName": "n1"}
    made = await door.ask("POST", PODS, {"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": spec})
    assert made.code == 201
    return (await became(door, "True" if ready else "False")).body  # type: ignore[no-any-return] # JSON


async def became(door: InProcess, ready: str) -> Reply:
    told = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}}
    answer = await door.ask("PATCH", f"{PODS}/p/status", told, STRATEGIC)
    assert answer.code == 200
    return answer


async def evict(door: InProcess, **options: Any) -> Reply:
    return await door.ask("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": options})


async def seen(door: InProcess) -> Obj:
    return (await door.ask("GET", f"{PODS}/p")).body  # type: ignore[no-any-return] # JSON


def is_marked(pod: Obj) -> bool:
    return any(one["type"] == "DisruptionTarget" for one in pod["status"]["conditions"])


async def allowed(door: InProcess) -> int:
    return int((await door.ask("GET", f"{BUDGETS}/guard")).body["status"]["disruptionsAllowed"])


async def turns() -> None:
    """Until everybody who can go on has gone as far as they can."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_pod_that_becomes_ready_before_its_eviction_has_its_turn_is_guarded(
    door: InProcess, storage: FaultyStorage
) -> None:
    await guard(door, 0, unhealthyPodEvictionPolicy="AlwaysAllow")
    await running(door, ready=False)
    storage.hold()
    readying = asyncio.ensure_future(became(door, "True"))
    await storage.held()
    evicting = asyncio.ensure_future(evict(door))
    await turns()
    storage.release()
    await readying
    assert (await evicting).code == 429
    pod = await seen(door)
    assert not is_marked(pod)
    assert "deletionTimestamp" not in pod["metadata"]


async def test_a_pod_that_is_not_ready_goes_without_its_budget_being_charged(door: InProcess) -> None:
    await guard(door, 0, unhealthyPodEvictionPolicy="AlwaysAllow")
    await running(door, ready=False)
    assert (await evict(door)).code == 201
    pod = await seen(door)
    assert is_marked(pod)
    assert "deletionTimestamp" in pod["metadata"]


async def test_the_last_disruption_is_spent_by_one_of_two_evictions(door: InProcess) -> None:
    await guard(door, 1)
    await running(door, ready=True)
    other = {"metadata": {"name": "q", "labels": {"app": "web"}}, "spec": (await seen(door))["spec"]}
    assert (await door.ask("POST", PODS, other)).code == 201
    told = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    assert (await door.ask("PATCH", f"{PODS}/q/status", told, STRATEGIC)).code == 200
    answers = await asyncio.gather(
        *(door.ask("POST", f"{PODS}/{name}/eviction", {"metadata": {"name": name}}) for name in "pq")
    )
    assert sorted(answer.code for answer in answers) == [201, 429]
    assert await allowed(door) == 0


async def test_an_eviction_of_the_version_that_is_there_is_done(door: InProcess) -> None:
    pod = await running(door, ready=True)
    answer = await evict(door, preconditions={"resourceVersion": pod["metadata"]["resourceVersion"]})
    assert answer.code == 201
    assert "deletionTimestamp" in (await seen(door))["metadata"]


async def test_an_eviction_at_once_shows_watchers_why_the_pod_ended(door: InProcess) -> None:
    pod = await running(door, ready=True)
    state = door.plane.context.state
    ref = next(record.ref for record in state.list(("", "pods"), "default").records)  # type: ignore[arg-type] # a Home
    watch = state.watch(ref.home, "default", state.revision)
    answer = await evict(door, gracePeriodSeconds=0, preconditions={"uid": pod["metadata"]["uid"]})
    assert answer.code == 201
    told = await watch.next_batch()
    while told[-1].kind != "DELETED":
        told += await watch.next_batch()
    assert is_marked(told[-1].record.obj())


@pytest.mark.parametrize("wanted", [{"uid": "another"}, {"resourceVersion": "1"}])
async def test_an_eviction_of_another_pod_than_the_one_there_leaves_no_trace(
    door: InProcess, wanted: dict[str, str]
) -> None:
    await guard(door, 1)
    before = await running(door, ready=True)
    answer = await evict(door, preconditions=wanted)
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert "in the precondition" in answer.body["message"]
    assert await seen(door) == before
    assert await allowed(door) == 1


async def test_a_trial_of_an_eviction_is_refused_like_one_and_changes_nothing(door: InProcess) -> None:
    await guard(door, 1)
    before = await running(door, ready=True)
    assert (await evict(door, dryRun=["All"])).code == 201
    assert await seen(door) == before
    assert await allowed(door) == 1
    assert (await evict(door, dryRun=["All"], preconditions={"uid": "another"})).code == 409
