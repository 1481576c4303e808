"""The labels of GPUs by machine type, as files: `PYTHONPATH=tests python -m build.golden_labels` writes them anew.

Machines with the same GPUs differ in the label gpu.machine only; the first one of the catalogue has the file.
"""

from __future__ import annotations

from pathlib import Path

from build.gpu_pods import device_manager
from shoal.agent.features.label_source import LabelSource, SourceSettings
from shoal.devices.node_metadata import NodeMetadata
from shoal.embedded.gpus.dcgm import DcgmExporter
from shoal.embedded.gpus.device_manager import DeviceManager
from shoal.embedded.gpus.simulated_driver import SimulatedDriver
from shoal.embedded.machines.machine_types import machine_names

FOLDER = Path(__file__).parents[1] / "devices" / "golden"
VARIANTS = (
    "dgx-a100-40[mig=all-1g.5gb,strategy=single]",
    "dgx-a100-80[mig=all-balanced]",
    "dgx-h100[mig=all-1g.10gb]",
    "dgx-h200[mig=all-3g.71gb]",
    "g5.12xlarge[mps=4]",
    "g5.12xlarge[time-slicing=4]",
    "g5.12xlarge[time-slicing=4,rename]",
)
"""Machines of the catalogue with MIG layouts and shared GPUs."""
_MACHINE = "nvidia.com/gpu.machine"


def agent_metadata(manager: DeviceManager) -> NodeMetadata:
    """What the agent writes on a node with this machine, with the configuration of its device plugin."""
    driver = SimulatedDriver(manager, DcgmExporter(manager), lambda: 0.0)
    return LabelSource(lambda: driver, SourceSettings(manager.config), manager.machine.machine_type).read()


def agent_labels(spec: str) -> dict[str, str]:
    return agent_metadata(device_manager(spec)).labels


def without_machine(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in labels.items() if name != _MACHINE))


def golden() -> dict[str, dict[str, str]]:
    """The labels in the files, by machine."""
    return {file.stem: _read(file) for file in sorted(FOLDER.glob("*.labels"))}


def _read(file: Path) -> dict[str, str]:
    rows = (line.partition("=") for line in file.read_text().splitlines())
    return {name: value for name, _, value in rows}


def _renew() -> None:
    FOLDER.mkdir(exist_ok=True)
    for file in FOLDER.glob("*.labels"):
        file.unlink()
    seen = set()
    for spec in (*machine_names(), *VARIANTS):
        labels = agent_labels(spec)
        if labels and without_machine(labels) not in seen:
            seen.add(without_machine(labels))
            lines = "".join(f"{name}={value}\n" for name, value in labels.items())
            (FOLDER / f"{spec}.labels").write_text(lines)


if __name__ == "__main__":
    _renew()
