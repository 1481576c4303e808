"""The metrics of a Prometheus server, by the rules of prometheus-adapter, for the metrics APIs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from shoal.api.selectors import Selector
from shoal.api.yaml_text import read_yaml
from shoal.autoscale.exposed_metrics.adapter_rules import AdapterRule, AdapterRules, read_rules
from shoal.autoscale.exposed_metrics.gpu_metrics import ObjectValue
from shoal.autoscale.exposed_metrics.prometheus_metrics import (
    KnownMetrics,
    ObjectQuestion,
    external_query,
    known_metrics,
    object_query,
    samples_in,
    series_of,
)
from shoal.client.clock import Clock
from shoal.embedded.kubelets.endpoint.external_metrics_routes import ExternalValues
from shoal.units.errors import ShoalError, TemporaryError, UserError, Where

_log = logging.getLogger("shoal.autoscaling")
_EVERY_S = 60.0
_OLD_S = 1200.0
"""Series without samples for so long are no metrics any more."""
Ask = Callable[[str, Mapping[str, str]], Awaitable[str]]
"""The answer to a path with a query. Raises OSError or TimeoutError."""


def rules_of_file(path: Path) -> AdapterRules:
    """The rules of prometheus-adapter in a file. Raises UserError."""
    where = Where(path=str(path))
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read: {error}", where=where) from None
    documents = [value for _, value in read_yaml(text, str(path))]
    if len(documents) != 1:
        raise UserError("is not one document with rules of prometheus-adapter", where=where)
    return read_rules(documents[0], where)


class PrometheusSource:
    def __init__(self, ask: Ask, rules: AdapterRules, clock: Clock) -> None:
        self._ask = ask
        self._rules = rules
        self._clock = clock
        self._known = KnownMetrics()

    async def run(self) -> None:
        """Finds the metrics again and again. A server that does not answer leaves those that are known."""
        while True:
            try:
                await self.find()
            except ShoalError as error:
                _log.warning("the metrics of prometheus cannot be found: %s", error)
            await self._clock.sleep(_EVERY_S)

    async def find(self) -> None:
        """Raises TemporaryError or UserError."""
        custom = await asyncio.gather(*map(self._series, self._rules.custom))
        external = await asyncio.gather(*map(self._series, self._rules.external))
        self._known = known_metrics(self._rules, custom, external)

    async def _series(self, rule: AdapterRule) -> list[dict[str, str]]:
        start = f"{self._clock.seconds() - _OLD_S:.0f}"
        return series_of(await self._asked("series", {"match[]": rule.written.series_query, "start": start}))

    async def _asked(self, what: str, query: Mapping[str, str]) -> bytes:
        try:
            return (await self._ask(f"/api/v1/{what}", query)).encode()
        except (OSError, TimeoutError) as error:
            raise TemporaryError(f"prometheus does not answer: {error}", 1.0) from None

    # -- custom metrics ---------------------------------------------------------------------------------------------

    def resources(self) -> Sequence[tuple[str, str, bool]]:
        """Resource, metric, and whether its objects are in namespaces."""
        return [(*key, self._known.custom[key].is_namespaced) for key in sorted(self._known.custom)]

    def seconds(self) -> float:
        return self._clock.seconds()

    async def object_values(self, asked: ObjectQuestion, metric: str, selector: Selector) -> list[ObjectValue] | None:
        """`None`: there is no such metric. Raises UserError or TemporaryError."""
        found = self._known.custom.get((asked.resource, metric))
        if found is None:
            return None
        query, label = object_query(found, asked, selector)
        samples = samples_in(await self._asked("query", {"query": query}))
        return [ObjectValue(asked.namespace, labels[label], value) for labels, value in samples if label in labels]

    # -- external metrics -------------------------------------------------------------------------------------------

    def names(self) -> Sequence[str]:
        return sorted(self._known.external)

    async def values(self, namespace: str, name: str, selector: Selector) -> ExternalValues | None:
        """`None`: there is no such metric. Raises UserError or TemporaryError."""
        found = self._known.external.get(name)
        if found is None:
            return None
        samples = samples_in(await self._asked("query", {"query": external_query(found, namespace, selector)}))
        return [(name, labels, round(value * 1000)) for labels, value in samples]
