"""Tries similar label values for a queued workload whose node selector names one that no node has.

Guarantees: the change is a remedy only if the workload is then admitted and its pods find places on the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from msgspec import structs

from shoal.engine.events import PodGone
from shoal.engine.queues.facts import PodSet, WorkloadFacts
from shoal.engine.queues.remedies import admission_with_quota, is_admitted_as
from shoal.engine.respelling import unmatched_and_near
from shoal.engine.unmatched import Unmatched
from shoal.sim.queue_rounds import QueueRounds
from shoal.sim.remedies import Objects, RemedyTrial, WaitingSubject
from shoal.sim.remedies.pod_candidates import respelt_ask
from shoal.views.remedies import Remedy
from shoal.views.remedy_commands import edit_commands, edit_words


class QueuedSelector:
    """The labels of node selectors of a workload that no node has, with the nearest ones."""

    def __init__(self, rounds: QueueRounds, facts: WorkloadFacts, objects: Objects) -> None:
        self._rounds = rounds
        self._facts = facts
        self._objects = objects
        self.labels: tuple[Unmatched, ...] = ()
        """Empty where some condition without a node is no selector, or has no near label."""
        selected = {key for each in facts.pod_sets for key in each.selector}
        if selected and rounds.cluster.row_of:
            asks = rounds.pods.asks_of(facts.key).values()
            found = dict.fromkeys(label for ask in asks for label in unmatched_and_near(rounds.cluster, ask.nodes))
            if all(label.near and label.key in selected for label in found):
                self.labels = tuple(found)

    def tried(self, trial: RemedyTrial) -> list[Remedy]:
        rounds = self._rounds
        pod_sets = tuple(_respelt(each, self.labels) for each in self._facts.pod_sets)
        corrected = structs.replace(self._facts, pod_sets=pod_sets)
        if not is_admitted_as(rounds.kueue, self._facts.key, corrected, now_s=rounds.now_s):
            return []
        if not self._finds_places(corrected, trial):
            return []
        pods = tuple(rounds.pods.each_of(self._facts.key))
        self._objects.adopt(self._facts.key, pods)
        edits = [
            edit
            for label in self.labels
            for edit in self._objects.edits(pods[0], label.key, label.near[0], label.values if label.has_key else ())
        ]
        if not edits:
            changes = ", ".join(f"{label.near[0]} instead of {_before(label)}" for label in self.labels)
            return [Remedy(f"Ask for {changes}.")]
        target = self._objects.target(pods)
        return [Remedy(edit_words(edits, target), edit_commands(edits, target) if self._objects.is_living else ())]

    def _finds_places(self, corrected: WorkloadFacts, trial: RemedyTrial) -> bool:
        kueue, rounds = self._rounds.kueue, self._rounds
        with ExitStack() as stack:
            kueue.put_workload(corrected, rounds.now_s)
            stack.callback(kueue.put_workload, self._facts, rounds.now_s)
            admission = admission_with_quota(kueue, self._facts.key, rounds.now_s)
            if admission is None:
                return False
            loose = rounds.pods.let_loose(corrected, admission)
            for pod in loose:
                rounds.apply(structs.replace(pod, ask=respelt_ask(pod.ask, self.labels)))
                stack.callback(rounds.apply, PodGone(pod.key))
            rounds.placement.renew()
            stack.callback(rounds.placement.renew)
            keys = tuple(pod.key for pod in loose)
            return bool(keys) and trial.runs(WaitingSubject(keys[0], keys, is_whole=True))


def _before(label: Unmatched) -> str:
    return " or ".join(label.values) if label.has_key else label.key


def _respelt(pod_set: PodSet, labels: tuple[Unmatched, ...]) -> PodSet:
    return structs.replace(pod_set, selector=dict(_selected(pod_set.selector, labels)))


def _selected(selector: Mapping[str, str], labels: tuple[Unmatched, ...]) -> Mapping[str, str]:
    found = dict(selector)
    for label in labels:
        if label.key in found and not label.has_key:
            found[label.near[0]] = found.pop(label.key)
        elif found.get(label.key, "") in label.values:
            found[label.key] = label.near[0]
    return found
