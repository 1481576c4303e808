"""Defines Kueue's labels, annotations, conditions and reasons on queued pods."""

from __future__ import annotations

from shoal.engine.from_api.membership import (
    KUEUE_FAST_ANNOTATION,
    KUEUE_GROUP_LABEL,
    KUEUE_SERVING_ANNOTATION,
    KUEUE_TOTAL_ANNOTATION,
)

GROUP = "kueue.x-k8s.io"
QUEUE_LABEL = f"{GROUP}/queue-name"
PRIORITY_LABEL = f"{GROUP}/priority-class"
MANAGED = f"{GROUP}/managed"
"""A label of pods that were held at creation, and the finalizer that keeps them until their outcome is recorded."""
GATE = f"{GROUP}/admission"
PARENT = f"{GROUP}/pod-suspending-parent"
GROUP_LABEL = KUEUE_GROUP_LABEL
TOTAL = KUEUE_TOTAL_ANNOTATION
FAST = KUEUE_FAST_ANNOTATION
SERVING = KUEUE_SERVING_ANNOTATION
RETRIABLE = f"{GROUP}/retriable-in-group"
ROLE_HASH = f"{GROUP}/role-hash"
POD_INDEX = f"{GROUP}/pod-group-pod-index"
IS_GROUP = f"{GROUP}/is-group-workload"

SET_INDEX = "apps.kubernetes.io/pod-index"
LWS_NAME = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP = "leaderworkerset.sigs.k8s.io/group-index"
LWS_WORKER = "leaderworkerset.sigs.k8s.io/worker-index"

TERMINATION_TARGET = "TerminationTarget"
WAITING_FOR_REPLACEMENT = "WaitingForReplacementPods"
NOT_READY = "Not all pods are ready or succeeded"
ALL_READY = "All pods reached readiness and the workload is running"
LOST_ONE = "At least one pod has failed, waiting for recovery"
MOST_ROLES = 18
