"""The pods of workloads as the rounds let them come and end.

Each pod is kept as it would arrive without any admission. When its workload is admitted it arrives with what the
admission adds: the flavors' labels and tolerations, and its domain. When the workload has to stop, its pods end, and
may come again under another admission.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec import structs

from shoal.engine.asks import Ask
from shoal.engine.events import Event, GroupSeen, NodeSeen, PodArrived, PodBound, PodGone
from shoal.engine.groups import GroupFacts, TopologyRequirement
from shoal.engine.intake import Intake
from shoal.engine.pods import PodAllocation
from shoal.engine.queues.facts import PodSetAdmission, QuotaAssignment, WorkloadFacts
from shoal.engine.queues.pod_set_constraints import (
    constraint_label_keys,
    flavors_of,
    with_pod_set_constraints,
    without_pod_set_constraints,
)
from shoal.engine.queues.state import Queues
from shoal.engine.queues.topology_facts import TopologyAssignment

Domain = Mapping[str, str]
"""Labels of the nodes of a domain."""
BySet = Mapping[str, Mapping[str, Sequence[str]]]
"""Workload -> pod set -> pods."""


class QueuePods:
    """Who belongs to which workload, and the door through which they come."""

    def __init__(self, queues: Queues, intake: Intake) -> None:
        self._queues = queues
        self._intake = intake
        self._pods: dict[str, dict[str, list[PodArrived]]] = {}
        self._workload_of: dict[str, str] = {}
        self._groups: dict[str, GroupFacts] = {}
        self._told: dict[str, GroupFacts] = {}
        """Groups as they were told last, where that is not what their object says."""
        self._astray: set[str] = set()
        """Pods on nodes that are gone: they ran there and come nowhere else, others will be made in their place."""

    def put(self, by_set: BySet, events: Iterable[Event], workloads: Iterable[WorkloadFacts]) -> list[Event]:
        """Learn whose pods are whose. What is left of the events happens at once, the rest when it is admitted."""
        at_once = []
        places = {
            pod: (workload, name) for workload, sets in by_set.items() for name, pods in sets.items() for pod in pods
        }
        known = {facts.key: facts for facts in workloads}
        nodes = set()
        for event in events:
            if isinstance(event, NodeSeen):
                nodes.add(event.node.name)
            if isinstance(event, GroupSeen):
                self._groups[event.group.name] = event.group
            if isinstance(event, PodArrived | PodBound) and event.key in places:
                workload, name = places[event.key]
                self._workload_of[event.key] = workload
                sets = self._pods.setdefault(workload, {})
                sets.setdefault(name, []).append(self._plain(event, known.get(workload), name))
                if isinstance(event, PodArrived):
                    continue
                if event.node not in nodes:
                    self._astray.add(event.key)
            at_once.append(event)
        self._sort(by_set)
        return at_once

    def pods_of(self, facts: WorkloadFacts, admission: QuotaAssignment) -> list[PodArrived]:
        """Those that an admission lets loose: those that are there already are not among them."""
        sets = self._pods.get(facts.key, {})
        return [pod for each in admission.pod_sets for pod in self._of_set(sets.get(each.name, ()), each)]

    def each_of(self, workload: str) -> Iterator[str]:
        """All its pods, wherever they are."""
        return (pod.key for pod in self._all(workload))

    def asks_of(self, workload: str) -> dict[str, Ask]:
        """What each of its pods asks for, by pod."""
        return {pod.key: pod.ask for pod in self._all(workload)}

    def groups_of(self, workload: str) -> set[str]:
        """The gangs that its pods are, or will be."""
        return {pod.who.group for pod in self._all(workload) if pod.who.group}

    def workload_of(self, pod: str) -> str | None:
        return self._workload_of.get(pod)

    def running_of(self, workload: str) -> list[str]:
        """The pods that it has on nodes."""
        pods = self._intake.cluster.pods
        return [pod.key for pod in self._all(workload) if pod.key in pods]

    def former(self) -> list[str]:
        """Pods that end, of workloads that gave their quota back: what they hold comes free by itself."""
        held = self._queues.held
        ending = ((pod, self._workload_of.get(pod)) for pod in self._intake.cluster.terminating)
        return [pod for pod, workload in ending if workload is not None and workload not in held]

    def arrive(self, facts: WorkloadFacts, admission: QuotaAssignment) -> bool:
        """A workload was admitted; returns whether pods were created."""
        pods = self.let_loose(facts, admission)
        for pod in pods:
            self._intake.apply(pod)
        return bool(pods)

    def let_loose(self, facts: WorkloadFacts, admission: QuotaAssignment) -> list[PodArrived]:
        """The pods of an admission, their gangs as large as it is."""
        admission = self._beside(facts, admission)
        self._fit_groups(facts, admission)
        return self.pods_of(facts, admission)

    def leave(self, workload: str) -> list[str]:
        """Stops a workload: its running pods begin to end and are returned; its waiting pods are removed."""
        cluster = self._intake.cluster
        ending = []
        for pod in self._all(workload):
            allocation = cluster.pods.get(pod.key)
            if allocation is not None and allocation.is_bound:
                ending.append(pod.key)
                self._end(pod.key, allocation)
            elif allocation is not None or self._is_there(pod.key):
                self._astray.discard(pod.key)
                self._intake.apply(PodGone(pod.key))
        return ending

    def forget(self, workload: str) -> None:
        """It has ended, and so have its pods."""
        for pod in self._all(workload):
            self._intake.apply(PodGone(pod.key))

    def leave_elsewhere(self, facts: WorkloadFacts, admission: QuotaAssignment) -> list[str]:
        """Its domains are new: pods that run in none of them begin to end and are returned."""
        ending = []
        sets = self._pods.get(facts.key, {})
        for each in admission.pod_sets:
            if each.topology is None:
                continue
            domains = _domains(each.topology)
            for pod in sets.get(each.name, ()):
                allocation = self._intake.cluster.pods.get(pod.key)
                if allocation is not None and allocation.is_bound and self._take(domains, allocation) is None:
                    self._end(pod.key, allocation)
                    ending.append(pod.key)
        return ending

    def are_running(self, workload: str) -> bool:
        """Whether all pods that have come are on nodes."""
        return not any(pod.key in self._intake.cluster.pending for pod in self._all(workload))

    @contextmanager
    def without_topology(self, workload: str) -> Iterator[None]:
        """As if the gangs of its pods requested no topology."""
        before = {name: self._groups[name] for name in self.groups_of(workload) if name in self._groups}
        last = {name: self._told.setdefault(name, group) for name, group in before.items()}
        for name, group in before.items():
            self._groups[name] = structs.replace(group, requirement=TopologyRequirement())
        try:
            yield
        finally:
            self._groups.update(before)
            for group in last.values():
                self._tell(group)

    @contextmanager
    def with_asks(self, workload: str, change: Callable[[Ask], Ask]) -> Iterator[None]:
        """As if its pods asked something else of nodes."""
        before = self._pods.get(workload, {})
        self._pods[workload] = {
            name: [structs.replace(pod, ask=change(pod.ask)) for pod in pods] for name, pods in before.items()
        }
        try:
            yield
        finally:
            self._pods[workload] = before

    # internals

    def _is_there(self, pod: str) -> bool:
        return pod in self._intake.cluster.pods or pod in self._intake.cluster.pending or pod in self._astray

    def _beside(self, facts: WorkloadFacts, admission: QuotaAssignment) -> QuotaAssignment:
        """Without the pods that run already under the workload whose place it took."""
        before = self._pods.get(facts.replaces, {}) if facts.replaces else {}
        if not before:
            return admission
        there = self._intake.cluster.pods
        runs = {name: sum(pod.key in there for pod in pods) for name, pods in before.items()}
        pod_sets = tuple(
            structs.replace(each, count=max(0, each.count - runs.get(each.name, 0))) for each in admission.pod_sets
        )
        return structs.replace(admission, pod_sets=pod_sets)

    def _all(self, workload: str) -> Iterator[PodArrived]:
        for pods in self._pods.get(workload, {}).values():
            yield from pods

    def _sort(self, by_set: BySet) -> None:
        """The order that was given, whatever the order of events."""
        for workload, sets in self._pods.items():
            for name, pods in sets.items():
                found = {pod.key: pod for pod in pods}
                pods[:] = [found[key] for key in by_set[workload][name] if key in found]

    def _plain(self, event: PodArrived | PodBound, facts: WorkloadFacts | None, name: str) -> PodArrived:
        """The pod as it would arrive anew."""
        if isinstance(event, PodArrived):
            return event
        ask = event.ask
        if facts is not None and facts.admission is not None:
            own = next((each.selector for each in facts.pod_sets if each.name == name), {})
            said = next((each for each in facts.admission.pod_sets if each.name == name), None)
            if said is not None:
                ask = without_pod_set_constraints(ask, constraint_label_keys(self._queues, said), own)
        who = structs.replace(event.who, since_s=0.0, saved_s=None)
        return PodArrived(event.key, ask, event.priority, event.daemon_set, who)

    def _of_set(self, pods: Sequence[PodArrived], admission: PodSetAdmission) -> Iterator[PodArrived]:
        """As many as were admitted, less those that are there; domains go to those that are there first."""
        cluster = self._intake.cluster
        domains = _domains(admission.topology)
        there = [pod for pod in pods if self._is_there(pod.key)]
        for pod in there:
            allocation = cluster.pods.get(pod.key)
            if allocation is not None and not allocation.is_terminating:
                self._take(domains, allocation)
        flavors = flavors_of(self._queues, admission)
        absent = (pod for pod in pods if not self._is_there(pod.key))
        for _, pod in zip(range(admission.count - len(there)), absent, strict=False):
            domain = domains.pop(0) if domains else {}
            yield structs.replace(pod, ask=with_pod_set_constraints(pod.ask, flavors, domain), nominated="")

    def _take(self, domains: list[Domain], allocation: PodAllocation) -> Domain | None:
        """The domain in which a pod runs; it is no one else's then."""
        labels = self._labels_of(allocation)
        for index, domain in enumerate(domains):
            if domain.items() <= labels.items():
                return domains.pop(index)
        return None

    def _labels_of(self, allocation: PodAllocation) -> Mapping[str, str]:
        node = self._queues.nodes.get(self._intake.cluster.names[allocation.row])
        return {} if node is None else node.labels

    def _fit_groups(self, facts: WorkloadFacts, admission: QuotaAssignment) -> None:
        """A gang cannot need more pods than were admitted, nor wish for what the assignment settles."""
        admitted = {each.name: each for each in admission.pod_sets}
        counts: dict[str, int] = {}
        settled: dict[str, bool] = {}
        for name, pods in self._pods.get(facts.key, {}).items():
            each = admitted.get(name)
            for pod in pods[: each.count if each is not None else 0]:
                group = pod.who.group
                counts[group] = counts.get(group, 0) + 1
                settled[group] = settled.get(group, True) and each is not None and each.topology is not None
        for group, count in counts.items():
            written = self._groups.get(group)
            if written is not None:
                least = min(written.minimum, count)
                wish = TopologyRequirement() if settled[group] else written.requirement
                self._tell(structs.replace(written, minimum=least, requirement=wish))

    def _tell(self, group: GroupFacts) -> None:
        if self._told.get(group.name, self._groups[group.name]) != group:
            self._told[group.name] = group
            self._intake.apply(GroupSeen(group))

    def _end(self, pod: str, allocation: PodAllocation) -> None:
        node = self._intake.cluster.names[allocation.row]
        event = PodBound(
            pod,
            allocation.ask,
            node,
            allocation.grant,
            allocation.priority,
            allocation.daemon_set,
            allocation.who,
            terminating=True,
        )
        self._intake.apply(event)


def _domains(topology: TopologyAssignment | None) -> list[Domain]:
    """One for each pod."""
    if topology is None:
        return []
    return [
        dict(zip(topology.levels, values, strict=False)) for values, count in topology.domains for _ in range(count)
    ]
