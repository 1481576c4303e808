"""Every kind of job by one story: it waits, runs where it was admitted, is evicted and as it was, runs again, ends.
Their operators are not here: what they would write, the test writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.fake_admission import FLAVOR, QUEUE, FakeAdmission, condition, install, queue_cluster, reasons, until_field
from build.job_kind_cases import JOB_KIND_CASES, JobKindCase, template, true
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import JOB_SETS, RAY_JOBS, TRAIN_JOBS, VOLCANO_JOBS, WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import JOBS
from shoal.controllers.queued_jobs.job_kinds import (
    BY_KIND,
    CLUSTER_TRAINING_RUNTIMES,
    COMMANDS,
    JOB_KINDS,
    TRAINING_RUNTIMES,
)
from shoal.store.queues.job_parts import dig

TOLD_APART = {"batch/job", "trainer.kubeflow.org/trainjob", "batch.volcano.sh/job", "workload.codeflare.dev/appwrapper"}


def test_every_kind_is_covered_by_a_test() -> None:
    played = {BY_KIND[case.kind.group, case.kind.name].framework for case in JOB_KIND_CASES}
    assert played | TOLD_APART == {row.framework for row in JOB_KINDS}


async def _is_suspended(cluster: SmallCluster, case: JobKindCase) -> bool:
    way = BY_KIND[case.kind.group, case.kind.name].shape.suspend
    return dig(await cluster.get(case.kind, case.name), way) is True


async def _until_runs(cluster: SmallCluster, case: JobKindCase) -> Obj:
    async def is_so() -> bool:
        return not await _is_suspended(cluster, case)

    await cluster.until(is_so)
    return await cluster.get(case.kind, case.name)


@pytest.mark.parametrize("case", JOB_KIND_CASES, ids=lambda case: case.name)
def test_a_job_of_any_kind_is_queued_runs_is_evicted_and_ends(tmp_path: Path, case: JobKindCase) -> None:
    @virtual
    async def run() -> None:
        async with queue_cluster(tmp_path, makes=(), groups={case.group}) as cluster:
            admission = FakeAdmission(cluster)
            before = await cluster.create(case.kind, case.made())
            workload = await admission.only()
            name = workload["metadata"]["name"]
            assert name.startswith(f"{case.name}-{case.name}-")
            assert {one["name"]: one["count"] for one in workload["spec"]["podSets"]} == case.counts
            assert list(case.counts) == [one["name"] for one in workload["spec"]["podSets"]]

            await admission.admit(name)
            runs = await _until_runs(cluster, case)
            for way in case.injected_at:
                assert FLAVOR.items() <= dig(runs, way).items(), way
            await cluster.patch(case.kind, case.name, {"status": case.runs}, "status")
            await admission.until(name, "PodsReady", "True")

            await admission.evict(name)

            async def is_stopped() -> bool:
                return await _is_suspended(cluster, case)

            await cluster.until(is_stopped)
            await cluster.pass_time(30)
            assert condition(await cluster.get(WORKLOADS, name), "QuotaReserved")["status"] == "True"
            await cluster.patch(case.kind, case.name, {"status": {**_none(case.runs), **case.idle}}, "status")
            await admission.until(name, "QuotaReserved", "False")
            assert (await cluster.get(case.kind, case.name))["spec"] == before["spec"]

            await admission.admit(name)
            await _until_runs(cluster, case)
            if case.ended is None:
                return
            await cluster.patch(case.kind, case.name, {"status": case.ended}, "status")
            finished = await admission.until(name, "Finished", "True")
            assert finished["reason"] == ("Succeeded" if case.is_success else "Failed")
            assert finished["message"] == "said so"

    run()


def _none(status: Obj) -> Obj:
    return dict.fromkeys(status)


@pytest.mark.parametrize("case", JOB_KIND_CASES, ids=lambda case: case.name)
def test_a_job_that_runs_already_is_stopped_and_queued(tmp_path: Path, case: JobKindCase) -> None:
    @virtual
    async def run() -> None:
        async with queue_cluster(tmp_path, makes=(), groups={case.group}) as cluster:
            await cluster.create(case.kind, case.made(suspended=False))
            await FakeAdmission(cluster).only()
            assert await _is_suspended(cluster, case)
            assert await reasons(cluster, case.name) == ["Stopped", "CreatedWorkload"]

    run()


# -- TrainJob -------------------------------------------------------------------------------------------------------


def _runtime() -> Obj:
    node = template()
    node["spec"]["containers"][0]["name"] = "node"
    label = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    inner: Obj = {"name": "node", "template": {"metadata": {"labels": label}, "spec": {"template": node}}}
    data: Obj = {"name": "dataset-initializer", "template": {"spec": {"template": template()}}}
    return {
        "metadata": {"name": "torch"},
        "spec": {"mlPolicy": {"numNodes": 2}, "template": {"spec": {"replicatedJobs": [data, inner]}}},
    }


def _train_job(**trainer: Any) -> Obj:
    spec = {"runtimeRef": {"name": "torch"}, "suspend": True, "trainer": trainer}
    return {"metadata": {"name": "tune", "labels": dict(QUEUE)}, "spec": spec}


@virtual
async def test_a_train_job_has_the_pods_of_its_runtime_and_is_patched_while_it_is_suspended(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path, makes=(), groups={"trainer.kubeflow.org"}) as cluster:
        admission = FakeAdmission(cluster)
        before = await cluster.create(TRAIN_JOBS, _train_job(numNodes=4, resourcesPerNode={"limits": {"gpu": "8"}}))
        await cluster.pass_time(2)
        assert "ErrWorkloadCompose" in await reasons(cluster, "tune")
        await cluster.create(CLUSTER_TRAINING_RUNTIMES, _runtime())
        workload = await admission.only()
        sets = {one["name"]: one for one in workload["spec"]["podSets"]}
        assert {name: one["count"] for name, one in sets.items()} == {"dataset-initializer": 1, "node": 4}
        assert sets["node"]["template"]["spec"]["containers"][0]["resources"] == {"limits": {"gpu": "8"}}
        name = workload["metadata"]["name"]
        await admission.admit(name)
        runs = await until_field(cluster, TRAIN_JOBS, "tune", ("spec", "suspend"), False)
        (patch,) = runs["spec"]["runtimePatches"]
        jobs = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
        assert [one["name"] for one in jobs] == ["dataset-initializer", "node"]
        assert jobs[1]["template"]["spec"]["template"]["spec"]["nodeSelector"] == FLAVOR
        active = [{"name": "node", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}]
        await cluster.patch(TRAIN_JOBS, "tune", {"status": {"jobsStatus": active}}, "status")
        await admission.evict(name)
        stopped = await until_field(cluster, TRAIN_JOBS, "tune", ("spec", "suspend"), True)
        await cluster.pass_time(10)
        # Its webhook takes no change of patches while pods run.
        assert stopped["spec"]["runtimePatches"]
        idle = [{**active[0], "active": 0, "ready": 0}]
        await cluster.patch(TRAIN_JOBS, "tune", {"status": {"jobsStatus": idle}}, "status")
        await admission.until(name, "QuotaReserved", "False")
        assert (await cluster.get(TRAIN_JOBS, "tune"))["spec"] == before["spec"]
        await cluster.patch(TRAIN_JOBS, "tune", {"status": {"conditions": [true("Complete")]}}, "status")
        assert (await admission.until(name, "Finished", "True"))["reason"] == "Succeeded"


@virtual
async def test_a_runtime_of_the_namespace_is_found_there(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path, makes=(), groups={"trainer.kubeflow.org"}) as cluster:
        await cluster.create(TRAINING_RUNTIMES, _runtime())
        made = _train_job()
        made["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
        await cluster.create(TRAIN_JOBS, made)
        counts = {one["name"]: one["count"] for one in (await FakeAdmission(cluster).only())["spec"]["podSets"]}
        assert counts == {"dataset-initializer": 1, "node": 2}


# -- Volcano --------------------------------------------------------------------------------------------------------


@virtual
async def test_a_volcano_job_is_aborted_and_resumed_by_commands(tmp_path: Path) -> None:
    groups = {"batch.volcano.sh", "bus.volcano.sh"}
    async with queue_cluster(tmp_path, makes=(), groups=groups) as cluster:
        admission = FakeAdmission(cluster)
        tasks = [{"name": "ps", "replicas": 1, "template": template()}, {"replicas": 2, "template": template()}]
        metadata = {"name": "vj", "labels": dict(QUEUE)}
        await cluster.create(VOLCANO_JOBS, {"metadata": metadata, "spec": {"minAvailable": 3, "tasks": tasks}})

        async def told(action: str, phase: str) -> None:
            """Volcano follows a command and takes it away."""

            async def is_there() -> bool:
                return [one["action"] for one in await cluster.all(COMMANDS)] == [action]

            await cluster.until(is_there)
            (command,) = await cluster.all(COMMANDS)
            assert command["target"]["name"] == "vj"
            await cluster.delete(COMMANDS, command["metadata"]["name"])
            await cluster.patch(VOLCANO_JOBS, "vj", {"status": {"state": {"phase": phase}}}, "status")

        await told("AbortJob", "Aborted")
        workload = await admission.only()
        name = workload["metadata"]["name"]
        assert {one["name"]: one["count"] for one in workload["spec"]["podSets"]} == {"ps": 1, "default1": 2}
        await admission.admit(name)
        await told("ResumeJob", "Running")
        await admission.evict(name)
        await told("AbortJob", "Aborting")
        await cluster.pass_time(10)
        assert condition(await cluster.get(WORKLOADS, name), "QuotaReserved")["status"] == "True"
        await cluster.patch(VOLCANO_JOBS, "vj", {"status": {"state": {"phase": "Aborted"}}}, "status")
        await admission.until(name, "QuotaReserved", "False")
        await admission.admit(name)
        await told("ResumeJob", "Completed")
        assert (await admission.until(name, "Finished", "True"))["reason"] == "Succeeded"


# -- children, prebuilt workloads, kinds that come later --------------------------------------------------------------


def _child(owner: Obj, kind: str, version: str, **more: Any) -> Obj:
    meta = owner["metadata"]
    reference = {"apiVersion": version, "kind": kind, "name": meta["name"], "uid": meta["uid"], "controller": True}
    metadata = {"name": "child", "ownerReferences": [reference], "labels": dict(QUEUE)}
    return {"metadata": metadata, "spec": {"template": template(), **more}}


@virtual
async def test_a_job_of_a_job_set_has_no_workload_and_runs_with_the_job_set(tmp_path: Path) -> None:
    case = next(one for one in JOB_KIND_CASES if one.kind == JOB_SETS)
    async with queue_cluster(tmp_path, groups={case.group}) as cluster:
        admission = FakeAdmission(cluster)
        parent = await cluster.create(JOB_SETS, case.made())
        name = (await admission.only())["metadata"]["name"]
        await cluster.create(JOBS, _child(parent, "JobSet", "jobset.x-k8s.io/v1alpha2"))
        await until_field(cluster, JOBS, "child", ("spec", "suspend"), True)
        await cluster.pass_time(5)
        assert (await admission.only())["metadata"]["name"] == name
        assert "Suspended" in await reasons(cluster, "child")
        await admission.admit(name)
        await _until_runs(cluster, case)
        await cluster.patch(JOBS, "child", {"spec": {"suspend": False}})
        await cluster.pass_time(10)
        assert (await cluster.get(JOBS, "child"))["spec"]["suspend"] is False


@virtual
async def test_a_ray_job_on_an_existing_cluster_stays_unchanged(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path, makes=(), groups={"ray.io"}) as cluster:
        metadata = {"name": "r", "labels": dict(QUEUE)}
        spec = {"entrypoint": "x", "clusterSelector": {"ray.io/cluster": "c"}}
        await cluster.create(RAY_JOBS, {"metadata": metadata, "spec": spec})
        await cluster.pass_time(5)
        assert await cluster.all(WORKLOADS) == []


@virtual
async def test_a_prebuilt_workload_is_adopted_and_one_that_does_not_match_is_finished(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path, makes=()) as cluster:
        admission = FakeAdmission(cluster)
        labels = QUEUE | {"kueue.x-k8s.io/prebuilt-workload-name": "mine"}
        for name, count in (("fits", 2), ("differs", 3)):
            named = labels | {"kueue.x-k8s.io/prebuilt-workload-name": name}
            spec = {"suspend": True, "parallelism": 2, "template": template()}
            await cluster.create(JOBS, {"metadata": {"name": name, "labels": named}, "spec": spec})
            await cluster.pass_time(2)
            pod_set = {"name": "main", "count": count, "template": template()}
            await cluster.create(
                WORKLOADS, {"metadata": {"name": name}, "spec": {"podSets": [pod_set], "queueName": "team"}}
            )

        async def is_taken() -> bool:
            found = await cluster.get(WORKLOADS, "fits")
            return bool(found["metadata"].get("ownerReferences"))

        await cluster.until(is_taken)
        finished = await admission.until("differs", "Finished", "True")
        assert (finished["reason"], finished["message"]) == (
            "OutOfSync",
            "The prebuilt workload is out of sync with its user job",
        )
        before = await cluster.get(JOBS, "fits")
        await admission.admit("fits")
        await until_field(cluster, JOBS, "fits", ("spec", "suspend"), False)
        await admission.evict("fits")
        await admission.until("fits", "QuotaReserved", "False")
        assert (await cluster.get(JOBS, "fits"))["spec"] == before["spec"]
        assert len(await cluster.all(WORKLOADS)) == 2


@virtual
async def test_a_kind_that_is_installed_later_is_queued_from_then_on(tmp_path: Path) -> None:
    case = next(one for one in JOB_KIND_CASES if one.kind == JOB_SETS)
    async with queue_cluster(tmp_path, makes=()) as cluster:
        await cluster.pass_time(20)
        await install(cluster, {case.group})
        job = await cluster.create(case.kind, case.made())
        workload = await FakeAdmission(cluster).only()
        assert [one["uid"] for one in workload["metadata"]["ownerReferences"]] == [job["metadata"]["uid"]]
