"""Runs commands in component pods: nvidia-smi shows all GPUs of the node, dcgmi a part of its output."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.devices.product_names import device_name
from shoal.embedded.apiserver.streams.terminal import CommandOutput
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.readings import read_gpu
from shoal.embedded.gpus.smi import nvidia_smi
from shoal.embedded.gpus.smi_node import view_of_node
from shoal.embedded.kubelets.gpu_components.component_pod import ComponentPod

_NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
    "driver is installed and running.\n"
)
_NO_DRIVER_CODE, _BAD_ARGUMENT = 9, 2
_WITH_DCGMI = ("dcgm", "dcgm-exporter")


def component_command(
    pod: ComponentPod, gpus: DeviceManager, words: Sequence[str], now_s: float, at: str
) -> CommandOutput | None:
    """None for a command that is answered as in any pod. `at`: the time as text."""
    name = words[0].rpartition("/")[2] if words else ""
    if name == "nvidia-smi":
        if not pod.software.has("driver"):
            return CommandOutput(_NO_DRIVER, code=_NO_DRIVER_CODE)
        said = nvidia_smi(view_of_node(gpus, now_s, at), words[1:])
        return CommandOutput(said.text, code=said.code)
    if name == "dcgmi" and pod.name in _WITH_DCGMI:
        return _dcgmi(gpus, words[1:], now_s)
    return None


def _dcgmi(gpus: DeviceManager, words: Sequence[str], now_s: float) -> CommandOutput:
    match list(words):
        case ["discovery", "-l"]:
            return CommandOutput(_discovery(gpus))
        case ["stats", "-g", "0", *_]:
            return CommandOutput(_statistics(gpus, now_s))
    what = " ".join(words)
    return CommandOutput(
        stderr=f"dcgmi {what}: a simulated node answers discovery -l and stats -g 0\n", code=_BAD_ARGUMENT
    )


def _discovery(gpus: DeviceManager) -> str:
    slots = gpus.machine.gpus
    lines = [f"{len(slots)} GPU{'' if len(slots) == 1 else 's'} found."]
    lines += [f"GPU {one.index}: {device_name(one.product)}, PCI {one.pci}, UUID {one.uuid}" for one in slots]
    return "".join(f"{line}\n" for line in lines)


def _statistics(gpus: DeviceManager, now_s: float) -> str:
    lines = ["GPU  SM utilization (%)  Memory used (MiB)  Power (W)  Temperature (C)"]
    for slot in gpus.machine.gpus:
        reading = read_gpu(gpus, slot, now_s)
        lines.append(
            f"{slot.index:>3}  {round(100 * reading.util):>18}  {reading.used_mib:>17}  {reading.power_w:>9.1f}  "
            f"{reading.temperature_c:>15}"
        )
    return "".join(f"{line}\n" for line in lines)
