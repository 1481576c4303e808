"""A job that cannot be queued as it is written has a condition, if its controller keeps conditions of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.fake_admission import QUEUE, FakeAdmission, queue_cluster, reasons, until_field
from build.job_hands import job
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import JOB_SETS, WORKLOAD_PRIORITY_CLASSES
from shoal.client.item import Obj
from shoal.client.kind import JOBS, Kind
from shoal.controllers.queued_jobs.job_kinds import BY_KIND, JOB_KINDS
from shoal.controllers.queued_work.quota_condition import QUOTA_CONDITION, updated_conditions

_TEMPLATE: Obj = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
_JOB_SET: Obj = {
    "metadata": {"name": "train"},
    "spec": {"suspend": True, "replicatedJobs": [{"name": "w", "template": {"spec": {"template": _TEMPLATE}}}]},
}
_KINDS = [(JOBS, job("train", suspend=True), ()), (JOB_SETS, _JOB_SET, (JOB_SETS.group,))]


def _labelled(obj: Obj, **more: str) -> Obj:
    labels = QUEUE | {f"kueue.x-k8s.io/{key.replace('_', '-')}": value for key, value in more.items()}
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


async def _mark(cluster: SmallCluster, kind: Kind) -> Obj:
    status = (await cluster.get(kind, "train")).get("status") or {}
    found: Obj = next((one for one in status.get("conditions") or () if one["type"] == QUOTA_CONDITION), {})
    return found


@pytest.mark.parametrize(("kind", "made", "groups"), _KINDS, ids=lambda case: getattr(case, "name", ""))
def test_a_missing_class_is_a_condition_of_the_job_until_it_exists(
    tmp_path: Path, kind: Kind, made: Obj, groups: tuple[str, ...]
) -> None:
    @virtual
    async def run() -> None:
        async with queue_cluster(tmp_path, groups=groups) as cluster:
            await cluster.create(kind, _labelled(made, priority_class="late"))
            await cluster.pass_time(5)
            found = await _mark(cluster, kind)
            assert (found["status"], found["reason"]) == ("False", "WorkloadPriorityClassNotFound")
            assert found["message"] == 'workloadpriorityclasses.kueue.x-k8s.io "late" not found'
            assert found["lastTransitionTime"]
            assert "WorkloadPriorityClassNotFound" in await reasons(cluster, "train")
            version = (await cluster.get(kind, "train"))["metadata"]["resourceVersion"]
            await cluster.pass_time(100)
            assert (await cluster.get(kind, "train"))["metadata"]["resourceVersion"] == version
            await cluster.create(WORKLOAD_PRIORITY_CLASSES, {"metadata": {"name": "late"}, "value": 3})
            await cluster.pass_time(40)
            assert await _mark(cluster, kind) == {}

    run()


@virtual
async def test_a_missing_queue_is_a_condition_of_the_job_until_it_is_admitted(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission = FakeAdmission(cluster)
        await cluster.create(JOBS, _labelled(job("train", suspend=True)))
        name = (await admission.only())["metadata"]["name"]
        await admission.refuse(name, "Misconfigured", "LocalQueue team doesn't exist")
        await cluster.pass_time(2)
        found = await _mark(cluster, JOBS)
        assert (found["reason"], found["message"]) == ("Misconfigured", "LocalQueue team doesn't exist")
        await admission.refuse(name, "WaitingForQuota", "all are busy")
        await cluster.pass_time(2)
        assert await _mark(cluster, JOBS) == {}
        await admission.refuse(name, "Misconfigured", "LocalQueue team doesn't exist")
        await cluster.pass_time(2)
        await admission.admit(name)
        await until_field(cluster, JOBS, "train", ("spec", "suspend"), False)
        assert await _mark(cluster, JOBS) == {}


@virtual
async def test_an_unreadable_job_is_stopped_and_gets_the_condition(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        broken = _labelled(job("train", suspend=False))
        broken["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "some"}
        await cluster.create(JOBS, broken)
        await until_field(cluster, JOBS, "train", ("spec", "suspend"), True)
        await cluster.pass_time(2)
        assert (await _mark(cluster, JOBS))["reason"] == "ErrWorkloadCompose"


def test_conditions_of_other_controllers_stay_unchanged() -> None:
    other = {"type": "Suspended", "status": "True"}
    now = "2026-11-22T10:00:00Z"
    conditions = updated_conditions([other], ("Misconfigured", "no"), now)
    assert conditions is not None
    assert conditions[0] is other
    assert updated_conditions(conditions, ("Misconfigured", "no"), "later") is None
    changed = updated_conditions(conditions, ("Misconfigured", "never"), "later")
    assert changed is not None
    assert (changed[1]["message"], changed[1]["lastTransitionTime"]) == ("never", now)
    assert updated_conditions(conditions, None, "later") == [other]
    assert updated_conditions([other], None, "later") is None


def test_only_kinds_whose_controllers_keep_other_conditions_get_the_condition() -> None:
    assert [row.kind for row in JOB_KINDS if row.keeps_other_conditions] == [JOBS, JOB_SETS]
    assert not BY_KIND["workload.codeflare.dev", "AppWrapper"].keeps_other_conditions
