"""Readings of metrics as the metrics APIs return them, and what they say of each pod."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from shoal.api.conditions import find_condition
from shoal.api.container import Container
from shoal.api.pod import Pod
from shoal.api.resources import CPU, effective_requests, is_pod_level
from shoal.autoscale.replicas.spec import AutoscalerSettings
from shoal.units.quantity import Quantity

USUAL_WINDOW_S = 60.0
"""Of samples that do not say over which time they were taken."""


class MetricSample(Struct, frozen=True):
    """One figure of one pod, over the `window_s` seconds before `at_s`."""

    value_milli: int
    at_s: float = 0.0
    window_s: float = USUAL_WINDOW_S


class PodUsage(Struct, frozen=True):
    """One item of metrics.k8s.io: the usage of each container."""

    pod: str
    containers: tuple[tuple[str, Mapping[str, Quantity]], ...] = ()
    at_s: float = 0.0
    window_s: float = USUAL_WINDOW_S


class MetricReading(Struct, frozen=True):
    """What the metrics API answered for one metric of an autoscaler."""

    error: str = ""
    usages: tuple[PodUsage, ...] = ()
    """Of Resource and ContainerResource."""
    samples: tuple[tuple[str, MetricSample], ...] = ()
    """Of Pods, by pod."""
    values_milli: tuple[int, ...] = ()
    """Of Object, which has one, and of External."""


class MetricFault(Struct, frozen=True):
    """Why a metric gives no replica count."""

    message: str
    """In the condition and the Event."""
    error: str = ""
    """In the error of the pass, if it is another text there."""


class CountedPods(Struct, frozen=True):
    counted: int
    unready: frozenset[str]
    missing: frozenset[str]
    """Pods without a sample."""
    ignored: frozenset[str]


def grouped(
    pods: Iterable[Pod], samples: Mapping[str, MetricSample], resource: str, settings: AutoscalerSettings, now_s: float
) -> CountedPods:
    counted = 0
    unready, missing, ignored = set(), set(), set()
    for pod in pods:
        name = pod.metadata.name
        if pod.is_terminating() or pod.status.phase == "Failed":
            ignored.add(name)
        elif pod.status.phase == "Pending":
            unready.add(name)
        elif (sample := samples.get(name)) is None:
            missing.add(name)
        elif resource == CPU and _is_starting(pod, sample, settings, now_s):
            unready.add(name)
        else:
            counted += 1
    return CountedPods(counted, frozenset(unready), frozenset(missing), frozenset(ignored))


def _is_starting(pod: Pod, sample: MetricSample, settings: AutoscalerSettings, now_s: float) -> bool:
    """Whether the CPU usage is that of a start. Later a pod that is not ready counts, unless it never was ready."""
    ready = find_condition(pod.status.conditions, "Ready")
    start = pod.status.start_time
    if ready is None or start is None:
        return True
    is_not_ready = ready.status == "False"
    since_s = ready.last_transition_time.timestamp() if ready.last_transition_time is not None else float("-inf")
    if start.timestamp() + settings.cpu_initialization_s > now_s:
        return is_not_ready or sample.at_s < since_s + sample.window_s
    return is_not_ready and start.timestamp() + settings.initial_readiness_delay_s > since_s


def is_ready(pod: Pod) -> bool:
    ready = find_condition(pod.status.conditions, "Ready")
    return pod.status.phase == "Running" and ready is not None and ready.is_true()


# -- usage ----------------------------------------------------------------------------------------------------------


def pod_samples(usages: Iterable[PodUsage], resource: str) -> dict[str, MetricSample]:
    """A pod of which one container has no figure has no sample."""
    found = {}
    for usage in usages:
        values = [each.get(resource) for _, each in usage.containers]
        if values and all(value is not None for value in values):
            total = sum(value.milli_value() for value in values if value is not None)
            found[usage.pod] = MetricSample(total, usage.at_s, usage.window_s)
    return found


def container_samples(usages: Iterable[PodUsage], resource: str, container: str) -> dict[str, MetricSample]:
    """A pod without a figure of this container has no sample."""
    found = {}
    for usage in usages:
        figures = next((each for name, each in usage.containers if name == container), {})
        if (value := figures.get(resource)) is not None:
            found[usage.pod] = MetricSample(value.milli_value(), usage.at_s, usage.window_s)
    return found


# -- requests -------------------------------------------------------------------------------------------------------


def requests_of(
    pods: Iterable[Pod], resource: str, container: str, *, has_pod_level: bool = True
) -> dict[str, int] | MetricFault:
    """The request of each pod in thousandths. A named container counts alone, whatever the pod as a whole requests."""
    found = {}
    for pod in pods:
        whole = pod.spec.resources
        is_whole = has_pod_level and not container and whole is not None and any(map(is_pod_level, whole.requests))
        request = _whole_request(pod, resource) if is_whole else _container_requests(pod, resource, container)
        if isinstance(request, MetricFault):
            return request
        found[pod.metadata.name] = request
    return found


def _whole_request(pod: Pod, resource: str) -> int | MetricFault:
    amount = effective_requests(pod.spec).get(resource)
    if amount is None:
        return MetricFault(f"missing pod-level request for {resource} in Pod {pod.metadata.name}")
    return amount if resource == CPU else amount * 1000


def _container_requests(pod: Pod, resource: str, container: str) -> int | MetricFault:
    total = 0
    for one in _lasting_containers(pod):
        if container and one.name != container:
            continue
        request = one.resources.requests.get(resource)
        if request is None:
            return MetricFault(f"missing request for {resource} in container {one.name} of Pod {pod.metadata.name}")
        total += request.milli_value()
        if container:
            return total
    if container:
        return MetricFault(f"container {container} not found in Pod {pod.metadata.name}")
    return total


def _lasting_containers(pod: Pod) -> list[Container]:
    return [*pod.spec.containers, *(one for one in pod.spec.init_containers if one.is_sidecar())]
