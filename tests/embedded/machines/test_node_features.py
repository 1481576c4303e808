"""Labels of Node Feature Discovery on the machines of the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.embedded.machines.features import feature_labels
from shoal.embedded.machines.fleet_spec import read_fleet

PREFIX = "feature.node.kubernetes.io/"


def labels(spec: str) -> dict[str, str]:
    (machine,) = read_fleet(f"1x{spec}")
    found = feature_labels(machine, machine.node_info)
    assert all(name.startswith(PREFIX) for name in found)
    return {name.removeprefix(PREFIX): value for name, value in found.items()}


def test_kernel_and_system_are_those_that_the_kubelet_reports() -> None:
    found = labels("p5.48xlarge")
    assert {name: value for name, value in found.items() if name.startswith(("kernel", "system"))} == {
        "kernel-version.full": "6.8.0-1040-generic",
        "kernel-version.major": "6",
        "kernel-version.minor": "8",
        "kernel-version.revision": "0",
        "system-os_release.ID": "ubuntu",
        "system-os_release.VERSION_ID": "24.04",
        "system-os_release.VERSION_ID.major": "24",
        "system-os_release.VERSION_ID.minor": "04",
    }


@pytest.mark.parametrize(
    ("spec", "vendors", "processor"),
    [
        ("p5.48xlarge", {"pci-10de.present", "pci-1d0f.present"}, ("AMD", "25", "1")),
        ("dgx-h100", {"pci-10de.present", "pci-15b3.present"}, ("Intel", "6", "143")),
        ("g5.12xlarge", {"pci-10de.present", "pci-1d0f.present"}, ("AMD", "23", "49")),
    ],
)
def test_devices_and_processor_follow_from_the_profile(
    spec: str, vendors: set[str], processor: tuple[str, str, str]
) -> None:
    found = labels(spec)
    assert {name for name in found if name.startswith("pci-")} == vendors
    assert tuple(found[f"cpu-model.{name}"] for name in ("vendor_id", "family", "id")) == processor


def test_the_processor_is_told_of_machines_of_which_it_is_known_and_of_no_newer_ones_of_their_series() -> None:
    known = [name for name in ("a3-highgpu-8g", "a3-megagpu-8g", "a3-ultragpu-8g") if "cpu-model.id" in labels(name)]
    assert known == ["a3-highgpu-8g", "a3-megagpu-8g"]


def test_a_machine_without_gpus_has_none_of_their_labels(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text("machines: [{name: plain, cpu: 8, memory: 32Gi}]")
    (machine,) = read_fleet(str(file))
    found = feature_labels(machine, machine.node_info)
    assert not [name for name in found if "pci-" in name or "cpu-model" in name]
