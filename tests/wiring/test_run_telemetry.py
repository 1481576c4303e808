"""What a living process says of itself: rounds, bindings, requests, queues and workloads, read at its door."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from msgspec import structs

from build.live_schedulers import LiveScheduler, add_node, is_bound, pod
from build.promtool import PROMTOOL, faults
from build.queue_admission import add_flavor, add_queue, queued_cluster, stop, submit, until_so
from build.small_clusters import SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.cli.run import run_choice
from shoal.cli.run_files import read_run_files
from shoal.client.ecosystem_kinds import WORKLOADS
from shoal.client.item import Key
from shoal.client.kind import PODS
from shoal.client.loop import Loop
from shoal.client.port import Patch
from shoal.controllers.queues.admission_loop import QueueAdmission
from shoal.engine.from_api.membership import LIGHT_GROUP_LABEL, LIGHT_MINIMUM_LABEL
from shoal.prometheus.exposition import text_of
from shoal.store.watched.queues import WatchedQueues
from shoal.units.errors import UserError
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.shoal import start_shoal
from shoal.wiring.telemetry import Measured, Telemetry, metrics_endpoint_settings


class Read:
    """A process and its telemetry, with what is read of it."""

    def __init__(self, cluster: SmallCluster, role: str = "standalone") -> None:
        self.telemetry = Telemetry("1.0", cluster.clock, Measured(role=role))  # type: ignore[arg-type]
        api, rolled_back = self.telemetry.observed(cluster.api), self.telemetry.gang_rolled_back
        self.process = LiveScheduler(cluster, api, rolled_back=rolled_back)
        live = self.process.loop
        observer = self.telemetry.follow_scheduler(live, self.process.informers.of(PODS), ["shoal"])
        live.executors = (observer, *live.executors)

    @property
    def text(self) -> bytes:
        return text_of(self.telemetry.registry.read())

    def __getitem__(self, sample: str) -> float:
        found = dict(line.rsplit(" ", 1) for line in self.text.decode().splitlines())
        return float(found[sample])


@virtual
async def test_pods_that_are_bound_and_pods_that_wait_are_counted(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        read = Read(cluster)
        read.process.start()
        await add_node(cluster, "n1", gpus=8)
        await cluster.create(PODS, pod("a", gpus=2))
        await cluster.create(PODS, pod("b", gpus=4))
        await cluster.until(lambda: is_bound(cluster, "a", "b"))
        await cluster.create(PODS, pod("c", gpus=4))
        await cluster.create(PODS, pod("d", schedulingGates=[{"name": "example.com/wait"}]))
        await cluster.pass_time(5)
        assert read['scheduler_schedule_attempts_total{result="scheduled",profile="shoal"}'] == 2
        assert read['scheduler_schedule_attempts_total{result="unschedulable",profile="shoal"}'] >= 1
        assert read['scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"}'] == 2
        assert read['scheduler_pending_pods{queue="unschedulable"}'] == 1
        assert read['scheduler_pending_pods{queue="gated"}'] == 1
        assert read["shoal_bindings_in_flight"] == 0
        assert read["shoal_rounds_total"] == read.process.loop.rounds
        assert [read[f'shoal_gpus{{state="{state}"}}'] for state in ("used", "empty", "broken_up")] == [6, 2, 0]
        assert read['shoal_client_requests_total{verb="binding",code="201"}'] == 2
        if PROMTOOL:
            assert faults(read.text) == ""
        # A gate that opens starts the clock of its pod.
        await cluster.api.patch(PODS, "default", "d", Patch("merge", {"spec": {"schedulingGates": []}}))
        await cluster.until(lambda: is_bound(cluster, "d"))
        assert read['scheduler_pending_pods{queue="gated"}'] == 0
        assert read['scheduler_pod_scheduling_sli_duration_seconds_sum{attempts="1"}'] < 3


@virtual
async def test_queues_are_told_under_kueues_names(tmp_path: Path) -> None:
    async with queued_cluster(tmp_path) as cluster:
        read = Read(cluster, "leader")
        live, context = read.process.loop, read.process.context
        watched = WatchedQueues(context, read.process.served, live.wake, None)
        discipline = live.discipline = QueueAdmission(context, watched, live)
        read.telemetry.follow_queues(discipline, watched)
        read.telemetry.follow_workloads(context.informers.of(WORKLOADS))
        read.process.start()
        await add_flavor(cluster)
        await add_queue(cluster, cpu="4")
        await submit(cluster, "a", cpu="3")
        await until_so(cluster, "a")
        await submit(cluster, "b", cpu="2")
        await until_so(cluster, "b", "QuotaReserved", "False")
        await cluster.pass_time(2)
        role = 'replica_role="leader"'
        assert read[f'kueue_admitted_workloads_total{{cluster_queue="cq",priority_class="",{role}}}'] == 1
        assert read[f'kueue_pending_workloads{{cluster_queue="cq",status="inadmissible",{role}}}'] == 1
        assert read[f'kueue_pending_workloads{{cluster_queue="cq",status="active",{role}}}'] == 0
        assert read[f'kueue_admitted_active_workloads{{cluster_queue="cq",{role}}}'] == 1
        assert read[f'kueue_cluster_queue_status{{cluster_queue="cq",status="active",{role}}}'] == 1
        quota = f'cohort="",flavor="default",resource="cpu",{role}'
        assert read[f'kueue_cluster_queue_nominal_quota{{cluster_queue="cq",{quota}}}'] == 4
        assert read[f'kueue_cluster_queue_resource_usage{{cluster_queue="cq",{quota}}}'] == 3
        assert read[f'kueue_cluster_queue_borrowing_limit{{cluster_queue="cq",{quota}}}'] == float("inf")
        own = 'name="cq",namespace="default"'
        assert read[f'kueue_local_queue_pending_workloads{{{own},status="inadmissible",{role}}}'] == 1
        assert read[f'kueue_local_queue_admitted_workloads_total{{{own},priority_class="",{role}}}'] == 1
        assert read[f'kueue_admission_attempts_total{{result="success",{role}}}'] == 1
        turned_away = read[f'kueue_admission_attempts_total{{result="inadmissible",{role}}}']
        assert turned_away >= 1
        assert read[f'kueue_admission_attempt_duration_seconds_count{{result="inadmissible",{role}}}'] == turned_away
        await cluster.patch(WORKLOADS, "a", {"spec": {"active": False}})
        await until_so(cluster, "a", "Evicted")
        labels = f'cluster_queue="cq",reason="Deactivated",underlying_cause="",priority_class="",{role}'
        await cluster.pass_time(1)
        assert read[f"kueue_evicted_workloads_total{{{labels}}}"] == 1
        await cluster.pass_time(3)
        await stop(cluster, "a", "Deactivated", requeued=False)
        await cluster.pass_time(1)
        labels = f'cluster_queue="cq",reason="Deactivated",{role}'
        assert read[f"kueue_workload_eviction_latency_seconds_sum{{{labels}}}"] >= 3
        if PROMTOOL:
            assert faults(read.text) == ""


async def test_a_process_is_ready_while_it_stands_by_and_once_it_works(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        telemetry = Telemetry("1.0", cluster.clock, Measured(lease="shoal"))
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        settings = metrics_endpoint_settings("127.0.0.1:0")
        assert settings is not None
        url = f"http://{await telemetry.open(tasks, settings)}"
        async with aiohttp.ClientSession() as session:

            async def ready() -> int:
                async with session.get(f"{url}/readyz") as answer:
                    return answer.status

            async def leads() -> bool:
                async with session.get(f"{url}/metrics") as answer:
                    return 'leader_election_master_status{name="shoal"} 1\n' in await answer.text()

            found = [await ready()]
            for step in (telemetry.stands_by, telemetry.begins, telemetry.works, telemetry.stands_by):
                step()
                found += [await ready(), await leads()]
        await tasks.end()
        assert found == [500, 200, False, 500, True, 200, True, 200, False]
        with pytest.raises(OSError, match=r".*"):
            await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080),
        (":9090", "127.0.0.1", 9090),
        ("[::]:8080", "::", 8080),
        ("a.b:1", "a.b", 1),
    ],
)
def test_addresses_are_read(text: str, host: str, port: int) -> None:
    found = metrics_endpoint_settings(text)
    assert found is not None
    assert (found.host, found.port) == (host, port)


@pytest.mark.parametrize("text", ["", "8080", "host:", "host:99999", "::1:80", "host:eighty"])
def test_what_is_no_address_is_told_with_how_to_write_one(text: str) -> None:
    with pytest.raises(UserError, match="HOST:PORT"):
        metrics_endpoint_settings(text)


def test_the_door_can_be_left_out() -> None:
    assert metrics_endpoint_settings("none") is None


@virtual
async def test_it_is_counted_how_many_objects_wait_to_be_looked_at(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        telemetry = Telemetry("1.0", cluster.clock, Measured())
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        choice = structs.replace(run_choice(read_run_files([])), controllers=("advisor",))
        await start_shoal(tasks, lambda _: cluster.api, choice, telemetry)
        text = text_of(telemetry.registry.read()).decode()
        assert [line.split(" ")[0] for line in text.splitlines() if line.startswith("workqueue_depth{")] == [
            'workqueue_depth{name="shoal-advisor"}',
        ]
        await tasks.end()


@virtual
async def test_objects_that_wait_are_added_up_over_the_loops_of_a_part(tmp_path: Path) -> None:
    async def nothing(_key: Key) -> None:
        return None

    async with small_cluster(tmp_path) as cluster:
        tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
        context, _idle = tasks.context("busy", cluster.api), tasks.context("idle", cluster.api)
        loops = [Loop(context, nothing) for _ in range(2)]
        for number, loop in enumerate(loops):
            for name in range(number + 1):
                loop.wake(("default", str(name)))
        assert tasks.waiting() == [("busy", 3)]
        await tasks.end()


@virtual
async def test_gangs_that_wait_and_work_that_is_not_saved_are_measured(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        read = Read(cluster)
        read.process.start()
        await add_node(cluster, "n1", gpus=8)
        saves = {"shoal.dev/checkpoint-every": "1h"}
        saving = pod("saving", gpus=2)
        saving["metadata"]["annotations"] = saves
        await cluster.create(PODS, saving)
        await cluster.until(lambda: is_bound(cluster, "saving"))
        # Six GPUs are free: as many as the second gang needs, which asks for a node that does not exist.
        for name, gpus in (("big", 7), ("small", 5)):
            for at in range(2):
                member = pod(f"{name}-{at}", gpus=gpus if at else 1, nodeSelector={"none": "there"})
                member["metadata"]["labels"] = {LIGHT_GROUP_LABEL: name, LIGHT_MINIMUM_LABEL: "2"}
                await cluster.create(PODS, member)
        await cluster.pass_time(600)
        assert [read[f'shoal_waiting_gangs{{gpus="{state}"}}'] for state in ("free", "short")] == [1, 1]
        assert 500 < read['shoal_unsaved_work_seconds{namespace="default",pod="saving",node="n1"}'] < 700
