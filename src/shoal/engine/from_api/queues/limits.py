"""Applies the LimitRanges of a namespace to a pod before it is counted, and reports violations.

Kueue's order, which is not the API server's: the runtime's overhead, then the namespace's defaults, then limits as
requests. A limit range from a file is completed as the API server completes it; one from a cluster is complete.

Rejected: refusing such a pod when it is read. Its workload is an object that exists; it waits with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import structs

from shoal.api.container import Container, Resources
from shoal.api.limit_ranges import CONTAINER, POD, LimitRange
from shoal.api.pod import PodSpec
from shoal.api.resources import amounts, effective_requests
from shoal.api.wire import Quantities

_ABOVE_LIMIT = "requests must not exceed its limits"
_ABOVE_MAX = "must not be above the limitRange max"
_BELOW_MIN = "must not be below the limitRange min"


class NamespaceLimits(msgspec.Struct, frozen=True):
    """The bounds of all limit ranges of a namespace for one kind of thing: the tightest; of defaults, the first."""

    highest: Quantities = {}
    lowest: Quantities = {}
    limits: Quantities = {}
    requests: Quantities = {}

    @classmethod
    def of(cls, ranges: Iterable[LimitRange], kind: str) -> NamespaceLimits:
        found = cls({}, {}, {}, {})
        for item in (item.completed() for each in ranges for item in each.spec.limits if item.type == kind):
            for name, most in item.max.items():
                found.highest[name] = min(most, found.highest.get(name, most))
            for name, least in item.min.items():
                found.lowest[name] = max(least, found.lowest.get(name, least))
            for into, defaults in ((found.limits, item.default), (found.requests, item.default_request)):
                for name, amount in defaults.items():
                    into.setdefault(name, amount)
        return found


class NamespaceRules(msgspec.Struct, frozen=True):
    """What holds for the pods of one namespace."""

    containers: NamespaceLimits = NamespaceLimits()
    pods: NamespaceLimits = NamespaceLimits()
    overheads: Mapping[str, Quantities] = {}
    """By runtime class."""

    @classmethod
    def of(cls, ranges: Iterable[LimitRange], overheads: Mapping[str, Quantities]) -> NamespaceRules:
        known = sorted(ranges, key=lambda each: each.metadata.name)
        return cls(NamespaceLimits.of(known, CONTAINER), NamespaceLimits.of(known, POD), overheads)

    def completed(self, spec: PodSpec) -> PodSpec:
        """The pod as it is counted."""
        overhead = spec.overhead or self.overheads.get(spec.runtime_class_name, {})
        return structs.replace(
            spec,
            overhead=overhead,
            containers=tuple(self._completed(each) for each in spec.containers),
            init_containers=tuple(self._completed(each) for each in spec.init_containers),
        )

    def fault(self, spec: PodSpec, path: str) -> str:
        """Why a completed pod can never run, in Kueue's words; `path` is the place of its spec."""
        found = list(_above_limits(spec, path))
        if found:
            return f"resource validation failed: {_joined(found)}"
        found = [*self._of_containers(spec, path), *self._of_pod(spec, path)]
        return f"resources didn't satisfy LimitRange constraints: {_joined(found)}" if found else ""

    def _completed(self, container: Container) -> Container:
        """Limits are requests where no requests are given: the summation applies that."""
        resources = container.resources
        limits = {**self.containers.limits, **resources.limits}
        requests = {**self.containers.requests, **resources.requests}
        return structs.replace(container, resources=Resources(requests, limits, resources.claims))

    def _of_containers(self, spec: PodSpec, path: str) -> Iterator[str]:
        bounds = self.containers
        for where, container in _containers(spec, path):
            resources = container.resources
            asked = {**resources.limits, **resources.requests}
            most = {name: max(amount, resources.limits.get(name, amount)) for name, amount in asked.items()}
            least = {name: min(amount, resources.limits.get(name, amount)) for name, amount in asked.items()}
            yield from _reported(
                where, [n for n in most if n in bounds.highest and most[n] > bounds.highest[n]], _ABOVE_MAX
            )
            yield from _reported(
                where, [n for n in least if n in bounds.lowest and least[n] < bounds.lowest[n]], _BELOW_MIN
            )

    def _of_pod(self, spec: PodSpec, path: str) -> Iterator[str]:
        if not self.pods.highest and not self.pods.lowest:
            return
        total = effective_requests(spec)
        highest, lowest = amounts(self.pods.highest), amounts(self.pods.lowest)
        yield from _reported(path, [name for name in total if total[name] > highest.get(name, total[name])], _ABOVE_MAX)
        yield from _reported(path, [name for name in total if total[name] < lowest.get(name, 0)], _BELOW_MIN)


def _above_limits(spec: PodSpec, path: str) -> Iterator[str]:
    for where, container in _containers(spec, path):
        requests, limits = container.resources.requests, container.resources.limits
        yield from _reported(where, [name for name in requests if name in limits and requests[name] > limits[name]])


def _containers(spec: PodSpec, path: str) -> Iterator[tuple[str, Container]]:
    for kind, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        for index, container in enumerate(containers):
            yield f"{path}.{kind}[{index}]", container


def _reported(where: str, names: list[str], why: str = _ABOVE_LIMIT) -> Iterator[str]:
    if names:
        yield f"{where}: Invalid value: {json.dumps(sorted(names))}: {why}"


def _joined(faults: list[str]) -> str:
    return faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
