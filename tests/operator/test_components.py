"""Which components a policy asks for, in which order, and how they wait for each other on a node."""

from __future__ import annotations

from typing import Any

import pytest

from build.operator_objects import FACTS, PCI, SETTINGS, Built, gpu_node, states
from shoal.operator.components.desired import images
from shoal.operator.components.facts import OperatorNode, OperatorSettings, fleet_facts
from shoal.operator.components.operating_systems import os_tag

Obj = dict[str, Any]
USUAL = [
    "nvidia-node-feature-discovery",
    "nvidia-driver-daemonset",
    "nvidia-container-toolkit-daemonset",
    "nvidia-operator-validator",
    "nvidia-device-plugin-daemonset",
    "nvidia-dcgm-exporter",
    "gpu-feature-discovery",
    "nvidia-mig-manager",
]
NVIDIA = {name: {"repository": "nvcr.io/nvidia"} for name in ("devicePlugin", "gfd", "validator", "dcgmExporter")}


def test_the_usual_components_come_in_the_order_of_the_states() -> None:
    assert Built({}).daemon_sets == USUAL


def test_without_driver_and_toolkit_the_others_remain() -> None:
    built = Built({"driver": {"enabled": False}, "toolkit": {"enabled": False}})
    assert built.daemon_sets == [USUAL[0], *USUAL[3:]]


def test_where_node_feature_discovery_runs_shoals_own_does_not() -> None:
    settings = OperatorSettings(namespace="n", has_discovery=False)
    assert Built({}, FACTS, settings).daemon_sets == USUAL[1:]


def test_the_discovery_runs_on_every_node_without_privileges() -> None:
    pod = Built({}).pod("nvidia-node-feature-discovery")
    assert "nodeSelector" not in pod
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["containers"][0]["securityContext"] == {"allowPrivilegeEscalation": False}


WAITS = {
    "the toolkit waits for the driver": ("nvidia-container-toolkit-daemonset", ["driver-validation"]),
    "the device plugin waits for the toolkit": ("nvidia-device-plugin-daemonset", ["toolkit-validation"]),
    "feature discovery waits for the toolkit": ("gpu-feature-discovery", ["toolkit-validation"]),
    "the exporter waits for the toolkit": ("nvidia-dcgm-exporter", ["toolkit-validation"]),
    "the MIG manager waits for the toolkit": ("nvidia-mig-manager", ["toolkit-validation"]),
    "the validator tests the layers in their order": (
        "nvidia-operator-validator",
        ["driver-validation", "toolkit-validation", "cuda-validation", "plugin-validation"],
    ),
}


@pytest.mark.parametrize("spec", [{}, NVIDIA], ids=["Shoal's images", "NVIDIA's images"])
@pytest.mark.parametrize("case", WAITS)
def test_a_later_layer_waits(case: str, spec: Obj) -> None:
    name, expected = WAITS[case]
    assert [one["name"] for one in Built(spec).pod(name)["initContainers"]] == expected


def test_without_a_validator_nothing_waits_for_it() -> None:
    built = Built({"validator": {"enabled": False}})
    assert "nvidia-operator-validator" not in built.daemon_sets
    assert all("validation" not in str(built.pod(name).get("initContainers", "")) for name in built.daemon_sets)


def test_the_driver_is_replaced_only_when_its_pod_is_deleted() -> None:
    assert Built({}).get("DaemonSet", "nvidia-driver-daemonset")["spec"]["updateStrategy"] == {"type": "OnDelete"}


def test_without_gpu_nodes_there_is_no_driver_yet() -> None:
    assert "nvidia-driver-daemonset" not in Built({}, fleet_facts([])).daemon_sets


def test_each_kernel_has_its_own_precompiled_driver() -> None:
    nodes = [gpu_node("a"), gpu_node("b", kernel="6.8.0-1009-aws"), gpu_node("c")]
    built = Built({"driver": {"usePrecompiled": True}}, fleet_facts(nodes))
    names = [name for name in built.daemon_sets if "driver" in name]
    assert names == [f"nvidia-driver-daemonset-{one}-ubuntu22.04" for one in ("5.15.0-105-generic", "6.8.0-1009-aws")]
    selectors = [built.get("DaemonSet", name)["spec"]["selector"]["matchLabels"] for name in names]
    assert selectors[0] != selectors[1]
    for name in names:
        labels = built.get("DaemonSet", name)["spec"]["template"]["metadata"]["labels"]
        assert labels["app"] == "nvidia-driver-daemonset"
        assert built.get("DaemonSet", name)["spec"]["selector"]["matchLabels"].items() <= labels.items()


def test_a_policy_that_names_no_config_map_key_waits_for_it_and_the_other_components_are_built() -> None:
    found = states({"driver": {"certConfig": {"name": "absent"}}})
    faults = {one.name: one.fault for one in found if one.fault}
    assert list(faults) == ["state-driver"]
    assert "ConfigMap gpu-operator/absent, which spec.driver names, not found" in faults["state-driver"]
    assert any(one.objects for one in found if one.name == "state-device-plugin")


def test_an_unknown_operating_system_is_a_fault_of_the_driver_only_for_a_tag() -> None:
    facts = fleet_facts([gpu_node(os_image="Gentoo")])
    assert Built({}, facts).daemon_sets == [one for one in USUAL if "driver" not in one]


def test_nvidias_device_plugin_gets_its_configuration_from_a_second_container() -> None:
    plugin = {"repository": "nvcr.io/nvidia", "config": {"name": "sharing"}}
    built = Built({"devicePlugin": plugin})
    pod = built.pod("nvidia-device-plugin-daemonset")
    assert [one["name"] for one in pod["containers"]] == ["nvidia-device-plugin", "config-manager"]
    env = built.env("nvidia-device-plugin-daemonset", "config-manager")
    assert (env["DEFAULT_CONFIG"], env["FALLBACK_STRATEGIES"]) == ("", "empty")
    assert "nvidia-device-plugin-mps-control-daemon" in built.daemon_sets
    assert (
        "nvidia-device-plugin-mps-control-daemon" not in Built({"devicePlugin": {"config": {"name": "x"}}}).daemon_sets
    )


def test_nvidias_images_have_their_names_and_versions_where_the_policy_leaves_them_out() -> None:
    built = Built(NVIDIA)
    assert built.container("nvidia-device-plugin-daemonset")["image"] == "nvcr.io/nvidia/k8s-device-plugin:v0.18.0"
    assert built.container("nvidia-driver-daemonset")["image"] == "nvcr.io/nvidia/driver:580.95.05-ubuntu22.04"
    toolkit = built.container("nvidia-container-toolkit-daemonset")["image"]
    assert toolkit == "nvcr.io/nvidia/k8s/container-toolkit:v1.18.0"


def test_the_images_of_a_site_without_registries_are_listed_once() -> None:
    found = images(states({}))
    assert found[0] == SETTINGS.image
    assert len(found) == len(set(found)) == 4


def test_a_component_that_nvidia_does_not_publish_needs_an_image() -> None:
    found = states({"sandboxWorkloads": {"enabled": True}, "vgpuManager": {"enabled": True}})
    fault = next(one.fault for one in found if one.name == "state-vgpu-manager")
    assert fault == ("spec.vgpuManager: names no image, and NVIDIA publishes none; set repository, image and version")


def test_every_container_mounts_only_volumes_of_its_pod() -> None:
    everything = {
        **NVIDIA,
        "sandboxWorkloads": {"enabled": True},
        "dcgm": {"enabled": True},
        "nodeStatusExporter": {"enabled": True},
        "driver": {"rdma": {"enabled": True}, "certConfig": {"name": "certs"}},
        "devicePlugin": {"repository": "r", "config": {"name": "c"}},
    }
    for spec in ({}, everything):
        built = Built(spec)
        for name in built.daemon_sets:
            pod = built.pod(name)
            volumes = [one["name"] for one in pod.get("volumes", ())]
            assert len(volumes) == len(set(volumes))
            for container in (*pod["containers"], *pod.get("initContainers", ())):
                assert {one["name"] for one in container.get("volumeMounts", ())} <= set(volumes)
                paths = [one["mountPath"] for one in container.get("volumeMounts", ())]
                assert len(paths) == len(set(paths)), (name, paths)
            assert ("ServiceAccount", pod["serviceAccountName"]) in built.objects


def test_every_object_is_labelled_as_the_operators() -> None:
    for (kind, _), obj in Built({}).objects.items():
        assert obj["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "shoal-operator", kind


SYSTEMS = {
    "Ubuntu 22.04.4 LTS": "ubuntu22.04",
    "Ubuntu 24.04 LTS": "ubuntu24.04",
    "Red Hat Enterprise Linux 9.4 (Plow)": "rhel9.4",
    "Red Hat Enterprise Linux CoreOS 4.16": "rhcos4.16",
    "Debian GNU/Linux 12 (bookworm)": "debian12",
    "Gentoo": "",
}


@pytest.mark.parametrize("image", SYSTEMS)
def test_the_operating_system_is_named_as_in_the_tags_of_driver_images(image: str) -> None:
    assert os_tag({}, image) == SYSTEMS[image]


def test_the_labels_of_node_feature_discovery_come_before_the_name_of_the_kubelet() -> None:
    prefix = "feature.node.kubernetes.io/system-os_release."
    assert os_tag({f"{prefix}ID": "rhel", f"{prefix}VERSION_ID": "8.10"}, "Ubuntu 22.04 LTS") == "rhel8.10"


def test_the_most_frequent_system_and_runtime_of_the_nodes_with_gpus_count() -> None:
    other = gpu_node("b", os_image="Debian GNU/Linux 12 (bookworm)", runtime="cri-o://1.33")
    plain = OperatorNode("c", {}, "Ubuntu 24.04 LTS", "6.8", "docker://1")
    facts = fleet_facts([other, gpu_node("a"), gpu_node("d"), plain])
    assert (facts.gpu_nodes, facts.systems, facts.runtime) == (3, ("ubuntu22.04", "debian12"), "containerd")
    assert facts.has_labels
    assert not fleet_facts([OperatorNode("x", {PCI.partition(".")[0]: "true"})]).has_labels


def test_labels_of_the_policy_do_not_replace_those_by_which_the_operator_knows_its_objects() -> None:
    foreign = {"app.kubernetes.io/managed-by": "somebody", "release": "prom"}
    built = Built({"dcgmExporter": {"serviceMonitor": {"enabled": True, "additionalLabels": foreign}}})
    labels = built.get("ServiceMonitor", "nvidia-dcgm-exporter")["metadata"]["labels"]
    assert labels["app.kubernetes.io/managed-by"] == "shoal-operator"
    assert labels["release"] == "prom"
