"""Explains a gang, and a pod whose gang waits: what the gang needs, which of its pods run, and why it waits."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.engine.gang_members import Gang
from shoal.engine.gangs.attempt import is_running
from shoal.engine.gangs.evidence import GroupEvidence
from shoal.engine.reasons import Code, Evidence
from shoal.sim.explanation_context import MOST_PODS, ExplanationContext
from shoal.sim.gang_corrections import GangCorrection
from shoal.sim.remedies import WaitingSubject
from shoal.sim.unhealthy_nodes import unhealthy_lines
from shoal.store.held_pods import HeldPod
from shoal.views.asks import ask_words, condition_words, pods_words
from shoal.views.enumeration import few
from shoal.views.explanation import Explanation, cause_lines
from shoal.views.gangs import gang_help, gang_message, gang_shortage, is_pod_alone, lost_pods, lost_words

_NOT_ABOUT_NODES = frozenset({Code.GANG_UNKNOWN, Code.GANG_MALFORMED, Code.GANG_TOO_SMALL})


class GangExplanation:
    """After the last round."""

    def __init__(self, context: ExplanationContext) -> None:
        self._context = context
        self._cluster = context.cluster
        self._objects = context.objects
        self._explainer = context.explainer

    def of(self, gang: Gang, before: str) -> Explanation:
        cluster = self._cluster
        if is_running(cluster, gang):
            later = self._context.decided.later.intersection(gang.running)
            explanation = Explanation(f"gang {gang.name}", self._running(gang), is_at_once=not later)
            explanation.add("turn", before)
            explanation.add("pods", *self._where(gang))
            explanation.add("preempted", few(self._context.decided.yielded.get(gang.name, []), MOST_PODS))
            freed = dict.fromkeys(words for pod in gang.running for words in self._context.decided.freed.get(pod, ()))
            explanation.add("after", few(list(freed), MOST_PODS))
            if gang.waiting:
                explanation.add("waiting", self._objects.pod_names(list(gang.waiting)), "they are beyond its minimum")
            return explanation
        held = next(
            (hold for hold in self._context.gated.values() if isinstance(hold, HeldPod) and hold.group == gang.name),
            None,
        )
        if held is not None and not gang.waiting:
            return self._context.held(f"gang {gang.name}", held)
        if lost := lost_pods(cluster, gang):
            left = len(gang.running)
            outcome = f"runs with {left:,} of {left + lost:,} pods"
            explanation = Explanation(f"gang {gang.name}", outcome, Code.GANG_TOO_SMALL)
            explanation.add("lost", lost_words(lost))
            explanation.add("pods", *self._where(gang))
            return explanation
        if not gang.waiting:
            return self._without_pods(gang)
        found = self._explainer.gang_evidence(gang.name)
        evidence = self._explainer.evidence(found.pod)
        if is_pod_alone(found, evidence):
            return self._alone(f"gang {gang.name}", gang, evidence, before)
        first = cluster.pending[found.pod]
        explanation = Explanation(f"gang {gang.name}", "waits", found.code)
        explanation.add("needs", *self._needs(gang))
        is_named = not self._objects.is_living or found.pod in self._objects.pods
        are_equal = len({cluster.pending[pod].charge for pod in gang.waiting}) == 1
        like = f" like {found.pod}" if is_named else ""
        like = f"each pod{like}" if are_equal else f"a pod{like}; other pods of the gang differ"
        explanation.add("asks", f"{ask_words(first.charge.ask)} ({like})")
        explanation.add("conditions", *condition_words(first.charge.ask))
        explanation.add("turn", before)
        are_counted = found.code is not Code.GANG_MALFORMED
        # The lines about nodes say what one of its pods lacks.
        message = gang_message(found, evidence)
        explanation.add(
            "short", gang_shortage(found) if are_counted and found.code not in _NOT_ABOUT_NODES else message
        )
        if are_counted:
            # However many nodes there are, they are not looked at for a malformed gang.
            explanation.add("nodes", *cause_lines(evidence))
        self._tell_gang_help(explanation, gang, found, evidence)
        explanation.add("preemption", self._explainer.gang_hindrance(gang.name))
        return explanation

    def of_member(self, key: str, gang: Gang) -> Explanation:
        """A pod whose gang waits: its own evidence would say that it fits."""
        found = self._explainer.gang_evidence(gang.name)
        evidence = self._explainer.evidence(found.pod)
        if is_pod_alone(found, evidence):
            return self._alone(key, gang, evidence)
        explanation = Explanation(key, "waits with its gang", found.code)
        explanation.add("asks", ask_words(self._cluster.pending[key].charge.ask))
        explanation.add("conditions", *condition_words(self._cluster.pending[key].charge.ask))
        first, *rest = [*self._needs(gang)] or [""]
        explanation.add("gang", f"{gang.name} needs {first}" if first else gang.name, *rest)
        explanation.add("short", gang_message(found, evidence))
        self._tell_gang_help(explanation, gang, found, evidence)
        return explanation

    def _alone(self, title: str, gang: Gang, evidence: Evidence, turn: str = "") -> Explanation:
        """The only pod of a gang, or a gang of one pod: it waits for no other pods."""
        (key,) = gang.waiting
        ask = self._cluster.pending[key].charge.ask
        explanation = Explanation(title, "waits", evidence.code)
        explanation.add("asks", ask_words(ask))
        explanation.add("conditions", *condition_words(ask))
        explanation.add("turn", turn)
        self._context.tell_nodes(explanation, evidence, ask)
        self._context.tell_help(explanation, WaitingSubject(gang.name, tuple(gang.waiting), is_gang=True))
        explanation.add("preemption", self._explainer.gang_hindrance(gang.name))
        return explanation

    def _tell_gang_help(self, explanation: Explanation, gang: Gang, found: GroupEvidence, evidence: Evidence) -> None:
        limit = gang_help(found, evidence)
        if found.code in _NOT_ABOUT_NODES:
            trial = self._context.trial()
            GangCorrection(trial, gang, found, self._objects).tell(explanation, limit)
            return
        ask = self._cluster.pending[found.pod].charge.ask
        explanation.add("unhealthy", *unhealthy_lines(self._cluster, ask, self._objects))
        self._context.tell_help(explanation, WaitingSubject(gang.name, tuple(gang.waiting), is_gang=True), limit)

    def _without_pods(self, gang: Gang) -> Explanation:
        explanation = Explanation(f"gang {gang.name}", "waits", Code.GANG_TOO_SMALL)
        explanation.add("needs", *self._needs(gang))
        least = 0 if gang.facts is None else gang.facts.minimum
        if least:
            explanation.add("short", f"the gang needs {pods_words(least)}, and none of them exists.")
            explanation.add("would help", f"Create {pods_words(least)} of the gang.")
        else:
            explanation.add("pods", "it has none")
        return explanation

    def _running(self, gang: Gang) -> str:
        nominated = sum(1 for pod in gang.running if pod in self._cluster.nominated)
        if nominated:
            return f"is nominated with {nominated:,} of its pods"
        return f"runs with {pods_words(len(gang.running))}"

    def _where(self, gang: Gang) -> Iterator[str]:
        by_node: dict[str, list[str]] = {}
        for pod in gang.running:
            by_node.setdefault(self._cluster.names[self._cluster.pods[pod].row], []).append(pod)
        for node, pods in sorted(by_node.items()):
            yield f"{node}: {self._objects.pod_names(pods)}"

    def _needs(self, gang: Gang) -> Iterator[str]:
        facts = gang.facts
        if facts is None:
            return
        if facts.minimum:
            missing = 0
            if self._objects.is_living:
                missing = sum(pod not in self._objects.pods for pod in gang.waiting)
            waiting, running = len(gang.waiting) - missing, len(gang.running)
            waits, runs = "waits" if waiting == 1 else "wait", "runs" if running == 1 else "run"
            more = f", {missing:,} not created yet" if missing else ""
            yield f"{pods_words(facts.minimum)}; {waiting:,} {waits}, {running:,} {runs}{more}"
        for part in facts.parts:
            inside = f" in {part.parent}" if part.parent else ""
            has_parts = any(each.parent == part.name for each in facts.parts)
            parts = f"{part.minimum:,} {'part' if part.minimum == 1 else 'parts'}"
            yield f"part {part.name}{inside}: {parts if has_parts else pods_words(part.minimum)}"
        for role, least in facts.roles:
            yield f"role {role}: {pods_words(least)}"
        wish = facts.requirement
        if wish.required:
            yield f"all in one {wish.required}"
        if wish.preferred:
            yield f"if possible in one {wish.preferred}"
        if wish.slice_level:
            yield f"each {wish.slice_size:,} of them in one {wish.slice_level}"
