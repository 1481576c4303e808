"""KAI's queues and groups as caches have them, and to which of them a pod belongs."""

from __future__ import annotations

from collections.abc import Callable

from shoal.api.groups.kai import QUEUE_LABEL
from shoal.controllers.kai.group_plans import DEFAULT_QUEUE
from shoal.controllers.kai.sights import PodGroup, Queue, group_of, minimum_of, parts_of, priority_of, queue_of
from shoal.controllers.kai.work import Origin
from shoal.engine.from_api import Priorities
from shoal.engine.groups import GroupFacts
from shoal.engine.who import Who
from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import KAI_POD_GROUPS, KAI_QUEUES
from shoal.store.live.informer import Informer
from shoal.store.live.item import Item
from shoal.store.live.kind import PRIORITY_CLASSES, Kind
from shoal.store.live.served import Served
from shoal.units.errors import UserError, Where

_BROUGHT_ALONG = Priorities()
"""With the classes that KAI's installation has."""


class Origins:
    """`wake` is called when there is news; `followed` when a kind turned out to be served; `known` tells what the facts
    have of a gang."""

    def __init__(
        self,
        context: Context,
        served: Served,
        wake: Callable[[], None],
        followed: Callable[[Kind, Informer], None],
        known: Callable[[str], GroupFacts | None],
    ) -> None:
        self._known = known
        self._context = context
        self._wake = wake
        self._on_followed = followed
        self._followed: dict[Kind, Informer] = {}
        self.queues: dict[str, Queue] = {}
        self.is_stale = True
        """Queues changed since somebody looked."""
        self._changed: dict[str, Origin] = {}
        self._classes = context.informers.of(PRIORITY_CLASSES)
        self._classes.on_change(lambda _, __: self._all_again())
        for kind in (KAI_QUEUES, KAI_POD_GROUPS):
            served.when_there(kind, self._follow)

    @property
    def is_served(self) -> bool:
        return KAI_QUEUES in self._followed

    @property
    def is_synced(self) -> bool:
        queues = self._followed.get(KAI_QUEUES)
        return queues is not None and queues.is_synced

    async def synced(self) -> None:
        """Returns when all is known of what is served by now."""
        if self._followed:
            await self._context.informers.synced(self._followed)

    def of(self, pod: str, who: Who) -> Origin | None:
        """None for pods that no queue of KAI is asked about."""
        if not self.is_served:
            return None
        group = self._group(who.group) if who.group else None
        if group is not None:
            return self._of_group(who.group, group)
        queue = dict(who.traits.labels).get(QUEUE_LABEL, "")
        if queue and who.group:
            facts = self._known(who.group)
            if facts is None or facts.unreadable:
                return Origin(who.group, queue, is_known=False)
            # Of another project, or by its maker's own word.
            return Origin(who.group, queue, facts.minimum or None if not facts.parts else None)
        return Origin(pod, queue) if queue else None

    def take_groups(self) -> list[Origin]:
        """Groups that came or say something else since the last call."""
        changed, self._changed = self._changed, {}
        return list(changed.values())

    @property
    def is_quiet(self) -> bool:
        return not self.is_stale and not self._changed

    # Inside

    def _follow(self, kind: Kind) -> None:
        informer = self._followed[kind] = self._context.informers.of(kind)
        self._on_followed(kind, informer)
        informer.on_change(self._queue_changed if kind == KAI_QUEUES else self._group_changed)

    def _queue_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        queue = queue_of(after) if after is not None else None
        if item is None or self.queues.get(item.name) == queue:
            return
        if queue is None:
            self.queues.pop(item.name, None)
        else:
            self.queues[item.name] = queue
        self.is_stale = True
        if before is None and item.name == DEFAULT_QUEUE:
            self._all_again()
        self._wake()

    def _all_again(self) -> None:
        """What groups are read against has changed."""
        for item in self._followed.get(KAI_POD_GROUPS, ()):
            self._group_changed(None, item)

    def _group_changed(self, before: Item | None, after: Item | None) -> None:
        group = group_of(after) if after is not None else None
        old = group_of(before) if before is not None else None
        is_same = old is not None and group is not None and (old.spec, old.succeeded) == (group.spec, group.succeeded)
        if after is not None and group is not None and not is_same:
            name = f"{after.namespace}/{after.name}"
            origin = self._of_group(name, group)
            if origin is not None:
                self._changed[name] = origin
                self._wake()

    def _group(self, name: str) -> PodGroup | None:
        groups = self._followed.get(KAI_POD_GROUPS)
        namespace, _, rest = name.partition("/")
        item = groups.get(namespace, rest) if groups is not None else None
        return group_of(item) if item is not None else None

    def _of_group(self, name: str, group: PodGroup) -> Origin | None:
        spec = group.spec
        if spec.queue == DEFAULT_QUEUE and DEFAULT_QUEUE not in self.queues:
            # KAI's installation brings it along, without end; who asked for no queue does not wait for one.
            return None
        priority = self._priority(spec.priority_class_name)
        minimum, parts = minimum_of(spec), parts_of(spec)
        if group.succeeded and minimum is not None:
            # Whose part it was is not told: what is left of a group with parts is all that there are.
            minimum, parts = (None, ()) if parts else (max(minimum - group.succeeded, 1), ())
        return Origin(name, spec.queue, minimum, parts, priority, spec.is_preemptible())

    def _priority(self, name: str) -> int | None:
        item = self._classes.get("", name) if name else None
        if item is not None:
            return priority_of(item)
        try:
            return _BROUGHT_ALONG.named(name, Where()).value if name else None
        except UserError:
            return None
