"""Lists the actions of Volcano by name; adding one takes a file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.engine.queues.disciplines.volcano.actions.allocate import allocate
from shoal.engine.queues.disciplines.volcano.actions.backfill import backfill
from shoal.engine.queues.disciplines.volcano.actions.enqueue import enqueue
from shoal.engine.queues.disciplines.volcano.actions.gang_evictions import gangpreempt, gangreclaim
from shoal.engine.queues.disciplines.volcano.actions.preempt import preempt
from shoal.engine.queues.disciplines.volcano.actions.reclaim import reclaim
from shoal.engine.queues.disciplines.volcano.actions.shuffle import shuffle
from shoal.engine.queues.disciplines.volcano.session import Session

ACTIONS: Mapping[str, Callable[[Session], None]] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "preempt": preempt,
    "reclaim": reclaim,
    "backfill": backfill,
    "shuffle": shuffle,
    "gangpreempt": gangpreempt,
    "gangreclaim": gangreclaim,
}
