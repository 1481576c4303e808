"""GPUs that a pod uses without a request for `nvidia.com/gpu`: by annotation, or by memory and cores alone.

Each device of which a pod uses a part counts as one against `requests.nvidia.com/gpu`. The part keeps the device from
pods that ask for whole GPUs, and a quota on extended resources counts whole numbers only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.cluster.reading import Obj

_GPU = "nvidia.com/gpu"
_FRACTIONS = ("gpu-fraction", "gpu-memory")
_DEVICES = "gpu-fraction-num-devices"
_PARTS = ("nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores")
_MOST_DIGITS = 9


def devices_by_other_names(pod: Obj) -> int:
    """How many devices, beside those that the pod requests as `nvidia.com/gpu`."""
    annotations: Mapping[str, Any] = pod["metadata"].get("annotations") or {}
    if any(name in annotations for name in _FRACTIONS):
        return _number(str(annotations.get(_DEVICES, "1")))
    return sum(1 for amounts in _amounts(pod["spec"]) if _GPU not in amounts and any(p in amounts for p in _PARTS))


def _number(text: str) -> int:
    """What is no number is refused by the scheduler; until then it counts as one device."""
    text = text.strip()
    return max(int(text), 1) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else 1


def _amounts(spec: Obj) -> Iterator[Mapping[str, Any]]:
    for container in spec.get("containers") or ():
        resources = container.get("resources") or {}
        yield {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
