"""CronJobs: what can be seen without waiting for the clock."""

from __future__ import annotations

from typing import Any

import pytest

from build.api_objects import NO_SCHEDULER, container
from build.cluster_api import Api, Obj
from build.live_waits import create, living, name_of, until, until_items, until_said

pytestmark = pytest.mark.needs("controllers")


def job_spec() -> Obj:
    held = {"schedulerName": NO_SCHEDULER, "restartPolicy": "Never", "containers": [container()]}
    return {"template": {"spec": held}}


async def make(api: Api, schedule: str = "0 0 29 2 *", **spec: Any) -> Obj:
    whole = {"schedule": schedule, "jobTemplate": {"spec": job_spec()}, **spec}
    body = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}, "spec": whole}
    return await create(api, body, "cronjobs")


def at(api: Api) -> str:
    return api.group("batch/v1", "cronjobs", "nightly")


async def start(api: Api, owner: Obj, name: str) -> Obj:
    """As `kubectl create job --from=cronjob/nightly` does."""
    reference = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "name": name_of(owner),
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    metadata = {
        "name": name,
        "annotations": {"cronjob.kubernetes.io/instantiate": "manual"},
        "ownerReferences": [reference],
    }
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {**job_spec(), "suspend": True}}
    return (await api.post(api.group("batch/v1", "jobs"), body)).ok(201)


async def finish(api: Api, name: str) -> None:
    (await api.patch(api.group("batch/v1", "jobs", name), {"spec": {"suspend": False}})).ok()
    pods = await until_items(api, api.core("pods"), lambda found: len(found) == 1, labelSelector=f"job-name={name}")
    (await api.patch(api.core("pods", name_of(pods[0]), "status"), {"status": {"phase": "Succeeded"}})).ok()


async def test_a_schedule_of_a_far_day_makes_nothing_yet(api: Api) -> None:
    await make(api)
    await make_sure_it_was_seen(api)
    assert (await api.get(api.group("batch/v1", "jobs"))).ok()["items"] == []


async def make_sure_it_was_seen(api: Api) -> None:
    """A job of its own that ends is counted out: the controller has come by."""
    owner = (await api.get(at(api))).ok()
    await start(api, owner, "probe")
    await finish(api, "probe")
    await until(api, at(api), lambda one: "lastSuccessfulTime" in one.get("status", {}))
    (await api.delete(api.group("batch/v1", "jobs", "probe"), propagationPolicy="Background")).ok()
    await until_items(api, api.group("batch/v1", "jobs"), lambda jobs: not living(jobs))


async def test_old_jobs_are_kept_as_many_as_asked(api: Api) -> None:
    owner = await make(api, successfulJobsHistoryLimit=1)
    for name in ("first", "second"):
        await start(api, owner, name)
        await finish(api, name)
        await until(
            api,
            api.group("batch/v1", "jobs"),
            lambda jobs: all(one.get("status", {}).get("succeeded") for one in jobs["items"]),
        )
    await until_items(api, api.group("batch/v1", "jobs"), lambda jobs: len(living(jobs)) == 1)


async def test_jobs_go_with_their_cron_job(api: Api) -> None:
    owner = await make(api, suspend=True)
    await start(api, owner, "first")
    (await api.delete(at(api), propagationPolicy="Background")).ok()
    await until_items(api, api.group("batch/v1", "jobs"), lambda jobs: not living(jobs))


async def test_a_job_that_the_cron_job_did_not_start_is_told(api: Api) -> None:
    owner = await make(api, suspend=True)
    await start(api, owner, "first")
    await finish(api, "first")
    await until(api, api.group("batch/v1", "jobs", "first"), lambda one: one["status"].get("succeeded") == 1)
    assert "active" not in (await api.get(at(api))).ok()["status"]
    (event, *_) = await until_said(api, "nightly", "UnexpectedJob")
    assert event["message"] == "Saw a job that the controller did not create or forgot: first"
