"""Decides for the pods in KAI's queues of a set of manifests, with the fair-share discipline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from shoal.engine.cluster import Cluster
from shoal.engine.events import Event
from shoal.engine.intake import Intake
from shoal.engine.placement import Placement
from shoal.engine.profile import NO_PREFERENCES
from shoal.engine.queues.disciplines.kai.fair_facts import fair_facts
from shoal.engine.queues.disciplines.kai.fair_queues import QueueTree, fair_queues
from shoal.engine.queues.disciplines.kai.objects import Queue
from shoal.engine.queues.disciplines.kai.pool_members import PoolMembers
from shoal.engine.queues.disciplines.kai.queue_members import DEFAULT_QUEUE, QueueMembers
from shoal.engine.queues.disciplines.kai.sharded_fairshare import ShardedFairshare
from shoal.engine.queues.disciplines.kai.shards import Shards
from shoal.engine.queues.disciplines.kai.usage_record import Usage
from shoal.sim.rounds import Rounds

_MOST_ROUNDS = 50


class KaiShards(NamedTuple):
    """The shards of a set of manifests."""

    shards: Shards = Shards()
    usage: Mapping[str, Usage] = {}
    """Name of a shard -> what its queues used, as it was recorded."""


NO_SHARDS = KaiShards()


def discipline_of(queues: Mapping[str, Queue], shards: KaiShards = NO_SHARDS) -> ShardedFairshare | None:
    """None where there are no queues of KAI."""
    if not queues:
        return None
    found = ShardedFairshare(fair_queues(queues.values(), shards.shards.label), shards.shards)
    for name, usage in shards.usage.items():
        found.disciplines[name].usage = usage
    return found


def grouped(queues: Mapping[str, Queue], events: Iterable[Event], shards: KaiShards = NO_SHARDS) -> list[Event]:
    """The events, with the groups of KAI's queues and the nodes of their pools."""
    members, pools = QueueMembers(has_default=DEFAULT_QUEUE in queues), PoolMembers(shards.shards.pools)
    return [translated for event in events for translated in pools.translated(members.translated(event))]


class Decided(NamedTuple):
    discipline: ShardedFairshare
    """After its last cycles, once nothing changes any more: who still waits, and why."""
    cluster: Cluster
    before: QueueTree
    """What the queues hold in the beginning."""


def decided(
    queues: Mapping[str, Queue], events: Sequence[Event], now_s: float, shards: KaiShards = NO_SHARDS
) -> Decided | None:
    discipline = discipline_of(queues, shards)
    if discipline is None:
        return None
    intake = Intake(Cluster())
    for event in grouped(queues, events, shards):
        intake.apply(event)
    before = fair_facts(intake.cluster, discipline.queues).tree
    placement = Placement(intake.cluster, NO_PREFERENCES)
    Rounds(intake, placement, now_s=now_s, steps=discipline.steps()).run(_MOST_ROUNDS)
    return Decided(discipline, intake.cluster, before)
