"""Reconciles model servers of one kind: reads the metrics of their replicas, decides, and scales them.

A model whose state is uncertain keeps its size: annotations that cannot be read, another autoscaler for the same
target, and replicas whose metrics cannot be read. What was decided is written into the annotation
`serving.shoal.dev/status` and, where the size changes or something is wrong, into Events. Nothing is stored: starts are
measured again from the pods.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from shoal.api.selector_text import parse_label_selector
from shoal.autoscale.serving.annotations import (
    STATUS,
    AnnotationError,
    QueueEndpoint,
    ServingSettings,
    is_asked_for,
    serving_settings,
)
from shoal.autoscale.serving.passes import ModelMemory, SeenModel, SeenReplica, serving_pass
from shoal.autoscale.serving.replica_groups import LWS_NAME, ReplicaGroup, ServingPod, single_pods, worker_groups
from shoal.autoscale.serving.replicas import ServingDecision
from shoal.autoscale.serving.server_load import ServerLoad
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import LEADER_WORKER_SETS
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import AUTOSCALERS, PODS, Kind
from shoal.client.loop import Loop
from shoal.client.port import Patch
from shoal.client.scaling import ScalingApi
from shoal.controllers.serving.server_metrics import ServerMetrics
from shoal.units.errors import ConflictError, ShoalError, TemporaryError, UserError

INTERVAL_S = 15.0
_WRITTEN_AGAIN_S = 300.0
"""The status is written again after so long a time if only its figures have changed."""
_FIGURE = re.compile(r"[0-9.]+")
_pods = msgspec.json.Decoder(ServingPod)


class _Model(msgspec.Struct):
    """What is remembered of one object."""

    memory: ModelMemory = ModelMemory()
    measured: frozenset[str] = frozenset()
    """The replicas whose start has been measured."""
    written: str = ""
    written_at_s: float = float("-inf")


class ServingScaler:
    def __init__(self, context: Context, kind: Kind, api: ScalingApi, metrics: ServerMetrics) -> None:
        self.name = context.name
        self._context = context
        self._kind = kind
        self._api = api
        self._metrics = metrics
        self._items = context.informers.of(kind)
        self._pods = context.informers.of(PODS).index("namespace", lambda item: (item.namespace,))
        self._autoscalers = context.informers.of(AUTOSCALERS).index("namespace", lambda item: (item.namespace,))
        self._models: dict[Key, _Model] = {}
        self._loop = Loop(context, self._reconcile)
        self._loop.need(kind, PODS, AUTOSCALERS)
        self._items.on_change(self._changed)

    async def run(self) -> None:
        await self._loop.run()

    def _changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        if item is not None and (before is None or after is None or _asked(before) != _asked(after)):
            self._loop.wake(item.key)

    async def _reconcile(self, key: Key) -> float | None:
        item = self._items.get(*key)
        if item is None or not is_asked_for(_annotations(item)):
            self._models.pop(key, None)
            return None
        obj = {**item.obj(), "kind": self._kind.name, "apiVersion": self._kind.api_version}
        if "deletionTimestamp" in obj["metadata"]:
            return None
        model = self._models.setdefault(key, _Model())
        try:
            settings = serving_settings(_annotations(item))
            self._check_alone(key)
            scale = await self._api.scale(self._kind, *key)
            await self._passed(model, obj, settings, scale)
        except (TemporaryError, ConflictError):
            raise
        except (AnnotationError, ShoalError) as error:
            words = error.what if isinstance(error, ShoalError) else str(error)
            self._context.events.record(obj, "ServingNotScaled", words, type_="Warning")
            await self._write(model, obj, f"not scaled: {words}")
        return INTERVAL_S

    def _check_alone(self, key: Key) -> None:
        """Raises UserError if an autoscaler has the same target: two of them would undo each other's decisions."""
        for item in self._autoscalers[key[0]]:
            obj = item.obj()
            target = obj["spec"]["scaleTargetRef"]
            if (target.get("kind"), target.get("name")) == (self._kind.name, key[1]):
                fix = "delete it, or remove the annotations serving.shoal.dev/*"
                raise UserError(f"HorizontalPodAutoscaler {item.name} scales the same target; {fix}")

    # -- one pass ---------------------------------------------------------------------------------------------------

    async def _passed(self, model: _Model, obj: Obj, settings: ServingSettings, scale: Obj) -> None:
        now = self._context.clock.now()
        groups = self._groups(obj, scale)
        ready = [(one, since) for one in groups if one.is_ready and (since := one.ready_since()) is not None]
        self._measure(model, groups)
        loads = await asyncio.gather(*(self._load(one, settings) for one, _ in ready))
        seen = SeenModel(
            [
                SeenReplica(one.leader.metadata.name, _age_s(now, since), load)
                for (one, since), load in zip(ready, loads, strict=True)
            ],
            (scale.get("spec") or {}).get("replicas") or 0,
            await self._queued(settings.queue),
        )
        decision, model.memory = serving_pass(seen, settings, model.memory, self._context.clock.seconds())
        if decision.replicas != seen.wanted:
            await self._api.rescale(self._kind, {**scale, "spec": {"replicas": decision.replicas}})
            what = f"{self._kind.name} {obj['metadata']['namespace']}/{obj['metadata']['name']}"
            words = f"Scaled {what} from {seen.wanted} to {decision.replicas} replicas: {decision.reason}"
            self._context.events.record(obj, "ServingScaled", words, type_="Normal")
        await self._write(model, obj, _status(decision, model.memory))

    def _groups(self, obj: Obj, scale: Obj) -> list[ReplicaGroup]:
        meta = obj["metadata"]
        pods = self._pods[meta["namespace"]]
        if self._kind.name == LEADER_WORKER_SETS.name:
            members = [one for one in map(_pod, pods) if one.metadata.labels.get(LWS_NAME) == meta["name"]]
            template = (obj.get("spec") or {}).get("leaderWorkerTemplate") or {}
            return worker_groups(members, template.get("size") or 1)
        selector = parse_label_selector((scale.get("status") or {}).get("selector") or "")
        return single_pods(one for one in map(_pod, pods) if selector.matches(one.metadata.labels))

    def _measure(self, model: _Model, groups: Sequence[ReplicaGroup]) -> None:
        """Each start is measured once."""
        found = {one.leader.metadata.uid: phases for one in groups if (phases := one.start_phases())}
        for uid, phases in found.items():
            if uid not in model.measured:
                model.memory = replace(model.memory, start=model.memory.start.with_start(phases))
        model.measured = frozenset(found)

    async def _load(self, group: ReplicaGroup, settings: ServingSettings) -> ServerLoad | None:
        address = group.leader.status.pod_ip
        return await self._metrics.load(address, settings.port, settings.path) if address else None

    async def _queued(self, queue: QueueEndpoint | None) -> float | None:
        return 0.0 if queue is None else await self._metrics.total(queue.url, queue.metric)

    # -- what is shown ----------------------------------------------------------------------------------------------

    async def _write(self, model: _Model, obj: Obj, status: str) -> None:
        """Every write is a change that others follow, so figures alone are written seldom."""
        now_s = self._context.clock.seconds()
        present = _texts(obj).get(STATUS, "")
        if status == present:
            return
        is_new = _FIGURE.sub("", status) != _FIGURE.sub("", present) or model.written != present
        if not is_new and now_s - model.written_at_s < _WRITTEN_AGAIN_S:
            return
        meta = obj["metadata"]
        patch = Patch("merge", {"metadata": {"annotations": {STATUS: status}}})
        await self._context.api.patch(self._kind, meta["namespace"], meta["name"], patch)
        model.written, model.written_at_s = status, now_s


def _status(decision: ServingDecision, memory: ModelMemory) -> str:
    words = f"{decision.replicas} replicas: {decision.reason}"
    cold_s = memory.start.total_s()
    return f"{words}; a start takes {cold_s:.0f} s" if cold_s else words


def _age_s(now: datetime, since: datetime) -> float:
    return max((now - since).total_seconds(), 0.0)


def _pod(item: Item) -> ServingPod:
    return _pods.decode(item.data)


def _texts(obj: Obj) -> Mapping[str, str]:
    found: Mapping[str, str] = obj["metadata"].get("annotations") or {}
    return found


def _annotations(item: Item) -> Mapping[str, str]:
    return _texts(item.obj())


def _asked(item: Item) -> object:
    """What a pass depends on, besides what it reads anew each time."""
    obj = item.obj()
    asked = {name: text for name, text in _texts(obj).items() if name != STATUS}
    return asked, (obj.get("spec") or {}).get("replicas"), obj["metadata"].get("deletionTimestamp")


def serving_scaler(context: Context, kind: Kind, api: ScalingApi, metrics: ServerMetrics) -> Controller:
    return ServingScaler(context, kind, api, metrics)
