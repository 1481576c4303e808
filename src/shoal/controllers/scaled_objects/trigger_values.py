"""Reads the triggers of one ScaledObject with their authentication, and their values."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

from shoal.api.pod_phases import TERMINAL_PHASES
from shoal.autoscale.scaled_objects.answers import AnswerError
from shoal.autoscale.scaled_objects.cron import CronError, CronWindow, cron_activity
from shoal.autoscale.scaled_objects.external_scaler import EXTERNAL_TYPES, external_triggers
from shoal.autoscale.scaled_objects.fallback import ScalerReading
from shoal.autoscale.scaled_objects.polling import PolledTrigger
from shoal.autoscale.scaled_objects.spec import Trigger
from shoal.autoscale.scaled_objects.trigger_metadata import LONGEST_TIMEOUT_S, TriggerError
from shoal.autoscale.scaled_objects.trigger_sources import ExternalScalerMetric, PodCount, ReadTrigger
from shoal.autoscale.scaled_objects.triggers import read_trigger
from shoal.client.context import Context
from shoal.client.item import Key
from shoal.client.kind import PODS
from shoal.client.owned_pods.pod_view import pod_view
from shoal.controllers.scaled_objects.sources.http import HttpSource
from shoal.controllers.scaled_objects.sources.values import FoundValue, SourceValues
from shoal.controllers.scaled_objects.trigger_parameters import FindPodSpec, TriggerParameters
from shoal.units.errors import ShoalError, TemporaryError


class TriggerValues:
    def __init__(self, context: Context, http: HttpSource) -> None:
        self._context = context
        self._sources = SourceValues(http, context.clock)
        self._pods = context.informers.of(PODS).index("namespace", lambda item: (item.namespace,))

    async def read(
        self, triggers: Sequence[Trigger], owner: Key, pod_spec: FindPodSpec, container: str = ""
    ) -> list[ReadTrigger]:
        """`container`: whose environment the triggers name. Raises TriggerError, or TemporaryError of a server that
        names its metrics itself."""
        parameters = TriggerParameters(self._context.api, owner[0], pod_spec, container)
        found: list[ReadTrigger] = []
        for index, trigger in enumerate(triggers):
            authentication = await parameters.authentication(trigger)
            environment = await parameters.environment(trigger)
            read = read_trigger(trigger, index, owner[0], authentication, environment)
            if trigger.type in EXTERNAL_TYPES and isinstance(read.source, ExternalScalerMetric):
                try:
                    targets = await self._sources.targets(read.source.scaler, owner)
                except TemporaryError as error:
                    # The size stays as it is: without its metrics the trigger asks for nothing.
                    raise TriggerError(error.what) from None
                found += external_triggers(trigger, read, owner[1], targets)
            else:
                self._sources.check(read.source)
                found.append(read)
        return found

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
            if isinstance(trigger.source, PodCount):
                value = FoundValue(float(self._count(trigger.source, namespace)))
            else:
                async with asyncio.timeout(LONGEST_TIMEOUT_S):
                    value = await self._sources.value(trigger.source, namespace, now)
        except TimeoutError:
            words = f"the server of the trigger did not answer in {LONGEST_TIMEOUT_S:g} s"
            return PolledTrigger(trigger, ScalerReading(error=words), False)
        except (AnswerError, TriggerError, ShoalError) as error:
            return PolledTrigger(trigger, ScalerReading(error=str(error)), False)
        reading = ScalerReading(round(max(value.value, 0.0) * 1000))
        return PolledTrigger(trigger, reading, value.is_active(trigger.activation))

    def _count(self, source: PodCount, namespace: str) -> int:
        pods = [pod_view(item) for item in self._pods[namespace]]
        chosen = [
            pod
            for pod in pods
            if source.selector.matches(pod.metadata.labels) and pod.status.phase not in TERMINAL_PHASES
        ]
        return len({pod.spec.node_name for pod in chosen} - {""}) if source.by_node else len(chosen)
