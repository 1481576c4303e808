"""Reads Volcano's scheduler configuration: actions in order, tiers of plugins with their switches, and arguments.

A switch that is absent means the default, a switch that is off means off, and an argument of 0 is an answer. An unknown
name of an action or a plugin is reported with the nearest known name, and the others still run. Arguments and switches
without effect are reported by name. A document of the wrong
structure is an error: the caller keeps the last good configuration.

Rejected: the reading of files and ConfigMaps here. The document arrives as plain values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import msgspec

from shoal.engine.queues.disciplines.volcano.unread_arguments import unread_of_action, unread_of_plugin
from shoal.units.errors import UserError, Where, excerpt

ACTIONS = ("enqueue", "allocate", "preempt", "reclaim", "backfill", "shuffle", "gangpreempt", "gangreclaim")

SWITCHES: Mapping[str, str] = {
    "JobOrder": "enableJobOrder",
    "SubJobOrder": "enableSubJobOrder",
    "JobReady": "enableJobReady",
    "SubJobReady": "enableSubJobReady",
    "JobPipelined": "enableJobPipelined",
    "SubJobPipelined": "enableSubJobPipelined",
    "JobEnqueued": "enableJobEnqueued",
    "JobStarving": "enableJobStarving",
    "TaskOrder": "enableTaskOrder",
    "Preemptable": "enablePreemptable",
    "Reclaimable": "enableReclaimable",
    "Preemptive": "enablePreemptive",
    "QueueOrder": "enableQueueOrder",
    "ClusterOrder": "EnabledClusterOrder",
    "Predicate": "enablePredicate",
    "BestNode": "enableBestNode",
    "NodeOrder": "enableNodeOrder",
    "HyperNodeOrder": "enableHyperNodeOrder",
    "HyperNodeGradient": "enableHyperNodeGradient",
    "TargetJob": "enableTargetJob",
    "ReservedNodes": "enableReservedNodes",
    "Victim": "enableVictim",
    "Overused": "enabledOverused",
    "Allocatable": "enabledAllocatable",
    "Hierarchy": "enableHierarchy",
}
"""The name of a hook, and the switch of a plugin that turns it on or off."""
_OFF_BY_DEFAULT = frozenset({"Hierarchy"})
_DEFAULT_HOOKS = frozenset(SWITCHES) - _OFF_BY_DEFAULT
_ALIASES = {"networktopologyaware": "network-topology-aware", "resourcestrategyfit": "resource-strategy-fit"}

CONSOLIDATES = "rescheduling"
_OF_A_TREE = ("capacity",)
"""The plugins that have hierarchies."""
_READ = ("actions", "tiers", "configurations")

IMPLEMENTED = (
    "gang",
    "priority",
    "conformance",
    "drf",
    "proportion",
    "capacity",
    "overcommit",
    "sla",
    "tdm",
    "predicates",
    "nodeorder",
    "binpack",
    "resource-strategy-fit",
    "network-topology-aware",
    "pdb",
    CONSOLIDATES,
)
_WITHOUT_EFFECT: Mapping[str, str] = {
    "cdp": "pods are protected after their start by shoal.dev/min-runtime",
    "deviceshare": "GPU shares are always scheduled",
    "extender": "scheduler extenders are not called",
    "nodegroup": "node groups of queues are not read",
    "numaaware": "NUMA nodes of CPUs are not known",
    "numa-aware": "NUMA nodes of CPUs are not known",
    "resourcequota": "the API server enforces ResourceQuota",
    "task-topology": "use pod affinity or a network topology",
    "usage": "the measured load of nodes is not read",
}
PLUGINS = (*IMPLEMENTED, *_WITHOUT_EFFECT)


class PluginOption(msgspec.Struct, frozen=True):
    """A plugin of a tier."""

    name: str
    hooks: frozenset[str] = _DEFAULT_HOOKS
    arguments: Mapping[str, Any] = {}

    def has(self, hook: str) -> bool:
        return hook in self.hooks


class VolcanoConfiguration(msgspec.Struct, frozen=True):
    """What the scheduler does in a cycle."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    arguments: Mapping[str, Mapping[str, Any]] = {}
    """By action."""
    warnings: tuple[str, ...] = ()

    def plugins(self) -> Iterator[PluginOption]:
        for tier in self.tiers:
            yield from tier

    def argument(self, action: str, name: str, default: Any = None) -> Any:
        return self.arguments.get(action, {}).get(name, default)


def _without(*hooks: str) -> frozenset[str]:
    return _DEFAULT_HOOKS - set(hooks)


DEFAULT = VolcanoConfiguration(
    actions=("enqueue", "allocate", "backfill", "preempt", "reclaim", "gangpreempt", "gangreclaim"),
    tiers=(
        (
            PluginOption("priority"),
            PluginOption("gang"),
            PluginOption("conformance"),
            PluginOption("drf", _without("Preemptable")),
            PluginOption("predicates"),
            PluginOption("proportion"),
            PluginOption("capacity", _DEFAULT_HOOKS | {"Hierarchy"}),
            PluginOption("nodeorder"),
            PluginOption("binpack"),
            PluginOption("network-topology-aware"),
        ),
    ),
)
"""Used when the cluster has no configuration. Volcano's own default neither preempts nor reclaims. All plugins are in
one tier, so that they agree on every victim: gangs lose surplus pods one by one, and otherwise yield as a whole. The
plugin `rescheduling` is left out: it restarts running pods of others, which users of Volcano do not expect unless they
name it."""


def read_configuration(document: Any, where: Where) -> VolcanoConfiguration:
    """`document`: the content of `volcano-scheduler.conf`, parsed."""
    if not isinstance(document, Mapping):
        raise UserError(f"a mapping is expected, not {type(document).__name__}", where=where)
    warnings: list[str] = []
    actions = _actions(document.get("actions", ""), where.below("actions"), warnings)
    tiers = tuple(
        tuple(_plugins(tier, where.below(f"tiers[{index}]"), warnings))
        for index, tier in enumerate(_list(document.get("tiers"), where.below("tiers")))
    )
    arguments: dict[str, Mapping[str, Any]] = {}
    for index, entry in enumerate(_list(document.get("configurations"), where.below("configurations"))):
        here = where.below(f"configurations[{index}]")
        values = _mapping(entry, here)
        name = str(values.get("name", ""))
        if name not in ACTIONS:
            warnings.append(_unknown("action", name, ACTIONS, here))
            continue
        arguments[name] = _mapping(values.get("arguments") or {}, here.below("arguments"))
        warnings += (f"{here}: action {name}: {words}" for words in unread_of_action(name, arguments[name]))
    warnings += (f"{where.below(str(name))}: {name} is not read" for name in document if name not in _READ)
    return VolcanoConfiguration(actions, tiers, arguments, tuple(warnings))


def _actions(text: Any, where: Where, warnings: list[str]) -> tuple[str, ...]:
    if not isinstance(text, str):
        raise UserError(f"a list of names with commas is expected, not {type(text).__name__}", where=where)
    found: dict[str, None] = {}
    for name in (part.strip() for part in text.split(",")):
        if name in ACTIONS:
            found[name] = None
        elif name:
            warnings.append(_unknown("action", name, ACTIONS, where))
    return tuple(found)


def _plugins(tier: Any, where: Where, warnings: list[str]) -> Iterator[PluginOption]:
    entries = _list(_mapping(tier, where).get("plugins"), where.below("plugins"))
    for index, entry in enumerate(entries):
        here = where.below(f"plugins[{index}]")
        values = _mapping(entry, here)
        name = str(values.get("name", ""))
        name = _ALIASES.get(name, name)
        if name not in PLUGINS:
            warnings.append(_unknown("plugin", name, PLUGINS, here))
            continue
        if name in _WITHOUT_EFFECT:
            warnings.append(f"{here}: plugin {name} has no effect: {_WITHOUT_EFFECT[name]}")
            continue
        arguments = _mapping(values.get("arguments") or {}, here.below("arguments"))
        warnings += (f"{here}: plugin {name}: {words}" for words in unread_of_plugin(name, arguments))
        hooks = _hooks(values, here)
        warnings += (f"{here}: plugin {name}: {words}" for words in _unread_switches(name, values, hooks))
        yield PluginOption(name, hooks, arguments)


def _hooks(values: Mapping[str, Any], where: Where) -> frozenset[str]:
    by_switch = {switch.lower(): value for switch, value in values.items()}
    on: set[str] = set()
    for hook, switch in SWITCHES.items():
        value = by_switch.get(switch.lower(), by_switch.get(f"enable{hook}".lower()))
        if value is None:
            value = hook in _DEFAULT_HOOKS
        if not isinstance(value, bool):
            raise UserError(f"true or false is expected, not {excerpt(str(value))}", where=where.below(switch))
        if value:
            on.add(hook)
    return frozenset(on)


def _unread_switches(name: str, values: Mapping[str, Any], hooks: frozenset[str]) -> Iterator[str]:
    known = {each.lower() for hook, switch in SWITCHES.items() for each in (switch, f"enable{hook}")}
    for switch in values:
        if switch.lower().startswith("enable") and switch.lower() not in known:
            yield f"switch {switch} is not read"
    if "Hierarchy" in hooks and name not in _OF_A_TREE:
        yield f"switch {SWITCHES['Hierarchy']} has no effect: hierarchies are those of the plugin capacity"


def _unknown(what: str, name: str, known: tuple[str, ...], where: Where) -> str:
    near = get_close_matches(name, known, 1, 0.0)
    hint = f"; did you mean {near[0]}?" if near and name else ""
    return f"{where}: {excerpt(name)} is not a known {what} and is left out{hint}"


def _list(value: Any, where: Where) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise UserError(f"a list is expected, not {type(value).__name__}", where=where)
    return value


def _mapping(value: Any, where: Where) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"a mapping is expected, not {type(value).__name__}", where=where)
    return value
