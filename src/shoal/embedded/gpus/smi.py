"""Parses the arguments of `nvidia-smi` and prints its output.

Supported are the table, `-L`, `-q`, `--query-gpu` and `--query-compute-apps` as CSV, `topo -m`, and of `mig` the lists
of instances and of profiles. Every other form prints that a simulated GPU does not support it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from shoal.data.gpus import find_model
from shoal.devices.nvlink import links_of
from shoal.embedded.gpus.smi_mig import list_instances, list_profiles
from shoal.embedded.gpus.smi_query import QueryError, query_apps, query_gpus
from shoal.embedded.gpus.smi_report import report
from shoal.embedded.gpus.smi_table import table
from shoal.embedded.gpus.smi_view import GpuView, SeenGpu

_BAD_ARGUMENT, _NOT_FOUND, _LOST = 2, 6, 15
_FORMS = "nvidia-smi, -L, -q, --query-gpu=..., --query-compute-apps=..., topo -m, mig -lgi and mig -lgip"


class CommandOutput(NamedTuple):
    text: str
    code: int = 0


def nvidia_smi(view: GpuView, options: Sequence[str]) -> CommandOutput:
    words = list(_joined(options))
    chosen = [word.partition("=")[2] for word in words if word.startswith(("-i=", "--id="))]
    words = [word for word in words if not word.startswith(("-i=", "--id="))]
    gpus = [gpu for gpu in view.gpus if not chosen or _is_chosen(gpu, chosen[0].split(","))]
    if not view.gpus or not gpus:
        return CommandOutput("No devices were found\n", _NOT_FOUND)
    lost = next((gpu for gpu in gpus if gpu.is_lost), None)
    if lost is not None:
        what = f"GPU{lost.index}: {lost.pci[4:]}: GPU is lost.  Reboot the system to recover this GPU"
        return CommandOutput(f"Unable to determine the device handle for {what}\n", _LOST)
    return _answer(msgspec.structs.replace(view, gpus=tuple(gpus)), words)


def _answer(view: GpuView, words: Sequence[str]) -> CommandOutput:
    match words:
        case []:
            return CommandOutput(table(view))
        case ["-L"] | ["--list-gpus"]:
            return CommandOutput(list_gpus(view))
        case ["-q"] | ["--query"]:
            return CommandOutput(report(view))
        case ["topo", "-m"] | ["topo", "--matrix"]:
            return CommandOutput(topology(view))
        case ["mig", "-lgi"] | ["mig", "--list-gpu-instances"]:
            return _found(list_instances(view), "No GPU instances found: Not Found\n")
        case ["mig", "-lgip"] | ["mig", "--list-gpu-instance-profiles"]:
            return _found(list_profiles(view), "No MIG-supported devices found.\n")
        case _ if any(word.startswith(("--query-gpu=", "--query-compute-apps=")) for word in words):
            return _query(view, words)
    return CommandOutput(f"nvidia-smi {' '.join(words)}: a simulated GPU answers {_FORMS}\n", _BAD_ARGUMENT)


def list_gpus(view: GpuView) -> str:
    lines: list[str] = []
    for gpu in view.gpus:
        lines.append(f"GPU {gpu.index}: {gpu.name} (UUID: {gpu.uuid})")
        lines += [
            f"  MIG {one.profile:<12} Device {number:>2}: (UUID: {one.uuid})"
            for number, one in enumerate(gpu.instances)
        ]
    return "".join(f"{line}\n" for line in lines)


def _query(view: GpuView, words: Sequence[str]) -> CommandOutput:
    given = dict(word.partition("=")[::2] for word in words)
    form = given.get("--format", "").split(",")
    if "csv" not in form or not set(given) <= {"--query-gpu", "--query-compute-apps", "--format"}:
        return CommandOutput(
            '"--format=" switch is missing or not csv. Valid formats are csv, with noheader and nounits\n', 2
        )
    try:
        if "--query-gpu" in given:
            return CommandOutput(query_gpus(view, given["--query-gpu"], form))
        return CommandOutput(query_apps(view, given["--query-compute-apps"], form))
    except QueryError as error:
        return CommandOutput(f"{error}\n", _BAD_ARGUMENT)


def _found(text: str, nothing: str) -> CommandOutput:
    return CommandOutput(text) if text else CommandOutput(nothing, _NOT_FOUND)


def _joined(options: Sequence[str]) -> list[str]:
    """The options with `-i 0` and `--format csv` joined to one word each."""
    found: list[str] = []
    for word in options:
        if found and found[-1] in ("-i", "--id", "--format", "--query-gpu", "--query-compute-apps"):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def _is_chosen(gpu: SeenGpu, names: Sequence[str]) -> bool:
    return any(name in (str(gpu.index), gpu.uuid, gpu.pci, gpu.serial) for name in names)


_LEGEND = """
Legend:

  X    = Self
  SYS  = Across the interconnect between NUMA nodes
  NODE = Across host bridges within a NUMA node
  NV#  = Over a bonded set of # NVLinks
"""


def topology(view: GpuView) -> str:
    head = [f"GPU{gpu.index}" for gpu in view.gpus]
    lines = ["\t".join(["", *head, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])]
    for gpu in view.gpus:
        row = [f"GPU{gpu.index}", *(_relation(gpu, other) for other in view.gpus), "N/A", str(gpu.numa), "N/A"]
        lines.append("\t".join(row))
    return "".join(f"{line}\n" for line in lines) + _LEGEND


def _relation(one: SeenGpu, other: SeenGpu) -> str:
    if one.index == other.index:
        return " X "
    links = links_of(find_model(one.model) if one.model else None)
    # MIG instances do not use NVLink.
    if links and one.island == other.island and not (one.is_mig or other.is_mig):
        return f"NV{links}"
    return "NODE" if one.numa == other.numa else "SYS"
