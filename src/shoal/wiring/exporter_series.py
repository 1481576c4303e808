"""Reads the series of the exporters of GPUs in any cluster, for custom.metrics.k8s.io, while they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from shoal.api.meta import ObjectMeta
from shoal.api.partial import MetadataOf
from shoal.client.context import Context
from shoal.client.item import Seen
from shoal.client.kind import NODES, PODS
from shoal.controllers.history.sampler import Fetch, Sampler
from shoal.prometheus.samples import MetricLine, samples_of

_EVERY_S = 10.0
_ASKED_S = 120.0
"""Exporters are left alone if no metric was asked for so long a time."""
_metadata: Seen[MetadataOf[ObjectMeta]] = Seen(MetadataOf[ObjectMeta])


class ExporterSeries:
    """Implements SeriesSource."""

    def __init__(self, context: Context, fetch: Fetch) -> None:
        self._context = context
        self._fetch = fetch
        self._exporters = Sampler(context, fetch, lambda _: None, lambda _, __: None)
        self._series: Sequence[MetricLine] = ()
        self._read_s = 0.0
        self._asked_s = float("-inf")
        context.informers.of(PODS).on_change(self._exporters.pod_changed)

    def read(self) -> tuple[Sequence[MetricLine], float]:
        self._asked_s = self._context.clock.seconds()
        return self._series, self._read_s

    def pod_labels(self) -> Mapping[tuple[str, str], Mapping[str, str]]:
        return {item.key: _metadata(item).metadata.labels for item in self._context.informers.of(PODS)}

    def node_labels(self, name: str) -> Mapping[str, str]:
        item = self._context.informers.of(NODES).get("", name)
        return {} if item is None else _metadata(item).metadata.labels

    async def run(self) -> None:
        clock = self._context.clock
        # The first reading makes the metrics known, so that they can be found before they are asked for.
        self._asked_s = clock.seconds()
        while True:
            if clock.seconds() - self._asked_s <= _ASKED_S:
                texts = await asyncio.gather(*(self._text(address) for address in self._exporters.sources()))
                self._series = [line for text in texts for line in samples_of(text)]
                self._read_s = clock.seconds()
            await clock.sleep(_EVERY_S)

    async def _text(self, address: str) -> str:
        try:
            return await self._fetch(address)
        except (OSError, TimeoutError):
            return ""
