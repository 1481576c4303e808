"""A ClusterPolicy is read with the defaults of NVIDIA's chart; a field without effect is named."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.operator.policy.active import PolicyCandidate, ranked
from shoal.operator.policy.reading import read_cluster_policy
from shoal.units.errors import UserError, Where

DEFAULTS: dict[str, tuple[str, object]] = {
    "the driver is on": ("driver.enabled", True),
    "the toolkit is on": ("toolkit.enabled", True),
    "the device plugin is on": ("device_plugin.enabled", True),
    "feature discovery is on": ("gfd.enabled", True),
    "the exporter is on": ("dcgm_exporter.enabled", True),
    "the MIG manager is on": ("mig_manager.enabled", True),
    "DCGM is off": ("dcgm.enabled", False),
    "the node status exporter is off": ("node_status_exporter.enabled", False),
    "GPUDirect Storage is off": ("gds.enabled", False),
    "gdrcopy is off": ("gdrcopy.enabled", False),
    "the MIG strategy is single": ("mig.strategy", "single"),
    "the default layout is all-disabled": ("mig_manager.config.default", "all-disabled"),
    "CDI is on": ("cdi.enabled", True),
    "the runtime class is nvidia": ("operator.runtime_class", "nvidia"),
    "service monitors are off": ("dcgm_exporter.service_monitor.enabled", False),
    "service monitors scrape every 15 s": ("dcgm_exporter.service_monitor.interval", "15s"),
    "sandbox workloads are off": ("sandbox_workloads.enabled", False),
    "the toolkit is installed below /usr/local/nvidia": ("toolkit.install_dir", "/usr/local/nvidia"),
    "DaemonSets are updated one node at a time": ("daemonsets.rolling_update.max_unavailable", "1"),
}


@pytest.mark.parametrize("case", DEFAULTS)
def test_by_default(case: str) -> None:
    path, expected = DEFAULTS[case]
    found: Any = read_cluster_policy({}).spec
    for step in path.split("."):
        found = getattr(found, step)
    assert found == expected


WARNINGS: dict[str, tuple[dict[str, Any], str]] = {
    "a misspelled component names the nearest one": (
        {"devicePlugn": {"enabled": True}},
        "spec.devicePlugn: unknown field; did you mean devicePlugin?; it has no effect",
    ),
    "a misspelled field of a component names the nearest one": (
        {"driver": {"verison": "580"}},
        "spec.driver.verison: unknown field; did you mean version?; it has no effect",
    ),
    "a field deep inside is found": (
        {"dcgmExporter": {"serviceMonitor": {"intervall": "30s"}}},
        "spec.dcgmExporter.serviceMonitor.intervall: unknown field; did you mean interval?; it has no effect",
    ),
    "an unlike field names no other": (
        {"mig": {"xyz": 1}},
        "spec.mig.xyz: unknown field; it has no effect",
    ),
    "a pod security policy has no effect": (
        {"psp": {"enabled": True}},
        "spec.psp: no effect: PodSecurityPolicy was removed in Kubernetes 1.25",
    ),
    "a version without a repository has no effect on Shoal's components": (
        {"gfd": {"version": "v0.18.0"}},
        (
            "spec.gfd.version: no effect: without spec.gfd.repository the component runs Shoal's image; name the "
            "repository to use NVIDIA's image"
        ),
    ),
    "a default key without a ConfigMap has no effect": (
        {"devicePlugin": {"config": {"default": "any"}}},
        "spec.devicePlugin.config.default: no effect: spec.devicePlugin.config.name names no ConfigMap",
    ),
}


@pytest.mark.parametrize("case", WARNINGS)
def test_a_field_without_effect_is_named(case: str) -> None:
    written, expected = WARNINGS[case]
    assert read_cluster_policy(written).warnings == (expected,)


QUIET: dict[str, dict[str, Any]] = {
    "all that a chart renders as off": {"psp": {"enabled": False}, "operator": {"use_ocp_driver_toolkit": False}},
    "a null": {"driver": {"version": None, "env": None}},
    "labels with any name": {"daemonsets": {"labels": {"anything": "x"}}},
    "a version of the driver": {"driver": {"version": "580.82.07"}, "toolkit": {"version": "v1.18.0"}},
    "names with capitals": {"dcgmExporter": {"hostPID": True, "enablePodUID": True}, "hostPaths": {"rootFS": "/"}},
}


@pytest.mark.parametrize("case", QUIET)
def test_a_field_that_is_right_has_no_warning(case: str) -> None:
    assert read_cluster_policy(QUIET[case]).warnings == ()


FAULTS: dict[str, tuple[Any, str]] = {
    "a text for a switch": (
        {"driver": {"enabled": "yes"}},
        "ClusterPolicy p: spec.driver.enabled: expected `bool`, got `str`",
    ),
    "an unknown strategy": ({"mig": {"strategy": "double"}}, "spec.mig.strategy: invalid enum value"),
    "a list for an object": ({"driver": []}, "spec.driver: expected `object`, got `array`"),
    "a variable without a name": ({"toolkit": {"env": [{"value": "1"}]}}, "spec.toolkit.env[0]"),
    "a spec that is no object": ([], "ClusterPolicy p: spec: must be an object"),
    "an upgrade policy with half a node": (
        {"driver": {"upgradePolicy": {"maxUnavailable": "half"}}},
        'spec.driver.upgradePolicy.maxUnavailable: "half" is neither a number of nodes nor a percentage',
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_value_of_a_wrong_type_is_refused_with_its_place(case: str) -> None:
    written, words = FAULTS[case]
    with pytest.raises(UserError) as caught:
        read_cluster_policy(written, Where(obj="ClusterPolicy p"))
    assert words in str(caught.value)


def test_the_oldest_policy_of_the_real_group_applies() -> None:
    old = PolicyCandidate("b", "2026-01-01T00:00:00Z")
    new = PolicyCandidate("a", "2026-01-02T00:00:00Z")
    copied = PolicyCandidate("c", "2025-01-01T00:00:00Z", "config.openshift.io")
    assert ranked([copied, new, old]) == [old, new, copied]
    same = PolicyCandidate("a", "2026-01-01T00:00:00Z")
    assert ranked([old, same])[0] == same
