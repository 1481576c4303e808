"""The status of a stateful set, from its pods and revisions."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.controllers.owned_pods.sight import PodSight
from shoal.controllers.stateful_sets.plan import REVISION_LABEL, Wanted
from shoal.store.live.item import Obj


def told(obj: Obj, wanted: Wanted, pods: Sequence[PodSight], collisions: int, now_s: float) -> Obj:
    """When every pod is new and ready, the update is what the set is currently."""
    living = [pod for pod in pods if not pod.is_terminating()]
    ready = [pod for pod in pods if pod.status.phase == "Running" and pod.is_ready()]
    numbers = {
        "readyReplicas": len(ready),
        "currentReplicas": _of(living, wanted.current),
        "updatedReplicas": _of(living, wanted.update),
    }
    current = wanted.current
    is_done = all(count == wanted.replicas for count in (len(pods), len(ready), numbers["updatedReplicas"]))
    if wanted.is_rolling and is_done:
        current = wanted.update
        numbers["currentReplicas"] = numbers["updatedReplicas"]
    return {
        "replicas": len(pods),
        **{key: count for key, count in numbers.items() if count},
        "availableReplicas": sum(pod.is_available(wanted.min_ready_s, now_s) for pod in ready),
        "currentRevision": current,
        "updateRevision": wanted.update,
        "observedGeneration": obj["metadata"].get("generation", 0),
        "collisionCount": collisions,
    } | ({"conditions": obj["status"]["conditions"]} if (obj.get("status") or {}).get("conditions") else {})


def _of(pods: Sequence[PodSight], revision: str) -> int:
    return sum(pod.metadata.labels.get(REVISION_LABEL) == revision for pod in pods)
