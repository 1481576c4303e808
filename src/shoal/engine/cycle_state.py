"""Defines the state that the steps of a scheduling cycle share: the facts, the open trial and the decisions so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from shoal.engine.cluster import Cluster
from shoal.engine.fitter import Fitter
from shoal.engine.ledger import Ledger
from shoal.engine.placement import Placement
from shoal.engine.plan import Intention, Nominate, Place
from shoal.engine.reasons import Code


@dataclass(slots=True)
class CycleState:
    """The input and the decisions of one scheduling cycle."""

    cluster: Cluster
    placement: Placement
    ledger: Ledger
    fitter: Fitter
    now_s: float
    intentions: list[Intention] = field(default_factory=list)
    why: dict[str, Code] = field(default_factory=dict)
    """Gang -> why it was not placed, as found last."""
    most: int | None = None
    """So many pods are placed or newly nominated at most; a gang that goes beyond is placed whole."""
    renewed: frozenset[str] = frozenset()
    """Pods whose nominations of earlier cycles were withdrawn in this one, to be decided again."""
    made_again: int = 0
    """How many of these were made again."""
    kept: frozenset[str] = frozenset()
    """Gangs that a queue discipline decides about in this cycle: no later step tries them."""
    is_cut: bool = False
    """It was ended by that, with some not yet tried."""

    def keep(self, gangs: frozenset[str]) -> None:
        """A queue discipline decides about these in this cycle."""
        self.kept = self.kept | gangs if self.kept else gangs

    def is_full(self) -> bool:
        """Whether as many were placed as may be; then the cycle is cut. A nomination that is only made again does not
        count: cycles that renew all nominations and get no further would follow each other for ever."""
        if self.most is not None and len(self.intentions) - self.made_again >= self.most:
            self.is_cut = True
        return self.is_cut

    def place(self, pods: list[str]) -> None:
        """The pods that the ledger has placed are to be bound."""
        allocations, names = self.cluster.pods, self.cluster.names
        for pod in pods:
            allocation = allocations[pod]
            self.intentions.append(Place(pod, names[allocation.row], allocation.grant))

    def nomination(self, attempt: Callable[[], bool], gone: list[str]) -> bool:
        """Try as if some pods had terminated; pods that fit then are nominated, and nothing else changes."""
        ledger, cluster = self.ledger, self.cluster
        mark = ledger.mark()
        for pod in gone:
            ledger.evict(pod)
        after = ledger.mark()
        if not attempt():
            ledger.rollback(mark)
            return False
        destinations = [(pod, cluster.pods[pod].row, cluster.pods[pod].grant) for pod in ledger.placed_since(after)]
        ledger.rollback(mark)
        for pod, row, grant in destinations:
            ledger.place(pod, row, grant, nominated=True)
            self.intentions.append(Nominate(pod, cluster.names[row], grant))
            self.made_again += pod in self.renewed
        return True


Step = Callable[[CycleState], None]
