"""Generates the logs of component pods from their progress: what they wait for, what they do, and that they work.

The lines are Shoal's own, one for each stage; programs must not parse them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shoal.client.kubelet.pod_facts import Container
from shoal.client.kubelet.pod_run import ContainerRun
from shoal.embedded.gpus.driver import read_driver_image
from shoal.embedded.kubelets.gpu_components.component_pod import ComponentPod
from shoal.embedded.kubelets.node_view import LogLine

_POLL_S = 5.0
_MOST_WAITS = 200
_WORK: dict[str, tuple[str, str]] = {
    "discovery": ("looking for PCI devices", "found PCI devices of vendor 10de; labels are written"),
    "toolkit": ("installing the NVIDIA container toolkit", "the runtime is configured for GPUs"),
    "device-plugin": ("loading NVML", "registered device plugin for nvidia.com/gpu with Kubelet"),
    "feature-discovery": ("loading NVML", "feature labels are written"),
    "dcgm": ("starting nv-hostengine", "nv-hostengine listens on port 5555"),
    "dcgm-exporter": ("connecting to DCGM", "metrics are served on port 9400"),
    "mig-manager": ("waiting for a change of label nvidia.com/mig.config", "the MIG layout of the label is applied"),
    "mps-control-daemon": ("starting the MPS control daemon", "the MPS control daemon is ready"),
    "node-status-exporter": ("starting", "metrics are served on port 8000"),
    "validator": ("checking driver, toolkit, CUDA and plugin", "all validations are successful"),
    "shoal-agent": ("loading NVML", "registered device plugin for nvidia.com/gpu with Kubelet"),
}


def component_lines(pod: ComponentPod, uid: str, one: ContainerRun, spec: Container, now_s: float) -> list[LogLine]:
    """The log of the current run of a container, or of its last one."""
    ended = one.ended
    if one.is_alive:
        return list(_lines(pod, uid, one, spec, (one.started_s, now_s)))
    if ended is None or not ended.started_s:
        return []
    found = list(_lines(pod, uid, one, spec, (ended.started_s, ended.finished_s)))
    if ended.message:
        found.append(LogLine(ended.finished_s, ended.message))
    return found


def _lines(
    pod: ComponentPod, uid: str, one: ContainerRun, spec: Container, span: tuple[float, float]
) -> Iterator[LogLine]:
    start_s, until_s = span
    if one.role == "init":
        yield from _init_lines(pod, one, span)
        return
    total_s = pod.component.work_s(uid, spec.image)
    lines = _driver_lines(spec.image) if pod.name == "driver" else _WORK[pod.name]
    is_working = one.is_alive and one.is_ready
    for number, text in enumerate(lines):
        at_s = start_s + total_s * number / (len(lines) - 1)
        is_last = number == len(lines) - 1
        if is_working if is_last else at_s <= until_s:
            yield LogLine(min(at_s, until_s), text)
    if one.health == "failing":
        yield LogLine(one.health_since_s, f"lost the layers below: {', '.join(pod.missing(one)) or 'they work again'}")


def _init_lines(pod: ComponentPod, one: ContainerRun, span: tuple[float, float]) -> Iterator[LogLine]:
    start_s, until_s = span
    missing = pod.missing(one)
    if one.is_alive and missing:
        waits = int((until_s - start_s) / _POLL_S)
        for number in range(max(waits - _MOST_WAITS, 0), waits + 1):
            yield LogLine(start_s + number * _POLL_S, f"waiting until {missing[0]} is ready on this node")
        return
    yield LogLine(until_s, f"{one.name}: done")


def _driver_lines(image: str) -> Sequence[str]:
    version, is_precompiled = read_driver_image(image)
    if is_precompiled:
        compiled: tuple[str, ...] = (f"installing precompiled kernel modules of driver {version}",)
    else:
        compiled = (
            "installing the headers of the running kernel",
            f"compiling the kernel modules of driver {version}",
            "linking and signing the kernel modules",
        )
    return (
        f"driver {version} is installed on this node",
        *compiled,
        "loading kernel modules nvidia, nvidia-uvm and nvidia-modeset",
        "the driver is loaded; the container runs until the node or the driver is changed",
    )
