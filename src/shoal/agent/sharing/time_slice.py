"""Sets how long the processes of a GPU that time-slicing shares run in turn.

NVIDIA's management library has no function for it, so `nvidia-smi compute-policy` is called. Without a configured
interval nothing is called. A GPU that is not shared any more gets the driver's default.
"""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable, Sequence
from typing import Literal, get_args

from shoal.devices.advertised_devices import inventory
from shoal.devices.discovered import layouts_of, slots_of
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.port import GpuDriver, InstalledGpu
from shoal.units.errors import TemporaryError

_log = logging.getLogger("shoal.agent.sharing")
TimeSlice = Literal["default", "short", "medium", "long"]
TIME_SLICES: tuple[TimeSlice, ...] = get_args(TimeSlice)
"""By the numbers of nvidia-smi."""
NVIDIA_SMI = "nvidia-smi"
_LIMIT_S = 30.0


class TimeSliceError(Exception):
    """The time slice of a GPU was not set."""


def set_time_slice(uuid: str, interval: TimeSlice, program: str = NVIDIA_SMI) -> None:
    """Raises `TimeSliceError`."""
    command = [program, "compute-policy", "-i", uuid, "--set-timeslice", str(TIME_SLICES.index(interval))]
    try:
        done = subprocess.run(  # noqa: S603 - the program is configured, the arguments are fixed
            command, capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except FileNotFoundError as error:
        raise TimeSliceError(f"{program} was not found; install it with NVIDIA's driver") from error
    except OSError as error:
        raise TimeSliceError(f"{program} cannot be run: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise TimeSliceError(f"{program} did not end in {_LIMIT_S:.0f} s") from error
    if done.returncode:
        words = " ".join((done.stdout + done.stderr).split())
        raise TimeSliceError(f"{program} failed with code {done.returncode}: {words or 'no message'}")
    _log.info("%s: the time slice is %s", uuid, interval)


class TimeSlices:
    """`program`: nvidia-smi, as a path or a name that is searched in PATH."""

    def __init__(
        self, driver: GpuDriver, interval: TimeSlice, config: Callable[[], PluginConfig], program: str = NVIDIA_SMI
    ) -> None:
        self._driver, self._interval, self._config, self._program = driver, interval, config, program
        self._set: set[str] = set()
        """The GPUs whose interval was set, by UUID."""
        self._complaints: dict[str, str] = {}

    def check(self) -> None:
        """Set the interval of GPUs that are shared now. One that cannot be set is reported once and tried again."""
        try:
            listed = self._driver.gpus()
        except TemporaryError:
            # The device plugin reports it.
            return
        shared = time_sliced(listed.gpus, self._config())
        kept = {one.uuid for one in listed.lost}
        for uuid in sorted(shared - self._set):
            if self._has_set(uuid, self._interval):
                self._set.add(uuid)
        for uuid in sorted(self._set - shared - kept):
            if self._has_set(uuid, "default"):
                self._set.discard(uuid)

    def _has_set(self, uuid: str, interval: TimeSlice) -> bool:
        try:
            set_time_slice(uuid, interval, self._program)
        except TimeSliceError as error:
            return self._fails(uuid, str(error))
        self._complaints.pop(uuid, None)
        return True

    def _fails(self, uuid: str, what: str) -> bool:
        if self._complaints.get(uuid) != what:
            _log.warning("%s: the time slice was not set: %s", uuid, what)
        self._complaints[uuid] = what
        return False


def time_sliced(gpus: Sequence[InstalledGpu], config: PluginConfig) -> frozenset[str]:
    """The whole GPUs with replicas, by UUID. Instances of MIG have no time slice of their own."""
    if config.sharing != "time-slicing":
        return frozenset()
    found = inventory(slots_of(gpus), layouts_of(gpus), config)
    devices = (device for of in found.devices.values() for device in of)
    return frozenset(device.physical for device in devices if device.replicas > 1 and device.cut is None)
