"""Reconciles ScaledObjects: polls the triggers, keeps the autoscaler, activates and deactivates the target.

A ScaledObject whose state is uncertain keeps its size: invalid triggers, a target that cannot be read and failing
triggers are conditions and Events, and nothing is scaled by them. The values that the autoscaler asks for are polled
anew when it asks (`metric_source.py`). Where KEDA itself runs, nothing is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from shoal.api.conditions import Condition
from shoal.autoscale.scaled_objects.activation import (
    ActivationDecision,
    Target,
    TriggerState,
    activation,
    autoscaler_health,
)
from shoal.autoscale.scaled_objects.admission import NamedScaledObject, admitted
from shoal.autoscale.scaled_objects.annotations import is_paused, paused_replicas
from shoal.autoscale.scaled_objects.autoscaler_object import autoscaler_object
from shoal.autoscale.scaled_objects.polling import Polled
from shoal.autoscale.scaled_objects.spec import (
    USUAL_POLLING_S,
    ScaledObjectSpec,
    ScaledObjectStatus,
)
from shoal.autoscale.scaled_objects.trigger_metadata import TriggerError
from shoal.autoscale.scaled_objects.trigger_sources import ReadTrigger
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import SCALED_OBJECTS
from shoal.client.item import Key, Obj
from shoal.client.kind import AUTOSCALERS, PODS, Kind
from shoal.client.port import SilentGroupError
from shoal.client.refusals import NotFoundError
from shoal.client.scaling import ScalingApi
from shoal.controllers.scaled_objects.keda_objects import IsRunning, KedaObjects
from shoal.controllers.scaled_objects.metric_source import MetricSource
from shoal.controllers.scaled_objects.namespace_facts import NamespaceReader
from shoal.units.errors import ConflictError, ShoalError, TemporaryError, UserError

FINALIZER = "finalizer.keda.sh"
_FAILED = "ScaledObjectCheckFailed"


class _Read(Struct, frozen=True):
    """One ScaledObject that was read."""

    key: Key
    obj: Obj
    spec: ScaledObjectSpec
    status: ScaledObjectStatus
    annotations: Mapping[str, str]
    now: datetime


class ScaledObjects:
    def __init__(self, context: Context, api: ScalingApi, source: MetricSource, keda_runs: IsRunning) -> None:
        self.name = context.name
        self._context = context
        self._api = api
        self._source = source
        self._autoscalers = context.informers.of(AUTOSCALERS)
        self._facts = NamespaceReader(context)
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._objects = KedaObjects(context, SCALED_OBJECTS, keda_runs, self._reconcile)
        self._objects.need(AUTOSCALERS, PODS)
        self._objects.on_end(source.forget)

    async def run(self) -> None:
        await self._objects.run()

    async def _reconcile(self, key: Key, obj: Obj) -> float | None:
        try:
            spec = msgspec.convert(obj.get("spec") or {}, ScaledObjectSpec)
            status = msgspec.convert(obj.get("status") or {}, ScaledObjectStatus)
        except msgspec.ValidationError as error:
            await self._objects.write(obj, {}, [Condition("Ready", "False", _FAILED, str(error))])
            return None
        annotations = obj["metadata"].get("annotations") or {}
        read = _Read(key, obj, spec, status, annotations, self._context.clock.now().replace(microsecond=0))
        if "deletionTimestamp" in obj["metadata"]:
            await self._ended(read)
            return None
        if FINALIZER not in (obj["metadata"].get("finalizers") or ()):
            obj["metadata"].setdefault("finalizers", []).append(FINALIZER)
            await self._context.api.update(SCALED_OBJECTS, obj)
            return 0.0
        await self._kept(read)
        return float(USUAL_POLLING_S if spec.polling_interval is None else max(spec.polling_interval, 1))

    # -- one pass ---------------------------------------------------------------------------------------------------

    async def _kept(self, read: _Read) -> None:
        try:
            triggers = await self._checked(read)
            kind = await self._kind(read.spec)
            scale = await self._api.scale(kind, read.key[0], read.spec.scale_target_ref.name)
            paused_at = paused_replicas(read.annotations)
        except TemporaryError:
            raise
        except (TriggerError, ShoalError) as error:
            words = error.what if isinstance(error, ShoalError) else str(error)
            self._objects.event(read.obj, _FAILED, words, is_warning=True)
            await self._objects.write(read.obj, {}, [Condition("Ready", "False", _FAILED, words)])
            return
        size = (scale.get("spec") or {}).get("replicas") or 0
        fields: Obj = {"scaleTargetKind": f"{kind.api_version}.{kind.name}", "hpaName": ""}
        if read.status.original_replica_count is None:
            fields["originalReplicaCount"] = size
        if is_paused(read.annotations):
            await self._paused(read, kind, scale, paused_at, fields)
            return
        autoscaler = autoscaler_object(read.obj, read.spec, triggers)
        fields["hpaName"] = autoscaler["metadata"]["name"]
        fields["externalMetricNames"] = [one.name for one in triggers if one.name]
        fields["triggersTypes"] = ",".join(dict.fromkeys(one.type for one in read.spec.triggers))
        # The autoscaler asks for its metrics as soon as it is there.
        polled = await self._source.polled(read.key, read.spec, triggers, scale, read.now)
        await self._autoscaler(read, autoscaler)
        await self._scaled(read, kind, scale, polled, fields)

    async def _checked(self, read: _Read) -> list[ReadTrigger]:
        """Raises UserError or TriggerError."""
        named = NamedScaledObject(read.key[1], read.spec, read.annotations)
        verdict = admitted(named, await self._facts.facts(read.key, read.spec))
        if verdict.message:
            raise UserError(verdict.message)
        target = read.spec.scale_target_ref

        async def pod_spec() -> Obj:
            found = (await self._context.api.get(await self._kind(read.spec), read.key[0], target.name)).obj()
            return ((found.get("spec") or {}).get("template") or {}).get("spec") or {}

        container = target.env_source_container_name
        return await self._source.values.read(read.spec.triggers, read.key, pod_spec, container)

    async def _scaled(self, read: _Read, kind: Kind, scale: Obj, polled: Polled, fields: Obj) -> None:
        created = datetime.fromisoformat(read.obj["metadata"]["creationTimestamp"])
        size = (scale.get("spec") or {}).get("replicas") or 0
        state = TriggerState(polled.is_active, polled.has_error)
        target = Target(size, created, read.status.last_active_time)
        decision = activation(read.spec, read.annotations, state, target, read.now)
        conditions = list(decision.conditions)
        if decision.replicas is not None and decision.replicas != size:
            fault = await self._rescaled(read, kind, scale, decision, polled.active)
            if fault:
                conditions = [one for one in conditions if one.type != "Ready"]
                conditions.append(Condition("Ready", "False", "ScaleTargetUpdateFailed", fault))
                decision = ActivationDecision(tuple(conditions))
        if decision.notes_activity:
            fields["lastActiveTime"] = self._context.clock.text()
        if polled.has_fallback is not None:
            conditions.append(_fallback(polled.has_fallback))
        conditions.append(Condition("Paused", "False", "ScaledObjectUnpaused", "ScaledObject is unpaused"))
        for name, words in polled.errors.items():
            self._objects.event(read.obj, "KEDAScalerFailed", f"{name}: {words}", is_warning=True)
        if (health := self._health(read.key[0], fields["hpaName"])) is not None:
            conditions.append(health)
        fields["health"] = {name: msgspec.to_builtins(one) for name, one in polled.health.items()}
        await self._objects.write(read.obj, fields, conditions)

    async def _rescaled(
        self, read: _Read, kind: Kind, scale: Obj, decision: ActivationDecision, active: Sequence[str]
    ) -> str:
        """Why the size could not be written, if so."""
        before, name = (scale.get("spec") or {}).get("replicas") or 0, read.spec.scale_target_ref.name
        what = f"{kind.api_version}.{kind.name} {read.key[0]}/{name} from {before} to {decision.replicas}"
        try:
            await self._api.rescale(kind, {**scale, "spec": {"replicas": decision.replicas}})
        except ConflictError:
            # The target was changed since it was read: the next pass decides by what it is now.
            raise
        except ShoalError as error:
            reason = f"{decision.reason or 'KEDAScaleTargetActivated'}"
            failed = reason.replace("Deactivated", "DeactivationFailed").replace("Activated", "ActivationFailed")
            self._objects.event(read.obj, failed, f"Failed to scale {what}: {error}", is_warning=True)
            return str(error)
        if decision.reason == "KEDAScaleTargetActivated":
            why = ";".join(active) or "forced activation annotation"
            self._objects.event(read.obj, decision.reason, f"Scaled {what}, triggered by {why}")
        elif decision.reason:
            self._objects.event(read.obj, decision.reason, f"Deactivated {what}")
        return ""

    async def _paused(self, read: _Read, kind: Kind, scale: Obj, size: int | None, fields: Obj) -> None:
        """Without an autoscaler, at the size of the annotation or the present one."""
        await self._without_autoscaler(read)
        if size is not None and size != ((scale.get("spec") or {}).get("replicas") or 0):
            await self._api.rescale(kind, {**scale, "spec": {"replicas": size}})
        fields["pausedReplicaCount"] = size
        paused = Condition("Paused", "True", "ScaledObjectPaused", "ScaledObject is paused")
        await self._objects.write(read.obj, fields, [paused])

    # -- the autoscaler ---------------------------------------------------------------------------------------------

    async def _autoscaler(self, read: _Read, wanted: Obj) -> None:
        """Made, or changed where it differs; one with a former name is deleted."""
        meta = wanted["metadata"]
        if read.status.hpa_name and read.status.hpa_name != meta["name"]:
            await self._without_autoscaler(read)
        found = self._autoscalers.get(read.key[0], meta["name"])
        if found is None:
            await self._context.api.create(AUTOSCALERS, wanted)
            return
        present = found.obj()
        owners = [(one["kind"], one["name"]) for one in present["metadata"].get("ownerReferences") or ()]
        if (SCALED_OBJECTS.name, read.key[1]) in owners and _covers(present, wanted):
            return
        kept = present["metadata"]
        merged = {**kept, **{key: meta[key] for key in ("labels", "annotations", "ownerReferences")}}
        await self._context.api.update(AUTOSCALERS, {**wanted, "metadata": merged})

    async def _without_autoscaler(self, read: _Read) -> None:
        name = read.status.hpa_name or read.spec.autoscaler_name(read.key[1])
        if self._autoscalers.get(read.key[0], name) is None:
            return
        try:
            await self._context.api.delete(AUTOSCALERS, read.key[0], name)
        except NotFoundError:
            return

    def _health(self, namespace: str, name: str) -> Condition | None:
        item = self._autoscalers.get(namespace, name)
        if item is None:
            return None
        written = (item.obj().get("status") or {}).get("conditions") or ()
        return autoscaler_health(msgspec.convert(written, tuple[Condition, ...]))

    # -- the end ----------------------------------------------------------------------------------------------------

    async def _ended(self, read: _Read) -> None:
        """The autoscaler is deleted with its owner; the first size is restored if that is asked for."""
        meta = read.obj["metadata"]
        if FINALIZER not in (meta.get("finalizers") or ()):
            return
        advanced, size = read.spec.advanced, read.status.original_replica_count
        if advanced is not None and advanced.restore_to_original_replica_count and size is not None:
            try:
                kind = await self._kind(read.spec)
                scale = await self._api.scale(kind, read.key[0], read.spec.scale_target_ref.name)
                await self._api.rescale(kind, {**scale, "spec": {"replicas": size}})
            except (NotFoundError, UserError):
                # The target is gone, and so is its size.
                pass
        meta["finalizers"] = [one for one in meta["finalizers"] if one != FINALIZER]
        await self._context.api.update(SCALED_OBJECTS, read.obj)

    # -- the target -------------------------------------------------------------------------------------------------

    async def _kind(self, spec: ScaledObjectSpec) -> Kind:
        group_version, _, name = spec.scale_target_ref.group_version_kind().rpartition(".")
        group = group_version.partition("/")[0]
        if (group, name) not in self._kinds:
            try:
                served = await self._context.api.served()
            except SilentGroupError as error:
                served = error.served
            self._kinds = {(one.kind.group, one.kind.name): one.kind for one in served}
        if (group, name) not in self._kinds:
            raise UserError(f'no matches for kind "{name}" in group "{group}"')
        return self._kinds[group, name]


def _fallback(is_on: bool) -> Condition:
    if is_on:
        return Condition(
            "Fallback", "True", "FallbackExists", "At least one trigger is falling back on this scaled object"
        )
    return Condition("Fallback", "False", "NoFallbackFound", "No fallbacks are active on this scaled object")


def _covers(present: Obj, wanted: Obj) -> bool:
    """Whether the autoscaler has all that is wanted; the server has filled in more."""
    spec, meta = present["spec"], present["metadata"]
    same = all(spec.get(key) == value for key, value in wanted["spec"].items() if key != "behavior")
    behavior, present_behavior = wanted["spec"].get("behavior"), spec.get("behavior")
    if (behavior is None) != (present_behavior is None):
        return False
    for direction, rules in (behavior or {}).items():
        same &= (rules or {}).items() <= ((present_behavior or {}).get(direction) or {}).items()
    return same and all((wanted["metadata"][key]).items() <= (meta.get(key) or {}).items() for key in ("labels",))


def scaled_object_controller(
    context: Context, api: ScalingApi, source: MetricSource, keda_runs: IsRunning
) -> Controller:
    return ScaledObjects(context, api, source, keda_runs)
