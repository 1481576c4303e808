"""Pods through their life on simulated nodes."""

from __future__ import annotations

from pathlib import Path

from build.fleets import fleet_cluster, machine, pod, statuses
from build.small_clusters import ADMIN, SmallCluster
from build.virtual_time import virtual
from shoal.client.clock import LoopClock
from shoal.client.item import Item
from shoal.client.kind import PODS, Kind
from shoal.client.port import Deletion, Patch
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.embedded.machines.machine import Sharing


@virtual
async def test_a_pod_of_a_job_runs_ten_seconds_and_succeeds(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod(owner="Job", restartPolicy="Never"))
        running = await run.until_phase("pod", "Running")
        assert statuses(running)["main"]["state"]["running"]
        assert {one["type"]: one["status"] for one in running["status"]["conditions"]}["Ready"] == "True"
        started = run.cluster.clock.seconds()
        done = await run.until_phase("pod", "Succeeded")
        assert 9 <= run.cluster.clock.seconds() - started <= 11
        assert statuses(done)["main"]["state"]["terminated"]["reason"] == "Completed"


@virtual
async def test_a_pod_that_is_nobodys_and_not_restarted_for_ever_succeeds_after_ten_seconds(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        for policy in ("Never", "OnFailure", "Always"):
            await run.cluster.create(PODS, pod(policy.lower(), restartPolicy=policy))
        await run.until_phase("never", "Running")
        await run.cluster.pass_time(9)
        assert (await run.cluster.get(PODS, "never"))["status"]["phase"] == "Running"
        await run.until_phase("never", "Succeeded", 2)
        await run.until_phase("onfailure", "Succeeded", 2)
        await run.cluster.pass_time(60)
        assert (await run.cluster.get(PODS, "always"))["status"]["phase"] == "Running"


@virtual
async def test_a_time_that_is_asked_for_while_a_pod_runs_counts(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod("endless"))
        await run.cluster.create(PODS, pod("long", run_for="1h", restartPolicy="Never"))
        await run.until_phase("endless", "Running")
        await run.until_phase("long", "Running")
        began = run.cluster.clock.seconds()
        await run.cluster.pass_time(5)
        for name in ("endless", "long"):
            await run.cluster.patch(PODS, name, {"metadata": {"annotations": {"shoal.dev/run-for": "20s"}}})
        await run.until_phase("long", "Succeeded", 30)
        assert 19 <= run.cluster.clock.seconds() - began <= 21
        await run.cluster.pass_time(1)
        assert statuses(await run.cluster.get(PODS, "endless"))["main"]["restartCount"] == 1


@virtual
async def test_a_duration_of_very_many_parts_is_an_event_and_not_read_again_and_again(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod(run_for="1ms" * 66_000, restartPolicy="Never"))
        await run.until_phase("pod", "Running")
        await run.cluster.pass_time(5)
        said = [event for event in await run.cluster.events("pod") if event["reason"] == "InvalidAnnotation"]
        assert "longer than a duration may be" in said[0]["message"]
        await run.until_phase("pod", "Succeeded", 10)


@virtual
async def test_a_service_pod_is_deleted_within_its_grace(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=8)) as run:
        await run.cluster.create(PODS, pod(gpus=2))
        running = await run.until_phase("pod", "Running")
        held = statuses(running)["main"]["allocatedResourcesStatus"]
        assert held[0]["name"] == "nvidia.com/gpu"
        assert len(held[0]["resources"]) == 2
        await run.cluster.delete(PODS, "pod")
        await run.until_gone("pod", 2)


@virtual
async def test_a_pod_that_cannot_have_its_devices_is_refused_in_the_kubelets_words(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=2)) as run:
        await run.cluster.create(PODS, pod(gpus=4))
        failed = await run.until_phase("pod", "Failed")
        assert failed["status"]["reason"] == "UnexpectedAdmissionError"
        assert failed["status"]["message"] == (
            "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
            "Requested: 4, Available: 2, which is unexpected"
        )
        assert "containerStatuses" not in failed["status"]


@virtual
async def test_processor_that_others_hold_is_refused_until_they_are_over(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        for name in ("first", "second", "third"):
            asked = pod(name, run_for="30s", restartPolicy="Never")
            asked["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "60"}}
            if name == "third":
                await run.until_phase("first", "Succeeded")
            await run.cluster.create(PODS, asked)
        failed = await run.until_phase("second", "Failed")
        assert failed["status"]["reason"] == "OutOfcpu"
        assert failed["status"]["message"] == (
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 60000, used: 60000, capacity: 96000"
        )
        await run.until_phase("third", "Succeeded")


@virtual
async def test_a_pod_that_wants_another_node_is_refused(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(labels={"zone": "a"})) as run:
        await run.cluster.create(PODS, pod("right", nodeSelector={"zone": "a"}))
        await run.cluster.create(PODS, pod("wrong", nodeSelector={"zone": "b"}))
        await run.until_phase("right", "Running")
        failed = await run.until_phase("wrong", "Failed")
        assert failed["status"]["reason"] == "NodeAffinity"


@virtual
async def test_addresses_are_the_pods_own_and_a_host_network_pod_has_the_nodes(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        for name in ("one", "two", "host"):
            await run.cluster.create(PODS, pod(name, hostNetwork=name == "host"))
        found = [(await run.until_phase(name, "Running"))["status"] for name in ("one", "two", "host")]
        assert len({status["podIP"] for status in found}) == 3
        assert found[2]["podIP"] == found[2]["hostIP"]
        assert found[0]["podIPs"] == [{"ip": found[0]["podIP"]}]


@virtual
async def test_an_annotation_that_cannot_be_read_is_an_event_and_the_default_holds(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod(owner="Job", restartPolicy="Never", run_for="soon"))
        await run.until_phase("pod", "Succeeded", 15)
        said = [event for event in await run.cluster.events("pod") if event["reason"] == "InvalidAnnotation"]
        assert [(event["type"], event["count"]) for event in said] == [("Warning", 1)]
        assert said[0]["message"].startswith('shoal.dev/run-for: "soon" is not a duration')


@virtual
async def test_a_program_that_finds_no_memory_on_its_gpu_ends_and_says_so(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=1)) as run:
        await run.cluster.create(PODS, pod(gpus=1, gpu_memory="200Gi", restartPolicy="Never", run_for="1h"))
        failed = await run.until_phase("pod", "Failed")
        ended = statuses(failed)["main"]["state"]["terminated"]
        assert ended["exitCode"] == 1
        assert "out of memory" in ended["message"]
        node = run.fleet.node("node-0")
        assert node is not None
        assert any("out of memory" in line.text for line in node.log(failed["metadata"]["uid"], "main"))


@virtual
async def test_work_takes_twice_as_long_beside_a_busy_neighbour(tmp_path: Path) -> None:
    shared = machine(gpus=1, sharing=Sharing("time-slicing", 2))
    async with fleet_cluster(tmp_path, shared) as run:
        for name in ("one", "two"):
            await run.cluster.create(PODS, pod(name, gpus=1, run_for="60s", restartPolicy="Never"))
        await run.until_phase("two", "Running")
        began = run.cluster.clock.seconds()
        await run.until_phase("one", "Succeeded", 300)
        assert run.cluster.clock.seconds() - began > 90


@virtual
async def test_a_pod_whose_neighbour_left_goes_on_at_full_pace(tmp_path: Path) -> None:
    shared = machine(gpus=1, sharing=Sharing("time-slicing", 2))
    async with fleet_cluster(tmp_path, shared) as run:
        for name in ("one", "two"):
            await run.cluster.create(PODS, pod(name, gpus=1, run_for="60s", restartPolicy="Never"))
        await run.until_phase("two", "Running")
        began = run.cluster.clock.seconds()
        await run.cluster.delete(PODS, "two", Deletion(grace_s=0))
        await run.until_phase("one", "Succeeded", 300)
        assert run.cluster.clock.seconds() - began < 63


@virtual
async def test_readiness_gates_of_others_decide_with(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod(readinessGates=[{"conditionType": "example.com/go"}]))
        running = await run.until_phase("pod", "Running")
        ready = next(one for one in running["status"]["conditions"] if one["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "ReadinessGatesNotReady")
        go = {"type": "example.com/go", "status": "True"}
        await run.cluster.patch(
            PODS, "pod", {"status": {"conditions": [*running["status"]["conditions"], go]}}, "status"
        )
        await run.cluster.pass_time(1)
        after = (await run.cluster.get(PODS, "pod"))["status"]["conditions"]
        assert next(one for one in after if one["type"] == "Ready")["status"] == "True"


@virtual
async def test_a_pod_that_named_its_node_itself_counts_as_scheduled(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod())
        running = await run.until_phase("pod", "Running")
        said = {one["type"]: one["status"] for one in running["status"]["conditions"]}
        assert said["PodScheduled"] == "True"


@virtual
async def test_a_namesake_that_comes_later_is_another_pod(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        first = await run.cluster.create(PODS, pod())
        await run.until_phase("pod", "Running")
        await run.cluster.delete(PODS, "pod", Deletion(grace_s=0))
        second = await run.cluster.create(PODS, pod(run_for="5s", restartPolicy="Never"))
        done = await run.until_phase("pod", "Succeeded")
        assert done["metadata"]["uid"] == second["metadata"]["uid"] != first["metadata"]["uid"]


@virtual
async def test_losses_are_told_by_pods_that_end_by_themselves_alone(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=8)) as run:
        fetch = {"name": "fetch", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        pods = {
            "server": pod("server", gpus=1),
            "job": pod("job", gpus=1, restartPolicy="OnFailure"),
            "timed": pod("timed", gpus=1, run_for="1h"),
            "prepared": pod("prepared", gpus=1, initContainers=[fetch]),
        }
        made = {name: (await run.cluster.create(PODS, one))["metadata"]["uid"] for name, one in pods.items()}
        await run.cluster.pass_time(60)
        node = run.fleet.node("node-0")
        assert node is not None
        told = {name: [line.text for line in node.log(uid, "main")] for name, uid in made.items()}
        assert told["server"] == told["prepared"] == ["starting main (nginx)", "ready"]
        assert all(any("loss" in line for line in told[name]) for name in ("job", "timed"))
        assert "ready" not in [line.text for line in node.log(made["prepared"], "fetch")]


@virtual
async def test_logs_have_the_annotations_lines_and_those_of_the_run_before(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        said = pod(log="hello\nworld", run_for="5s", exit_code="1", restartPolicy="OnFailure")
        uid = (await run.cluster.create(PODS, said))["metadata"]["uid"]
        await run.until_phase("pod", "Running")
        node = run.fleet.node("node-0")
        assert node is not None
        assert [line.text for line in node.log(uid, "main")] == ["hello"]
        await run.cluster.pass_time(2)
        assert [line.text for line in node.log(uid, "main")] == ["hello", "world"]
        await run.cluster.pass_time(4)
        assert [line.text for line in node.log(uid, "main", previous=True)] == ["hello", "world"]


@virtual
async def test_devices_that_are_no_gpus_are_counted_too(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(has={"vpc.amazonaws.com/efa": "4"})) as run:
        for name, count in (("first", "3"), ("second", "2")):
            asked = pod(name)
            asked["spec"]["containers"][0]["resources"] = {"limits": {"vpc.amazonaws.com/efa": count}}
            await run.cluster.create(PODS, asked)
            await run.cluster.pass_time(1)
        await run.until_phase("first", "Running")
        assert (await run.until_phase("second", "Failed"))["status"]["message"] == (
            "Pod was rejected: Allocate failed due to requested number of devices unavailable for "
            "vpc.amazonaws.com/efa. Requested: 2, Available: 1, which is unexpected"
        )


class LateAnswers(InsideApi):
    """Changes are stored at once, and their answers come five seconds later."""

    clock: LoopClock

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        item = await super().patch(kind, namespace, name, patch, subresource)
        await self.clock.sleep(5)
        return item


@virtual
async def test_devices_of_a_pod_that_ended_are_free_once_its_end_is_seen(tmp_path: Path) -> None:
    def late(cluster: SmallCluster) -> LateAnswers:
        api = LateAnswers(cluster.plane, ADMIN, "kubelets")
        api.clock = cluster.clock
        return api

    async with fleet_cluster(tmp_path, machine(gpus=1), through=late) as run:
        await run.cluster.create(PODS, pod("first", gpus=1, restartPolicy="Never", run_for="20s"))
        await run.until_phase("first", "Succeeded")
        await run.cluster.create(PODS, pod("second", gpus=1))
        await run.until_phase("second", "Running")
