"""Defines flavors, queues, cohorts and workloads as values: the only input of the queue rules.

Amounts are whole numbers in the units of `api.resources` (cpu in thousandths of a core, the rest in base units), so
sums have no rounding and every step can be undone exactly. Times are seconds; a missing time is 0.

Rejected: working on the API's own objects. They come in two versions, with quantities as text and conditions as
lists; each rule would have to parse before it could think.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from shoal.api.node_affinity import NodeSelector, PreferredSchedulingTerm
from shoal.api.selectors import Selector
from shoal.api.taints import Taint, Toleration
from shoal.engine.queues.admission_checks import AdmissionCheckRule, CheckState
from shoal.engine.queues.topology_facts import TopologyAssignment, TopologyRequest

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
    own_least_s: float = 0.0
    """Workloads of the queue that have run for less are not preempted by others of it."""
    others_least_s: tuple[float, ...] = ()
    """Nor to those of another queue: how long, by how many cohorts are above this queue and not above that one."""


class ClusterQueueFacts(msgspec.Struct, frozen=True):
    name: str
    cohort: str = ""
    groups: tuple[ResourceGroup, ...] = ()
    strategy: Literal["StrictFIFO", "BestEffortFIFO"] = "BestEffortFIFO"
    namespaces: Selector = Selector.NOTHING
    """Without a selector no namespace matches, with an empty one every namespace."""
    fungibility: Fungibility = Fungibility()
    preemption: PreemptionRules = PreemptionRules()
    checks: tuple[AdmissionCheckRule, ...] = ()
    stop: Stop = "None"
    weight: float = 1.0
    by_usage: bool = False
    """Admission fair sharing: local queues that used less come first."""
    wait_slo_s: float = 1800.0
    """Within which time workloads should get quota; for metrics alone."""


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
    """Admission fair sharing: the weighted consumption reported so far (before division by `weight`)."""
    consumed: dict[str, float] = {}
    """The same by resource, in cores and whole units, where it was reported by resource."""
    used_s: float = 0.0
    """When that was so, for a workload that has used it since then; 0 is now."""

    def without_use(self) -> LocalQueueFacts:
        """Without all that only says in which order it is served."""
        return msgspec.structs.replace(self, weight=1.0, used=None, consumed={}, used_s=0.0)


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


class QuotaAssignment(msgspec.Struct, frozen=True):
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
    """The time of its eviction; None if it was not evicted, or was admitted since."""
    evicted_why: str = ""
    """`Preempted`, `PodsReadyTimeout`, `AdmissionCheck`, ..."""
    requeue_at_s: float = 0.0
    """Not before this moment (backoff)."""
    requeues: int = 0
    """`requeueState.count`."""
    closed_gates: tuple[str, ...] = ()
    """`admission-gated-by` and preemption gates that hold it back."""
    admission: QuotaAssignment | None = None
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
    """The expected duration, if declared."""
    longest_s: float | None = None
    """It is stopped once it has run so long (`maximumExecutionTimeSeconds`)."""
    ran_before_s: float = 0.0
    """How much of that earlier admissions have used up."""
    budgets: tuple[BudgetUse, ...] = ()
    """The disruption budgets that cover its pods."""
    replaces: str = ""
    """Key of the workload whose place it takes once it has quota: the same work, of another size."""
    owner: str = ""
    """The owner. A workload does not replace one of another owner."""

    @property
    def namespace(self) -> str:
        return self.key.partition("/")[0]

    @property
    def shielded(self) -> bool:
        """Whether ending it would break a disruption budget, even if no other workload ended."""
        return any(use.pods > use.allowed for use in self.budgets)

    @property
    def left_s(self) -> float | None:
        """How long an admission may last; None without a limit."""
        return None if self.longest_s is None else max(0.0, self.longest_s - self.ran_before_s)
