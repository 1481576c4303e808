"""The values files of guides: each is read, and does what its entry in the index of the collection says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from build.collected_manifests import COLLECTED
from shoal.install.cluster_policy import cluster_policy, component_configs
from shoal.install.values.reading import ChartValues, ValuesText, read_values

_VALUES = COLLECTED / "helm-values"
pytestmark = pytest.mark.skipif(not _VALUES.is_dir(), reason="the collection is not there")

_EXPECTED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "dcgm-servicemonitor": ({"dcgmExporter.serviceMonitor": {"enabled": True, "interval": "30s"}}, ()),
    "driver-and-toolkit-preinstalled": ({"driver.enabled": False, "toolkit.enabled": False}, ()),
    "driver-preinstalled": ({"driver.enabled": False, "toolkit.enabled": True}, ()),
    "driver-upgrade": ({"driver.version": "580.82.07", "driver.upgradePolicy.autoUpgrade": True}, ()),
    "mig-mixed-all-1g10gb": (
        {"mig.strategy": "mixed", "migManager.config.default": "all-1g.10gb"},
        ("migManager.config.default",),
    ),
    "mig-mixed-reboot": (
        {"mig.strategy": "mixed", "migManager.env": [{"name": "WITH_REBOOT", "value": "true"}]},
        (),
    ),
    "mig-single-all-1g10gb": (
        {"mig.strategy": "single", "migManager.config.default": "all-1g.10gb"},
        ("migManager.config.default",),
    ),
    "mig-single": ({"mig.strategy": "single"}, ()),
    "mps": ({"devicePlugin.config.default": "mps"}, ("8 replicas",)),
    "nvidia-system-time-slicing": (
        {"devicePlugin.config": {"name": "time-slicing-config", "default": "any"}, "gfd.enabled": True},
        ("nfd.enabled",),
    ),
    "options-and-defaults": ({"mig.strategy": "none", "driver.enabled": True}, ()),
    "pinned-driver-toolkit": (
        {"driver.version": "580.82.07", "toolkit.version": "v1.17.4-ubuntu20.04"},
        ("v1.17.4-ubuntu20.04", "escape"),
    ),
}
"""By the name of the file: fields of the ClusterPolicy, and words of its warnings, one for each."""


def _values(file: Path) -> ChartValues:
    return read_values([ValuesText("--values", file.read_text(), file.name)])


@pytest.mark.parametrize("name", sorted(_EXPECTED))
def test_a_values_file_does_what_it_says(name: str) -> None:
    fields, warned = _EXPECTED[name]
    values = _values(_VALUES / f"gpu-operator-{name}.yaml")
    spec = cluster_policy(values)["spec"]
    for path, expected in fields.items():
        found: Any = spec
        for part in path.split("."):
            found = found[part]
        if isinstance(expected, dict):
            found = {part: found[part] for part in expected}
        assert found == expected, path
    assert len(values.warnings) == len(warned), values.warnings
    assert all(word in text for word, text in zip(warned, values.warnings, strict=True))


def test_every_file_of_the_gpu_operator_is_in_the_table() -> None:
    files = {file.stem.removeprefix("gpu-operator-") for file in _VALUES.glob("gpu-operator-*.yaml")}
    assert files == set(_EXPECTED)


def test_the_file_with_all_defaults_differs_from_them_only_where_it_says() -> None:
    given = _values(_VALUES / "gpu-operator-options-and-defaults.yaml")
    usual = read_values([])
    assert cluster_policy(given)["spec"] == {**cluster_policy(usual)["spec"], "mig": {"strategy": "none"}}


def test_only_the_file_with_mps_makes_a_configuration() -> None:
    made = {file.name for file in _VALUES.glob("gpu-operator-*.yaml") if component_configs(_values(file), "ns")}
    assert made == {"gpu-operator-mps.yaml"}
