"""Defines what a node's GPU driver must report: its GPUs, their readings, and their Xid errors.

An adapter over the driver's library and one over simulated GPUs implement it. A value that the driver or the GPU does
not report is None, never zero: a GPU without memory sensor has no memory temperature. A GPU that has stopped to respond
is reported as lost and does not fail the calls about others.
"""

from __future__ import annotations

from typing import Literal, Protocol, get_args

import msgspec


class DriverVersions(msgspec.Struct, frozen=True):
    driver: str
    """`580.95.05`."""
    cuda: str | None
    """The greatest version of CUDA that the driver supports: `13.0`."""


class MigAttributes(msgspec.Struct, frozen=True):
    """What a MIG device has: multiprocessors, slices, and the engines that it shares with others of its instance."""

    multiprocessors: int
    gpu_slices: int
    compute_slices: int
    copy_engines: int
    decoders: int
    encoders: int
    jpeg_engines: int
    optical_flow_engines: int


class MigInstance(msgspec.Struct, frozen=True):
    """A MIG device: a GPU instance with its compute instance."""

    uuid: str
    profile: str
    """`1g.10gb`, as the driver names it; empty if unknown."""
    instance: int | None
    """The number of the GPU instance."""
    start: int | None
    """Its first memory slice. Drivers report positions to privileged processes only."""
    width: int | None
    """The number of its memory slices."""
    memory_mib: int | None
    compute_instance: int | None = None
    """The number of the compute instance in the GPU instance."""
    attributes: MigAttributes | None = None


class NvlinkPeer(msgspec.Struct, frozen=True):
    """A GPU of the node that is connected over NVLink, directly or through switches."""

    uuid: str
    links: int


PcieRelation = Literal["same-board", "single-switch", "multi-switch", "host-bridge", "same-cpu", "cross-cpu"]


class PciePeer(msgspec.Struct, frozen=True):
    """What connects two GPUs of the node apart from NVLink."""

    uuid: str
    relation: PcieRelation


LinkStatus = Literal[
    "OK",
    "ChipsetNotSupported",
    "GPUNotSupported",
    "TopologyNotSupported",
    "DisabledByRegKey",
    "NotSupported",
    "Unknown",
]
LINK_STATUSES: tuple[LinkStatus, ...] = get_args(LinkStatus)
"""By the driver's numbers, with the names of the DCGM exporter."""


class NvlinkStatus(msgspec.Struct, frozen=True):
    """Whether two GPUs of the node reach each other's memory over NVLink."""

    index: int
    """Of the other GPU."""
    status: LinkStatus


class Fabric(msgspec.Struct, frozen=True):
    """The NVLink domain of several machines to which a GPU is attached."""

    cluster: str
    """A UUID."""
    clique: str


class InstalledGpu(msgspec.Struct, frozen=True):
    index: int
    """The driver's number of the GPU."""
    uuid: str
    """`GPU-` and a UUID."""
    name: str
    """`NVIDIA H100 80GB HBM3`."""
    pci: str
    """`00000000:53:00.0`."""
    memory_mib: int | None = None
    compute_capability: str | None = None
    """`9.0`."""
    minor: int | None = None
    """The number in the name of its device node, `/dev/nvidia0`; it can differ from the index."""
    numa: int | None = None
    serial: str | None = None
    brand: str | None = None
    """`Tesla`, `NVIDIA`, ..."""
    vbios: str | None = None
    is_mig: bool | None = None
    """Whether MIG mode is enabled; None: the GPU has no MIG."""
    instances: tuple[MigInstance, ...] = ()
    peers: tuple[NvlinkPeer, ...] = ()
    pcie_peers: tuple[PciePeer, ...] = ()
    nvlink_statuses: tuple[NvlinkStatus, ...] = ()
    """Towards each other GPU; empty if the driver does not report them."""
    pci_class: int | None = None
    """0x030000 for a GPU with displays, 0x030200 for one without."""
    fabric: Fabric | None = None
    """None: attached to no domain beyond this machine."""
    pci_id: str | None = None
    """Device and vendor, and those of the board: `0x233010DE:0x16C110DE`."""


class LostGpu(msgspec.Struct, frozen=True):
    """A GPU that does not respond, or that the driver does not let this process use."""

    index: int
    uuid: str | None
    """None if the GPU was lost before its first report."""
    reason: str


class GpuList(msgspec.Struct, frozen=True):
    """All GPUs of the node, by index; each is in one of the two."""

    gpus: tuple[InstalledGpu, ...]
    lost: tuple[LostGpu, ...] = ()


class GpuProcess(msgspec.Struct, frozen=True):
    pid: int
    memory_mib: int | None
    instance: int | None = None
    """The GPU instance of the process."""
    util_percent: int | None = None
    """Of the multiprocessors; not measured with MIG."""


class EccErrors(msgspec.Struct, frozen=True):
    corrected: int | None
    uncorrected: int | None


class RemappedRows(msgspec.Struct, frozen=True):
    correctable: int
    uncorrectable: int
    is_pending: bool
    """Whether a reset is needed to remap a row."""
    has_failed: bool


class RetiredPages(msgspec.Struct, frozen=True):
    """GPUs before Ampere retire pages, later ones remap rows."""

    single_bit: int
    double_bit: int
    is_pending: bool | None


class NvlinkCounters(msgspec.Struct, frozen=True):
    """Over all links of the GPU, since the driver was loaded."""

    tx_bytes: int | None = None
    rx_bytes: int | None = None
    """Data without protocol headers."""
    crc_flit_errors: int | None = None
    crc_data_errors: int | None = None
    replay_errors: int | None = None
    recovery_errors: int | None = None


class Violations(msgspec.Struct, frozen=True):
    """How long each limit has reduced the clocks, in nanoseconds since the driver was loaded."""

    power_ns: int | None = None
    thermal_ns: int | None = None
    sync_boost_ns: int | None = None
    board_limit_ns: int | None = None
    low_utilization_ns: int | None = None
    reliability_ns: int | None = None


class Profiling(msgspec.Struct, frozen=True):
    """What the performance counters of a GPU or MIG instance measured between the last two readings: ratios from 0 to
    1, and rates.
    """

    graphics: float | None = None
    sm: float | None = None
    sm_occupancy: float | None = None
    tensor: float | None = None
    dram: float | None = None
    fp64: float | None = None
    fp32: float | None = None
    fp16: float | None = None
    integer: float | None = None
    tensor_dfma: float | None = None
    tensor_hmma: float | None = None
    tensor_imma: float | None = None
    pcie_tx_bytes_s: float | None = None
    pcie_rx_bytes_s: float | None = None
    nvlink_tx_bytes_s: float | None = None
    nvlink_rx_bytes_s: float | None = None


class InstanceReadings(msgspec.Struct, frozen=True):
    """The values of one MIG device, as far as it has sensors of its own."""

    uuid: str
    used_mib: int | None = None
    reserved_mib: int | None = None
    free_mib: int | None = None
    profiling: Profiling | None = None


RecoveryAction = Literal["none", "reset", "reboot", "drain-p2p", "drain-and-reset", "recover-imex", "bus-reset"]


class GpuReadings(msgspec.Struct, frozen=True):
    """The values of one GPU at one time."""

    util_percent: int | None = None
    """None with MIG, where it is not measured."""
    memory_util_percent: int | None = None
    memory_mib: int | None = None
    used_mib: int | None = None
    reserved_mib: int | None = None
    free_mib: int | None = None
    temperature_c: int | None = None
    memory_temperature_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_mhz: int | None = None
    memory_mhz: int | None = None
    energy_mj: int | None = None
    """Millijoules since the driver was loaded."""
    ecc: EccErrors | None = None
    """Since the driver was loaded."""
    ecc_lifetime: EccErrors | None = None
    """Since the GPU was made."""
    retired_pages: RetiredPages | None = None
    remapped_rows: RemappedRows | None = None
    throttle_reasons: tuple[str, ...] | None = None
    """`sw_power_cap`, `hw_thermal_slowdown`, ...; empty: the clocks are not reduced."""
    processes: tuple[GpuProcess, ...] | None = None
    encoder_percent: int | None = None
    decoder_percent: int | None = None
    pcie_replays: int | None = None
    nvlink: NvlinkCounters | None = None
    """None for a GPU without NVLink."""
    violations: Violations | None = None
    is_vgpu_licensed: bool | None = None
    profiling: Profiling | None = None
    """None for GPUs before Hopper, and until there are two readings."""
    instances: tuple[InstanceReadings, ...] = ()
    """Of GPUs with MIG."""
    recovery_action: RecoveryAction | None = None
    """What the driver recommends after a fault; None: drivers before 550 do not say."""


class XidEvent(msgspec.Struct, frozen=True):
    uuid: str
    """Of the GPU."""
    xid: int
    instance: int | None = None
    """The GPU instance concerned; None: the whole GPU, or unknown."""


class UnknownGpuError(LookupError):
    """No GPU of the node has this UUID."""


class GpuDriver(Protocol):
    def versions(self) -> DriverVersions: ...

    def gpus(self) -> GpuList:
        """The GPUs as they are now; MIG layouts may differ from one call to the next."""
        ...

    def read(self, uuid: str) -> GpuReadings | LostGpu:
        """Raises `UnknownGpuError` for the UUID of no GPU."""
        ...

    def next_xid(self, timeout_s: float) -> XidEvent | None:
        """The next Xid error, None if there is none in this time. It may block: call it in a thread of its own."""
        ...

    def close(self) -> None: ...
