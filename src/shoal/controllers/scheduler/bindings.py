"""Binds pods to the nodes that were decided: prepares claims and volumes, then writes one Binding.

A failed write is retried for some seconds on the same node, because the facts count the pod there and it may belong to
a gang. Only then, or when the server refuses, is the decision undone. If the result of a write is unknown, the server
is asked, and the pod stays assumed until it answers.

A node that another scheduler uses may lose free capacity between the decision and the write, so the capacity is checked
again right before the binding.

Guarantees: a decision is not undone while its binding may still be written, and no pod is bound to capacity that was
lost while its claims were prepared; there is one attempt per pod at a time; after any error the decision is undone. A
result for a pod that was recreated under the same name, or decided again meanwhile, is ignored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from weakref import WeakValueDictionary

from shoal.client.context import Context
from shoal.client.item import Obj
from shoal.client.kind import PODS
from shoal.client.port import Select
from shoal.controllers.scheduler.outcomes import Outcomes
from shoal.controllers.scheduler.pod_conditions import PodConditionWriter
from shoal.controllers.scheduler.pod_protocols import PodViews, Writer
from shoal.controllers.scheduler.pod_state import ServerPodState, state_of
from shoal.controllers.scheduler.rendezvous import Rendezvous
from shoal.controllers.scheduler.write_pool import WritePool
from shoal.controllers.scheduling_loop.protocols import SchedulerState
from shoal.engine.device_demand import SLICES
from shoal.engine.events import PodRejected
from shoal.engine.overcommitment import is_overcommitted
from shoal.engine.plan import Place
from shoal.store.watched.pod_views import PodView
from shoal.units.errors import BugError, ConflictError, ShoalError, TemporaryError

_log = logging.getLogger("shoal.scheduler")
_MOUNTS = (b'"persistentVolumeClaim"', b'"ephemeral"')
_TRIES = 6
_SHORTEST_S, _LONGEST_S, _SELDOM_S = 0.1, 3.0, 60.0


class _Try:
    """One attempt to bind a pod."""

    __slots__ = ("before", "is_off", "is_over", "over", "pause", "place", "view")

    def __init__(self, place: Place, view: PodView, before: _Try | None) -> None:
        self.place = place
        self.view = view
        self.before = before
        """The earlier attempt for the same pod, which must end first."""
        self.is_off = self.is_over = False
        self.over: asyncio.Event | None = None
        """Created by the first task that waits for it."""
        self.pause: asyncio.Event | None = None
        """Set while the attempt only waits for a delay."""

    def call_off(self) -> None:
        self.is_off = True
        if self.pause is not None:
            self.pause.set()

    def end(self) -> None:
        self.is_over = True
        if self.over is not None:
            self.over.set()

    async def ended(self) -> None:
        if not self.is_over:
            self.over = self.over or asyncio.Event()
            await self.over.wait()


class Bindings:
    def __init__(
        self,
        context: Context,
        scheduling: SchedulerState,
        watched: PodViews,
        pool: WritePool,
        outcomes: Outcomes,
        writer: Writer | None,
    ) -> None:
        self._context = context
        self._scheduling = scheduling
        self._watched = watched
        self._pool = pool
        self._outcomes = outcomes
        self._writer = writer
        self._pods = context.informers.of(PODS)
        self._reporter = PodConditionWriter(context)
        self._rendezvous = Rendezvous(context, scheduling)
        self._nodes: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Locks of the nodes to which pods are being bound and which other schedulers use as well."""
        self._under_way: dict[str, _Try] = {}
        """The latest attempt for each pod."""

    def take(self, place: Place) -> None:
        view = self._watched.view(place.pod)
        if view is None:
            # The pod was deleted during the cycle; the next cycle gets that event.
            return
        before = self._under_way.get(place.pod)
        if before is not None:
            before.call_off()
        one = self._under_way[place.pod] = _Try(place, view, before)
        self._pool.add(partial(self._in_turn, one, partial(self._try, one)))

    def refused(self, key: str) -> None:
        """The pod was refused by a cycle. Claims may still be allocated for it by an attempt that did not end in a
        binding, and may exclude suitable nodes: they are deallocated before anything else is prepared for the pod.
        """
        view = self._watched.view(key)
        if self._writer is None or view is None or view.event is None or view.node:
            return
        if any(claim.shared for claim in view.event.ask.claims):
            one = self._under_way[key] = _Try(Place(key, "", None), view, self._under_way.get(key))
            self._pool.add(partial(self._in_turn, one, partial(self._free, self._writer, one)))

    def is_under_way(self, key: str) -> bool:
        """Whether a write that binds the pod may still follow."""
        return key in self._under_way

    async def called_off(self, key: str) -> None:
        """Cancel the binding; returns when no write that binds the pod can follow."""
        one = self._under_way.get(key)
        if one is not None:
            one.call_off()
            await one.ended()

    async def _in_turn(self, one: _Try, do: Callable[[], Awaitable[None]]) -> None:
        try:
            if one.before is not None:
                with self._pool.aside():
                    await one.before.ended()
                one.before = None
            await do()
        finally:
            if self._under_way.get(one.place.pod) is one:
                del self._under_way[one.place.pod]
            one.end()

    async def _try(self, one: _Try) -> None:
        place, view, tries = one.place, one.view, 0
        while self._is_wanted(one):
            tries += 1
            try:
                if await self._write(one):
                    self._outcomes.forget(place.pod)
                    self._reporter.bound(view, place.node)
                    return
            except Exception as broke:  # noqa: BLE001 - the pod stays assumed until an outcome is reported
                error = _typed(broke, place)
                if await state_of(self._context, view) is not ServerPodState.PENDING:
                    return
                if not isinstance(error, TemporaryError) or tries == _TRIES:
                    await self._give_back(one, error)
                    return
                wait_s = max(error.delay_s, min(_SHORTEST_S * (1 << (tries - 1)), _LONGEST_S))
                await self._pause(one, wait_s)

    async def _free(self, writer: Writer, one: _Try) -> None:
        key, tries = one.place.pod, 0
        while not one.is_off and key in self._scheduling.cluster.pending:
            try:
                await writer.free(one.view)
            except ConflictError:
                # Another client has changed it: read it again.
                await self._pause(one, _SHORTEST_S)
            except ShoalError as error:
                _log.info("what is allocated for pod %s is not taken back: %s", key, error)
                await self._pause(one, min(_SHORTEST_S * (1 << tries), _SELDOM_S))
                tries += 1
            else:
                return

    async def _pause(self, one: _Try, wait_s: float) -> None:
        """Wait; ends early when the attempt is cancelled."""
        if one.is_off:
            return
        one.pause = asyncio.Event()
        timer = self._context.clock.call_later(wait_s, one.pause.set)
        try:
            with self._pool.aside():
                await one.pause.wait()
        finally:
            timer.cancel()
            one.pause = None

    def _is_wanted(self, one: _Try) -> bool:
        """Whether the facts still have the pod on that node because of this decision."""
        cluster, place = self._scheduling.cluster, one.place
        allocation = cluster.pods.get(place.pod)
        if (
            allocation is None
            or allocation.is_bound
            or allocation.is_nominated
            or cluster.names[allocation.row] != place.node
        ):
            return False
        return self._under_way.get(place.pod) is one and not one.is_off

    def _lost_its_capacity(self, place: Place) -> bool:
        """Whether another scheduler used capacity of the node after the decision, so that the kubelet would reject the
        pod.
        """
        cluster = self._scheduling.cluster
        allocation = cluster.pods[place.pod]
        seen = self._watched.unheard(place.node)
        unheard = [ask for key, ask in seen if key not in cluster.pods or cluster.pods[key].row != allocation.row]
        return is_overcommitted(cluster, allocation, unheard)

    async def _look_at(self, node: str) -> None:
        """Read the pods of the node from the server: another scheduler may just have bound a pod there, and watches are
        slow under load.
        """
        for item in (await self._context.api.list(PODS, select=Select(fields=f"spec.nodeName={node}"))).items:
            self._pods.learn(item)

    async def _write(self, one: _Try) -> bool:
        """Returns whether the pod is bound; it is not if its place was lost during the preparation."""
        place, view = one.place, one.view
        annotations: dict[str, str] = {}
        if self._writer is not None:
            with self._pool.aside() if self._may_wait(place, view) else nullcontext():
                annotations |= await self._writer.prepare(view, place, partial(self._is_wanted, one))
            if not self._is_wanted(one):
                return False
        annotations |= self._rendezvous.facts(place, view)
        meta: Obj = {"name": view.name, "namespace": view.namespace, "uid": view.uid}
        if annotations:
            meta["annotations"] = annotations
        if place.grant is None or not self._watched.others_place_gpus:
            return await self._bind(one, meta)
        # Bind one pod at a time on a node, each after a read of the node: another scheduler can win a race against one
        # pod at most.
        lock = self._nodes.setdefault(place.node, asyncio.Lock())
        with self._pool.aside():
            await lock.acquire()
        try:
            await self._look_at(place.node)
            return self._is_wanted(one) and await self._bind(one, meta)
        finally:
            lock.release()

    async def _bind(self, one: _Try, meta: Obj) -> bool:
        place, view = one.place, one.view
        if self._lost_its_capacity(place):
            # The check comes right before the binding, with the latest state. The pod is decided again, with the other
            # scheduler's pods.
            self._outcomes.say(PodRejected(place.pod))
            one.call_off()
            return False
        target = {"kind": "Node", "name": place.node}
        body: Obj = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        await self._context.api.post(PODS, view.namespace, view.name, "binding", body)
        return True

    def _may_wait(self, place: Place, view: PodView) -> bool:
        """Whether claims, volumes or MIG instances must be prepared: most pods have none."""
        if place.grant is not None and (place.grant.claims or any(part[1] == SLICES for part in place.grant.parts)):
            return True
        item = self._pods.get(view.namespace, view.name)
        return item is not None and any(word in item.data for word in _MOUNTS)

    async def _give_back(self, one: _Try, error: ShoalError) -> None:
        """Make the pod pending again; a pod that fails repeatedly keeps its capacity for a while, because cycles would
        otherwise repeat without end.
        """
        key, view = one.place.pod, one.view
        if not self._is_wanted(one):
            return
        wait_s = self._outcomes.delay_s(key)
        if wait_s:
            try:
                await self._reporter.failed(view, error)
            except ShoalError as untold:
                _log.info(
                    "the condition of pod %s with the reason of its failed binding (%s) was not written: %s",
                    key,
                    error,
                    untold,
                )
            except Exception:  # noqa: BLE001 - the decision is undone even if the condition cannot be written
                _log.exception("the condition of pod %s could not be written: %s", key, error)
            await self._pause(one, wait_s)
        current = self._watched.view(key)
        if self._is_wanted(one) and current is not None and current.uid == view.uid:
            self._outcomes.say(PodRejected(key))


def _typed(error: Exception, place: Place) -> ShoalError:
    """The error as a ShoalError; an unexpected error is in the log with its traceback."""
    if isinstance(error, ShoalError):
        return error
    _log.error("pod %s could not be bound to %s", place.pod, place.node, exc_info=error)
    return BugError(f"{type(error).__name__}: {error}")
