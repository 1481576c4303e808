"""A call to the container runtime that fails, hangs or loses its connection ends no pod and starts none twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.fake_cri import Fault, How
from build.kubelet_on_cri import KubeletOnCri, kubelet_on_cri
from shoal.client.item import Item
from shoal.client.kind import NODES, PODS
from shoal.client.port import Deletion

_PROBED = {"readinessProbe": {"exec": {"command": ["true"]}}, "imagePullPolicy": "Always"}
_OF_A_START = (
    "Status", "RunPodSandbox", "PodSandboxStatus", "ListPodSandbox", "CreateContainer", "StartContainer",
    "ListContainers", "ExecSync", "ImageStatus", "PullImage",
)  # fmt: skip
_OF_A_RESTART = ("RemoveContainer", "ContainerStatus", "ListContainers", "StartContainer", "CreateContainer")
_OF_AN_END = (
    "StopContainer", "StopPodSandbox", "RemovePodSandbox", "ContainerStatus", "ListContainers", "ListPodSandbox"
)  # fmt: skip
pytestmark = pytest.mark.slow
every_way = pytest.mark.parametrize("how", ["error", "hang", "lost"])
before_and_after = pytest.mark.parametrize("is_after", [False, True], ids=["before its effect", "after its effect"])


def watch_claims(machine: KubeletOnCri) -> list[str]:
    """Filled with the names of pods that are reported as running although the runtime never started them."""
    wrong: list[str] = []

    def look(_: Item | None, after: Item | None) -> None:
        if after is None:
            return
        obj = after.obj()
        for one in obj.get("status", {}).get("containerStatuses") or ():
            run = (after.uid, one["name"], one["restartCount"])
            if "running" in one["state"] and not machine.cri.starts[run]:
                wrong.append(after.name)

    machine.cluster.informers.of(PODS).on_change(look)
    return wrong


def started_once(machine: KubeletOnCri) -> bool:
    return all(times == 1 for times in machine.cri.starts.values())


@pytest.mark.parametrize("call", _OF_A_START)
@every_way
@before_and_after
async def test_a_pod_starts_once_in_spite_of_a_fault(tmp_path: Path, call: str, how: How, is_after: bool) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        wrong = watch_claims(machine)
        other = await machine.create("other", "serve")
        await machine.until_ready("other")
        machine.cri.faults[call] = Fault(how, is_after, left=2)

        uid = await machine.create("faulty", "serve", container=_PROBED)
        await machine.until_ready("faulty")

        assert machine.cri.faults[call].left < 2
        assert machine.cri.running(uid, "main") == machine.cri.running(other, "main") == 1
        assert started_once(machine)
        assert not wrong


@pytest.mark.parametrize("call", _OF_A_RESTART)
@every_way
@before_and_after
async def test_a_container_restarts_in_spite_of_a_fault(tmp_path: Path, call: str, how: How, is_after: bool) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        uid = await machine.create("crashing", "exit", "3")
        await machine.until(lambda: machine.cri.starts[(uid, "main", 1)])
        machine.cri.faults[call] = Fault(how, is_after, left=2)

        await machine.until(lambda: machine.cri.faults[call].left < 2 and machine.cri.starts[(uid, "main", 3)])

        status = (await machine.cluster.get(PODS, "crashing"))["status"]["containerStatuses"][0]
        assert status["restartCount"] >= 2
        assert started_once(machine)


@pytest.mark.parametrize("call", _OF_AN_END)
@every_way
@before_and_after
async def test_a_deleted_pod_ends_in_spite_of_a_fault(tmp_path: Path, call: str, how: How, is_after: bool) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        uid = await machine.create("deleted", "serve")
        await machine.until_ready("deleted")
        machine.cri.faults[call] = Fault(how, is_after, left=2)

        await machine.cluster.delete(PODS, "deleted", Deletion(grace_s=1))
        await machine.until_gone("deleted")
        await machine.until(lambda: not machine.cri.sandboxes)

        assert machine.cri.running(uid, "main") == 0
        assert not machine.cri.containers
        assert started_once(machine)


@pytest.mark.parametrize(
    ("call", "reason", "event"),
    [
        ("RunPodSandbox", "ContainerCreating", "FailedCreatePodSandBox"),
        ("ListPodSandbox", "ContainerCreating", "FailedCreatePodSandBox"),
        ("CreateContainer", "CreateContainerError", "Failed"),
        ("StartContainer", "RunContainerError", "Failed"),
        ("ImageStatus", "ImageInspectError", "Failed"),
        ("PullImage", "ImagePullBackOff", "BackOff"),
    ],
)
async def test_a_lasting_fault_is_the_reason_why_a_pod_waits(
    tmp_path: Path, call: str, reason: str, event: str
) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        machine.cri.faults[call] = Fault("error", left=10_000)
        await machine.create("waiting", "serve", container=_PROBED)

        await machine.until_waiting("waiting", reason, "rpc error: code = Unknown desc = injected")

        async def is_told() -> bool:
            return any(one["reason"] == event for one in await machine.cluster.events("waiting"))

        await machine.until(is_told)


async def test_the_node_says_that_its_runtime_does_not_answer(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.create("running", "serve")
        await machine.until_ready("running")
        machine.cri.faults["ListContainers"] = Fault("error", left=10_000)

        async def is_unhealthy(wanted: str) -> bool:
            conditions = (await machine.cluster.get(NODES, "machine"))["status"]["conditions"]
            return any((one["type"], one["status"]) == ("ContainerRuntimeUnhealthy", wanted) for one in conditions)

        await machine.until(lambda: is_unhealthy("True"))
        assert "running" in await machine.state("running")

        machine.cri.faults.clear()
        await machine.until(lambda: is_unhealthy("False"))


async def test_a_container_that_cannot_be_probed_is_not_restarted(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        probe = {"exec": {"command": ["true"]}, "periodSeconds": 1, "failureThreshold": 1}
        uid = await machine.create("probed", "serve", container={"livenessProbe": probe})
        await machine.until_ready("probed")
        for call in ("ExecSync", "ListContainers"):
            machine.cri.faults[call] = Fault("error", left=20)
            await machine.until(lambda call=call: machine.cri.faults[call].left == 0)

        await machine.until(lambda: machine.cri.calls["ExecSync"] > 25)

        assert machine.cri.starts == {(uid, "main", 0): 1}


async def test_a_container_whose_probe_fails_is_restarted(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 2}
        uid = await machine.create("failing", "serve", container={"livenessProbe": probe})

        await machine.until(lambda: machine.cri.starts[(uid, "main", 1)])


async def test_a_killed_kubelet_continues_with_the_same_containers(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        running = await machine.create("running", "serve")
        ended = await machine.create("ended", "serve", restartPolicy="Never")
        await machine.until_ready("running")
        await machine.until_ready("ended")
        await machine.kill()
        machine.cri.end(ended, "main", 4)

        later = KubeletOnCri(machine.cluster, machine.cri, tmp_path)

        async def has_ended() -> bool:
            return bool((await later.state("ended")).get("terminated", {}).get("exitCode") == 4)

        await later.until(has_ended)
        assert machine.cri.running(running, "main") == 1
        assert started_once(later)
        await later.kill()


async def test_a_container_that_is_gone_when_a_later_kubelet_starts_does_not_run_again(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        uid = await machine.create("gone", "serve", restartPolicy="Never")
        await machine.until_ready("gone")
        await machine.kill()
        machine.cri.containers.clear()

        later = KubeletOnCri(machine.cluster, machine.cri, tmp_path)

        async def is_unknown() -> bool:
            return bool((await later.state("gone")).get("terminated", {}).get("reason") == "ContainerStatusUnknown")

        await later.until(is_unknown)
        assert machine.cri.starts == {(uid, "main", 0): 1}
        await later.kill()


async def test_a_kubelet_that_was_killed_before_the_start_starts_the_same_container(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        machine.cri.faults["StartContainer"] = Fault("hang", left=10_000)
        uid = await machine.create("created", "serve")
        await machine.until(lambda: machine.cri.calls["StartContainer"])
        await machine.kill()
        machine.cri.faults.clear()

        later = KubeletOnCri(machine.cluster, machine.cri, tmp_path)
        await later.until_ready("created")

        assert machine.cri.starts == {(uid, "main", 0): 1}
        await later.kill()
