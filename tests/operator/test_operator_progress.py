"""The status of a policy, and the stages of a node with the first layer that fails."""

from __future__ import annotations

import pytest

from build.operator_objects import FACTS, states
from shoal.operator.components.component import DRIVER, EXPORTER, FEATURES, PLUGIN, TOOLKIT, VALIDATOR
from shoal.operator.components.desired import DesiredState
from shoal.operator.components.facts import FleetFacts
from shoal.operator.progress.node_stages import NodeSight, NodeStages, OperandPod, node_stages
from shoal.operator.progress.policy_status import (
    DaemonSetProgress,
    PolicyStatus,
    ignored_status,
    policy_status,
    state_progress,
)

D = "nvidia.com/gpu.deploy."
COMPONENTS = (DRIVER, TOOLKIT, VALIDATOR, PLUGIN, EXPORTER, FEATURES)
LABELS = {D + one.deploy: "true" for one in COMPONENTS}
NOW = "2026-01-01T00:10:00Z"


def _ready(*components: object) -> tuple[OperandPod, ...]:
    return tuple(
        OperandPod(one.name, f"{one.name}-x", is_ready=True, ready_at="2026-01-01T00:05:00Z")
        for one in COMPONENTS
        if one in components
    )


def _stages(
    *pods: OperandPod, labels: dict[str, str] = LABELS, before: NodeStages | None = None, has: bool = False
) -> NodeStages:
    sight = NodeSight(labels, "2026-01-01T00:00:00Z", has, pods)
    return node_stages(sight, COMPONENTS, before or NodeStages(), NOW)


PULL = OperandPod(DRIVER.name, "d-1", waiting=(("nvidia-driver-ctr", "ImagePullBackOff", "not found"),))
CRASH = OperandPod(PLUGIN.name, "p-1", waiting=(("nvidia-device-plugin", "CrashLoopBackOff", ""),))
WAITS = OperandPod(PLUGIN.name, "p-1", waiting=(("nvidia-device-plugin", "PodInitializing", ""),))
CASES: dict[str, tuple[tuple[OperandPod, ...], dict[str, str], tuple[str, str, str]]] = {
    "a node without pods waits for the driver": ((), LABELS, ("driver", "waiting", "no pod yet")),
    "an image that cannot be pulled is named": (
        (PULL,),
        LABELS,
        ("driver", "failed", "pod d-1: container nvidia-driver-ctr: ImagePullBackOff: not found"),
    ),
    "a later layer waits with the reason": (
        (*_ready(DRIVER, TOOLKIT), WAITS),
        LABELS,
        ("device-plugin", "starting", "pod p-1: container nvidia-device-plugin: PodInitializing"),
    ),
    "a failure comes before an earlier layer that starts": (
        (*_ready(DRIVER), CRASH),
        LABELS,
        ("device-plugin", "failed", "pod p-1: container nvidia-device-plugin: CrashLoopBackOff"),
    ),
    "the validator comes last": (
        _ready(DRIVER, TOOLKIT, PLUGIN, EXPORTER, FEATURES),
        LABELS,
        ("validator", "waiting", "no pod yet"),
    ),
    "all are ready": (_ready(*COMPONENTS), LABELS, ("", "ready", "")),
    "a preinstalled driver is not waited for": (
        _ready(*COMPONENTS[1:]),
        LABELS | {D + "driver": "pre-installed"},
        ("", "ready", ""),
    ),
    "a paused component is not waited for": (
        _ready(DRIVER, TOOLKIT, VALIDATOR, EXPORTER, FEATURES),
        LABELS | {D + "device-plugin": "paused-for-mig-change"},
        ("", "ready", ""),
    ),
    "an evicted pod has failed": (
        (OperandPod(DRIVER.name, "d-1", phase="Failed", message="disk pressure"),),
        LABELS,
        ("driver", "failed", "pod d-1: the pod failed: disk pressure"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_first_layer_that_fails(case: str) -> None:
    pods, labels, expected = CASES[case]
    found = _stages(*pods, labels=labels)
    assert (found.layer, found.state, found.message) == expected


def test_the_states_of_all_layers_are_listed() -> None:
    found = _stages(*_ready(DRIVER), labels=LABELS | {D + "gpu-feature-discovery": "false"})
    assert found.stages == {
        "driver": "ready",
        "container-toolkit": "waiting",
        "device-plugin": "waiting",
        "dcgm-exporter": "waiting",
        "feature-discovery": "off",
        "validator": "waiting",
    }


def test_the_time_of_a_stage_is_that_of_its_first_success() -> None:
    first = _stages(*_ready(DRIVER))
    assert first.times == {"added": "2026-01-01T00:00:00Z", "detected": NOW, "driver": "2026-01-01T00:05:00Z"}
    again = OperandPod(DRIVER.name, is_ready=True, ready_at="2026-01-02T00:00:00Z")
    later = _stages(again, *_ready(PLUGIN), before=first, has=True)
    assert later.times == first.times | {"device-plugin": "2026-01-01T00:05:00Z", "reported": NOW}


DONE = DaemonSetProgress(generation=1, observed=1, desired=3, updated=3)
READY = {
    "all pods are available": (DONE, True),
    "no node has the component": (DaemonSetProgress(1, 1), True),
    "a change was not seen yet": (DaemonSetProgress(2, 1, 3, 3), False),
    "a pod is not available": (DaemonSetProgress(1, 1, 3, 3, 1), False),
    "a pod is of the older version": (DaemonSetProgress(1, 1, 3, 2), False),
    "older pods of the driver may remain": (DaemonSetProgress(1, 1, 3, 0, 0, is_on_delete=True), True),
}


@pytest.mark.parametrize("case", READY)
def test_a_daemon_set_is_ready_if(case: str) -> None:
    found, expected = READY[case]
    assert found.is_ready is expected


def _status(
    found: dict[str, DaemonSetProgress], facts: FleetFacts = FACTS, failed: tuple[str, ...] = ()
) -> PolicyStatus:
    return policy_status(state_progress(states({}), found), facts, failed)


ALL = {one["metadata"]["name"]: DONE for state in states({}) for one in state.objects if one["kind"] == "DaemonSet"}
LATE = ALL | {PLUGIN.name: DaemonSetProgress(1, 1, 3, 3, 2)}
STATUS: dict[str, tuple[PolicyStatus, tuple[str, str]]] = {
    "all are ready": (_status(ALL), ("ready", "Reconciled")),
    "the driver is missing": (_status({}), ("notReady", "DriverNotReady")),
    "a later component is not ready": (_status(LATE), ("notReady", "OperandNotReady")),
    "without labels there is nothing to do": (_status({}, FleetFacts()), ("ready", "NFDLabelsMissing")),
    "without GPUs there is nothing to do": (_status({}, FleetFacts(has_labels=True)), ("ready", "NoGPUNodes")),
    "an object was refused": (_status(ALL, failed=("DaemonSet x: forbidden",)), ("notReady", "ReconcileFailed")),
    "another policy is older": (ignored_status("first"), ("ignored", "PrerequisiteNotMet")),
}


@pytest.mark.parametrize("case", STATUS)
def test_the_state_and_reason_if(case: str) -> None:
    found, expected = STATUS[case]
    assert (found.state, found.reason) == expected


def test_the_message_names_the_component_and_the_number_of_pods() -> None:
    assert _status(LATE).message == (
        "state-device-plugin: DaemonSet nvidia-device-plugin-daemonset: 2 of 3 pods are not available"
    )


def test_conditions_are_those_of_nvidias_operator() -> None:
    ready, late = _status(ALL), _status(LATE)
    assert [(name, says[:2]) for name, says in ready.conditions()] == [
        ("Ready", (True, "Reconciled")),
        ("Error", (False, "Ready")),
    ]
    assert [(name, says[:2]) for name, says in late.conditions()] == [
        ("Ready", (False, "Error")),
        ("Error", (True, "OperandNotReady")),
    ]


def test_a_component_that_cannot_be_built_is_not_ready() -> None:
    fault = DesiredState(DRIVER.state, (), DRIVER, "no image")
    assert policy_status(state_progress([fault], {}), FACTS).message == "state-driver: no image"
