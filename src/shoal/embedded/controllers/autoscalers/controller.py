"""Reconciles HorizontalPodAutoscalers every fifteen seconds; the decisions are in `autoscale/replicas/`.

What an autoscaler remembers (recommendations, its own changes of the size) is kept in memory only, as in Kubernetes:
after a restart the current size is the first recommendation, so that nothing shrinks before the window has passed.
"""

from __future__ import annotations

import msgspec

from shoal.api.pod import Pod
from shoal.api.selector_text import parse_label_selector
from shoal.api.selectors import Selector
from shoal.api.wire import ApiStruct, dec_hook
from shoal.autoscale.replicas.history import AutoscalerHistory
from shoal.autoscale.replicas.metrics import Status
from shoal.autoscale.replicas.passes import PassResult, ScaleDecision, ScaleTarget, TargetFacts
from shoal.autoscale.replicas.reconcile import api_version_fault, concluded, decide, needs_metrics, without_scale
from shoal.autoscale.replicas.spec import Autoscaler, AutoscalerSettings, AutoscalerSpec, AutoscalerStatus
from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import AUTOSCALERS, PODS, Kind
from shoal.client.loop import Loop
from shoal.client.port import SilentGroupError
from shoal.client.scaling import ScalingApi
from shoal.embedded.controllers.autoscalers.metrics_apis import MetricsApis
from shoal.units.errors import ShoalError, UserError

SYNC_S = 15.0
_pods = msgspec.json.Decoder(Pod, dec_hook=dec_hook)


class _AutoscalerObject(ApiStruct, frozen=True):
    spec: AutoscalerSpec
    status: AutoscalerStatus = AutoscalerStatus()


_decoder = msgspec.json.Decoder(_AutoscalerObject, dec_hook=dec_hook)


class Autoscalers:
    def __init__(self, context: Context, api: ScalingApi, settings: AutoscalerSettings) -> None:
        self.name = context.name
        self._context = context
        self._api = api
        self._settings = settings
        self._items = context.informers.of(AUTOSCALERS)
        self._pods = context.informers.of(PODS).index("namespace", lambda item: (item.namespace,))
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._metrics = MetricsApis(api, lambda group, name: self._kinds.get((group, name)))
        self._histories: dict[Key, AutoscalerHistory] = {}
        self._selectors: dict[Key, Selector] = {}
        """Of the targets of all autoscalers."""
        self._loop = Loop(context, self.reconcile)
        self._loop.need(AUTOSCALERS, PODS)
        self._items.on_change(self._changed)

    async def run(self) -> None:
        await self._loop.run()

    def _changed(self, before: Item | None, after: Item | None) -> None:
        """A change of the status alone, which is our own, is not a reason for a pass."""
        item = after or before
        if item is None:
            return
        if before is None or after is None or before.obj().get("spec") != after.obj().get("spec"):
            self._loop.wake(item.key)

    async def reconcile(self, key: Key) -> float | None:
        item = self._items.get(*key)
        if item is None:
            self._histories.pop(key, None)
            self._selectors.pop(key, None)
            return None
        read = _decoder.decode(item.data)
        autoscaler = Autoscaler(item.namespace, item.name, read.spec, read.status)
        end = await self._pass(autoscaler, key)
        self._histories[key] = end.history
        obj = {**item.obj(), "kind": AUTOSCALERS.name, "apiVersion": AUTOSCALERS.api_version}
        for event in end.events:
            self._context.events.record(
                obj, event.reason, event.message, type_="Warning" if event.kind == "Warning" else "Normal"
            )
        status = _written(end.status)
        if status != _written(read.status):
            await self._context.api.update(AUTOSCALERS, {**obj, "status": status}, "status")
        return SYNC_S

    async def _pass(self, autoscaler: Autoscaler, key: Key) -> PassResult:
        now = self._context.clock.now().replace(microsecond=0)
        history = self._histories.get(key, AutoscalerHistory())
        target = autoscaler.spec.scale_target_ref
        if fault := api_version_fault(target.api_version):
            failed = without_scale(autoscaler, history, fault, now, is_spec_error=True)
            return concluded(autoscaler, failed, self._settings, now)
        try:
            kind = await self._kind(target.api_version.rpartition("/")[0], target.kind)
            scale = await self._api.scale(kind, autoscaler.namespace, target.name)
        except ShoalError as error:
            failed = without_scale(autoscaler, history, str(error), now)
            return concluded(autoscaler, failed, self._settings, now)
        decision = decide(autoscaler, await self._facts(autoscaler, scale, key), history, self._settings, now)
        fault = await self._rescaled(kind, scale, decision)
        return concluded(autoscaler, decision, self._settings, now, fault)

    async def _facts(self, autoscaler: Autoscaler, scale: Obj, key: Key) -> TargetFacts:
        status = scale.get("status") or {}
        selector = status.get("selector") or ""
        try:
            self._selectors[key] = parse_label_selector(selector) if selector else Selector.NOTHING
        except UserError:
            self._selectors.pop(key, None)
        target = ScaleTarget((scale.get("spec") or {}).get("replicas") or 0, status.get("replicas") or 0, selector)
        if not needs_metrics(autoscaler, target.replicas, self._settings):
            return TargetFacts(target)
        return TargetFacts(
            target,
            [_pods.decode(item.data) for item in self._pods[autoscaler.namespace]],
            await self._metrics.readings(autoscaler.spec.metrics, autoscaler.namespace, selector),
            {
                name: one
                for (namespace, name), one in self._selectors.items()
                if namespace == autoscaler.namespace and name != autoscaler.name
            },
        )

    async def _rescaled(self, kind: Kind, scale: Obj, decision: ScaleDecision) -> str:
        """Why the new size could not be written; empty if it was, or if there is none."""
        if not decision.rescales:
            return ""
        try:
            await self._api.rescale(kind, {**scale, "spec": {"replicas": decision.desired}})
        except ShoalError as error:
            return str(error)
        return ""

    async def _kind(self, group: str, name: str) -> Kind:
        if (group, name) not in self._kinds:
            try:
                served = await self._context.api.served()
            except SilentGroupError as error:
                served = error.served
            self._kinds = {(one.kind.group, one.kind.name): one.kind for one in served}
        kind = self._kinds.get((group, name))
        if kind is None:
            raise UserError(f'no matches for kind "{name}" in group "{group}"')
        return kind


def _written(status: AutoscalerStatus) -> Status:
    """Zeros are left out where Kubernetes leaves them out, and a list without metrics is null."""
    found: Status = msgspec.to_builtins(status)
    found["desiredReplicas"] = status.desired_replicas
    found["currentMetrics"] = list(status.current_metrics) if status.current_metrics else None
    found["conditions"] = [
        {"type": one.type, "status": one.status, "reason": one.reason, "message": one.message}
        | ({} if one.last_transition_time is None else {"lastTransitionTime": _text(one.last_transition_time)})
        for one in status.conditions
    ]
    if not found["conditions"]:
        del found["conditions"]
    return found


def _text(moment: object) -> str:
    text: str = msgspec.to_builtins(moment)
    return text


def autoscaler_controller(context: Context, api: ScalingApi, settings: AutoscalerSettings | None = None) -> Controller:
    return Autoscalers(context, api, settings or AutoscalerSettings())
