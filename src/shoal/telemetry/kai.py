"""Measures KAI's queues and the actions of its fair share, under the names that KAI's documentation gives.

The state of queues is read at each scrape from the latest cycles. Durations and counts are those of the cycles that
decided anything.

Rejected: the latency of plugins, because there are none here, and of single tasks, which Shoal counts for all pods
under the names of kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol

from shoal.engine.queues.disciplines.kai.action_counts import ActionCounts
from shoal.engine.queues.disciplines.kai.fair_actions import PREEMPT, RECLAIM
from shoal.engine.queues.disciplines.kai.fairshare import CLOSE, OPEN
from shoal.engine.queues.disciplines.kai.objects import Queue
from shoal.engine.queues.disciplines.kai.sharded_fairshare import ShardedFairshare
from shoal.prometheus.families import MetricHead, Values
from shoal.prometheus.registry import Figures, Registry

_QUEUE = ("queue_name", "queue_metadata_name", "queue_display_name")
_DEFAULT_POOL = "default"
_UNLIMITED = -1.0
_GPU, _CORES, _MEMORY = range(3)
_PER_UNIT = (1000.0, 1000.0, 1.0)
_PER_GB = 1e9


class KaiSource(Protocol):
    """The discipline as it is now, and the queues as they are written."""

    @property
    def discipline(self) -> ShardedFairshare: ...
    @property
    def queues(self) -> Mapping[str, Queue]: ...


class _KaiQueueRow(NamedTuple):
    labels: Values
    quota: tuple[int | None, ...]
    allocated: list[int] | None
    fair_share: list[int] | None
    usage: tuple[float, ...] | None


_Read = Callable[[_KaiQueueRow], float | None]
_GAUGES: tuple[tuple[str, str, _Read], ...] = (
    ("info", "A queue of KAI; always 1.", lambda _: 1.0),
    ("deserved_gpus", "Quota of GPUs; -1 is unlimited.", lambda row: _quota(row, _GPU)),
    ("quota_cpu_cores", "Quota of CPU cores; -1 is unlimited.", lambda row: _quota(row, _CORES)),
    ("quota_memory_bytes", "Quota of memory; -1 is unlimited.", lambda row: _quota(row, _MEMORY)),
    ("allocated_gpus", "GPUs that the queue holds.", lambda row: _of(row.allocated, _GPU)),
    ("allocated_cpu_cores", "CPU cores that the queue holds.", lambda row: _of(row.allocated, _CORES)),
    ("allocated_memory_bytes", "Memory that the queue holds.", lambda row: _of(row.allocated, _MEMORY)),
    ("fair_share_gpu", "Fair share of GPUs.", lambda row: _of(row.fair_share, _GPU)),
    ("fair_share_cpu_cores", "Fair share of CPU cores.", lambda row: _of(row.fair_share, _CORES)),
    ("fair_share_memory_gb", "Fair share of memory in GB.", lambda row: _of(row.fair_share, _MEMORY, _PER_GB)),
    ("gpu_usage", "Use of GPUs in the window, as a part of the capacity.", lambda row: _used(row, _GPU)),
    ("cpu_usage", "Use of CPU in the window, as a part of the capacity.", lambda row: _used(row, _CORES)),
    ("memory_usage", "Use of memory in the window, as a part of the capacity.", lambda row: _used(row, _MEMORY)),
)


class KaiMetrics:
    """The source is replaced when another scheduling loop begins; the counts go on."""

    def __init__(self, registry: Registry) -> None:
        self._source: KaiSource | None = None
        for name, words, read in _GAUGES:
            head = MetricHead("gauge", f"kai_queue_{name}", words, _QUEUE)
            registry.reads(head, self._figures(read))
        self._whole = registry.gauge(
            "kai_e2e_scheduling_latency_milliseconds", "Duration of all actions of the latest cycle."
        )
        self._opening = registry.gauge(
            "kai_open_session_latency_milliseconds", "How long the latest cycle read queues and jobs."
        )
        self._closing = registry.gauge(
            "kai_close_session_latency_milliseconds", "How long the latest cycle took after its actions."
        )
        self._actions = registry.gauge(
            "kai_action_scheduling_latency_milliseconds", "Duration of an action in the latest cycle.", ("action",)
        )
        # Counts whose names do not end in _total are no counters in OpenMetrics.
        self._served = registry.gauge(
            "kai_podgroups_scheduled_by_action", "Pod groups that an action placed or nominated.", ("action",)
        )
        self._tried = registry.gauge(
            "kai_podgroups_acted_on_by_action", "Pod groups that an action tried to place.", ("action",)
        )
        self._attempts = registry.gauge(
            "kai_total_preemption_attempts", "Pod groups for which reclaim or preempt looked for victims."
        )
        self._evicted = registry.counter(
            "kai_pod_group_evicted_pods_total",
            "Pods of a pod group that an action evicted.",
            ("podgroup", "namespace", "uid", "nodepool", "action"),
        )

    def follow(self, source: KaiSource) -> None:
        self._source = source

    def observe(self, seconds: Mapping[str, float]) -> None:
        """The durations of the steps of a cycle, by the names of the actions."""
        self._whole.of().set(_ms(sum(seconds.values())))
        self._opening.of().set(_ms(seconds.get(OPEN, 0.0)))
        self._closing.of().set(_ms(seconds.get(CLOSE, 0.0)))
        for action, length_s in seconds.items():
            if action not in (OPEN, CLOSE):
                self._actions.of(action).set(_ms(length_s))

    def count(self, counts: ActionCounts, pool: str, uid_of: Callable[[str], str]) -> None:
        """What the actions of a shard did in a cycle. `uid_of`: of the PodGroup of a job, empty if it has none."""
        for action, number in counts.tried.items():
            self._tried.of(action).add(number)
            if action in (RECLAIM, PREEMPT):
                self._attempts.of().add(number)
        for action, number in counts.served.items():
            self._served.of(action).add(number)
        for (job, action), number in counts.evicted.items():
            namespace, _, name = job.partition("/")
            self._evicted.of(name, namespace, uid_of(job), pool or _DEFAULT_POOL, action).inc(number)

    def forget(self, namespace: str, name: str) -> None:
        """The PodGroup is gone: the number of groups that are counted is bounded."""
        for values, _ in self._evicted:
            if values[:2] == (name, namespace):
                self._evicted.forget(*values)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _figures(self, read: _Read) -> Callable[[], Figures]:
        def figures() -> Figures:
            return [(row.labels, value) for row in self._rows() if (value := read(row)) is not None]

        return figures

    def _rows(self) -> Iterator[_KaiQueueRow]:
        source = self._source
        if source is None:
            return
        usage = {name: each for one in source.discipline.disciplines.values() for name, each in one.usage.items()}
        for name, queue in sorted(source.queues.items()):
            cycle = source.discipline.cycle_of_queue(name)
            node = cycle.tree.nodes[name] if cycle is not None else None
            yield _KaiQueueRow(
                (name, name, queue.spec.display_name),
                tuple(queue.quota(resource) for resource in ("gpu", "cpu", "memory")),
                None if node is None else node.allocated,
                None if node is None else node.fair_share,
                usage.get(name),
            )


def _quota(row: _KaiQueueRow, at: int) -> float:
    quota = row.quota[at]
    return _UNLIMITED if quota is None else quota / _PER_UNIT[at]


def _of(amounts: list[int] | None, at: int, per_unit: float = 0.0) -> float | None:
    return None if amounts is None else amounts[at] / (per_unit or _PER_UNIT[at])


def _used(row: _KaiQueueRow, at: int) -> float | None:
    return None if row.usage is None else row.usage[at]


def _ms(seconds: float) -> float:
    return seconds * 1000
