"""Nodes that fail, are cut off, boot or are taken away; a fleet that is killed and started again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from build.fleets import fleet_cluster, machine, pod, statuses
from build.virtual_time import virtual
from shoal.client.item import Item, Obj
from shoal.client.kind import LEASES, NODES, PODS
from shoal.client.kubelet.pod_facts import PartialPod, summary_of
from shoal.client.port import Deletion
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.kubelets.settings import FleetSettings


def _fault(kind: str, name: str = "one") -> Obj:
    return {"metadata": {"annotations": {"shoal.dev/fault": json.dumps({"kind": kind, "id": name})}}}


_HEAL: Obj = {"metadata": {"annotations": {"shoal.dev/fault": None}}}


@virtual
async def test_pods_run_on_when_the_fleet_is_killed_and_started_again(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=8)) as run:
        await run.cluster.create(PODS, pod(gpus=2, run_for="60s", restartPolicy="Never"))
        before = statuses(await run.until_phase("pod", "Running"))["main"]
        began = run.cluster.clock.seconds()
        await run.kill()
        await run.cluster.pass_time(20)
        run.start()
        await run.cluster.pass_time(5)
        after = statuses(await run.cluster.get(PODS, "pod"))["main"]
        assert after == before
        done = await run.until_phase("pod", "Succeeded", 100)
        assert abs(run.cluster.clock.seconds() - began - 60) < 2
        assert statuses(done)["main"]["containerID"] == before["containerID"]


@virtual
async def test_a_deletion_that_was_missed_is_finished(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod())
        await run.until_phase("pod", "Running")
        await run.kill()
        await run.cluster.delete(PODS, "pod")
        await run.cluster.pass_time(100)
        run.start()
        await run.until_gone("pod", 5)


@virtual
async def test_a_failed_node_is_silent_and_its_pods_start_again_after_its_boot(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        cluster = run.cluster
        await cluster.create(PODS, pod("service"))
        await cluster.create(PODS, pod("work", restartPolicy="Never", run_for="20s"))
        await run.until_phase("service", "Running")
        await run.until_phase("work", "Running")
        boot = (await cluster.get(NODES, "node-0"))["status"]["nodeInfo"]["bootID"]
        await cluster.patch(NODES, "node-0", _fault("fail"))
        await cluster.pass_time(1)
        lease = (await cluster.get(LEASES, "node-0", "kube-node-lease"))["spec"]["renewTime"]
        await cluster.pass_time(120)
        assert (await cluster.get(LEASES, "node-0", "kube-node-lease"))["spec"]["renewTime"] == lease
        assert (await cluster.get(PODS, "work"))["status"]["phase"] == "Running"
        await cluster.patch(NODES, "node-0", _HEAL)
        await cluster.pass_time(3)
        service = await cluster.get(PODS, "service")
        assert statuses(service)["main"]["restartCount"] == 1
        assert statuses(service)["main"]["lastState"]["terminated"]["exitCode"] == 255
        assert statuses(service)["main"]["state"]["running"]
        assert (await cluster.get(PODS, "work"))["status"]["phase"] == "Failed"
        assert (await cluster.get(NODES, "node-0"))["status"]["nodeInfo"]["bootID"] != boot
        assert (await cluster.get(LEASES, "node-0", "kube-node-lease"))["spec"]["renewTime"] > lease


@virtual
@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_boot_starts_nothing_of_pods_that_are_being_deleted(tmp_path: Path, is_restarted: bool) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=1, mig_strategy="mixed")) as run:
        cluster = run.cluster
        for name in ("deleted", "evicted"):
            await cluster.create(PODS, pod(name))
            await run.until_phase(name, "Running")
        await cluster.create(PODS, pod("waits", start_delay="30s"))
        await cluster.patch(NODES, "node-0", _fault("fail"))
        await cluster.pass_time(1)
        for name in ("deleted", "waits"):
            await cluster.delete(PODS, name)
        await cluster.patch(PODS, "evicted", {"status": {"phase": "Failed"}}, "status")
        if is_restarted:
            await run.kill()
            run.start()
        await cluster.pass_time(10)
        await cluster.patch(NODES, "node-0", _HEAL)
        await run.until_gone("deleted", 5)
        await run.until_gone("waits", 5)
        await cluster.pass_time(20)
        for name in ("deleted", "evicted", "waits"):
            said = [event for event in await cluster.events(name) if event["reason"] == "Started"]
            assert sum(event.get("count") or 1 for event in said) == (name != "waits"), name
        assert (await cluster.get(PODS, "evicted"))["status"]["phase"] == "Failed"


@virtual
async def test_a_layout_that_is_refused_is_a_warning(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=2, mig_strategy="mixed")) as run:
        await run.cluster.pass_time(1)
        for layout in ("all-nonsense", "all-1g.10gb"):
            await run.cluster.patch(NODES, "node-0", {"metadata": {"labels": {"nvidia.com/mig.config": layout}}})
            await run.cluster.pass_time(2)
        said = [one for one in await run.cluster.events("node-0") if one["reason"] == "GpuConfigChanged"]
        types = {one["message"].split(";")[0]: one["type"] for one in said}
        assert types == {
            "MIG layout all-nonsense was not applied: no such layout": "Warning",
            "MIG layout all-1g.10gb was applied": "Normal",
        }


@virtual
async def test_a_node_that_was_cut_off_tells_what_ended_and_ends_what_was_deleted(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        cluster = run.cluster
        for name in ("kept", "deleted", "forced"):
            await cluster.create(PODS, pod(name))
        await cluster.create(PODS, pod("work", run_for="20s", restartPolicy="Never"))
        for name in ("kept", "deleted", "forced", "work"):
            await run.until_phase(name, "Running")
        await cluster.patch(NODES, "node-0", _fault("partition"))
        await cluster.pass_time(1)
        cut = cluster.clock.seconds()
        await cluster.delete(PODS, "deleted")
        await cluster.delete(PODS, "forced", Deletion(grace_s=0))
        await cluster.pass_time(100)
        assert (await cluster.get(PODS, "work"))["status"]["phase"] == "Running"
        assert any(one["metadata"]["name"] == "deleted" for one in await cluster.pods())
        await cluster.patch(NODES, "node-0", _HEAL)
        await run.until_gone("deleted", 5)
        work = await run.until_phase("work", "Succeeded", 5)
        assert statuses(work)["main"]["state"]["terminated"]["finishedAt"] < "2026-01-01T00:00:40Z"
        assert cluster.clock.seconds() - cut > 100
        assert statuses(await cluster.get(PODS, "kept"))["main"]["restartCount"] == 0
        node = run.fleet.node("node-0")
        assert node is not None
        assert len(node.pods.runs) == 2


@virtual
async def test_a_reboot_ends_by_itself_and_takes_its_annotation_away(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        cluster = run.cluster
        await cluster.create(PODS, pod())
        await run.until_phase("pod", "Running")
        await cluster.patch(NODES, "node-0", _fault("reboot"))
        await cluster.pass_time(20)
        ready = _conditions(await cluster.get(NODES, "node-0"))["Ready"]
        assert (ready["status"], ready["message"]) == ("False", "node is shutting down")
        await cluster.pass_time(40)
        node = await cluster.get(NODES, "node-0")
        assert _conditions(node)["Ready"]["status"] == "True"
        assert "shoal.dev/fault" not in node["metadata"]["annotations"]
        said = [event["message"] for event in await cluster.events("node-0") if event["reason"] == "Rebooted"]
        assert said == [f"Node node-0 has been rebooted, boot id: {node['status']['nodeInfo']['bootID']}"]
        assert statuses(await cluster.get(PODS, "pod"))["main"]["restartCount"] == 1


@virtual
async def test_a_spot_node_warns_ends_its_pods_and_goes(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        cluster = run.cluster
        await cluster.create(PODS, pod())
        await run.until_phase("pod", "Running")
        await cluster.patch(NODES, "node-0", _fault("spot-interrupt"))
        await cluster.pass_time(60)
        node = await cluster.get(NODES, "node-0")
        assert node["spec"]["unschedulable"] is True
        assert "aws-node-termination-handler/spot-itn" in {taint["key"] for taint in node["spec"]["taints"]}
        assert (await cluster.get(PODS, "pod"))["status"]["phase"] == "Running"
        await cluster.pass_time(70)
        ended = await cluster.get(PODS, "pod")
        assert (ended["status"]["phase"], ended["status"]["reason"]) == ("Failed", "Terminated")
        assert _conditions(ended)["DisruptionTarget"]["reason"] == "TerminationByKubelet"
        assert await cluster.all(NODES) == []


@virtual
async def test_a_broken_gpu_ends_the_programs_on_it_and_is_no_more_offered(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=8)) as run:
        cluster = run.cluster
        await cluster.create(PODS, pod("all", gpus=8, restartPolicy="Never"))
        await run.until_phase("all", "Running")
        await cluster.patch(NODES, "node-0", {"metadata": {"annotations": {"shoal.dev/gpu-faults": '{"3": 79}'}}})
        failed = await run.until_phase("all", "Failed")
        assert "Xid" in statuses(failed)["main"]["state"]["terminated"]["message"]
        await cluster.pass_time(1)
        status = (await cluster.get(NODES, "node-0"))["status"]
        assert (status["capacity"]["nvidia.com/gpu"], status["allocatable"]["nvidia.com/gpu"]) == ("8", "7")
        await cluster.patch(NODES, "node-0", {"metadata": {"annotations": {"shoal.dev/gpu-faults": None}}})
        await cluster.pass_time(1)
        assert (await cluster.get(NODES, "node-0"))["status"]["allocatable"]["nvidia.com/gpu"] == "8"


@virtual
async def test_a_fault_that_cannot_be_read_is_an_event_on_the_node(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.pass_time(1)
        await run.cluster.patch(NODES, "node-0", {"metadata": {"annotations": {"shoal.dev/fault": '{"kind":"melt"}'}}})
        await run.cluster.pass_time(1)
        said = [event for event in await run.cluster.events("node-0") if event["reason"] == "InvalidAnnotation"]
        assert len(said) == 1
        assert "fail, partition, reboot, spot-interrupt" in said[0]["message"]


@virtual
async def test_a_fault_that_cannot_be_read_does_not_hold_up_what_else_the_node_is_told(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine(gpus=2, mig_strategy="mixed")) as run:
        await run.cluster.pass_time(1)
        said = {"annotations": {"shoal.dev/fault": "melt", "shoal.dev/gpu-faults": '{"1": 79}'}}
        await run.cluster.patch(NODES, "node-0", {"metadata": said})
        await run.cluster.pass_time(1)
        assert (await run.cluster.get(NODES, "node-0"))["status"]["allocatable"]["nvidia.com/gpu"] == "1"
        wrong = {"annotations": {"shoal.dev/gpu-faults": "7"}, "labels": {"nvidia.com/mig.config": "all-1g.10gb"}}
        await run.cluster.patch(NODES, "node-0", {"metadata": wrong})
        await run.cluster.pass_time(2)
        node = await run.cluster.get(NODES, "node-0")
        assert node["metadata"]["labels"]["nvidia.com/mig.config.state"] == "success"
        about = [event["message"] for event in await run.cluster.events("node-0")]
        assert sum(words.startswith("shoal.dev/fault:") for words in about) == 1
        assert sum(words.startswith("shoal.dev/gpu-faults:") for words in about) == 1


@virtual
async def test_a_fault_that_breaks_the_code_is_an_event_on_the_node(tmp_path: Path) -> None:
    class BrokenGpus(DeviceManager):
        def stop(self, uid: str, container: str) -> None:
            raise ZeroDivisionError("no programs")

    async with fleet_cluster(tmp_path, machine(gpus=1), settings=FleetSettings(gpus=BrokenGpus)) as run:
        await run.cluster.create(PODS, pod(gpus=1, terminationGracePeriodSeconds=0))
        await run.until_phase("pod", "Running")
        await run.cluster.patch(NODES, "node-0", _fault("spot-interrupt"))
        await run.cluster.pass_time(125)
        said = [event["message"] for event in await run.cluster.events("node-0") if event["reason"] == "FaultFailed"]
        assert said == ["ZeroDivisionError: no programs"]


@virtual
async def test_a_spot_notice_that_is_taken_back_in_time_leaves_the_node(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.pass_time(1)
        await run.cluster.patch(NODES, "node-0", _fault("spot-interrupt"))
        await run.cluster.pass_time(60)
        await run.cluster.patch(NODES, "node-0", _HEAL)
        await run.cluster.pass_time(300)
        node = await run.cluster.get(NODES, "node-0")
        assert not node["spec"].get("unschedulable")
        assert _conditions(node)["Ready"]["status"] == "True"


@virtual
async def test_healing_a_node_looks_at_its_own_pods_alone(tmp_path: Path) -> None:
    read: list[str] = []

    def summary(item: Item) -> PartialPod:
        read.append(item.name)
        return summary_of(item)

    async with fleet_cluster(tmp_path, machine(), machine("node-1"), summary_of=summary) as run:
        cluster = run.cluster
        for number in range(30):
            await cluster.create(PODS, pod(f"other-{number}", "node-1"))
        await cluster.create(PODS, pod())
        await cluster.patch(NODES, "node-0", _fault("fail"))
        await cluster.pass_time(2)
        read.clear()
        await cluster.patch(NODES, "node-0", _HEAL)
        await run.until_phase("pod", "Running")
        assert set(read) == {"pod"}


@virtual
async def test_a_node_that_people_delete_stays_deleted_until_the_fleet_starts_again(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.pass_time(1)
        await run.cluster.delete(NODES, "node-0")
        await run.cluster.pass_time(700)
        assert await run.cluster.all(NODES) == []
        await run.kill()
        run.start()
        await run.cluster.pass_time(1)
        assert len(await run.cluster.all(NODES)) == 1


def _conditions(obj: Obj) -> dict[str, Obj]:
    return {one["type"]: one for one in obj["status"]["conditions"]}


@virtual
async def test_a_fleet_started_while_a_node_lies_there_still_finds_its_containers_lost(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        cluster = run.cluster
        await cluster.create(PODS, pod())
        await run.until_phase("pod", "Running")
        await cluster.patch(NODES, "node-0", _fault("fail"))
        await cluster.pass_time(5)
        await run.kill()
        run.start()
        await cluster.pass_time(60)
        assert statuses(await cluster.get(PODS, "pod"))["main"]["restartCount"] == 0
        await cluster.patch(NODES, "node-0", _HEAL)
        await cluster.pass_time(3)
        assert statuses(await cluster.get(PODS, "pod"))["main"]["restartCount"] == 1


@virtual
async def test_a_reboot_that_is_taken_back_at_once_leaves_the_node_up(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.pass_time(1)
        await run.cluster.patch(NODES, "node-0", _fault("reboot"))
        await run.cluster.patch(NODES, "node-0", _HEAL)
        await run.cluster.pass_time(120)
        assert _conditions(await run.cluster.get(NODES, "node-0"))["Ready"]["status"] == "True"
        node = run.fleet.node("node-0")
        assert node is not None
        assert node.is_reachable()
