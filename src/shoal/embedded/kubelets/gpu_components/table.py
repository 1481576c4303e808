"""Lists the components of a GPU operator: by which labels their pods are known, what they need, and what they add.

The labels are those of NVIDIA's DaemonSets, charts and custom resources, and of node-feature-discovery. The times
include the pull of an image of usual size; the whole chain takes about eight minutes, as on a new machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

import msgspec

from shoal.embedded.gpus.driver import read_driver_image
from shoal.embedded.machines.gpu_software import Layer

_APP, _NAME, _COMPONENT = "app", "app.kubernetes.io/name", "app.kubernetes.io/component"
_PRECOMPILED_S = (20.0, 40.0)
_WORKER = "worker"


class GpuComponent(msgspec.Struct, frozen=True):
    name: str
    labels: tuple[tuple[str, str], ...]
    """Each of these labels identifies its pods."""
    seconds: tuple[float, float]
    """The shortest and the longest time from the start of its container until it works."""
    adds: tuple[Layer, ...] = ()
    needs: tuple[Layer, ...] = ()
    """The layers without which it does not work."""

    def work_s(self, uid: str, image: str) -> float:
        """The same for each start of a pod."""
        shortest, longest = self.seconds
        if self.name == DRIVER and read_driver_image(image).is_precompiled:
            shortest, longest = _PRECOMPILED_S
        return round(shortest + (longest - shortest) * crc32(f"{uid}/{self.name}".encode()) / 2**32, 1)


DRIVER = "driver"
DRIVER_CONTAINER = "nvidia-driver-ctr"
_READY: tuple[Layer, ...] = ("driver", "toolkit")
COMPONENTS: tuple[GpuComponent, ...] = (
    GpuComponent(
        "discovery",
        (
            (_APP, "node-feature-discovery"),
            (_APP, "nvidia-node-feature-discovery"),
            (_NAME, "node-feature-discovery"),
        ),
        (20.0, 40.0),
        adds=("discovery",),
    ),
    GpuComponent(
        DRIVER,
        ((_APP, "nvidia-driver-daemonset"), (_COMPONENT, "nvidia-driver")),
        (180.0, 300.0),
        adds=("driver",),
    ),
    GpuComponent(
        "toolkit",
        ((_APP, "nvidia-container-toolkit-daemonset"),),
        (30.0, 60.0),
        adds=("toolkit",),
        needs=("driver",),
    ),
    GpuComponent(
        "device-plugin",
        ((_APP, "nvidia-device-plugin-daemonset"), (_NAME, "nvidia-device-plugin")),
        (20.0, 40.0),
        adds=("device-plugin",),
        needs=_READY,
    ),
    GpuComponent(
        "feature-discovery",
        ((_APP, "gpu-feature-discovery"), (_NAME, "gpu-feature-discovery")),
        (10.0, 20.0),
        adds=("feature-discovery",),
        needs=_READY,
    ),
    GpuComponent("dcgm", ((_APP, "nvidia-dcgm"),), (10.0, 20.0), adds=("dcgm",), needs=_READY),
    GpuComponent(
        "dcgm-exporter",
        ((_APP, "nvidia-dcgm-exporter"), (_NAME, "dcgm-exporter")),
        (20.0, 30.0),
        adds=("dcgm-exporter",),
        needs=_READY,
    ),
    GpuComponent("mig-manager", ((_APP, "nvidia-mig-manager"),), (10.0, 20.0), adds=("mig-manager",), needs=_READY),
    GpuComponent(
        "mps-control-daemon",
        ((_APP, "nvidia-mps-control-daemon"), (_APP, "nvidia-device-plugin-mps-control-daemon")),
        (5.0, 10.0),
        needs=_READY,
    ),
    GpuComponent("node-status-exporter", ((_APP, "nvidia-node-status-exporter"),), (5.0, 10.0)),
    GpuComponent(
        "validator",
        ((_APP, "nvidia-operator-validator"),),
        (5.0, 10.0),
        adds=("validator",),
        needs=(*_READY, "device-plugin"),
    ),
    GpuComponent(
        "shoal-agent",
        ((_NAME, "shoal-agent"),),
        (10.0, 20.0),
        adds=("device-plugin", "feature-discovery", "dcgm-exporter", "mig-manager"),
        needs=("driver",),
    ),
)
"""In the order in which their layers follow each other."""
NAMES = tuple(one.name for one in COMPONENTS)
_BY_LABEL = {label: one for one in COMPONENTS for label in one.labels}
_INIT_NEEDS: dict[str, tuple[Layer, ...]] = {
    "k8s-driver-manager": (),
    "driver-validation": ("driver",),
    "mofed-validation": ("driver",),
    "nvidia-fs-validation": ("driver",),
    "toolkit-validation": _READY,
    "cuda-validation": _READY,
    "plugin-validation": (*_READY, "device-plugin"),
}
"""What the init containers of NVIDIA's pods wait for, by their names."""


def component_of(labels: Mapping[str, str]) -> GpuComponent | None:
    """The component to which a pod with these labels belongs."""
    found = next((found for label in labels.items() if (found := _BY_LABEL.get(label)) is not None), None)
    # The master of node-feature-discovery has the labels of its workers, except for its role.
    is_other = found is not None and found.name == "discovery" and labels.get("role", _WORKER) != _WORKER
    return None if is_other else found


def needs_of_init(component: GpuComponent, container: str) -> tuple[Layer, ...]:
    """The layers for which an init container waits; one with another name waits for those of its component."""
    return _INIT_NEEDS.get(container, component.needs)
