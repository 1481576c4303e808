"""The input of cost accounting: which machines there were, who held what of them, and how it was used.

The history gives these records, and tests write them. All intervals are half open: `start_ms` belongs to them, `end_ms`
does not. An end of None means that it still goes on.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

import msgspec

FULL_SHARE = 3_603_600
"""A whole device. All numbers to 16, and 20, 25, 48, 50, 100, divide it, so that their shares are exact."""
PPM = 1_000_000

Capacity = Literal["on-demand", "spot", "reserved", "on-premises"]
Condition = Literal["booting", "not-ready"]


class Span(msgspec.Struct, frozen=True, array_like=True):
    start_ms: int
    end_ms: int | None = None


class BrokenDevice(msgspec.Struct, frozen=True, array_like=True):
    device: str
    start_ms: int
    end_ms: int | None = None


class MachineCondition(msgspec.Struct, frozen=True, array_like=True):
    """A machine is ready where no condition says otherwise."""

    condition: Condition
    start_ms: int
    end_ms: int | None = None


class RecordedPrice(msgspec.Struct, frozen=True, array_like=True):
    """What a machine cost per hour from then on, as the process knew it that recorded the machine."""

    from_ms: int
    per_hour: Decimal
    currency: str = "USD"
    """Empty: from then on the price depends on measured power, and is not recorded."""
    is_listed: bool = False
    """Of the catalogue, and not of a price file."""


class Machine(msgspec.Struct, frozen=True, array_like=True):
    """A node, from the moment it is paid for to the moment it is gone."""

    name: str
    start_ms: int
    end_ms: int | None = None
    instance_type: str = ""
    pool: str = ""
    region: str = ""
    capacity: Capacity = "on-demand"
    model: str = ""
    devices: tuple[str, ...] = ()
    cpu_milli: int = 0
    memory_mib: int = 0
    reserved_cpu_milli: int = 0
    """Of the operating system and the kubelet, which pods cannot get."""
    reserved_memory_mib: int = 0
    conditions: tuple[MachineCondition, ...] = ()
    broken: tuple[BrokenDevice, ...] = ()
    prices: tuple[RecordedPrice, ...] = ()
    """In order of time; empty in records of earlier versions, and where no price was known."""


class Holder(msgspec.Struct, frozen=True, array_like=True):
    """A pod, and the job, queue and team that it runs for."""

    pod: str
    namespace: str = ""
    job: str = ""
    gang: str = ""
    queue: str = ""
    team: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    is_overhead: bool = False
    """A pod of a DaemonSet without devices, or of the cluster itself."""
    owner_kind: str = ""
    """The kind of the job; empty in records of earlier versions."""
    tells_checkpoints: bool = False
    """Whether an annotation says that its work is saved; False in records of earlier versions."""


class DeviceShare(msgspec.Struct, frozen=True, array_like=True):
    device: str
    """The physical GPU."""
    share: int = FULL_SHARE
    part: str = ""
    """The MIG instance or the replica, where it is not the whole GPU."""
    compute: int = 0
    """The share of a MIG instance by its compute; 0 for what is none, and in records of earlier versions."""


class Use(msgspec.Struct, frozen=True, array_like=True):
    """How much of an interval a holding was used, in parts of a million."""

    start_ms: int
    end_ms: int
    active_ppm: int
    """The part of the time with any activity."""
    used_ppm: int
    """The mean utilisation."""


class Holding(msgspec.Struct, frozen=True, array_like=True):
    """What a pod held of a machine, from its binding to its end."""

    holder: Holder
    machine: str
    start_ms: int
    running_ms: int | None = None
    """When its containers were ready; before, images are pulled and models loaded. None: not yet."""
    end_ms: int | None = None
    devices: tuple[DeviceShare, ...] = ()
    cpu_milli: int = 0
    memory_mib: int = 0
    uses: tuple[Use, ...] = ()
    is_preempted: bool = False
    borrowed_ppm: int = 0
    """The part of it that exceeded the nominal quota of its queue."""


QuotaKind = Literal["cluster-queue", "kai", "volcano", "namespace"]


class QuotaSpan(msgspec.Struct, frozen=True, array_like=True):
    """The nominal quota of GPUs of a queue, or of a namespace by its ResourceQuotas, over a time."""

    kind: QuotaKind
    name: str
    start_ms: int
    end_ms: int | None = None
    share: int = 0
    """In shares of devices."""
    parent: str = ""
    members: tuple[str, ...] = ()
    """Of a ClusterQueue: the LocalQueues whose work it admitted, as namespace/name."""


class Wait(msgspec.Struct, frozen=True, array_like=True):
    """A pod that waited, and why."""

    holder: Holder
    start_ms: int
    end_ms: int | None = None
    gpus: int = 0
    share: int = 0
    cpu_milli: int = 0
    memory_mib: int = 0
    reason: str = ""


class WantedRequest(msgspec.Struct, frozen=True, array_like=True):
    """What a pod that waits or a usual pod needs of one node."""

    gpus: int = 0
    share: int = 0
    """Of one device, where no whole GPU is needed."""
    cpu_milli: int = 0
    memory_mib: int = 0
    start_ms: int | None = None
    """Since when and until when it waits. None: always."""
    end_ms: int | None = None


class Records(msgspec.Struct, frozen=True, array_like=True):
    machines: tuple[Machine, ...] = ()
    holdings: tuple[Holding, ...] = ()
    wanted: tuple[WantedRequest, ...] = ()
    gaps: tuple[Span, ...] = ()
    """When nothing was recorded: what was free then is unknown."""
