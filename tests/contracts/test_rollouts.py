"""Deployments: rollouts and what `kubectl rollout` reads and writes of them. The test plays the kubelet."""

from __future__ import annotations

from typing import Any

import pytest

from build.api_objects import IMAGE
from build.cluster_api import Api, Obj
from build.live_waits import conditions, create, living, name_of, until, until_gone, until_items, until_pods, until_said
from build.live_workloads import images, template, workload
from build.played_pods import everything_runs

pytestmark = pytest.mark.needs("controllers")
REVISION = "deployment.kubernetes.io/revision"
NEXT, BAD = "registry.k8s.io/pause:3.9", "registry.k8s.io/pause:bad"
QUIET = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}}


def is_well(pod: Obj) -> bool:
    return images([pod]) != [BAD]


def at(api: Api, *rest: str) -> str:
    return api.group("apps/v1", "deployments", "web", *rest)


async def make(api: Api, **spec: Any) -> Obj:
    return await create(api, workload("Deployment", **spec), "deployments")


async def change(api: Api, **spec: Any) -> Obj:
    return (await api.patch(at(api), {"spec": spec})).ok()


def to(image: str) -> Obj:
    return {"spec": {"containers": [{"name": "main", "image": image}]}}


async def sets(api: Api) -> list[Obj]:
    found: list[Obj] = (await api.get(api.group("apps/v1", "replicasets"))).ok()["items"]
    return sorted(found, key=lambda one: int(one["metadata"]["annotations"][REVISION]))


def counts(found: Obj) -> tuple[int, ...]:
    """How many are ready, of the new revision, and unavailable."""
    return tuple(found["status"].get(f"{name}Replicas", 0) for name in ("ready", "updated", "unavailable"))


def is_rolled_out(found: Obj) -> bool:
    """As `kubectl rollout status` sees it."""
    status, wanted = found.get("status", {}), found["spec"]["replicas"]
    is_seen = bool(status.get("observedGeneration", 0) >= found["metadata"]["generation"])
    numbers = {status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")}
    return is_seen and numbers == {wanted}


async def rolled_out(api: Api) -> Obj:
    return await until(api, at(api), is_rolled_out)


async def test_a_deployment_owns_a_replica_set_that_owns_the_pods(api: Api) -> None:
    async with everything_runs(api):
        made = await make(api, replicas=2)
        found = await rolled_out(api)
    (owned,) = await sets(api)
    hashed = owned["metadata"]["labels"]["pod-template-hash"]
    assert name_of(owned) == f"web-{hashed}"
    assert owned["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": hashed}
    assert owned["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    notes = owned["metadata"]["annotations"]
    assert notes["deployment.kubernetes.io/desired-replicas"] == "2"
    assert notes["deployment.kubernetes.io/max-replicas"] == "3"
    for pod in await until_pods(api, 2):
        assert pod["metadata"]["generateName"] == f"{name_of(owned)}-"
        assert pod["metadata"]["labels"] == {"app": "web", "pod-template-hash": hashed}
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("ReplicaSet", name_of(owned), True)
    assert found["metadata"]["annotations"][REVISION] == "1"
    verdicts = conditions(found)
    assert verdicts["Available"] == ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    done = await until(api, at(api), lambda one: conditions(one)["Progressing"][1] == "NewReplicaSetAvailable")
    words = f'ReplicaSet "{name_of(owned)}" has successfully progressed.'
    assert conditions(done)["Progressing"] == ("True", "NewReplicaSetAvailable", words)
    (event,) = await until_said(api, "web", "ScalingReplicaSet")
    assert event["message"] == f"Scaled up replica set {name_of(owned)} from 0 to 2"


async def test_a_new_image_rolls_out_and_undo_brings_the_old_set_back(api: Api) -> None:
    async with everything_runs(api):
        await make(api, replicas=2, **QUIET)
        await rolled_out(api)
        await change(api, template=to(NEXT))
        await rolled_out(api)
        assert images(await until_pods(api, 2)) == [NEXT, NEXT]
        old, new = await sets(api)
        assert (old["spec"]["replicas"], new["spec"]["replicas"]) == (0, 2)
        await change(api, template=to(IMAGE))
        again = await rolled_out(api)
    assert again["metadata"]["annotations"][REVISION] == "3"
    before, after = await sets(api)
    assert (name_of(before), name_of(after)) == (name_of(new), name_of(old))
    assert after["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"
    assert images(await until_pods(api, 2)) == [IMAGE, IMAGE]


async def test_a_rollout_never_has_fewer_ready_pods_than_it_may(api: Api) -> None:
    async with everything_runs(api, is_well):
        await make(api, replicas=4, strategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}})
        await rolled_out(api)
        await change(api, template=to(BAD))
        wanted = [IMAGE] * 3 + [BAD] * 2
        await until_items(api, api.core("pods"), lambda pods: images(living(pods)) == wanted)
    # One whole picture: between two looks an old set's count of before may stand beside a new one's of now.
    found = await until(api, at(api), lambda one: counts(one) == (3, 2, 2))
    assert conditions(found)["Available"][0] == "True"


async def test_what_scales_while_rolling_is_shared_by_old_and_new(api: Api) -> None:
    async with everything_runs(api, is_well):
        await make(api, replicas=10, strategy={"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}})
        await rolled_out(api)
        await change(api, template=to(BAD))
        await until_items(api, api.core("pods"), lambda pods: images(living(pods)) == sorted([IMAGE] * 8 + [BAD] * 5))
        await change(api, replicas=15)
        wanted = sorted([IMAGE] * 11 + [BAD] * 7)
        await until_items(api, api.core("pods"), lambda pods: images(living(pods)) == wanted)


async def test_a_rollout_without_progress_is_told_after_its_deadline(api: Api) -> None:
    async with everything_runs(api, is_well):
        await make(api, replicas=1, progressDeadlineSeconds=2, minReadySeconds=0, **QUIET)
        await rolled_out(api)
        await change(api, template=to(BAD))
        found = await until(api, at(api), lambda one: conditions(one).get("Progressing", ("",))[0] == "False")
    (_, bad) = await sets(api)
    words = f'ReplicaSet "{name_of(bad)}" has timed out progressing.'
    assert conditions(found)["Progressing"] == ("False", "ProgressDeadlineExceeded", words)
    assert conditions(found)["Available"][0] == "True"


async def test_a_paused_deployment_scales_but_does_not_roll(api: Api) -> None:
    async with everything_runs(api):
        await make(api, replicas=1)
        await rolled_out(api)
        await change(api, paused=True, replicas=3, template=to(NEXT))
        found = await until(api, at(api), lambda one: one["status"].get("availableReplicas") == 3)
        assert images(await until_pods(api, 3)) == [IMAGE] * 3
        paused = ("Unknown", "DeploymentPaused", "Deployment is paused")
        found = await until(api, at(api), lambda one: conditions(one)["Progressing"] == paused)
        assert "updatedReplicas" not in found["status"]
        await change(api, paused=False)
        await rolled_out(api)
    assert images(await until_pods(api, 3)) == [NEXT] * 3


async def test_recreate_takes_all_old_pods_away_first(api: Api) -> None:
    async with everything_runs(api):
        await make(api, replicas=2, strategy={"type": "Recreate"})
        await rolled_out(api)
        await change(api, template=to(NEXT))
        await rolled_out(api)
    assert images(await until_pods(api, 2)) == [NEXT, NEXT]
    old, new = await sets(api)
    down = f"Scaled down replica set {name_of(old)} from 2 to 0"
    up = f"Scaled up replica set {name_of(new)} from 0 to 2"
    await until_items(
        api,
        api.core("events"),
        lambda events: {down, up} < {event["message"] for event in events},
        fieldSelector="involvedObject.name=web,reason=ScalingReplicaSet",
    )


async def test_old_sets_are_kept_as_many_as_asked(api: Api) -> None:
    async with everything_runs(api):
        await make(api, replicas=1, revisionHistoryLimit=1, **QUIET)
        await rolled_out(api)
        for number in ("1", "2", "3"):
            await change(api, template=to(f"registry.k8s.io/pause:{number}"))
            await rolled_out(api)
        kept = await until_items(api, api.group("apps/v1", "replicasets"), lambda items: len(items) == 2)
    revisions = sorted(one["metadata"]["annotations"][REVISION] for one in kept)
    assert revisions == ["3", "4"]


async def test_a_restart_by_annotation_replaces_the_pods(api: Api) -> None:
    async with everything_runs(api):
        await make(api, replicas=1)
        await rolled_out(api)
        (before,) = await until_pods(api, 1)
        stamp = {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z"}
        await change(api, template={"metadata": {"annotations": stamp}})
        await rolled_out(api)
        (after,) = await until_pods(api, 1)
    assert name_of(after) != name_of(before)
    assert after["metadata"]["annotations"] == stamp


async def test_an_orphaned_replica_set_is_taken_back(api: Api) -> None:
    async with everything_runs(api):
        await make(api, replicas=1)
        await rolled_out(api)
        (before,) = await sets(api)
        (await api.delete(at(api), propagationPolicy="Orphan")).ok()
        path = api.group("apps/v1", "replicasets", name_of(before))
        await until(api, path, lambda one: "ownerReferences" not in one["metadata"])
        await until_gone(api, at(api))
        made = await make(api, replicas=1, template=template())
        owned = await until(api, path, lambda one: "ownerReferences" in one["metadata"])
    assert owned["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert owned["metadata"]["uid"] == before["metadata"]["uid"]
