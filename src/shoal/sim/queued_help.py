"""Searches what would let a workload run that waits in its queue: quota, places on the nodes, or both together.

Guarantees: more quota is proposed only where the pods would then find places; where they would not, the change that
gives them places comes first, and both were tried together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from msgspec import structs

from shoal.api.taints import Toleration
from shoal.engine.events import PodGone
from shoal.engine.queues.facts import QuotaAssignment, WorkloadFacts
from shoal.engine.queues.proof import Prover
from shoal.engine.queues.reasons import Wait
from shoal.engine.queues.remedies import Effect, RemedyKind, SearchLimit, admission_with_quota, remedies
from shoal.engine.queues.remedies import Remedy as QuotaRemedy
from shoal.engine.reasons import Evidence
from shoal.engine.unmatched import untold_near
from shoal.sim.explain import Explainer
from shoal.sim.queue_corrections import QueueCorrection
from shoal.sim.queue_openings import QueueOpenings
from shoal.sim.queue_rounds import QueueRounds
from shoal.sim.queued_levels import flavors_without_topology, respelling, unmatched_levels_of
from shoal.sim.queued_nodes import admissions_anywhere, is_admitted_with, nodes_as_tried
from shoal.sim.queued_resources import QueuedResource
from shoal.sim.queued_selectors import QueuedSelector
from shoal.sim.queued_topologies import flavor_with_topology, looser_topology
from shoal.sim.remedies import Objects, RemedyTrial, WaitingSubject, remedies_of
from shoal.sim.remedies.candidates import Candidate
from shoal.sim.remedies.search import Found
from shoal.sim.remedies.trial import GoOn
from shoal.store.queues.job_parts.plain import LEAST_ANNOTATION
from shoal.views.enumeration import few
from shoal.views.explanation import QUEUE_ALONE, Explanation, cause_lines
from shoal.views.gangs import empty_nodes_words
from shoal.views.queue_help import cut_words, inactive_check_words, remedy_words
from shoal.views.remedies import Remedy, both, unmatched_words
from shoal.views.remedy_commands import annotation_commands, field_command, number_command, quota_commands
from shoal.views.why import nearest_sentence

_MOST_REMEDIES = 4
_MOST_TRIED = 2
_MOST_FLAVORS = 3
_MOST_NAMES = 4
_COMMANDED = frozenset({RemedyKind.QUOTA, RemedyKind.BORROWING, RemedyKind.LENDING})
_WITH_LEAST = frozenset({"Job", "Workload"})
"""Kinds whose users can state a minCount."""
_OF_PLACES = frozenset({Wait.TOPOLOGY, Wait.QUOTA, Wait.EXCEEDS_MAX_QUOTA})
"""Reasons of workloads whose pods may lack places in topology domains."""
_NO_PLACES = "More quota alone does not help: its pods find no places on the nodes."


def tell_queued_help(
    explanation: Explanation, rounds: QueueRounds, facts: WorkloadFacts, go_on: GoOn, objects: Objects
) -> None:
    """Adds what the nodes lack, and what would help."""
    _QueuedHelp(explanation, rounds, facts, go_on, objects).tell()


class _QueuedHelp:
    def __init__(
        self, explanation: Explanation, rounds: QueueRounds, facts: WorkloadFacts, go_on: GoOn, objects: Objects
    ) -> None:
        self._explanation = explanation
        self._rounds = rounds
        self._facts = facts
        self._objects = objects
        self._budget = SearchLimit(go_on=go_on)
        rounds.placement.renew()
        self._untried: list[Remedy] = []
        """Changes that were tried on the queues and not on the nodes."""
        self._trial = RemedyTrial(rounds, objects.node_facts, go_on)

    def tell(self) -> None:
        if self._facts.fault:
            self._add([], _invalid_words(self._objects.limit_ranges(self._facts.key.partition("/")[0])))
            return
        levels = unmatched_levels_of(self._rounds, self._facts)
        if levels:
            level = respelling(self._rounds, self._facts, levels, self._objects)
            if level is None:
                lacking = flavors_without_topology(self._rounds, self._facts)
                self._add([], unmatched_words(untold_near(levels)), lacking)
            else:
                self._add([level], unmatched_words(levels))
            return
        correction = QueueCorrection(self._rounds, self._facts, self._objects)
        if correction.is_needed:
            corrected, obstacle = correction.tried(lambda: self._quota(self._rounds.prover), self._told)
            self._add(corrected, correction.words(), obstacle)
            return
        by_topology = [
            remedy
            for change in (flavor_with_topology, looser_topology)
            if (remedy := change(self._rounds, self._facts, self._objects)) is not None
        ]
        by_quota = self._quota(self._rounds.prover)[:_MOST_REMEDIES]
        resource = QueuedResource(self._rounds, self._facts, self._objects, by_quota)
        if resource.near:
            self._add(resource.tried(self._trial), resource.words())
            return
        selector = QueuedSelector(self._rounds, self._facts, self._objects)
        respelt = selector.tried(self._trial) if selector.labels else []
        if respelt:
            self._add(respelt, unmatched_words(selector.labels))
            return
        openings = QueueOpenings(self._rounds, self._facts, self._objects, self._told)
        opened = openings.tried(by_quota, lambda: self._quota(self._rounds.prover))
        if opened is not None and (opened.remedies or opened.notes):
            self._add(opened.remedies, *opened.notes)
            return
        check = self._inactive_check()
        if check:
            self._add([], *(self._told(each).words for each in by_quota), check)
            return
        untried = [each for each in by_quota if each.effect is Effect.ADMITTED_BY_QUOTA]
        self._untried = [self._told(each) for each in untried]
        by_queues = [*by_topology, *(self._told(each) for each in by_quota if each not in untried)]
        found, on_nodes = self._by_nodes()
        if found is None:
            self._add(by_queues)
            return
        self._explanation.add("MIG", *found.facts)
        helpful = [*by_queues, *on_nodes][:_MOST_REMEDIES]
        unmet = unmatched_words(found.unmet if on_nodes else untold_near(found.unmet))
        is_hopeless = not (helpful or unmet or self._untried or self._budget.is_short or self._trial.is_short)
        self._add(helpful, unmet, _NO_PLACES * is_hopeless, found.note)

    def _add(self, helpful: list[Remedy], *more: str) -> None:
        is_short = self._budget.is_short or self._trial.is_short
        self._explanation.remedies = helpful
        lines = [line for remedy in helpful for line in remedy.lines()]
        cut = cut_words(self._budget.spent) if is_short else ""
        self._explanation.add("would help", *more, *lines, cut)
        self._explanation.untried = self._untried
        self._explanation.add(QUEUE_ALONE, *(line for each in self._untried for line in each.lines()))

    def _by_nodes(self) -> tuple[Found | None, list[Remedy]]:
        """None where its pods find places, so that only quota is lacking."""
        rounds, facts = self._rounds, self._facts
        if not rounds.cluster.row_of:
            return None, []
        admission = admission_with_quota(rounds.kueue, facts.key, rounds.now_s)
        if admission is not None:
            found = self._on_nodes(admission)
            if found is None:
                return None, []
            tried = [self._with_quota(each, admission) for each in found.candidates[:_MOST_TRIED]]
            return found, [remedy for remedy in tried if remedy is not None]
        if self._explanation.code not in _OF_PLACES:
            return None, []
        first: Found | None = None
        for anywhere in islice(admissions_anywhere(rounds.kueue.queues, facts), _MOST_FLAVORS):
            found = self._on_nodes(anywhere, is_in_domain=True)
            if found is None:
                continue
            tried = [self._in_domain(each, anywhere) for each in found.candidates[:_MOST_TRIED]]
            if any(tried):
                return found, [remedy for remedy in tried if remedy is not None]
            first = first or found
        return first, []

    def _in_domain(self, candidate: Candidate, admission: QuotaAssignment) -> Remedy | None:
        """The change, where its queue then finds a domain for it; with more quota where that is lacking as well."""
        added: list[Toleration] = []
        if candidate.changes_requests:
            return None
        if candidate.changes_pods:
            with self._arrived(admission) as subject:
                if subject is None:
                    return None
                pending = self._rounds.cluster.pending
                before = pending[subject.pods[0]].charge.ask.tolerations
                with self._trial.applied(candidate.apply):
                    after = pending[subject.pods[0]].charge.ask.tolerations
            added = [each for each in after if each not in before]
            if not added:
                # Other levels are tried on the queues.
                return None
        with self._trial.applied(candidate.apply), nodes_as_tried(self._rounds, self._trial, self._objects):
            if added:
                works = is_admitted_with(self._rounds, self._facts, added)
                return candidate.remedy if works else None
            self._rounds.placement.renew()
            return self._beside(candidate, self._quota(self._rounds.prover))

    def _on_nodes(self, admission: QuotaAssignment, *, is_in_domain: bool = False) -> Found | None:
        """None where its pods find places, so that only quota is lacking. `is_in_domain`: the queues say what no domain
        can hold."""
        with self._arrived(admission) as subject:
            if subject is None or self._trial.runs(subject) or self._trial.is_short:
                return None
            rounds = self._rounds
            explainer = Explainer(rounds.placement, rounds.seed, rounds.now_s)
            pod = subject.pods[0]
            evidence = explainer.evidence(pod)
            group = explainer.gang_evidence(subject.name) if subject.is_gang else None
            may_shrink = any(each.min_count is not None for each in self._facts.pod_sets)
            if not is_in_domain:
                self._tell_limit("" if may_shrink else empty_nodes_words(evidence, group))
            self._explanation.add("nodes", *self._counted(evidence, len(subject.pods)))
            self._explanation.add("nearest", "" if evidence.fitting else nearest_sentence(evidence))
            return remedies_of(self._trial, subject, self._objects)

    def _tell_limit(self, words: str) -> None:
        """`words`: why the end of other pods, or more quota, does not help; empty where it does."""
        if words:
            self._explanation.chapters = [
                (heading, [words] if heading == "outlook" else lines) for heading, lines in self._explanation.chapters
            ]

    @staticmethod
    def _counted(evidence: Evidence, pods: int) -> Iterator[str]:
        total, *causes = cause_lines(evidence)
        yield f"{total}; not all of its {pods:,} pods fit at once" if evidence.fitting else total
        yield from causes

    @contextmanager
    def _arrived(self, admission: QuotaAssignment) -> Iterator[WaitingSubject | None]:
        """Its pods wait for nodes, as if it had been admitted."""
        rounds, key = self._rounds, self._facts.key
        pods = rounds.pods.let_loose(self._facts, admission)
        self._objects.adopt(key, [pod.key for pod in pods])
        try:
            for pod in pods:
                rounds.apply(pod)
            waiting = tuple(pod.key for pod in pods if pod.key in rounds.cluster.pending)
            groups = {pod.who.group for pod in pods}
            gang = rounds.cluster.gangs.find(groups.pop()) if len(groups) == 1 else None
            if not waiting or len(waiting) < len(pods):
                yield None
            elif gang is not None and gang.facts is not None:
                yield WaitingSubject(gang.name, waiting, is_gang=True, is_whole=True)
            else:
                yield WaitingSubject(waiting[0], waiting, is_whole=True)
        finally:
            for pod in pods:
                rounds.apply(PodGone(pod.key))
            rounds.placement.renew()

    def _with_quota(self, candidate: Candidate, admission: QuotaAssignment) -> Remedy | None:
        """The change, with more quota where that is lacking as well."""
        if candidate.changes_requests:
            # The quotas of the other resource were not tried.
            return None
        if candidate.changes_pods:
            # The nodes were tried with the changed pods; their quota is the same.
            flavors = {flavor for each in admission.pod_sets for flavor in each.flavors.values()}
            found = [each for each in self._quota(None) if all(c.flavor in flavors for c in each.changes if c.flavor)]
        else:
            with self._trial.applied(candidate.apply):
                self._rounds.placement.renew()
                found = self._quota(self._rounds.prover)
            self._rounds.placement.renew()
        return self._beside(candidate, found)

    def _beside(self, candidate: Candidate, found: list[QuotaRemedy]) -> Remedy | None:
        """The change with the best of these, which were tried with it."""
        kinds = {*_COMMANDED, RemedyKind.TURN}
        best = next((each for each in found if each.effect is Effect.ADMITTED and each.kind in kinds), None)
        if best is None:
            return None
        return candidate.remedy if best.kind is RemedyKind.TURN else both(candidate.remedy, self._told(best))

    def _fewer_pods(self, remedy: QuotaRemedy) -> tuple[str, ...]:
        """Of a Job; other kinds have a field for each of their pod sets."""
        namespace, kind, name = self._objects.queued_owner(self._facts.key)
        change = remedy.changes[0]
        if kind != "Job" or len(self._facts.pod_sets) > 1 or len(remedy.changes) > 1 or change.after is None:
            return ()
        if change.field == "minCount":
            return annotation_commands("job", (f"{namespace}/{name}",), LEAST_ANNOTATION, str(change.after))
        return (number_command("job", f"{namespace}/{name}", ("spec", "parallelism"), int(change.after)),)

    def _quota(self, prover: Prover | None) -> list[QuotaRemedy]:
        rounds = self._rounds
        return remedies(rounds.kueue, self._facts.key, prover=prover, now_s=rounds.now_s, budget=self._budget)

    def _inactive_check(self) -> str:
        """What to do about the AdmissionCheck that keeps the ClusterQueue from admitting; empty if there is none."""
        queues = self._rounds.kueue.queues
        local = queues.local_queues.get(self._facts.queue)
        queue = None if local is None else queues.cluster_queues.get(local.cluster_queue)
        if queue is None or queue.closed is None or queue.closed[0] != "AdmissionCheckInactive":
            return ""
        checks = [queues.checks[each.name] for each in queue.facts.checks if each.name in queues.checks]
        return inactive_check_words([(each.name, each.controller) for each in checks if not each.active])

    def _reachable(self, remedy: QuotaRemedy) -> QuotaRemedy:
        """With fewer pods instead of a minCount, where the owner of the workload has no field for one."""
        _, kind, _ = self._objects.queued_owner(self._facts.key)
        if kind in _WITH_LEAST or any(each.min_count is not None for each in self._facts.pod_sets):
            return remedy
        changes = tuple(
            structs.replace(each, field="count") if each.field == "minCount" else each for each in remedy.changes
        )
        return structs.replace(remedy, changes=changes)

    def _told(self, remedy: QuotaRemedy) -> Remedy:
        remedy = self._reachable(remedy)
        words = remedy_words(remedy, self._objects.workload_words)
        if remedy.kind is RemedyKind.FEWER_PODS and self._objects.is_living:
            return Remedy(words, self._fewer_pods(remedy))
        if remedy.kind is RemedyKind.RECLAIM and self._objects.is_living:
            rule = remedy.changes[0]
            spec = {"preemption": {"reclaimWithinCohort": rule.after}}
            return Remedy(words, (field_command("clusterqueue", rule.name, spec),))
        if not self._objects.is_living or remedy.kind not in _COMMANDED:
            return Remedy(words)
        steps = [(change, self._objects.quota_path(change)) for change in remedy.changes]
        return Remedy(words, quota_commands(steps) if all(path for _, path in steps) else ())


def _invalid_words(limit_ranges: Sequence[str]) -> str:
    """Of pods that no API server would create."""
    words = "Correct the requests and limits of its pods"
    if not limit_ranges:
        return f"{words}."
    what = f"LimitRange{'' if len(limit_ranges) == 1 else 's'} {few(limit_ranges, _MOST_NAMES)}"
    return f"{words}, or {what}, which set{'s' * (len(limit_ranges) == 1)} those that the pods leave out."
