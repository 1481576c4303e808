"""Prices the interruptions of spot nodes by the work that they lose, so that a plan can compare them with on-demand.

Expected cost per hour = price + interruptions per hour x lost hours x price of all nodes that lose them. An
interruption loses the time since the last checkpoint, which is half of the interval on average, and the time until the
pods work again. A pod without checkpoints loses half of its run. Pods of a Deployment or StatefulSet serve, and lose
only the time to start again. If a gang loses a node, all of its nodes with devices lose their work.

Only pods with devices count, as for removals. An offering whose rate of interruptions is not known has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from shoal.api.pod import Pod
from shoal.autoscale.nodes.instance_types import SPOT, InstanceType
from shoal.autoscale.nodes.pools import NodePool
from shoal.engine.asks import Ask
from shoal.engine.from_api import ask_of_pod
from shoal.engine.from_api.checkpoints import saves_every_s
from shoal.engine.from_api.queues.expected import expected_s
from shoal.units.errors import UserError, Where

RESTART_S: Final = 300.0
"""The time until a pod with GPUs works again on another node: image, weights, start."""
UNKNOWN_RUN_S: Final = 24 * 3600.0
"""How long a pod runs that does not say it."""
_HOUR_S: Final = 3600.0
_SERVING: Final = frozenset({"LeaderWorkerSet", "ReplicaSet", "StatefulSet"})


class PodLoss(NamedTuple):
    """What an interruption costs a pod on average."""

    hours: float = 0.0
    gang: str = ""
    gang_pods: int = 1
    """How many pods lose their work with it."""


NO_LOSS: Final = PodLoss()


def loss_of(pod: Pod, ask: Ask) -> PodLoss:
    """Of a pod that is in no gang."""
    if ask.devices is None and not ask.claims:
        return NO_LOSS
    owner = pod.metadata.controller()
    work_s = 0.0 if owner is not None and owner.kind in _SERVING else _run_s(pod)
    annotations = pod.metadata.annotations
    try:
        every_s = saves_every_s(annotations, Where())
    except UserError:
        every_s = 0.0
    return PodLoss((min(work_s, every_s or work_s) / 2 + RESTART_S) / _HOUR_S)


def losses_of(pods: Sequence[Pod], gangs: Mapping[str, str]) -> list[PodLoss]:
    """Of pods that run together. `gangs`: by the namespace and name of pods."""
    found = [loss_of(pod, ask_of_pod(pod)) for pod in pods]
    places: dict[str, list[int]] = {}
    for place, pod in enumerate(pods):
        if gang := gangs.get(pod.metadata.key):
            places.setdefault(gang, []).append(place)
    for gang, of_one in places.items():
        for place, loss in zip(of_one, of_gang([found[place] for place in of_one], gang), strict=True):
            found[place] = loss
    return found


def of_gang(losses: Sequence[PodLoss], gang: str) -> list[PodLoss]:
    """Of all pods of a gang. A member that loses nothing does not count: a node of its own has no work to lose."""
    count = sum(each.hours > 0 for each in losses)
    return [PodLoss(each.hours, gang, count) if each.hours > 0 else NO_LOSS for each in losses]


def _run_s(pod: Pod) -> float:
    try:
        expected = expected_s(pod.metadata.annotations, Where())
    except UserError:
        expected = None
    deadline = pod.spec.active_deadline_seconds
    return min((each for each in (expected, deadline) if each is not None), default=UNKNOWN_RUN_S)


def lost_hours(losses: Iterable[PodLoss]) -> float:
    """The hours of one node that an interruption of the node with these pods loses, on average. Hours of other nodes of
    a gang count as its own: a node with a quarter of the gang loses four times its hours.
    """
    listed = list(losses)
    here = Counter(each.gang for each in listed if each.gang)
    return max(
        (each.hours * (max(each.gang_pods / here[each.gang], 1.0) if each.gang else 1.0) for each in listed),
        default=0.0,
    )


def with_rates(pool: NodePool, types: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
    """The types of the pool, with the rate of interruptions that it names for spot."""
    rate = pool.spot_interruptions_per_hour
    if rate is None:
        return types
    return tuple(
        replace(
            one,
            offerings=tuple(
                replace(each, interruptions_per_hour=rate) if each.capacity_type == SPOT else each
                for each in one.offerings
            ),
        )
        for one in types
    )
