"""Converts the health of a node's GPUs to what a cluster shows: a condition, a taint and Events.

The condition is `GPUHealthy`: False if a GPU is unhealthy, with the GPUs and the advice in its message. The taint is
set only where a policy asks for it, because the device plugin already withdraws an unhealthy GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from shoal.devices.device_health import DeviceHealth, HealthCause
from shoal.units.errors import UserError, Where

CONDITION = "GPUHealthy"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MOST_MESSAGE = 1000
When = Literal["any", "all"]


class HealthTaint(msgspec.Struct, frozen=True):
    key: str
    value: str
    effect: str
    when: When = "any"
    """Whether one unhealthy GPU suffices."""

    def to_api(self) -> dict[str, str]:
        return {"key": self.key, "value": self.value, "effect": self.effect}


class HealthChange(msgspec.Struct, frozen=True):
    """A cause that appeared on a GPU, or all causes that ended."""

    gpu: DeviceHealth
    cause: HealthCause | None
    """None: the GPU has recovered."""

    @property
    def reason(self) -> str:
        if self.cause is None:
            return "GPURecovered"
        return "GPUUnhealthy" if self.cause.is_unhealthy else "GPUWarning"

    @property
    def message(self) -> str:
        gpu = f"GPU {self.gpu.index} ({self.gpu.uuid})"
        if self.cause is None:
            return f"{gpu} is healthy again"
        return f"{gpu}: {self.cause.message}; {self.cause.advice}"


def condition_of(gpus: Sequence[DeviceHealth]) -> tuple[bool, str, str]:
    """Status, reason and message of the condition `GPUHealthy`."""
    unhealthy = [one for one in gpus if not one.is_healthy]
    if not unhealthy:
        warnings = sum(bool(one.causes) for one in gpus)
        also = f"; {warnings} with warnings" if warnings else ""
        return True, "GPUsHealthy", f"{len(gpus)} GPUs are healthy{also}"
    words = [
        f"GPU {one.index} ({one.uuid}): " + ", ".join(cause.message for cause in one.causes if cause.is_unhealthy)
        for one in unhealthy
    ]
    message = f"{len(unhealthy)} of {len(gpus)} GPUs are unhealthy: {'; '.join(words)}"
    return False, "GPUsUnhealthy", message[:_MOST_MESSAGE]


def health_verdict(gpus: Sequence[DeviceHealth]) -> tuple[str, str, str, str]:
    """Type, status, reason and message of the condition."""
    is_healthy, reason, message = condition_of(gpus)
    return CONDITION, "True" if is_healthy else "False", reason, message


def is_tainted(gpus: Sequence[DeviceHealth], taint: HealthTaint) -> bool:
    unhealthy = sum(not one.is_healthy for one in gpus)
    return bool(gpus) and (unhealthy == len(gpus) if taint.when == "all" else unhealthy > 0)


def changes(before: Mapping[str, DeviceHealth], now: Sequence[DeviceHealth]) -> tuple[HealthChange, ...]:
    """What an operator has to know: new causes, and GPUs that became healthy."""
    found: list[HealthChange] = []
    for gpu in now:
        former = before.get(gpu.uuid) or DeviceHealth(gpu.index, gpu.uuid)
        codes = {cause.code for cause in former.causes}
        found += [HealthChange(gpu, cause) for cause in gpu.causes if cause.code not in codes]
        if gpu.is_healthy and not former.is_healthy:
            found.append(HealthChange(gpu, None))
    return tuple(found)


def parse_taint(text: str, when: When = "any") -> HealthTaint:
    """`gpu-health=failed:NoSchedule`; the value may be absent."""
    name, _, effect = text.rpartition(":")
    key, _, value = name.partition("=")
    if not key or effect not in _EFFECTS:
        raise UserError(
            f'"{text}" is not a taint',
            where=Where(path="--health-taint"),
            fix=f"such as gpu-health=failed:NoSchedule, with an effect of {', '.join(_EFFECTS)}",
        )
    return HealthTaint(key, value, effect, when)
