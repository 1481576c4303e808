"""What admission does beside its cycles: recent usage of LocalQueues across restarts, retries of checks, failed nodes,
gates of pods of other schedulers, and Events on objects that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from build.live_schedulers import add_node, pod
from build.queue_admission import (
    POD_SET_LABEL,
    WORKLOAD_ANNOTATION,
    add_flavor,
    add_queue,
    finish,
    is_so,
    queued_cluster,
    said,
    start_admission,
    stop,
    submit,
    until_so,
)
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.api.kueue import Configuration
from shoal.api.kueue.configuration import AdmissionFairSharing
from shoal.client.ecosystem_kinds import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    KUEUE_TOPOLOGIES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    WORKLOADS,
)
from shoal.client.item import Item
from shoal.client.kind import EVENTS, LEASES, NAMESPACES, NODES, PODS, Kind
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import InvalidError
from shoal.client.write_through import WriteThroughApi

GATE = "kueue.x-k8s.io/topology"
_HOST = "kubernetes.io/hostname"


async def used(cluster: SmallCluster, name: str) -> dict[str, Any]:
    status = (await cluster.get(LOCAL_QUEUES, name)).get("status", {})
    found: dict[str, Any] = (status.get("fairSharing") or {}).get("admissionFairSharingStatus") or {}
    return found


async def reasons(cluster: SmallCluster, kind: str) -> set[str]:
    found = (await cluster.api.list(EVENTS, "")).items
    return {obj["reason"] for item in found if (obj := item.obj())["involvedObject"]["kind"] == kind}


def by_usage() -> Configuration:
    return Configuration(
        admission_fair_sharing=AdmissionFairSharing(usage_half_life_time="10m", usage_sampling_interval="1m")
    )


@virtual
async def test_the_recent_usage_of_a_local_queue_survives_a_restart(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        first = start_admission(cluster, by_usage())
        await add_flavor(cluster)
        scope = {"admissionMode": "UsageBasedAdmissionFairSharing"}
        await add_queue(cluster, "team", admissionScope=scope)
        await submit(cluster, "job", queue="team", cpu="2")
        await until_so(cluster, "job")
        await cluster.pass_time(600)
        told = await used(cluster, "team")
        # Half of what has run for a half-life, and what an admission counts at once.
        assert 900 <= int(told["consumedResources"]["cpu"].removesuffix("m")) <= 1200
        before = first.admission.kueue.usage.of("default/team", cluster.clock.seconds())
        await first.kill()
        second = start_admission(cluster, by_usage())
        await cluster.pass_time(5)
        after = second.admission.kueue.usage.of("default/team", cluster.clock.seconds())
        assert abs(after - before) < 0.1 < before


@virtual
async def test_durations_of_finished_workloads_survive_a_restart(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        first = start_admission(cluster)
        await add_flavor(cluster)
        await add_queue(cluster)
        await submit(cluster, "job", cpu="2")
        await until_so(cluster, "job")
        await cluster.pass_time(600)
        await finish(cluster, "job")
        await cluster.pass_time(2)
        await first.kill()
        second = start_admission(cluster)
        await submit(cluster, "like", cpu="2")
        await until_so(cluster, "like")
        kueue = second.admission.kueue
        known = kueue.durations.expected_s(kueue.queues.held["default/like"].facts)
        assert known is not None
        assert 595 <= known <= 605


@virtual
async def test_a_check_with_a_retry_delay_delays_the_next_attempt(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_flavor(cluster)
        check = await cluster.create(ADMISSION_CHECKS, {"metadata": {"name": "c"}, "spec": {"controllerName": "x"}})
        now = cluster.clock.text()
        active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": now}
        await cluster.patch(ADMISSION_CHECKS, check["metadata"]["name"], {"status": {"conditions": [active]}}, "status")
        await add_queue(cluster, admissionChecksStrategy={"admissionChecks": [{"name": "c"}]})
        await submit(cluster, "job")
        await until_so(cluster, "job", "QuotaReserved")
        await cluster.pass_time(2)
        retry = {"name": "c", "state": "Retry", "message": "later", "requeueAfterSeconds": 90}
        retry["lastTransitionTime"] = cluster.clock.text()
        await cluster.patch(WORKLOADS, "job", {"status": {"admissionChecks": [retry]}}, "status")
        await until_so(cluster, "job", "Evicted")
        state = (await cluster.get(WORKLOADS, "job"))["status"]
        assert state["requeueState"]["requeueAt"] > cluster.clock.text()
        assert "requeueAfterSeconds" not in state["admissionChecks"][0]
        await stop(cluster, "job", "AdmissionCheck", requeued=False)
        await cluster.pass_time(60)
        assert not await is_so(cluster, "job", "QuotaReserved")
        await cluster.pass_time(40)
        assert await is_so(cluster, "job", "QuotaReserved")
        assert (await said(cluster, "job", "Requeued"))[1] == "BackoffFinished"


async def _racked(cluster: SmallCluster) -> None:
    await cluster.create(KUEUE_TOPOLOGIES, {"metadata": {"name": "hosts"}, "spec": {"levels": [{"nodeLabel": _HOST}]}})
    spec = {"nodeLabels": {"pool": "x"}, "topologyName": "hosts"}
    await cluster.create(RESOURCE_FLAVORS, {"metadata": {"name": "tas"}, "spec": spec})
    for name in ("n1", "n2", "n3"):
        await add_node(cluster, name, cpu="2", labels={"pool": "x"})
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        ready["lastTransitionTime"] = ready["lastHeartbeatTime"] = cluster.clock.text()
        await cluster.patch(NODES, name, {"status": {"conditions": [ready]}}, "status")
    await add_queue(cluster, cpu="100", flavors=("tas",))


def _spread(name: str, scheduler: str) -> dict[str, Any]:
    containers = [{"name": "main", "image": "pause", "resources": {"requests": {"cpu": "2"}}}]
    template = {"spec": {"schedulerName": scheduler, "containers": containers, "restartPolicy": "Never"}}
    sets = [{"name": "main", "count": 2, "template": template, "topologyRequest": {"unconstrained": True}}]
    return {"metadata": {"name": name}, "spec": {"queueName": "cq", "podSets": sets}}


async def _domains(cluster: SmallCluster, name: str) -> list[str]:
    status = (await cluster.get(WORKLOADS, name))["status"]
    slices = status["admission"]["podSetAssignments"][0]["topologyAssignment"]["slices"]
    found = []
    for one in slices:
        values = one["valuesPerLevel"][-1]
        part = values.get("individual") or {}
        roots = part.get("roots") or []
        found += [f"{part.get('prefix', '')}{root}{part.get('suffix', '')}" for root in roots]
        found += [values["universal"]] if values.get("universal") else []
    return sorted(found)


@virtual
async def test_pods_of_other_schedulers_get_one_domain_each_when_their_gate_is_removed(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await _racked(cluster)
        await cluster.create(WORKLOADS, _spread("wide", "other"))
        await until_so(cluster, "wide")
        for index in range(3):
            body = pod(f"p{index}", schedulerName="other", schedulingGates=[{"name": GATE}])
            body["metadata"]["labels"] = {POD_SET_LABEL: "main"}
            body["metadata"]["annotations"] = {WORKLOAD_ANNOTATION: "wide"}
            await cluster.create(PODS, body)
        await cluster.pass_time(3)
        specs = {name: (await cluster.get(PODS, name))["spec"] for name in ("p0", "p1", "p2")}
        chosen = [spec["nodeSelector"][_HOST] for spec in specs.values() if not spec.get("schedulingGates")]
        assert sorted(chosen) == await _domains(cluster, "wide")
        # The third is one more than was admitted; it comes in where another goes.
        assert specs["p2"]["schedulingGates"] == [{"name": GATE}]
        await cluster.delete(PODS, "p0", Deletion(grace_s=0))
        await cluster.pass_time(3)
        assert (await cluster.get(PODS, "p2"))["spec"]["nodeSelector"] == specs["p0"]["nodeSelector"]


async def _gated(cluster: SmallCluster, name: str, **spec: Any) -> None:
    body = pod(name, schedulerName="other", schedulingGates=[{"name": GATE}], **spec)
    body["metadata"]["labels"] = {POD_SET_LABEL: "main"}
    body["metadata"]["annotations"] = {WORKLOAD_ANNOTATION: "wide"}
    await cluster.create(PODS, body)


class RefusesOne(WriteThroughApi):
    """A policy, say, that lets nobody change this pod."""

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        if (kind, name) == (PODS, "p0"):
            raise InvalidError("no", reason="Invalid")
        return await super().patch(kind, namespace, name, patch, subresource)


@virtual
async def test_a_pod_whose_gate_cannot_be_removed_delays_no_other_pod(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster, api=RefusesOne(cluster.api, cluster.informers))
        await _racked(cluster)
        await cluster.create(WORKLOADS, _spread("wide", "other"))
        await until_so(cluster, "wide")
        for name in ("p0", "p1"):
            await _gated(cluster, name)
        await cluster.pass_time(3)
        assert (await cluster.get(PODS, "p0"))["spec"]["schedulingGates"] == [{"name": GATE}]
        opened = (await cluster.get(PODS, "p1"))["spec"]
        assert not opened.get("schedulingGates")
        assert opened["nodeSelector"][_HOST] == (await _domains(cluster, "wide"))[1]


@virtual
async def test_a_pod_that_selects_a_domain_gets_that_one_or_none(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await _racked(cluster)
        await cluster.create(WORKLOADS, _spread("wide", "other"))
        await until_so(cluster, "wide")
        first, second = await _domains(cluster, "wide")
        await _gated(cluster, "p0", nodeSelector={_HOST: "nowhere"})
        await _gated(cluster, "p1", nodeSelector={_HOST: second})
        await _gated(cluster, "p2")
        await cluster.pass_time(3)
        specs = [(await cluster.get(PODS, name))["spec"] for name in ("p0", "p1", "p2")]
        assert [bool(spec.get("schedulingGates")) for spec in specs] == [True, False, False]
        assert [spec["nodeSelector"][_HOST] for spec in specs] == ["nowhere", second, first]


@virtual
async def test_a_deleted_node_is_reported_and_replaced(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await _racked(cluster)
        await cluster.create(WORKLOADS, _spread("wide", "shoal"))
        await until_so(cluster, "wide")
        before = await _domains(cluster, "wide")
        await cluster.delete(NODES, before[0])
        await cluster.pass_time(5)
        after = await _domains(cluster, "wide")
        left = {"n1", "n2", "n3"} - {before[0]}
        assert set(after) == left
        assert "unhealthyNodes" not in (await cluster.get(WORKLOADS, "wide"))["status"]
        await cluster.delete(NODES, after[0])
        await until_so(cluster, "wide", "Evicted")
        assert (await said(cluster, "wide", "Evicted"))[1] == "NodeFailures"


@virtual
async def test_a_failed_node_without_a_replacement_is_reported_once(tmp_path: Path) -> None:
    patient = Configuration(feature_gates={"TASFailedNodeReplacementFailFast": False})
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster, patient)
        await _racked(cluster)
        await cluster.create(WORKLOADS, _spread("wide", "shoal"))
        await until_so(cluster, "wide")
        used_nodes = await _domains(cluster, "wide")
        (spare,) = {"n1", "n2", "n3"} - set(used_nodes)
        for name in (spare, used_nodes[0]):
            await cluster.delete(NODES, name)
        await cluster.pass_time(5)
        await cluster.patch(NODES, used_nodes[1], {"metadata": {"labels": {"looked": "at"}}})
        await cluster.pass_time(5)
        (told,) = [event for event in await cluster.events("wide") if event["reason"] == "SecondPassFailed"]
        assert (told["type"], told.get("count", 1)) == ("Warning", 1)
        assert "fit" in told["message"]
        assert await is_so(cluster, "wide")


@virtual
async def test_kueue_itself_is_recognized_by_its_lease(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        now = cluster.clock.micro_text()
        spec = {"holderIdentity": "kueue-1", "leaseDurationSeconds": 15, "renewTime": now, "acquireTime": now}
        await cluster.create(NAMESPACES, {"metadata": {"name": "kueue-system"}})
        await cluster.create(LEASES, {"metadata": {"name": "c1f6bfd2.kueue.x-k8s.io"}, "spec": spec}, "kueue-system")
        process = start_admission(cluster)
        await cluster.until(lambda: process.admission.presence.is_there)
        await cluster.pass_time(3)
        assert await reasons(cluster, "Lease") == {"LeftToKueue"}


@virtual
async def test_an_unreadable_queue_has_a_condition_and_delays_no_other_queue(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_flavor(cluster)
        await add_queue(cluster, "bad", namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Near"}]})
        await add_queue(cluster, "good")
        await submit(cluster, "job", queue="good")
        await until_so(cluster, "job")
        await cluster.pass_time(3)
        status = (await cluster.get(CLUSTER_QUEUES, "bad"))["status"]
        (active,) = [one for one in status["conditions"] if one["type"] == "Active"]
        assert (active["status"], active["reason"]) == ("False", "Unreadable")
        assert "Unreadable" in await reasons(cluster, "ClusterQueue")
