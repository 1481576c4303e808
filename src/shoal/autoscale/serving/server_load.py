"""Reads the load of a model server from its metrics: vLLM, SGLang, TensorRT-LLM (its own server, and Triton) and TGI.

Names that a server has changed are read in both forms. A server whose metrics name no requests is unknown, not idle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from msgspec import Struct

from shoal.prometheus.samples import MetricLine

_RUNNING = (
    "vllm:num_requests_running",
    "sglang:num_running_reqs",
    "trtllm_num_requests_running",
    "tgi_batch_current_size",
)
_WAITING = (
    "vllm:num_requests_waiting",
    "sglang:num_queue_reqs",
    "trtllm_num_requests_waiting",
    "tgi_queue_size",
)
_CACHE = (
    "vllm:kv_cache_usage_perc",
    "vllm:gpu_cache_usage_perc",
    "sglang:token_usage",
    "trtllm_kv_cache_utilization",
)
_TTFT = ("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds")
_TRITON = "nv_trt_llm_request_metrics"
_TRITON_CACHE = "nv_trt_llm_kv_cache_block_metrics"
_SLEEP = "vllm:engine_sleep_state"

Buckets = Mapping[float, float]
"""How many requests took at most so many seconds, since the start of the server."""


class ServerLoad(Struct, frozen=True):
    """Of one server process, or summed over the engines in it."""

    running: float
    waiting: float = 0.0
    cache_used: float = 0.0
    """The part of the key-value cache that is in use, from 0 to 1."""
    is_asleep: bool = False
    ttft: Buckets = {}
    """The histogram of the times to the first token."""


def server_load(lines: Iterable[MetricLine]) -> ServerLoad | None:
    """`None`: these are not the metrics of a model server that is known here."""
    known = list(lines)
    running, waiting = _sum(known, _RUNNING), _sum(known, _WAITING)
    triton = {one.labels.get("request_type", ""): one.value for one in known if one.name == _TRITON}
    if running is None and triton:
        active, scheduled = triton.get("active", 0.0), triton.get("scheduled", 0.0)
        running, waiting = scheduled, max(active - scheduled, 0.0) + triton.get("waiting", 0.0)
    if running is None and waiting is None:
        return None
    return ServerLoad(running or 0.0, waiting or 0.0, _cache(known), _is_asleep(known), _buckets(known))


def _values(known: Iterable[MetricLine], names: Iterable[str]) -> list[float]:
    """Of the first of the names that is there."""
    for name in names:
        found = [one.value for one in known if one.name == name and math.isfinite(one.value)]
        if found:
            return found
    return []


def _sum(known: Iterable[MetricLine], names: Iterable[str]) -> float | None:
    found = _values(known, names)
    return sum(found) if found else None


def _cache(known: list[MetricLine]) -> float:
    """Of several engines the fullest one: it is the first that preempts requests."""
    if found := _values(known, _CACHE):
        return min(max(found), 1.0)
    blocks = {one.labels.get("kv_cache_block_type", ""): one.value for one in known if one.name == _TRITON_CACHE}
    return min(blocks.get("used", 0.0) / blocks["max"], 1.0) if blocks.get("max") else 0.0


def _is_asleep(known: Iterable[MetricLine]) -> bool:
    states = [one for one in known if one.name == _SLEEP and one.value > 0]
    return bool(states) and all(one.labels.get("sleep_state") != "awake" for one in states)


def _buckets(known: list[MetricLine]) -> dict[float, float]:
    for name in _TTFT:
        found: dict[float, float] = {}
        for one in known:
            if one.name == f"{name}_bucket" and (bound := _bound(one.labels.get("le", ""))) is not None:
                found[bound] = found.get(bound, 0.0) + one.value
        if found:
            return found
    return {}


def _bound(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def quantile(now: Buckets, before: Buckets, part: float) -> float | None:
    """Of the requests between two readings, as Prometheus interpolates it; `None` without requests.

    A server that restarted counts from zero again: its reading is then taken as it is.
    """
    bounds = sorted(now)
    counts = [now[bound] - before.get(bound, 0.0) for bound in bounds]
    if any(count < 0 for count in counts):
        counts = [now[bound] for bound in bounds]
    total = counts[-1] if counts else 0.0
    if total <= 0:
        return None
    rank, low, below = part * total, 0.0, 0.0
    for bound, count in zip(bounds, counts, strict=True):
        if count >= rank:
            if math.isinf(bound):
                return low
            return low + (bound - low) * (rank - below) / (count - below) if count > below else bound
        low, below = bound, count
    return low
