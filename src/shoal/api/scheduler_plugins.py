"""Resolves the plugins and weights of a kube-scheduler profile.

A configuration is a difference to the defaults, in two layers. `multiPoint` changes the default list
itself: an entry replaces the default of that name, others are added, `disabled` takes away. Each extension
point then adds its own `enabled` (whose weight wins) and drops its own `disabled` from what `multiPoint`
brought; `*` drops all.

Plugins are named here only with the two points a placement depends on. What else a plugin does for
kube-scheduler (queueing, volumes, binding) happens elsewhere in Shoal or not at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated, Literal

from msgspec import Meta, field

from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt

Point = Literal["filter", "score"]

_BOTH: tuple[Point, ...] = ("filter", "score")

# Name, default weight (0 where it does not score), points. The order is kube-scheduler's.
DEFAULTS: tuple[tuple[str, int, tuple[Point, ...]], ...] = (
    ("SchedulingGates", 0, ()),
    ("PrioritySort", 0, ()),
    ("NodeUnschedulable", 0, ("filter",)),
    ("NodeName", 0, ("filter",)),
    ("TaintToleration", 3, _BOTH),
    ("NodeAffinity", 2, _BOTH),
    ("NodePorts", 0, ("filter",)),
    ("NodeResourcesFit", 1, _BOTH),
    ("VolumeRestrictions", 0, ("filter",)),
    ("NodeVolumeLimits", 0, ("filter",)),
    ("VolumeBinding", 0, ("filter",)),
    ("VolumeZone", 0, ("filter",)),
    ("PodTopologySpread", 2, _BOTH),
    ("InterPodAffinity", 2, _BOTH),
    ("DynamicResources", 0, ("filter",)),
    ("DefaultPreemption", 0, ()),
    ("NodeResourcesBalancedAllocation", 1, ("score",)),
    ("ImageLocality", 1, ("score",)),
    ("DefaultBinder", 0, ()),
)

POINTS = {name: points for name, _, points in DEFAULTS}

# Removed from Kubernetes, one by one; naming them does no harm.
RETIRED = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits", "SelectorSpread"})


class Plugin(ApiStruct, frozen=True, forbid_unknown_fields=True):
    name: str
    weight: Annotated[int, Meta(ge=0)] = 0


class PluginSet(ApiStruct, frozen=True, forbid_unknown_fields=True):
    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()

    def drops(self, name: str) -> bool:
        return any(plugin.name in {"*", name} for plugin in self.disabled)


class Plugins(ApiStruct, frozen=True, forbid_unknown_fields=True):
    multi_point: PluginSet = field(default_factory=PluginSet)
    pre_enqueue: PluginSet = field(default_factory=PluginSet)
    queue_sort: PluginSet = field(default_factory=PluginSet)
    pre_filter: PluginSet = field(default_factory=PluginSet)
    filter: PluginSet = field(default_factory=PluginSet)
    post_filter: PluginSet = field(default_factory=PluginSet)
    pre_score: PluginSet = field(default_factory=PluginSet)
    score: PluginSet = field(default_factory=PluginSet)
    reserve: PluginSet = field(default_factory=PluginSet)
    permit: PluginSet = field(default_factory=PluginSet)
    pre_bind: PluginSet = field(default_factory=PluginSet)
    bind: PluginSet = field(default_factory=PluginSet)
    post_bind: PluginSet = field(default_factory=PluginSet)

    def filters(self) -> tuple[str, ...]:
        return tuple(plugin.name for plugin in self._at("filter", self.filter))

    def scores(self) -> tuple[tuple[str, int], ...]:
        """Every enabled score with its weight; without one it counts once."""
        return tuple((plugin.name, plugin.weight or 1) for plugin in self._at("score", self.score))

    def own_scores(self, own: Collection[str]) -> tuple[tuple[str, int], ...]:
        """As `scores`, for plugins that kube-scheduler does not have and the caller does."""
        by_default = [p for p in self.multi_point.enabled if not self.score.drops(p.name)]
        weights = {p.name: p.weight or 1 for p in (*by_default, *self.score.enabled) if p.name in own}
        return tuple(weights.items())

    def can_preempt(self) -> bool:
        by_name = any(plugin.name == "DefaultPreemption" for plugin in self.post_filter.enabled)
        by_default = any(plugin.name == "DefaultPreemption" for plugin in self._everywhere())
        return by_name or (by_default and not self.post_filter.drops("DefaultPreemption"))

    def unknown(self) -> tuple[str, ...]:
        """Names this package does not know, in the order they appear."""
        names = [p.name for _, plugin_set in self._sets() for p in plugin_set.enabled]
        return tuple(n for n in dict.fromkeys(names) if n not in POINTS and n not in RETIRED)

    def check(self, where: Where) -> None:
        for point, plugin_set in self._sets():
            seen: set[str] = set()
            for index, plugin in enumerate(plugin_set.enabled):
                here = where.below(f"{point}.enabled[{index}].name")
                if plugin.name in seen:
                    raise UserError(f"plugin {excerpt(plugin.name)} is enabled twice", where=here)
                seen.add(plugin.name)
                if point in _BOTH and plugin.name in POINTS and point not in POINTS[plugin.name]:
                    raise UserError(f"plugin {excerpt(plugin.name)} is not a {point} plugin", where=here)

    def _everywhere(self) -> list[Plugin]:
        """The default list as `multiPoint` changes it."""
        named = {plugin.name: plugin for plugin in self.multi_point.enabled}
        kept = [
            named.pop(name, Plugin(name, weight)) for name, weight, _ in DEFAULTS if not self.multi_point.drops(name)
        ]
        return [*kept, *named.values()]

    def _at(self, point: Point, own: PluginSet) -> list[Plugin]:
        named = {plugin.name for plugin in own.enabled}
        inherited = [
            plugin
            for plugin in self._everywhere()
            if point in POINTS.get(plugin.name, ()) and plugin.name not in named and not own.drops(plugin.name)
        ]
        return [*(plugin for plugin in own.enabled if plugin.name in POINTS), *inherited]

    def _sets(self) -> Iterator[tuple[str, PluginSet]]:
        for name, key in zip(self.__struct_fields__, self.__struct_encode_fields__, strict=True):
            yield key, getattr(self, name)
