"""GPUs of simulated nodes: whole ones, each for one container at a time; and the same story wherever one looks."""

from __future__ import annotations

import asyncio
import re

import pytest

from build.cluster_api import Api, Obj
from build.live_waits import conditions, name_of, until, until_gone, until_said
from build.simulated_pods import (
    GPU,
    container,
    devices,
    place,
    pod,
    schedule,
    simulated_nodes,
    statuses,
    until_phase,
    until_pod,
)

pytestmark = [pytest.mark.needs("kubelet"), pytest.mark.usefixtures("simulated_gpus")]


def asking(name: str, gpus: int, **spec: object) -> Obj:
    says = spec.pop("says", {"stop-after": "100ms"})
    assert isinstance(says, dict)
    return pod(name, container(gpus=gpus), says=says, **spec)


async def full_node(api: Api, name: str = "whole") -> tuple[str, int]:
    """A node all of whose GPUs one pod holds."""
    has = int((await simulated_nodes(api))[0]["status"]["allocatable"][GPU])
    await schedule(api, asking(name, has))
    found = await until_phase(api, "Running", name)
    return found["spec"]["nodeName"], has


@pytest.mark.needs("doors")
async def test_a_pod_sees_the_gpus_that_its_status_names(api: Api) -> None:
    await schedule(api, asking("pod", 2))
    found = await until_phase(api, "Running")
    held = devices(found)
    assert len(set(held)) == 2
    (reported,) = statuses(found)["main"]["allocatedResourcesStatus"]
    assert {one["health"] for one in reported["resources"]} == {"Healthy"}
    said, outcome = await api.run(api.core("pods", "pod", "exec"), "nvidia-smi", "-L")
    assert outcome["status"] == "Success"
    assert sorted(re.findall(r"UUID: (GPU-[0-9a-f-]+)", said)) == sorted(held)
    assert [line.split(":")[0] for line in said.splitlines()] == ["GPU 0", "GPU 1"]
    variables, _ = await api.run(api.core("pods", "pod", "exec"), "env")
    (line,) = [one for one in variables.splitlines() if one.startswith("NVIDIA_VISIBLE_DEVICES=")]
    assert sorted(line.partition("=")[2].split(",")) == sorted(held)


async def test_no_gpu_is_held_twice_and_those_given_back_are_held_again(api: Api) -> None:
    _, has = await full_node(api)
    whole = devices((await api.get(api.core("pods", "whole"))).ok())
    assert len(set(whole)) == has
    (await api.delete(api.core("pods", "whole"))).ok()
    await until_gone(api, api.core("pods", "whole"))
    names = [f"one-{number}" for number in range(has)]
    for name in names:
        await schedule(api, asking(name, 1))
    running = await asyncio.gather(*(until_phase(api, "Running", name) for name in names))
    held = [device for one in running for device in devices(one)]
    assert len(set(held)) == len(held) == has


async def test_a_pod_bound_by_hand_to_a_full_node_is_refused_in_the_kubelets_words(api: Api) -> None:
    node, _ = await full_node(api)
    await place(api, asking("late", 1), node)
    failed = await until_phase(api, "Failed", "late")
    words = (
        f"Allocate failed due to requested number of devices unavailable for {GPU}. "
        "Requested: 1, Available: 0, which is unexpected"
    )
    assert failed["status"]["reason"] == "UnexpectedAdmissionError"
    assert failed["status"]["message"] == f"Pod was rejected: {words}"
    assert "containerStatuses" not in failed["status"]
    (event, *_) = await until_said(api, "late", "UnexpectedAdmissionError")
    assert (event["type"], event["message"]) == ("Warning", words)


async def test_more_than_a_node_has_waits_and_says_why(api: Api) -> None:
    has = int((await simulated_nodes(api))[0]["status"]["allocatable"][GPU])
    await schedule(api, asking("large", has + 1))
    found = await until_pod(api, lambda one: "PodScheduled" in conditions(one), "large")
    verdict, reason, message = conditions(found)["PodScheduled"]
    assert (verdict, reason) == ("False", "Unschedulable")
    assert f"Insufficient {GPU}" in message
    (event, *_) = await until_said(api, "large", "FailedScheduling")
    assert event["type"] == "Warning"


async def test_a_pod_that_is_over_gives_its_gpus_back(api: Api) -> None:
    node, has = await full_node(api)
    (await api.delete(api.core("pods", "whole"))).ok()
    await until_gone(api, api.core("pods", "whole"))
    done = asking("done", has, says={"run-for": "200ms"}, restartPolicy="Never")
    await place(api, done, node)
    await until_phase(api, "Succeeded", "done")
    await place(api, asking("next", has), node)
    found = await until_phase(api, "Running", "next")
    assert len(devices(found)) == has


async def test_who_waits_for_a_gpu_gets_it_when_it_is_free(api: Api) -> None:
    node, has = await full_node(api)
    waiting = asking("waiting", has)
    waiting["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node}
    (await api.post(api.core("pods"), waiting)).ok(201)
    await until_pod(api, lambda one: "PodScheduled" in conditions(one), "waiting")
    (await api.delete(api.core("pods", "whole"))).ok()
    await until_phase(api, "Running", "waiting")


async def test_a_program_that_finds_no_memory_on_its_gpu_says_so(api: Api) -> None:
    says = {"gpu-memory": "900Gi", "run-for": "1h"}
    await schedule(api, asking("pod", 1, says=says, restartPolicy="Never"))
    failed = await until_phase(api, "Failed")
    ended = statuses(failed)["main"]["state"]["terminated"]
    assert ended["exitCode"] == 1
    assert "out of memory" in ended["message"]


@pytest.mark.needs("doors", "node-proxy")
async def test_the_exporter_of_a_node_names_whoever_holds_a_gpu(api: Api) -> None:
    await schedule(api, asking("pod", 1, says={"gpu-util": "80", "gpu-memory": "20Gi"}))
    found = await until_phase(api, "Running")
    (device,) = devices(found)
    answer = await api.get(f"/api/v1/nodes/{found['spec']['nodeName']}/proxy/metrics/dcgm")
    assert answer.code == 200
    lines = [line for line in answer.raw.decode().splitlines() if f'namespace="{api.namespace}"' in line]
    used = {line.split("{")[0]: float(line.split()[-1]) for line in lines}
    assert all(f'UUID="{device}"' in line and 'pod="pod"' in line for line in lines)
    assert used["DCGM_FI_DEV_FB_USED"] == 20480
    assert 70 <= used["DCGM_FI_DEV_GPU_UTIL"] <= 90
    said, _ = await api.run(
        api.core("pods", "pod", "exec"),
        "nvidia-smi",
        "--query-gpu=uuid,memory.used,utilization.gpu",
        "--format=csv,noheader,nounits",
    )
    uuid, memory, share = (part.strip() for part in said.strip().split(","))
    assert (uuid, memory) == (device, "20480")
    assert 70 <= int(share) <= 90


async def test_nodes_say_what_discovery_finds_on_them(api: Api) -> None:
    for node in await simulated_nodes(api):
        labels, status = node["metadata"]["labels"], node["status"]
        assert labels["kubernetes.io/hostname"] == name_of(node)
        assert labels["nvidia.com/gpu.present"] == "true"
        assert labels["nvidia.com/gpu.count"] == status["capacity"][GPU]
        assert int(labels["nvidia.com/gpu.memory"]) > 0
        assert labels["nvidia.com/gpu.product"]
        assert status["nodeInfo"]["kubeletVersion"].startswith("v1.")
        lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name_of(node)}"
        found = await until(api, lease, lambda one: one["spec"].get("renewTime"))
        assert found["spec"]["holderIdentity"] == name_of(node)
