"""Kueue's configuration as a cluster keeps it: the ConfigMap of its controller, followed by itself.

Rejected: the shared cache of all ConfigMaps. One is needed, and clusters have thousands.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from shoal.api.decode import read
from shoal.api.kueue import Configuration
from shoal.store.live.context import Context
from shoal.store.live.informer import Informer
from shoal.store.live.item import Item
from shoal.store.live.kind import CONFIG_MAPS
from shoal.store.live.port import Select
from shoal.store.watched.troubles import UNREADABLE, Trouble, Troubles, words_of
from shoal.units.errors import UserError

_log = logging.getLogger("shoal.queues")
NAME = "kueue-manager-config"
_GROUP = "config.kueue.x-k8s.io/"


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class ConfigurationWatch:
    """`then` is told what the cluster says; None once it says nothing."""

    def __init__(self, context: Context, troubles: Troubles, then: Callable[[Configuration | None], None]) -> None:
        select = Select(fields=f"metadata.name={NAME}")
        self._informer = Informer(context.api, CONFIG_MAPS, context.clock, context.draw, select)
        self._then = then
        self._troubles = troubles
        self._informer.on_change(self._changed)

    async def synced(self) -> None:
        await self._informer.synced()

    async def run(self) -> None:
        await self._informer.run()

    def _changed(self, _before: Item | None, _after: Item | None) -> None:
        """Of several, the first by namespace."""
        present = sorted(self._informer, key=lambda item: item.namespace)
        name = f"{present[0].namespace}/{NAME}" if present else ""
        self._troubles.settle(CONFIG_MAPS, name)
        try:
            self._then(_configuration(present[0]) if present else None)
        except UserError as error:
            words = f"the former configuration stays: {words_of(error)}"
            self._troubles.put(Trouble(CONFIG_MAPS, name, present[0].uid, UNREADABLE, words))
            _log.warning("the configuration in ConfigMap %s is not read, and the former one stays: %s", name, error)


def _configuration(item: Item) -> Configuration | None:
    for text in (item.read(_ConfigMap).data or {}).values():
        if _GROUP in text:
            found = [one.value for one in read(text) if isinstance(one.value, Configuration)]
            if found:
                return found[0]
    return None
