"""Nodes that get no driver, or one for another operating system, are named."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.operator.components.driver_remarks import driver_remarks
from shoal.operator.components.facts import OperatorNode
from shoal.operator.policy.reading import read_cluster_policy

UBUNTU, RHEL = "Ubuntu 22.04.4 LTS", "Red Hat Enterprise Linux 9.4 (Plow)"
GPUS = {"feature.node.kubernetes.io/pci-10de.present": "true"}
MIXED = [OperatorNode("a", GPUS, UBUNTU), OperatorNode("b", GPUS, UBUNTU), OperatorNode("c", GPUS, RHEL)]


def _remarks(driver: dict[str, Any], nodes: list[OperatorNode], *covered: str) -> list[tuple[str, str]]:
    return driver_remarks(read_cluster_policy({"driver": driver}).spec, nodes, covered)


def test_nodes_with_another_operating_system_than_the_driver_are_named() -> None:
    ((reason, words),) = _remarks({}, MIXED)
    assert reason == "SeveralOperatingSystems"
    assert words == (
        "the nodes with GPUs have the operating systems ubuntu22.04, rhel9.4, and the driver is for ubuntu22.04: "
        "it does not work on node c; set spec.driver.useNvidiaDriverCRD and create an NVIDIADriver for each operating "
        "system"
    )


def test_nodes_that_no_nvidia_driver_selects_are_named() -> None:
    driver = {"useNvidiaDriverCRD": True}
    assert _remarks(driver, MIXED, "a", "b", "c") == []
    found = _remarks(driver, MIXED, "a")
    assert [reason for reason, _ in found] == ["NoNVIDIADriver"]
    assert found[0][1].startswith("no NVIDIADriver selects node b, c, which gets no driver")


@pytest.mark.parametrize(
    ("driver", "nodes"),
    [
        ({}, MIXED[:2]),
        ({}, [*MIXED[:2], OperatorNode("cpu", {}, RHEL)]),
        ({"enabled": False}, MIXED),
        ({"usePrecompiled": True}, MIXED),
    ],
    ids=["one system", "another system without GPUs", "drivers of the hosts", "a driver for each kernel"],
)
def test_otherwise_nothing_is_said(driver: dict[str, Any], nodes: list[OperatorNode]) -> None:
    assert _remarks(driver, nodes) == []
