"""How many pods a job is to have now, and so which ones go or come.

Pods go before others come: a job that has both to do does one now and looks again.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.controllers.jobs.backoff import Failures, index_failures
from shoal.controllers.jobs.indexes import first_free
from shoal.controllers.jobs.pods import JobPod, removal_rank
from shoal.controllers.jobs.stock import Stock

MOST_AT_ONCE = 500
"""Pods created or deleted before the job is looked at again, so that it leaves room for others."""


class Demand(msgspec.Struct, frozen=True):
    remove: tuple[JobPod, ...] = ()
    create: int = 0
    indexes: tuple[int, ...] = ()
    """For each of those to create, of an indexed job."""
    wait_s: float | None = None
    """Until more may be created."""


def find_demand(stock: Stock, failures: Failures, now_s: float) -> Demand:
    spec, active = stock.job.spec, len(stock.active)
    if spec.suspend:
        return Demand(remove=stock.active)
    wanted = _wanted(stock)
    if remove := _surplus(stock, max(active - wanted, 0)):
        return Demand(remove=tuple(remove[:MOST_AT_ONCE]))
    ending = sum(pod.is_terminating for pod in stock.pods) if spec.replaces_only_failed else 0
    lacking = wanted - ending - active
    if lacking <= 0:
        return Demand()
    if spec.backoff_limit_per_index is None and (wait_s := failures.wait_s(now_s)) > 0:
        return Demand(wait_s=wait_s)
    lacking = min(lacking, MOST_AT_ONCE)
    if not spec.is_indexed:
        return Demand(create=lacking)
    indexes = first_free(lacking, spec.completions or 0, stock.taken)
    waits_s = {index: index_failures(stock.held.get(index)).wait_s(now_s) for index in indexes}
    now = tuple(index for index in indexes if waits_s[index] <= 0)
    later_s = [wait_s for wait_s in waits_s.values() if wait_s > 0]
    return Demand(create=len(now), indexes=now, wait_s=min(later_s, default=None))


def _wanted(stock: Stock) -> int:
    spec = stock.job.spec
    if spec.completions is None:
        # A work queue: the first success says that nothing is left to take, and those that work on may finish.
        return len(stock.active) if stock.succeeded else spec.parallelism
    return max(min(spec.completions - stock.succeeded, spec.parallelism), 0)


def _surplus(stock: Stock, least: int) -> list[JobPod]:
    """At least so many; of an indexed job also those that share an index or have none that is asked for."""
    spec, kept, gone = stock.job.spec, list(stock.active), list[JobPod]()
    if spec.is_indexed:
        kept, gone = _one_each([pod for pod in kept if spec.has_index(pod.index)])
        gone = [pod for pod in stock.active if not spec.has_index(pod.index)] + gone
    if len(gone) < least:
        gone += sorted(kept, key=removal_rank)[: least - len(gone)]
    return gone


def _one_each(pods: Sequence[JobPod]) -> tuple[list[JobPod], list[JobPod]]:
    best: dict[int | None, JobPod] = {}
    gone: list[JobPod] = []
    for pod in pods:
        other = best.setdefault(pod.index, pod)
        if other is pod:
            continue
        first, second = sorted((other, pod), key=removal_rank)
        best[pod.index] = second
        gone.append(first)
    return list(best.values()), gone
