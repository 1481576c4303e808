"""Places of an admission are kept until its pods arrive, and admissions survive a restart."""

from __future__ import annotations

from pathlib import Path

import msgspec

from build.live_schedulers import add_node, is_bound, places, pod
from build.queue_admission import (
    POD_SET_LABEL,
    WORKLOAD_ANNOTATION,
    add_flavor,
    add_queue,
    is_so,
    queued_cluster,
    said,
    start_admission,
    start_pods,
    submit,
    until_so,
    workload,
)
from build.virtual_time import virtual
from shoal.api.kueue.topology_assignments import TopologyAssignment
from shoal.client.ecosystem_kinds import KUEUE_TOPOLOGIES, WORKLOADS
from shoal.client.kind import LEASES, NAMESPACES, PODS
from shoal.client.port import Deletion


@virtual
async def test_the_capacity_of_an_admitted_gang_is_kept_until_its_pods_arrive(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        process = start_admission(cluster)
        await add_node(cluster, "n1", cpu="4")
        await add_flavor(cluster)
        await add_queue(cluster)
        await submit(cluster, "gang", cpu="2", count=2)
        await until_so(cluster, "gang")
        await cluster.create(PODS, pod("thief", cpu="2"))
        await cluster.pass_time(5)
        assert not await is_bound(cluster, "thief")
        (condition,) = (await cluster.get(PODS, "thief"))["status"]["conditions"]
        assert condition["message"].endswith(" Capacity for 2 future pods of default/gang is reserved there.")
        await start_pods(cluster, "gang", 2, cpu="2")
        await cluster.until(lambda: is_bound(cluster, "gang-0", "gang-1"))
        assert not await is_bound(cluster, "thief")
        assert process.admission.placeholders.count("default/gang") == 0


@virtual
async def test_pods_that_arrive_one_after_another_take_their_places_too(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_node(cluster, "n1", cpu="4")
        await add_flavor(cluster)
        await add_queue(cluster)
        await submit(cluster, "work", cpu="2", count=2)
        await until_so(cluster, "work")
        await start_pods(cluster, "work", 1, cpu="2")
        await cluster.until(lambda: is_bound(cluster, "work-0"), 5)
        await cluster.create(PODS, pod("thief", cpu="2"))
        await cluster.pass_time(5)
        assert not await is_bound(cluster, "thief")
        await start_pods(cluster, "work", 1, first=1, cpu="2")
        await cluster.until(lambda: is_bound(cluster, "work-1"), 5)


@virtual
async def test_quota_without_free_capacity_on_nodes_admits_no_workload(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_node(cluster, "n1", cpu="4")
        await add_node(cluster, "n2", cpu="4")
        await add_flavor(cluster)
        await add_queue(cluster, cpu="100")
        for name in ("a", "b"):
            await cluster.create(PODS, pod(name, cpu="3"))
        await cluster.until(lambda: is_bound(cluster, "a", "b"))
        await submit(cluster, "gang", cpu="4", count=2)
        await until_so(cluster, "gang", "QuotaReserved", "False")
        await cluster.pass_time(5)
        assert (await said(cluster, "gang", "QuotaReserved"))[1] == "TopologyPlacementFailed"
        for name in ("a", "b"):
            await cluster.delete(PODS, name, Deletion(grace_s=0))
        await until_so(cluster, "gang")


@virtual
async def test_places_that_no_pod_takes_are_released_after_five_minutes(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_node(cluster, "n1", cpu="4")
        await add_flavor(cluster)
        await add_queue(cluster)
        await submit(cluster, "gang", cpu="2", count=2)
        await until_so(cluster, "gang")
        await cluster.create(PODS, pod("thief", cpu="4"))
        await cluster.pass_time(290)
        assert not await is_bound(cluster, "thief")
        await cluster.until(lambda: is_bound(cluster, "thief"), 30)
        await cluster.pass_time(2)
        assert "PlacesReleased" in {event["reason"] for event in await cluster.events("gang")}


@virtual
async def test_a_restarted_process_has_the_same_admissions_quota_and_places(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        first = start_admission(cluster)
        await add_node(cluster, "n1", cpu="4")
        await add_flavor(cluster)
        await add_queue(cluster)
        await submit(cluster, "gang", cpu="2", count=2)
        await until_so(cluster, "gang")
        before = (await cluster.get(WORKLOADS, "gang"))["metadata"]["resourceVersion"]
        await first.kill()
        second = start_admission(cluster)
        await cluster.pass_time(5)
        assert (await cluster.get(WORKLOADS, "gang"))["metadata"]["resourceVersion"] == before
        assert second.admission.placeholders.count("default/gang") == 2
        await submit(cluster, "late", cpu="1")
        await cluster.create(PODS, pod("thief", cpu="2"))
        await cluster.pass_time(5)
        assert not await is_so(cluster, "late")
        await start_pods(cluster, "gang", 2, cpu="2")
        await cluster.until(lambda: is_bound(cluster, "gang-0", "gang-1"))
        assert not await is_bound(cluster, "thief")


@virtual
async def test_the_places_are_in_the_assigned_domains(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        for name, rack in (("n1", "r1"), ("n2", "r2"), ("n3", "r2")):
            await add_node(cluster, name, cpu="2", labels={"rack": rack, "pool": "all"})
        levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
        await cluster.create(KUEUE_TOPOLOGIES, {"metadata": {"name": "dc"}, "spec": {"levels": levels}})
        await add_flavor(cluster, nodeLabels={"pool": "all"}, topologyName="dc")
        await add_queue(cluster, cpu="8")
        await submit(cluster, "far")
        await until_so(cluster, "far")
        (each,) = (await cluster.get(WORKLOADS, "far"))["status"]["admission"]["podSetAssignments"]
        assignment = each["topologyAssignment"]
        assert assignment["levels"] == ["kubernetes.io/hostname"]
        (piece,) = assignment["slices"]
        node = piece["valuesPerLevel"][0]["universal"]
        await start_pods(cluster, "far", 1)
        await cluster.until(lambda: is_bound(cluster, "far-0"))
        assert (await places(cluster))["far-0"] == node


@virtual
async def test_pods_with_an_index_take_the_places_of_their_ranks(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        for index in range(4):
            await add_node(cluster, f"n{index}", cpu="1", labels={"pool": "all"})
        levels = {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}
        await cluster.create(KUEUE_TOPOLOGIES, {"metadata": {"name": "dc"}, "spec": levels})
        await add_flavor(cluster, nodeLabels={"pool": "all"}, topologyName="dc")
        await add_queue(cluster, cpu="8")
        label = "batch.kubernetes.io/job-completion-index"
        body = workload("ranked", count=4)
        body["spec"]["podSets"][0]["topologyRequest"] = {"unconstrained": True, "podIndexLabel": label}
        await cluster.create(WORKLOADS, body)
        await until_so(cluster, "ranked")
        admitted = msgspec.convert((await cluster.get(WORKLOADS, "ranked"))["status"]["admission"], _Admitted)
        (each,) = admitted.assignments
        domains = [values[0] for values, count in each.topology.domains() for _ in range(count)]
        template = body["spec"]["podSets"][0]["template"]["spec"]
        for index in (2, 0, 3, 1):
            labels = {POD_SET_LABEL: "main", label: str(index)}
            meta = {"name": f"ranked-{index}", "labels": labels, "annotations": {WORKLOAD_ANNOTATION: "ranked"}}
            await cluster.create(PODS, {"metadata": meta, "spec": template})
        await cluster.until(lambda: is_bound(cluster, "ranked-1"))
        assert await places(cluster) == {f"ranked-{index}": node for index, node in enumerate(domains)}


class _Assignment(msgspec.Struct):
    topology: TopologyAssignment = msgspec.field(name="topologyAssignment")


class _Admitted(msgspec.Struct):
    assignments: list[_Assignment] = msgspec.field(name="podSetAssignments")


@virtual
async def test_a_workload_with_too_many_pods_has_that_reason_and_delays_no_other(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        process = start_admission(cluster)
        await add_node(cluster, "n1", cpu="4")
        await add_flavor(cluster)
        await add_queue(cluster, cpu="10M")
        await submit(cluster, "endless", cpu="1m", count=2_000_000_000)
        await submit(cluster, "usual")
        await until_so(cluster, "usual")
        assert (await said(cluster, "endless", "QuotaReserved"))[:2] == ("False", "TopologyPlacementFailed")
        assert process.admission.placeholders.count("default/endless") == 0


@virtual
async def test_no_workload_is_admitted_while_kueue_itself_runs(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        lease = {"holderIdentity": "kueue-1", "leaseDurationSeconds": 15, "renewTime": cluster.clock.micro_text()}
        await cluster.create(NAMESPACES, {"metadata": {"name": "kueue-system"}})
        await cluster.create(LEASES, {"metadata": {"name": "c1f6bfd2.kueue.x-k8s.io"}, "spec": lease}, "kueue-system")
        process = start_admission(cluster)
        await add_flavor(cluster)
        await add_queue(cluster)
        await cluster.until(lambda: process.admission.presence.is_there)
        await submit(cluster, "a")
        await cluster.pass_time(5)
        assert "conditions" not in (await cluster.get(WORKLOADS, "a")).get("status", {})
        await cluster.until(lambda: is_so(cluster, "a"), 120)
