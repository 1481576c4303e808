"""What rules ask about pods with GPUs: resources that are GPUs, and containers of all sorts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from shoal.policy.advice import Obj
from shoal.policy.fields import dig, maps, string_keys
from shoal.policy.pod_templates import GPU, PodTemplateView

# Values of annotations that ask for a part of a GPU: more than none, and at most one.
_FRACTION = re.compile(r"0?[.]0*[1-9][0-9]*|1([.]0*)?")
_MEMORY = re.compile(r"0*[1-9][0-9]*")
FRACTION: Final = _FRACTION.pattern
MEMORY: Final = _MEMORY.pattern
"""For expressions of API servers."""


def is_gpu(resource: str) -> bool:
    """Whether it is a whole GPU, a MIG instance, or a share of either."""
    return resource == GPU or resource.startswith((f"{GPU}.", "nvidia.com/mig-"))


def all_containers(template: PodTemplateView) -> Iterator[tuple[str, Obj]]:
    """Also those that were added to a running pod."""
    yield from template.containers()
    for at, container in enumerate(maps(template.spec.get("ephemeralContainers"))):
        yield f"{template.path}.ephemeralContainers[{at}]", container


def gpu_amounts(container: Obj, field: str) -> dict[str, Any]:
    found = string_keys(dig(container, "resources", field))
    return {name: amount for name, amount in found.items() if is_gpu(name)}


def asks_gpus(template: PodTemplateView) -> bool:
    return any(
        str(amount) != "0"
        for _, container in all_containers(template)
        for field in ("limits", "requests")
        for amount in gpu_amounts(container, field).values()
    )


def has_devices(template: PodTemplateView) -> bool:
    """Whether it asks for GPUs or for a part of one. Claims do not count: the pod does not say what they claim, and a
    network card gives no right to GPUs."""
    fraction, memory = (template.annotations.get(name) for name in ("gpu-fraction", "gpu-memory"))
    is_part = isinstance(fraction, str) and _FRACTION.fullmatch(fraction)
    return asks_gpus(template) or bool(is_part) or (isinstance(memory, str) and bool(_MEMORY.fullmatch(memory)))
