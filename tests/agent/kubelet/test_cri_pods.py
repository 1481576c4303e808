"""Pods in containers have the kubelet's reasons and Events, and the settings of their spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.kubelet_on_cri import ADDRESS, KubeletOnCri, kubelet_on_cri
from shoal.agent.kubelet.cri.ends import LOG_BYTES, former_log
from shoal.agent.kubelet.runtime import RunKey
from shoal.agent.protos import cri_pb2 as messages
from shoal.client.kind import PODS, Kind
from shoal.client.port import Deletion

pytestmark = pytest.mark.slow
_RUNTIME_CLASSES = Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", is_namespaced=False)


async def event_reasons(machine: KubeletOnCri, name: str) -> list[str]:
    return [one["reason"] for one in await machine.cluster.events(name)]


async def status(machine: KubeletOnCri, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (await machine.cluster.get(PODS, name))["status"]
    return found


async def test_a_pod_has_the_address_of_its_network(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        env = [{"name": "OWN", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
        await machine.create("own", "serve", container={"env": env})
        await machine.create("hosts", "serve", hostNetwork=True)
        await machine.until_ready("own")
        await machine.until_ready("hosts")

        assert (await status(machine, "own"))["podIP"] == "10.88.0.7"
        assert (await status(machine, "own"))["hostIP"] == ADDRESS
        assert (await status(machine, "hosts"))["podIP"] == ADDRESS
        environments = [{one.key: one.value for one in config.envs} for config in machine.cri.configs.values()]
        assert {"OWN": "10.88.0.7"} in environments


async def test_a_pod_has_the_network_of_the_node_where_the_runtime_has_none(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        machine.cri.has_network = False
        await machine.create("shared", "serve")
        await machine.until_ready("shared")

        assert (await status(machine, "shared"))["podIP"] == ADDRESS


async def test_the_ids_of_the_runtime_are_reported(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.create("named", "serve")
        await machine.until_ready("named")

        said = (await status(machine, "named"))["containerStatuses"][0]

        assert said["containerID"] == f"fake://{next(iter(machine.cri.containers))}"
        assert said["imageID"] == "sha256:app:1"


async def test_an_absent_image_is_pulled_and_a_present_one_is_not(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.create("first", "serve")
        await machine.until_ready("first")
        await machine.create("second", "serve")
        await machine.until_ready("second")
        await machine.create("third", "serve", container={"imagePullPolicy": "Always"})
        await machine.until_ready("third")

        assert machine.cri.calls["PullImage"] == 2
        await machine.until(lambda: _has_events(machine, "first", "Pulling", "Pulled", "Created", "Started"))


async def _has_events(machine: KubeletOnCri, name: str, *reasons: str) -> bool:
    return {*reasons} <= {*await event_reasons(machine, name)}


async def test_an_image_that_does_not_exist_is_tried_again_with_growing_delays(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.create("none", "serve", container={"image": "none:1"})

        await machine.until_waiting(
            "none", "ImagePullBackOff", 'Back-off pulling image "none:1": ErrImagePull: rpc error'
        )
        machine.cri.registry.add("none:1")
        await machine.until_ready("none")

        assert machine.cri.calls["PullImage"] >= 2


async def test_an_image_that_must_be_present_is_not_pulled(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.create("never", "serve", container={"imagePullPolicy": "Never"})

        await machine.until_waiting("never", "ErrImageNeverPull", 'Container image "app:1" is not present')

        assert not machine.cri.calls["PullImage"]


async def test_a_pod_that_waits_for_its_image_can_be_deleted(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.create("none", "serve", container={"image": "none:1"})
        await machine.until_waiting("none", "ImagePullBackOff", "")

        await machine.cluster.delete(PODS, "none", Deletion(grace_s=1))
        await machine.until_gone("none")

        assert not machine.cri.sandboxes


async def test_a_container_that_must_not_be_root_is_not_started_as_root(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.create("root", "serve", securityContext={"runAsNonRoot": True})
        await machine.until_waiting(
            "root", "CreateContainerConfigError", "container has runAsNonRoot and image will run as root"
        )
        await machine.create("user", "serve", securityContext={"runAsNonRoot": True, "runAsUser": 7})
        await machine.until_ready("user")


async def test_the_handler_of_a_runtime_class_is_passed_on(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.cluster.create(_RUNTIME_CLASSES, {"metadata": {"name": "sandboxed"}, "handler": "kata"})
        await machine.create("handled", "serve", runtimeClassName="sandboxed")
        await machine.until_ready("handled")

        assert machine.cri.handlers == ["kata"]


async def test_the_containers_of_a_pod_share_its_volumes(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        field = {"fieldPath": "metadata.name"}
        sources = [{"downwardAPI": {"items": [{"path": f"n{number}", "fieldRef": field} for number in range(300)]}}]
        names = [f"c{number}" for number in range(6)]
        mounts = [{"name": "v", "mountPath": "/v"}]
        more = [{"name": name, "image": "app:1", "command": ["serve"], "volumeMounts": mounts} for name in names]
        volumes = [{"name": "v", "projected": {"sources": sources}}]
        uid = await machine.create_all("shared", more, volumes=volumes)

        await machine.until(lambda: all(machine.cri.running(uid, name) for name in names))

        reasons = await event_reasons(machine, "shared")
        assert "Failed" not in reasons


async def test_a_short_grace_period_is_no_kill(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.create("graceful", "serve")
        await machine.until_ready("graceful")

        await machine.cluster.delete(PODS, "graceful", Deletion(grace_s=5))
        await machine.until_gone("graceful")

        # What is left of it when the kubelet sees the deletion.
        (grace,) = machine.cri.graces
        assert 0 < grace <= 5


async def test_the_sandbox_of_a_pod_that_has_ended_is_stopped(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        await machine.create("ends", "exit", "0", restartPolicy="Never")

        await machine.until(lambda: machine.cri.calls["StopPodSandbox"])

        assert (await status(machine, "ends"))["phase"] == "Succeeded"
        assert machine.cri.containers


async def test_pods_of_an_earlier_cluster_are_removed_and_those_of_another_kubelet_are_not(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        known = await machine.create("known", "serve")
        await machine.create("unknown", "serve")
        await machine.until_ready("known")
        await machine.until_ready("unknown")
        foreign = next(iter(machine.cri.sandboxes.values()))
        machine.cri.sandboxes["foreign"] = type(foreign)(id="foreign", labels={"shoal.dev/kubelet": "another"})

        await machine.runtime.sandboxes.remove_others(lambda uid: uid == known)

        assert {one.metadata.name for one in machine.cri.sandboxes.values()} == {"known", ""}


async def test_a_long_log_is_replaced_and_the_former_one_is_kept(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        uid = await machine.create("talks", "serve")
        await machine.until_ready("talks")
        log = machine.runtime.sandboxes.logs(uid) / "main" / "0.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            file.truncate(LOG_BYTES + 1)

        await machine.until(lambda: machine.cri.calls["ReopenContainerLog"])

        assert not log.exists()
        assert machine.runtime.log_files(RunKey(uid, "main", 0)) == [former_log(log)]


async def test_a_lost_machine_gives_the_pod_another_sandbox(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        uid = await machine.create("restarts", "serve")
        await machine.until_ready("restarts")
        for sandbox in machine.cri.sandboxes.values():
            sandbox.state = messages.SANDBOX_NOTREADY
        machine.cri.end(uid, "main", 137)

        await machine.until(lambda: machine.cri.starts[(uid, "main", 1)])

        assert [one.metadata.attempt for one in machine.cri.sandboxes.values()] == [0, 1]


async def test_a_container_whose_state_was_lost_is_stopped_before_the_next_run(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        uid = await machine.create("lost", "serve")
        await machine.until_ready("lost")
        first = next(iter(machine.cri.containers.values()))
        first.state = machine.cri.statuses[first.id].state = messages.CONTAINER_UNKNOWN

        await machine.until(lambda: machine.cri.starts[(uid, "main", 1)])

        assert machine.cri.calls["StopContainer"] == 1
        assert first.state == messages.CONTAINER_EXITED


async def test_a_container_that_was_removed_by_others_is_restarted(tmp_path: Path) -> None:
    async with kubelet_on_cri(tmp_path) as machine:
        uid = await machine.create("removed", "serve")
        await machine.until_ready("removed")
        machine.cri.containers.clear()

        await machine.until(lambda: machine.cri.starts[(uid, "main", 1)])

        async def is_told() -> bool:
            last = (await status(machine, "removed"))["containerStatuses"][0]["lastState"]
            return bool(last.get("terminated", {}).get("reason") == "ContainerStatusUnknown")

        await machine.until(is_told)
