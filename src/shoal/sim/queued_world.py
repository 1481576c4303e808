"""Manifests with queues in them, as facts: the discipline with all pending workloads, and pods that wait for
admission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shoal.api.decode import Document
from shoal.engine.events import Event
from shoal.engine.intake import Intake
from shoal.engine.queues.facts import WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.state import Queues
from shoal.sim.queue_pods import QueuePods
from shoal.sim.queued_pods import QueuedPods, queued_pods
from shoal.store.queues import ManifestQueues


@dataclass(frozen=True, slots=True)
class Queued:
    """Queues over one cluster."""

    kueue: Kueue
    pods: QueuePods
    workloads: Sequence[WorkloadFacts]
    """All of them, as they were found."""


def kueue_of(manifests: ManifestQueues, now_s: float) -> Kueue:
    """The discipline with all workloads, pending or admitted."""
    queues = Queues(manifests.settings)
    for fact in manifests.facts:
        queues.put(fact)
    for name, labels in manifests.namespaces.items():
        queues.put_namespace(name, labels)
    queues.put_cost_budgets(manifests.cost_budgets.at(now_s))
    queues.refresh()
    kueue = Kueue(queues)
    for facts, ran_s in manifests.history:
        kueue.durations.learn(facts, ran_s)
    for facts in manifests.workloads:
        kueue.put_workload(facts, now_s)
    return kueue


class QueuedWorld:
    """What was read of queues, until the pods have been read as well."""

    def __init__(self, manifests: ManifestQueues, documents: Sequence[Document]) -> None:
        self.manifests = manifests
        self._found: QueuedPods = queued_pods(documents, manifests)

    @property
    def documents(self) -> list[Document]:
        """What there is to read of pods and everything else."""
        return self._found.documents

    @property
    def pods(self) -> frozenset[str]:
        """Those of workloads."""
        return frozenset(pod for sets in self._found.by_set.values() for pods in sets.values() for pod in pods)

    def over(self, intake: Intake, events: Sequence[Event], now_s: float) -> Queued:
        """Let happen what happens at once; pods of those who wait are kept back."""
        kueue = kueue_of(self.manifests, now_s)
        pods = QueuePods(kueue.queues, intake)
        for event in pods.put(self._found.by_set, events, self.manifests.workloads):
            intake.apply(event)
        return Queued(kueue, pods, self.manifests.workloads)
