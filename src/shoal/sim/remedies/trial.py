"""Tries changes on the facts: the engine's own step places all waiting pods in their order, and then the subject runs
or does not.

Guarantees: the facts are afterwards what they were. Pods before the subject in the order take freed capacity first, and
pods that a controller creates again wait again, so a change that only helps others does not count as a remedy.

Rejected: reading changed manifests anew for each trial. On a large cluster each would cost a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from msgspec import structs

from shoal.api.pod import Pod
from shoal.engine.asks import Ask
from shoal.engine.cluster import Cluster
from shoal.engine.cycle_state import CycleState
from shoal.engine.events import GroupSeen, NodeFacts, NodeSeen, PodArrived, PodGone
from shoal.engine.fitter import Fitter
from shoal.engine.from_api import ask_of_pod
from shoal.engine.gangs.attempt import is_running
from shoal.engine.groups import GroupFacts
from shoal.engine.ledger import Ledger
from shoal.engine.pending import new_waiting
from shoal.engine.pods import Waiting
from shoal.engine.steps.allocate import allocate
from shoal.sim.remedies.candidates import WaitingSubject
from shoal.sim.rounds import Rounds

GoOn = Callable[[], bool]
MOST_TRIALS = 96
_MOST_PODS = 1_000
_HYPOTHETICAL = ".hypothetical"
"""No namespace has this name."""
_LAST = 1 << 60
"""The turn of a pod that is created again."""


class RemedyTrial:
    """The facts after the last round, and changes of them that are taken back."""

    def __init__(self, rounds: Rounds, nodes: Mapping[str, NodeFacts], go_on: GoOn = lambda: True) -> None:
        self._rounds = rounds
        self.cluster: Cluster = rounds.cluster
        self.nodes = dict(nodes)
        """As they are in the open trial."""
        self._go_on = go_on
        self.left = MOST_TRIALS
        self.placed: list[str] = []
        """Pods that the last trial placed."""
        self.takers: tuple[str, ...] = ()
        """The nodes on which the last trial had pods of the subject."""
        self.ended: set[str] = set()
        """Pods that the open trial has ended."""
        self.tolerates_more = False
        """Whether the open trial has added tolerations to the subject."""
        self.is_short = False
        """The search was ended before everything was tried."""

    def fitter(self) -> Fitter:
        """For questions within the open trial."""
        self._rounds.placement.renew()
        return Fitter(self._rounds.placement, Ledger(self.cluster), self._rounds.seed)

    @property
    def now_s(self) -> float:
        return self._rounds.now_s

    def runs(self, subject: WaitingSubject) -> bool:
        """Whether the subject runs after the waiting pods were placed in their order."""
        if self.left <= 0 or not self._go_on():
            self.is_short = True
            return False
        self.left -= 1
        fitter = self.fitter()
        mark = fitter.ledger.mark()
        try:
            allocate(CycleState(self.cluster, self._rounds.placement, fitter.ledger, fitter, self._rounds.now_s))
            self.placed = fitter.ledger.placed_since(mark)
            rows = {self.cluster.pods[pod].row: None for pod in subject.pods if pod in self.cluster.pods}
            self.takers = tuple(self.cluster.names[row] for row in rows)
            gang = self.cluster.gangs.find(subject.name) if subject.is_gang else None
            if gang is not None and not subject.is_whole:
                return is_running(self.cluster, gang)
            return all(pod in self.cluster.pods and pod not in self.cluster.nominated for pod in subject.pods)
        finally:
            fitter.ledger.rollback(mark)

    # -- changes: each is taken back when the stack is closed ------------------------------------------------------

    def change_node(self, stack: ExitStack, name: str, change: Callable[[NodeFacts], NodeFacts]) -> None:
        before = self.nodes[name]
        stack.callback(self._put, before)
        self._put(change(before))

    def change_asks(
        self, stack: ExitStack, pods: Iterable[str], change: Callable[[Ask], Ask], *, are_new: bool = False
    ) -> None:
        """`are_new`: the pods have to be created again for it, and are then last in line."""
        pending = self.cluster.pending
        for pod in list(pods):
            before = pending.remove(pod)
            if before is None:
                continue
            stack.callback(self._restore, pod, before)
            charge = self.cluster.charge(change(before.charge.ask))
            turn = _LAST if are_new else before.turn
            pending.restore(pod, structs.replace(before, charge=charge, turn=turn))

    def requeue_gang(self, stack: ExitStack, name: str) -> None:
        """Its pods have to be created again, and it is then last in line."""
        gang = self.cluster.gangs[name]
        stack.callback(setattr, gang, "turn", gang.turn)
        gang.turn = _LAST

    def regroup(self, stack: ExitStack, pods: Iterable[str], gang: str) -> None:
        """The waiting pods name another gang. They have to be created again for it, and are then last in line."""
        pending = self.cluster.pending
        for pod in list(pods):
            before = pending.remove(pod)
            if before is not None:
                stack.callback(self._restore, pod, before)
                who = structs.replace(before.who, group=gang)
                pending.restore(pod, structs.replace(before, who=who, turn=_LAST))

    def change_gang(self, stack: ExitStack, name: str, change: Callable[[GroupFacts], GroupFacts]) -> None:
        facts = self.cluster.gangs[name].facts
        if facts is not None:
            stack.callback(self._rounds.apply, GroupSeen(facts))
            self._rounds.apply(GroupSeen(change(facts)))

    def end_pods(self, stack: ExitStack, pods: Collection[str]) -> None:
        """Those that their controllers create again wait at the end of the line."""
        cluster = self.cluster
        ledger = Ledger(cluster)
        stack.callback(ledger.rollback)
        stack.callback(setattr, self, "ended", self.ended)
        self.ended = {*self.ended, *pods}
        for pod in pods:
            allocation = cluster.pods[pod]
            ledger.evict(pod)
            if allocation.who.returns:
                again = new_waiting(allocation.charge, allocation.priority, _LAST, who=allocation.who)
                cluster.pending.restore(pod, again)

    @contextmanager
    def applied(self, *changes: Callable[[ExitStack], None]) -> Iterator[None]:
        with ExitStack() as stack:
            for change in changes:
                change(stack)
            yield

    def _put(self, node: NodeFacts) -> None:
        self.nodes[node.name] = node
        self._rounds.apply(NodeSeen(node))

    def _restore(self, pod: str, before: Waiting) -> None:
        self.cluster.pending.remove(pod)
        self.cluster.pending.restore(pod, before)


def fits_beside(rounds: Rounds, pod: Pod, count: int, go_on: GoOn) -> bool:
    """Whether so many pods like one would run beside all others. False for more pods than are tried. Nothing is left of
    the trial."""
    if count > _MOST_PODS:
        return False
    ask = ask_of_pod(pod)
    keys = tuple(f"{_HYPOTHETICAL}/{at}" for at in range(count))
    try:
        for key in keys:
            rounds.apply(PodArrived(key, ask))
        return RemedyTrial(rounds, {}, go_on).runs(WaitingSubject(keys[0], keys, is_whole=True))
    finally:
        for key in keys:
            rounds.apply(PodGone(key))
