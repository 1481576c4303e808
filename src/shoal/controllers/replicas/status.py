"""The status of a replica set, from its pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from shoal.controllers.owned_pods.sight import PodSight
from shoal.store.live.item import Obj

FAILURE = "ReplicaFailure"


class Failure(msgspec.Struct, frozen=True):
    """Why there are not as many pods as there should be."""

    reason: str
    message: str


def counts(pods: Iterable[PodSight], template_labels: Mapping[str, str], min_ready_s: int, now_s: float) -> Obj:
    """Counts of the pods that live; zeros are left out where Kubernetes leaves them out."""
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
    """The condition stands while it fails and goes when it does not."""
    before = next((one for one in conditions if one["type"] == FAILURE), None)
    if failure is not None and before is not None and before.get("reason") == failure.reason:
        return conditions
    others = [one for one in conditions if one["type"] != FAILURE]
    if failure is None:
        return others
    said = {"reason": failure.reason, "message": failure.message}
    return [*others, {"type": FAILURE, "status": "True", "lastTransitionTime": now, **said}]
