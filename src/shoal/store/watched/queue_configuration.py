"""Watches Kueue's configuration in a cluster: one ConfigMap of its controller, with a watch of its own.

Guarantees: only the ConfigMap in Kueue's own namespace counts, so that users who may write ConfigMaps in other
namespaces cannot change the queues of the cluster.

Rejected: the shared cache of all ConfigMaps. One is needed, and clusters have thousands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from shoal.api.decode import read
from shoal.api.kueue import Configuration
from shoal.api.kueue.unknown_fields import strays
from shoal.client.context import Context
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import CONFIG_MAPS
from shoal.client.port import Select
from shoal.client.presence import KUEUE
from shoal.store.object_faults import UNREADABLE, ObjectFault, ObjectFaults, message_of
from shoal.units.errors import UserError

_log = logging.getLogger("shoal.queues")
NAME = "kueue-manager-config"
_GROUP = "config.kueue.x-k8s.io/"
WhenNew = Callable[[Callable[[], None]], None]
"""Registers the callback for changed rules."""


def never_new(_then: Callable[[], None]) -> None:
    """A watch for fixed rules."""


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class ConfigurationWatch:
    """`then` is called with the configuration of the cluster; with None after its deletion."""

    def __init__(
        self,
        context: Context,
        troubles: ObjectFaults,
        then: Callable[[Configuration | None], None],
        namespace: str = KUEUE.namespace,
    ) -> None:
        select = Select(fields=f"metadata.name={NAME}")
        outage = context.informers.outage
        self._informer = Informer(context.api, CONFIG_MAPS, context.clock, context.draw, select, namespace, outage)
        self._name = f"{namespace}/{NAME}"
        self._then = then
        self._troubles = troubles
        self._informer.on_change(self._changed)

    async def synced(self) -> None:
        await self._informer.synced()

    async def run(self) -> None:
        await self._informer.run()

    def _changed(self, _before: Item | None, after: Item | None) -> None:
        self._troubles.settle(CONFIG_MAPS, self._name)
        if after is None:
            self._then(None)
            return
        try:
            self._then(_configuration(after))
            unknown = "; ".join(message_of(each) for text in _texts(after) for each in strays(text))
            if unknown:
                words = f"{unknown}; the rest counts"
                self._troubles.put(ObjectFault(CONFIG_MAPS, self._name, after.uid, UNREADABLE, words))
                _log.warning("the configuration in ConfigMap %s: %s", self._name, words)
        except UserError as error:
            words = f"the former configuration stays: {message_of(error)}"
            self._troubles.put(ObjectFault(CONFIG_MAPS, self._name, after.uid, UNREADABLE, words))
            _log.warning("the configuration in ConfigMap %s is not read, the former one stays: %s", self._name, error)


def _configuration(item: Item) -> Configuration | None:
    for text in _texts(item):
        found = [one.value for one in read(text) if isinstance(one.value, Configuration)]
        if found:
            return found[0]
    return None


def _texts(item: Item) -> list[str]:
    return [text for text in (item.read(_ConfigMap).data or {}).values() if _GROUP in text]
