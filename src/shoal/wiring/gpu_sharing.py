"""Composes what shares GPUs between containers: the MPS daemons of a node, and the time slices of its GPUs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from shoal.agent.plugin.device_plugin import PluginSettings
from shoal.agent.sharing.mps_control import PROGRAM, MpsControl
from shoal.agent.sharing.mps_daemons import MpsDaemons, MpsParts
from shoal.agent.sharing.mps_part import MpsSettings, MpsSharing
from shoal.agent.sharing.mps_state import MpsStateFile
from shoal.agent.sharing.time_slice import TimeSlice, TimeSlices, set_time_slice
from shoal.devices.port import GpuDriver
from shoal.wiring.gpu_driver import compute_modes

if TYPE_CHECKING:
    from shoal.agent.dra.claim_sharing import ClaimSharing

MPS_STATE = "shoal.json"
"""The file in the folder of MPS with the daemons that were started."""


class SharingOptions(msgspec.Struct, frozen=True):
    mps_control: str = ""
    """The program of MPS daemons; empty: NVIDIA's, and none for simulated GPUs, whose programs do not use one."""
    time_slice: TimeSlice | None = None
    """None: that of the GPUs is left as it is."""
    vgpu_library: Path = Path("/usr/local/vgpu/libvgpu.so")
    """What enforces the limits of virtual GPUs, where it exists."""


def mps_sharing(
    driver: GpuDriver, fake: str, options: SharingOptions, settings: Callable[[], PluginSettings], root: str
) -> MpsSharing | None:
    """`root`: the folder of MPS, in which the state is kept."""
    program = options.mps_control or ("" if fake else PROGRAM)
    if not program:
        return None
    state = MpsStateFile(Path(root) / MPS_STATE)
    daemons = MpsDaemons(MpsParts(MpsControl(program), compute_modes(fake), state, monotonic))

    def now() -> MpsSettings:
        found = settings()
        return MpsSettings(found.config, found.flags.mps_root)

    return MpsSharing(driver, daemons, now)


def claim_sharing(fake: str, options: SharingOptions, root: str) -> ClaimSharing:
    """Of resource claims. Daemons that the device plugin's sharing has left behind end."""
    from shoal.agent.dra.claim_sharing import ClaimSharing

    program = options.mps_control or ("" if fake else PROGRAM)
    daemons = None
    if program:
        state = MpsStateFile(Path(root) / MPS_STATE)
        daemons = MpsDaemons(MpsParts(MpsControl(program), compute_modes(fake), state, monotonic))

    def set_slice(uuid: str, interval: TimeSlice) -> None:
        # Simulated GPUs have no time slice.
        if not fake:
            set_time_slice(uuid, interval)

    return ClaimSharing(daemons, root, set_slice)


def time_slices(
    driver: GpuDriver, fake: str, options: SharingOptions, settings: Callable[[], PluginSettings]
) -> TimeSlices | None:
    """None: nothing is to be set, or the GPUs are simulated and have no time slice."""
    if options.time_slice is None or fake:
        return None
    return TimeSlices(driver, options.time_slice, lambda: settings().config)
