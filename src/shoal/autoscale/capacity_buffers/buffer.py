"""Represents a CapacityBuffer: room for how many pods of which template, and at which times.

Its own annotations of Shoal limit it to the hours between two schedules (`shoal.dev/buffer-start`,
`shoal.dev/buffer-end` and `shoal.dev/buffer-time-zone`), or to what `shoal.dev/buffer-forecast` predicts beyond the
present demand.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from shoal.api.meta import DEFAULT_NAMESPACE
from shoal.api.pod import Pod
from shoal.api.resources import amounts
from shoal.api.wire import to_quantity
from shoal.autoscale.capacity_buffers.forecast_text import FORECAST, read_forecast, room_of
from shoal.autoscale.provisioning_requests.pods import pods_of_template
from shoal.autoscale.scaled_objects.cron import CronError, cron_activity, read_cron
from shoal.engine.from_api import ask_of_pod
from shoal.units.errors import UserError, Where

START: Final = "shoal.dev/buffer-start"
END: Final = "shoal.dev/buffer-end"
TIME_ZONE: Final = "shoal.dev/buffer-time-zone"
_MOST_PODS: Final = 1000
_STRATEGY: Final = "buffer.x-k8s.io/active-capacity"

Raw = Mapping[str, Any]


class CapacityBuffer(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str
    template: str
    """The PodTemplate; empty if the buffer refers to something else."""
    replicas: int | None
    limits: Mapping[str, str]
    strategy: str
    annotations: Mapping[str, str] = {}

    @property
    def where(self) -> Where:
        return Where(obj=f"CapacityBuffer {self.namespace}/{self.name}")


def buffer_of(raw: Raw) -> CapacityBuffer:
    meta, spec = raw.get("metadata") or {}, raw.get("spec") or {}
    return CapacityBuffer(
        namespace=str(meta.get("namespace") or DEFAULT_NAMESPACE),
        name=str(meta.get("name", "")),
        uid=str(meta.get("uid", "")),
        template=str((spec.get("podTemplateRef") or {}).get("name", "")),
        replicas=spec.get("replicas"),
        limits=spec.get("limits") or {},
        strategy=str(spec.get("provisioningStrategy") or _STRATEGY),
        annotations=meta.get("annotations") or {},
    )


def buffer_pods(
    buffer: CapacityBuffer, template: Raw | None, now: datetime, demand_gpus: float = 0.0
) -> tuple[Pod, ...]:
    """The pods for which there has to be room now. `template`: that of its PodTemplate; `demand_gpus`: of the
    namespace, for a buffer with a forecast. Raises UserError if the buffer cannot be kept."""
    where = buffer.where
    if buffer.strategy != _STRATEGY:
        what = f"the strategy {buffer.strategy} is not supported"
        raise UserError(what, where=where.below("spec.provisioningStrategy"), fix=f"use {_STRATEGY}")
    if not buffer.template:
        fix = "describe the pods by a PodTemplate, and set replicas or limits"
        raise UserError("no PodTemplate is named", where=where.below("spec.podTemplateRef"), fix=fix)
    if template is None:
        what = f"PodTemplate {buffer.template} not found"
        raise UserError(what, where=where.below("spec.podTemplateRef"), fix="create it, or correct the name")
    if buffer.replicas is None and not buffer.limits:
        raise UserError("neither replicas nor limits are set", where=where.below("spec"), fix="set one of them")
    if not _is_due(buffer, now):
        return ()
    one = pods_of_template(template, buffer.namespace, [f"{buffer.name}-buffer-0"], where)[0]
    bounds = (buffer.replicas, _within_limits(buffer, one), _predicted(buffer, one, now, demand_gpus), _MOST_PODS)
    count = min([each for each in bounds if each is not None])
    return pods_of_template(template, buffer.namespace, [f"{buffer.name}-buffer-{n}" for n in range(count)], where)


def _is_due(buffer: CapacityBuffer, now: datetime) -> bool:
    notes = buffer.annotations
    if START not in notes and END not in notes:
        return True
    given = {"start": notes.get(START, ""), "end": notes.get(END, ""), "timezone": notes.get(TIME_ZONE, "UTC")}
    try:
        return cron_activity(read_cron({**given, "desiredReplicas": "1"}), now).is_active
    except CronError as error:
        fix = f"set {START} and {END} to schedules of cron, and {TIME_ZONE} to a time zone such as Europe/Berlin"
        raise UserError(str(error), where=buffer.where.below("metadata.annotations"), fix=fix) from error


def _predicted(buffer: CapacityBuffer, pod: Pod, now: datetime, demand_gpus: float) -> int | None:
    """How many pods the predicted demand has beyond the present one; None without a forecast."""
    if FORECAST not in buffer.annotations:
        return None
    where = buffer.where.below(f"metadata.annotations[{FORECAST}]")
    gpus = gpus_of(pod)
    if not gpus:
        fix = "name GPUs in the limits of its containers, or remove the annotation"
        raise UserError(f"the pods of PodTemplate {buffer.template} ask for no GPUs", where=where, fix=fix)
    return room_of(read_forecast(buffer.annotations[FORECAST], where), now, demand_gpus, gpus, where)


def _within_limits(buffer: CapacityBuffer, pod: Pod) -> int | None:
    if not buffer.limits:
        return None
    wanted = dict(ask_of_pod(pod).requests) | _devices(pod)
    limits = amounts({name: to_quantity(str(text)) for name, text in buffer.limits.items()})
    counts = [limits[name] // wanted[name] for name in limits if wanted.get(name)]
    return min(counts, default=0)


def gpus_of(pod: Pod) -> int:
    """By the limits of its containers."""
    return sum(amount for name, amount in _devices(pod).items() if name.endswith("/gpu"))


def _devices(pod: Pod) -> dict[str, int]:
    """Extended resources, which requests for devices do not count."""
    found: dict[str, int] = {}
    for container in pod.spec.containers:
        for name, amount in amounts(container.resources.limits).items():
            if "/" in name:
                found[name] = found.get(name, 0) + amount
    return found
