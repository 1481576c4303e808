"""Follows nominal quotas of GPUs for the recorder: of ClusterQueues, queues of KAI and Volcano, and namespaces.

A kind whose objects are not all seen yet keeps what was stored of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import msgspec

from shoal.client.context import Context
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES, KAI_QUEUES, VOLCANO_QUEUES
from shoal.client.item import Item
from shoal.client.kind import RESOURCE_QUOTAS, Kind
from shoal.client.served import Served
from shoal.cost.records import QuotaKind, QuotaSpan
from shoal.store.history.quota_rows import gpu_quota

_log = logging.getLogger("shoal.history")
_KINDS: tuple[tuple[QuotaKind, Kind, tuple[Kind, ...]], ...] = (
    ("cluster-queue", CLUSTER_QUEUES, (CLUSTER_QUEUES._replace(version="v1beta1"),)),
    ("kai", KAI_QUEUES, ()),
    ("volcano", VOLCANO_QUEUES, ()),
    ("namespace", RESOURCE_QUOTAS, ()),
)


class RecordedQuotas:
    def __init__(self, context: Context, served: Served | None, members: Callable[[], Mapping[str, str]]) -> None:
        """`members`: LocalQueues as namespace/name, with their ClusterQueues."""
        self._context = context
        self._members = members
        self._followed: dict[QuotaKind, Kind] = {}
        self._quotas: dict[QuotaKind, dict[str, QuotaSpan]] = {kind: {} for kind, _, _ in _KINDS}
        """By namespace/name of the object."""
        self._changed: set[QuotaKind] = set()
        if served is not None:
            for kind, objects, older in _KINDS:
                served.when_there(objects, partial(self._follow, kind), *older)

    def members_changed(self) -> None:
        self._changed.add("cluster-queue")

    def changed(self) -> Iterable[tuple[QuotaKind, list[QuotaSpan]]]:
        """The kinds of which something has changed since the last call, with all their quotas."""
        for kind in sorted(self._changed):
            followed = self._followed.get(kind)
            if followed is not None and self._context.informers.of(followed).is_synced:
                self._changed.discard(kind)
                yield kind, self._present(kind)

    def _present(self, kind: QuotaKind) -> list[QuotaSpan]:
        found: dict[str, QuotaSpan] = {}
        for key, one in self._quotas[kind].items():
            # Of several quotas of a namespace the least one holds.
            name = key.partition("/")[0] if kind == "namespace" else one.name
            if name not in found or one.share < found[name].share:
                found[name] = msgspec.structs.replace(one, name=name)
        if kind == "cluster-queue":
            members: dict[str, list[str]] = {}
            for local, queue in self._members().items():
                members.setdefault(queue, []).append(local)
            for name, one in found.items():
                found[name] = msgspec.structs.replace(one, members=tuple(sorted(members.get(name, ()))))
        return list(found.values())

    def _follow(self, kind: QuotaKind, objects: Kind) -> None:
        self._followed[kind] = objects
        self._changed.add(kind)
        self._context.informers.of(objects).on_change(partial(self._seen, kind))

    def _seen(self, kind: QuotaKind, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is None:
            return
        key, quotas = f"{item.namespace}/{item.name}", self._quotas[kind]
        had = quotas.pop(key, None)
        try:
            found = None if after is None else gpu_quota(kind, after)
        except (msgspec.DecodeError, ValueError) as error:
            _log.warning("the quota of %s is not recorded: %s", key.strip("/"), error)
            found = None
        if found is not None:
            quotas[key] = found
        if found != had:
            self._changed.add(kind)
