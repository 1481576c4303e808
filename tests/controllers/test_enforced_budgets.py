"""Enforced budgets on a running cluster: plain pods, gangs, KAI's queues, Volcano's and Kueue's."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from build.budget_reports import write_budgets
from build.kai_clusters import GROUP, QUEUE_LABEL, add_gang, add_kai_queue, kai_cluster
from build.kai_owners import kai_pod
from build.live_schedulers import LiveScheduler, add_node, condition, is_bound, places, pod
from build.queue_admission import (
    WORKLOAD_ANNOTATION,
    add_flavor,
    add_queue,
    is_so,
    queued_cluster,
    said,
    submit,
    until_so,
    workload,
)
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.api.run_configuration import RunConfiguration
from shoal.client.ecosystem_kinds import KAI_POD_GROUPS, WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS, JOBS, NAMESPACES, PODS
from shoal.client.presence import KUEUE, Presence
from shoal.engine.cycle import STEPS
from shoal.engine.profile import DEFAULT_POLICY, profile_named
from shoal.store.watched.cluster import WatchSettings
from shoal.wiring.disciplines import add_disciplines
from shoal.wiring.run_choice import RunChoice

RED = {"shoal.dev/team": "red"}
OTHER = {"shoal.dev/team": "blue"}


def start(cluster: SmallCluster, *parts: str) -> LiveScheduler:
    live = LiveScheduler(cluster, watch=WatchSettings(frozenset({"shoal", "kai-scheduler", "volcano"})))
    choice = RunChoice(RunConfiguration(), partial(profile_named, DEFAULT_POLICY), STEPS, ("scheduler", *parts))
    add_disciplines(live.loop, lambda _: live.context, live.served, choice, Presence(live.context, KUEUE), None)
    live.start()
    return live


async def over(cluster: SmallCluster, name: str) -> bool:
    return (await condition(cluster, name)).get("reason") == "OverBudget"


async def label_namespace(cluster: SmallCluster) -> None:
    await cluster.patch(NAMESPACES, "default", {"metadata": {"labels": RED}}, namespace="")


async def add_job(cluster: SmallCluster, name: str) -> Obj:
    """Suspended, so that the test creates its pods; returns the reference to it."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "pause"}]}}
    made = await cluster.create(JOBS, {"metadata": {"name": name}, "spec": {"suspend": True, "template": template}})
    uid = made["metadata"]["uid"]
    return {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}


async def add_workload(cluster: SmallCluster, owner: Obj) -> None:
    body = workload(owner["name"])
    body["metadata"]["ownerReferences"] = [owner]
    await cluster.create(WORKLOADS, body)


async def add_member(cluster: SmallCluster, name: str, workload_name: str, *owners: Obj) -> None:
    """A pod that says that it belongs to a Workload."""
    body = pod(name, gpus=1, annotations={WORKLOAD_ANNOTATION: workload_name})
    body["metadata"]["ownerReferences"] = list(owners)
    await cluster.create(PODS, body)


async def until_over(cluster: SmallCluster, name: str) -> None:
    await cluster.until(lambda: over(cluster, name))


@virtual
async def test_new_pods_with_gpus_of_a_team_over_budget_wait_and_running_ones_go_on(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await label_namespace(cluster)
        start(cluster)
        await add_node(cluster, "n1", gpus=4)
        await cluster.create(PODS, pod("runs", gpus=1))
        await cluster.until(lambda: is_bound(cluster, "runs"))
        await write_budgets(cluster, 1200)
        await cluster.pass_time(2)
        await cluster.create(PODS, pod("new", gpus=1, labels=OTHER))
        await cluster.create(NAMESPACES, {"metadata": {"name": "blue"}})
        # Users choose the labels of their pods: they neither evade a budget nor come under another one by them.
        await cluster.create(PODS, pod("others", gpus=1, labels=RED), "blue")
        await cluster.create(PODS, pod("without-gpus", cpu="1"))
        await until_over(cluster, "new")
        await cluster.until(lambda: is_bound(cluster, "others", "without-gpus"))
        assert await places(cluster) == {"runs": "n1", "new": "", "others": "n1", "without-gpus": "n1"}
        message = (await condition(cluster, "new"))["message"]
        assert message.startswith("The budget of team red is spent: 1,200.00 of 1,000.00 USD in 2026-11; it resets at")
        await write_budgets(cluster, 900)
        await cluster.until(lambda: is_bound(cluster, "new"))


@virtual
async def test_pods_that_wait_for_nodes_wait_for_the_budget_as_soon_as_it_is_spent(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await label_namespace(cluster)
        live = start(cluster)
        await cluster.create(PODS, pod("waits", gpus=1))
        await cluster.until(lambda: "default/waits" in live.loop.cluster.pending)
        await write_budgets(cluster, 1000)
        await until_over(cluster, "waits")
        await add_node(cluster, "n1", gpus=4)
        await cluster.pass_time(60)
        assert await places(cluster) == {"waits": ""}
        assert not live.loop.cluster.pending


@virtual
async def test_a_report_that_is_not_renewed_and_one_that_is_deleted_hold_nothing_back(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await label_namespace(cluster)
        start(cluster)
        await add_node(cluster, "n1", gpus=4)
        await write_budgets(cluster, 1200, age_s=3560)
        await cluster.pass_time(2)
        await cluster.create(PODS, pod("first", gpus=1))
        await until_over(cluster, "first")
        await cluster.until(lambda: is_bound(cluster, "first"))
        await write_budgets(cluster, 1200)
        await cluster.pass_time(2)
        await cluster.create(PODS, pod("second", gpus=1))
        await until_over(cluster, "second")
        await cluster.delete(CONFIG_MAPS, "shoal-budgets", namespace="kube-system")
        await cluster.until(lambda: is_bound(cluster, "second"))


@virtual
async def test_a_new_period_lets_the_pods_go_on(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await label_namespace(cluster)
        start(cluster)
        await add_node(cluster, "n1", gpus=4)
        await write_budgets(cluster, 1200, days_left=60 / 86_400)
        await cluster.pass_time(2)
        await cluster.create(PODS, pod("new", gpus=1))
        await until_over(cluster, "new")
        await cluster.until(lambda: is_bound(cluster, "new"), within_s=70)


@virtual
async def test_a_gang_that_runs_gets_its_missing_pod_and_a_new_gang_waits_as_a_whole(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start(cluster, "kai")
        await add_node(cluster, "n1", gpus=8)
        await add_kai_queue(cluster, "team", 8)
        await label_namespace(cluster)
        await add_gang(cluster, "runs", "team", count=2, least=2)
        await cluster.until(lambda: is_bound(cluster, "runs-0", "runs-1"))
        await write_budgets(cluster, 1200)
        await cluster.pass_time(2)
        await cluster.delete(PODS, "runs-1")
        body = pod("runs-2", gpus=1, labels={QUEUE_LABEL: "team"}, annotations={GROUP: "runs"})
        await cluster.create(PODS, body)
        await cluster.until(lambda: is_bound(cluster, "runs-2"))
        await add_gang(cluster, "new", "team", count=2, least=2)
        await cluster.create(PODS, kai_pod("alone", {"kai.scheduler/queue": "team"}))
        for name in ("new-0", "new-1", "alone"):
            await until_over(cluster, name)
        await write_budgets(cluster, 10)
        await cluster.until(lambda: is_bound(cluster, "new-0", "new-1", "alone"))


@virtual
async def test_a_workload_of_kueues_queues_waits_with_the_reason(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start(cluster, "queues")
        await label_namespace(cluster)
        await add_flavor(cluster)
        await add_queue(cluster)
        await submit(cluster, "runs")
        await until_so(cluster, "runs", "QuotaReserved")
        await write_budgets(cluster, 1200)
        await cluster.pass_time(2)
        await submit(cluster, "new")

        async def waits() -> bool:
            return (await said(cluster, "new", "QuotaReserved"))[1] == "OverBudget"

        await cluster.until(waits)
        status, _, message = await said(cluster, "new", "QuotaReserved")
        assert status == "False"
        assert message.startswith("The budget of team red is spent: 1,200.00 of 1,000.00 USD in 2026-11")
        assert await is_so(cluster, "runs", "QuotaReserved")
        await write_budgets(cluster, 1)
        await until_so(cluster, "new", "QuotaReserved")


@virtual
async def test_pods_of_an_admitted_workload_start_and_pods_that_only_name_one_wait(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start(cluster, "queues")
        await add_node(cluster, "n1", gpus=8)
        await add_flavor(cluster)
        await add_queue(cluster)
        await label_namespace(cluster)
        job, late = await add_job(cluster, "runs"), await add_job(cluster, "late")
        await add_workload(cluster, job)
        await until_so(cluster, "runs", "QuotaReserved")
        await write_budgets(cluster, 1200)
        await cluster.pass_time(2)
        await add_workload(cluster, late)
        await add_member(cluster, "missing", "nonsense", late)
        await add_member(cluster, "waiting", "late", late)
        await add_member(cluster, "foreign", "runs", late)
        await add_member(cluster, "single", "runs")
        await add_member(cluster, "member", "runs", job)
        for name in ("missing", "waiting", "foreign", "single"):
            await until_over(cluster, name)
        await cluster.until(lambda: is_bound(cluster, "member"))
        await write_budgets(cluster, 1)
        await cluster.until(lambda: is_bound(cluster, "missing", "foreign", "single"))


@virtual
async def test_a_pod_that_comes_before_the_quota_of_its_workload_waits_for_no_budget_afterwards(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        start(cluster, "queues")
        await add_node(cluster, "n1", gpus=8)
        await add_flavor(cluster)
        await add_queue(cluster)
        await label_namespace(cluster)
        await write_budgets(cluster, 1200)
        await cluster.pass_time(2)
        job = await add_job(cluster, "runs")
        await add_workload(cluster, job)
        await add_member(cluster, "member", "runs", job)
        await until_over(cluster, "member")
        now = cluster.clock.text()
        reserved = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "m"}
        sets = [{"name": "main", "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}, "count": 1}]
        admission = {"clusterQueue": "cq", "podSetAssignments": sets}
        status = {"admission": admission, "conditions": [{**reserved, "lastTransitionTime": now}]}
        await cluster.patch(WORKLOADS, "runs", {"status": status}, subresource="status")
        await cluster.until(lambda: is_bound(cluster, "member"))


@virtual
async def test_pods_beyond_the_minimum_of_a_running_gang_wait(tmp_path: Path) -> None:
    async with kai_cluster(tmp_path) as cluster:
        start(cluster, "kai")
        await add_node(cluster, "n1", gpus=8)
        await add_kai_queue(cluster, "team", 8)
        await label_namespace(cluster)
        await add_gang(cluster, "runs", "team", count=2, least=2)
        await cluster.until(lambda: is_bound(cluster, "runs-0", "runs-1"))
        await write_budgets(cluster, 1200)
        await cluster.pass_time(2)
        await cluster.delete(PODS, "runs-1")
        await cluster.pass_time(2)
        for index in (2, 3):
            body = pod(f"runs-{index}", gpus=1, labels={QUEUE_LABEL: "team"}, annotations={GROUP: "runs"})
            await cluster.create(PODS, body)
        await until_over(cluster, "runs-3")
        await cluster.until(lambda: is_bound(cluster, "runs-2"))
        await cluster.patch(KAI_POD_GROUPS, "runs", {"spec": {"minMember": 3}})
        await write_budgets(cluster, 1201)
        await cluster.pass_time(30)
        assert (await places(cluster))["runs-3"] == ""
