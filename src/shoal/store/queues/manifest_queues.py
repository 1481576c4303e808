"""Converts a set of manifests to facts for the queue engine, and links its workloads to pods.

Guarantees: every error names file, document, object and field; equal documents give equal facts, in whichever files
they are; finished workloads hold no quota and only give their duration; a workload that cannot be admitted because an
object is missing is read, so that the reason can be given.

Rejected: part of `ManifestCluster`. Placement reads pods only; queues also read Workloads and jobs, and most sets of
manifests have no queue.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from shoal.api.budget_report import BudgetReport
from shoal.api.cost_budgets import NO_BUDGETS, CostBudgets, cost_budgets_of
from shoal.api.disruption import PriorityClass
from shoal.api.kueue import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    ResourceFlavor,
    Workload,
    WorkloadPriorityClass,
)
from shoal.api.kueue.probable_mistakes import slips
from shoal.api.meta import Namespace
from shoal.api.pod import Pod, PodTemplate
from shoal.api.topology import KueueTopology
from shoal.engine.from_api import Priorities
from shoal.engine.from_api.membership import KUEUE_GROUP_LABEL
from shoal.engine.from_api.queues import (
    WorkloadPriorities,
    WorkloadReader,
    check_facts_of,
    cluster_queue_facts_of,
    cohort_facts_of,
    flavor_facts_of,
    is_finished,
    local_queue_facts_of,
    moments_of,
    ran_s,
    topology_levels_of,
)
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact
from shoal.store.inventory import Inventory, Placed
from shoal.store.queues.dangling import dangling
from shoal.store.queues.from_pods import PodStories
from shoal.store.queues.group_facts import group_workload_name, queue_group_of
from shoal.store.queues.made import Made, Maker
from shoal.store.queues.members import Members
from shoal.store.queues.non_tas_usage import nodes_with_non_tas_usage
from shoal.store.queues.queue_names import QueueNames
from shoal.store.queues.rules import QueueSettings, rules_of
from shoal.units.errors import UserError

WORKLOAD_ANNOTATION = "kueue.x-k8s.io/workload"
_NAME_LABEL = "kubernetes.io/metadata.name"


@dataclass(slots=True)
class ManifestQueues:
    """The queues and workloads of a set of manifests."""

    settings: Settings = field(default_factory=Settings)
    facts: list[Fact] = field(default_factory=list)
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    """All namespaces that any object names, with their labels."""
    workloads: list[WorkloadFacts] = field(default_factory=list)
    """Pending workloads and those that hold quota, by key."""
    cost_budgets: CostBudgets = NO_BUDGETS
    history: list[tuple[WorkloadFacts, float]] = field(default_factory=list)
    """Finished workloads, and their duration in seconds."""
    templates: dict[tuple[str, str], PodTemplate] = field(default_factory=dict)
    """By workload and pod set."""
    pods: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Workload -> its pods among those of `read_manifests`: given, or created for their controllers."""
    warnings: list[str] = field(default_factory=list)
    now_s: float = 0.0
    """The latest time in queues and workloads."""

    @property
    def is_empty(self) -> bool:
        """Whether there are no queues, even if jobs name some."""
        return not self.facts and not self.workloads


def read_queue_manifests(inventory: Inventory) -> ManifestQueues:
    """The queues that the objects describe; empty where there is no queue and no workload."""
    if not any(inventory.of(kind) for kind in (ClusterQueue, LocalQueue, Cohort, Workload)):
        return ManifestQueues()
    return _QueueManifestReader(inventory).manifests()


class _QueueManifestReader:
    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._cluster = ManifestQueues()
        self._rules: QueueSettings = rules_of(inventory, self._cluster.warnings)
        self._members = Members(inventory)
        self._names = QueueNames(inventory)

    def manifests(self) -> ManifestQueues:
        manifests = self._cluster
        manifests.settings = self._rules.settings
        self._namespaces()
        self._queues()
        self._workloads()
        workload_of = {pod: key for key, pods in manifests.pods.items() for pod in pods}
        known = {facts.key: facts for facts in manifests.workloads}
        manifests.facts += nodes_with_non_tas_usage(self._inventory, self._members, known, workload_of)
        manifests.warnings += [*dangling(self._inventory, manifests.namespaces), *self._names.warnings()]
        return manifests

    def _namespaces(self) -> None:
        """Namespaces without an object have the label that the API server sets on all."""
        of = self._inventory.of
        named = {placed.value.metadata.namespace for placed in of(LocalQueue)}
        named |= {placed.value.metadata.namespace for placed in of(Workload)}
        named |= {placed.value.metadata.namespace for placed in self._members.pods.values()}
        self._cluster.namespaces = {name: {_NAME_LABEL: name} for name in sorted(named)}
        for placed in of(Namespace):
            self._cluster.namespaces[placed.value.metadata.name] = placed.value.labels()

        for report in of(BudgetReport):
            # Of several the last one counts, as the last write of the ConfigMap does.
            self._cluster.cost_budgets = cost_budgets_of(report.value)
            self._cluster.now_s = max(self._cluster.now_s, report.value.computed_at.timestamp())

    def _queues(self) -> None:
        of, weights = self._inventory.of, self._rules.settings.usage_weights
        facts = self._cluster.facts
        facts += [topology_levels_of(placed.value) for placed in of(KueueTopology)]
        facts += [flavor_facts_of(placed.value) for placed in of(ResourceFlavor)]
        facts += [check_facts_of(placed.value) for placed in of(AdmissionCheck)]
        facts += [cohort_facts_of(placed.value) for placed in of(Cohort)]
        facts += [cluster_queue_facts_of(placed.value) for placed in of(ClusterQueue)]
        facts += [local_queue_facts_of(placed.value, weights) for placed in of(LocalQueue)]
        for slipped in (*of(ClusterQueue), *of(WorkloadPriorityClass)):
            self._cluster.warnings += [slip.warning(slipped.where) for slip in slips(slipped.value)]

    def _workloads(self) -> None:
        objects = {placed.value.metadata.key: placed for placed in self._inventory.of(Workload)}
        maker = Maker(
            self._inventory,
            {key: placed.value for key, placed in objects.items()},
            self._members,
            self._names,
            lambda namespace: self._rules.manages(namespace, self._cluster.namespaces.get(namespace, {})),
            self._rules.queues_everything,
        )
        made = maker.make()
        self._cluster.warnings += maker.warnings
        reader = self._workload_reader()
        for placed in objects.values():
            self._object(reader, placed)
        for each in made:
            self._made(reader, each)
        self._cluster.pods |= self._pods_of(objects.values(), maker)
        stories = PodStories(self._inventory, self._members)
        workloads = sorted(self._cluster.workloads, key=lambda facts: facts.key)
        self._cluster.history.sort(key=lambda finished: finished[0].key)
        self._cluster.workloads = [stories.reported(facts, self._cluster.pods[facts.key]) for facts in workloads]
        self._cluster.now_s = max([self._cluster.now_s, *(facts.saved_s or 0.0 for facts in workloads)])

    def _workload_reader(self) -> WorkloadReader:
        of = self._inventory.of
        covered = {
            placed.value.metadata.name: frozenset(
                name for group in placed.value.spec.resource_groups for name in group.covered_resources
            )
            for placed in of(ClusterQueue)
        }
        local_queues = {
            placed.value.metadata.key: covered.get(placed.value.spec.cluster_queue, frozenset())
            for placed in of(LocalQueue)
        }
        pods = Priorities(placed.value for placed in of(PriorityClass))
        priorities = WorkloadPriorities((placed.value for placed in of(WorkloadPriorityClass)), pods)
        return WorkloadReader(self._rules.settings, self._rules.counting, priorities, local_queues)

    def _object(self, reader: WorkloadReader, placed: Placed[Workload]) -> None:
        workload = placed.value
        meta = workload.metadata
        self._cluster.now_s = max([self._cluster.now_s, *moments_of(workload)])
        if is_finished(workload):
            self._finished(reader, workload)
            return
        try:
            facts = reader.of_object(workload)
        except UserError as error:
            raise placed.reported(error) from error
        if meta.deletion_timestamp is not None and facts.admission is None:
            return
        if workload.spec.queue_name:
            self._names.miss(meta.namespace, workload.spec.queue_name, placed.at("spec.queueName"))
        self._add(facts, ((each.name, each.template) for each in workload.spec.pod_sets))

    def _finished(self, reader: WorkloadReader, workload: Workload) -> None:
        """Record the duration of a finished workload, which predicts that of similar ones. Its faults are not
        reported.
        """
        ran = ran_s(workload)
        if ran is not None:
            with suppress(UserError):
                self._cluster.history.append((reader.of_object(workload), ran))

    def _made(self, reader: WorkloadReader, made: Made) -> None:
        try:
            facts = reader.of_unmade(made.unmade)
        except UserError as error:
            raise made.placed.reported(error) from error
        self._cluster.now_s = max(self._cluster.now_s, facts.created_s)
        self._cluster.pods[facts.key] = made.pods
        self._add(facts, ((batch.name, batch.template) for batch in made.unmade.batches))

    def _add(self, facts: WorkloadFacts, templates: Iterable[tuple[str, PodTemplate]]) -> None:
        self._cluster.workloads.append(facts)
        for name, template in templates:
            self._cluster.templates[facts.key, name] = template

    def _pods_of(self, objects: Iterable[Placed[Workload]], maker: Maker) -> dict[str, tuple[str, ...]]:
        """The pods of Workload objects: pods that own the Workload, pods whose controllers own it, and pods that name
        it.
        """
        living = {facts.key for facts in self._cluster.workloads}
        found: dict[str, list[str]] = {key: [] for placed in objects if (key := placed.value.metadata.key) in living}
        for key, placed in self._members.pods.items():
            meta = placed.value.metadata
            above = [(meta.namespace, "Pod", meta.name), *self._members.owners(placed.value)]
            named = [maker.claimed[owner] for owner in above if owner in maker.claimed]
            words = (meta.annotations.get(WORKLOAD_ANNOTATION), _group_workload(placed.value))
            named = [*(f"{meta.namespace}/{word}" for word in words if word), *named]
            workload = next((each for each in named if each in found), None)
            if workload is not None:
                found[workload].append(key)
        return {key: tuple(pods) for key, pods in found.items()}


def _group_workload(pod: Pod) -> str:
    """The name that a Workload of the pod's group would have; empty for a pod without a group, or of two groups."""
    name = pod.metadata.labels.get(KUEUE_GROUP_LABEL, "")
    with suppress(UserError):
        return name or group_workload_name(queue_group_of(pod))
    return ""
