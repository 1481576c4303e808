"""The device plugin's configuration, from the machine and from ConfigMaps."""

from __future__ import annotations

import pytest

from build.gpu_pods import GPU, config_map, device_manager
from shoal.embedded.gpus.node_gpus import Complaint

LABEL = "nvidia.com/device-plugin.config"
FOUR = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"


def sharing(block: str, kind: str = "timeSlicing") -> str:
    return f"version: v1\nsharing: {{{kind}: {block}}}"


@pytest.mark.parametrize(
    ("text", "resources"),
    [
        (FOUR, {GPU: 16}),
        (sharing("{renameByDefault: true, resources: [{name: gpu, replicas: 2}]}"), {"nvidia.com/gpu.shared": 8}),
        (sharing("{resources: [{name: nvidia.com/gpu, replicas: 3}]}", "mps"), {GPU: 12}),
        (sharing("{resources: [{name: nvidia.com/mig-1g.5gb, replicas: 3}]}"), {GPU: 4}),
        ("version: v1\nflags: {migStrategy: none}", {GPU: 4}),
    ],
)
def test_a_configuration_changes_what_is_offered(text: str, resources: dict[str, int]) -> None:
    node = device_manager("g5.12xlarge")
    node.configure({LABEL: "any"}, {"gpu-operator/time-slicing-config": config_map(any=text)})
    assert {name: one.capacity for name, one in node.resources().items() if one.capacity} == resources


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (sharing("{renameByDefault: true}"), "no resources specified"),
        (sharing("{replicas: 4}", "mps"), "no resources specified"),
        (sharing("{replicas: 1}"), "must be >= 2"),
        (sharing("{resources: [{name: nvidia.com/gpu, replicas: 49}]}", "mps"), "replicas exceeded: 49 > 48"),
        (sharing("{resources: [{name: nvidia.com/gpu, replicas: 1}]}"), "must be >= 2"),
        (sharing("{resources: [{replicas: 2}]}"), "no resource name"),
        ("version: v2", "unknown version: v2"),
        ("version: v1\nflags: {migStrategy: both}", "migStrategy"),
    ],
)
def test_what_the_plugin_would_refuse_leaves_it_as_it_was(text: str, told: str) -> None:
    node = device_manager("g5.12xlarge")
    configs = {"gpu-operator/config": config_map(any=text)}
    (said,) = node.configure({LABEL: "any"}, configs)
    assert told in said
    assert node.resources()[GPU].capacity == 4
    assert node.configure({LABEL: "any"}, configs) == []


def test_mps_comes_before_time_slicing_and_a_warning_says_so() -> None:
    node = device_manager("g5.12xlarge")
    both = sharing("{resources: [{name: gpu, replicas: 2}]}, mps: {resources: [{name: gpu, replicas: 3}]}")
    (said,) = node.configure({LABEL: "any"}, {"gpu-operator/config": config_map(any=both)})
    assert "mps is used, timeSlicing is ignored" in said
    assert isinstance(said, Complaint)
    assert node.resources()[GPU].capacity == 12


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            sharing("{resources: [{name: gpu, replicas: 2, rename: gpu.half}]}"),
            "nvidia.com/gpu: the device plugin ignores rename",
        ),
        (sharing("{resources: [{name: gpu, replicas: 2, devices: [0, 1]}]}"), "the device plugin ignores devices"),
        (FOUR + "\nflags: {migStrateg: none}", "flags.migStrateg: the device plugin has no such field"),
    ],
)
def test_what_the_plugin_ignores_is_told(text: str, told: str) -> None:
    node = device_manager("g5.12xlarge")
    (said,) = node.configure({LABEL: "any"}, {"gpu-operator/config": config_map(any=text)})
    assert told in said
    assert node.resources()[GPU].capacity > 4


def test_a_key_that_no_config_map_has_is_told_once() -> None:
    node = device_manager("g5.12xlarge")
    configs = {"gpu-operator/config": config_map(any=FOUR)}
    (said,) = node.configure({LABEL: "tesla-t4"}, configs)
    assert said.endswith("no ConfigMap has the key; gpu-operator/config has any")
    assert isinstance(said, Complaint)
    assert node.configure({LABEL: "tesla-t4"}, configs) == []


def test_a_changed_config_map_is_followed_and_a_label_taken_away_too() -> None:
    node = device_manager("g5.12xlarge[time-slicing=2]")
    node.configure({LABEL: "any"}, {"a/b": config_map(any=FOUR)})
    node.configure({LABEL: "any"}, {"a/b": config_map(any=FOUR.replace("4", "6"))})
    assert node.resources()[GPU].capacity == 24
    node.configure({}, {})
    assert node.resources()[GPU].capacity == 8


def test_mig_instances_are_shared_by_their_own_name() -> None:
    node = device_manager("dgx-a100-40[mig=all-1g.5gb]")
    text = sharing("{resources: [{name: nvidia.com/mig-1g.5gb, replicas: 4}]}")
    node.configure({LABEL: "any"}, {"a/b": config_map(any=text)})
    assert node.resources()["nvidia.com/mig-1g.5gb"].capacity == 56 * 4
    labels = node.labels()
    assert labels["nvidia.com/mig-1g.5gb.replicas"] == "4"
    assert labels["nvidia.com/mig-1g.5gb.product"] == "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED"


def test_mps_does_not_start_on_mig_instances() -> None:
    node = device_manager("dgx-a100-40[mig=all-1g.5gb]")
    before = node.labels()
    text = sharing("{resources: [{name: nvidia.com/mig-1g.5gb, replicas: 4}]}", "mps")
    said = node.configure({LABEL: "any"}, {"a/b": config_map(any=text)})
    assert "sharing.mps is not supported for MIG devices" in said[-1]
    assert node.resources()["nvidia.com/mig-1g.5gb"].capacity == 0
    assert node.labels() == before


def test_replicas_without_resources_mean_all_gpus_and_a_warning_says_so() -> None:
    node = device_manager("g5.12xlarge")
    (said,) = node.configure({LABEL: "any"}, {"nvidia-gpu-operator/config": config_map(any=sharing("{replicas: 4}"))})
    assert "is read as resources: [{name: nvidia.com/gpu, replicas: 4}]" in said
    assert isinstance(said, Complaint)
    assert node.resources()[GPU].capacity == 16


def test_replicas_without_resources_share_instances_under_the_strategy_single_with_a_warning() -> None:
    node = device_manager("dgx-a100-80[mig=all-1g.10gb]")
    text = "version: v1\nflags: {migStrategy: single}\nsharing: {timeSlicing: {replicas: 4}}"
    said = node.configure({LABEL: "mig-1g.10gb"}, {"default/config": config_map(**{"mig-1g.10gb": text})})
    assert node.resources()[GPU].capacity == 8 * 28
    assert "not meant for production" in said[-1]


def test_a_gpu_before_turing_has_sixteen_mps_clients() -> None:
    node = device_manager("p3.2xlarge")
    text = sharing("{resources: [{name: nvidia.com/gpu, replicas: 17}]}", "mps")
    (said,) = node.configure({LABEL: "any"}, {"gpu-operator/config": config_map(any=text)})
    assert "replicas exceeded: 17 > 16" in said


def test_the_namespaces_of_the_operator_come_before_default() -> None:
    node = device_manager("g5.12xlarge")
    configs = {"default/config": config_map(any=FOUR.replace("4", "2")), "gpu-operator/config": config_map(any=FOUR)}
    node.configure({LABEL: "any"}, configs)
    assert node.resources()[GPU].capacity == 16


def test_a_key_is_missing_and_no_config_map_has_any() -> None:
    (said,) = device_manager("g5.12xlarge").configure({LABEL: "any"}, {})
    assert "none in the namespaces gpu-operator, nvidia-gpu-operator, " in said
