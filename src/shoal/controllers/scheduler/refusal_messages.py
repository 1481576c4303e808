"""Computes the message that says why a pod or a gang waits.

Messages are made from the facts when they are written, not in a cycle: once per ask and version of the facts.
A gang is tried on the ledger, which leaves the facts as they are but makes their version grow.
"""

from __future__ import annotations

from collections import Counter

from msgspec import structs

from shoal.controllers.scheduler.pod_protocols import PodViews
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.evidence import Evidences, helpful_taints
from shoal.engine.fitter import Fitter
from shoal.engine.gang_members import Gang
from shoal.engine.gangs.evidence import group_evidence, taints_helpful_to
from shoal.engine.ledger import Ledger
from shoal.engine.pod_identity import PodIdentity
from shoal.engine.preemption.capacity_bounds import FeasibleRows
from shoal.engine.reasons import Evidence
from shoal.engine.respelling import unmatched_and_near
from shoal.views.live_refusals import FINAL, Outlook, gang_words, kept_words, nomination_text, pod_words
from shoal.views.remedies import tolerance_words, unmatched_words

_MOST_KEPT = 256
_PLACEHOLDER = "#"
"""In the names of pods that represent others, and in no name of an object."""


class RefusalMessages:
    def __init__(self, scheduling: SchedulerState, watched: PodViews) -> None:
        self._scheduling = scheduling
        self._watched = watched
        self._evidences = Evidences(scheduling.cluster)
        self._version = -1
        self._known: dict[tuple[Ask, Evidence, bool], str] = {}
        self.made = 0
        """How often words were really made: what a caller who must not take too long counts."""

    def of_pod(self, key: str) -> str:
        """Empty where it does not wait, or has a place by now."""
        cluster = self._scheduling.cluster
        if key not in cluster.pending:
            return ""
        waiting = cluster.pending[key]
        # Forgets the words of earlier facts, so it comes before `_known` is read.
        evidence = self._evidence(waiting.charge.ask, waiting.who)
        if evidence.fitting:
            return ""
        if mounting := self.of_mounting(key):
            return mounting
        at = waiting.charge.ask, evidence, waiting.who.preempts
        found = self._known.get(at)
        if found is None:
            self.made += 1
            while len(self._known) >= _MOST_KEPT:
                del self._known[next(iter(self._known))]
            taints = helpful_taints(self._scheduling.cluster, waiting.charge.ask, waiting.who)
            outlook = self._outlook(waiting.charge.ask, evidence, waiting.who, tolerance_words(taints))
            found = self._known[at] = pod_words(outlook)
        return found

    def of_mounting(self, key: str) -> str:
        """Of a pod whose volumes rule nodes out, which kube-scheduler asks after all else; empty for any other."""
        found = self._watched.beside_volumes(key)
        if found is None:
            return ""
        self.made += 1
        ask, who, said = found
        outlook = self._outlook(ask, self._evidence(ask, who), who)
        helpless = outlook.helpless + outlook.evidence.fitting
        return pod_words(structs.replace(outlook, helpless=helpless, volumes=said))

    def of_promised(self, key: str) -> str:
        """Empty where nothing is promised to it any more."""
        cluster = self._scheduling.cluster
        allocation = cluster.pods.get(key)
        if allocation is None or not allocation.is_nominated:
            return ""
        evidence = self._evidence(allocation.ask, allocation.who)
        is_made = not any(cluster.pods[pod].is_terminating for pod in cluster.pods_on(allocation.row))
        words = kept_words if is_made and allocation.who.group else nomination_text
        return words(self._outlook(allocation.ask, evidence, allocation.who), cluster.names[allocation.row])

    def of_gang(self, gang: Gang) -> str:
        """The message on each of its waiting pods; empty where it could run by now."""
        cluster, placement = self._scheduling.cluster, self._scheduling.placement
        self.made += 1
        if words := self._scheduling.queue_words(gang.name):
            return words
        placement.renew()
        story = group_evidence(Fitter(placement, Ledger(cluster), 0), gang)
        pod = story.pod or next(iter(gang.waiting), "")
        if pod not in cluster.pending:
            return ""
        waiting = cluster.pending[pod]
        evidence = self._evidence(waiting.charge.ask, waiting.who)
        tolerate = tolerance_words(taints_helpful_to(Fitter(placement, Ledger(cluster), 0), gang, pod))
        outlook = self._outlook(waiting.charge.ask, evidence, waiting.who, tolerate)
        return gang_words(story, outlook)

    def _evidence(self, ask: Ask, who: PodIdentity) -> Evidence:
        version = self._scheduling.cluster.version
        if version != self._version:
            self._version = version
            # Taints, labels and reservations are in the words and not in the evidence.
            self._known.clear()
            self.made += 1
        return self._evidences.of(ask, who)

    def _outlook(self, ask: Ask, evidence: Evidence, who: PodIdentity, tolerate: str = "") -> Outlook:
        cluster = self._scheduling.cluster
        meant = unmatched_and_near(cluster, ask.nodes)
        helpless, kept = _helpless(cluster, ask, evidence), _kept(cluster, evidence.nearest)
        return Outlook(ask, evidence, helpless, who.preempts, unmatched_words(meant), kept=kept, tolerate=tolerate)


def _kept(cluster: Cluster, node: str) -> str:
    """Placeholders in the facts reserve capacity for admitted workloads."""
    row = cluster.row_of.get(node)
    if row is None:
        return ""
    counts = Counter(pod.partition(_PLACEHOLDER)[0] for pod in cluster.pods_on(row) if _PLACEHOLDER in pod)
    if not counts:
        return ""
    whose, pods = counts.most_common(1)[0]
    others = f" and {len(counts) - 1} more" if len(counts) > 1 else ""
    return f"Capacity for {pods} future pod{'s' * (pods != 1)} of {whose}{others} is reserved there."


def _helpless(cluster: Cluster, ask: Ask, evidence: Evidence) -> int:
    """Nodes that would not take such a pod even if they were empty."""
    charge = cluster.charge(ask)
    rows = FeasibleRows(cluster).of(charge)
    columns = (charge.need > 0).nonzero()[0]
    large = (cluster.total[rows][:, columns] >= charge.need[columns]).all(axis=1)
    final = sum(cause.nodes for cause in evidence.causes if cause.code in FINAL)
    return evidence.nodes - int(large.sum()) + final
