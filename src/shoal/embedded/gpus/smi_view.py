"""Determines the GPUs that a command sees: in a container its own, numbered from zero; on the node all."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import msgspec

from shoal.devices.device_ids import device_of_replica, ids_in
from shoal.devices.names import OWN_DEVICES
from shoal.devices.product_names import device_name
from shoal.embedded.gpus.driver import CUDA, DRIVER
from shoal.units.numbers import whole_of

Obj = dict[str, Any]
_WHOLE = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
_MIG = "nvidia.com/mig-"
_DEFAULT_PRODUCT, _DEFAULT_MIB = "NVIDIA-GPU", 81920
_MOST_GPUS = 1024
"""The maximum number of shown GPUs of one container: more than any node has."""
_SPACE = uuid.UUID("6f0a7c56-5f35-4b60-9a35-6d2c8a6b1f6e")


class Process(msgspec.Struct, frozen=True):
    pid: int
    name: str
    memory_mib: int
    instance: int | None = None
    """The GPU instance of the process."""


class Instance(msgspec.Struct, frozen=True):
    """A MIG device."""

    profile: str
    uuid: str
    number: int
    """The number of the GPU instance."""
    profile_id: int = 0
    start: int = 0
    width: int = 1
    memory_mib: int = 0
    used_mib: int = 0
    sm: int = 0


class SeenGpu(msgspec.Struct, frozen=True):
    index: int
    name: str
    memory_mib: int
    uuid: str
    pci: str
    model: str = ""
    serial: str = ""
    numa: int = 0
    island: int = 0
    used_mib: int = 0
    reserved_mib: int = 0
    util_percent: int = 0
    temperature_c: int = 30
    memory_temperature_c: int = 37
    power_w: float | None = None
    power_limit_w: int | None = None
    sm_mhz: int = 345
    memory_mhz: int = 1215
    double_bit_errors: int = 0
    is_mig: bool = False
    is_lost: bool = False
    instances: tuple[Instance, ...] = ()
    processes: tuple[Process, ...] = ()


class GpuView(msgspec.Struct, frozen=True):
    gpus: tuple[SeenGpu, ...]
    at: str = ""
    """The time as text, for output that contains it."""
    driver: str = DRIVER
    cuda: str = CUDA

    @classmethod
    def of(cls, container: Obj, node: Obj | None, pod: Obj) -> GpuView:
        """The view from the objects alone, if the devices are unknown: one idle GPU for each requested one.

        Ids are derived from the names of node and pod, so that a pod always sees the same GPUs. A pod that requests a
        fraction by annotation has no GPU in its limits, and sees the GPUs that the scheduler chose for it.
        """
        labels = ((node or {}).get("metadata") or {}).get("labels") or {}
        name = device_name(str(labels.get("nvidia.com/gpu.product") or _DEFAULT_PRODUCT))
        memory = whole_of(str(labels.get("nvidia.com/gpu.memory") or ""))
        mib = _DEFAULT_MIB if memory is None else memory
        metadata = pod["metadata"]
        owner = f"{(pod.get('spec') or {}).get('nodeName', '')}/{metadata.get('uid') or metadata['name']}"
        gpus = []
        for index, profile in enumerate(_asked(container)):
            identity = uuid.uuid5(_SPACE, f"{owner}/{index}")
            cut = (Instance(profile, f"MIG-{identity}", 7, memory_mib=mib),) if profile else ()
            pci = f"00000000:{0x10 + index:02X}:00.0"
            gpus.append(SeenGpu(index, name, mib, f"GPU-{identity}", pci, is_mig=bool(profile), instances=cut))
        if not gpus:
            for index, chosen in enumerate(_chosen(container, metadata)):
                gpus.append(SeenGpu(index, name, mib, chosen, f"00000000:{0x10 + index:02X}:00.0"))
        return cls(tuple(gpus))

    def device_ids(self) -> list[str]:
        """The devices that a container may use, by the ids in its environment."""
        return [one for gpu in self.gpus for one in ([cut.uuid for cut in gpu.instances] or [gpu.uuid])]


def _chosen(container: Obj, metadata: Obj) -> list[str]:
    """The ids of the GPUs that the scheduler chose for a container."""
    resources = ids_in(str((metadata.get("annotations") or {}).get(OWN_DEVICES) or "")).get(container["name"], {})
    ids = (device_of_replica(one) for name in _WHOLE for one in resources.get(name, ()))
    return list(dict.fromkeys(ids))[:_MOST_GPUS]


def _asked(container: Obj) -> Iterator[str]:
    """The MIG profile of each requested GPU, empty for a whole one."""
    resources = container.get("resources") or {}
    amounts = {**(resources.get("requests") or {}), **(resources.get("limits") or {})}
    for name, amount in sorted(amounts.items()):
        is_mig = name.startswith(_MIG)
        if is_mig or name in _WHOLE:
            count = min(whole_of(str(amount)) or 0, _MOST_GPUS)
            yield from [name[len(_MIG) :] if is_mig else ""] * count
