"""GPUs that a pod uses without a request for `nvidia.com/gpu`: by annotation, or by memory and cores alone.

Each device of which a pod uses a part counts as one against `requests.nvidia.com/gpu`. The part keeps the device from
pods that ask for whole GPUs, and a quota on extended resources counts whole numbers only. Parts of containers are added
up as requests are: side by side, init containers one after the other, sidecars beside what starts after them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.policy.admission.pod_resources import Obj
from shoal.units.quantity import ZERO, Quantity

_GPU = "nvidia.com/gpu"
_FRACTIONS = ("gpu-fraction", "gpu-memory")
_DEVICES = "gpu-fraction-num-devices"
_PARTS = ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores")
_MOST_DIGITS = 10


def devices_by_annotation(pod: Obj) -> int:
    annotations: Mapping[str, Any] = pod["metadata"].get("annotations") or {}
    if any(name in annotations for name in _FRACTIONS):
        return _number(str(annotations.get(_DEVICES, "1")))
    return 0


def with_parts_as_gpus(spec: Obj) -> Obj:
    """The spec as if each container that asks for a part of a device, and for no whole one, asked for one device."""
    changed: Obj = {}
    for place in ("containers", "initContainers"):
        containers = spec.get(place) or ()
        if any(_asks_for_a_part(container) for container in containers):
            changed[place] = [_with_a_gpu(one) if _asks_for_a_part(one) else one for one in containers]
    return {**spec, **changed} if changed else spec


def _number(text: str) -> int:
    """What is no number is refused by the scheduler; until then it counts as one device."""
    text = text.strip()
    return max(int(text), 1) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else 1


def _asks_for_a_part(container: Obj) -> bool:
    resources = container.get("resources")
    if not resources:
        return False
    amounts = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    if not any(_is_more_than_none(amounts.get(name)) for name in _PARTS):
        return False
    return not _is_more_than_none(amounts.get(_GPU))


def _is_more_than_none(amount: object) -> bool:
    return amount is not None and Quantity.parse(str(amount)) > ZERO


def _with_a_gpu(container: Obj) -> Obj:
    resources = container["resources"]
    return {**container, "resources": {**resources, "requests": {**(resources.get("requests") or {}), _GPU: "1"}}}
