"""Decides the number of replicas of a model server. A replica is a whole group: all pods of one LeaderWorkerSet group.

Growing follows the largest of three demands at once: requests, cache, and the time to the first token against its
objective. Shrinking is slow: nothing waits, the cache of the remaining replicas stays below a limit, and the objective
is kept, all of that for at least the time that a new replica needs to start. Otherwise the next request after a short
pause waits for a cold start. One replica goes at a time, except for the last ones to zero.

Replicas that are still warming up, or whose metrics cannot be read, are neither idle nor busy: they count as capacity
that comes, and while the load of one is unknown nothing shrinks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from shoal.autoscale.serving.server_load import ServerLoad


class ServingPolicy(Struct, frozen=True):
    target_concurrency: float = 8.0
    """Requests that a replica serves at the same time."""
    ttft_objective_s: float | None = None
    cache_limit: float = 0.8
    """The part of the cache above which replicas are added."""
    cache_after_limit: float = 0.7
    """The part of the cache of the remaining replicas below which one may go."""
    least: int = 1
    most: int = 10
    window_s: float = 60.0
    """Nothing shrinks within so short a time; the cold start is a further minimum."""
    is_buffered: bool = False
    """Whether requests wait somewhere while there is no replica: a gateway, or a queue."""


class ServingPrices(Struct, frozen=True):
    """By which a cold start is weighed against replicas without work."""

    replica_per_h: float = 0.0
    cold_start: float = 0.0
    """What one cold start costs beside the GPUs that it occupies: requests that are late."""


class ReplicaLoad(Struct, frozen=True):
    """One group of pods."""

    age_s: float
    load: ServerLoad | None
    """`None`: its metrics cannot be read."""


class ServingState(Struct, frozen=True):
    """What is known of a model at one moment."""

    replicas: Sequence[ReplicaLoad]
    wanted: int
    """The replicas that were asked for; more than there are while some start."""
    ttft_p90_s: float | None = None
    queued: float = 0.0
    """Requests that wait outside of the replicas."""
    calm_s: float = 0.0
    """For how long the conditions for shrinking have held."""
    idle_s: float = 0.0
    """For how long there were no requests at all."""
    cold_start_s: float = 0.0
    warm_up_s: float = 0.0


class ServingDecision(Struct, frozen=True):
    replicas: int
    reason: str
    is_calm: bool
    """Whether the conditions for shrinking hold now; the caller counts for how long."""
    wait_s: float = 0.0
    """For how long they have to hold still."""


def decide_replicas(state: ServingState, policy: ServingPolicy, prices: ServingPrices | None = None) -> ServingDecision:
    serving = [one for one in state.replicas if one.age_s >= state.warm_up_s]
    known = [one.load for one in serving if one.load is not None and not one.load.is_asleep]
    running, waiting = sum(one.running for one in known), sum(one.waiting for one in known) + state.queued
    is_known = len(known) == len(serving)
    if not state.wanted:
        return _from_zero(waiting, policy)
    demand, why = _demand(state, policy, known, running + waiting)
    wanted = max(policy.least, min(demand, policy.most))
    if wanted > state.wanted:
        limited = f", limited to {policy.most}" if demand > policy.most else ""
        return ServingDecision(wanted, f"{why}{limited}", is_calm=False)
    if state.wanted > policy.most:
        return ServingDecision(policy.most, "more replicas than the maximum", is_calm=False)
    if not is_known or not known:
        return ServingDecision(state.wanted, "the load of a replica is not known", is_calm=False)
    return _smaller(state, policy, prices or ServingPrices(), known, (running, waiting, demand))


def _from_zero(waiting: float, policy: ServingPolicy) -> ServingDecision:
    if waiting > 0 or policy.least > 0:
        needed = math.ceil(waiting / policy.target_concurrency)
        wanted = max(policy.least, min(max(needed, 1), policy.most))
        return ServingDecision(wanted, f"{waiting:g} requests wait for a replica", is_calm=False)
    return ServingDecision(0, "no requests", is_calm=True)


def _demand(
    state: ServingState, policy: ServingPolicy, known: Sequence[ServerLoad], requests: float
) -> tuple[int, str]:
    """The largest of the three demands, and what asks for it."""
    words = f"{requests:g} requests, {policy.target_concurrency:g} for each replica"
    found = [(math.ceil(requests / policy.target_concurrency), words)]
    if known:
        used = sum(one.cache_used for one in known) / len(known)
        if used > policy.cache_limit:
            words = f"{used:.0%} of the cache is in use instead of {policy.cache_limit:.0%}"
            found.append((math.ceil(len(known) * used / policy.cache_limit), words))
        late_s, objective_s = state.ttft_p90_s, policy.ttft_objective_s
        if late_s is not None and objective_s and late_s > objective_s:
            words = f"the first token takes {late_s:.2f} s instead of {objective_s:g} s"
            found.append((math.ceil(len(known) * late_s / objective_s), words))
    return max(found, key=lambda one: one[0])


def _smaller(
    state: ServingState,
    policy: ServingPolicy,
    prices: ServingPrices,
    known: Sequence[ServerLoad],
    figures: tuple[float, float, int],
) -> ServingDecision:
    running, waiting, demand = figures
    if waiting > 0:
        return ServingDecision(state.wanted, f"{waiting:g} requests wait", is_calm=False)
    if len(state.replicas) < state.wanted or len(known) < state.wanted:
        return ServingDecision(state.wanted, "replicas are starting", is_calm=False)
    floor_s = max(policy.window_s, state.cold_start_s)
    if running == 0 and policy.least == 0:
        return _to_zero(state, policy, prices, floor_s)
    if state.wanted <= max(policy.least, demand, 1):
        words = f"the load needs all replicas: {running:g} requests, {policy.target_concurrency:g} for each"
        if demand < policy.least:
            words = "the minimum of replicas"
        return ServingDecision(state.wanted, words, is_calm=False)
    used = sum(one.cache_used for one in known) / (state.wanted - 1) if state.wanted > 1 else math.inf
    if used >= policy.cache_after_limit:
        words = f"the cache of the other replicas would be {used:.0%} full"
        return ServingDecision(state.wanted, words, is_calm=False)
    if state.ttft_p90_s is not None and policy.ttft_objective_s and state.ttft_p90_s > policy.ttft_objective_s:
        return ServingDecision(state.wanted, "the first token is late", is_calm=False)
    if state.calm_s < floor_s:
        words = f"one replica may go if the load stays low for {floor_s:g} s"
        return ServingDecision(state.wanted, words, is_calm=True, wait_s=floor_s - state.calm_s)
    return ServingDecision(state.wanted - 1, f"the load stayed low for {floor_s:g} s", is_calm=True)


def _to_zero(state: ServingState, policy: ServingPolicy, prices: ServingPrices, floor_s: float) -> ServingDecision:
    """Replicas without work go when they have cost as much as the cold start that brings them back.

    Whatever comes next, that costs at most twice of what the best choice would have cost.
    """
    if not policy.is_buffered:
        return ServingDecision(
            max(state.wanted - 1, 1) if state.calm_s >= floor_s else state.wanted,
            "the last replica stays, because nothing keeps requests while there is none",
            is_calm=True,
            wait_s=max(floor_s - state.calm_s, 0.0),
        )
    price_s = prices.replica_per_h * state.wanted / 3600
    worth_s = state.cold_start_s + (prices.cold_start / price_s if price_s > 0 else 0.0)
    needed_s = max(floor_s, worth_s)
    if state.idle_s < needed_s:
        words = f"no requests for {state.idle_s:g} s; a cold start is worth {needed_s:g} s without work"
        return ServingDecision(state.wanted, words, is_calm=True, wait_s=needed_s - state.idle_s)
    return ServingDecision(0, f"no requests for {needed_s:g} s", is_calm=True)
