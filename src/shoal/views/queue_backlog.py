"""Lists the workloads that wait for quota, and the sum of their requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from shoal.engine.queues.decisions import StillWaiting
from shoal.engine.queues.facts import Amounts, WorkloadFacts
from shoal.engine.queues.kueue import Kueue
from shoal.engine.queues.workloads import totals_of

Number = int | float


class Waiter(msgspec.Struct, frozen=True):
    """A workload in front of a queue."""

    workload: str
    queue: str
    asked: Amounts
    """All its pods together, in the engine's units."""
    waiting: StillWaiting

    @property
    def is_parked(self) -> bool:
        return self.waiting.state != "active"


class Backlog(msgspec.Struct, frozen=True):
    """How many wait, and for how much; memory in bytes, cpu in cores."""

    workloads: int = 0
    inadmissible: int = 0
    """The number of workloads that are not tried again until something changes."""
    parked: int = 0
    """The former name of `inadmissible`; the next release removes it."""
    amounts: dict[str, Number] = {}


def waiters_of(kueue: Kueue, workloads: Mapping[str, WorkloadFacts]) -> list[Waiter]:
    """All waiting workloads, pending or inadmissible, out of all `workloads`."""
    found = []
    for waiting in kueue.states():
        facts = workloads[waiting.workload]
        found.append(Waiter(waiting.workload, waiting.queue, asked_by(facts), waiting))
    return found


def asked_by(facts: WorkloadFacts) -> Amounts:
    """Without the count of pods, which only few queues cover."""
    total: Amounts = {}
    for each in totals_of(facts):
        for resource, amount in each.requests.items():
            if resource != "pods" or resource in each.pod_set.requests:
                total[resource] = total.get(resource, 0) + amount
    return {resource: amount for resource, amount in sorted(total.items()) if amount}


def backlog_of(waiters: Iterable[Waiter]) -> Backlog:
    amounts: Amounts = {}
    count = inadmissible = 0
    for waiter in waiters:
        count += 1
        inadmissible += waiter.is_parked
        for resource, amount in waiter.asked.items():
            amounts[resource] = amounts.get(resource, 0) + amount
    return Backlog(
        count, inadmissible, inadmissible, {name: plain(name, amount) for name, amount in sorted(amounts.items())}
    )


def plain(resource: str, amount: int) -> Number:
    """An amount of the engine's in cores, bytes or pieces."""
    if resource == "cpu":
        return amount // 1000 if amount % 1000 == 0 else amount / 1000
    # Readers of JSON keep whole numbers up to here.
    return amount if abs(amount) < 1 << 63 else float(amount)
