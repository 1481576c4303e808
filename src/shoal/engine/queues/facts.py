"""What flavors, queues, cohorts and workloads are, as values: the queue engine reads nothing else.

Amounts are whole numbers in the units of `api.resources` (cpu in thousandths of a core, the rest in base units), so
sums have no rounding and every step can be undone exactly. Times are seconds; a missing time is 0.

Rejected: working on the API's own objects. They come in two versions, with quantities as text and conditions as
lists; each rule would have to parse before it could think.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Literal

import msgspec

from shoal.api.node_affinity import NodeSelector, PreferredSchedulingTerm
from shoal.api.selectors import Selector
from shoal.api.taints import Taint, Toleration

FlavorResource = tuple[str, str]
"""(flavor, resource): what quota is counted in."""
Amounts = dict[str, int]
"""Resource -> amount."""
Usage = dict[FlavorResource, int]
"""(flavor, resource) -> amount."""

PODS = "pods"

Stop = Literal["None", "Hold", "HoldAndDrain"]
NextFlavor = Literal["MayStopSearch", "TryNextFlavor"]
Within = Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"]
Reclaim = Literal["Never", "LowerPriority", "Any"]
Borrow = Literal["Never", "LowerPriority"]
CheckState = Literal["Pending", "Ready", "Retry", "Rejected"]


class Quota(msgspec.Struct, frozen=True):
    """What a node of the tree has of one resource in one flavor."""

    nominal: int
    borrowing: int | None = None
    """How much more than its own it may use; None is without limit."""
    lending: int | None = None
    """How much of its own others may use; None is all of it."""


class FlavorQuotas(msgspec.Struct, frozen=True):
    name: str
    quotas: dict[str, Quota] = {}
    """By resource."""


class ResourceGroup(msgspec.Struct, frozen=True):
    """Resources that take the same flavor, and the flavors in the order in which they are tried."""

    resources: tuple[str, ...]
    flavors: tuple[FlavorQuotas, ...]


class FlavorFacts(msgspec.Struct, frozen=True):
    name: str
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology: str = ""
    """Name of the Topology whose levels its nodes carry; empty for a flavor without."""


class TopologyLevels(msgspec.Struct, frozen=True):
    """A Topology: node labels, outermost first."""

    name: str
    levels: tuple[str, ...]


class CheckFacts(msgspec.Struct, frozen=True):
    """An AdmissionCheck."""

    name: str
    controller: str = ""
    active: bool = True


PROVISIONING = "kueue.x-k8s.io/provisioning-request"
"""The controller whose checks put off topology assignment until there are nodes."""


class CheckUse(msgspec.Struct, frozen=True):
    """A check that a cluster queue demands, for some flavors or (empty) for all."""

    name: str
    flavors: tuple[str, ...] = ()

    def concerns(self, flavors: AbstractSet[str]) -> bool:
        """Whether it is demanded of who gets these."""
        return not self.flavors or not flavors.isdisjoint(self.flavors)


class Fungibility(msgspec.Struct, frozen=True):
    when_can_borrow: NextFlavor = "MayStopSearch"
    when_can_preempt: NextFlavor = "TryNextFlavor"
    preference: Literal["", "BorrowingOverPreemption", "PreemptionOverBorrowing"] = ""


class PreemptionRules(msgspec.Struct, frozen=True):
    within: Within = "Never"
    reclaim: Reclaim = "Never"
    borrow: Borrow = "Never"
    borrow_threshold: int | None = None
    """`borrowWithinCohort.maxPriorityThreshold`."""


class ClusterQueueFacts(msgspec.Struct, frozen=True):
    name: str
    cohort: str = ""
    groups: tuple[ResourceGroup, ...] = ()
    strategy: Literal["StrictFIFO", "BestEffortFIFO"] = "BestEffortFIFO"
    namespaces: Selector = Selector.NOTHING
    """An absent selector is nobody, an empty one everybody."""
    fungibility: Fungibility = Fungibility()
    preemption: PreemptionRules = PreemptionRules()
    checks: tuple[CheckUse, ...] = ()
    stop: Stop = "None"
    weight: float = 1.0
    by_usage: bool = False
    """Admission fair sharing: local queues that used less come first."""


class CohortFacts(msgspec.Struct, frozen=True):
    name: str
    parent: str = ""
    groups: tuple[ResourceGroup, ...] = ()
    weight: float = 1.0


class LocalQueueFacts(msgspec.Struct, frozen=True):
    key: str
    """namespace/name"""
    cluster_queue: str
    stop: Stop = "None"
    weight: float = 1.0
    used: float | None = None
    """Admission fair sharing: the weighted consumption told so far (before division by `weight`)."""
    consumed: dict[str, float] = {}
    """The same by resource, in cores and whole units, where it was told so."""
    used_s: float = 0.0
    """When that was so, for who has been using it since; 0 is now."""


class SliceLayer(msgspec.Struct, frozen=True):
    level: str
    size: int


class TopologyRequest(msgspec.Struct, frozen=True):
    """Where the pods of a set want to be together. At most one of the first three is set."""

    required: str = ""
    preferred: str = ""
    unconstrained: bool = False
    group: str = ""
    """`podSetGroupName`: two pod sets, one of them a single leader, go to one domain and flavor."""
    slice_level: str = ""
    slice_size: int = 0
    layers: tuple[SliceLayer, ...] = ()
    """Slices within slices, outermost first; the first repeats `slice_level` and `slice_size` where given."""
    balanced: bool = False
    """Spread evenly (TASBalancedPlacement), with `preferred` only."""


class PodSet(msgspec.Struct, frozen=True):
    """Pods of one template."""

    name: str = "main"
    count: int = 1
    min_count: int | None = None
    requests: Amounts = {}
    """Of one pod, in the queue's currency: after transformations and exclusions. `pods` is not among them."""
    node_requests: Amounts | None = None
    """Of one pod on a node, where that differs from `requests`; topology placement counts in these."""
    selector: dict[str, str] = {}
    affinity: NodeSelector | None = None
    """Required node affinity."""
    preferred: tuple[PreferredSchedulingTerm, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology: TopologyRequest | None = None
    template: str = ""
    """A digest of the pods' template: pods of equal digests ask the same of nodes."""

    @property
    def on_node(self) -> Amounts:
        return self.requests if self.node_requests is None else self.node_requests


class TopologyAssignment(msgspec.Struct, frozen=True):
    """Pods per domain. Where the lowest level is the host name, it is the only level named.

    Domains stand in the order of all their levels' values, named or not."""

    levels: tuple[str, ...]
    domains: tuple[tuple[tuple[str, ...], int], ...]
    """(values of the levels, pods)."""


class PodSetAdmission(msgspec.Struct, frozen=True):
    name: str
    count: int
    flavors: dict[str, str] = {}
    """Resource -> flavor."""
    usage: Amounts = {}
    """Resource -> total charged."""
    topology: TopologyAssignment | None = None
    delayed: Literal["", "Pending", "Ready"] = ""
    """`delayedTopologyRequest`."""


class Admission(msgspec.Struct, frozen=True):
    cluster_queue: str
    pod_sets: tuple[PodSetAdmission, ...] = ()


class BudgetUse(msgspec.Struct, frozen=True):
    """A disruption budget, as far as the end of one workload concerns it."""

    name: str
    """namespace/name"""
    pods: int
    """How many that the budget covers would end."""
    allowed: int
    """How many may, of all that it covers."""


class WorkloadFacts(msgspec.Struct, frozen=True):
    """One Workload: what it wants, and how far it has come."""

    key: str
    """namespace/name"""
    queue: str = ""
    """Key of its LocalQueue: namespace/name."""
    priority: int = 0
    created_s: float = 0.0
    uid: str = ""
    pod_sets: tuple[PodSet, ...] = ()
    active: bool = True
    fault: str = ""
    """Why it can never be admitted as it is (requests above limits, a LimitRange, a resource that may not be asked)."""
    checks: dict[str, CheckState] = {}
    reclaimable: dict[str, int] = {}
    """Pod set -> pods that are no longer needed."""
    evicted_s: float | None = None
    """When it was told to stop; None when nobody has, or it has been admitted since."""
    evicted_why: str = ""
    """`Preempted`, `PodsReadyTimeout`, `AdmissionCheck`, ..."""
    requeue_at_s: float = 0.0
    """Not before this moment (backoff)."""
    requeues: int = 0
    """`requeueState.count`."""
    closed_gates: tuple[str, ...] = ()
    """`admission-gated-by` and preemption gates that hold it back."""
    admission: Admission | None = None
    reserved_s: float = 0.0
    """When its quota was reserved."""
    admitted: bool = False
    """Whether all checks were passed as well; with an admission only."""
    admitted_s: float = 0.0
    pods_ready: bool = True
    """The PodsReady condition of an admitted workload."""
    ready_lost_s: float | None = None
    """When pods that had all been ready stopped being so; None before they first are, and while they are."""
    unhealthy_nodes: tuple[str, ...] = ()
    saved_s: float | None = None
    """When its work was last saved (checkpoint)."""
    duration_s: float | None = None
    """How long it is expected to run, where somebody said so."""
    longest_s: float | None = None
    """It is stopped once it has run so long (`maximumExecutionTimeSeconds`)."""
    ran_before_s: float = 0.0
    """How much of that earlier admissions have used up."""
    budgets: tuple[BudgetUse, ...] = ()
    """The disruption budgets that cover its pods."""

    @property
    def namespace(self) -> str:
        return self.key.partition("/")[0]

    @property
    def shielded(self) -> bool:
        """Whether ending it would break a disruption budget, even if nobody else ended."""
        return any(use.pods > use.allowed for use in self.budgets)

    @property
    def left_s(self) -> float | None:
        """How long an admission may last; None without a limit."""
        return None if self.longest_s is None else max(0.0, self.longest_s - self.ran_before_s)


class QueueNode(msgspec.Struct, frozen=True):
    """A node as topology placement counts it."""

    name: str
    labels: dict[str, str] = {}
    allocatable: Amounts = {}
    taints: tuple[Taint, ...] = ()
    ready: bool = True
    unschedulable: bool = False
    taken: Amounts = {}
    """By pods that no admission accounts for, `pods` among them."""


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
    """Whoever is first in a tree and has to wait gets an earliest start that smaller work must not delay."""
    lost_work: bool = False
    """Among victims of equal priority, those go first whose end loses the fewest GPU-seconds since their checkpoint."""
    min_runtime_s: float = 0.0
    """Nobody is preempted before it has run so long."""
    respect_budgets: bool = False
    """Nobody is preempted whose end, with those that go as well, would break a disruption budget."""
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
            "SchedulingEquivalenceHashing",
            "TopologyAwareScheduling",
            "ReclaimablePods",
        }
    )
    """Switches that are on, under Kueue's names."""
