"""Which pods count, and what they request."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from shoal.api.pod import Pod
from shoal.api.wire import dec_hook
from shoal.autoscale.replicas.samples import (
    MetricFault,
    MetricSample,
    PodUsage,
    container_samples,
    grouped,
    pod_samples,
    requests_of,
)
from shoal.autoscale.replicas.spec import AutoscalerSettings
from shoal.units.quantity import Quantity

NOW = datetime(2026, 11, 27, tzinfo=UTC)
SETTINGS = AutoscalerSettings(initial_readiness_delay_s=10, cpu_initialization_s=120)


def pod(started_s: float, ready: str, since_s: float, phase: str = "Running") -> Pod:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": moment(since_s)}
    status = {"phase": phase, "startTime": moment(started_s), "conditions": [condition] if ready else []}
    return msgspec.convert({"metadata": {"name": "p"}, "status": status}, Pod, dec_hook=dec_hook)


def moment(offset_s: float) -> str:
    return (NOW + timedelta(seconds=offset_s)).isoformat()


GROUPS: list[tuple[str, Pod, str, float, str]] = [
    ("a pod that is ready for a window counts during its start", pod(-60, "True", -50), "cpu", 20, "counted"),
    ("a pod that became ready within the window does not", pod(-60, "True", -50), "cpu", 9, "unready"),
    ("a pod that is not ready does not count during its start", pod(-60, "False", -50), "cpu", 30, "unready"),
    ("a pod that never was ready does not count later", pod(-600, "False", -595), "cpu", 30, "unready"),
    ("a pod that was ready before counts later", pod(-600, "False", -590), "cpu", 30, "counted"),
    ("a pod without the condition does not count", pod(-600, "", 0), "cpu", 30, "unready"),
    ("memory counts during a start", pod(-60, "False", -50), "memory", 30, "counted"),
    ("a pod that waits for a node does not count", pod(-60, "", -50, "Pending"), "memory", 30, "unready"),
    ("a pod that has succeeded counts", pod(-600, "True", -590, "Succeeded"), "cpu", 30, "counted"),
]


@pytest.mark.parametrize(("_name", "one", "resource", "sample_s", "wanted"), GROUPS, ids=[row[0] for row in GROUPS])
def test_pods_in_their_start_do_not_count_for_cpu(
    _name: str, one: Pod, resource: str, sample_s: float, wanted: str
) -> None:
    """`sample_s`: the time of the sample after the last change of readiness, with a window of ten seconds."""
    ready = next((each.last_transition_time for each in one.status.conditions), NOW)
    assert ready is not None
    samples = {"p": MetricSample(1, ready.timestamp() + sample_s, 10)}
    groups = grouped([one], samples, resource, SETTINGS, NOW.timestamp())
    found = "counted" if groups.counted else "unready" if groups.unready else "other"
    assert found == wanted


def spec(**fields: Any) -> Pod:
    return msgspec.convert({"metadata": {"name": "p"}, "spec": fields}, Pod, dec_hook=dec_hook)


def container(name: str, cpu: str | None, **fields: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {} if cpu is None else {"cpu": cpu}}, **fields}


WHOLE = {"containers": [container("a", "100m")], "resources": {"requests": {"cpu": "1"}}}
REQUESTS: list[tuple[str, Pod, str, bool, object]] = [
    ("containers add up", spec(containers=[container("a", "100m"), container("b", "50m")]), "", True, 150),
    (
        "sidecars count, other init containers do not",
        spec(
            containers=[container("a", "100m")],
            initContainers=[container("b", "1"), container("c", "50m", restartPolicy="Always")],
        ),
        "",
        True,
        150,
    ),
    ("a named container counts alone", spec(containers=[container("a", "100m"), container("b", None)]), "a", True, 100),
    ("the request of the pod counts instead", spec(**WHOLE), "", True, 1000),
    ("but not for a named container", spec(**WHOLE), "a", True, 100),
    ("and not without the feature", spec(**WHOLE), "", False, 100),
    (
        "a container without a request",
        spec(containers=[container("a", None)]),
        "",
        True,
        "missing request for cpu in container a of Pod p",
    ),
    (
        "a container that is not there",
        spec(containers=[container("a", "1")]),
        "z",
        True,
        "container z not found in Pod p",
    ),
    (
        "a pod that requests memory only",
        spec(containers=[container("a", None)], resources={"requests": {"memory": "1Gi"}}),
        "",
        True,
        "missing pod-level request for cpu in Pod p",
    ),
]


@pytest.mark.parametrize(("_name", "one", "name", "gate", "wanted"), REQUESTS, ids=[row[0] for row in REQUESTS])
def test_the_request_of_a_pod(_name: str, one: Pod, name: str, gate: bool, wanted: object) -> None:
    found = requests_of([one], "cpu", name, has_pod_level=gate)
    assert (found.message if isinstance(found, MetricFault) else found["p"]) == wanted


def test_a_pod_with_an_unmeasured_container_has_no_sample() -> None:
    cpu = {"cpu": Quantity.of_milli(20)}
    usages = [PodUsage("a", (("x", cpu), ("y", cpu))), PodUsage("b", (("x", cpu), ("y", {}))), PodUsage("c")]
    assert {pod: sample.value_milli for pod, sample in pod_samples(usages, "cpu").items()} == {"a": 40}
    assert list(container_samples(usages, "cpu", "y")) == ["a"]
