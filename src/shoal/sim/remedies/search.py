"""Searches the changes after which a waiting pod or gang runs: one change, else two that are needed together.

Guarantees: each remedy was tried on the facts and the subject ran; nothing is left of the trials. The search ends after
a number of trials, or when the caller says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain

from msgspec import structs

from shoal.engine.preemption.evidence import NodeShortage, what_would_help
from shoal.engine.preemption.preemptor import gang_preemptor, pod_preemptor
from shoal.engine.unmatched import Unmatched, untold_near
from shoal.sim.remedies.candidates import Candidate, NodeCandidates, WaitingSubject
from shoal.sim.remedies.level_candidates import looser_levels
from shoal.sim.remedies.node_candidates import disturbing_mig_layouts, mig_layouts, repair, uncordon
from shoal.sim.remedies.objects import Objects
from shoal.sim.remedies.pod_candidates import (
    requests_by_gpu,
    spelling,
    spellings,
    strategy_single,
    tolerations,
    unmet_labels,
)
from shoal.sim.remedies.profile_candidates import WrongProfile
from shoal.sim.remedies.resource_candidates import WrongResource
from shoal.sim.remedies.trial import RemedyTrial
from shoal.sim.remedies.unready_nodes import revive
from shoal.views.remedies import Remedy, both, free_words, overtaken_words, still_waits_words
from shoal.views.remedy_commands import delete_commands

NodeChange = Callable[[RemedyTrial, WaitingSubject, Objects], Iterator[NodeCandidates]]
"""Candidates of one kind of change."""
_MOST_REMEDIES = 4


@dataclass(slots=True)
class Found:
    """What the search found."""

    unmet: tuple[Unmatched, ...] = ()
    """Labels that no node has, with a near one only where the subject runs with it."""
    candidates: list[Candidate] = field(default_factory=list)
    """With each of them the subject ran."""
    facts: tuple[str, ...] = ()
    """Why nodes with the requested MIG profile do not count."""
    note: str = ""
    """Why freed capacity would not help, where other pods would take it."""
    misnamed: str = ""
    """A resource that no node has, with the nearest name."""

    @property
    def remedies(self) -> list[Remedy]:
        return [candidate.remedy for candidate in self.candidates]


def remedies_of(trial: RemedyTrial, subject: WaitingSubject, objects: Objects) -> Found:
    """The simplest remedies first."""
    return _Search(trial, subject, objects).found()


class _Search:
    def __init__(self, trial: RemedyTrial, subject: WaitingSubject, objects: Objects) -> None:
        self._trial = trial
        self._subject = subject
        self._objects = objects
        self._spared = objects.siblings(subject.pods[0]) | objects.of_workloads()
        self._note = ""

    def found(self) -> Found:
        unmet = unmet_labels(self._trial.cluster, self._subject)
        if unmet:
            return self._respelt(unmet)
        wrong = WrongProfile(self._trial, self._subject, self._objects)
        if wrong.name:
            return self._corrected(wrong)
        misnamed = WrongResource(self._trial, self._subject, self._objects)
        if misnamed.near:
            corrected = self._from(misnamed.correction())
            return Found((), corrected, note=self._note, misnamed=misnamed.words())
        singles = list(self._singles())
        remedies = [*singles, *self._freed()] if len(singles) < _MOST_REMEDIES else singles
        if not remedies:
            remedies = list(self._disturbing()) or self._pairs()
        facts = tuple(strategy_single(self._trial.cluster, self._subject, self._objects))
        return Found((), remedies[:_MOST_REMEDIES], facts, self._note)

    def _respelt(self, unmet: Sequence[Unmatched]) -> Found:
        """With the first of the near labels with which the subject runs."""
        for meant in spellings(unmet):
            respelt = spelling(self._trial, self._subject, self._objects, meant)
            remedies = [] if respelt is None else self._from(respelt)
            if remedies:
                return Found(meant, remedies, note=self._note)
        note = " ".join(filter(None, ("" if self._trial.is_short else still_waits_words(unmet), self._note)))
        return Found(untold_near(unmet), note=note)

    def _corrected(self, wrong: WrongProfile) -> Found:
        for name, correction in wrong.corrections():
            found = self._from(correction)
            if found:
                # The last trial was the one that the subject ran in.
                found = [structs.replace(each, nodes=self._trial.takers) for each in found]
                return Found((), found, tuple(wrong.facts(name)), self._note)
        return Found((), [], tuple(wrong.facts("")), self._note)

    def _from(self, first: Candidate) -> list[Candidate]:
        """The change alone, or with one other."""
        with self._trial.applied(first.apply):
            if self._runs():
                return [first]
            more = next(
                chain(self._singles(), self._freed(), self._disturbing() if first.changes_requests else ()), None
            )
        return [] if more is None else [_both(first, more)]

    def _pairs(self) -> list[Candidate]:
        tolerated = tolerations(self._trial, self._subject, self._objects)
        others = chain.from_iterable(map(self._on_one_node, (revive, repair, mig_layouts)))
        for first in (*self._on_one_node(uncordon), *tolerated, *others):
            found = self._from(first)
            if found:
                return found
        return []

    def _on_one_node(self, kind: NodeChange) -> Iterator[Candidate]:
        for each in kind(self._trial, self._subject, self._objects):
            yield each.of(1)

    def _singles(self) -> Iterator[Candidate]:
        """A cordon that is lifted comes first: it changes no pod."""
        yield from self._on_nodes(uncordon)
        for candidate in (
            *tolerations(self._trial, self._subject, self._objects),
            *requests_by_gpu(self._trial, self._subject, self._objects),
        ):
            if self._works(candidate):
                yield candidate
        # Of several levels, the one nearest to the requested one is enough.
        looser = next(filter(self._works, looser_levels(self._trial, self._subject, self._objects)), None)
        yield from () if looser is None else (looser,)
        for kind in (revive, repair, mig_layouts):
            yield from self._on_nodes(kind)

    def _on_nodes(self, kind: NodeChange) -> Iterator[Candidate]:
        """Of several MIG layouts that would do, one is enough."""
        candidates = kind(self._trial, self._subject, self._objects)
        found = next(filter(None, map(self._fewest, candidates)), None)
        if found is not None:
            yield found

    def _disturbing(self) -> Iterator[Candidate]:
        for candidate in disturbing_mig_layouts(self._trial, self._subject, self._objects):
            if self._works(candidate):
                yield candidate
                return

    def _fewest(self, nodes: NodeCandidates) -> Candidate | None:
        """Of the nodes the one that suffices, or else the fewest of them together."""
        if len(nodes.names) > 1 and not self._works(nodes.of(len(nodes.names))):
            return None
        for name in nodes.names:
            alone = NodeCandidates((name,), nodes.apply, nodes.remedy).of(1)
            if self._works(alone):
                return alone
            if not self._subject.is_gang and self._trial.is_short:
                return None
        return next((nodes.of(n) for n in range(2, len(nodes.names) + 1) if self._works(nodes.of(n))), None)

    def _works(self, candidate: Candidate) -> bool:
        with self._trial.applied(candidate.apply):
            return self._runs()

    def _freed(self) -> Iterator[Candidate]:
        """Capacity that others hold, if the subject then gets it."""
        shortages = self._shortages()
        victims = [pod for each in shortages for pod in each.pods]
        if not victims:
            return
        with ExitStack() as stack:
            self._trial.end_pods(stack, victims)
            works = self._runs()
        if not works:
            takers = [pod for pod in self._trial.placed if pod not in {*victims, *self._subject.pods}]
            self._note = overtaken_words(shortages, takers) if takers else ""
            return
        # Pods of groups count as pods that return in the trial; without a controller they are not created again.
        returning = [
            pod for pod in victims if self._trial.cluster.pods[pod].who.returns and self._objects.owner(pod) is not None
        ]
        commands = delete_commands(victims) if self._objects.is_living else ()
        remedy = Remedy(free_words(shortages, returning), commands)
        yield Candidate(remedy, lambda stack: self._trial.end_pods(stack, victims))

    def _shortages(self) -> Sequence[NodeShortage]:
        cluster, subject = self._trial.cluster, self._subject
        if subject.is_gang:
            claim = gang_preemptor(cluster, cluster.gangs[subject.name])
        else:
            claim = pod_preemptor(cluster, subject.name)
        if claim is None:
            return ()
        return what_would_help(self._trial.fitter(), claim, self._trial.now_s, self._spared)

    def _runs(self) -> bool:
        return self._trial.runs(self._subject)


def _both(first: Candidate, second: Candidate) -> Candidate:
    def apply(stack: ExitStack) -> None:
        first.apply(stack)
        second.apply(stack)

    return Candidate(
        both(first.remedy, second.remedy),
        apply,
        changes_pods=first.changes_pods or second.changes_pods,
        changes_requests=first.changes_requests or second.changes_requests,
        nodes=(*first.nodes, *second.nodes),
    )
