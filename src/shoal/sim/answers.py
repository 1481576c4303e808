"""Converts the cycles of a cluster to answers for users and programs: every decision with names, every refusal with its
message.

Refusals are worked out after each round on the facts as they are then, once per ask. Rejected: telling only about pods
that are new in a round, as the plan does. A reader of the last round would not see who waits since the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import UNSET, structs

from shoal.engine.cluster import Cluster
from shoal.engine.plan import Nominate, Place
from shoal.engine.reasons import Code
from shoal.sim.device_names import device_names
from shoal.sim.explain import Explainer
from shoal.sim.queue_answers import told_admitted, told_preempted, told_unproven, told_waiting
from shoal.sim.queue_rounds import QueueRecord, QueueRounds
from shoal.sim.refusals import waiting_gangs, waiting_pods
from shoal.sim.rounds import MOST_ROUNDS, Record, Rounds
from shoal.store.held_pods import HeldPod, Hold
from shoal.views.decision import CycleResult, Decision, Evicted, Moved, Placed, Reason, Refused


def answer(rounds: Rounds, gated: Mapping[str, Hold], most: int | None = None) -> Decision:
    """Run until quiet, or for a number of rounds, and tell what came of it."""
    queued = rounds if isinstance(rounds, QueueRounds) else None
    last = most if most is not None else MOST_ROUNDS if queued is None else queued.enough
    teller = _Teller(rounds, gated)
    told: list[CycleResult] = []
    quiet = False
    if queued is not None:
        queued.tells_all = last == 1
    for record in rounds.each(last):
        told.append(teller.round(record))
        quiet = record.is_quiet
        if queued is not None:
            queued.tells_all = len(told) == last - 1
    return Decision(told, quiet)


class _Teller:
    def __init__(self, rounds: Rounds, gated: Mapping[str, Hold]) -> None:
        self._cluster: Cluster = rounds.cluster
        self._gated = gated
        self._rounds = rounds

    def round(self, record: Record) -> CycleResult:
        told = CycleResult(
            placed=[self._on(each) for each in record.placed],
            nominated=[self._on(each) for each in record.nominated],
            moved=[Moved(each.pod, each.source, each.target) for each in record.moved],
            evicted=[Evicted(each.pod, each.beneficiary, each.code) for each in record.evicted],
            refused=list(self._refused()),
        )
        return self._with_queues(told, record)

    def _with_queues(self, told: CycleResult, record: Record) -> CycleResult:
        if not isinstance(record, QueueRecord) or not isinstance(self._rounds, QueueRounds):
            return told
        kueue = self._rounds.kueue
        return structs.replace(
            told,
            admitted=told_admitted(kueue, record),
            preempted=told_preempted(record),
            waiting=told_waiting(kueue, record),
            unproven=told_unproven(record) or UNSET,
        )

    def _on(self, chosen: Place | Nominate) -> Placed:
        allocation = self._cluster.pods.get(chosen.pod)
        if allocation is None:
            # Placed and made to yield in one round.
            return Placed(chosen.pod, chosen.node, [] if chosen.grant is None else [*chosen.grant.devices])
        return Placed(chosen.pod, chosen.node, device_names(self._cluster, allocation.ask, chosen.node, chosen.grant))

    def _refused(self) -> Iterator[Refused]:
        explainer = Explainer(self._rounds.placement, self._rounds.seed, self._rounds.now_s)
        gangs = waiting_gangs(self._cluster)
        for gang in gangs:
            yield Refused(group=gang, reason=explainer.gang(gang))
        for pod in waiting_pods(self._cluster, gangs):
            yield Refused(pod=pod, reason=explainer.pod(pod))
        for key, hold in self._gated.items():
            is_group = isinstance(hold, HeldPod) and hold.group == key
            reason = hold_reason(hold)
            yield Refused(group=key, reason=reason) if is_group else Refused(pod=key, reason=reason)


def hold_reason(hold: Hold) -> Reason:
    if isinstance(hold, HeldPod):
        kept = f"Kept by {hold.queue}: " if hold.queue else ""
        return Reason(hold.code, f"{kept}{hold.message.rstrip('.')}.", hold.help)
    names = ", ".join(hold)
    normally = "the controller that set it normally does" if len(hold) == 1 else "their controllers normally do"
    message = f"Scheduling is blocked due to non-empty scheduling gates: {names}."
    return Reason(Code.GATED, message, f"Remove {names}, as {normally}.")
