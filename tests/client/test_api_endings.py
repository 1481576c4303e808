"""What the port promises of deletions, evictions and other doors, of whoever stands behind it."""

from __future__ import annotations

from typing import Any

import pytest

from build.port_objects import config, pod
from shoal.client.kind import CONFIG_MAPS, DISRUPTION_BUDGETS, NAMESPACES, PODS, SERVICE_ACCOUNTS
from shoal.client.port import Api, Deletion, Patch
from shoal.client.refusals import (
    BusyError,
    NotFoundError,
    RefusedError,
    StaleError,
)


async def test_a_deletion_says_whether_the_object_waits_for_its_end(api: Api, home: str) -> None:
    await api.create(CONFIG_MAPS, config(home, "a"))
    assert await api.delete(CONFIG_MAPS, home, "a") is None
    held = config(home, "b")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.create(CONFIG_MAPS, held)
    left = await api.delete(CONFIG_MAPS, home, "b")
    assert left is not None
    assert left.obj()["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize("how", ["patch", "update"])
async def test_the_last_finalizer_takes_the_object_with_it(api: Api, home: str, how: str) -> None:
    held = config(home, "b")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    made = await api.create(CONFIG_MAPS, held)
    left = await api.delete(CONFIG_MAPS, home, "b")
    assert left is not None
    if how == "patch":
        last = await api.patch(CONFIG_MAPS, home, "b", Patch("merge", {"metadata": {"finalizers": None}}))
    else:
        obj = left.obj()
        del obj["metadata"]["finalizers"]
        last = await api.update(CONFIG_MAPS, obj)
    assert (last.key, last.uid) == (made.key, made.uid)
    with pytest.raises(NotFoundError):
        await api.get(CONFIG_MAPS, home, "b")


async def test_a_bound_pod_has_its_grace_and_none_when_asked_so(api: Api, home: str) -> None:
    await api.create(PODS, pod(home, "p"))
    await api.post(PODS, home, "p", "binding", {"target": {"kind": "Node", "name": "n1"}})
    left = await api.delete(PODS, home, "p", Deletion(grace_s=7))
    assert left is not None
    assert left.obj()["metadata"]["deletionGracePeriodSeconds"] == 7
    assert await api.delete(PODS, home, "p", Deletion(grace_s=0)) is None
    with pytest.raises(NotFoundError):
        await api.get(PODS, home, "p")


async def test_a_namespace_waits_for_what_is_in_it(api: Api, home: str) -> None:
    name = f"{home}-more"
    await api.create(NAMESPACES, {"metadata": {"name": name}})
    left = await api.delete(NAMESPACES, "", name)
    assert left is not None
    assert left.obj()["status"]["phase"] == "Terminating"


@pytest.mark.parametrize("wrong", [Deletion(uid="another"), Deletion(version=1)])
async def test_a_deletion_of_another_one_is_a_conflict(api: Api, home: str, wrong: Deletion) -> None:
    made = await api.create(CONFIG_MAPS, config(home, "a"))
    with pytest.raises(StaleError):
        await api.delete(CONFIG_MAPS, home, "a", wrong)
    assert await api.delete(CONFIG_MAPS, home, "a", Deletion(uid=made.uid, version=made.version)) is None


@pytest.mark.parametrize(("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
async def test_how_dependents_are_dealt_with_is_said_to_the_server(
    api: Api, home: str, policy: Any, finalizer: str
) -> None:
    await api.create(CONFIG_MAPS, config(home, "a"))
    left = await api.delete(CONFIG_MAPS, home, "a", Deletion(policy=policy))
    # Where a garbage collector runs, it may be done already.
    assert left is not None
    assert finalizer in left.obj()["metadata"]["finalizers"]


async def test_an_eviction_that_a_budget_forbids_is_to_be_tried_again(api: Api, home: str) -> None:
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "p"}}}
    await api.create(DISRUPTION_BUDGETS, {"metadata": {"name": "b", "namespace": home}, "spec": budget})
    await api.create(PODS, pod(home, "p", labels={"app": "p"}))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await api.patch(PODS, home, "p", Patch("merge", {"status": ready}), "status")
    with pytest.raises(BusyError) as refused:
        await api.post(PODS, home, "p", "eviction", {})
    assert refused.value.code == 429
    assert refused.value.reason == "TooManyRequests"
    await api.delete(DISRUPTION_BUDGETS, home, "b")
    await api.post(PODS, home, "p", "eviction", {"deleteOptions": {"gracePeriodSeconds": 0}})


async def test_a_pod_is_bound_once(api: Api, home: str) -> None:
    await api.create(PODS, pod(home, "p"))
    await api.post(PODS, home, "p", "binding", {"target": {"kind": "Node", "name": "n1"}})
    assert (await api.get(PODS, home, "p")).obj()["spec"]["nodeName"] == "n1"
    with pytest.raises(RefusedError) as refused:
        await api.post(PODS, home, "p", "binding", {"target": {"kind": "Node", "name": "n2"}})
    assert refused.value.code == 409


async def test_a_token_is_posted_for(api: Api, home: str) -> None:
    await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "who", "namespace": home}})
    answer = await api.post(SERVICE_ACCOUNTS, home, "who", "token", {"spec": {"expirationSeconds": 3600}})
    assert answer["status"]["token"].count(".") == 2


async def test_a_door_that_is_not_there_is_refused(api: Api, home: str) -> None:
    await api.create(CONFIG_MAPS, config(home, "a"))
    with pytest.raises(RefusedError):
        await api.post(CONFIG_MAPS, home, "a", "binding", {})
