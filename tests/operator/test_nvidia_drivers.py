"""NVIDIADrivers give some nodes another driver: which nodes, which DaemonSets, and which conflicts."""

from __future__ import annotations

from typing import Any

import pytest

from build.operator_objects import PCI, SETTINGS, gpu_node
from shoal.operator.components.build import Building
from shoal.operator.components.facts import OperatorNode, fleet_facts
from shoal.operator.components.nvidia_drivers import POOL_LABEL, DriverAssignment, assign_drivers
from shoal.operator.policy.nvidia_driver import read_nvidia_driver
from shoal.operator.policy.reading import read_cluster_policy
from shoal.units.errors import UserError

Obj = dict[str, Any]


def _node(name: str, pool: str, **more: Any) -> OperatorNode:
    return gpu_node(name, labels={PCI: "true", "pool": pool}, **more)


NODES = [_node("a", "old"), _node("b", "new"), _node("c", "new", os_image="Red Hat Enterprise Linux 9.4 (Plow)")]


def _assigned(
    drivers: dict[str, Obj], nodes: list[OperatorNode] | None = None, spec: Obj | None = None
) -> DriverAssignment:
    some = NODES if nodes is None else nodes
    policy = read_cluster_policy({"driver": {"useNvidiaDriverCRD": True}, **(spec or {})}).spec
    build = Building(policy, fleet_facts(some), SETTINGS)
    # Made in this order.
    read = [read_nvidia_driver(name, f"2026-01-0{at}", one) for at, (name, one) in enumerate(drivers.items(), 1)]
    return assign_drivers(build, read, some)


def _images(found: DriverAssignment, name: str) -> list[str]:
    pods = [one["spec"]["template"]["spec"] for one in found.daemon_sets[name]]
    return [one["containers"][0]["image"] for one in pods]


def test_each_operating_system_has_its_own_daemon_set() -> None:
    found = _assigned({"all": {"default": True, "version": "580.82.07"}})
    assert _images(found, "all") == [
        "nvcr.io/nvidia/driver:580.82.07-rhel9.4",
        "nvcr.io/nvidia/driver:580.82.07-ubuntu22.04",
    ]
    assert found.pools["a"] == found.pools["b"] != found.pools["c"]
    for one in found.daemon_sets["all"]:
        pod = one["spec"]["template"]
        assert pod["spec"]["nodeSelector"][POOL_LABEL] == pod["metadata"]["labels"][POOL_LABEL]
        assert pod["metadata"]["labels"]["app"] == "nvidia-driver-daemonset"
    names = [one["metadata"]["name"] for one in found.daemon_sets["all"]]
    assert len(set(names)) == 2


def test_the_default_gets_the_nodes_that_no_other_selects() -> None:
    found = _assigned({"rest": {"default": True}, "new": {"nodeSelector": {"pool": "new"}, "version": "590"}})
    assert found.faults == {}
    assert _images(found, "rest") == ["nvcr.io/nvidia/driver:580.95.05-ubuntu22.04"]
    assert len(_images(found, "new")) == 2


def test_node_affinity_selects_too() -> None:
    expression = {"key": "pool", "operator": "NotIn", "values": ["new"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    found = _assigned({"x": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}})
    assert list(found.pools) == ["a"]


def test_of_two_that_select_a_node_the_older_one_gets_it_and_the_other_says_so() -> None:
    found = _assigned({"first": {"nodeSelector": {"pool": "old"}}, "second": {}})
    assert found.faults == {
        "second": ("ConflictingNodeSelector", "node a is selected by NVIDIADriver first too, which is older")
    }
    assert found.pools["a"].startswith("first-")
    assert found.pools["b"].startswith("second-")


def test_a_precompiled_driver_has_a_daemon_set_for_each_kernel() -> None:
    nodes = [_node("a", "x"), _node("b", "x", kernel="6.8.0-1009-aws")]
    found = _assigned({"all": {"usePrecompiled": True, "version": "580"}}, nodes)
    assert _images(found, "all") == [
        "nvcr.io/nvidia/driver:580-5.15.0-105-generic-ubuntu22.04",
        "nvcr.io/nvidia/driver:580-6.8.0-1009-aws-ubuntu22.04",
    ]


def test_its_fields_are_those_of_the_driver_of_a_cluster_policy() -> None:
    fields = {
        "labels": {"team": "ml"},
        "annotations": {"a": "b"},
        "priorityClassName": "high",
        "tolerations": [{"operator": "Exists"}],
        "gds": {"enabled": True},
        "virtualTopologyConfig": {"name": "topology"},
        "kernelModuleType": "open",
    }
    found = _assigned({"x": fields}, [NODES[0]]).daemon_sets["x"][0]["spec"]["template"]
    assert (found["metadata"]["labels"]["team"], found["metadata"]["annotations"]) == ("ml", {"a": "b"})
    assert (found["spec"]["priorityClassName"], found["spec"]["tolerations"]) == ("high", [{"operator": "Exists"}])
    containers = {one["name"]: one for one in found["spec"]["containers"]}
    assert "nvidia-fs-ctr" in containers
    driver = containers["nvidia-driver-ctr"]
    assert {"name": "KERNEL_MODULE_TYPE", "value": "open"} in driver["env"]
    assert "/etc/nvidia/nvidia-topologyd.conf" in [one["mountPath"] for one in driver["volumeMounts"]]


def test_one_that_cannot_be_built_does_not_keep_the_others_from_it() -> None:
    nodes = [_node("a", "old", os_image="Gentoo"), _node("b", "new")]
    found = _assigned({"old": {"nodeSelector": {"pool": "old"}}, "new": {"nodeSelector": {"pool": "new"}}}, nodes)
    assert list(found.daemon_sets) == ["new"]
    assert found.faults["old"][0] == "ReconcileFailed"


def test_nodes_without_gpus_get_no_driver() -> None:
    assert _assigned({"all": {}}, [OperatorNode("x", {"pool": "old"}, "Ubuntu 22.04 LTS", "5")]).pools == {}


def test_long_names_that_begin_alike_stay_different() -> None:
    one, two = "d" * 60 + "-a", "d" * 60 + "-b"
    found = _assigned({one: {"nodeSelector": {"pool": "old"}}, two: {"nodeSelector": {"pool": "new"}}}, NODES[:2])
    assert len(set(found.pools.values())) == 2
    assert all(len(value) <= 63 for value in found.pools.values())


FAULTS: dict[str, tuple[Any, str]] = {
    "a default that selects nodes": (
        {"default": True, "nodeSelector": {"a": "b"}},
        "spec.default: selects nodes, and is the default of all others; remove nodeSelector",
    ),
    "an unknown type": ({"driverType": "other"}, "spec.driverType: invalid enum value"),
    "an affinity without terms": (
        {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
        "must have at least one node selector term",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_wrong_value_is_refused_with_its_place(case: str) -> None:
    written, words = FAULTS[case]
    with pytest.raises(UserError) as caught:
        read_nvidia_driver("x", "", written)
    assert words in str(caught.value)


def test_a_misspelled_field_is_a_warning() -> None:
    assert read_nvidia_driver("x", "", {"nodeSelectr": {}, "gds": {"enabled": True}}).warnings == (
        "spec.nodeSelectr: unknown field; did you mean nodeSelector?; it has no effect",
    )


def _drains_by_force(found: DriverAssignment, name: str) -> str:
    pod = found.daemon_sets[name][0]["spec"]["template"]["spec"]
    env = {one["name"]: one.get("value") for one in pod["initContainers"][0]["env"]}
    return str(env["DRAIN_USE_FORCE"])


def test_a_driver_drains_its_nodes_as_its_own_policy_says_or_as_the_one_of_the_cluster() -> None:
    spec = {"driver": {"useNvidiaDriverCRD": True, "upgradePolicy": {"drain": {"force": True}}}}
    own = {"nodeSelector": {"pool": "new"}, "upgradePolicy": {"drain": {"force": False}}}
    found = _assigned({"own": own, "rest": {"default": True}}, spec=spec)
    assert (_drains_by_force(found, "own"), _drains_by_force(found, "rest")) == ("false", "true")


def test_a_wrong_upgrade_policy_of_a_driver_is_named() -> None:
    with pytest.raises(UserError, match=r"spec\.upgradePolicy\.maxParallelUpgrades: must be a whole number"):
        read_nvidia_driver("a", "2026-01-01", {"upgradePolicy": {"maxParallelUpgrades": -1}})
