"""A load on queues as a value: cohorts of equal queues, and the work that comes to each of them.

Kueue measures its scheduler by three such loads; they are carried along as `data/queue_loads.json`, with the bounds
they are held to and what Kueue itself measured. A load of a test is written the same way, only smaller.

Guarantees: the same load and seed give the same facts and arrivals. The seed draws the uids, by which workloads of one
moment and priority are told apart, as a cluster's own random uids do, and the starts where queues are out of step.

Rejected: a generator with knobs. What is compared with published figures must not depend on how it is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple

from msgspec import field

from shoal.api.resources import CPU, MEMORY
from shoal.api.selectors import Selector
from shoal.data.facts import Fact as DataFact
from shoal.data.facts import load as read
from shoal.data.facts import require, require_unique
from shoal.engine.queues.facts import (
    PODS,
    ClusterQueueFacts,
    FlavorFacts,
    FlavorQuotas,
    LocalQueueFacts,
    PodSet,
    PreemptionRules,
    Quota,
    Reclaim,
    ResourceGroup,
    Within,
    WorkloadFacts,
)
from shoal.engine.queues.state import Fact, Queues
from shoal.engine.queues.topology_facts import QueueNode, TopologyLevels, TopologyRequest
from shoal.sim.draws import Draws

FILE = "queue_loads.json"
FLAVOR = "default"
NAMESPACE = "load"
_GIB = 1024**3
_PODS_PER_NODE = 110

Near = Literal["", "required", "preferred", "balanced"]


class QueueQuota(DataFact, frozen=True):
    """What every queue has, and by which rules it makes others stop."""

    nominal_milli: int
    borrowing_milli: int | None = None
    reclaim: Reclaim = "Never"
    within: Within = "Never"


class LoadLevel(DataFact, frozen=True):
    label: str
    count: int
    """In each domain of the level above."""


class LoadTopology(DataFact, frozen=True):
    """Equal nodes in a tree of domains."""

    name: str
    node_label: str
    levels: tuple[LoadLevel, ...]
    node_cpu_milli: int
    node_memory_gib: int


class Work(DataFact, frozen=True):
    """Equal workloads that come to a queue one by one."""

    name: str
    count: int
    every_ms: int
    runtime_ms: int
    priority: int
    cpu_milli: int
    """Of one pod."""
    pods: int = 1
    near: Near = ""
    level: str = ""
    slice: int = 0


class LoadBounds(DataFact, frozen=True):
    """Queue use and waits, demanded or measured."""

    use_percent: float | None = None
    """Use in percent of nominal quota, mean over time, of the queue where it is least."""
    wait_ms: dict[str, int] = field(default_factory=dict)
    """Kind of work -> from creation to admission, on average."""
    wall_ms: int | None = None
    """For the whole load."""


class QueueLoad(DataFact, frozen=True):
    name: str
    cohorts: int
    queues: int
    """In each cohort."""
    quota: QueueQuota
    work: tuple[Work, ...]
    """Of each queue."""
    about: str = ""
    topology: LoadTopology | None = None
    bounds: LoadBounds | None = None
    """What Kueue's checks demand."""
    kueue: LoadBounds | None = None
    """What Kueue measured."""
    bar_cpu_s: float | None = None

    @property
    def workloads(self) -> int:
        return self.cohorts * self.queues * sum(work.count for work in self.work)

    def queue_names(self) -> Iterator[tuple[str, str]]:
        """(cohort, cluster queue), in order."""
        for cohort in range(self.cohorts):
            for queue in range(self.queues):
                yield f"cohort-{cohort}", f"cohort-{cohort}-queue-{queue:03}"


class Arrival(NamedTuple):
    """A workload as it comes, and what it is for the simulation."""

    at_ms: int
    facts: WorkloadFacts
    work: Work


class _LoadFile(DataFact, frozen=True):
    about: tuple[str, ...]
    loads: tuple[QueueLoad, ...]


@cache
def published_loads() -> dict[str, QueueLoad]:
    """Kueue's own loads by name."""
    file = read(FILE, _LoadFile)
    require_unique((load.name for load in file.loads), FILE, "the load")
    for load in file.loads:
        names = {work.name for work in load.work}
        require_unique((work.name for work in load.work), FILE, f"the work of {load.name}")
        for bounds in (load.bounds, load.kueue):
            require(bounds is None or set(bounds.wait_ms) <= names, FILE, load.name, "a wait is of work there is not")
    return {load.name: load for load in file.loads}


def queues_of(load: QueueLoad) -> Queues:
    """The world before any work has come."""
    queues = Queues()
    queues.put_namespace(NAMESPACE, {})
    for fact in facts_of(load):
        queues.put(fact)
    queues.refresh()
    return queues


def facts_of(load: QueueLoad) -> Iterator[Fact]:
    """Flavor, nodes and queues."""
    topology = load.topology
    if topology is None:
        yield FlavorFacts(FLAVOR)
    else:
        yield TopologyLevels(topology.name, tuple(level.label for level in topology.levels))
        yield FlavorFacts(FLAVOR, {topology.node_label: FLAVOR}, topology=topology.name)
        yield from _nodes(topology)
    quota = load.quota
    amounts = {CPU: Quota(quota.nominal_milli, quota.borrowing_milli)}
    groups = (ResourceGroup((CPU,), (FlavorQuotas(FLAVOR, amounts),)),)
    rules = PreemptionRules(within=quota.within, reclaim=quota.reclaim)
    for cohort, name in load.queue_names():
        yield ClusterQueueFacts(name, cohort, groups, namespaces=Selector.EVERYTHING, preemption=rules)
        yield LocalQueueFacts(f"{NAMESPACE}/{name}", name)


def arrivals_of(load: QueueLoad, seed: int, *, out_of_step: bool = False) -> list[Arrival]:
    """All arrivals, by time. The first of each kind comes at once, to all queues in the same moment; out of
    step, each queue's kinds start somewhere within their first interval."""
    uids = Draws(seed, "uids").permutation(load.workloads).tolist()
    starts = Draws(seed, "starts").uniform(len(load.work) * load.cohorts * load.queues).tolist()
    width = len(str(load.workloads))
    arrivals: list[Arrival] = []
    for work in load.work:
        pod_sets = (_pod_set(load, work),)
        for _, queue in load.queue_names():
            start_ms = int(starts.pop() * work.every_ms) if out_of_step else 0
            for number in range(work.count):
                at_ms = start_ms + number * work.every_ms
                facts = WorkloadFacts(
                    f"{NAMESPACE}/{queue}-{work.name}-{number}",
                    queue=f"{NAMESPACE}/{queue}",
                    priority=work.priority,
                    created_s=at_ms / 1000,
                    uid=f"{uids[len(arrivals)]:0{width}}",
                    pod_sets=pod_sets,
                )
                arrivals.append(Arrival(at_ms, facts, work))
    arrivals.sort(key=lambda each: (each.at_ms, each.facts.uid))
    return arrivals


def _pod_set(load: QueueLoad, work: Work) -> PodSet:
    return PodSet(count=work.pods, requests={CPU: work.cpu_milli}, topology=_requirement(load, work))


def _requirement(load: QueueLoad, work: Work) -> TopologyRequest | None:
    match work.near:
        case "required":
            return TopologyRequest(required=work.level)
        case "preferred":
            return TopologyRequest(preferred=work.level)
        case "balanced":
            # Slices stay on one node: the innermost level, which makes an even spread a choice among nodes.
            lowest = load.topology.levels[-1].label if load.topology is not None else ""
            return TopologyRequest(preferred=work.level, slice_level=lowest, slice_size=work.slice, balanced=True)
        case _:
            return None


def _nodes(topology: LoadTopology) -> Iterator[QueueNode]:
    paths: list[tuple[int, ...]] = [()]
    for level in topology.levels:
        paths = [(*path, index) for path in paths for index in range(level.count)]
    allocatable = {CPU: topology.node_cpu_milli, MEMORY: topology.node_memory_gib * _GIB, PODS: _PODS_PER_NODE}
    for path in paths:
        labels = {topology.node_label: FLAVOR}
        for depth, level in enumerate(topology.levels):
            labels[level.label] = "-".join(("domain", *(f"{index:02}" for index in path[: depth + 1])))
        yield QueueNode(labels[topology.levels[-1].label], labels, allocatable)
