"""The runtime of this machine is opened, or pods that need it are refused with what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from build.fake_cri import FakeCri, Fault
from build.small_clusters import SmallCluster, small_cluster
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.process.runtime import ProcessRuntime
from shoal.wiring.container_runtime import Containers, open_containers
from shoal.wiring.process_tasks import ProcessTasks
from shoal.wiring.this_machine import admission

Obj = dict[str, Any]


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[SmallCluster]:
    async with small_cluster(tmp_path) as found:
        yield found


@pytest.fixture
def cri(tmp_path: Path) -> Iterator[FakeCri]:
    found = FakeCri(tmp_path / "cri.sock")
    yield found
    found.stop()


async def opened(cluster: SmallCluster, socket: Path, folder: Path) -> tuple[Containers, ProcessTasks]:
    tasks = ProcessTasks(cluster.api, cluster.api, cluster.clock)
    return await open_containers(tasks, (socket, ""), folder, lambda: None, NodeGpus(None)), tasks


async def test_a_runtime_that_answers_is_named_with_its_version(
    cluster: SmallCluster, cri: FakeCri, tmp_path: Path
) -> None:
    containers, tasks = await opened(cluster, cri.socket, tmp_path)

    assert (containers.version, containers.refusal) == ("fake://1.0", "")
    assert containers.launcher.runtime.name == "fake"
    await tasks.end()


async def test_a_runtime_without_the_interface_for_kubelets_is_refused(cluster: SmallCluster, tmp_path: Path) -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_insecure_port(f"unix:{tmp_path}/bare.sock")
    server.start()

    containers, tasks = await opened(cluster, tmp_path / "bare.sock", tmp_path)

    assert "remove cri from disabled_plugins" in containers.refusal
    assert not containers.version
    await tasks.end()
    server.stop(0).wait()


async def test_a_runtime_that_is_down_at_the_start_is_waited_for(
    cluster: SmallCluster, cri: FakeCri, tmp_path: Path
) -> None:
    cri.faults["Version"] = Fault("error")

    containers, tasks = await opened(cluster, cri.socket, tmp_path)

    assert containers.refusal == ""
    assert containers.version.startswith("containerd://")
    await tasks.end()


def pod(**spec: Any) -> Obj:
    main = {"name": "main", "image": "i", **spec.pop("main", {})}
    return {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [main], **spec}}


def test_pods_are_refused_by_the_rules_of_their_runtime(tmp_path: Path) -> None:
    labels: Mapping[str, Mapping[str, str]] = {"default": {}}
    labels_of, processes = labels.__getitem__, ProcessRuntime(tmp_path)
    with_containers, without = admission(labels_of, processes, ""), admission(labels_of, processes, "none was found")
    hooks = pod(main={"lifecycle": {"preStop": {}}})

    assert with_containers(pod()) is None
    refused = without(pod())
    assert refused is not None
    assert refused.reason == "RuntimeNotAvailable"
    assert refused.message == (
        "this node runs no containers: none was found; pods with runtimeClassName: process run as processes"
    )
    assert (with_containers(hooks) or refused).reason == "UnsupportedByContainers"
    for decide in (with_containers, without):
        found = decide(pod(runtimeClassName="process"))
        assert found is not None
        assert found.reason in ("ProcessPodsNotAllowed", "ProcessPodsNotPossible")
