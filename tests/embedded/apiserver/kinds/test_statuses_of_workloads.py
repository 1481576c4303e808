"""What a controller may write into the status of a set of pods, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from build.kind_objects import created, texts, workload
from shoal.embedded.apiserver.kinds.table import STRATEGIES

CONDITION = {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "has minimum"}
HOMES = {
    "Deployment": ("apps", "deployments"),
    "ReplicaSet": ("apps", "replicasets"),
    "StatefulSet": ("apps", "statefulsets"),
    "DaemonSet": ("apps", "daemonsets"),
    "ReplicationController": ("", "replicationcontrollers"),
}
REAL: list[tuple[str, dict[str, Any]]] = [
    ("Deployment", {}),
    ("Deployment", {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1}),
    (
        "Deployment",
        {
            "observedGeneration": 2, "replicas": 4, "updatedReplicas": 2, "readyReplicas": 3, "availableReplicas": 3,
            "unavailableReplicas": 1, "terminatingReplicas": 1, "collisionCount": 1, "conditions": [CONDITION],
        },
    ),
    ("ReplicaSet", {"replicas": 0, "observedGeneration": 1}),
    (
        "ReplicaSet",
        {
            "replicas": 3, "fullyLabeledReplicas": 3, "readyReplicas": 2, "availableReplicas": 1,
            "terminatingReplicas": 4, "observedGeneration": 1,
        },
    ),
    (
        "StatefulSet",
        {
            "replicas": 3, "readyReplicas": 2, "currentReplicas": 1, "updatedReplicas": 2, "availableReplicas": 2,
            "observedGeneration": 4, "collisionCount": 0, "currentRevision": "web-1", "updateRevision": "web-2",
        },
    ),
    (
        "DaemonSet",
        {
            "currentNumberScheduled": 2, "numberMisscheduled": 1, "desiredNumberScheduled": 3, "numberReady": 3,
            "numberAvailable": 3, "updatedNumberScheduled": 2, "numberUnavailable": 0, "observedGeneration": 1,
        },
    ),
    ("ReplicationController", {"replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}),
]  # fmt: skip


def said(kind: str, status: dict[str, Any], before: dict[str, Any] | None = None) -> list[str]:
    group, plural = HOMES[kind]
    made = created(group, plural, workload(kind, group="v1" if not group else "apps/v1"))
    old = made | {"status": before or made["status"]}
    return texts(STRATEGIES[group, plural].validate_status(made | {"status": status}, old))


@pytest.mark.parametrize(("kind", "status"), REAL)
def test_what_a_controller_writes_is_taken(kind: str, status: dict[str, Any]) -> None:
    assert said(kind, status) == []


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("Deployment", "unavailableReplicas"),
        ("ReplicaSet", "terminatingReplicas"),
        ("ReplicationController", "observedGeneration"),
        ("StatefulSet", "observedGeneration"),
        ("DaemonSet", "currentNumberScheduled"),
    ],
)
def test_no_count_is_below_nothing(kind: str, field: str) -> None:
    assert said(kind, {field: -1}) == [f"status.{field}: Invalid value: -1: must be greater than or equal to 0"]


def test_every_complaint_is_told_in_order() -> None:
    """Nothing is more than less than nothing."""
    assert said("Deployment", {"replicas": -1, "readyReplicas": 5}) == [
        "status.replicas: Invalid value: -1: must be greater than or equal to 0",
        "status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas",
        "status.readyReplicas: Invalid value: 5: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
    ]


@pytest.mark.parametrize("field", ["fullyLabeledReplicas", "readyReplicas"])
@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_a_part_is_not_more_than_the_whole(kind: str, field: str) -> None:
    assert said(kind, {"replicas": 1, field: 3}) == [
        f"status.{field}: Invalid value: 3: cannot be greater than status.replicas"
    ]


@pytest.mark.parametrize(("kind", "whole"), [("Deployment", "readyReplicas"), ("StatefulSet", "status.readyReplicas")])
def test_what_is_available_is_ready(kind: str, whole: str) -> None:
    assert said(kind, {"replicas": 3, "availableReplicas": 2, "readyReplicas": 1}) == [
        f"status.availableReplicas: Invalid value: 2: cannot be greater than {whole}"
    ]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
def test_collisions_are_not_forgotten(kind: str) -> None:
    before = {"collisionCount": 2}
    assert said(kind, {"collisionCount": 2}, before) == []
    assert said(kind, {"collisionCount": 1}, before) == [
        "status.collisionCount: Invalid value: 1: cannot be decremented"
    ]
    assert said(kind, {}, before) == ["status.collisionCount: Invalid value: 0: cannot be decremented"]
