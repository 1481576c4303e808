"""Prints the sections of `nvidia-smi -q` that users look up."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.embedded.gpus.smi_view import GpuView, SeenGpu

_NAME_WIDTH = 42


def report(view: GpuView) -> str:
    lines = ["", "==============NVSMI LOG==============", ""]
    lines += [_line(0, "Timestamp", view.at or "N/A"), _line(0, "Driver Version", view.driver)]
    lines += [_line(0, "CUDA Version", view.cuda), "", _line(0, "Attached GPUs", str(len(view.gpus)))]
    for gpu in view.gpus:
        lines += _gpu(gpu)
    return "".join(f"{line}\n" for line in lines)


def _gpu(gpu: SeenGpu) -> Iterator[str]:
    util = "N/A" if gpu.is_mig else f"{gpu.util_percent} %"
    yield f"GPU {gpu.pci}"
    yield _line(1, "Product Name", gpu.name)
    yield _line(1, "Persistence Mode", "Enabled")
    yield from _block("MIG Mode", {"Current": "Enabled" if gpu.is_mig else "Disabled"})
    yield _line(1, "Serial Number", gpu.serial or "N/A")
    yield _line(1, "GPU UUID", gpu.uuid)
    yield from _block("PCI", {"Bus Id": gpu.pci})
    yield from _block(
        "FB Memory Usage",
        {
            "Total": f"{gpu.memory_mib} MiB",
            "Reserved": f"{gpu.reserved_mib} MiB",
            "Used": f"{gpu.used_mib} MiB",
            "Free": f"{gpu.memory_mib - gpu.reserved_mib - gpu.used_mib} MiB",
        },
    )
    yield from _block("Utilization", {"GPU": util})
    yield from _block("ECC Errors", {"DRAM Uncorrectable": str(gpu.double_bit_errors)})
    yield from _block("Temperature", {"GPU Current Temp": f"{gpu.temperature_c} C"})
    power = "N/A" if gpu.power_w is None else f"{gpu.power_w:.2f} W"
    yield from _block("GPU Power Readings", {"Average Power Draw": power})
    yield from _block("Clocks", {"SM": f"{gpu.sm_mhz} MHz", "Memory": f"{gpu.memory_mhz} MHz"})
    yield _line(1, "Processes", "" if gpu.processes else "None")
    for one in gpu.processes:
        yield _line(2, "Process ID", str(one.pid))
        yield _line(3, "Name", one.name)
        yield _line(3, "Used GPU Memory", f"{one.memory_mib} MiB")
    yield ""


def _block(title: str, rows: dict[str, str]) -> Iterator[str]:
    yield f"    {title}"
    for name, value in rows.items():
        yield _line(2, name, value)


def _line(depth: int, name: str, value: str) -> str:
    return f"{'    ' * depth + name:<{_NAME_WIDTH}} : {value}".rstrip()
