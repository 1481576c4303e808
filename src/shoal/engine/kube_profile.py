"""Converts a `KubeSchedulerConfiguration` to profiles: plugins to rules by name, with their weights and arguments.

Each plugin or field that the engine does not support causes one warning. Filters always apply: a profile that disables
one gets a warning. Every node is evaluated, so the percentage of nodes to score has no effect. Scores stay on a fixed
scale where kube-scheduler rescales some of them over the candidates (node affinity, taints), so a weight means the same
in every decision.

Shoal's own policies can be named as score plugins too. Their points count beside the others with the weight given,
and the heaviest of them chooses the devices. Affinity that a profile adds to all pods becomes part of each pod's ask
(see `from_api`), so filters need not know of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shoal.api.node_affinity import NodeAffinity
from shoal.api.scheduler_config import SchedulerConfig, SchedulerProfile
from shoal.engine.cluster import Cluster
from shoal.engine.device_choice import TIGHTEST
from shoal.engine.domains.soft import Soft
from shoal.engine.pod_mix import PodMix
from shoal.engine.profile import POLICIES, Profile
from shoal.engine.scores.allocation import BalancedAllocation, ResourceAllocationScore, ShapePoint
from shoal.engine.scores.preferences import PreferredAffinity, SoftTaints
from shoal.engine.scores.rule import NodeScore, StaticScore
from shoal.units.errors import UserError, Where

OWN_PLUGINS: tuple[str, ...] = tuple(POLICIES)
"""What `read_scheduler_config` should let through as score plugins of ours."""

MOST_WEIGHT = 1_000_000
"""Of one profile's scores together: beyond this a key no longer holds the score and the rank."""

_RANDOM = "Random"

_ALWAYS_HOLD = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
)

_STATIC_SCORES: dict[str, StaticScore] = {
    "NodeAffinity": PreferredAffinity(),
    "TaintToleration": SoftTaints(),
}

_ABOUT_PODS = ("PodTopologySpread", "InterPodAffinity")

_NOT_YET: dict[str, str] = {
    "ImageLocality": "which images a node holds is not known",
    "NodeVolumeLimits": "how many volumes a node can attach is not counted",
}


@dataclass(frozen=True, slots=True)
class KubeProfile:
    """One profile of a configuration, before it meets a cluster."""

    scheduler_name: str
    static_scores: tuple[tuple[StaticScore, int], ...]
    node_scores: tuple[tuple[NodeScore, int], ...]
    soft: Soft
    policies: tuple[tuple[str, int], ...]
    """Our own policies among its plugins, the heaviest first."""
    added_affinity: NodeAffinity | None
    """To be handed to `ask_of_pod` for every pod of this scheduler."""

    def build(self, cluster: Cluster, mix: PodMix) -> Profile:
        policies = [(POLICIES[name](cluster, mix), weight) for name, weight in self.policies]
        own = tuple((score, weight * w) for policy, w in policies for score, weight in policy.node_scores)
        return Profile(
            name=self.scheduler_name,
            static_scores=self.static_scores,
            node_scores=(*self.node_scores, *own),
            soft=self.soft,
            devices=policies[0][0].devices if policies else TIGHTEST,
            at_random=any(policy.at_random for policy, _ in policies),
            epoch=_epoch([policy.epoch for policy, _ in policies]),
        )


@dataclass(frozen=True, slots=True)
class KubeProfiles:
    """All profiles of a configuration, and what of it has no effect."""

    profiles: tuple[KubeProfile, ...]
    warnings: tuple[str, ...]

    def profile(self, scheduler_name: str) -> KubeProfile | None:
        return next((p for p in self.profiles if p.scheduler_name == scheduler_name), None)


def kube_profiles(config: SchedulerConfig) -> KubeProfiles:
    """The configuration's profiles, in its order."""
    idle: dict[str, list[str]] = {}
    profiles = []
    for wire in config.profiles:
        profiles.append(_profile(wire))
        for warning in _without_effect(wire):
            idle.setdefault(warning, []).append(wire.scheduler_name)
    reported = [f"{', '.join(names)}: {warning}" for warning, names in idle.items()]
    return KubeProfiles(tuple(profiles), (*config.warnings, *reported))


def _profile(wire: SchedulerProfile) -> KubeProfile:
    weights = dict(wire.scores)
    total = sum(weights.values()) + sum(weight for _, weight in wire.own_scores)
    if total > MOST_WEIGHT:
        raise UserError(
            f"the weights of its scores add up to {total}",
            where=Where(obj=f"profile {wire.scheduler_name}"),
            fix=f"at most {MOST_WEIGHT} are possible",
        )
    node_scores = _node_scores(wire)
    policies = [(name, weight) for name, weight in wire.own_scores if name != _RANDOM or _is_alone(wire)]
    return KubeProfile(
        scheduler_name=wire.scheduler_name,
        static_scores=tuple((score, weights[name]) for name, score in _STATIC_SCORES.items() if name in weights),
        node_scores=tuple((score, weights[name]) for name, score in node_scores.items() if name in weights),
        soft=Soft(
            affinity=weights.get("InterPodAffinity", 0),
            spread=weights.get("PodTopologySpread", 0),
            required_too=wire.pod_affinity.hard_pod_affinity_weight,
            others_too=not wire.pod_affinity.ignore_preferred_terms_of_existing_pods,
        ),
        policies=tuple(sorted(policies, key=lambda policy: -policy[1])),
        added_affinity=wire.node_affinity.added_affinity,
    )


def _node_scores(wire: SchedulerProfile) -> dict[str, NodeScore]:
    strategy = wire.fit.scoring_strategy
    # Curves are written with scores from 0 to 10.
    shape = tuple(ShapePoint(utilization, 10 * score) for utilization, score in strategy.shape())
    return {
        "NodeResourcesFit": ResourceAllocationScore(strategy.type, strategy.weights(), shape),
        "NodeResourcesBalancedAllocation": BalancedAllocation(tuple((name, 1) for name in wire.balanced.names())),
    }


def _is_alone(wire: SchedulerProfile) -> bool:
    """Whether nothing else that we can do scores in this profile."""
    scored = {*_STATIC_SCORES, *_node_scores(wire), *_ABOUT_PODS}
    return len(wire.own_scores) == 1 and not any(name in scored for name, _ in wire.scores)


def _without_effect(wire: SchedulerProfile) -> list[str]:
    enabled = {*wire.filters, *dict(wire.scores), *(["DefaultPreemption"] if wire.can_preempt else [])}
    warnings = [f"{name}: {why}" for name, why in _NOT_YET.items() if name in enabled]
    warnings += [f"{name}: cannot be switched off as a filter" for name in _ALWAYS_HOLD if name not in wire.filters]
    if wire.fit.ignored_resources or wire.fit.ignored_resource_groups:
        warnings.append("NodeResourcesFit: ignoredResources and ignoredResourceGroups are not ignored")
    if wire.topology_spread.default_constraints:
        warnings.append("PodTopologySpread: defaultConstraints have no effect: Services and ReplicaSets are not known")
    if _RANDOM in dict(wire.own_scores) and not _is_alone(wire):
        warnings.append(f"{_RANDOM}: has no effect beside other scores; disable those with '*'")
    return warnings


def _epoch(epochs: Sequence[Callable[[], int]]) -> Callable[[], int]:
    # Each counts up by itself, so the sum changes when any of them does.
    return lambda: sum(epoch() for epoch in epochs)
