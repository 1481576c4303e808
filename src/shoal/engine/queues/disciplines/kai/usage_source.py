"""Asks Prometheus what the queues of KAI used in a window, as the `usageDBConfig` of a SchedulingShard names it.

Pure: questions are texts, and answers are the bodies that the server sent. The questions are those of KAI: what is
allocated to each queue, and what the nodes have, each summed over the window and decayed there, so that their quotient
is the use of the window. One question for each resource and side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from shoal.engine.queues.disciplines.kai.usage_record import (
    CRON,
    LONGEST_CRON_S,
    SLIDING,
    Usage,
    UsageWindow,
    last_begin_s,
)

_QUEUE = "queue_name"
ALLOCATED = ("kai_queue_allocated_gpus", "kai_queue_allocated_cpu_cores", "kai_queue_allocated_memory_bytes")
CAPACITY = tuple(f'sum(kube_node_status_capacity{{resource="{name}"}})' for name in ("nvidia_com_gpu", "cpu", "memory"))
_MOST = 1e9
"""A queue cannot have used more of the capacity: numbers of any size stay numbers."""
_Sample = tuple[float, str]


class UsageSource(msgspec.Struct, frozen=True):
    url: str
    """Of the server, without `/api/v1`."""
    allocated: tuple[str, ...] = ALLOCATED
    """Expressions for GPUs, cores and memory, with the label `queue_name`."""
    capacity: tuple[str, ...] = CAPACITY
    resolution_s: int = 60
    stale_s: float = 300.0
    """How long an answer counts while no other comes."""


def address_fault(text: str) -> str:
    """What is wrong with the address of a server; empty if nothing is."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not an address"
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        return "is not an HTTP address; write it as http://prometheus.monitoring:9090"
    return "contains credentials" if parts.username is not None or parts.password is not None else ""


def questions(source: UsageSource, window: UsageWindow, now_s: float) -> list[dict[str, str]]:
    """The queries of the API for ranges, of one moment each."""
    now = math.floor(now_s)
    length_s = max(now - _begin_s(window, now), source.resolution_s)
    decay = f" * 0.5 ^ (({now} - time()) / {window.half_life_s:g})" if window.half_life_s > 0 else ""
    moment = {"start": str(now), "end": str(now), "step": str(source.resolution_s)}
    # Of a queue that two processes report at one time, one counts; those of one after the other are added.
    return [
        {"query": f"sum_over_time((max{by} ({text}){decay})[{length_s}s:{source.resolution_s}s])", **moment}
        for texts, by in ((source.allocated, f" by ({_QUEUE})"), (source.capacity, ""))
        for text in texts
    ]


def usage_of(answers: Sequence[bytes]) -> Usage:
    """Queue -> its use of each resource, from the answers to the questions. Raises ValueError for others."""
    values = [_values(answer) for answer in answers]
    half = len(values) // 2
    capacity = [sum(each.values()) for each in values[half:]]
    if not any(capacity):
        raise ValueError("the server knows no capacity of nodes in the window")
    queues = {queue for used in values[:half] for queue in used}
    if queues == {""}:
        raise ValueError(f"what is allocated has no label {_QUEUE}")
    return {
        queue: tuple(
            min(used.get(queue, 0.0) / whole, _MOST) if whole > 0 else 0.0
            for used, whole in zip(values, capacity, strict=False)
        )
        for queue in sorted(queues)
    }


class _UsageSeries(msgspec.Struct):
    metric: dict[str, str] = {}
    values: list[_Sample] = []


class _UsageData(msgspec.Struct):
    result: list[_UsageSeries]


class _UsageAnswer(msgspec.Struct):
    data: _UsageData


_answers = msgspec.json.Decoder(_UsageAnswer)


def _values(body: bytes) -> dict[str, float]:
    """By queue."""
    try:
        found = {
            each.metric.get(_QUEUE, ""): float(each.values[-1][1])
            for each in _answers.decode(body).data.result
            if each.values
        }
    except (msgspec.DecodeError, ValueError) as error:
        raise ValueError(f"the answer cannot be read: {error}") from error
    return {queue: value for queue, value in found.items() if 0 <= value < math.inf}


def _begin_s(window: UsageWindow, now: int) -> int:
    if window.kind == SLIDING:
        return now - math.ceil(window.size_s)
    if window.kind == CRON and window.schedule is not None:
        begun_s = last_begin_s(window.schedule, now - math.floor(LONGEST_CRON_S), now)
        return now if begun_s is None else begun_s
    first_s, size_s = window.first_s, window.size_s
    return now if first_s is None or first_s > now else math.floor(first_s + (now - first_s) // size_s * size_s)
