"""Defines the settings of the discipline, with Kueue's defaults.

Rejected: each rule with settings of its own. What is set in one configuration object could then not be compared, nor
reported as one change.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The discipline's configuration; the defaults are Kueue's."""

    fair_sharing: bool = False
    fair_strategies: tuple[str, ...] = ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
    usage_half_life_s: float | None = None
    """Admission fair sharing is on where this is set; with 0 nothing is remembered."""
    usage_sampling_s: float = 300.0
    usage_weights: dict[str, float] = {}
    wait_for_pods_ready: bool = False
    ready_timeout_s: float = 1800.0
    recovery_timeout_s: float | None = None
    block_admission: bool = False
    requeue_by: Literal["Eviction", "Creation"] = "Eviction"
    backoff_limit: int | None = None
    backoff_base_s: float = 60.0
    backoff_most_s: float = 3600.0
    ignore_undeclared: bool = False
    """`quotaCheckStrategy: IgnoreUndeclared`."""
    placement: Literal["proven", "quotaOnly"] = "proven"
    reservations: bool = False
    """The first workload of a tree that has to wait gets an earliest start that later ones must not delay."""
    lost_work: bool = False
    """Among victims of equal priority, those go first whose end loses the fewest GPU-seconds since their checkpoint."""
    min_runtime_s: float = 0.0
    """Workloads that have run for less are not preempted."""
    respect_budgets: bool = False
    """A workload is not preempted if its end, together with the other victims, would violate a disruption budget."""
    gates: frozenset[str] = frozenset(
        {
            "PartialAdmission",
            "PrioritySortingWithinCohort",
            "TASRecomputeAssignmentWithinSchedulingCycle",
            "RecomputePreemptionTargetsUponOverlap",
            "RecomputeAssignmentUponPreemptionTargetsOverlap",
            "TASFailedNodeReplacement",
            "TASFailedNodeReplacementFailFast",
            "TASHandleOverlappingFlavors",
            "TASMultiLayerTopology",
            "SchedulingEquivalenceHashing",
            "TopologyAwareScheduling",
            "ReclaimablePods",
        }
    )
    """Switches that are on, under Kueue's names."""
