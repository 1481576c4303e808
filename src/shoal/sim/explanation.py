"""Explains one pod or gang: its request, its position in the order, the decision, and why it waits.

Told on the facts after the last round. What is found by trying (who is in the way, how large a gang could be) comes
from `explain`, so the story and the list of refusals say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import structs

from shoal.engine.asks import Ask
from shoal.engine.evidence import evidence as evidence_of
from shoal.engine.gang_members import Gang
from shoal.engine.gangs.attempt import is_running
from shoal.engine.gangs.evidence import GroupEvidence
from shoal.engine.ledger import Ledger
from shoal.engine.plan import Evict, Nominate, Place
from shoal.engine.pods import PodAllocation
from shoal.engine.reasons import Code, Evidence
from shoal.engine.scheduling_queue import gang_priority
from shoal.sim.answers import hold_reason
from shoal.sim.device_names import device_names
from shoal.sim.explain import Explainer
from shoal.sim.explained_names import ExplainedNames
from shoal.sim.gang_corrections import GangCorrection
from shoal.sim.queue_rounds import QueueRecord
from shoal.sim.remedies import NO_OBJECTS, Objects, RemedyTrial, WaitingSubject, remedies_of
from shoal.sim.remedies.trial import MOST_TRIALS
from shoal.sim.rounds import Record, Rounds
from shoal.sim.unhealthy_nodes import unhealthy_lines
from shoal.sim.workload_explanation import GoOn, explain_workload, most_of
from shoal.sim.workload_stops import WorkloadStops, tell_stops
from shoal.store.held_pods import HeldPod, Hold
from shoal.views.asks import ask_words, condition_words, pods_words
from shoal.views.decision_text import device_words
from shoal.views.enumeration import few
from shoal.views.explanation import REFUSED, Explanation, cause_lines
from shoal.views.gangs import gang_help, gang_message, gang_shortage, is_pod_alone, lost_pods, lost_words
from shoal.views.queue_help import cut_words
from shoal.views.remedies import SHARED_MEMORY, unmatched_words
from shoal.views.why import changed_nodes_sentence, nearest_sentence

_MOST_PODS = 4
_MOST_NODES = 4
_NOT_ABOUT_NODES = frozenset({Code.GANG_UNKNOWN, Code.GANG_MALFORMED, Code.GANG_TOO_SMALL})


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
    return _Told(rounds, gated, go_on, objects).explanation(key)


class _Told:
    def __init__(self, rounds: Rounds, gated: Mapping[str, Hold], go_on: GoOn, objects: Objects) -> None:
        self._rounds = rounds
        self._go_on = go_on
        self._objects = objects
        self._cluster = rounds.cluster
        self._gated = gated
        self._explainer = Explainer(rounds.placement, rounds.seed, rounds.now_s, rounds.victim_policy)
        self._fate: dict[str, str] = {}
        """What became of pods, in words."""
        self._yielded: dict[str, list[str]] = {}
        """The preempted pods, by the pod or gang they were preempted for."""
        self._freed: dict[str, list[str]] = {}
        """What had to happen on its node before a pod was placed: pods that were preempted for others, in words."""
        self._later: set[str] = set()
        """Pods that were placed after others had ended or were told to."""
        self._stops = WorkloadStops()
        self._last: Record | None = None

    def explanation(self, key: str) -> Explanation:
        before = self._turn(key)
        self._decide()
        gang = self._cluster.gangs.find(key)
        is_let_go = gang is not None and bool(gang.waiting or gang.running)
        queued = None if is_let_go else explain_workload(self._rounds, self._last, key, self._go_on, self._objects)
        if queued is not None:
            tell_stops(queued, self._rounds, self._stops, key, self._objects)
            return queued
        if gang is not None:
            explanation = self._gang(gang, before)
            tell_stops(explanation, self._rounds, self._stops, key, self._objects)
            return explanation
        explanation = self._pod(key)
        if before:
            explanation.chapters.insert(1, ("turn", [before]))
        return explanation

    def _decide(self) -> None:
        names = self._cluster.names
        node_of = {pod: names[allocation.row] for pod, allocation in self._cluster.pods.items()}
        preempted: dict[str, list[Evict]] = {}
        ended = False
        for record in self._rounds.each(most_of(self._rounds)):
            self._last = record
            if isinstance(record, QueueRecord):
                self._stops.see(record)
            if ended:
                self._later.update(placed.pod for placed in record.placed)
            ended = ended or bool(record.ended or record.evicted or record.moved)
            for placed in record.placed:
                freed = [each for each in preempted.get(placed.node, ()) if each.beneficiary != self._whose(placed.pod)]
                if freed:
                    self._freed[placed.pod] = [f"{each.pod} is preempted for {each.beneficiary}" for each in freed]
                self._fate[placed.pod] = f"runs on {placed.node}{self._on(placed)}"
            for nominated in record.nominated:
                where = f"{nominated.node}{self._on(nominated)}"
                self._fate[nominated.pod] = f"is nominated to {where}, until the preempted pods have ended"
            for moved in record.moved:
                self._fate[moved.pod] = f"moves from {moved.source} to {moved.target} for {moved.beneficiary}"
                self._yielded.setdefault(moved.beneficiary, []).append(f"{moved.pod} (moved to {moved.target})")
            for evicted in record.evicted:
                self._fate[evicted.pod] = f"is preempted by {evicted.beneficiary} ({evicted.code})"
                self._yielded.setdefault(evicted.beneficiary, []).append(evicted.pod)
                preempted.setdefault(node_of.get(evicted.pod, ""), []).append(evicted)

    def _whose(self, pod: str) -> str:
        """The pod or the gang for which others are preempted."""
        allocation = self._cluster.pods.get(pod)
        return pod if allocation is None else allocation.who.group or pod

    def _on(self, chosen: Place | Nominate) -> str:
        allocation = self._cluster.pods.get(chosen.pod)
        # One that was placed and made to yield in one round is not there any more.
        devices = [] if allocation is None else device_names(self._cluster, allocation.ask, chosen.node, chosen.grant)
        return f", {device_words(devices)}" if devices else ""

    # -- a pod -----------------------------------------------------------------------------------------------

    def _pod(self, key: str) -> Explanation:
        cluster = self._cluster
        if key in self._gated:
            return self._held(key, self._gated[key])
        if key not in cluster.pending:
            allocation = cluster.pods.get(key)
            outcome = self._fate.get(key, "")
            if not outcome and allocation is not None:
                chosen = Place(key, cluster.names[allocation.row], allocation.grant)
                outcome = f"runs on {chosen.node}{self._on(chosen)}, since before"
            explanation = Explanation(key, outcome or "is gone", is_at_once=key not in self._later)
            if allocation is not None:
                explanation.add("asks", ask_words(allocation.ask))
                explanation.add("conditions", *condition_words(allocation.ask))
                explanation.add("gang", allocation.who.group)
                explanation.add("nodes", *self._alternatives(key))
                explanation.add("GPU memory", self._shared_memory(allocation))
            explanation.add("preempted", few(self._yielded.get(key, []), _MOST_PODS))
            explanation.add("after", few(self._freed.get(key, []), _MOST_PODS))
            return explanation
        waiting = cluster.pending[key]
        group = cluster.gangs.find(waiting.who.group) if waiting.who.group else None
        if group is not None and not is_running(cluster, group):
            return self._member(key, group)
        evidence = self._explainer.evidence(key)
        explanation = Explanation(key, "waits", evidence.code)
        explanation.add("asks", ask_words(waiting.charge.ask))
        explanation.add("conditions", *condition_words(waiting.charge.ask))
        explanation.add(
            "gang", f"{group.name}, which runs; this pod is beyond its minimum" if group is not None else ""
        )
        self._tell_nodes(explanation, evidence, waiting.charge.ask)
        self._tell_help(explanation, WaitingSubject(key, (key,)))
        explanation.add("preemption", self._explainer.hindrance(key))
        return explanation

    def _tell_nodes(self, explanation: Explanation, evidence: Evidence, ask: Ask) -> None:
        explanation.add("nodes", *cause_lines(evidence))
        explanation.add("nearest", nearest_sentence(evidence))
        explanation.add("unhealthy", *unhealthy_lines(self._cluster, ask, self._objects))

    def _alone(self, title: str, gang: Gang, evidence: Evidence, turn: str = "") -> Explanation:
        """The only pod of a gang, or a gang of one pod: it waits for no other pods."""
        (key,) = gang.waiting
        ask = self._cluster.pending[key].charge.ask
        explanation = Explanation(title, "waits", evidence.code)
        explanation.add("asks", ask_words(ask))
        explanation.add("conditions", *condition_words(ask))
        explanation.add("turn", turn)
        self._tell_nodes(explanation, evidence, ask)
        self._tell_help(explanation, WaitingSubject(gang.name, tuple(gang.waiting), is_gang=True))
        explanation.add("preemption", self._explainer.gang_hindrance(gang.name))
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

    def _held(self, title: str, hold: Hold) -> Explanation:
        reason = hold_reason(hold)
        if self._objects.is_living and title not in self._objects.pods and reason.code == Code.FORBIDDEN:
            # A pod that was refused has no name yet.
            _, _, name = title.partition("/")
            reason = structs.replace(reason, message=reason.message.replace(f'pods "{name}" is', "pods are"))
        explanation = Explanation(title, "waits", reason.code)
        label = "volumes" if reason.code == Code.VOLUMES else REFUSED if reason.code == Code.FORBIDDEN else "gates"
        explanation.add("queue" if isinstance(hold, HeldPod) and hold.queue else label, reason.message, reason.help)
        return explanation

    def _member(self, key: str, gang: Gang) -> Explanation:
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

    def _tell_gang_help(self, explanation: Explanation, gang: Gang, found: GroupEvidence, evidence: Evidence) -> None:
        limit = gang_help(found, evidence)
        if found.code in _NOT_ABOUT_NODES:
            trial = RemedyTrial(self._rounds, self._objects.node_facts, self._go_on)
            GangCorrection(trial, gang, found, self._objects).tell(explanation, limit)
            return
        ask = self._cluster.pending[found.pod].charge.ask
        explanation.add("unhealthy", *unhealthy_lines(self._cluster, ask, self._objects))
        self._tell_help(explanation, WaitingSubject(gang.name, tuple(gang.waiting), is_gang=True), limit)

    def _tell_help(self, explanation: Explanation, subject: WaitingSubject, limit: str = "") -> None:
        """`limit`: how much of a gang could run."""
        trial = RemedyTrial(self._rounds, self._objects.node_facts, self._go_on)
        found = remedies_of(trial, subject, self._objects)
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

    # -- a gang ----------------------------------------------------------------------------------------------

    def _gang(self, gang: Gang, before: str) -> Explanation:
        cluster = self._cluster
        if is_running(cluster, gang):
            later = self._later.intersection(gang.running)
            explanation = Explanation(f"gang {gang.name}", self._running(gang), is_at_once=not later)
            explanation.add("turn", before)
            explanation.add("pods", *self._where(gang))
            explanation.add("preempted", few(self._yielded.get(gang.name, []), _MOST_PODS))
            freed = dict.fromkeys(words for pod in gang.running for words in self._freed.get(pod, ()))
            explanation.add("after", few(list(freed), _MOST_PODS))
            if gang.waiting:
                explanation.add("waiting", self._objects.pod_names(list(gang.waiting)), "they are beyond its minimum")
            return explanation
        held = next(
            (hold for hold in self._gated.values() if isinstance(hold, HeldPod) and hold.group == gang.name), None
        )
        if held is not None and not gang.waiting:
            return self._held(f"gang {gang.name}", held)
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

    # -- what both have --------------------------------------------------------------------------------------

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
