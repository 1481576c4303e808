"""Describes the machines of one type: a cloud's instance type, or a server model.

The two catalogues have different fields (clouds have prices and regions, server models have islands and NUMA nodes);
missing fields are filled in here, so that all other modules use one type only.
"""

from __future__ import annotations

import msgspec

from shoal.data.gpus import Model, find_model
from shoal.data.instances import Instance
from shoal.embedded.machines.on_premises import OnPremisesMachine

_REGIONS = {"aws": "us-east-1", "gcp": "us-central1", "azure": "eastus"}
_OWN_REGION = "on-prem"
_EFA = "vpc.amazonaws.com/efa"
_HCA = "rdma/hca"
_AMD = "amd.com/gpu"
_ROOT_GB = 200
_SPOT_DISCOUNT = 0.6
_TWO_SOCKETS_FROM_CPUS = 90


class MachineShape(msgspec.Struct, frozen=True):
    name: str
    """`p5.48xlarge`, `dgx-h100`."""
    provider: str
    """`aws`, `gcp`, `azure`, or empty for an on-premises machine."""
    region: str
    cpus: int
    memory_mib: int
    storage_gb: int
    arch: str = "amd64"
    machine: str = ""
    model: str = ""
    gpus: int = 0
    gpu_memory_mib: int = 0
    islands: tuple[int, ...] = ()
    """The NVLink island of each GPU."""
    numa: tuple[int, ...] = ()
    """The NUMA node of each GPU."""
    per_rack: int = 8
    rack_is_island: bool = False
    extras: dict[str, str] = {}
    """Further resources: network adapters, GPUs of other vendors."""
    usd_per_hour: float = 0.0
    spot_usd_per_hour: float = 0.0

    def gpu_model(self) -> Model | None:
        return find_model(self.model) if self.model else None


def of_instance(instance: Instance) -> MachineShape:
    model = instance.model()
    is_nvidia = model is not None and model.vendor == "nvidia"
    count = instance.gpus if is_nvidia else 0
    linked = model is not None and bool(model.link) and "bridge" not in model.link
    sockets = 2 if instance.vcpus >= _TWO_SOCKETS_FROM_CPUS and count in (4, 8, 16) else 1
    usd = float(instance.usd or 0)
    return MachineShape(
        name=instance.type,
        provider=instance.provider,
        region=instance.region or _REGIONS.get(instance.provider, _OWN_REGION),
        cpus=instance.vcpus,
        memory_mib=int(instance.memory_gib * 1024),
        storage_gb=instance.nvme_gb or _ROOT_GB,
        arch=instance.arch,
        machine=instance.type,
        model=instance.gpu if is_nvidia else "",
        gpus=count,
        gpu_memory_mib=_memory_mib(model, instance) if model is not None and is_nvidia else 0,
        islands=even(count, 1 if linked else count),
        numa=even(count, sockets),
        per_rack=_per_rack(model, count),
        rack_is_island=_is_rack_scale(model),
        extras=_extras(instance, is_amd=model is not None and not is_nvidia),
        usd_per_hour=usd,
        spot_usd_per_hour=_spot_usd(instance, usd),
    )


def of_box(box: OnPremisesMachine) -> MachineShape:
    model = find_model(box.gpu) if box.gpu else None
    return MachineShape(
        name=box.name,
        provider="",
        region=_OWN_REGION,
        cpus=box.cpus,
        memory_mib=int(box.memory_gib * 1024),
        storage_gb=box.nvme_gb or _ROOT_GB,
        arch=box.arch,
        machine=box.machine,
        model=box.gpu,
        gpus=box.gpus,
        gpu_memory_mib=usable_mib(model) if model is not None else 0,
        islands=even(box.gpus, box.gpus // box.island_size),
        numa=even(box.gpus, box.numa),
        per_rack=box.per_rack,
        rack_is_island=box.rack_is_island,
        extras={_HCA: str(box.hcas)} if box.hcas else {},
    )


def even(count: int, parts: int) -> tuple[int, ...]:
    """`count` items distributed over the parts, in order: eight over two are 0,0,0,0,1,1,1,1."""
    return tuple(index * parts // count for index in range(count))


def usable_mib(model: Model) -> int:
    """The memory that the driver reports. For GPUs with measured MIG profiles, the memory of the whole GPU was measured
    too.
    """
    layout = model.mig_layout()
    return (layout.memory_mib if layout is not None else None) or model.memory_mib()


def _memory_mib(model: Model, instance: Instance) -> int:
    return usable_mib(model) if instance.fraction == 1 else int(instance.gpu_gib * 1024)


def _is_rack_scale(model: Model | None) -> bool:
    return model is not None and "NVL72" in model.link


def _per_rack(model: Model | None, count: int) -> int:
    if _is_rack_scale(model):
        return 18
    return 4 if count >= 8 else 8


def _extras(instance: Instance, *, is_amd: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    if instance.provider == "aws" and instance.rdma:
        found[_EFA] = str(instance.rdma)
    if is_amd:
        found[_AMD] = str(instance.gpus)
    return found


def _spot_usd(instance: Instance, usd: float) -> float:
    if instance.spot_usd is not None:
        return float(sum(instance.spot_usd) / 2)
    return usd * (1 - float(instance.spot_discount or _SPOT_DISCOUNT))
