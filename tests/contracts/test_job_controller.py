"""Jobs: the pods they make, what counts as done, and what is left when they are.

The test plays the kubelet: see `build.played_pods`.
"""

from __future__ import annotations

from typing import Any

import pytest

from build.api_objects import NO_SCHEDULER, container
from build.cluster_api import Api, Obj
from build.live_waits import conditions, create, is_true, living, name_of, until, until_gone, until_items, until_pods
from build.played_pods import end, run

pytestmark = pytest.mark.needs("controllers")
INDEX = "batch.kubernetes.io/job-completion-index"
TRACKING = "batch.kubernetes.io/job-tracking"


def job(name: str = "train", **spec: Any) -> Obj:
    held = {"schedulerName": NO_SCHEDULER, "restartPolicy": "Never", "containers": [container()]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"spec": held}, **spec},
    }


async def make(api: Api, **spec: Any) -> Obj:
    return await create(api, job(**spec), "jobs")


def at(api: Api, *rest: str) -> str:
    return api.group("batch/v1", "jobs", "train", *rest)


async def change(api: Api, **spec: Any) -> None:
    (await api.patch(at(api), {"spec": spec})).ok()


def index_of(pod: Obj) -> str:
    found: str = pod["metadata"]["annotations"][INDEX]
    return found


async def test_a_job_makes_pods_that_are_its_own(api: Api) -> None:
    made = await make(api, parallelism=2, completions=3)
    uid = made["metadata"]["uid"]
    for pod in await until_pods(api, 2):
        assert name_of(pod).startswith("train-")
        assert pod["metadata"]["generateName"] == "train-"
        assert pod["metadata"]["labels"] == {
            "batch.kubernetes.io/controller-uid": uid,
            "batch.kubernetes.io/job-name": "train",
            "controller-uid": uid,
            "job-name": "train",
        }
        assert pod["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": "train",
                "uid": uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
        assert pod["metadata"]["finalizers"] == [TRACKING]
    status = (await until(api, at(api), lambda one: one["status"].get("active") == 2))["status"]
    assert "startTime" in status
    assert (status["ready"], status["terminating"]) == (0, 0)


async def test_a_job_counts_what_is_done_until_it_is_complete(api: Api) -> None:
    await make(api, parallelism=2, completions=3)
    first, second = await until_pods(api, 2)
    await run(api, name_of(second))
    await until(api, at(api), lambda one: one["status"].get("ready") == 1)
    await end(api, name_of(first))
    await until(api, at(api), lambda one: one["status"].get("succeeded") == 1)
    running = await until_items(
        api,
        api.core("pods"),
        lambda pods: len(pods) == 3,
    )
    for pod in running:
        if pod["status"]["phase"] != "Succeeded":
            await end(api, name_of(pod))
    done = await until(api, at(api), lambda one: is_true(one, "Complete"))
    words = ("True", "CompletionsReached", "Reached expected number of succeeded pods")
    assert conditions(done) == {"SuccessCriteriaMet": words, "Complete": words}
    status = done["status"]
    assert (status["succeeded"], status["ready"], status["terminating"]) == (3, 0, 0)
    assert "active" not in status
    assert "completionTime" in status
    assert not status.get("uncountedTerminatedPods")
    await until_items(
        api, api.core("pods"), lambda pods: len(pods) == 3 and all("finalizers" not in pod["metadata"] for pod in pods)
    )


async def test_pods_of_an_indexed_job_know_their_place(api: Api) -> None:
    await make(api, parallelism=3, completions=3, completionMode="Indexed")
    pods = await until_pods(api, 3)
    assert sorted(index_of(pod) for pod in pods) == ["0", "1", "2"]
    for pod in pods:
        index = index_of(pod)
        assert name_of(pod).startswith(f"train-{index}-")
        assert pod["spec"]["hostname"] == f"train-{index}"
        assert pod["metadata"]["labels"][INDEX] == index
        (variable,) = pod["spec"]["containers"][0]["env"]
        assert variable["name"] == "JOB_COMPLETION_INDEX"
        assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{INDEX}']"
    for pod in pods:
        if index_of(pod) != "1":
            await end(api, name_of(pod))
    some = await until(api, at(api), lambda one: one["status"].get("succeeded") == 2)
    assert some["status"]["completedIndexes"] == "0,2"
    await end(api, next(name_of(pod) for pod in pods if index_of(pod) == "1"))
    done = await until(api, at(api), lambda one: is_true(one, "Complete"))
    assert done["status"]["completedIndexes"] == "0-2"


async def test_an_indexed_job_can_grow_and_shrink(api: Api) -> None:
    await make(api, parallelism=2, completions=2, completionMode="Indexed")
    await until_pods(api, 2)
    await change(api, parallelism=4, completions=4)
    assert sorted(index_of(pod) for pod in await until_pods(api, 4)) == ["0", "1", "2", "3"]
    await change(api, parallelism=1, completions=1)
    (left,) = await until_pods(api, 1)
    assert index_of(left) == "0"
    await end(api, name_of(left))
    await until(api, at(api), lambda one: is_true(one, "Complete"))


async def test_less_parallelism_takes_pods_away(api: Api) -> None:
    await make(api, parallelism=3, completions=5)
    pods = await until_pods(api, 3)
    await run(api, name_of(pods[0]))
    await until(api, at(api), lambda one: one["status"].get("ready") == 1)
    await change(api, parallelism=1)
    (left,) = await until_pods(api, 1)
    assert name_of(left) == name_of(pods[0])
    await change(api, parallelism=0)
    await until_pods(api, 0)
    await until(api, at(api), lambda one: "active" not in one["status"])


async def test_a_suspended_job_has_no_pods_until_it_is_resumed(api: Api) -> None:
    await make(api, parallelism=2, completions=2, suspend=True)
    waiting = await until(api, at(api), lambda one: is_true(one, "Suspended"))
    assert conditions(waiting)["Suspended"] == ("True", "JobSuspended", "Job suspended")
    assert "startTime" not in waiting["status"]
    assert (await api.get(api.core("pods"))).ok()["items"] == []
    await change(api, suspend=False)
    await until_pods(api, 2)
    going = await until(api, at(api), lambda one: "startTime" in one["status"])
    assert conditions(going)["Suspended"] == ("False", "JobResumed", "Job resumed")
    await change(api, suspend=True)
    await until_pods(api, 0)
    await until(api, at(api), lambda one: is_true(one, "Suspended") and "active" not in one["status"])


async def test_a_job_without_completions_is_done_when_one_has_succeeded_and_all_are_over(api: Api) -> None:
    await make(api, parallelism=2)
    first, second = await until_pods(api, 2)
    await end(api, name_of(first))
    await until(api, at(api), lambda one: one["status"].get("succeeded") == 1)
    assert not is_true((await api.get(at(api))).ok(), "Complete")
    await end(api, name_of(second))
    await until(api, at(api), lambda one: is_true(one, "Complete"))


async def test_a_finished_job_goes_when_its_time_is_over(api: Api) -> None:
    await make(api, ttlSecondsAfterFinished=0)
    (pod,) = await until_pods(api, 1)
    await end(api, name_of(pod))
    await until_gone(api, at(api))
    await until_gone(api, api.core("pods", name_of(pod)))


async def test_a_job_of_another_manager_gets_nothing(api: Api) -> None:
    await make(api, managedBy="example.com/other")
    (await api.post(api.group("batch/v1", "jobs"), job("ours"))).ok(201)
    (pod,) = await until_pods(api, 1)
    assert pod["metadata"]["labels"]["job-name"] == "ours"
    assert "active" not in (await api.get(at(api))).ok().get("status", {})


async def test_a_deleted_job_takes_its_pods_along(api: Api) -> None:
    await make(api, parallelism=2, completions=2)
    await until_pods(api, 2)
    (await api.delete(at(api), propagationPolicy="Background")).ok()
    await until_items(api, api.core("pods"), lambda pods: not living(pods))
