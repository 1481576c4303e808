"""Who yields, found the plain way: what the search for victims is held against.

Nothing is tried in place and nothing is skipped for speed: every step builds the whole world anew from who is still
there. What quota there is, and what a share is, it takes from the engine; both have tests of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from build.queues import queues
from shoal.engine.queues.clusterqueue import AdmittedWorkload, ClusterQueue
from shoal.engine.queues.facts import FlavorResource, WorkloadFacts
from shoal.engine.queues.quota_tree import Cohort, CohortNode
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.shares import share_of
from shoal.engine.queues.state import Fact, Queues

Found = dict[str, str]


@dataclass
class PlainSearch:
    """One question on a world given as facts."""

    facts: Sequence[Fact]
    holders: Sequence[WorkloadFacts]
    settings: Settings
    incoming: WorkloadFacts
    """With the admission that it would get."""
    needs: frozenset[FlavorResource]
    stamp_s: float
    gone: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.incoming.admission is not None
        self.mine = self.incoming.admission.cluster_queue
        self.rules = self.world().cluster_queues[self.mine].facts.preemption

    def world(self, *, without: str = "", with_incoming: bool = False) -> Queues:
        there = [facts for facts in self.holders if facts.key not in self.gone and facts.key != without]
        return queues(*self.facts, *there, *([self.incoming] if with_incoming else []), settings=self.settings)

    def usage(self) -> dict[FlavorResource, int]:
        usage: dict[FlavorResource, int] = {}
        assert self.incoming.admission is not None
        for pod_set in self.incoming.admission.pod_sets:
            for resource, amount in pod_set.usage.items():
                usage[pod_set.flavors[resource], resource] = amount
        return usage

    def fits(self, *, borrowing: bool) -> bool:
        queue = self.world().cluster_queues[self.mine]
        return all(
            amount <= max(0, queue.available(fr)) and (borrowing or not queue.borrows_with(fr, amount))
            for fr, amount in self.usage().items()
        )

    def found(self, *, borrowing: bool) -> Found:
        for key in list(self.gone)[-2::-1]:
            reason = self.gone.pop(key)
            if not self.fits(borrowing=borrowing):
                self.gone[key] = reason
        found, self.gone = self.gone, {}
        return found

    def willing(self, held: AdmittedWorkload, policy: str) -> bool:
        mine, other = self.incoming.priority, held.priority
        lower = other < mine
        newer = other == mine and self.stamp_s < held.stamp_s
        allowed = {
            "Any": True,
            "LowerPriority": lower,
            "LowerOrNewerEqualPriority": lower or newer,
            "Never": False,
        }[policy]
        return allowed and bool(self.needs & held.usage.keys())

    def rank(self, held: AdmittedWorkload) -> tuple[object, ...]:
        return (not held.evicted, held.priority, -held.facts.reserved_s, held.facts.uid)

    def owes(self, node: CohortNode) -> bool:
        return any(node.borrows(fr) for fr in self.needs)

    # Classical

    def classical(self) -> Found:
        world = self.world()
        mine = world.cluster_queues[self.mine]
        candidates = sorted(self._candidates(world), key=lambda each: self._order(*each))
        kinds = {kind for _, kind in candidates}
        forbidden = self.rules.borrow == "Never"
        under = all(mine.usage.get(fr, 0) < mine.nominal.get(fr, 0) for fr in self.needs)
        if not kinds - {"own"} or (forbidden and not under):
            attempts = [True]
        elif forbidden and "right" not in kinds:
            attempts = [False, True]
        else:
            attempts = [True, False]
        for borrowing in attempts:
            self.gone = {}
            for held, kind in candidates:
                if (kind == "quota" and borrowing) or (kind != "own" and not self._all_owe(held)):
                    continue
                self.gone[held.key] = {"own": "InClusterQueue", "borrow": "InCohortReclaimWhileBorrowing"}.get(
                    kind, "InCohortReclamation"
                )
                if self.fits(borrowing=borrowing):
                    return self.found(borrowing=borrowing)
        return {}

    def _order(self, held: AdmittedWorkload, kind: str) -> tuple[object, ...]:
        return (not held.evicted, {"right": 0, "own": 2}.get(kind, 1), *self.rank(held))

    def _candidates(self, world: Queues) -> Iterator[tuple[AdmittedWorkload, str]]:
        mine = world.cluster_queues[self.mine]
        for held in world.held.values():
            if held.queue is mine:
                if self.willing(held, self.rules.within):
                    yield held, "own"
            elif held.queue.root is mine.root and self.willing(held, self.rules.reclaim) and self._all_owe(held, world):
                yield held, self._kind(mine, held)

    def _kind(self, mine: ClusterQueue, held: AdmittedWorkload) -> str:
        left = self.usage()
        for node in [mine, *mine.path_up()]:
            if held.queue in _leaves(node):
                break
            if not any(node.borrows_with(fr, amount) for fr, amount in left.items()):
                return "right"
            left = {fr: max(0, amount - node.local_capacity(fr)) for fr, amount in left.items()}
        threshold = self.rules.borrow_threshold
        below = held.priority < self.incoming.priority and (threshold is None or held.priority <= threshold)
        return "borrow" if self.rules.borrow != "Never" and below else "quota"

    def _all_owe(self, held: AdmittedWorkload, world: Queues | None = None) -> bool:
        """The candidate's queue and every cohort below the common one use more than is theirs."""
        world = world or self.world()
        mine = world.cluster_queues[self.mine]
        above = set(mine.path_up())
        queue = world.cluster_queues[held.queue.name]
        return self.owes(queue) and all(self.owes(cohort) for cohort in queue.path_up() if cohort not in above)

    # Fair

    def fair(self) -> Found:
        world = self.world()
        mine = world.cluster_queues[self.mine]
        candidates = [
            held
            for held in world.held.values()
            if (held.queue is mine and self.willing(held, self.rules.within))
            or (
                held.queue is not mine
                and held.queue.root is mine.root
                and self.owes(held.queue)
                and self.willing(held, self.rules.reclaim)
            )
        ]
        candidates.sort(key=lambda held: (not held.evicted, held.queue is mine, *self.rank(held)))
        entitled = not self.owes(self.world(with_incoming=True).cluster_queues[self.mine])
        first = {
            "LessThanOrEqualToFinalShare": lambda new, _old, rest: new <= rest,
            "LessThanInitialShare": lambda new, old, _rest: new < old,
        }[self.settings.fair_strategies[0]]
        refused: list[AdmittedWorkload] = []
        if self._first_round(candidates, first, refused, entitled=entitled):
            return self.found(borrowing=True)
        if len(self.settings.fair_strategies) > 1 and self._second_round(refused):
            return self.found(borrowing=True)
        self.gone = {}
        return {}

    def _first_round(
        self,
        left: list[AdmittedWorkload],
        strategy: Callable[..., bool],
        refused: list[AdmittedWorkload],
        *,
        entitled: bool,
    ) -> bool:
        while (name := self._next(left)) is not None:
            for held in [each for each in left if each.queue.name == name]:
                left.remove(held)
                if name == self.mine:
                    reason = "InClusterQueue"
                elif entitled:
                    reason = "InCohortReclamation"
                elif strategy(*self._shares(held)):
                    reason = "InCohortFairSharing"
                else:
                    refused.append(held)
                    continue
                self.gone[held.key] = reason
                if self.fits(borrowing=True):
                    return True
                break
        return False

    def _second_round(self, left: list[AdmittedWorkload]) -> bool:
        while (name := self._next(left)) is not None:
            held = next(each for each in left if each.queue.name == name)
            left = [each for each in left if each.queue.name != name]
            new, old, _ = self._shares(held)
            if new < old:
                self.gone[held.key] = "InCohortFairSharing"
                if self.fits(borrowing=True):
                    return True
        return False

    def _shares(self, held: AdmittedWorkload) -> tuple[tuple[bool, float], tuple[bool, float], tuple[bool, float]]:
        def sides(world: Queues) -> tuple[CohortNode, CohortNode]:
            mine, theirs = ([queue, *queue.path_up()] for queue in map(world.cluster_queues.__getitem__, names))
            common = next(node for node in mine if node in theirs)
            return mine[mine.index(common) - 1], theirs[theirs.index(common) - 1]

        names = [self.mine, held.queue.name]
        side, other = sides(self.world(with_incoming=True))
        _, rest = sides(self.world(without=held.key, with_incoming=True))
        return share_of(side).key, share_of(other).key, share_of(rest).key

    def _next(self, left: list[AdmittedWorkload]) -> str | None:
        """Down the tree to the child with the highest share that leads to a candidate."""
        world = self.world(with_incoming=True)
        mine = world.cluster_queues[self.mine]
        names = [held.queue.name for held in left]

        def down(node: CohortNode) -> str | None:
            if not isinstance(node, Cohort):
                return node.name if node.name in names else None
            taking_part = [
                child for child in node.children if share_of(child).key > (False, 0.0) or mine in _leaves(child)
            ]
            found = [(child, name) for child in taking_part if (name := down(child)) is not None]
            if not found:
                return None
            return max(
                found,
                key=lambda each: (share_of(each[0]).key, isinstance(each[0], Cohort), -names.index(each[1])),
            )[1]

        return down(mine.root)


def _leaves(node: CohortNode) -> list[CohortNode]:
    if not isinstance(node, Cohort):
        return [node]
    return [leaf for child in node.children for leaf in _leaves(child)]
