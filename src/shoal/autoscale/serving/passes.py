"""One pass over a model: what its replicas say now, with what was remembered of earlier passes, to a decision.

The caller keeps the memory. A memory that is lost, as after a restart, makes shrinking wait anew and loses nothing
else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from shoal.autoscale.serving.annotations import ServingSettings
from shoal.autoscale.serving.cold_start import ColdStart
from shoal.autoscale.serving.replicas import ReplicaLoad, ServingDecision, ServingState, decide_replicas
from shoal.autoscale.serving.server_load import Buckets, ServerLoad, quantile

_PART = 0.9
"""Of the requests whose time to the first token must keep the objective."""


class SeenReplica(Struct, frozen=True):
    """One group of pods that is ready."""

    name: str
    """Of the pod that serves."""
    age_s: float
    load: ServerLoad | None


class ModelMemory(Struct, frozen=True):
    calm_since_s: float | None = None
    idle_since_s: float | None = None
    wanted: int = -1
    """The replicas of the last pass. A change of them begins a new time of calm."""
    ttft: Mapping[str, Buckets] = {}
    """The histograms of the last pass, by replica."""
    start: ColdStart = ColdStart()


class SeenModel(Struct, frozen=True):
    replicas: Sequence[SeenReplica]
    wanted: int
    queued: float | None = 0.0
    """Requests that wait outside of the replicas; `None`: they cannot be read."""


def serving_pass(
    seen: SeenModel, settings: ServingSettings, memory: ModelMemory, now_s: float
) -> tuple[ServingDecision, ModelMemory]:
    loads = [ReplicaLoad(one.age_s, one.load) for one in seen.replicas]
    known = [one.load for one in seen.replicas if one.load is not None]
    is_known = len(known) == len(seen.replicas) and seen.queued is not None
    has_work = any(one.running or one.waiting for one in known) or bool(seen.queued)
    idle_since_s = None if has_work or not is_known else _since(memory.idle_since_s, now_s)
    calm_since_s = memory.calm_since_s if memory.wanted == seen.wanted else None
    state = ServingState(
        loads,
        seen.wanted,
        _ttft(seen.replicas, memory.ttft),
        seen.queued or 0.0,
        0.0 if calm_since_s is None else now_s - calm_since_s,
        0.0 if idle_since_s is None else now_s - idle_since_s,
        memory.start.total_s(),
        settings.warm_up_s,
    )
    decision = decide_replicas(state, settings.policy, settings.prices)
    if seen.queued is None and decision.replicas < seen.wanted:
        words = "the requests that wait outside of the replicas are not known"
        decision = ServingDecision(seen.wanted, words, is_calm=False)
    ttft = {one.name: one.load.ttft for one in seen.replicas if one.load is not None}
    calm = _since(calm_since_s, now_s) if decision.is_calm and decision.replicas == seen.wanted else None
    return decision, ModelMemory(calm, idle_since_s, seen.wanted, ttft, memory.start)


def _since(before_s: float | None, now_s: float) -> float:
    return now_s if before_s is None else before_s


def _ttft(replicas: Sequence[SeenReplica], before: Mapping[str, Buckets]) -> float | None:
    """Of the requests of all replicas since the last pass. A replica that is new has no earlier reading, and its
    requests since its start are no requests of this pass."""
    now, then = defaultdict[float, float](float), defaultdict[float, float](float)
    for one in replicas:
        if one.load is None or one.name not in before:
            continue
        earlier = before[one.name]
        has_restarted = any(one.load.ttft.get(bound, 0.0) < count for bound, count in earlier.items())
        for bound, count in one.load.ttft.items():
            now[bound] += count
            then[bound] += 0.0 if has_restarted else earlier.get(bound, 0.0)
    return quantile(now, then, _PART)
