"""Watches the configuration of Volcano's scheduler: one ConfigMap in Volcano's namespace, with a watch of its own.

Guarantees: a configuration that cannot be read changes nothing: the last good one stays in use, and an Event on the
ConfigMap says what is wrong and where. Names that are not known are left out with an Event, and the rest is used. Only
the ConfigMap in Volcano's namespace counts, so that users of other namespaces cannot change the scheduling.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from shoal.api.yaml_text import read_yaml
from shoal.client.context import Context
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import CONFIG_MAPS
from shoal.client.port import Select
from shoal.controllers.volcano.names import reference
from shoal.engine.queues.disciplines.volcano.configuration import (
    DEFAULT,
    VolcanoConfiguration,
    read_configuration,
)
from shoal.engine.queues.disciplines.volcano.objects import SCHEDULER
from shoal.units.errors import UserError, Where

_log = logging.getLogger("shoal.volcano")
NAME = "volcano-scheduler-configmap"
KEY = "volcano-scheduler.conf"


class _SchedulerConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class SchedulerConfigurationWatch:
    def __init__(self, context: Context, then: Callable[[VolcanoConfiguration], None], namespace: str) -> None:
        """`then` receives each configuration that can be read, and the default one after the deletion."""
        select, outage = Select(fields=f"metadata.name={NAME}"), context.informers.outage
        self._informer = Informer(context.api, CONFIG_MAPS, context.clock, context.draw, select, namespace, outage)
        self._events = context.events.named(SCHEDULER)
        self._then = then
        self._text: str | None = None
        self._informer.on_change(self._changed)

    async def synced(self) -> None:
        await self._informer.synced()

    async def run(self) -> None:
        await self._informer.run()

    def _changed(self, _before: Item | None, after: Item | None) -> None:
        text = None if after is None else (after.read(_SchedulerConfigMap).data or {}).get(KEY)
        if text == self._text:
            return
        self._text = text
        if after is None or text is None:
            self._then(DEFAULT)
            return
        where = Where(obj=f"ConfigMap {after.namespace}/{after.name}").below("data").key(KEY)
        try:
            values = [value for _, value in read_yaml(text)]
            configuration = read_configuration(values[0] if values else {}, where)
        except UserError as error:
            words = str(error) if error.where.obj else f"{where}: {error}"
            self._warn(after, "InvalidConfiguration", f"{words}; the last good configuration stays in use")
            return
        for warning in configuration.warnings:
            self._warn(after, "UnknownConfiguration", warning)
        self._then(configuration)

    def _warn(self, item: Item, reason: str, words: str) -> None:
        _log.warning("%s", words)
        self._events.record(reference(CONFIG_MAPS, item.key, item.uid), reason, words, type_="Warning")
