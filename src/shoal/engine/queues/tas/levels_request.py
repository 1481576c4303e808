"""Resolves a topology request against the levels of one topology: at which depths pods and slices have to stay
together.

What cannot be read (a level that is not there, slices above the pods' own level) is a refusal in words. Above the
slices' level domains are counted in slices, below it in pods, or in the inner layer's slices where there are layers.
"""

from __future__ import annotations

from shoal.engine.queues.tas.flavor_topology import FlavorTopology, TopologyLevelsRequest
from shoal.engine.queues.topology_facts import SliceLayer, TopologyRequest

LAYERS = "TASMultiLayerTopology"
BALANCED = "TASBalancedPlacement"
LIKING = "TASRespectNodeAffinityPreferred"
BEST_FIT = "TASProfileBestFit"


MOST_KEPT = 512
"""Readings; beyond that all are read anew."""


def read(
    forest: FlavorTopology, topology: TopologyRequest | None, gates: frozenset[str], *, implied: bool
) -> TopologyLevelsRequest | str:
    """The reading, or what is wrong. `implied`: who names no level gets any place, instead of a refusal."""
    key = (topology, gates, implied)
    known = forest.asks.get(key)
    if known is None:
        if len(forest.asks) >= MOST_KEPT:
            forest.asks.clear()
        known = forest.asks[key] = _read(forest, topology or TopologyRequest(), gates, implied)
    return known


def _read(
    forest: FlavorTopology, requirement: TopologyRequest, gates: frozenset[str], implied: bool
) -> TopologyLevelsRequest | str:
    level = requirement.required or requirement.preferred
    slices_only = bool(_layers(requirement, gates)) and not level
    anywhere = slices_only or ((requirement.unconstrained or implied) and not level)
    if anywhere:
        # Slices alone are at home in the widest domains; single pods need no domain above their own.
        level = forest.levels[0 if slices_only else -1]
    if not level:
        return "topology level not specified"
    if level not in forest.levels:
        return f"no requested topology level: {level}"
    depth = forest.levels.index(level)
    units = _units(forest, depth, _layers(requirement, gates))
    if isinstance(units, str):
        return units
    slice_depth, by_depth = units
    return TopologyLevelsRequest(
        depth=depth,
        slice_depth=slice_depth,
        units=by_depth,
        required=bool(requirement.required),
        least=anywhere and BEST_FIT not in gates,
        balanced=bool(requirement.preferred) and (requirement.balanced or BALANCED in gates),
        by_liking=LIKING in gates,
        climbs=not anywhere,
    )


def _layers(requirement: TopologyRequest, gates: frozenset[str]) -> tuple[SliceLayer, ...]:
    """Outermost first; without the gate only the outermost counts."""
    outer = (SliceLayer(requirement.slice_level, requirement.slice_size),) if requirement.slice_level else ()
    inner = requirement.layers if LAYERS in gates else requirement.layers[:1]
    if outer and inner and inner[0].level == outer[0].level:
        return inner
    return (outer + inner) if LAYERS in gates else (outer or inner)


def _units(forest: FlavorTopology, depth: int, layers: tuple[SliceLayer, ...]) -> tuple[int, tuple[int, ...]] | str:
    """The slices' depth and the unit of every depth."""
    lowest = len(forest.levels) - 1
    if not layers:
        return lowest, (1,) * len(forest.levels)
    depths = []
    for layer in layers:
        if layer.level not in forest.levels:
            return f"no requested topology level for slices: {layer.level}"
        if layer.size <= 0:
            return "slice topology requested, but slice size not provided"
        depths.append(forest.levels.index(layer.level))
    if depths[0] < depth:
        return f"podset slice topology {layers[0].level} is above the podset topology {forest.levels[depth]}"
    for (outer, upper), (inner, lower) in zip(
        zip(layers, depths, strict=True), zip(layers[1:], depths[1:], strict=True), strict=False
    ):
        if lower <= upper or outer.size % inner.size:
            return f"slices of {inner.size} at {inner.level} do not divide slices of {outer.size} at {outer.level}"
    units = [1] * len(forest.levels)
    for layer, at in zip(reversed(layers), reversed(depths), strict=True):
        units[: at + 1] = [layer.size] * (at + 1)
    return depths[0], tuple(units)
