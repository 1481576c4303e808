"""Computes the status of a ReplicaSet from its pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from shoal.client.item import Obj
from shoal.client.owned_pods.pod_view import PodView

FAILURE = "ReplicaFailure"


class Failure(msgspec.Struct, frozen=True):
    """Why pods are missing."""

    reason: str
    message: str


def counts(pods: Iterable[PodView], template_labels: Mapping[str, str], min_ready_s: int, now_s: float) -> Obj:
    """The counts of active pods; zeros are left out as in Kubernetes."""
    replicas = labelled = ready = available = 0
    for pod in pods:
        replicas += 1
        labelled += template_labels.items() <= pod.metadata.labels.items()
        wait_s = pod.available_in_s(min_ready_s, now_s)
        ready += wait_s is not None
        available += wait_s == 0.0
    optional = {"fullyLabeledReplicas": labelled, "readyReplicas": ready, "availableReplicas": available}
    return {"replicas": replicas} | {key: count for key, count in optional.items() if count}


def with_failure(conditions: list[Obj], failure: Failure | None, now: str) -> list[Obj]:
    """Sets the condition while creation or deletion fails, and removes it otherwise."""
    before = next((one for one in conditions if one["type"] == FAILURE), None)
    if failure is not None and before is not None and before.get("reason") == failure.reason:
        return conditions
    others = [one for one in conditions if one["type"] != FAILURE]
    if failure is None:
        return others
    said = {"reason": failure.reason, "message": failure.message}
    return [*others, {"type": FAILURE, "status": "True", "lastTransitionTime": now, **said}]
