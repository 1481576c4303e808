"""Carries CapacityBuffers: reads them, and writes into their status whether there is room for their pods.

The pods of a buffer exist in plans only. They are planned after all others, on what those leave free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from shoal.api.pod import Pod
from shoal.autoscale.capacity_buffers.buffer import CapacityBuffer, buffer_of, buffer_pods
from shoal.autoscale.capacity_buffers.forecast_text import FORECAST, forecast_words, read_forecast
from shoal.autoscale.nodes.plan import NodePlan
from shoal.autoscale.nodes.planning_input import PlanningInput, pod_key
from shoal.client.conditions import WriteTime, difference, find, put
from shoal.client.context import Context
from shoal.client.item import Item, Obj
from shoal.client.kind import POD_TEMPLATES, RESOURCE_QUOTAS, Kind
from shoal.client.port import Patch
from shoal.controllers.node_scaling.buffer_demand import BufferDemand
from shoal.controllers.node_scaling.computations import Computations
from shoal.store.quota_room import QuotaRoom
from shoal.units.errors import UserError

_READY, _PROVISIONING = "ReadyForProvisioning", "Provisioning"
_LIMITED: Final = "LimitedByQuotas"
_NO_ROOM: Final = "no nodes can be provisioned"


class _Wanted(NamedTuple):
    pods: tuple[Pod, ...]
    words: str
    """What the forecast says, for the status."""
    limited: str = ""
    """What a ResourceQuota says about the pods that are not among these."""


class CapacityBuffers:
    def __init__(
        self, context: Context, computations: Computations, demand: BufferDemand, quotas: Callable[[], QuotaRoom]
    ) -> None:
        """`quotas`: what ResourceQuotas leave now."""
        self._quotas = quotas
        self._context = context
        self._demand = demand
        self._computations = computations
        self._kind: Kind | None = None

    def follow(self, kind: Kind, changed: Callable[[], None]) -> None:
        """The server has this kind."""
        self._kind = kind
        for each in (kind, POD_TEMPLATES, RESOURCE_QUOTAS):
            self._context.informers.of(each).on_change(lambda _before, _after: changed())

    async def plan(self, given: PlanningInput, plan: NodePlan) -> tuple[PlanningInput, NodePlan]:
        """What is to be provisioned for the buffers beside this plan; and the input with the room that is kept for them
        on present nodes."""
        quotas = self._quotas()
        wanted = {item: self._wanted(item, quotas) for item in self._items()}
        pods = [pod for each in wanted.values() if not isinstance(each, UserError) for pod in each.pods]
        given, found = await self._computations.room(given, plan, pods)
        for item, each in wanted.items():
            await self._report(item, each, found)
        return given, found

    def _items(self) -> list[Item]:
        of = self._context.informers.of
        kinds = (POD_TEMPLATES, RESOURCE_QUOTAS)
        if self._kind is None or not (of(self._kind).is_synced and all(of(each).is_synced for each in kinds)):
            return []
        return sorted(of(self._kind), key=lambda item: item.key)

    def _wanted(self, item: Item, quotas: QuotaRoom) -> _Wanted | UserError:
        """What is wrong with a buffer concerns this buffer alone."""
        buffer = buffer_of(item.obj())
        template = self._context.informers.of(POD_TEMPLATES).get(buffer.namespace, buffer.template)
        try:
            raw = template.obj().get("template") if template else None
            demand = self._demand.gpus(buffer.namespace) if FORECAST in buffer.annotations else 0.0
            now = self._context.clock.now()
            pods = buffer_pods(buffer, raw, now, demand)
            count, limited = quotas.take(pods)
            limited = limited and f"{count} of {len(pods)} pods: {limited}"
            return _Wanted(pods[:count], _forecast_words(buffer, now), limited)
        except UserError as error:
            return error

    async def _report(self, item: Item, wanted: _Wanted | UserError, plan: NodePlan) -> None:
        before: Obj = item.obj().get("status") or {}
        status = dict(before)
        clock = self._context.clock
        moment = WriteTime(clock.text(), clock.seconds())
        if isinstance(wanted, UserError):
            put(status, _READY, (False, "Invalid", str(wanted)), moment)
            put(status, _PROVISIONING, (False, "NotReady", f"no room is kept: {wanted}"), moment)
            status["replicas"] = 0
        else:
            put(status, _READY, (True, "Ready", wanted.words), moment)
            put(status, _PROVISIONING, _room(wanted.pods, plan), moment)
            was_limited = find(status, _LIMITED) is not None
            if (wanted.limited or was_limited) and put(status, _LIMITED, _limited(wanted), moment) and wanted.limited:
                about: Obj = {"kind": "CapacityBuffer", "apiVersion": "autoscaling.x-k8s.io/v1beta1"}
                about["metadata"] = {"name": item.name, "namespace": item.namespace, "uid": item.uid}
                self._context.events.record(about, _LIMITED, wanted.limited, type_="Warning")
            status["replicas"] = len(wanted.pods)
        if (body := difference(before, status)) and self._kind is not None:
            patch = Patch("merge", {"metadata": {"uid": item.uid}, "status": body})
            await self._context.api.patch(self._kind, item.namespace, item.name, patch, "status")


def _forecast_words(buffer: CapacityBuffer, now: datetime) -> str:
    """Raises UserError."""
    text = buffer.annotations.get(FORECAST)
    where = buffer.where.below(f"metadata.annotations[{FORECAST}]")
    return "" if text is None else forecast_words(read_forecast(text, where), now)


def _limited(wanted: _Wanted) -> tuple[bool, str, str]:
    if wanted.limited:
        return True, "LimitedByQuotas", f"room is kept for {wanted.limited}"
    return False, "WithinQuotas", ""


def _room(pods: tuple[Pod, ...], plan: NodePlan) -> tuple[bool, str, str]:
    refused: Mapping[str, str] = {
        each.pod: "; ".join(f"pool {pool}: {why}" for pool, why in sorted(each.by_pool.items())) or each.reason
        for each in plan.pending
    }
    lacking = [refused[key] for pod in pods if (key := pod_key(pod)) in refused]
    if lacking:
        return False, "CapacityIsNotFound", f"{_NO_ROOM} for {len(lacking)} of {len(pods)} pods: {lacking[0]}"
    placed = sum(pod_key(pod) in plan.placed for pod in pods)
    return True, "CapacityIsKept", f"there is room for {placed} of {len(pods)} pods; nodes for the others are requested"
