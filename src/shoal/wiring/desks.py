"""The desks of a brain: each project's queues have their own, and the first to keep a pod keeps it.

Volcano's and KAI's come before Kueue's: what they let go may still wait for a Workload.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shoal.controllers.brain.desks import Desks
from shoal.controllers.queues import presence
from shoal.controllers.queues.presence import Presence
from shoal.wiring.run_choice import KAI, QUEUES, VOLCANO, RunChoice

if TYPE_CHECKING:
    from shoal.controllers.brain.brain import Brain
    from shoal.controllers.queues.desk import QueueDesk
    from shoal.store.live.context import Context
    from shoal.store.live.served import Served
    from shoal.store.watched.queues import WatchedQueues

    Queues = tuple[QueueDesk, WatchedQueues]

ContextOf = Callable[[str], "Context"]
"""By the name of a part."""


def give_desks(
    brain: Brain, context_of: ContextOf, served: Served, choice: RunChoice, kueue: Presence, volcano: Presence | None
) -> Queues | None:
    """Returns Kueue's, for whoever measures it."""
    desks, queues = Desks(brain.intake), None
    if volcano is not None:
        from shoal.controllers.volcano.desk import VolcanoDesk

        context = context_of(VOLCANO)
        desks.add(lambda onward: VolcanoDesk(context, served, brain, volcano, onward))
    if KAI in choice.controllers:
        from shoal.controllers.kai.desk import KaiDesk

        own = context_of(KAI)
        desks.add(lambda onward: KaiDesk(own, served, brain, onward, Presence(own, presence.KAI)))
    if QUEUES in choice.controllers:
        queues = found = _queues(brain, context_of(QUEUES), served, choice, kueue)
        desks.add(lambda _: found[0])
    if {VOLCANO, KAI, QUEUES} & {*choice.controllers}:
        brain.desk = desks
    return queues


def _queues(brain: Brain, context: Context, served: Served, choice: RunChoice, kueue: Presence) -> Queues:
    from shoal.controllers.queues.desk import QueueDesk
    from shoal.store.watched.queues import WatchedQueues

    watched = WatchedQueues(context, served, brain.wake, choice.kueue)
    return QueueDesk(context, watched, brain, kueue), watched
