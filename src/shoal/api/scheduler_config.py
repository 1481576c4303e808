"""A `KubeSchedulerConfiguration` as profiles of filters and weighted scores.

Accepted are the current version, the retired v1beta3 with a warning, and a ConfigMap that carries either,
which is how most clusters keep theirs. What kube-scheduler would refuse is refused, with the path of the
field; what only makes no difference here (extenders, sampling of nodes, plugins of others) is accepted and
said in a warning.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from msgspec import Meta, field

from shoal.api.decode import Document, Unknown, convert, read
from shoal.api.pod import DEFAULT_SCHEDULER
from shoal.api.scheduler_args import (
    Args,
    BalancedAllocationArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesFitArgs,
    TopologySpreadArgs,
)
from shoal.api.scheduler_plugins import Plugins
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt

GROUP = "kubescheduler.config.k8s.io"
KIND = "KubeSchedulerConfiguration"

_CURRENT = f"{GROUP}/v1"
_RETIRED = f"{GROUP}/v1beta3"

ARGS: dict[str, type[Args]] = {
    "NodeResourcesFit": NodeResourcesFitArgs,
    "NodeResourcesBalancedAllocation": BalancedAllocationArgs,
    "NodeAffinity": NodeAffinityArgs,
    "PodTopologySpread": TopologySpreadArgs,
    "InterPodAffinity": InterPodAffinityArgs,
}
_ARGS_WITHOUT_EFFECT = frozenset({"DefaultPreemption", "VolumeBinding", "DynamicResources"})

# Fields about the process kube-scheduler is, which Shoal is not.
_ABOUT_THE_PROCESS = frozenset(
    {
        "clientConnection",
        "delayCacheUntilActive",
        "enableContentionProfiling",
        "enableProfiling",
        "healthzBindAddress",
        "leaderElection",
        "metadata",
        "metricsBindAddress",
        "parallelism",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
    }
)

Percentage = Annotated[int, Meta(ge=0, le=100)]
A = TypeVar("A", bound=Args)


class _PluginConfig(ApiStruct, frozen=True, forbid_unknown_fields=True):
    name: str
    args: dict[str, Any] = field(default_factory=dict)


class _Profile(ApiStruct, frozen=True, forbid_unknown_fields=True):
    scheduler_name: str = ""
    percentage_of_nodes_to_score: Percentage | None = None
    plugins: Plugins = field(default_factory=Plugins)
    plugin_config: tuple[_PluginConfig, ...] = ()


class _Configuration(ApiStruct, frozen=True, forbid_unknown_fields=True):
    api_version: str
    kind: str
    profiles: tuple[_Profile, ...] = (_Profile(),)
    percentage_of_nodes_to_score: Percentage | None = None
    extenders: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class SchedulerProfile:
    """What one scheduler name does: hard rules, weighted preferences, and their arguments."""

    scheduler_name: str
    filters: tuple[str, ...]
    scores: tuple[tuple[str, int], ...]
    can_preempt: bool
    fit: NodeResourcesFitArgs
    balanced: BalancedAllocationArgs
    node_affinity: NodeAffinityArgs
    topology_spread: TopologySpreadArgs
    pod_affinity: InterPodAffinityArgs
    own_scores: tuple[tuple[str, int], ...] = ()
    """Plugins of the caller's own, with their weights."""


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    profiles: tuple[SchedulerProfile, ...]
    percentage_of_nodes_to_score: int | None
    warnings: tuple[str, ...]

    def profile(self, scheduler_name: str) -> SchedulerProfile | None:
        return next((p for p in self.profiles if p.scheduler_name == scheduler_name), None)


def read_scheduler_config(data: bytes | str, file: str = "", own: Collection[str] = ()) -> SchedulerConfig:
    """The one scheduler configuration in a file, bare or inside a ConfigMap. `own` names score plugins of our own."""
    for document in _unwrapped(read(data, file)):
        value = document.value
        if isinstance(value, Unknown) and value.kind == KIND:
            return scheduler_config(value, document.where, own)
    raise UserError(f"contains no {KIND}", where=Where(file=file))


def scheduler_config(value: Unknown, where: Where, own: Collection[str] = ()) -> SchedulerConfig:
    warnings = []
    if value.api_version == _RETIRED:
        warnings.append(f"{where}: apiVersion {_RETIRED} was removed in Kubernetes 1.29, read as {_CURRENT}")
    elif value.api_version != _CURRENT:
        raise UserError(
            f"unsupported value {excerpt(value.api_version)}",
            where=where.below("apiVersion"),
            fix=f"supported values are {_CURRENT}",
        )
    known = {name: inner for name, inner in value.raw.items() if name not in _ABOUT_THE_PROCESS}
    wire = convert(known, _Configuration, where)
    if wire.extenders:
        warnings.append(f"{where}: extenders: are not called")
    if wire.percentage_of_nodes_to_score not in {None, 0, 100}:
        warnings.append(f"{where}: percentageOfNodesToScore: every node is scored, whatever the percentage")
    profiles: dict[str, SchedulerProfile] = {}
    for index, profile in enumerate(wire.profiles):
        here = where.below(f"profiles[{index}]")
        resolved = _resolved(profile, alone=len(wire.profiles) == 1, own=own, where=here)
        if resolved.scheduler_name in profiles:
            raise UserError(f"duplicate value {excerpt(resolved.scheduler_name)}", where=here.below("schedulerName"))
        profiles[resolved.scheduler_name] = resolved
        warnings.extend(_warnings(profile, resolved, here))
    if not profiles:
        raise UserError("at least one profile is required", where=where.below("profiles"))
    return SchedulerConfig(tuple(profiles.values()), wire.percentage_of_nodes_to_score, tuple(warnings))


def _resolved(profile: _Profile, *, alone: bool, own: Collection[str], where: Where) -> SchedulerProfile:
    if not profile.scheduler_name and not alone:
        raise UserError("is required", where=where.below("schedulerName"))
    profile.plugins.check(where.below("plugins"))
    given: dict[str, Args] = {}
    for index, config in enumerate(profile.plugin_config):
        here = where.below(f"pluginConfig[{index}]")
        if config.name in given:
            raise UserError(f"plugin {excerpt(config.name)} is configured twice", where=here.below("name"))
        given[config.name] = _args(config, here.below("args"))
    return SchedulerProfile(
        scheduler_name=profile.scheduler_name or DEFAULT_SCHEDULER,
        filters=profile.plugins.filters(),
        scores=profile.plugins.scores(),
        can_preempt=profile.plugins.can_preempt(),
        fit=_of(NodeResourcesFitArgs, given),
        balanced=_of(BalancedAllocationArgs, given),
        node_affinity=_of(NodeAffinityArgs, given),
        topology_spread=_of(TopologySpreadArgs, given),
        pod_affinity=_of(InterPodAffinityArgs, given),
        own_scores=profile.plugins.own_scores(own),
    )


def _args(config: _PluginConfig, where: Where) -> Args:
    wanted = ARGS.get(config.name)
    if wanted is None:
        return Args()
    kind = config.args.get("kind")
    if kind is not None and kind != f"{config.name}Args":
        raise UserError(f"{excerpt(str(kind))} has to match plugin {config.name}", where=where.below("kind"))
    args = convert(config.args, wanted, where)
    args.check(where)
    return args


def _of(wanted: type[A], given: dict[str, Args]) -> A:
    return next((args for args in given.values() if isinstance(args, wanted)), wanted())


def _warnings(profile: _Profile, resolved: SchedulerProfile, where: Where) -> list[str]:
    unknown = [
        f"{where}: plugins: {name} is not known here and does nothing"
        for name in profile.plugins.unknown()
        if name not in dict(resolved.own_scores)
    ]
    if profile.percentage_of_nodes_to_score not in {None, 0, 100}:
        unknown.append(f"{where}: percentageOfNodesToScore: every node is scored, whatever the percentage")
    return unknown + [
        f"{where}: pluginConfig[{index}]: arguments of {config.name} have no effect here"
        for index, config in enumerate(profile.plugin_config)
        if config.name not in ARGS and (config.args or config.name not in _ARGS_WITHOUT_EFFECT)
    ]


def _unwrapped(documents: list[Document]) -> list[Document]:
    """Configurations that lie as text inside ConfigMaps replace the ConfigMap."""
    found = []
    for document in documents:
        value = document.value
        if not isinstance(value, Unknown) or value.kind != "ConfigMap":
            found.append(document)
            continue
        for key, text in value.raw.get("data", {}).items():
            if isinstance(text, str) and KIND in text:
                inside = document.where.below("data").key(key)
                found.extend(Document(inner.value, inside) for inner in _read_inside(text, inside))
    return found


def _read_inside(text: str, where: Where) -> list[Document]:
    try:
        return read(text)
    except UserError as error:
        raise UserError(f"{error.where.path}: {error.what}" if error.where.path else error.what, where=where) from error
