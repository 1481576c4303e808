"""What the explanations of a pod and of a gang have in common: the facts after the last round, and the chapters about
nodes, gates and remedies.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from shoal.engine.asks import Ask
from shoal.engine.reasons import Code, Evidence
from shoal.sim.answers import hold_reason
from shoal.sim.decided_rounds import DecidedRounds
from shoal.sim.explain import Explainer
from shoal.sim.remedies import Objects, RemedyTrial, WaitingSubject, remedies_of
from shoal.sim.remedies.trial import MOST_TRIALS
from shoal.sim.rounds import Rounds
from shoal.sim.unhealthy_nodes import unhealthy_lines
from shoal.sim.workload_explanation import GoOn
from shoal.store.held_pods import HeldPod, Hold
from shoal.views.explanation import REFUSED, Explanation, cause_lines
from shoal.views.queue_help import cut_words
from shoal.views.remedies import unmatched_words
from shoal.views.why import changed_nodes_sentence, nearest_sentence

MOST_PODS = 4


class ExplanationContext:
    def __init__(self, rounds: Rounds, gated: Mapping[str, Hold], go_on: GoOn, objects: Objects) -> None:
        self.rounds = rounds
        self.go_on = go_on
        self.objects = objects
        self.cluster = rounds.cluster
        self.gated = gated
        self.explainer = Explainer(rounds.placement, rounds.seed, rounds.now_s, rounds.victim_policy)
        self.decided = DecidedRounds(rounds)

    def trial(self) -> RemedyTrial:
        return RemedyTrial(self.rounds, self.objects.node_facts, self.go_on)

    def tell_nodes(self, explanation: Explanation, evidence: Evidence, ask: Ask) -> None:
        explanation.add("nodes", *cause_lines(evidence))
        explanation.add("nearest", nearest_sentence(evidence))
        explanation.add("unhealthy", *unhealthy_lines(self.cluster, ask, self.objects))

    def tell_help(self, explanation: Explanation, subject: WaitingSubject, limit: str = "") -> None:
        """`limit`: how much of a gang could run."""
        trial = self.trial()
        found = remedies_of(trial, subject, self.objects)
        explanation.remedies = found.remedies
        lines = [line for remedy in found.remedies for line in remedy.lines()]
        cut = cut_words(MOST_TRIALS - trial.left) if trial.is_short else ""
        changed = found.candidates[0].nodes if found.candidates else ()
        if changed:
            explanation.chapters = [
                (heading, [changed_nodes_sentence(changed)] if heading == "nearest" else lines)
                for heading, lines in explanation.chapters
            ]
        explanation.add("MIG", *found.facts)
        explanation.add("would help", unmatched_words(found.unmet) or found.misnamed or limit, *lines, found.note, cut)

    def held(self, title: str, hold: Hold) -> Explanation:
        reason = hold_reason(hold)
        if self.objects.is_living and title not in self.objects.pods and reason.code == Code.FORBIDDEN:
            # A pod that was refused has no name yet.
            _, _, name = title.partition("/")
            reason = structs.replace(reason, message=reason.message.replace(f'pods "{name}" is', "pods are"))
        explanation = Explanation(title, "waits", reason.code)
        label = "volumes" if reason.code == Code.VOLUMES else REFUSED if reason.code == Code.FORBIDDEN else "gates"
        explanation.add("queue" if isinstance(hold, HeldPod) and hold.queue else label, reason.message, reason.help)
        return explanation
