"""Defines why workloads wait or are preempted: Kueue's reasons where it has one."""

from __future__ import annotations

from enum import StrEnum


class Wait(StrEnum):
    """`QuotaReserved: False`, and Shoal's own below."""

    QUOTA = "WaitingForQuota"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    NO_FLAVOR = "NoMatchingFlavor"
    TOPOLOGY = "TopologyPlacementFailed"
    """Quota is there, and no domain has capacity, or no nodes have places for the pods: Kueue has no other word for it.
    """
    VICTIMS = "WaitingForPreemptedWorkloads"
    MISCONFIGURED = "Misconfigured"
    PENDING = "PendingEvaluation"
    PODS_READY = "WaitingForPodsReady"
    GATED = "AdmissionGated"
    ON_HOLD = "OnHold"
    INADMISSIBLE = "Inadmissible"
    OVER_BUDGET = "OverBudget"
    """What its team, namespace or queue may spend in the period is spent."""
    RESERVED = "ReservedForOthers"
    """It would delay a gang with a reserved start."""


class Yield(StrEnum):
    """`Preempted`."""

    IN_CLUSTER_QUEUE = "InClusterQueue"
    RECLAIM = "InCohortReclamation"
    FAIR_SHARING = "InCohortFairSharing"
    RECLAIM_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"
