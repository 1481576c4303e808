"""Explains one pod, gang or workload: its request, its position in the order, the decision, and why it waits.

Told on the facts after the last round. What is found by trying (who is in the way, how large a gang could be) comes
from `explain`, so the story and the list of refusals say the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.engine.evidence import evidence as evidence_of
from shoal.engine.gangs.attempt import is_running
from shoal.engine.ledger import Ledger
from shoal.engine.plan import Place
from shoal.engine.pods import PodAllocation
from shoal.engine.scheduling_queue import gang_priority
from shoal.sim.explained_names import ExplainedNames
from shoal.sim.explanation_context import MOST_PODS, ExplanationContext
from shoal.sim.gang_explanation import GangExplanation
from shoal.sim.remedies import NO_OBJECTS, Objects, WaitingSubject
from shoal.sim.rounds import Rounds
from shoal.sim.workload_explanation import GoOn, explain_workload
from shoal.sim.workload_stops import tell_stops
from shoal.store.held_pods import Hold
from shoal.views.asks import ask_words, condition_words
from shoal.views.enumeration import few
from shoal.views.explanation import Explanation, cause_lines
from shoal.views.remedies import SHARED_MEMORY


def explain(
    rounds: Rounds,
    gated: Mapping[str, Hold],
    name: str,
    go_on: GoOn = lambda: True,
    objects: Objects = NO_OBJECTS,
) -> Explanation:
    """Decide everything, then tell about one. `go_on` is asked whether to look for more that would help."""
    known = ExplainedNames(rounds, gated)
    key = known.find(name)
    return _Told(ExplanationContext(rounds, gated, go_on, objects)).explanation(key)


class _Told:
    def __init__(self, context: ExplanationContext) -> None:
        self._context = context
        self._cluster = context.cluster
        self._gangs = GangExplanation(context)

    def explanation(self, key: str) -> Explanation:
        context, decided = self._context, self._context.decided
        before = self._turn(key)
        decided.decide()
        gang = self._cluster.gangs.find(key)
        is_let_go = gang is not None and bool(gang.waiting or gang.running)
        queued = None
        if not is_let_go:
            queued = explain_workload(context.rounds, decided.last, key, context.go_on, context.objects)
        if queued is not None:
            tell_stops(queued, context.rounds, decided.stops, key, context.objects)
            return queued
        if gang is not None:
            explanation = self._gangs.of(gang, before)
            tell_stops(explanation, context.rounds, decided.stops, key, context.objects)
            return explanation
        explanation = self._pod(key)
        if before:
            explanation.chapters.insert(1, ("turn", [before]))
        return explanation

    def _pod(self, key: str) -> Explanation:
        cluster = self._cluster
        if key in self._context.gated:
            return self._context.held(key, self._context.gated[key])
        if key not in cluster.pending:
            allocation = cluster.pods.get(key)
            outcome = self._context.decided.outcomes.get(key, "")
            if not outcome and allocation is not None:
                chosen = Place(key, cluster.names[allocation.row], allocation.grant)
                outcome = f"runs on {chosen.node}{self._context.decided.devices_of(chosen)}, since before"
            explanation = Explanation(key, outcome or "is gone", is_at_once=key not in self._context.decided.later)
            if allocation is not None:
                explanation.add("asks", ask_words(allocation.ask))
                explanation.add("conditions", *condition_words(allocation.ask))
                explanation.add("gang", allocation.who.group)
                explanation.add("nodes", *self._alternatives(key))
                explanation.add("GPU memory", self._shared_memory(allocation))
            explanation.add("preempted", few(self._context.decided.yielded.get(key, []), MOST_PODS))
            explanation.add("after", few(self._context.decided.freed.get(key, []), MOST_PODS))
            return explanation
        waiting = cluster.pending[key]
        group = cluster.gangs.find(waiting.who.group) if waiting.who.group else None
        if group is not None and not is_running(cluster, group):
            return self._gangs.of_member(key, group)
        evidence = self._context.explainer.evidence(key)
        explanation = Explanation(key, "waits", evidence.code)
        explanation.add("asks", ask_words(waiting.charge.ask))
        explanation.add("conditions", *condition_words(waiting.charge.ask))
        explanation.add(
            "gang", f"{group.name}, which runs; this pod is beyond its minimum" if group is not None else ""
        )
        self._context.tell_nodes(explanation, evidence, waiting.charge.ask)
        self._context.tell_help(explanation, WaitingSubject(key, (key,)))
        explanation.add("preemption", self._context.explainer.hindrance(key))
        return explanation

    def _alternatives(self, key: str) -> list[str]:
        """What each node says of a pod that has its place, as if it had none."""
        ledger = Ledger(self._cluster)
        allocation = self._cluster.pods[key]
        ledger.evict(key)
        try:
            return cause_lines(evidence_of(self._cluster, allocation.ask, allocation.who))
        finally:
            ledger.rollback()

    def _shared_memory(self, allocation: PodAllocation) -> str:
        layout = self._cluster.devices.layout(allocation.row)
        is_shared = layout.sharing == "time-slicing" and allocation.ask.devices is not None
        return SHARED_MEMORY if is_shared else ""

    def _turn(self, key: str) -> str:
        """Its position in the queue before the first round."""
        cluster = self._cluster
        order = cluster.pending.in_order()
        gang = cluster.gangs.find(key)
        if gang is not None:
            if not gang.waiting:
                return ""
            key = min(gang.waiting, key=order.index)
            priority = gang_priority(cluster, gang)
        elif key in cluster.pending:
            priority = cluster.pending[key].priority
        else:
            return ""
        ahead = sum(1 for pod in order if cluster.pending[pod].priority > priority)
        behind = f", {ahead:,} of them of higher priority" if ahead else ""
        return f"priority {priority:,}; {order.index(key) + 1:,} of {len(order):,} in line{behind}"
