"""Elastic jobs change their size while they run: one Workload replaces another, and the job runs on."""

from __future__ import annotations

from pathlib import Path

from build.fake_admission import QUEUE, FakeAdmission, condition, queue_cluster, reasons, until_field
from build.job_hands import Hand, job
from build.job_kind_cases import JOB_KIND_CASES
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import RAY_CLUSTERS, WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import JOBS
from shoal.client.kind import PODS as _PODS

ELASTIC = "kueue.x-k8s.io/elastic-job"
SLICE, REPLACES = "kueue.x-k8s.io/workload-slice-name", "kueue.x-k8s.io/workload-slice-replacement-for"


def elastic(parallelism: int = 2) -> Obj:
    made = job("train", suspend=True, parallelism=parallelism, completions=20)
    made["metadata"] |= {"labels": QUEUE, "annotations": {ELASTIC: "true"}}
    return made


async def _begun(cluster: SmallCluster, parallelism: int = 2) -> Obj:
    admission = FakeAdmission(cluster)
    await cluster.create(JOBS, elastic(parallelism))
    name = (await admission.only())["metadata"]["name"]
    await admission.admit(name)
    await until_field(cluster, JOBS, "train", ("spec", "suspend"), False)
    await Hand(cluster).until_live(parallelism)
    return await cluster.get(WORKLOADS, name)


async def _resize(cluster: SmallCluster, parallelism: int) -> None:
    await cluster.patch(JOBS, "train", {"spec": {"parallelism": parallelism}})
    await cluster.pass_time(5)


async def _sizes(cluster: SmallCluster) -> dict[str, tuple[int, str]]:
    """Of Workloads: their count, and why they finished."""
    return {
        one["metadata"]["name"]: (one["spec"]["podSets"][0]["count"], condition(one, "Finished").get("reason", ""))
        for one in await cluster.all(WORKLOADS)
    }


async def _runs(cluster: SmallCluster) -> bool:
    return (await cluster.get(JOBS, "train"))["spec"]["suspend"] is False


@virtual
async def test_pods_of_an_elastic_job_are_created_with_a_gate_and_name_their_workload(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        first = await _begun(cluster)
        name = first["metadata"]["name"]
        assert first["metadata"]["annotations"] == {ELASTIC: "true", SLICE: name}
        for pod in await Hand(cluster).live():
            assert {"name": ELASTIC} in pod["spec"]["schedulingGates"]
            assert pod["metadata"]["annotations"][SLICE] == name


@virtual
async def test_a_job_that_shrinks_has_its_workload_made_smaller(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        first = await _begun(cluster, 4)
        await _resize(cluster, 2)
        after = await FakeAdmission(cluster).only()
        assert (after["metadata"]["uid"], after["spec"]["podSets"][0]["count"]) == (first["metadata"]["uid"], 2)
        assert condition(after, "Admitted")["status"] == "True"
        assert await _runs(cluster)


@virtual
async def test_a_job_that_grows_goes_on_until_its_next_workload_is_admitted(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission = FakeAdmission(cluster)
        first = await _begun(cluster)
        name = first["metadata"]["name"]
        await _resize(cluster, 4)
        sizes = await _sizes(cluster)
        (second,) = sizes.keys() - {name}
        assert sizes == {name: (2, ""), second: (4, "")}
        made = await cluster.get(WORKLOADS, second)
        notes = made["metadata"]["annotations"]
        assert (notes[ELASTIC], notes[SLICE], notes[REPLACES]) == ("true", name, f"default/{name}")
        await cluster.pass_time(60)
        assert await _runs(cluster)
        assert await _sizes(cluster) == sizes
        await admission.admit(second)
        await cluster.pass_time(5)
        assert await _sizes(cluster) == {name: (2, "WorkloadSliceReplaced"), second: (4, "")}
        old = await cluster.get(WORKLOADS, name)
        job_uid = (await cluster.get(JOBS, "train"))["metadata"]["uid"]
        assert condition(old, "Finished")["message"] == (
            f"Replaced to accommodate a workload (UID: {made['metadata']['uid']}, JobUID: {job_uid}) "
            "due to workload slice aggregation"
        )
        assert not old["metadata"].get("finalizers")
        assert "WorkloadSliceReplaced" in await reasons(cluster, name)
        assert "Stopped" not in await reasons(cluster, "train")
        await _resize(cluster, 6)
        (third,) = (await _sizes(cluster)).keys() - {name, second}
        notes = (await cluster.get(WORKLOADS, third))["metadata"]["annotations"]
        assert (notes[SLICE], notes[REPLACES]) == (name, f"default/{second}")


@virtual
async def test_a_job_that_shrinks_before_its_growth_is_admitted_deletes_the_larger_workload(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        first = await _begun(cluster, 3)
        name = first["metadata"]["name"]
        await _resize(cluster, 6)
        await _resize(cluster, 8)
        assert sorted(await _sizes(cluster)) != [name]
        assert sorted(count for count, _ in (await _sizes(cluster)).values()) == [3, 8]
        await _resize(cluster, 3)
        assert await _sizes(cluster) == {name: (3, "")}
        await _resize(cluster, 5)
        await _resize(cluster, 1)
        assert await _sizes(cluster) == {name: (1, "")}
        assert await _runs(cluster)


@virtual
async def test_a_job_evicted_while_its_growth_is_pending_is_requeued_with_its_new_size(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission, hand = FakeAdmission(cluster), Hand(cluster)
        name = (await _begun(cluster))["metadata"]["name"]
        await _resize(cluster, 4)
        (second,) = (await _sizes(cluster)).keys() - {name}
        await admission.evict(name)
        await until_field(cluster, JOBS, "train", ("spec", "suspend"), True)
        await cluster.pass_time(30)
        assert (await _sizes(cluster)) == {name: (2, "OutOfSync"), second: (4, "")}
        spec = (await cluster.get(JOBS, "train"))["spec"]
        assert (spec["suspend"], spec["parallelism"]) == (True, 4)
        assert "schedulingGates" not in spec["template"]["spec"]
        await admission.admit(second)
        await until_field(cluster, JOBS, "train", ("spec", "suspend"), False)
        await hand.until_live(4)


@virtual
async def test_all_workloads_of_a_job_that_ends_are_finished(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        await _begun(cluster)
        await _resize(cluster, 4)
        await cluster.patch(JOBS, "train", {"spec": {"activeDeadlineSeconds": 1}})
        await cluster.pass_time(60)
        found = await cluster.all(WORKLOADS)
        assert [condition(one, "Finished").get("reason") for one in found] == ["Failed", "Failed"]
        assert [one["metadata"].get("finalizers") for one in found] == [None, None]


@virtual
async def test_pods_ready_counts_only_admitted_pods(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission, hand = FakeAdmission(cluster), Hand(cluster)
        name = (await _begun(cluster))["metadata"]["name"]
        for pod in await hand.live():
            body = {"spec": {"schedulingGates": None}}
            await cluster.patch(_PODS, pod["metadata"]["name"], body)
            await hand.run(pod)
        await admission.until(name, "PodsReady", "True")
        await _resize(cluster, 4)
        await cluster.pass_time(60)
        assert condition(await cluster.get(WORKLOADS, name), "PodsReady")["status"] == "True"


@virtual
async def test_a_ray_cluster_grows_by_workers(tmp_path: Path) -> None:
    case = next(one for one in JOB_KIND_CASES if one.kind == RAY_CLUSTERS)
    async with queue_cluster(tmp_path, groups=(RAY_CLUSTERS.group,)) as cluster:
        admission, made = FakeAdmission(cluster), case.made()
        made["metadata"]["annotations"] = {ELASTIC: "true"}
        created = await cluster.create(RAY_CLUSTERS, made)
        first = (await admission.only())["metadata"]["name"]
        await admission.admit(first)
        name = created["metadata"]["name"]
        await until_field(cluster, RAY_CLUSTERS, name, ("spec", "suspend"), False)
        groups = (await cluster.get(RAY_CLUSTERS, name))["spec"]["workerGroupSpecs"]
        assert {"name": ELASTIC} in groups[0]["template"]["spec"]["schedulingGates"]
        groups[0]["replicas"] += 1
        await cluster.patch(RAY_CLUSTERS, name, {"spec": {"workerGroupSpecs": groups}})
        await cluster.pass_time(5)
        (second,) = (await _sizes(cluster)).keys() - {first}
        asked = (await cluster.get(WORKLOADS, second))["spec"]["podSets"]
        assert [(one["name"], one["count"]) for one in asked] == [("head", 1), ("small", 6)]
        await admission.admit(second)
        await admission.until(first, "Finished", "True")
        assert (await cluster.get(RAY_CLUSTERS, name))["spec"]["suspend"] is False


@virtual
async def test_a_larger_workload_evicted_before_the_job_grew_releases_its_quota_and_the_job_runs_on(
    tmp_path: Path,
) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission = FakeAdmission(cluster)
        name = (await _begun(cluster))["metadata"]["name"]
        await _resize(cluster, 4)
        (second,) = (await _sizes(cluster)).keys() - {name}
        await admission.reserve(second)
        await cluster.pass_time(5)
        await admission.evict(second)
        await admission.until(second, "QuotaReserved", "False")
        assert "admission" not in (await cluster.get(WORKLOADS, second))["status"]
        assert await _sizes(cluster) == {name: (2, ""), second: (4, "")}
        assert await _runs(cluster)


@virtual
async def test_a_larger_workload_that_is_deleted_is_released_and_created_again(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        name = (await _begun(cluster))["metadata"]["name"]
        await _resize(cluster, 4)
        (second,) = (await _sizes(cluster)).keys() - {name}
        uid = (await cluster.get(WORKLOADS, second))["metadata"]["uid"]
        await cluster.delete(WORKLOADS, second)
        await cluster.pass_time(5)
        anew = await cluster.get(WORKLOADS, second)
        assert "deletionTimestamp" not in anew["metadata"]
        assert anew["metadata"]["uid"] != uid
        assert await _runs(cluster)


@virtual
async def test_a_job_that_grew_gets_its_original_templates_when_it_is_stopped(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission = FakeAdmission(cluster)
        name = (await _begun(cluster))["metadata"]["name"]
        await _resize(cluster, 4)
        (second,) = (await _sizes(cluster)).keys() - {name}
        await admission.admit(second)
        await cluster.pass_time(5)
        await admission.evict(second)
        await admission.until(second, "QuotaReserved", "False")
        spec = (await cluster.get(JOBS, "train"))["spec"]
        assert (spec["suspend"], spec["parallelism"]) == (True, 4)
        assert not spec["template"]["spec"].keys() & {"nodeSelector", "tolerations", "schedulingGates"}


@virtual
async def test_a_job_started_without_the_annotation_cannot_grow_over_its_quota_by_adding_it(tmp_path: Path) -> None:
    async with queue_cluster(tmp_path) as cluster:
        admission = FakeAdmission(cluster)
        made = elastic(2)
        del made["metadata"]["annotations"]
        await cluster.create(JOBS, made)
        await admission.admit((await admission.only())["metadata"]["name"])
        await Hand(cluster).until_live(2)
        await cluster.patch(JOBS, "train", {"metadata": {"annotations": {ELASTIC: "true"}}})
        await _resize(cluster, 4)
        await until_field(cluster, JOBS, "train", ("spec", "suspend"), True)


@virtual
async def test_a_ray_cluster_that_gets_another_group_of_workers_is_stopped(tmp_path: Path) -> None:
    """The new template has no gate: its pods would run without quota."""
    case = next(one for one in JOB_KIND_CASES if one.kind == RAY_CLUSTERS)
    async with queue_cluster(tmp_path, groups=(RAY_CLUSTERS.group,)) as cluster:
        admission, made = FakeAdmission(cluster), case.made()
        made["metadata"]["annotations"] = {ELASTIC: "true"}
        name = (await cluster.create(RAY_CLUSTERS, made))["metadata"]["name"]
        await admission.admit((await admission.only())["metadata"]["name"])
        spec = (await until_field(cluster, RAY_CLUSTERS, name, ("spec", "suspend"), False))["spec"]
        more = {**made["spec"]["workerGroupSpecs"][0], "groupName": "more"}
        groups = [*spec["workerGroupSpecs"], more]
        await cluster.patch(RAY_CLUSTERS, name, {"spec": {"workerGroupSpecs": groups}})
        await until_field(cluster, RAY_CLUSTERS, name, ("spec", "suspend"), True)
