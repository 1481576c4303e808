"""Tests each layer of a GPU node in the order in which they depend on each other.

Guarantees: after a layer that fails the later ones are not run, because their failures would be consequences; a layer
that cannot be tested here is skipped with the reason and never reported as passed. Nothing on the machine is changed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from shoal.agent.validator.cuda_process import CudaResult
from shoal.devices.port import GpuDriver, GpuList
from shoal.units.errors import ShoalError, UserError

State = Literal["passed", "failed", "skipped"]
LAYERS = ("driver", "devices", "toolkit", "plugin", "cuda")
_GPU_KIND = "nvidia.com/gpu"
_MOST_SPEC_BYTES = 4 * 2**20
_SEE = "run nvidia-smi and correct what it reports"


class LayerResult(msgspec.Struct, frozen=True):
    layer: str
    state: State
    message: str
    fix: str = ""


class Places(msgspec.Struct, frozen=True):
    """Where the machine has the parts; tests give other folders."""

    dev: Path = Path("/dev")
    cdi: tuple[Path, ...] = (Path("/etc/cdi"), Path("/var/run/cdi"))
    runtimes: tuple[Path, ...] = (
        Path("/usr/bin/nvidia-container-runtime"),
        Path("/usr/local/nvidia/toolkit/nvidia-container-runtime"),
    )
    plugins: Path = Path("/var/lib/kubelet/device-plugins")


class Validation:
    """`open_driver` raises `UserError` without a driver; `cuda` runs a CUDA program and says what it printed."""

    def __init__(
        self,
        open_driver: Callable[[], GpuDriver],
        cuda: Callable[[], CudaResult],
        places: Places | None = None,
        *,
        is_simulated: bool = False,
    ) -> None:
        self._open_driver, self._cuda, self._places = open_driver, cuda, places or Places()
        self._is_simulated = is_simulated
        self._listed = GpuList(())

    def run(self, layers: Sequence[str] = LAYERS) -> Iterator[LayerResult]:
        tests: dict[str, Callable[[], LayerResult]] = {
            "driver": self._driver,
            "devices": self._devices,
            "toolkit": self._toolkit,
            "plugin": self._plugin,
            "cuda": self._cuda_call,
        }
        failed = ""
        for layer in LAYERS:
            if layer not in layers and layer != "driver":
                continue
            if failed:
                yield LayerResult(layer, "skipped", f"not tested, because the layer {failed} failed")
                continue
            if self._is_simulated and layer != "driver":
                yield LayerResult(layer, "skipped", "not tested: the machine is simulated")
                continue
            result = tests[layer]()
            failed = layer if result.state == "failed" else ""
            yield result

    def _driver(self) -> LayerResult:
        try:
            driver = self._open_driver()
        except UserError as error:
            return LayerResult("driver", "failed", error.what, error.fix)
        except ShoalError as error:
            return LayerResult("driver", "failed", error.what, _SEE)
        try:
            self._listed, versions = driver.gpus(), driver.versions()
        except ShoalError as error:
            return LayerResult("driver", "failed", error.what, _SEE)
        finally:
            driver.close()
        if self._listed.lost:
            lost = "; ".join(f"GPU {one.index}: {one.reason}" for one in self._listed.lost)
            return LayerResult(
                "driver", "failed", f"a GPU does not respond: {lost}", "run shoal agent check for advice"
            )
        if not self._listed.gpus:
            fix = "check with lspci -d 10de: that the machine has one, and dmesg for errors of the driver"
            return LayerResult("driver", "failed", "the driver lists no GPU", fix)
        return LayerResult("driver", "passed", f"driver {versions.driver} lists {len(self._listed.gpus)} GPUs")

    def _devices(self) -> LayerResult:
        names = ["nvidiactl", "nvidia-uvm"]
        names += [f"nvidia{gpu.index if gpu.minor is None else gpu.minor}" for gpu in self._listed.gpus]
        for name in names:
            problem = _node_problem(self._places.dev / name)
            if problem:
                fix = "run nvidia-modprobe -c 0 -u as root, and grant read and write permission on the device nodes"
                return LayerResult("devices", "failed", problem, fix)
        return LayerResult("devices", "passed", f"{len(names)} device nodes can be opened")

    def _toolkit(self) -> LayerResult:
        problems: list[str] = []
        for path in self._specs():
            missing, problem = self._missing(path)
            if not problem and not missing:
                return LayerResult("toolkit", "passed", f"{path} describes all GPUs for CDI")
            problems.append(f"{path}: {problem or f'no device {missing[0]}'}")
        runtime = next((one for one in self._places.runtimes if os.access(one, os.X_OK)), None)
        if runtime is not None:
            return LayerResult("toolkit", "passed", f"NVIDIA's container runtime is installed: {runtime}")
        what = "; ".join(problems) or "no CDI specification of GPUs, and NVIDIA's container runtime is not installed"
        return LayerResult("toolkit", "failed", what, "run: shoal agent cdi --out /var/run/cdi/nvidia.json")

    def _specs(self) -> list[Path]:
        return [path for folder in self._places.cdi for path in sorted(folder.glob("*.json")) if _is_gpus(path)]

    def _missing(self, path: Path) -> tuple[list[str], str]:
        """The GPUs and instances that a specification lacks."""
        document = _document(path)
        if document is None:
            return [], "it cannot be read"
        names = {device.name for device in document.devices}
        # A specification can lack a form of names; the one that it has must be complete.
        uuids, indexes = self._names()
        has_uuids = any(name.startswith(("GPU-", "MIG-")) for name in names)
        wanted = uuids if has_uuids or names.isdisjoint(indexes) else indexes
        return [name for name in wanted if name not in names], ""

    def _names(self) -> tuple[list[str], list[str]]:
        """The devices by UUID and by index."""
        uuids: list[str] = []
        indexes: list[str] = []
        for gpu in self._listed.gpus:
            if not gpu.is_mig:
                uuids.append(gpu.uuid)
                indexes.append(str(gpu.index))
                continue
            for position, one in enumerate(gpu.instances):
                uuids.append(one.uuid)
                indexes.append(f"{gpu.index}:{position}")
        return uuids, indexes

    def _plugin(self) -> LayerResult:
        folder = self._places.plugins
        if not _is_socket(folder / "kubelet.sock"):
            return LayerResult("plugin", "skipped", f"not tested: no kubelet listens at {folder / 'kubelet.sock'}")
        sockets = [one.name for one in sorted(folder.glob("*.sock")) if one.name != "kubelet.sock" and _is_socket(one)]
        if not sockets:
            fix = "start the device plugin, such as: shoal agent run"
            return LayerResult("plugin", "failed", f"no device plugin listens in {folder}", fix)
        return LayerResult("plugin", "passed", f"device plugins listen at {', '.join(sockets)}")

    def _cuda_call(self) -> LayerResult:
        result = self._cuda()
        if result.error:
            return LayerResult("cuda", "failed", result.error, result.fix)
        return LayerResult("cuda", "passed", result.message)


class _ListedDevice(msgspec.Struct):
    name: str


class _ListedDevices(msgspec.Struct):
    kind: str = ""
    devices: list[_ListedDevice] = []


def _document(path: Path) -> _ListedDevices | None:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_MOST_SPEC_BYTES), type=_ListedDevices)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _is_gpus(path: Path) -> bool:
    """Whether it is a specification of GPUs, or one that cannot be read."""
    document = _document(path)
    return document is None or document.kind == _GPU_KIND


def _node_problem(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        return f"{path}: {error.strerror or error}"
    os.close(descriptor)
    return ""


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False
