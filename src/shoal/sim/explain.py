"""Explains why a pod or gang waits, with all evidence: counts, the nearest node, what was meant, what would help.

Found by trying on the ledger of the facts as they are; nothing of a trial stays. The work is bounded: after a number of
trials over all questions, answers leave out what would have to be tried.
"""

from __future__ import annotations

from msgspec import structs

from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.domain_counts.all_counts import LabelKey
from shoal.engine.evidence import Evidences, helpful_taints
from shoal.engine.fitter import Fitter
from shoal.engine.gangs.evidence import GroupEvidence, group_evidence
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.preemption.evidence import hindrance, what_would_help
from shoal.engine.preemption.policy import VictimPolicy
from shoal.engine.preemption.preemptor import Preemptor, gang_preemptor, pod_preemptor
from shoal.engine.reasons import Evidence
from shoal.engine.respelling import unmatched_and_near
from shoal.engine.steps.preempt import DEFAULT
from shoal.views.decision import Reason
from shoal.views.gangs import gang_reason
from shoal.views.remedies import help_words, hindrance_words, tolerance_words, unmatched_words
from shoal.views.why import kube_line, nearest_sentence

MOST_QUESTIONS = 64
"""Distinct asks for which it is tried what would help."""
MOST_GANGS = 16
"""Gangs likewise."""


class Explainer:
    """Answers for the facts as they are; to be thrown away when they change."""

    def __init__(self, placement: Placement, seed: int, now_s: float, policy: VictimPolicy = DEFAULT) -> None:
        placement.renew()
        self._policy = policy
        self._cluster: Cluster = placement.cluster
        self._fitter = Fitter(placement, Ledger(self._cluster), seed)
        self._now_s = now_s
        self._evidences = Evidences(self._cluster)
        self._gangs = 0
        """For how many gangs it has been tried."""
        self._answers: dict[tuple[Ask, LabelKey], str] = {}

    def evidence(self, pod: str) -> Evidence:
        waiting = self._cluster.pending[pod]
        return self._evidences.of(waiting.charge.ask, waiting.who)

    def pod(self, pod: str) -> Reason:
        """Why a waiting pod waits."""
        evidence = self.evidence(pod)
        return Reason(evidence.code, kube_line(evidence), self._help(pod, evidence))

    def gang(self, name: str) -> Reason:
        """Why a gang waits."""
        explanation = self.gang_evidence(name)
        reason = gang_reason(explanation, self.evidence(explanation.pod))
        return structs.replace(reason, help=f"{reason.help} {self.gang_room(name)}".rstrip())

    def gang_evidence(self, name: str) -> GroupEvidence:
        return group_evidence(self._fitter, self._cluster.gangs[name])

    def gang_room(self, name: str) -> str:
        """Room to be made for a gang, if there is leave to try."""
        claim = gang_preemptor(self._cluster, self._cluster.gangs[name])
        if claim is None or self._gangs == MOST_GANGS:
            return ""
        self._gangs += 1
        return help_words(what_would_help(self._fitter, claim, self._now_s))

    def what_would_help(self, pod: str) -> str:
        """Room to be made for a pod, if that helps at all and there is leave to try."""
        waiting = self._cluster.pending[pod]
        question = waiting.charge.ask, self._cluster.counts.label_key(waiting.who.traits)
        if question not in self._answers:
            if len(self._answers) == MOST_QUESTIONS:
                return ""
            found = what_would_help(self._fitter, pod_preemptor(self._cluster, pod), self._now_s)
            self._answers[question] = help_words(found)
        return self._answers[question]

    def hindrance(self, pod: str) -> str:
        """Why preemption does not help a pod."""
        return self._hindrance(pod_preemptor(self._cluster, pod))

    def gang_hindrance(self, name: str) -> str:
        """Why preemption does not help a gang."""
        claim = gang_preemptor(self._cluster, self._cluster.gangs[name])
        return "" if claim is None else self._hindrance(claim)

    def _hindrance(self, claim: Preemptor) -> str:
        return hindrance_words(hindrance(self._fitter, claim, self._policy, self._now_s))

    def _help(self, pod: str, evidence: Evidence) -> str:
        meant = unmatched_and_near(self._cluster, self._cluster.pending[pod].charge.ask.nodes)
        if meant:
            return unmatched_words(meant)
        parts = nearest_sentence(evidence), self.tolerance(pod), self.what_would_help(pod)
        return " ".join(part for part in parts if part)

    def tolerance(self, pod: str) -> str:
        """What it would have to tolerate to fit now."""
        waiting = self._cluster.pending[pod]
        return tolerance_words(helpful_taints(self._cluster, waiting.charge.ask, waiting.who))
