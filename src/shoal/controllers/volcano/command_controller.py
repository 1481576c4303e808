"""Carries out Volcano's Command objects, which ask for an action on a job or a queue, and deletes each afterwards.

A command is carried out first and deleted then, so that a crash in between loses no command. A command that is carried
out a second time has no effect, except RestartJob, which may then happen twice. Volcano deletes first and may lose a
command.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import field

from shoal.api.wire import ApiStruct
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import VOLCANO_JOBS, VOLCANO_QUEUES
from shoal.client.item import Item, Key, Obj
from shoal.client.loop import Loop
from shoal.client.port import Deletion, Patch
from shoal.client.refusals import NotFoundError
from shoal.controllers.volcano.job import job_of
from shoal.controllers.volcano.job_controller import JobController
from shoal.controllers.volcano.names import COMMANDS, MANAGER, reference
from shoal.controllers.volcano.views import ViewReader, queue_of
from shoal.engine.queues.disciplines.volcano.objects import (
    CLOSED_BY_PARENT,
    ROOT_QUEUE,
    Queue,
    VolcanoMeta,
    VolcanoOwner,
)

_STATES = {"OpenQueue": "Open", "CloseQueue": "Closed"}
_DONE = {"OpenQueue": "Open queue succeed", "CloseQueue": "Close queue succeed"}


class _Command(ApiStruct, frozen=True):
    metadata: VolcanoMeta
    action: str = ""
    target: VolcanoOwner | None = field(default=None)


_command_of = ViewReader(_Command)


class CommandController:
    def __init__(self, context: Context, is_volcano_absent: Callable[[], bool], jobs: JobController) -> None:
        self._context = context
        self._api = context.api
        self._is_volcano_absent = is_volcano_absent
        self._jobs = jobs
        self._events = context.events.named(MANAGER)
        self._commands = context.informers.of(COMMANDS)
        self.loop = Loop(context, self._reconcile)
        self.loop.need(VOLCANO_QUEUES, VOLCANO_JOBS)
        self.loop.follow(COMMANDS)

    def wake(self) -> None:
        for item in self._commands:
            self.loop.wake(item.key)

    async def _reconcile(self, key: Key) -> float | None:
        item = self._commands.get(*key)
        command = _command_of(item) if item is not None and self._is_volcano_absent() else None
        if item is None or command is None or command.target is None:
            return None
        target = command.target
        if target.kind == VOLCANO_QUEUES.name:
            await self._apply_to_queue(target, command.action)
        elif target.kind == VOLCANO_JOBS.name:
            await self._apply_to_job(key[0], target, command.action)
        else:
            return None
        try:
            await self._api.delete(COMMANDS, *key, Deletion(uid=item.uid))
        except NotFoundError:
            return None
        return None

    # -- jobs -------------------------------------------------------------------------------------------------------

    async def _apply_to_job(self, namespace: str, target: VolcanoOwner, action: str) -> None:
        item = self._context.informers.of(VOLCANO_JOBS).get(namespace, target.name)
        job = job_of(item) if item is not None else None
        if item is None or job is None or (target.uid and target.uid != item.uid):
            return
        if await self._jobs.sync_of(item, job).apply_action(action):
            words = f"Start to execute command {action}, and clean it up to make sure executed not more than once."
            self._events.record(reference(VOLCANO_JOBS, item.key, item.uid), "CommandIssued", words)

    # -- queues -----------------------------------------------------------------------------------------------------

    async def _apply_to_queue(self, target: VolcanoOwner, action: str) -> None:
        item = self._context.informers.of(VOLCANO_QUEUES).get("", target.name)
        queue = queue_of(item) if item is not None else None
        state = _STATES.get(action)
        if item is None or queue is None or state is None or (target.uid and target.uid != item.uid):
            return
        regarding = reference(VOLCANO_QUEUES, item.key, item.uid)
        refusal = self._refusal(queue, action)
        if refusal:
            self._events.record(regarding, action, refusal, type_="Warning")
            return
        await self._mark(queue, item)
        if queue.is_open != (state == "Open"):
            body: Obj = {"status": {"state": state, "allocated": {}}}
            await self._api.patch(VOLCANO_QUEUES, "", queue.name, Patch("merge", body), "status")
            self._events.record(regarding, action, _DONE[action])

    async def _mark(self, queue: Queue, item: Item) -> None:
        """A command to a queue overrides the state that the queue inherited from its parent."""
        if queue.was_closed_by_parent:
            body = {"metadata": {"uid": item.uid, "annotations": {CLOSED_BY_PARENT: "false"}}}
            await self._api.patch(VOLCANO_QUEUES, "", queue.name, Patch("merge", body))

    def _refusal(self, queue: Queue, action: str) -> str:
        if action == "CloseQueue":
            return "Close queue failed for root queue can not be closed" if queue.name == ROOT_QUEUE else ""
        item = self._context.informers.of(VOLCANO_QUEUES).get("", queue.parent)
        parent = queue_of(item) if item is not None else None
        if parent is not None and not parent.is_open:
            return f"Open queue failed for parent queue {parent.name} is {parent.status.state}"
        return ""
