"""Models the GPUs of one node as kubelet, device plugin and MIG manager see them together.

Pure: no clock, no server. The simulated kubelet calls it and writes the results into the objects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from shoal.devices.pod_refusal import Refused

Obj = dict[str, Any]


class ExtendedResourceAmounts(msgspec.Struct, frozen=True):
    """An extended resource as the plugin reports it: all, and those that are healthy."""

    capacity: int
    allocatable: int


class ContainerDevices(msgspec.Struct, frozen=True):
    """What one container got of one resource."""

    container: str
    resource: str
    device_ids: tuple[str, ...]
    """As the plugin names them: GPU UUIDs, `MIG-...`, and `GPU-...::3` for replicas."""
    gpus: tuple[int, ...]
    """The indexes of the GPUs behind them."""
    environment: Mapping[str, str] = {}
    """What the plugin adds to the container: NVIDIA_VISIBLE_DEVICES and, under MPS, its pipes and limits."""


class Complaint(str):
    """Words about something that was asked for and not done, or done in another way than a real node would."""

    __slots__ = ()


class Use(msgspec.Struct, frozen=True):
    """What a running container does with its GPUs: from its annotations, or from defaults."""

    util: float = 0.85
    """Of each device that it holds, 0 to 1, while it runs alone there."""
    memory_mib: int | None = None
    """Of each device; None is a usual share of what it holds."""


class NodeGpus(Protocol):
    """Implemented by `gpus/device_manager.py`: class Book(machine)."""

    def resources(self) -> Mapping[str, ExtendedResourceAmounts]:
        """The extended resources of the node now."""
        ...

    def labels(self) -> Mapping[str, str | None]:
        """The labels that GPU feature discovery and MIG manager keep on the node; None takes one away."""
        ...

    def annotations(self) -> Mapping[str, str | None]:
        """`shoal.dev/topology` and what else the engine reads of devices (docs/devices.md)."""
        ...

    def configure(self, labels: Mapping[str, str], configs: Mapping[str, Obj]) -> Sequence[str]:
        """Follow the node's labels (`nvidia.com/mig.config`, `nvidia.com/device-plugin.config`): what changed, in
        words for Events, a `Complaint` where that is a warning; nothing if nothing did. `configs` are ConfigMaps by
        `namespace/name`. A layout that is not possible, or not known, leaves the GPUs as they are and says so in
        `labels()` (mig.config.state: failed)."""
        ...

    def recall(self, annotations: Mapping[str, str]) -> None:
        """The MIG instances that were created on demand before this process started, from the annotations of the node,
        before the first `configure`."""
        ...

    def admit(self, pod: Obj) -> tuple[ContainerDevices, ...] | Refused:
        """Devices for all containers of a pod (init containers share with the others as the kubelet does it). Honours
        the pod's annotation `shoal.dev/devices` {"container":{"resource":["id"]}}: whole GPUs that other pods hold are
        replaced by free ones, other devices that are not free are refused."""
        ...

    def restore(self, pod: Obj) -> tuple[ContainerDevices, ...]:
        """What a pod holds that ran before this process started: from its status (allocatedResourcesStatus)."""
        ...

    def start(self, uid: str, container: str, use: Use) -> str | None:
        """A container begins to use what it was granted; the error its program meets (no memory left), or None."""
        ...

    def stop(self, uid: str, container: str) -> None: ...

    def release(self, uid: str) -> None:
        """The pod is over: its devices are free."""
        ...

    def pace(self, uid: str) -> float:
        """How quickly the pod's work goes on, 1 being alone: less where time-sliced or MPS neighbours are at work."""
        ...

    def fail(self, index: int, xid: int) -> Sequence[str]:
        """A GPU reports an Xid. Uids of the pods whose programs die of it."""
        ...

    def mend(self, index: int) -> None: ...

    def is_healthy(self, device_id: str) -> bool: ...
