"""Stores the last seen version of all pods, and determines what changed.

Guarantees: a change of status that concerns no decision causes no cycle; a pod that is recreated under its name is
first reported as gone; a waiting pod that cannot be read is held back from the engine, and the reason is reported on
it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec
from msgspec import structs

from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import PODS
from shoal.engine.asks import Ask
from shoal.engine.device_notation import devices_fault
from shoal.engine.events import NodeRefused, PodArrived, PodBound, PodGone
from shoal.engine.pod_identity import PodIdentity
from shoal.store.object_faults import INVALID_ANNOTATION, UNREADABLE, ObjectFault, ObjectFaults, message_of
from shoal.store.watched.held_positions import HeldPositions
from shoal.store.watched.parts import Devices
from shoal.store.watched.pod_annotations import words_on
from shoal.store.watched.pod_asks import PodAsks
from shoal.store.watched.pod_changes import status_change
from shoal.store.watched.pod_heads import PodHead, head_of
from shoal.store.watched.pod_states import PodState, state_of
from shoal.store.watched.pod_views import PodView
from shoal.store.watched.tolerant_reading import read_each
from shoal.units.errors import UserError


class Pods:
    def __init__(
        self,
        pods: Informer,
        asks: PodAsks,
        schedulers: frozenset[str],
        troubles: ObjectFaults,
        stir: Callable[[], None],
        devices: Devices | None = None,
    ) -> None:
        self._held = HeldPositions(devices)
        self._informer = pods
        self._asks = asks
        self._schedulers = schedulers
        self._troubles = troubles
        self._stir = stir
        self._states: dict[str, PodState] = {}
        self._dirty: dict[str, None] = {}
        self._unread: dict[str, None] = {}
        self._gone: dict[str, None] = {}
        self._unheard: dict[str, None] = {}
        """Pods on nodes that were not reported to the engine yet."""
        self._others: set[str] = set()
        """Pods of other schedulers that ask for GPUs."""

    def follow(self) -> None:
        self._informer.on_change(self._changed)

    def __iter__(self) -> Iterator[tuple[str, PodState]]:
        return iter(self._states.items())

    def get(self, key: str) -> PodState | None:
        return self._states.get(key)

    def item(self, key: str) -> Item | None:
        namespace, _, name = key.partition("/")
        return self._informer.get(namespace, name)

    # -- event handlers
    # ----------------------------------------------------------------------------------------------------

    def _changed(self, before: Item | None, after: Item | None) -> None:
        if after is None:
            if before is not None:
                self._drop(f"{before.namespace}/{before.name}")
            return
        key = f"{after.namespace}/{after.name}"
        try:
            state = self._states.get(key)
            change = status_change(before, after) if state is not None and before is not None else None
            if state is None or change is None or not state.knows(change.status):
                self._read(key, after, head_of(after))
            elif state.note(change):
                if state.is_finished:
                    self._others.discard(key)
                self._touch(key)
        except msgspec.DecodeError as error:
            self._drop(key)
            self._troubles.put(ObjectFault(PODS, key, after.uid, UNREADABLE, f"cannot be read: {error}"))
        except Exception:
            # It may run, and use capacity: no decision is made before it has been read again.
            self._unread[key] = None
            self._stir()
            raise

    def _drop(self, key: str) -> None:
        state = self._states.pop(key, None)
        self._unheard.pop(key, None)
        self._others.discard(key)
        self._troubles.settle(PODS, key)
        if state is not None:
            self._let_go(key, state)
            if state.reported is not None:
                self._gone[key] = None
            self._touch(key)

    def _let_go(self, key: str, state: PodState) -> None:
        """Forget its devices."""
        if state.positions:
            self._held.release(key, state.node, state.positions)
            state.positions = ()

    def _touch(self, key: str) -> None:
        self._dirty[key] = None
        self._stir()

    def read_again(self, keys: Iterable[str]) -> None:
        """Read the pods again whose dependencies changed, and those that could not be read before."""
        unread, self._unread = self._unread, {}
        self._unread.update(read_each("pod", unread | dict.fromkeys(keys), lambda key: self._read_now(key, unread)))

    def _read_now(self, key: str, unread: Collection[str]) -> None:
        item = self.item(key)
        if item is not None and (key in self._states or key in unread):
            self._read(key, item, head_of(item))

    def name_again(self, nodes: Collection[str]) -> None:
        """The device ids of these nodes changed."""
        for key, state in self._states.items():
            if state.node in nodes and isinstance(state.reported, PodBound) and (item := self.item(key)) is not None:
                words = words_on(head_of(item))
                if HeldPositions.has_any(words):
                    state.names_devices = words
                    self._dirty[key] = None

    def _read(self, key: str, item: Item, head: PodHead) -> None:
        spec = head.spec
        before = self._states.get(key)
        if before is not None and before.node != spec.node_name:
            self._let_go(key, before)
        state = state_of(item, head, before)
        is_ours = state.scheduler in self._schedulers
        try:
            rank = self._asks.rank(spec)
            state.priority = rank.value
            state.who = self._asks.who(item, head, rank)
            if before is not None and state.node and before.asks_on(spec):
                state.ask = before.ask
            elif is_ours or state.node:
                ask = self._asks.ask(item, head, is_ours=is_ours)
                if isinstance(ask, str):
                    state.waits_for = ask
                else:
                    state.ask = ask
        except UserError as error:
            state.fault = message_of(error)
            self._troubles.put(ObjectFault(PODS, key, item.uid, UNREADABLE, state.fault))
            if state.node:
                # It runs in spite of the fault, and uses capacity.
                state.ask = self._asks.bare(item)
        else:
            fault = devices_fault(head.metadata.annotations)
            if fault is not None:
                self._troubles.put(ObjectFault(PODS, key, item.uid, INVALID_ANNOTATION, message_of(fault)))
            else:
                self._troubles.settle(PODS, key)
        self._states[key] = state
        if not is_ours and not state.is_finished and spec.asks_gpus:
            self._others.add(key)
        else:
            self._others.discard(key)
        if state.node and not (isinstance(state.reported, PodBound) and state.reported.node == state.node):
            self._unheard[key] = None
        if is_ours or state.node or state.reported is not None or key in self._others:
            self._touch(key)
        else:
            # A pod of another scheduler, which causes no cycle.
            self._dirty[key] = None

    # -- reporting ----------------------------------------------------------------------------------------------------

    @property
    def is_quiet(self) -> bool:
        return not (self._dirty or self._unread)

    def touch(self, key: str) -> None:
        """Another object that its event depends on has changed."""
        self._dirty[key] = None

    def report_again(self, key: str) -> None:
        state = self._states.get(key)
        if state is None:
            self._gone[key] = None
        else:
            state.reported = None
        self._dirty[key] = None

    def take_dirty(self) -> list[str]:
        """Pods that were created, deleted or changed since the last call."""
        dirty, self._dirty = self._dirty, {}
        return list(dirty)

    @property
    def others_place_gpus(self) -> bool:
        """Whether there are pods of other schedulers that ask for GPUs, waiting or on a node."""
        return bool(self._others)

    def unheard(self, node: str) -> list[tuple[str, Ask]]:
        """Pods that were seen on the node but are not reported yet, with their asks."""
        if not self._unheard:
            return []
        states = ((key, self._states[key]) for key in self._unheard)
        return [
            (key, state.ask)
            for key, state in states
            if state.node == node and not state.is_finished and state.ask is not None
        ]

    def take_gone(self) -> list[PodGone]:
        gone, self._gone = self._gone, {}
        return [PodGone(key) for key in gone]

    def refusal(self, key: str, at_s: float) -> NodeRefused | None:
        """The event that the node's kubelet rejected a pod that Shoal bound, if the end of the pod is not reported
        yet.
        """
        state = self._states.get(key)
        if state is None or state.ask is None or not (state.has_waited and state.reported is not None):
            return None
        if state.lacked is None or state.scheduler not in self._schedulers:
            return None
        owner = "/".join(state.owner) if state.owner is not None else state.who.group or key
        return NodeRefused(state.node, state.ask, state.lacked, owner, at_s)

    def news(self, key: str, who: PodIdentity) -> PodArrived | PodBound | PodGone | None:
        """The event to report; it counts as reported afterwards."""
        state = self._states.get(key)
        if state is None:
            return None
        event = self._event(key, state, who)
        self._unheard.pop(key, None)
        reported = state.reported
        if event == reported:
            return None
        state.reported = event
        state.has_waited |= isinstance(event, PodArrived)
        if event is None:
            self._let_go(key, state)
            return PodGone(key)
        if isinstance(event, PodBound) and isinstance(reported, PodBound) and event.positions != reported.positions:
            return structs.replace(event, anew=True)
        return event

    def _event(self, key: str, state: PodState, who: PodIdentity) -> PodArrived | PodBound | None:
        if state.is_finished or state.ask is None:
            return None
        if state.node:
            if state.names_devices is not None:
                state.positions = self._held.positions(key, state.node, state.names_devices, state.positions)
                state.names_devices = None
            return PodBound(
                key,
                state.ask,
                state.node,
                priority=state.priority,
                daemon_set=state.daemon_set,
                who=who,
                terminating=state.is_terminating,
                positions=state.positions,
            )
        if state.is_terminating or state.held or state.scheduler not in self._schedulers:
            return None
        return PodArrived(key, state.ask, state.priority, state.daemon_set, who, state.nominated)

    def view(self, key: str) -> PodView | None:
        state, item = self._states.get(key), self.item(key)
        if state is None or item is None:
            return None
        return state.view(key, item, is_ours=state.scheduler in self._schedulers)
