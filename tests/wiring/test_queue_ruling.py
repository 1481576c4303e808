"""One configuration rules who is held, queued and let go, whether it came with a file or stands in the cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from build.chosen_runs import chosen_run
from build.live_schedulers import add_node, is_bound, pod
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.api.kueue import Configuration
from shoal.api.run_configuration import ProjectNamespaces
from shoal.client.ecosystem_kinds import WORKLOADS
from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS, DEFINITIONS, JOBS, LEASES, NAMESPACES, PODS, STATEFUL_SETS
from shoal.controllers.gatekeeping.policies import BINDINGS
from shoal.embedded.apiserver.foreign.converting import kueue_definitions
from shoal.engine.cycle import STEPS
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.queue_rules import QueueRules
from shoal.wiring.shoal import start_shoal

TEXT = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
manageJobsWithoutQueueName: true
managedJobsNamespaceSelector: {matchLabels: {team: a}}
integrations: {frameworks: [batch/job], labelKeysToCopy: [team]}
"""
POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}
_PARTS = ("jobs", "pods", "gatekeeper")


@asynccontextmanager
async def begun(cluster: SmallCluster, kueue: Configuration | None = None) -> AsyncIterator[QueueRules]:
    tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
    choice = chosen_run(None, kueue, *_PARTS, names=("shoal", "batch"))
    ruling = QueueRules(cluster.context(), choice)
    await ruling.begin(tasks, _PARTS)
    try:
        yield ruling
    finally:
        await tasks.end()


async def write_configuration(cluster: SmallCluster, text: str = TEXT) -> None:
    await cluster.create(NAMESPACES, {"metadata": {"name": "kueue-system"}})
    data = {"controller_manager_config.yaml": text}
    await cluster.create(CONFIG_MAPS, {"metadata": {"name": "kueue-manager-config"}, "data": data}, "kueue-system")


@virtual
async def test_without_a_configuration_who_names_a_queue_is_held_and_nobody_else(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, begun(cluster) as ruling:
        jobs, holding = ruling.jobs(), ruling.holding()
        assert jobs is not None
        assert holding is not None
        assert (jobs.queues_everything, holding.everything) == (False, False)
        assert jobs.schedulers == frozenset({"shoal", "batch"})
        assert not jobs.manages("kube-system", {})


@virtual
async def test_what_the_clusters_configuration_says_is_known_before_anybody_begins(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await write_configuration(cluster)
        async with begun(cluster) as ruling:
            jobs, holding = ruling.jobs(), ruling.holding()
            assert jobs is not None
            assert holding is not None
            assert jobs.queues_everything
            assert jobs.labels_to_copy == ("team",)
            assert jobs.manages("x", {"team": "a"})
            assert not jobs.manages("x", {})
            assert holding.everything
            assert holding.selector() == {"matchLabels": {"team": "a"}}


@virtual
async def test_a_configuration_that_changes_is_gone_by_from_then_on(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, begun(cluster) as ruling:
        await write_configuration(cluster)
        await cluster.until(lambda: ruling.jobs() is not None and ruling.jobs().queues_everything)  # type: ignore[union-attr]
        text = {"data": {"controller_manager_config.yaml": "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: [\n"}}
        await cluster.patch(CONFIG_MAPS, "kueue-manager-config", text, namespace="kueue-system")
        await cluster.pass_time(5)
        kept = ruling.jobs()
        assert kept is not None
        assert kept.queues_everything, "what cannot be read changes nothing"
        await cluster.delete(CONFIG_MAPS, "kueue-manager-config", namespace="kueue-system")
        await cluster.until(lambda: ruling.holding() is not None and not ruling.holding().everything)  # type: ignore[union-attr]


@virtual
async def test_kueue_is_where_the_file_says_that_it_is_installed(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await write_configuration(cluster)
        await cluster.create(NAMESPACES, {"metadata": {"name": "queues"}})
        now = cluster.clock.micro_text()
        spec = {"holderIdentity": "kueue", "renewTime": now, "leaseDurationSeconds": 15}
        await cluster.create(LEASES, {"metadata": {"name": "c1f6bfd2.kueue.x-k8s.io"}, "spec": spec}, "queues")
        choice = chosen_run(None, None, *_PARTS)
        own = replace(choice.own, namespaces=ProjectNamespaces(kueue="queues"))
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        ruling = QueueRules(cluster.context(), replace(choice, own=own))
        await ruling.begin(tasks, _PARTS)
        try:
            assert ruling.jobs() is None, "it runs there"
            await cluster.until(lambda: ruling.jobs() is not None, 200)
            jobs = ruling.jobs()
            assert jobs is not None
            assert not jobs.queues_everything, "the map is in the namespace that it would have had"
        finally:
            await tasks.end()


@virtual
async def test_a_file_is_gone_by_whatever_the_cluster_says(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await write_configuration(cluster)
        async with begun(cluster, Configuration()) as ruling:
            jobs = ruling.jobs()
            assert jobs is not None
            assert not jobs.queues_everything


@virtual
async def test_while_kueue_itself_is_there_nobody_is_held_and_nothing_is_queued(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        now = cluster.clock.now().strftime("%Y-%m-%dT%H:%M:%S.000000Z")
        spec = {"holderIdentity": "kueue", "renewTime": now, "leaseDurationSeconds": 15}
        await cluster.create(NAMESPACES, {"metadata": {"name": "kueue-system"}})
        await cluster.create(LEASES, {"metadata": {"name": "c1f6bfd2.kueue.x-k8s.io"}, "spec": spec}, "kueue-system")
        async with begun(cluster) as ruling:
            assert ruling.jobs() is None
            assert ruling.holding() is None
            await cluster.until(lambda: ruling.jobs() is not None and ruling.holding() is not None, 200)


@virtual
async def test_a_scheduler_alone_places_pods_of_kueues_groups_one_by_one_while_kueue_runs(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await add_node(cluster, "n1")
        spec = {"holderIdentity": "kueue", "renewTime": cluster.clock.micro_text(), "leaseDurationSeconds": 15}
        await cluster.create(NAMESPACES, {"metadata": {"name": "kueue-system"}})
        await cluster.create(LEASES, {"metadata": {"name": "c1f6bfd2.kueue.x-k8s.io"}, "spec": spec}, "kueue-system")
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        try:
            await start_shoal(tasks, lambda _: cluster.api, replace(chosen_run(None, None, "scheduler"), steps=STEPS))
            tasks.start("caches", tasks.informers.run)
            await cluster.create(PODS, _of_group("one"))
            await cluster.until(lambda: is_bound(cluster, "one"), 10)
            await cluster.pass_time(100)
            await cluster.create(PODS, _of_group("other"))
            await cluster.pass_time(10)
            assert not await is_bound(cluster, "other"), "Kueue has gone, and the group is a gang"
        finally:
            await tasks.end()


def _of_group(name: str) -> Obj:
    labels = {"kueue.x-k8s.io/pod-group-name": name}
    return pod(name, labels=labels, annotations={"kueue.x-k8s.io/pod-group-total-count": "2"})


@virtual
async def test_jobs_that_name_no_queue_are_held_and_queued_where_the_configuration_wants_it(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        for definition in kueue_definitions():
            await cluster.create(DEFINITIONS, definition)
        await write_configuration(cluster)
        await cluster.create(NAMESPACES, {"metadata": {"name": "managed", "labels": {"team": "a"}}})
        await cluster.pass_time(2)
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        try:
            await start_shoal(tasks, lambda _: cluster.api, chosen_run())
            tasks.start("caches", tasks.informers.run)
            await cluster.until(lambda: _holds(cluster))
            job = {"metadata": {"name": "j", "labels": {"team": "b"}}, "spec": {"template": {"spec": POD}}}
            assert (await cluster.create(JOBS, job, "managed"))["spec"]["suspend"] is True
            await cluster.until(lambda: _workloads(cluster, "managed"))
            (made,) = await cluster.all(WORKLOADS, "managed")
            assert made["metadata"]["labels"]["team"] == "b"
            other = {"metadata": {"name": "j"}, "spec": {"template": {"spec": POD}}}
            assert (await cluster.create(JOBS, other))["spec"]["suspend"] is False
        finally:
            await tasks.end()


@virtual
async def test_kinds_that_the_configuration_does_not_list_are_nobodys_business(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        for definition in kueue_definitions():
            await cluster.create(DEFINITIONS, definition)
        await write_configuration(cluster)
        await cluster.create(NAMESPACES, {"metadata": {"name": "managed", "labels": {"team": "a"}}})
        await cluster.pass_time(2)
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        try:
            await start_shoal(tasks, lambda _: cluster.api, chosen_run())
            tasks.start("caches", tasks.informers.run)
            await cluster.until(lambda: _holds(cluster))
            labels = {"kueue.x-k8s.io/queue-name": "q", "app": "s"}
            pod = await cluster.create(PODS, {"metadata": {"name": "p", "labels": labels}, "spec": POD}, "managed")
            assert not pod["spec"].get("schedulingGates"), "the list has batch/job alone"
            template = {"metadata": {"labels": labels}, "spec": {**POD, "restartPolicy": "Always"}}
            spec = {"selector": {"matchLabels": {"app": "s"}}, "template": template}
            await cluster.create(STATEFUL_SETS, {"metadata": {"name": "s", "labels": labels}, "spec": spec}, "managed")
            job = {"metadata": {"name": "j", "labels": dict(labels)}, "spec": {"template": {"spec": POD}}}
            assert (await cluster.create(JOBS, job, "managed"))["spec"]["suspend"] is True
            await cluster.until(lambda: _workloads(cluster, "managed"))
            await cluster.pass_time(10)
            (made,) = await cluster.all(WORKLOADS, "managed")
            assert made["metadata"]["name"].startswith("job-j-")
        finally:
            await tasks.end()


@virtual
async def test_jobs_that_are_there_already_are_looked_at_when_the_rules_change(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        for definition in kueue_definitions():
            await cluster.create(DEFINITIONS, definition)
        for name in ("managed", "other"):
            await cluster.create(NAMESPACES, {"metadata": {"name": name, "labels": {"team": name[0]}}})
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        try:
            await start_shoal(tasks, lambda _: cluster.api, chosen_run())
            tasks.start("caches", tasks.informers.run)
            await cluster.until(lambda: _holds(cluster))
            for name in ("managed", "other"):
                await cluster.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": {"spec": POD}}}, name)
            await cluster.pass_time(40)
            assert not await _is_suspended(cluster, "managed")
            await write_configuration(cluster, TEXT.replace("team: a", "team: m"))
            await cluster.until(lambda: _is_suspended(cluster, "managed"), 3)
            await cluster.until(lambda: _workloads(cluster, "managed"), 3)
            late = {"metadata": {"name": "k"}, "spec": {"template": {"spec": POD}}}
            held = await cluster.create(JOBS, late, "managed")
            assert held["spec"]["suspend"], "whoever is created now is held by the same rules"
            assert not await _is_suspended(cluster, "other")
            await cluster.patch(NAMESPACES, "other", {"metadata": {"labels": {"team": "m"}}})
            await cluster.until(lambda: _is_suspended(cluster, "other"), 3)
        finally:
            await tasks.end()


async def _is_suspended(cluster: SmallCluster, namespace: str) -> bool:
    jobs = {one["metadata"]["name"]: one for one in await cluster.all(JOBS, namespace)}
    return bool(jobs["j"]["spec"].get("suspend"))


async def _holds(cluster: SmallCluster) -> bool:
    return any(one["metadata"]["name"] == "shoal-hold-jobs" for one in await cluster.all(BINDINGS))


async def _workloads(cluster: SmallCluster, namespace: str) -> bool:
    return bool(await cluster.all(WORKLOADS, namespace))
