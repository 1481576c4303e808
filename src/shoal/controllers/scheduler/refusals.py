"""Writes the condition `PodScheduled=False` of pending pods: after the first cycle without a node, and when the reason
changes.

These writes have the lowest priority, a few dozen a second: they do not delay bindings, and a backlog of ten thousand
pods takes minutes. The message is made when a pod's turn comes, from the facts at that time, so that pods that were
placed meanwhile get none.

The module also reports pods that are held back from the engine (a missing volume) and objects that cannot be read.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable

import msgspec

from shoal.api.checkpoint_annotations import CHECKPOINT_ANNOTATION
from shoal.client.context import Context
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS
from shoal.client.supervise import supervised
from shoal.controllers.scheduler.gang_arrivals import GangArrivals
from shoal.controllers.scheduler.pod_conditions import UNSCHEDULABLE, PodConditionWriter
from shoal.controllers.scheduler.pod_protocols import PodViews
from shoal.controllers.scheduler.refusal_messages import RefusalMessages
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.plan import Refuse, RefuseGroup
from shoal.store.object_faults import ObjectFault
from shoal.units.errors import ShoalError
from shoal.views.live_refusals import held_words

_log = logging.getLogger("shoal.scheduler")
_PAUSE_S = 0.02
"""The pause between two costly steps: a computed message, or a write."""
_AT_ONCE = 200
"""The number of cheap steps before other tasks run."""
_AGAIN_S = 30.0
_HELD_S = 5.0
_AHEAD_S = 60.0
"""The difference of clocks from which a warning is logged."""
_TO_COME = "CheckpointToCome"
_TO_COME_WORDS = (
    f"metadata.annotations[{CHECKPOINT_ANNOTATION}]: is in the future and counts as now; "
    "the clock of its writer or of the scheduler is wrong"
)


class _Turn(msgspec.Struct, frozen=True):
    """A pod that gets a message. `words`: the message if it is known, because the pods of a gang share one."""

    key: str
    is_gang: bool = False
    words: str = ""


class Refusals:
    def __init__(
        self, context: Context, scheduling: SchedulerState, watched: PodViews, waiting_reason: str = UNSCHEDULABLE
    ) -> None:
        self._waiting_reason = waiting_reason
        self._context = context
        self._clock = context.clock
        self._scheduling = scheduling
        self._watched = watched
        self._reporter = PodConditionWriter(context)
        self._words = RefusalMessages(scheduling, watched)
        self._arriving = GangArrivals(
            context.clock, lambda: scheduling.cluster.gangs, lambda name: self.look(name, is_gang=True)
        )
        self._turns: deque[_Turn] = deque()
        self._named: set[str] = set()
        """The keys in `_turns` without a known message."""
        self._reported: dict[str, tuple[str, str]] = {}
        """Pod -> its uid and the message."""
        self._wakeup = asyncio.Event()
        self._looked_at = -1
        self._has_warned = False
        self._ahead: set[str] = set()
        """The uids of pods whose recorded checkpoint time is in the future."""

    def take(self, refused: Refuse | RefuseGroup) -> None:
        if isinstance(refused, Refuse):
            self.look(refused.pod)
        else:
            self.look(refused.group, is_gang=True)

    def look(self, key: str, *, is_gang: bool = False) -> None:
        if key not in self._named:
            self._named.add(key)
            self._turns.append(_Turn(key, is_gang))
            self._wakeup.set()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for name, part in (("waiting pods", self._look_again), ("held pods", self._look_at_held)):
                group.create_task(supervised(self._clock, f"looking again at {name}", part))
            while True:
                self._wakeup.clear()
                await self._tell_all()
                await self._wakeup.wait()

    async def _tell_all(self) -> None:
        free = 0
        while self._turns:
            turn, made = self._turns.popleft(), self._words.made
            try:
                wrote = await self._report(turn)
            except Exception as error:  # noqa: BLE001 - an error for one pod must not affect the others
                self._cannot(turn.key, error)
                wrote = True
            free = 0 if wrote or self._words.made != made else free + 1
            if free == 0 or free > _AT_ONCE:
                free = 0
                await self._clock.sleep(_PAUSE_S)

    async def _report(self, turn: _Turn) -> bool:
        """Returns whether anything was written."""
        if turn.is_gang:
            self._named.discard(turn.key)
            self._tell_gang(turn.key)
            return False
        if turn.words:
            return turn.key in self._scheduling.cluster.pending and await self._say(turn.key, turn.words)
        self._named.discard(turn.key)
        words = self._words.of_pod(turn.key) or self._words.of_promised(turn.key)
        return bool(words) and await self._say(turn.key, words)

    def _tell_gang(self, name: str) -> None:
        gang = self._scheduling.cluster.gangs.find(name)
        if gang is None or not gang.waiting or self._arriving.is_growing(gang):
            return
        words = self._words.of_gang(gang)
        if words:
            self._turns.extend(_Turn(pod, words=words) for pod in gang.waiting)

    async def _say(self, key: str, words: str, reason: str = "") -> bool:
        view = self._watched.view(key)
        if view is None or view.node or self._reported.get(key) == (view.uid, words):
            return False
        self._reported[key] = view.uid, words
        try:
            return await self._reporter.waits(view, words, reason or self._waiting_reason)
        except Exception:
            self._reported.pop(key, None)
            raise

    # -- repetition
    # ------------------------------------------------------------------------------------------------------

    async def _look_again(self) -> None:
        """Compute the messages of pending pods again: an earlier message may be outdated."""
        while True:
            await self._clock.sleep(_AGAIN_S)
            cluster = self._scheduling.cluster
            self._reported = {key: said for key, said in self._reported.items() if self._still_waits(key)}
            if self._turns or cluster.version == self._looked_at:
                continue
            groups: set[str] = set()
            for key in cluster.pending.in_order():
                group = cluster.pending[key].who.group
                if not group:
                    self.look(key)
                elif group not in groups:
                    groups.add(group)
                    self.look(group, is_gang=True)
            # Gangs are tried on the ledger, which increases the version although nothing has changed.
            self._looked_at = cluster.version

    def _still_waits(self, key: str) -> bool:
        view = self._watched.view(key)
        return view is not None and not view.node

    async def _look_at_held(self) -> None:
        while True:
            for trouble in self._watched.take_troubles():
                await self._tried(trouble.key, self._tell_trouble(trouble))
            for key, (reason, words) in list(self._scheduling.held_pods.items()):
                await self._tried(key, self._tell_held_by_queue(key, words, reason))
            before, self._ahead = self._ahead, set()
            latest_s = self._clock.seconds() + _AHEAD_S
            for key, state in self._watched.states():
                if state.waits_for and not (state.fault or state.gates or state.node or state.is_terminating):
                    await self._tried(key, self._tell_held(key))
                elif state.node and state.who.saved_s is not None and state.who.saved_s > latest_s:
                    self._ahead.add(state.uid)
                    if state.uid not in before:
                        await self._tried(
                            key, self._tell_trouble(ObjectFault(PODS, key, state.uid, _TO_COME, _TO_COME_WORDS))
                        )
            await self._clock.sleep(_HELD_S)

    async def _tried(self, key: str, telling: Awaitable[None]) -> None:
        try:
            await telling
        except Exception as error:  # noqa: BLE001 - an error for one pod must not affect the others
            self._cannot(key, error)

    def _cannot(self, key: str, error: Exception) -> None:
        """A refusal of the server is logged in one line; an unexpected error with its traceback."""
        is_ours = not isinstance(error, ShoalError)
        _log.log(logging.ERROR if is_ours else logging.INFO, "%s was not reported: %s", key, error, exc_info=is_ours)

    async def _tell_held(self, key: str) -> None:
        view = self._watched.view(key)
        if view is None or not view.held:
            return
        words = self._words.of_mounting(key) or held_words(view.held, len(self._scheduling.cluster.row_of))
        await self._say(key, words)

    async def _tell_held_by_queue(self, key: str, words: str, reason: str) -> None:
        await self._say(key, words, reason)

    async def _tell_trouble(self, trouble: ObjectFault) -> None:
        """Report a fault on its object: in the condition of a pending pod, for any other object in an Event."""
        view = self._watched.view(trouble.key) if trouble.kind == PODS else None
        if view is not None and view.held:
            await self._say(trouble.key, trouble.message)
            return
        if trouble.kind == NODES and not self._has_warned:
            # Often all nodes have the same fault: the others have their Events.
            self._has_warned = True
            _log.warning("node %s: %s", trouble.key, trouble.message)
        namespace, _, name = trouble.key.rpartition("/")
        meta = {"name": name, "namespace": namespace, "uid": trouble.uid}
        about: Obj = {"kind": trouble.kind.name, "apiVersion": trouble.kind.api_version, "metadata": meta}
        self._context.events.record(about, trouble.reason, trouble.message, type_="Warning")
