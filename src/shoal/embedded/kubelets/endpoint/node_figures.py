"""Computes the Prometheus metrics of a kubelet: its own, and those of resources, cAdvisor and probes.

Names and labels are the kubelet's. The usage of simulated containers is a constant rate from start to end, and the CPU
time of their node is accumulated between two reads, so that it never decreases when a pod ends. A node with real pods
has what was measured and counted; what is not measured is absent, as the label `id` of a container's cgroup.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shoal.client.kubelet.times import read
from shoal.embedded.kubelets.node_object import VERSION
from shoal.embedded.kubelets.node_view import NodeView, Obj, RealNodeView, Usage
from shoal.prometheus.exposition import text_of
from shoal.prometheus.families import MetricHead, Type
from shoal.prometheus.registry import Reading

_POD, _CONTAINER = ("namespace", "pod"), ("container", "namespace", "pod")
_CADVISOR = ("container", "id", "image", "name", "namespace", "pod")
_PROBE = ("container", "namespace", "pod", "pod_uid", "probe_type", "result")
_PROBES = {"livenessProbe": "Liveness", "readinessProbe": "Readiness", "startupProbe": "Startup"}
_FIELDS = "cpu_usage_seconds_total", "memory_working_set_bytes"
_HELP = {
    "cpu_usage_seconds_total": "Cumulative cpu time consumed by the {} in core-seconds",
    "memory_working_set_bytes": "Current working set of the {} in bytes",
}
_SIMULATED_MEMORY = (
    ("container_memory_rss", "Size of RSS in bytes."),
    ("container_memory_usage_bytes", "Current memory usage in bytes, including all memory."),
)
_Numbers = list[tuple[tuple[str, ...], float]]
_Running = tuple[Obj, Obj, Usage, float]
"""A pod, the specification of a running container, its usage, and its start time in seconds."""


class NodeStats:
    def __init__(self) -> None:
        self._processor: dict[str, tuple[float, float]] = {}
        """For each node, the time of the last read and the CPU seconds until then."""

    def own(self, node: NodeView) -> bytes:
        running = list(_running(node, 0.0))
        pods = len({pod["metadata"]["uid"] for pod, _, _, _ in running})
        build: _Numbers = [((VERSION, "linux/amd64"), 1)]
        return text_of(
            (
                _reading(
                    "gauge", "kubernetes_build_info", "The build of this kubelet", ("git_version", "platform"), build
                ),
                _reading("gauge", "kubelet_node_name", "The node's name", ("node",), [((node.name,), 1)]),
                _reading(
                    "gauge", "kubelet_running_pods", "Number of pods that have a running pod sandbox", (), [((), pods)]
                ),
                _reading(
                    "gauge",
                    "kubelet_running_containers",
                    "Number of containers currently running",
                    ("container_state",),
                    [(("running",), len(running))],
                ),
            )
        )

    def resource(self, node: NodeView, now_s: float) -> bytes:
        """The metrics that metrics-server reads."""
        running = list(_running(node, now_s))
        readings: list[Reading] = []
        whole: _Numbers
        for field in _FIELDS:
            one_s: _Numbers = [
                (_names(pod, spec["name"]), _value(field, used, now_s - since_s))
                for pod, spec, used, since_s in running
            ]
            sums: dict[tuple[str, ...], float] = {}
            for (_, namespace, pod_name), value in one_s:
                sums[namespace, pod_name] = sums.get((namespace, pod_name), 0.0) + value
            whole = [((), self._processor_s(node, now_s) if field == _FIELDS[0] else node.usage().memory_bytes)]
            type_: Type = "counter" if field.endswith("_total") else "gauge"
            for scope, labels, numbers in (
                ("container", _CONTAINER, one_s),
                ("node", (), whole),
                ("pod", _POD, list(sums.items())),
            ):
                readings.append(_reading(type_, f"{scope}_{field}", _HELP[field].format(scope), labels, numbers))
        started: _Numbers = [(_names(pod, spec["name"]), since_s) for pod, spec, _, since_s in running]
        words = "Start time of the container since unix epoch in seconds"
        readings.append(_reading("gauge", "container_start_time_seconds", words, _CONTAINER, started))
        words = "1 if there was an error while getting container metrics, 0 otherwise"
        readings.append(_reading("gauge", "resource_scrape_error", words, (), [((), 0)]))
        return text_of(readings)

    def cadvisor(self, node: NodeView, now_s: float) -> bytes:
        is_real = isinstance(node, RealNodeView)
        used_s: _Numbers = [(("", "/", "", "", "", "", "total"), self._processor_s(node, now_s))]
        kept: _Numbers = [(("", "/", "", "", "", ""), node.usage().memory_bytes)]
        started: _Numbers = []
        for pod, spec, used, since_s in _running(node, now_s):
            where = _place(pod, spec, has_group=not is_real)
            used_s.append(((*where, "total"), _value(_FIELDS[0], used, now_s - since_s)))
            kept.append((where, used.memory_bytes))
            started.append((where, since_s))
        words = "Cumulative cpu time consumed in seconds."
        readings = [_reading("counter", f"container_{_FIELDS[0]}", words, (*_CADVISOR, "cpu"), used_s)]
        for name, words in _SIMULATED_MEMORY if not is_real else ():
            readings.append(_reading("gauge", name, words, _CADVISOR, kept))
        words = "Current working set in bytes."
        readings.append(_reading("gauge", f"container_{_FIELDS[1]}", words, _CADVISOR, kept))
        words = "Start time of the container since unix epoch in seconds."
        readings.append(_reading("gauge", "container_start_time_seconds", words, _CADVISOR, started))
        size = node.size()
        cores: _Numbers = [((), size.cpu_milli // 1000)]
        readings.append(_reading("gauge", "machine_cpu_cores", "Number of logical CPU cores.", (), cores))
        memory: _Numbers = [((), size.memory_bytes)]
        readings.append(_reading("gauge", "machine_memory_bytes", "Amount of memory installed.", (), memory))
        return text_of(readings)

    def probes(self, node: NodeView, now_s: float) -> bytes:
        found = _counted_probes(node) if isinstance(node, RealNodeView) else _simulated_probes(node, now_s)
        words = "Cumulative number of a liveness, readiness or startup probe for a container by result."
        return text_of((_reading("counter", "prober_probe_total", words, _PROBE, list(found)),))

    def _processor_s(self, node: NodeView, now_s: float) -> float:
        used = node.usage()
        if used.cpu_s is not None:
            return used.cpu_s
        before_s, total_s = self._processor.get(node.name, (now_s, 0.0))
        total_s += max(now_s - before_s, 0.0) * used.cpu_milli / 1000
        self._processor[node.name] = (now_s, total_s)
        return total_s


def _counted_probes(node: RealNodeView) -> Iterator[tuple[tuple[str, ...], float]]:
    for pod, counts in node.probe_counts():
        _, *names = _names(pod, "")
        for one, count in counts.items():
            yield (one.container, *names, pod["metadata"]["uid"], one.kind, one.result), count


def _simulated_probes(node: NodeView, now_s: float) -> Iterator[tuple[tuple[str, ...], float]]:
    for pod, spec, _, since_s in _running(node, now_s):
        is_ready = bool((_status(pod, spec["name"]) or {}).get("ready"))
        for field, kind in _PROBES.items():
            probe = spec.get(field)
            # A startup probe is not sent again once it has succeeded.
            count = 1 if kind == "Startup" else _sent(probe, now_s - since_s)
            if probe and count:
                result = "failed" if kind == "Readiness" and not is_ready else "successful"
                _, *names = _names(pod, "")
                yield (spec["name"], *names, pod["metadata"]["uid"], kind, result), count


def _running(node: NodeView, now_s: float) -> Iterator[_Running]:
    for pod, used in node.pod_usage():
        specs = (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
        for spec in specs:
            if spec["name"] in used:
                state = ((_status(pod, spec["name"]) or {}).get("state") or {}).get("running") or {}
                since_s = read(state.get("startedAt"))
                yield pod, spec, used[spec["name"]], min(now_s if since_s is None else since_s, now_s)


def _status(pod: Obj, container: str) -> Obj | None:
    status = pod.get("status") or {}
    for one in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        if one["name"] == container:
            found: Obj = one
            return found
    return None


def _names(pod: Obj, container: str) -> tuple[str, ...]:
    metadata = pod["metadata"]
    return container, metadata.get("namespace", ""), metadata["name"]


def _place(pod: Obj, spec: Obj, *, has_group: bool) -> tuple[str, ...]:
    """The cgroup path and names of a container, as labels of cAdvisor."""
    name, namespace, pod_name = _names(pod, spec["name"])
    identity = str((_status(pod, name) or {}).get("containerID", "")).partition("://")[2]
    group = (
        f"/kubepods.slice/kubepods-pod{pod['metadata']['uid'].replace('-', '_')}.slice/cri-containerd-{identity}.scope"
    )
    return name, group if has_group else "", spec.get("image", ""), identity, namespace, pod_name


def _value(field: str, used: Usage, ran_s: float) -> float:
    if field != _FIELDS[0]:
        return used.memory_bytes
    return used.cpu_milli * ran_s / 1000 if used.cpu_s is None else used.cpu_s


def _sent(probe: Mapping[str, int] | None, ran_s: float) -> int:
    """The number of times that a probe was sent until now."""
    if not probe:
        return 0
    late_s = ran_s - probe.get("initialDelaySeconds", 0)
    return int(late_s // max(probe.get("periodSeconds", 10), 1)) + 1 if late_s >= 0 else 0


def _reading(type_: Type, name: str, words: str, labels: tuple[str, ...], numbers: _Numbers) -> Reading:
    return Reading(MetricHead(type_, name, words, labels), tuple(numbers), ())
