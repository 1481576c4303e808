"""The fair-share disciplines of all shards of a cluster, as one discipline.

Each shard has its own queues, jobs, nodes and settings. What a shard has to keep from cycle to cycle is kept when
queues or settings change, and forgotten when its SchedulingShard is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shoal.engine.cycle_state import CycleState, Step
from shoal.engine.gang_members import Gang
from shoal.engine.queues.disciplines.kai.fair_cycle import FairshareCycle
from shoal.engine.queues.disciplines.kai.fair_queues import FairQueue
from shoal.engine.queues.disciplines.kai.fairshare import Fairshare
from shoal.engine.queues.disciplines.kai.shards import Shard, Shards


class ShardedFairshare:
    def __init__(self, queues: Sequence[FairQueue] = (), shards: Shards = Shards()) -> None:  # noqa: B008 - frozen
        self.disciplines: dict[str, Fairshare] = {}
        """By name of the shard."""
        self.queues: tuple[FairQueue, ...] = ()
        self.shards = shards
        self.put(queues, shards)

    def put(self, queues: Sequence[FairQueue], shards: Shards) -> None:
        self.queues, self.shards = tuple(queues), shards
        before, self.disciplines = self.disciplines, {}
        for shard in shards.each:
            found = self.disciplines[shard.name] = before.get(shard.name) or Fairshare()
            found.queues, found.settings = self.queues, shard.settings
            found.actions, found.pool = shard.actions, shard.pool
            found.prefer(shard.preferences)

    # -- the cycle ---------------------------------------------------------------------------------------------------

    def steps(self) -> tuple[Step, ...]:
        return tuple(step for each in self.disciplines.values() for step in each.steps())

    def named_steps(self) -> tuple[tuple[str, Step], ...]:
        """Each with the name of its action."""
        return tuple(step for each in self.disciplines.values() for step in each.named_steps())

    def next_s(self) -> float | None:
        moments = (each.next_s() for each in self.disciplines.values())
        return min((due_s for due_s in moments if due_s is not None), default=None)

    def keep(self, state: CycleState) -> None:
        """Keep all gangs in queues of KAI from the steps of others."""
        for each in self.disciplines.values():
            each.keep(state)

    # -- what the last cycles found ----------------------------------------------------------------------------------

    @property
    def stale_since_s(self) -> dict[str, float]:
        """Gang -> since when it has run below its minimum."""
        return {name: at_s for each in self.disciplines.values() for name, at_s in each.stale_since_s.items()}

    def cycles(self) -> Iterator[tuple[Shard, FairshareCycle]]:
        """The latest cycle of each shard that decided anything."""
        for shard in self.shards.each:
            last = self.disciplines[shard.name].last
            if last is not None:
                yield shard, last

    def cycle_of(self, gang: Gang) -> FairshareCycle | None:
        """The cycle that decided about a gang. About one in a pool without a shard none does: then any of them, for
        what does not depend on it."""
        pool = gang.facts.node_pool if gang.facts is not None else ""
        return self.cycle_in(pool) or next((cycle for _, cycle in self.cycles()), None)

    def cycle_in(self, pool: str) -> FairshareCycle | None:
        """The cycle that decided about a node pool."""
        for shard, cycle in self.cycles():
            if shard.pool is None or shard.pool.value == pool:
                return cycle
        return None

    def cycle_of_queue(self, name: str) -> FairshareCycle | None:
        return next((cycle for _, cycle in self.cycles() if name in cycle.tree.nodes), None)
