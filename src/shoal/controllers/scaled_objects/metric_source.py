"""Polls the triggers of ScaledObjects, with fallback and formula, and answers what their autoscalers ask."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from shoal.api.pod import Pod
from shoal.api.selector_text import parse_label_selector
from shoal.api.selectors import Selector
from shoal.api.wire import dec_hook
from shoal.autoscale.replicas.samples import is_ready
from shoal.autoscale.scaled_objects.fallback import TargetSize
from shoal.autoscale.scaled_objects.polling import Polled, combined
from shoal.autoscale.scaled_objects.spec import ScaledObjectSpec
from shoal.autoscale.scaled_objects.trigger_sources import ReadTrigger
from shoal.autoscale.scaled_objects.triggers import OWNER_LABEL
from shoal.client.context import Context
from shoal.client.item import Key, Obj
from shoal.client.kind import PODS
from shoal.controllers.scaled_objects.sources.http import HttpSource
from shoal.controllers.scaled_objects.trigger_values import TriggerValues
from shoal.units.errors import TemporaryError, UserError

_FRESH_S = 1.0
"""Answers of so short a time ago are given again: an autoscaler asks for each metric by itself."""
_pods = msgspec.json.Decoder(Pod, dec_hook=dec_hook)


class _Known(Struct):
    """What is needed to poll again."""

    spec: ScaledObjectSpec
    triggers: Sequence[ReadTrigger]
    scale: Obj
    polled: Polled
    at_s: float


class MetricSource:
    """Also the source of external.metrics.k8s.io."""

    def __init__(self, context: Context, http: HttpSource) -> None:
        self._context = context
        self.values = TriggerValues(context, http)
        self._pods = context.informers.of(PODS).index("namespace", lambda item: (item.namespace,))
        self._known: dict[Key, _Known] = {}

    def forget(self, key: Key) -> None:
        self._known.pop(key, None)

    async def polled(
        self, key: Key, spec: ScaledObjectSpec, triggers: Sequence[ReadTrigger], scale: Obj, now: datetime
    ) -> Polled:
        found = [await self.values.poll(one, key[0], now) for one in triggers]
        known = self._known.get(key)
        is_failing = any(one.reading.error for one in found)
        size = self._size(key[0], scale) if is_failing and spec.fallback is not None else TargetSize()
        result = combined(spec, found, known.polled.health if known is not None else {}, size)
        self._known[key] = _Known(spec, triggers, scale, result, self._context.clock.seconds())
        return result

    def _size(self, namespace: str, scale: Obj) -> TargetSize:
        """Of the target, for a fallback that depends on it."""
        status = scale.get("status") or {}
        try:
            selector = parse_label_selector(status["selector"])
        except (KeyError, UserError):
            return TargetSize((scale.get("spec") or {}).get("replicas") or 0)
        pods = [_pods.decode(item.data) for item in self._pods[namespace]]
        ready = sum(is_ready(pod) for pod in pods if selector.matches(pod.metadata.labels))
        return TargetSize((scale.get("spec") or {}).get("replicas") or 0, ready)

    # -- external.metrics.k8s.io ------------------------------------------------------------------------------------

    def external_names(self) -> list[str]:
        return sorted({name for known in self._known.values() for name in known.polled.values_milli})

    async def external_value(self, namespace: str, name: str, selector: Selector) -> tuple[dict[str, str], int]:
        """Labels and value of the metric of the ScaledObject that the selector names."""
        owner = _owner(selector)
        known = self._known.get((namespace, owner))
        if not owner or known is None:
            raise UserError(f"no matching metrics found for {name}: there is no such ScaledObject {owner}".rstrip())
        if self._context.clock.seconds() - known.at_s > _FRESH_S:
            now = self._context.clock.now().replace(microsecond=0)
            await self.polled((namespace, owner), known.spec, known.triggers, known.scale, now)
            known = self._known[namespace, owner]
        if name in known.polled.errors:
            raise TemporaryError(f"error getting metrics {name}: {known.polled.errors[name]}", 1.0)
        if name not in known.polled.values_milli:
            raise UserError(f"no matching metrics found for {name}")
        return {OWNER_LABEL: owner}, known.polled.values_milli[name]


def _owner(selector: Selector) -> str:
    for one in selector.requirements or ():
        if one.key == OWNER_LABEL and one.operator == "In" and len(one.values) == 1:
            return one.values[0]
    return ""
