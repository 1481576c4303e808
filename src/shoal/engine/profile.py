"""Defines profiles: weighted scores and a device choice under one name. Policies are profiles with a builder in one
list.

A builder gets the cluster and the mix of pods, because some rules judge what a placement leaves for the pods that
usually come. Adding a policy is one function and one line in `POLICIES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shoal.data.gpu_prices import highest_price_level
from shoal.engine.cluster import Cluster
from shoal.engine.device_choice import RANDOM, TIGHTEST
from shoal.engine.domains.soft import NO_SOFT, Soft
from shoal.engine.pod_mix import PodMix
from shoal.engine.scores.fgd_paper import BestFit, DotProd, GpuClustering, GpuPacking
from shoal.engine.scores.gpu_price import PER_LEVEL, GpuPrice
from shoal.engine.scores.gradient import FragmentationGradient
from shoal.engine.scores.power import PricedPower
from shoal.engine.scores.preferences import PreferredAffinity, SoftTaints
from shoal.engine.scores.rule import DeviceChoice, NodeScore, StaticScore
from shoal.engine.scores.worth import LeastLoss


@dataclass(frozen=True, slots=True)
class Profile:
    """What is preferred among the nodes that fit, and how devices are chosen on the winner."""

    name: str
    static_scores: tuple[tuple[StaticScore, int], ...] = ()
    node_scores: tuple[tuple[NodeScore, int], ...] = ()
    soft: Soft = NO_SOFT
    """What preferences about other pods weigh."""
    devices: DeviceChoice = TIGHTEST
    at_random: bool = False
    """Any node that fits, with equal chances, instead of the best."""
    epoch: Callable[[], int] = lambda: 0
    """Brings tables behind the scores up to date; a new number means that all keys are stale."""
    static_epoch: Callable[[], object] = lambda: None
    """Read after `epoch`; a new value means that the static scores changed too."""
    forget: Callable[[], None] = lambda: None
    """Drops what the scores keep of every node, for callers that decide without memory."""


NO_PREFERENCES = Profile("None")
"""For a cycle in which only disciplines decide that have preferences of their own."""

_PREFERRED = PER_LEVEL << highest_price_level().bit_length()
"""A point of a preference outweighs any difference of prices."""

SOFT_PREFERENCES: tuple[tuple[StaticScore, int], ...] = ((PreferredAffinity(), _PREFERRED), (SoftTaints(), _PREFERRED))
"""What a pod's author asked for outweighs what the fleet would like; a pod without preferences is not touched."""

SOFT_POD_RULES = Soft(affinity=_PREFERRED, spread=_PREFERRED)
"""The same for preferences about other pods."""


def _random(_cluster: Cluster, _mix: PodMix) -> Profile:
    return Profile("Random", devices=RANDOM, at_random=True)


def _dot_prod(_cluster: Cluster, _mix: PodMix) -> Profile:
    return Profile("DotProd", node_scores=((DotProd(), 1),))


def _gpu_clustering(cluster: Cluster, _mix: PodMix) -> Profile:
    return Profile("GpuClustering", node_scores=((GpuClustering(cluster), 1),))


def _gpu_packing(_cluster: Cluster, _mix: PodMix) -> Profile:
    return Profile("GpuPacking", node_scores=((GpuPacking(), 1),))


def _best_fit(_cluster: Cluster, _mix: PodMix) -> Profile:
    return Profile("BestFit", node_scores=((BestFit(), 1),))


def _gradient(cluster: Cluster, mix: PodMix) -> Profile:
    rule = FragmentationGradient(cluster, mix)
    return Profile("FGD", node_scores=((rule, 1),), devices=rule)


def _least_loss(cluster: Cluster, mix: PodMix) -> Profile:
    rule = LeastLoss(cluster, mix)
    price = GpuPrice(cluster, rule.tables)
    return Profile(
        "Shoal",
        (*SOFT_PREFERENCES, (price, 1)),
        ((rule, 1),),
        SOFT_POD_RULES,
        devices=rule,
        epoch=rule.renewed,
        static_epoch=price.epoch,
        forget=rule.columns.forget,
    )


def _least_loss_and_power(cluster: Cluster, mix: PodMix) -> Profile:
    loss = LeastLoss(cluster, mix)
    power = PricedPower(cluster, loss)
    scores = ((loss, 1), (power.rise, 1))
    return Profile(
        "Shoal+Power",
        SOFT_PREFERENCES,
        scores,
        SOFT_POD_RULES,
        devices=loss,
        epoch=power.renewed,
        forget=loss.columns.forget,
    )


DEFAULT_POLICY = "Shoal"

Builder = Callable[[Cluster, PodMix], Profile]
"""Makes a profile for one cluster and the mix of pods that it serves."""

POLICIES: dict[str, Builder] = {
    DEFAULT_POLICY: _least_loss,
    "Shoal+Power": _least_loss_and_power,
    "Random": _random,
    "DotProd": _dot_prod,
    "GpuClustering": _gpu_clustering,
    "GpuPacking": _gpu_packing,
    "BestFit": _best_fit,
    "FGD": _gradient,
}


def profile_named(name: str, cluster: Cluster, mix: PodMix) -> Profile:
    """The profile of one of our policies."""
    return POLICIES[name](cluster, mix)
