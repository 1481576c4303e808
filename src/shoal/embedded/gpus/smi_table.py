"""Prints the default table of nvidia-smi."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.embedded.gpus.smi_view import GpuView, SeenGpu

_EDGE = f"+{'-' * 89}+"
_THREE = f"+{'-' * 41}+{'-' * 24}+{'-' * 22}+"
_MIG_EDGE = f"+{'-' * 22}+{'-' * 37}+{'-' * 28}+"


def table(view: GpuView) -> str:
    return "".join(f"{line}\n" for line in _lines(view))


def _lines(view: GpuView) -> Iterator[str]:
    if view.at:
        yield view.at
    yield _EDGE
    yield _row(f"NVIDIA-SMI {view.driver:<22} Driver Version: {view.driver:<14} CUDA Version: {view.cuda}")
    yield _THREE
    yield _cells("GPU  Name                 Persistence-M", "Bus-Id          Disp.A", "Volatile Uncorr. ECC")
    yield _cells("Fan  Temp   Perf          Pwr:Usage/Cap", "          Memory-Usage", "GPU-Util  Compute M.")
    yield _cells("", "", "MIG M.")
    yield _THREE.replace("-", "=")
    for gpu in view.gpus:
        yield from _gpu(gpu)
    yield ""
    if any(gpu.is_mig for gpu in view.gpus):
        yield from _mig(view)
    yield _EDGE
    yield _row("Processes:")
    yield _row(" GPU   GI   CI              PID   Type   Process name                        GPU Memory")
    yield f"|{'=' * 89}|"
    rows = list(_processes(view))
    yield from rows or [_row(" No running processes found")]
    yield _EDGE


def _gpu(gpu: SeenGpu) -> Iterator[str]:
    power = "N/A /  N/A" if gpu.power_w is None else f"{gpu.power_w:.0f}W / {gpu.power_limit_w:>4}W"
    util = "N/A" if gpu.is_mig else f"{gpu.util_percent}%"
    memory = f"{gpu.used_mib}MiB / {gpu.memory_mib:>6}MiB"
    yield _cells(f"{gpu.index:>3}  {gpu.name[:24]:<24}        On", f"{gpu.pci} Off", str(gpu.double_bit_errors))
    yield _cells(f"N/A  {gpu.temperature_c:>3}C    P0{power:>24}", memory, f"{util:>5}      Default")
    yield _cells("", "", "Enabled" if gpu.is_mig else "Disabled")
    yield _THREE


def _mig(view: GpuView) -> Iterator[str]:
    yield _EDGE
    yield _row("MIG devices:")
    yield _MIG_EDGE
    yield _mig_cells("GPU  GI  CI  MIG", "Memory-Usage", "SM")
    yield _MIG_EDGE.replace("-", "=")
    for gpu in view.gpus:
        for number, one in enumerate(gpu.instances):
            memory = f"{one.used_mib}MiB / {one.memory_mib:>6}MiB"
            yield _mig_cells(f"{gpu.index:>3} {one.number:>3}   0 {number:>4}", memory, str(one.sm or "N/A"))
    yield _MIG_EDGE
    yield ""


def _processes(view: GpuView) -> Iterator[str]:
    for gpu in view.gpus:
        for one in gpu.processes:
            instance = "N/A  N/A" if one.instance is None else f"{one.instance:>3}    0"
            head = f" {gpu.index:>3}   {instance}   {one.pid:>14}      C   {one.name[:34]:<34}"
            yield _row(f"{head} {one.memory_mib:>7}MiB")


def _row(text: str) -> str:
    return f"| {text:<87} |"


def _cells(first: str, second: str, third: str) -> str:
    return f"| {first:<39} | {second:>22} | {third:>20} |"


def _mig_cells(first: str, second: str, third: str) -> str:
    return f"| {first:<20} | {second:>35} | {third:>26} |"
