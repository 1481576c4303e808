"""Provides the objects with which pods are interpreted: namespaces, priority classes, topologies, and DaemonSets that
need capacity.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.api.disruption import PriorityClass
from shoal.api.partial import LabeledMeta, MetadataOf
from shoal.api.topology import KaiTopology, KueueTopology
from shoal.api.workloads import DaemonSet
from shoal.client.informer import Informer
from shoal.client.informers import Informers
from shoal.client.item import Item
from shoal.client.kind import DAEMON_SETS, NAMESPACES, PRIORITY_CLASSES
from shoal.engine.asks import Ask
from shoal.engine.events import DaemonSetGone, DaemonSetSeen, Event, NamespaceSeen, TopologyGone, TopologySeen
from shoal.engine.from_api import HyperTree, Priorities, Topologies, daemon_set_ask
from shoal.engine.groups import TopologyFacts
from shoal.store.object_faults import UNREADABLE, ObjectFault, ObjectFaults, message_of
from shoal.store.watched.reading import V, value_of
from shoal.store.watched.tolerant_reading import read_each
from shoal.units.errors import UserError


class PodContext:
    def __init__(self, informers: Informers, troubles: ObjectFaults, stir: Callable[[], None]) -> None:
        self._informers = informers
        self._troubles = troubles
        self._stir = stir
        self._kueue: Informer | None = None
        self._kai: Informer | None = None
        self._namespaces: dict[str, dict[str, str]] = {}
        self._spaces: dict[str, None] = {}
        self._daemons: dict[str, Ask] = {}
        self._dirty_daemons: dict[tuple[str, str], None] = {}
        self._classes_are_old = True
        self._topologies_are_old = True
        self._reported: dict[str, TopologyFacts] = {}
        self.topologies = Topologies()

    def follow(self) -> None:
        of = self._informers.of
        of(NAMESPACES).on_change(self._namespace_changed)
        of(PRIORITY_CLASSES).on_change(lambda *_: self._classes_changed())
        of(DAEMON_SETS).on_change(self._daemon_changed)

    def follow_kueue(self, topologies: Informer) -> None:
        self._kueue = topologies
        topologies.on_change(lambda *_: self._topologies_changed())

    def follow_kai(self, topologies: Informer) -> None:
        self._kai = topologies
        topologies.on_change(lambda *_: self._topologies_changed())

    # -- event handlers
    # ----------------------------------------------------------------------------------------------------

    def _namespace_changed(self, before: Item | None, after: Item | None) -> None:
        if after is None and before is not None:
            self._namespaces.pop(before.name, None)
            self._spaces.pop(before.name, None)
        elif after is not None:
            labels = {**after.read(MetadataOf[LabeledMeta]).metadata.labels, "kubernetes.io/metadata.name": after.name}
            if self._namespaces.get(after.name) != labels:
                self._namespaces[after.name] = labels
                self._spaces[after.name] = None
                self._stir()

    def _classes_changed(self) -> None:
        self._classes_are_old = True
        self._stir()

    def _topologies_changed(self) -> None:
        self._topologies_are_old = True
        self._stir()

    def _daemon_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None:
            self._dirty_daemons[item.key] = None
            self._stir()

    # -- reporting ----------------------------------------------------------------------------------------------------

    def new_priorities(self) -> Priorities | None:
        """The current classes, if they have changed since the last call."""
        if not self._classes_are_old:
            return None
        found = Priorities(self._values(self._informers.of(PRIORITY_CLASSES), PriorityClass))
        self._classes_are_old = False
        return found

    def renew_topologies(self, tree: HyperTree, *, is_new_tree: bool) -> list[Event] | None:
        """The current topologies; None if they have not changed."""
        if not (self._topologies_are_old or is_new_tree):
            return None
        kueue = self._values(self._kueue, KueueTopology)
        self.topologies = Topologies(kueue, self._values(self._kai, KaiTopology), tree)
        now = {facts.name: facts for facts in self.topologies.facts()}
        events: list[Event] = [TopologyGone(name) for name in self._reported if name not in now]
        events += [TopologySeen(facts) for name, facts in now.items() if self._reported.get(name) != facts]
        self._reported = now
        self._topologies_are_old = False
        return events

    def namespaces(self) -> list[Event]:
        spaces, self._spaces = self._spaces, {}
        return [NamespaceSeen(name, self._namespaces[name]) for name in spaces]

    def daemon_sets(self) -> list[Event]:
        dirty, self._dirty_daemons = self._dirty_daemons, {}
        events: list[Event] = []
        self._dirty_daemons |= read_each("DaemonSet", dirty, lambda at: self._tell_daemon(*at, events))
        return events

    @property
    def is_quiet(self) -> bool:
        return not self._dirty_daemons

    def _tell_daemon(self, namespace: str, name: str, events: list[Event]) -> None:
        key = f"{namespace}/{name}"
        item = self._informers.of(DAEMON_SETS).get(namespace, name)
        if item is None:
            self._troubles.settle(DAEMON_SETS, key)
            if self._daemons.pop(key, None) is not None:
                events.append(DaemonSetGone(key))
            return
        try:
            ask = daemon_set_ask(value_of(DAEMON_SETS, item, DaemonSet))
        except UserError as error:
            self._troubles.put(ObjectFault(DAEMON_SETS, key, item.uid, UNREADABLE, message_of(error)))
            return
        self._troubles.settle(DAEMON_SETS, key)
        if self._daemons.get(key) != ask:
            self._daemons[key] = ask
            events.append(DaemonSetSeen(key, ask))

    def _values(self, informer: Informer | None, wanted: type[V]) -> list[V]:
        if informer is None:
            return []
        found = []
        for item in informer:
            key = f"{item.namespace}/{item.name}" if item.namespace else item.name
            try:
                found.append(value_of(informer.kind, item, wanted))
            except UserError as error:
                self._troubles.put(ObjectFault(informer.kind, key, item.uid, UNREADABLE, message_of(error)))
            else:
                self._troubles.settle(informer.kind, key)
        return found
