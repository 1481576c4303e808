"""Reads requests of single containers, where the sum over the pod is not enough: exclusive CPUs and amounts per
device."""

from __future__ import annotations

from shoal.api.container import Container
from shoal.api.pod import PodSpec
from shoal.api.resources import CPU, MEMORY
from shoal.engine.device_notation import GPU


def container_amounts(container: Container) -> dict[str, int]:
    """Name to amount, in whole units."""
    resources = container.resources
    return {name: quantity.value() for name, quantity in {**resources.limits, **resources.requests}.items()}


def pinned_milli(spec: PodSpec) -> int:
    """Cores that a static CPU manager pins beside the GPUs of a container, of the container with most of them.

    Only pods of the Guaranteed class get cores of their own, and only containers that ask for whole cores.
    """
    containers = (*spec.init_containers, *spec.containers)
    if not all(_is_guaranteed(container) for container in containers):
        return 0
    cores = [
        container.resources.limits[CPU].milli_value() for container in containers if GPU in container.resources.limits
    ]
    return max((milli for milli in cores if milli % 1000 == 0), default=0)


def _is_guaranteed(container: Container) -> bool:
    limits, requests = container.resources.limits, container.resources.requests
    return all(name in limits and requests.get(name, limits[name]) == limits[name] for name in (CPU, MEMORY))
