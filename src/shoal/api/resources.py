"""Sums the resources that a pod takes from a node, in whole numbers: milli-cores for cpu, units (bytes, devices) for
others.

The rule is the API server's defaulting followed by the scheduler's sum. Every figure is first rounded up to
a thousandth; a limit without a request is a request. Main containers and sidecars run together and add up.
An init container runs beside the sidecars started before it, so each resource is the larger of the steady
sum and the highest moment of the start. What the pod as a whole requests replaces the sum, and the
runtime's overhead comes on top.

Left out: figures of a resize in progress, which live in the status of pods that already run.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.api.container import Container, Resources
from shoal.api.pod import PodSpec
from shoal.api.wire import Quantities

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGEPAGES_PREFIX = "hugepages-"

# Scores see a container that asks for nothing as one that asks for this (in thousandths), or else a node full of
# modest pods would look empty. Filters do not.
SCORING_DEFAULTS: Mapping[str, int] = {CPU: 100, MEMORY: 200 * 2**20 * 1000}

_NONE: Mapping[str, int] = {}

Milli = dict[str, int]


def effective_requests(spec: PodSpec, missing: Mapping[str, int] = _NONE) -> dict[str, int]:
    """Name to amount, sorted by name, zeros left out. `missing` replaces what a container leaves open."""
    total = _containers(spec, missing)
    if spec.resources is not None:
        asked = _containers(spec, _NONE) if missing else total
        total.update(_pod_level(spec.resources, asked))
    _add(total, _milli(spec.overhead))
    return _units(total)


def amounts(quantities: Quantities) -> dict[str, int]:
    """The same units for what a node has; zeros stay, for a node may say that it has none."""
    return {name: _unit(name, milli) for name, milli in sorted(_milli(quantities).items())}


def is_extended(name: str) -> bool:
    """Resources Kubernetes itself knows nothing about, such as nvidia.com/gpu: counted, never shared."""
    return not is_native(name) and not name.startswith("requests.")


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def can_overcommit(name: str) -> bool:
    """Whether a limit above the request makes sense; devices and huge pages are given or not."""
    return is_native(name) and not name.startswith(HUGEPAGES_PREFIX)


def is_pod_level(name: str) -> bool:
    return name in {CPU, MEMORY} or name.startswith(HUGEPAGES_PREFIX)


def _containers(spec: PodSpec, missing: Mapping[str, int]) -> Milli:
    steady: Milli = {}
    for container in spec.containers:
        _add(steady, _requests(container, missing))
    sidecars: Milli = {}
    peak: Milli = {}
    for container in spec.init_containers:
        requests = _requests(container, missing)
        if container.is_sidecar():
            _add(steady, requests)
            _add(sidecars, requests)
            _raise_to(peak, sidecars)
        else:
            _add(requests, sidecars)
            _raise_to(peak, requests)
    _raise_to(steady, peak)
    return steady


def _requests(container: Container, missing: Mapping[str, int]) -> Milli:
    resources = container.resources
    return {**missing, **_milli(resources.limits), **_milli(resources.requests)}


def _pod_level(resources: Resources, containers: Milli) -> Milli:
    """Where only limits are given, a resource the containers request keeps their sum, others take the limit."""
    chosen = _milli(resources.requests)
    for name, limit in _milli(resources.limits).items():
        if name not in chosen:
            chosen[name] = containers[name] if name in containers and can_overcommit(name) else limit
    return {name: milli for name, milli in chosen.items() if is_pod_level(name)}


def _milli(quantities: Quantities) -> Milli:
    return {name: quantity.milli_value() for name, quantity in quantities.items()}


def _units(total: Mapping[str, int]) -> dict[str, int]:
    return {name: _unit(name, milli) for name, milli in sorted(total.items()) if milli}


def _unit(name: str, milli: int) -> int:
    return milli if name == CPU else -(-milli // 1000)


def _add(total: Milli, more: Mapping[str, int]) -> None:
    for name, milli in more.items():
        total[name] = total.get(name, 0) + milli


def _raise_to(total: Milli, floor: Mapping[str, int]) -> None:
    for name, milli in floor.items():
        if milli > total.get(name, 0):
            total[name] = milli
