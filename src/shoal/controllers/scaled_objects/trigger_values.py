"""Reads the triggers of one ScaledObject with their authentication, and their values."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.autoscale.scaled_objects.answers import AnswerError, api_value, prometheus_value
from shoal.autoscale.scaled_objects.cron import CronError, CronWindow, cron_activity
from shoal.autoscale.scaled_objects.fallback import ScalerReading
from shoal.autoscale.scaled_objects.polling import PolledTrigger
from shoal.autoscale.scaled_objects.spec import ScaledObjectSpec, Trigger
from shoal.autoscale.scaled_objects.triggers import (
    ApiValue,
    PodCount,
    PrometheusQuery,
    ReadTrigger,
    RedisList,
    TriggerError,
    read_trigger,
)
from shoal.client.context import Context
from shoal.client.ecosystem_kinds import CLUSTER_TRIGGER_AUTHENTICATIONS, TRIGGER_AUTHENTICATIONS
from shoal.client.kind import CONFIG_MAPS, PODS, SECRETS, Kind
from shoal.client.owned_pods.pod_view import pod_view
from shoal.client.refusals import NotFoundError
from shoal.controllers.scaled_objects.http_source import HttpSource
from shoal.controllers.scaled_objects.redis_source import redis_length
from shoal.units.errors import ShoalError

_CLUSTER_NAMESPACE = "keda"
"""Of the Secrets that a ClusterTriggerAuthentication names."""
_NOT_SUPPORTED = ("podIdentity", "env", "hashiCorpVault", "azureKeyVault", "gcpSecretManager", "awsSecretManager")


class TriggerValues:
    def __init__(self, context: Context, http: HttpSource) -> None:
        self._context = context
        self._http = http
        self._pods = context.informers.of(PODS).index("namespace", lambda item: (item.namespace,))

    # -- settings ---------------------------------------------------------------------------------------------------

    async def read(self, spec: ScaledObjectSpec, namespace: str) -> list[ReadTrigger]:
        """Raises TriggerError."""
        return [
            read_trigger(trigger, index, namespace, await self._parameters(trigger, namespace))
            for index, trigger in enumerate(spec.triggers)
        ]

    async def _parameters(self, trigger: Trigger, namespace: str) -> dict[str, str]:
        reference = trigger.authentication_ref
        if reference is None:
            return {}
        is_cluster = reference.kind == "ClusterTriggerAuthentication"
        kind = CLUSTER_TRIGGER_AUTHENTICATIONS if is_cluster else TRIGGER_AUTHENTICATIONS
        try:
            found = (await self._context.api.get(kind, "" if is_cluster else namespace, reference.name)).obj()
        except NotFoundError:
            raise TriggerError(f"error getting {kind.name} {reference.name}: it does not exist") from None
        spec = found.get("spec") or {}
        for name in _NOT_SUPPORTED:
            if spec.get(name) and (name != "podIdentity" or spec[name].get("provider") not in ("", "none", None)):
                raise TriggerError(f"{kind.name} {reference.name}: {name} is not supported")
        where = _CLUSTER_NAMESPACE if is_cluster else namespace
        values: dict[str, str] = {}
        for source, key in ((SECRETS, "secretTargetRef"), (CONFIG_MAPS, "configMapTargetRef")):
            for one in spec.get(key) or ():
                values[one["parameter"]] = await self._value(source, where, one["name"], one["key"])
        return values

    async def _value(self, kind: Kind, namespace: str, name: str, key: str) -> str:
        try:
            data = (await self._context.api.get(kind, namespace, name)).obj().get("data") or {}
        except NotFoundError:
            raise TriggerError(f"{kind.name} {namespace}/{name} does not exist") from None
        if key not in data:
            raise TriggerError(f"{kind.name} {namespace}/{name} has no key {key}")
        if kind == CONFIG_MAPS:
            return str(data[key])
        try:
            return base64.b64decode(data[key]).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise TriggerError(f"key {key} of {kind.name} {namespace}/{name} is no text") from None

    # -- values -----------------------------------------------------------------------------------------------------

    async def poll(self, trigger: ReadTrigger, namespace: str, now: datetime) -> PolledTrigger:
        """Triggers that the autoscaler reads itself are active."""
        if trigger.source is None:
            return PolledTrigger(trigger, ScalerReading(), True)
        if isinstance(trigger.source, CronWindow):
            try:
                found = cron_activity(trigger.source, now)
            except CronError as error:
                return PolledTrigger(trigger, ScalerReading(error=str(error)), False)
            return PolledTrigger(trigger, ScalerReading(found.value * 1000), found.is_active)
        try:
            value = await self._value_of(trigger.source, namespace)
        except (AnswerError, ShoalError) as error:
            return PolledTrigger(trigger, ScalerReading(error=str(error)), False)
        return PolledTrigger(trigger, ScalerReading(round(max(value, 0.0) * 1000)), value > trigger.activation)

    async def _value_of(self, source: PodCount | PrometheusQuery | ApiValue | RedisList, namespace: str) -> float:
        if isinstance(source, PodCount):
            return float(self._count(source, namespace))
        if isinstance(source, RedisList):
            return float(await redis_length(source))
        body = await self._http.get(source.request)
        if isinstance(source, PrometheusQuery):
            return prometheus_value(body, ignores_null=source.ignores_null)
        return api_value(body, source.form, source.location)

    def _count(self, source: PodCount, namespace: str) -> int:
        pods = [pod_view(item) for item in self._pods[namespace]]
        chosen = [
            pod
            for pod in pods
            if source.selector.matches(pod.metadata.labels) and pod.status.phase not in TERMINAL_PHASES
        ]
        return len({pod.spec.node_name for pod in chosen} - {""}) if source.by_node else len(chosen)
