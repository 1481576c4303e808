"""Cron jobs make jobs at their times, by their policies, and clear them away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.small_clusters import START_S, SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import CRON_JOBS, JOBS
from shoal.client.port import Deletion
from shoal.embedded.controllers.cron_jobs.controller import cron_job_controller

_MINUTES = int(START_S) // 60


def _cron_job(**spec: Any) -> Obj:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
    template = {"metadata": {"labels": {"app": "backup"}}, "spec": {"template": {"spec": pod}}}
    return {"metadata": {"name": "backup"}, "spec": {"schedule": "0 * * * *", "jobTemplate": template} | spec}


async def _names(cluster: SmallCluster) -> list[str]:
    return sorted(job["metadata"]["name"] for job in await cluster.all(JOBS))


async def _end(cluster: SmallCluster, name: str, end: str = "Complete") -> None:
    now = cluster.clock.text()
    started = (await cluster.get(JOBS, name)).get("status", {}).get("startTime") or now
    herald = "SuccessCriteriaMet" if end == "Complete" else "FailureTarget"
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now} for kind in (herald, end)
    ]
    status = {"startTime": started, "conditions": conditions} | ({"completionTime": now} if end == "Complete" else {})
    await cluster.patch(JOBS, name, {"status": status}, subresource="status")


async def _reasons(cluster: SmallCluster) -> set[str]:
    return {event["reason"] for event in await cluster.events("backup")}


@virtual
async def test_a_job_is_made_each_hour_and_named_after_its_minute(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [cron_job_controller]) as cluster:
        cron_job = await cluster.create(CRON_JOBS, _cron_job(timeZone="Asia/Kathmandu", schedule="45 * * * *"))
        await cluster.pass_time(3599)
        assert await _names(cluster) == []
        await cluster.pass_time(2)
        name = f"backup-{_MINUTES + 60}"
        made = await cluster.get(JOBS, name)
        meta = made["metadata"]
        written = {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T06:45:00+05:45"}
        assert meta["annotations"] == written
        assert meta["labels"] == {"app": "backup"}
        owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "backup", "uid": cron_job["metadata"]["uid"]}
        assert meta["ownerReferences"] == [owner | {"controller": True, "blockOwnerDeletion": True}]
        status = (await cluster.get(CRON_JOBS, "backup"))["status"]
        assert status["lastScheduleTime"] == "2026-01-01T01:00:00Z"
        assert [(one["kind"], one["name"], one["uid"]) for one in status["active"]] == [("Job", name, meta["uid"])]
        await _end(cluster, name)
        await cluster.pass_time(5)
        status = (await cluster.get(CRON_JOBS, "backup"))["status"]
        assert "active" not in status
        assert status["lastSuccessfulTime"] == "2026-01-01T01:00:01Z"
        said = {(event["type"], event["reason"], event["message"]) for event in await cluster.events("backup")}
        ended = ("Normal", "SawCompletedJob", f"Saw completed job: {name}, condition: Complete")
        assert said == {("Normal", "SuccessfulCreate", f"Created job {name}"), ended}


@virtual
async def test_while_one_runs_the_policy_decides_about_the_next(tmp_path: Path) -> None:
    seen = {}
    for policy in ("Allow", "Forbid", "Replace"):
        async with small_cluster(tmp_path, [cron_job_controller]) as cluster:
            await cluster.create(CRON_JOBS, _cron_job(concurrencyPolicy=policy))
            await cluster.pass_time(3610)
            # Events last an hour.
            reasons = await _reasons(cluster)
            await cluster.pass_time(3600)
            seen[policy] = await _names(cluster), reasons | await _reasons(cluster)
    first, second = f"backup-{_MINUTES + 60}", f"backup-{_MINUTES + 120}"
    assert seen["Allow"] == ([first, second], {"SuccessfulCreate"})
    assert seen["Forbid"] == ([first], {"SuccessfulCreate", "JobAlreadyActive"})
    assert seen["Replace"] == ([second], {"SuccessfulCreate", "SuccessfulDelete"})


@virtual
async def test_a_forbidden_start_is_made_up_for_when_the_one_before_ends(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [cron_job_controller]) as cluster:
        await cluster.create(CRON_JOBS, _cron_job(concurrencyPolicy="Forbid"))
        await cluster.pass_time(7300)
        await _end(cluster, f"backup-{_MINUTES + 60}")
        await cluster.pass_time(2)
        assert await _names(cluster) == [f"backup-{_MINUTES + 60}", f"backup-{_MINUTES + 120}"]


@virtual
async def test_a_start_that_is_too_late_is_left_out(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [cron_job_controller]) as cluster:
        policy = _cron_job(concurrencyPolicy="Forbid", startingDeadlineSeconds=60)
        await cluster.create(CRON_JOBS, policy)
        await cluster.pass_time(7300)
        await _end(cluster, f"backup-{_MINUTES + 60}")
        await cluster.pass_time(600)
        assert await _names(cluster) == [f"backup-{_MINUTES + 60}"]
        await cluster.pass_time(3000)
        assert await _names(cluster) == [f"backup-{_MINUTES + 60}", f"backup-{_MINUTES + 180}"]


@virtual
async def test_only_so_many_ended_jobs_are_kept_the_youngest_ones(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [cron_job_controller]) as cluster:
        await cluster.create(CRON_JOBS, _cron_job(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=0))
        for hour in range(1, 6):
            await cluster.pass_time(3600)
            await cluster.pass_time(5)
            await _end(cluster, f"backup-{_MINUTES + hour * 60}", "Failed" if hour == 2 else "Complete")
        await cluster.pass_time(5)
        assert await _names(cluster) == [f"backup-{_MINUTES + hour * 60}" for hour in (4, 5)]
        assert "SuccessfulDelete" in await _reasons(cluster)


@virtual
async def test_a_suspended_one_starts_nothing_and_then_only_the_last(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [cron_job_controller]) as cluster:
        await cluster.create(CRON_JOBS, _cron_job(schedule="* * * * *", suspend=True))
        await cluster.pass_time(3 * 3600 + 30)
        assert await _names(cluster) == []
        await cluster.patch(CRON_JOBS, "backup", {"spec": {"suspend": False}})
        await cluster.pass_time(1)
        assert await _names(cluster) == [f"backup-{_MINUTES + 180}"]
        (event,) = [one for one in await cluster.events("backup") if one["reason"] == "TooManyMissedTimes"]
        words = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
        assert (event["type"], event["message"]) == ("Warning", words)


@virtual
async def test_a_job_that_went_missing_is_not_waited_for(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, [cron_job_controller]) as cluster:
        await cluster.create(CRON_JOBS, _cron_job(concurrencyPolicy="Forbid"))
        await cluster.pass_time(3605)
        await cluster.delete(JOBS, f"backup-{_MINUTES + 60}", Deletion(policy="Background"))
        await cluster.pass_time(5)
        assert "active" not in (await cluster.get(CRON_JOBS, "backup"))["status"]
        assert {"MissingJob"} < await _reasons(cluster)


@virtual
async def test_a_controller_that_died_after_making_a_job_has_a_successor_that_finds_it(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(CRON_JOBS, _cron_job())
        cluster.start(cron_job_controller)
        for _ in range(4):
            name = f"backup-{(int(cluster.clock.seconds()) // 3600 + 1) * 60}"
            while name not in await _names(cluster):
                await cluster.pass_time(0.01 if cluster.clock.seconds() % 3600 > 3599 else 1)
            for task in cluster.tasks:
                task.cancel()
            cluster.tasks.clear()
            await cluster.pass_time(1)
            cluster.start(cron_job_controller)
            await cluster.pass_time(5)
            status = (await cluster.get(CRON_JOBS, "backup"))["status"]
            assert status["active"][-1]["name"] == name
        assert len(await _names(cluster)) == len(status["active"]) == 4
