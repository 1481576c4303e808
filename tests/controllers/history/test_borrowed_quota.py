"""Borrowed quota and preempted work on a running cluster, from the queues to who pays what."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from build.kai_clusters import GROUP, QUEUE_LABEL, add_kai_queue, kai_cluster, start_kai
from build.live_schedulers import add_node, is_bound, pod
from build.queue_admission import (
    POD_SET_LABEL,
    WORKLOAD_ANNOTATION,
    add_flavor,
    queued_cluster,
    start_admission,
    until_so,
)
from build.recorders import RecorderRun
from build.small_clusters import SmallCluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, KAI_POD_GROUPS, LOCAL_QUEUES, VOLCANO_POD_GROUPS, WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS, RESOURCE_QUOTAS
from shoal.client.port import Deletion, Patch
from shoal.cost.chargeback import Charge, ChargePolicy, charged_dimension, charges
from shoal.cost.price_curves import constant
from shoal.cost.records import FULL_SHARE, PPM, Holding
from shoal.cost.statement import dimension, statement, whole_period
from shoal.store.history.memory_tables import MemoryTables
from shoal.units.calendar_windows import TimeWindow

GPU = "nvidia.com/gpu"
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
HALF = PPM // 2


class Recorded:
    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.tables = MemoryTables()
        self.run = RecorderRun(cluster, self.tables)
        self.start_ms = self.now_ms()

    def holdings(self) -> dict[str, Holding]:
        found = self.run.history.records(self.start_ms, self.now_ms() + 1).holdings
        return {one.holder.pod: one for one in found}

    def charges(self, policy: ChargePolicy) -> dict[str, Charge]:
        """By queue; every node costs 8 an hour."""
        window = TimeWindow(self.start_ms, self.now_ms())
        records = self.run.history.records(*window)
        curves = {one.name: constant(Decimal(8)) for one in records.machines}
        rows = statement(records, curves, whole_period(window), charged_dimension(dimension("queue")))
        return {one.group: one for one in charges(rows, policy)}

    def now_ms(self) -> int:
        return int(self.cluster.clock.seconds()) * 1000


async def add_ready_node(cluster: SmallCluster) -> None:
    await add_node(cluster, "n1", gpus=4)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": cluster.clock.text()}
    await cluster.patch(NODES, "n1", {"status": {"conditions": [ready]}}, "status")


async def add_gpu_queue(cluster: SmallCluster, name: str, gpus: int) -> None:
    quota = {"name": "default", "resources": [{"name": GPU, "nominalQuota": gpus}]}
    spec: Obj = {
        "cohortName": "all",
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": [GPU], "flavors": [quota]}],
        "preemption": {"reclaimWithinCohort": "Any"},
    }
    await cluster.create(CLUSTER_QUEUES, {"metadata": {"name": name}, "spec": spec})
    await cluster.create(LOCAL_QUEUES, {"metadata": {"name": name}, "spec": {"clusterQueue": name}})


def owner(name: str) -> Obj:
    return {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"job-{name}", "controller": True}


async def submit(cluster: SmallCluster, name: str, queue: str, gpus: int) -> None:
    containers = [{"name": "main", "image": "pause", "resources": {"limits": {GPU: "1"}, "requests": {GPU: "1"}}}]
    template = {"spec": {"schedulerName": "shoal", "containers": containers, "restartPolicy": "Never"}}
    sets = [{"name": "main", "count": gpus, "template": template}]
    meta = {"name": name, "ownerReferences": [owner(name)]}
    await cluster.create(WORKLOADS, {"metadata": meta, "spec": {"queueName": queue, "podSets": sets}})


async def start_pods(cluster: SmallCluster, name: str, queue: str, gpus: int) -> list[str]:
    """What the job's controller creates once it is admitted."""
    await until_so(cluster, name)
    labels = {POD_SET_LABEL: "main", "kueue.x-k8s.io/queue-name": queue}
    names = [f"{name}-{at}" for at in range(gpus)]
    for one in names:
        body = pod(one, gpus=1, labels=labels, annotations={WORKLOAD_ANNOTATION: name})
        body["metadata"]["ownerReferences"] = [owner(name)]
        await cluster.create(PODS, body)
    await cluster.until(lambda: is_bound(cluster, *names))
    return names


@virtual
async def test_borrowed_gpus_have_a_discount_and_preempted_work_is_refunded(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_ready_node(cluster)
        await add_flavor(cluster)
        for name in ("lends", "borrows"):
            await add_gpu_queue(cluster, name, 2)
        recorded = Recorded(cluster)
        await submit(cluster, "large", "borrows", 4)
        names = await start_pods(cluster, "large", "borrows", 4)
        await cluster.pass_time(600)
        # Two of four GPUs are those of the other queue.
        assert [recorded.holdings()[one].borrowed_ppm for one in names] == [HALF] * 4
        plain = recorded.charges(ChargePolicy())["borrows"]
        assert plain.own > 0
        cheap = recorded.charges(ChargePolicy(borrowed_discount_ppm=300_000))["borrows"]
        assert cheap.discount == plain.own * Decimal("0.15")
        assert recorded.charges(ChargePolicy(refunds_preempted=True))["borrows"].refund == 0
        # The other queue takes its quota back.
        await submit(cluster, "own", "lends", 2)
        await until_so(cluster, "large", "Evicted")
        for one in names:
            await cluster.delete(PODS, one, Deletion(grace_s=0))
        await cluster.pass_time(30)
        assert all(one.is_preempted for one in recorded.holdings().values())
        refunded = recorded.charges(ChargePolicy(borrowed_discount_ppm=300_000, refunds_preempted=True))["borrows"]
        assert refunded.discount == refunded.amount == 0
        assert refunded.refund == refunded.own >= plain.own


@virtual
async def test_quotas_are_recorded_with_the_queues_that_use_them_and_survive_a_restart(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_ready_node(cluster)
        await add_flavor(cluster)
        await add_gpu_queue(cluster, "gold", 2)
        hard = {"requests.nvidia.com/gpu": "3"}
        await cluster.create(RESOURCE_QUOTAS, {"metadata": {"name": "small"}, "spec": {"hard": hard}})
        recorded = Recorded(cluster)
        await submit(cluster, "job", "gold", 2)
        await start_pods(cluster, "job", "gold", 2)
        await cluster.pass_time(20)
        before = recorded.run.history.quotas.read(0, recorded.now_ms())
        assert {(one.kind, one.name, one.share, one.members) for one in before} == {
            ("cluster-queue", "gold", 2 * FULL_SHARE, ("default/gold",)),
            ("namespace", "default", 3 * FULL_SHARE, ()),
        }
        await recorded.run.kill()
        await cluster.delete(WORKLOADS, "job")
        recorded.run = RecorderRun(cluster, recorded.tables)
        await cluster.pass_time(20)
        assert recorded.run.history.quotas.read(0, recorded.now_ms()) == before


@virtual
async def test_a_part_that_changes_is_the_mean_over_time_and_survives_a_restart(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_ready_node(cluster)
        await add_flavor(cluster)
        for name in ("lends", "borrows"):
            await add_gpu_queue(cluster, name, 2)
        recorded = Recorded(cluster)
        await submit(cluster, "first", "borrows", 2)
        earlier = await start_pods(cluster, "first", "borrows", 2)
        await cluster.pass_time(2)
        await submit(cluster, "second", "borrows", 2)
        await start_pods(cluster, "second", "borrows", 2)
        await cluster.pass_time(300)
        held = recorded.holdings()
        assert [held[one].borrowed_ppm for one in (*earlier, "second-0", "second-1")] == [0, 0, PPM, PPM]
        await recorded.run.kill()
        recorded.run = RecorderRun(cluster, recorded.tables)
        # The first workload ends: from now on the second one holds its queue's own quota.
        await cluster.delete(WORKLOADS, "first")
        for one in earlier:
            await cluster.delete(PODS, one, Deletion(grace_s=0))
        await cluster.pass_time(900)
        found = recorded.holdings()
        assert [found[one].borrowed_ppm for one in earlier] == [0, 0]
        assert abs(found["second-0"].borrowed_ppm - PPM // 4) < PPM // 50
        assert not any(one.is_preempted for one in found.values())


@virtual
async def test_pods_beyond_the_quota_of_their_queue_of_kai_borrow(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start_kai(cluster)
        await add_node(cluster, "n1", gpus=4)
        await add_kai_queue(cluster, "team", 1)
        recorded = Recorded(cluster)
        for name in ("first", "second"):
            # Rows keep a few labels only.
            labels = {QUEUE_LABEL: "team", **{f"a{at:02}": "x" for at in range(30)}}
            await cluster.create(PODS, pod(name, gpus=1, labels=labels))
            await cluster.pass_time(5)
        assert await is_bound(cluster, "first", "second")
        await cluster.pass_time(20)
        held = recorded.holdings()
        assert (held["first"].borrowed_ppm, held["second"].borrowed_ppm) == (0, PPM)


@virtual
async def test_a_pod_that_only_names_a_workload_or_a_local_queue_is_neither_of_its_queue_nor_preempted(
    tmp_path: Path,
) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start_admission(cluster)
        await add_ready_node(cluster)
        await add_flavor(cluster)
        for name in ("lends", "borrows"):
            await add_gpu_queue(cluster, name, 2)
        recorded = Recorded(cluster)
        await submit(cluster, "real", "borrows", 2)
        await start_pods(cluster, "real", "lends", 2)
        forged = {"kueue.x-k8s.io/local-queue-name": "lends", "kueue.x-k8s.io/queue-name": "lends"}
        for name in ("named", "labelled"):
            body = pod(name, gpus=1, labels=forged, annotations={WORKLOAD_ANNOTATION: "real"})
            if name == "labelled":
                body["metadata"].pop("annotations")
            await cluster.create(PODS, body)
        await cluster.until(lambda: is_bound(cluster, "named", "labelled"))
        await cluster.pass_time(60)
        queues = {name: one.holder.queue for name, one in recorded.holdings().items()}
        assert queues == {"real-0": "borrows", "real-1": "borrows", "named": "", "labelled": ""}
        evicted = {"type": "Evicted", "status": "True", "reason": "Preempted", "message": "m"}
        status = {"conditions": [{**evicted, "lastTransitionTime": cluster.clock.text()}]}
        await cluster.patch(WORKLOADS, "real", {"status": status}, "status")
        await cluster.pass_time(2)
        for name in ("real-0", "named"):
            await cluster.delete(PODS, name, Deletion(grace_s=0))
        await cluster.pass_time(60)
        found = recorded.holdings()
        assert (found["real-0"].is_preempted, found["named"].is_preempted) == (True, False)


@virtual
async def test_the_queue_of_a_pod_is_that_of_its_group_of_volcano_or_kai(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path, "volcano") as cluster:
        await add_ready_node(cluster)
        recorded = Recorded(cluster)
        groups = ((VOLCANO_POD_GROUPS, VOLCANO_GROUP, "volcano"), (KAI_POD_GROUPS, GROUP, "kai-scheduler"))
        for kind, key, scheduler in groups:
            name = f"of-{scheduler}"
            body = pod(
                name, gpus=1, labels={QUEUE_LABEL: "said", "volcano.sh/queue-name": "said"}, annotations={key: "g"}
            )
            body["spec"] |= {"schedulerName": scheduler, "nodeName": "n1"}
            await cluster.create(PODS, body)
            await cluster.pass_time(15)
            assert recorded.holdings()[name].holder.queue == "said"
            # Its group comes later than the pod, as the recorder may see it.
            await cluster.create(kind, {"metadata": {"name": "g"}, "spec": {"minMember": 1, "queue": f"q-{scheduler}"}})
            await cluster.pass_time(15)
            assert recorded.holdings()[name].holder.queue == f"q-{scheduler}"


@virtual
async def test_what_a_pod_has_held_stays_in_its_queue_when_its_group_is_moved_to_another(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path, "volcano") as cluster:
        await add_ready_node(cluster)
        recorded = Recorded(cluster)

        async def start(name: str, group: str) -> None:
            body = pod(name, gpus=1, labels={QUEUE_LABEL: "mine"}, annotations={GROUP: group})
            body["spec"] |= {"schedulerName": "kai-scheduler", "nodeName": "n1"}
            await cluster.create(PODS, body)
            await cluster.pass_time(30)

        for group, spec in (("named", {"queue": "mine"}), ("unnamed", {})):
            await cluster.create(KAI_POD_GROUPS, {"metadata": {"name": group}, "spec": {"minMember": 1, **spec}})
            await start(f"{group}-early", group)
        for group in ("named", "unnamed"):
            moved = Patch("merge", {"spec": {"queue": "rival"}})
            await cluster.api.patch(KAI_POD_GROUPS, "default", group, moved)
        await start("late", "named")
        queues = {"named-early": "mine", "unnamed-early": "mine", "late": "rival"}
        assert {name: one.holder.queue for name, one in recorded.holdings().items()} == queues
        # As after a restart of the recorder.
        await recorded.run.kill()
        recorded.run = RecorderRun(cluster, recorded.tables)
        await cluster.pass_time(30)
        assert {name: one.holder.queue for name, one in recorded.holdings().items()} == queues
