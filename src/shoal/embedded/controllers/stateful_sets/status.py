"""Computes the status of a StatefulSet from its pods and revisions."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.client.item import Obj
from shoal.client.owned_pods.pod_view import PodView
from shoal.embedded.controllers.stateful_sets.plan import REVISION_LABEL, DesiredSet


def stateful_set_status(obj: Obj, desired: DesiredSet, pods: Sequence[PodView], collisions: int, now_s: float) -> Obj:
    """The status; the update revision becomes the current one when all pods are updated and ready."""
    living = [pod for pod in pods if not pod.is_terminating()]
    ready = [pod for pod in pods if pod.status.phase == "Running" and pod.is_ready()]
    numbers = {
        "readyReplicas": len(ready),
        "currentReplicas": _of(living, desired.current),
        "updatedReplicas": _of(living, desired.update),
    }
    current = desired.current
    is_done = all(count == desired.replicas for count in (len(pods), len(ready), numbers["updatedReplicas"]))
    if desired.is_rolling and is_done:
        current = desired.update
        numbers["currentReplicas"] = numbers["updatedReplicas"]
    return {
        "replicas": len(pods),
        **{key: count for key, count in numbers.items() if count},
        "availableReplicas": sum(pod.is_available(desired.min_ready_s, now_s) for pod in ready),
        "currentRevision": current,
        "updateRevision": desired.update,
        "observedGeneration": obj["metadata"].get("generation", 0),
        "collisionCount": collisions,
    } | ({"conditions": obj["status"]["conditions"]} if (obj.get("status") or {}).get("conditions") else {})


def _of(pods: Sequence[PodView], revision: str) -> int:
    return sum(pod.metadata.labels.get(REVISION_LABEL) == revision for pod in pods)
