"""Names the states of a driver upgrade, and the labels and annotations of nodes, as NVIDIA's GPU operator does.

The names are a contract: dashboards, scripts and NVIDIA's operator read the same labels, so that either operator can
continue an upgrade of the other.
"""

from __future__ import annotations

from enum import StrEnum

_PREFIX = "nvidia.com/gpu-driver-upgrade"
STATE_LABEL = f"{_PREFIX}-state"
SKIP_LABEL = f"{_PREFIX}.skip"
"""Of a node: `true` keeps its driver as it is."""
SKIP_DRAIN_LABEL = f"{_PREFIX}-drain.skip"
"""Of a pod: `true` keeps the pod during the drain."""
REQUESTED = f"{_PREFIX}-requested"
"""Annotation: `true` starts an upgrade although the revision of the driver pod matches, or the pod has no owner."""
WAITS_FOR_SAFE_LOAD = f"{_PREFIX}.driver-wait-for-safe-load"
"""Annotation of the driver pod's init container, which loads the driver when the annotation is removed."""
WAS_UNSCHEDULABLE = f"{_PREFIX}.node-initial-state.unschedulable"
"""Annotation: the node was unschedulable before its upgrade, and remains so."""
JOBS_SINCE = f"{_PREFIX}-wait-for-pod-completion-start-time"
"""Annotation: the Unix time at which the wait for jobs began."""
VALIDATION_SINCE = f"{_PREFIX}-validation-start-time"
"""Annotation: the Unix time at which the wait for the validation began."""
EXTERNAL_MAINTENANCE = f"{_PREFIX}-requestor-mode"
"""Annotation: another controller makes the node schedulable again."""


class UpgradeState(StrEnum):
    """The values of the label, in the order in which a node passes them."""

    UNKNOWN = ""
    UPGRADE_REQUIRED = "upgrade-required"
    MAINTENANCE_REQUIRED = "node-maintenance-required"
    CORDON_REQUIRED = "cordon-required"
    WAIT_FOR_JOBS = "wait-for-jobs-required"
    POD_DELETION = "pod-deletion-required"
    DRAIN_REQUIRED = "drain-required"
    POST_MAINTENANCE = "post-maintenance-required"
    POD_RESTART = "pod-restart-required"
    VALIDATION_REQUIRED = "validation-required"
    UNCORDON_REQUIRED = "uncordon-required"
    DONE = "upgrade-done"
    FAILED = "upgrade-failed"


NOT_STARTED = frozenset({UpgradeState.UNKNOWN, UpgradeState.UPGRADE_REQUIRED, UpgradeState.DONE})
"""A node in such a state uses none of the parallel upgrades."""
EXTERNAL = frozenset({UpgradeState.MAINTENANCE_REQUIRED, UpgradeState.POST_MAINTENANCE})
"""A maintenance operator works on the node. It counts neither as an upgrade nor as one of all nodes."""
IN_PROGRESS = frozenset(UpgradeState) - NOT_STARTED - EXTERNAL
"""A failed node is one of them: it keeps its place until its driver runs."""

TRANSITIONS: dict[UpgradeState, frozenset[UpgradeState]] = {
    UpgradeState.UNKNOWN: frozenset({UpgradeState.UPGRADE_REQUIRED, UpgradeState.DONE}),
    UpgradeState.DONE: frozenset({UpgradeState.UPGRADE_REQUIRED}),
    UpgradeState.UPGRADE_REQUIRED: frozenset({UpgradeState.CORDON_REQUIRED}),
    UpgradeState.CORDON_REQUIRED: frozenset({UpgradeState.WAIT_FOR_JOBS}),
    UpgradeState.WAIT_FOR_JOBS: frozenset({UpgradeState.POD_DELETION, UpgradeState.DRAIN_REQUIRED}),
    UpgradeState.POD_DELETION: frozenset({UpgradeState.DRAIN_REQUIRED}),
    UpgradeState.DRAIN_REQUIRED: frozenset({UpgradeState.POD_RESTART}),
    UpgradeState.POD_RESTART: frozenset(
        {
            UpgradeState.VALIDATION_REQUIRED,
            UpgradeState.UNCORDON_REQUIRED,
            UpgradeState.DONE,
            UpgradeState.FAILED,
        }
    ),
    UpgradeState.VALIDATION_REQUIRED: frozenset(
        {UpgradeState.UNCORDON_REQUIRED, UpgradeState.DONE, UpgradeState.FAILED}
    ),
    UpgradeState.UNCORDON_REQUIRED: frozenset({UpgradeState.DONE}),
    UpgradeState.FAILED: frozenset({UpgradeState.UNCORDON_REQUIRED, UpgradeState.DONE}),
}
"""The changes that a pass makes."""
AFTER_ACTIONS: dict[UpgradeState, frozenset[UpgradeState]] = {
    UpgradeState.POD_DELETION: frozenset({UpgradeState.POD_RESTART, UpgradeState.DRAIN_REQUIRED, UpgradeState.FAILED}),
    UpgradeState.DRAIN_REQUIRED: frozenset({UpgradeState.POD_RESTART, UpgradeState.FAILED}),
}
"""The changes at the end of an eviction or a drain."""
