"""Converts the queues and workloads of a live cluster to the queue engine's facts as they change, with the rules that
also read manifests.

Guarantees: only changed objects are decoded, once; a fact is reported when it differs, whatever else changed in its
object; an object that cannot be read is reported, and the others are read all the same.

Rejected: reading all workloads in each cycle. Five thousand pending ones would cost a second in each.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from shoal.api.kueue import Configuration, Workload
from shoal.api.meta import Namespace
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import KUEUE_TOPOLOGIES, WORKLOAD_PRIORITY_CLASSES, WORKLOADS
from shoal.client.item import Item
from shoal.client.kind import NAMESPACES, NODES, Kind
from shoal.client.presence import KUEUE
from shoal.client.served import Served
from shoal.engine.from_api import Priorities
from shoal.engine.queues.settings import Settings
from shoal.engine.queues.state import Fact
from shoal.store.object_faults import UNREADABLE, ObjectFault, ObjectFaults, message_of
from shoal.store.watched.cost_budgets import WatchedCostBudgets
from shoal.store.watched.covered_resources import CoveredResources
from shoal.store.watched.queue_caches import REPORTED, QueueCaches
from shoal.store.watched.queue_changes import QueueChanges, WorkloadView
from shoal.store.watched.queue_configuration import ConfigurationWatch
from shoal.store.watched.queue_facts import FACT_OF, FactReader
from shoal.store.watched.queue_room import TakenRoom
from shoal.store.watched.queue_rules import QueueRules
from shoal.store.watched.reading import value_of
from shoal.store.watched.tolerant_reading import read_each
from shoal.store.watched.workload_views import sight_of
from shoal.units.errors import ShoalError, UserError

_log = logging.getLogger("shoal.queues")
_AGAIN_S = 1.0


class WatchedQueues:
    """`wake` is called when there are changes to drain."""

    def __init__(
        self,
        context: Context,
        served: Served,
        wake: Callable[[], None],
        configuration: Configuration | None = None,
        namespace: str = KUEUE.namespace,
        cost_budgets: WatchedCostBudgets | None = None,
    ) -> None:
        """A `configuration` that is given here replaces that of the cluster. `cost_budgets` is run by its owner."""
        self._cost_budgets = cost_budgets
        self._are_budgets_new = False
        if cost_budgets is not None:
            cost_budgets.on_change(lambda _: self._budgets_changed())
        self.troubles = ObjectFaults()
        self._context = context
        self._served = served
        self._wake = wake
        self._synced = asyncio.Event()
        self._rereads = False
        self._is_configured = False
        self._views: dict[str, WorkloadView] = {}
        self._local_queues = CoveredResources()
        self._room = TakenRoom(self._accounted)
        self._reader = FactReader(self._room.on)
        self.rules = QueueRules(context, self.troubles, self._all_again, configuration)
        self._configuration = None
        if configuration is None:
            self._configuration = ConfigurationWatch(context, self.troubles, self._configure, namespace)
        self._caches = QueueCaches(context, served, wake)
        classes = WORKLOAD_PRIORITY_CLASSES
        served.when_there(classes, self.rules.follow_classes, classes._replace(version="v1beta1"))

    # -- queries -------------------------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        return self.rules.settings

    @property
    def priorities(self) -> Priorities:
        """Of pods."""
        return self.rules.priorities

    def kind(self, kind: Kind) -> Kind | None:
        """The served version; None while the kind is not served."""
        return self._caches.kind(kind)

    def item(self, kind: Kind, namespace: str, name: str) -> Item | None:
        return self._caches.item(kind, namespace, name)

    def workload(self, key: str) -> Workload | None:
        """The whole Workload, decoded again; None where it is missing or cannot be read."""
        namespace, _, name = key.partition("/")
        item, kind = self.item(WORKLOADS, namespace, name), self.kind(WORKLOADS)
        if item is None or kind is None:
            return None
        try:
            return value_of(kind, item, Workload)
        except UserError:
            return None

    def view(self, key: str) -> WorkloadView | None:
        return self._views.get(key)

    def views(self) -> list[WorkloadView]:
        return list(self._views.values())

    async def synced(self) -> None:
        """Returns when the caches of all served kinds are filled."""
        await self._synced.wait()

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    async def run(self) -> None:
        """Run the watches of its own, until cancelled."""
        async with asyncio.TaskGroup() as group:
            if self._configuration is not None:
                group.create_task(self._configuration.run())
            await self._know_all()
            self._synced.set()
            self._wake()

    # -- changes ------------------------------------------------------------------------------------------------

    def again(self, key: str) -> None:
        """Report the current state of a workload again."""
        self._caches.once_again(WORKLOADS, key)

    def tell_all_again(self) -> None:
        """Report all workloads again at the next drain."""
        self._rereads = True

    def drain(self) -> QueueChanges:
        """The changes since the last call; unreadable objects are read again after a moment."""
        news = QueueChanges()
        if self._is_configured:
            self._is_configured = False
            news.settings = self.rules.settings
        if self._are_budgets_new and self._cost_budgets is not None:
            self._are_budgets_new = False
            news.cost_budgets = self._cost_budgets.now
        for kind in REPORTED:
            changed = self._caches.take(kind)
            tell = partial(self._tell_of, kind, changed, news)
            self._tell_later(kind, read_each(kind.name, changed, tell))
        if self._rereads:
            self._rereads = False
            self._caches.again(WORKLOADS)
        workloads = self._caches.take(WORKLOADS)
        left = read_each("workload", workloads, lambda key: self._tell_workload(key, workloads[key], news))
        self._tell_later(WORKLOADS, left)
        self._report_capacity(news)
        return news

    def _tell_of(self, kind: Kind, changed: Mapping[str, Item | None], news: QueueChanges, name: str) -> None:
        self._report(kind, name, changed[name], news)

    def _tell_later(self, kind: Kind, names: Iterable[str]) -> None:
        for name in names:
            self._caches.once_again(kind, name)
            self._context.clock.call_later(_AGAIN_S, self._wake)

    # -- internals ----------------------------------------------------------------------------------------------

    async def _know_all(self) -> None:
        while True:
            try:
                await self._served.look()
                break
            except ShoalError as error:
                _log.info("the server's kinds cannot be read: %s", error)
                await self._context.clock.sleep(_AGAIN_S)
        await self._caches.synced()
        await self.rules.synced()
        if self._cost_budgets is not None:
            await self._cost_budgets.synced()
        if self._configuration is not None:
            await self._configuration.synced()

    def _configure(self, configuration: Configuration | None) -> None:
        before = self.rules.settings
        self.rules.configure(configuration)
        if before != self.rules.settings:
            self._is_configured = True
            for kind in REPORTED:
                self._caches.again(kind)

    def _budgets_changed(self) -> None:
        self._are_budgets_new = True
        self._wake()

    def _all_again(self) -> None:
        self._rereads = True
        self._wake()

    def _report(self, kind: Kind, name: str, item: Item | None, news: QueueChanges) -> None:
        served = self.kind(kind) or kind
        self.troubles.settle(served, name)
        value: Fact | None = None
        if item is not None:
            try:
                if kind is NAMESPACES:
                    news.namespaces.append((name, value_of(served, item, Namespace).labels()))
                    return
                value = self._reader.read(kind, served, item, self.settings.usage_weights)
            except UserError as error:
                self.troubles.put(ObjectFault(served, name, item.uid, UNREADABLE, message_of(error)))
        if kind is NAMESPACES:
            return
        if kind is KUEUE_TOPOLOGIES and item is not None:
            self._room.follow(self._context, self._wake)
        if value is None:
            news.dropped.append((FACT_OF[kind], name))
        else:
            news.facts.append(value)
        moved = self._local_queues.put(kind, name, value)
        for view in self._views.values() if moved else ():
            if view.queue in moved:
                self.again(view.key)

    def _tell_workload(self, key: str, item: Item | None, news: QueueChanges) -> None:
        served = self.kind(WORKLOADS) or WORKLOADS
        if item is None:
            self._views.pop(key, None)
            news.gone.append(key)
        else:
            view = sight_of(served, item, self.rules.reader(self._local_queues.all))
            before = self._views.get(key)
            if before is not None and before.uid != view.uid:
                news.gone.append(key)
            self._views[key] = view
            news.workloads.append(view)
            if view.fault:
                self.troubles.put(ObjectFault(served, key, item.uid, UNREADABLE, view.fault))
            else:
                self.troubles.settle(served, key)
        if self._room.is_on:
            self._room.recount(key)

    def _report_capacity(self, news: QueueChanges) -> None:
        stirred, self._room.stirred = self._room.stirred, set()
        nodes = self._context.informers.of(NODES)
        for name in stirred:
            item = nodes.get("", name)
            if item is not None:
                self._report(NODES, name, item, news)

    def _accounted(self, workload: str) -> list[str]:
        view = self._views.get(workload)
        admission = view.facts.admission if view is not None and view.facts is not None else None
        return [] if admission is None else [each.name for each in admission.pod_sets if each.topology is not None]
