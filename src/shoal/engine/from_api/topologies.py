"""Resolves the requested topology levels of a group.

Every ecosystem names a level in its own way: Kueue by a node label alone, KAI by a topology and a label, Volcano by a
tier. All come out as one `TopologyRequirement`. A missing topology, level or tier is the user's error: taken as "no
wish" it would spread a job over the slowest network without a word.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from shoal.api.groups.kai import TopologyConstraint
from shoal.api.groups.volcano import NetworkTopology
from shoal.api.topology import KaiTopology, KueueTopology
from shoal.engine.from_api.hyper_tree import TOP, TOPOLOGY, HyperTree, tier_label
from shoal.engine.from_api.membership import whole_number
from shoal.engine.groups import TopologyFacts, TopologyRequirement
from shoal.units.errors import UserError, Where, excerpt

_KUEUE = "kueue.x-k8s.io/podset-"
KUEUE_REQUIRED = f"{_KUEUE}required-topology"
KUEUE_PREFERRED = f"{_KUEUE}preferred-topology"
KUEUE_SLICE_LEVEL = f"{_KUEUE}slice-required-topology"
KUEUE_SLICE_SIZE = f"{_KUEUE}slice-size"

KAI_TOPOLOGY = "kai.scheduler/topology"
KAI_REQUIRED = "kai.scheduler/topology-required-placement"
KAI_PREFERRED = "kai.scheduler/topology-preferred-placement"


class Topologies:
    """The topologies that are declared."""

    def __init__(
        self, kueue: Iterable[KueueTopology] = (), kai: Iterable[KaiTopology] = (), tree: HyperTree | None = None
    ) -> None:
        self._kueue = {each.metadata.name: _facts("kueue", each) for each in kueue}
        self._kai = {each.metadata.name: _facts("kai", each) for each in kai}
        self._tree = tree or HyperTree((), ())

    def facts(self) -> list[TopologyFacts]:
        """All of them, the network included."""
        tree = self._tree.facts()
        found = [*self._kueue.values(), *self._kai.values()]
        return [*found, tree] if tree is not None else found

    def label_requirement(self, label: str) -> TopologyRequirement:
        """All on nodes with one value of a label."""
        return TopologyRequirement(self._with_levels(label), required=label)

    def kueue_wish(self, annotations: Mapping[str, str], where: Where) -> TopologyRequirement:
        """`where` is the place of the annotations."""
        required, preferred = annotations.get(KUEUE_REQUIRED, ""), annotations.get(KUEUE_PREFERRED, "")
        level, size = annotations.get(KUEUE_SLICE_LEVEL, ""), annotations.get(KUEUE_SLICE_SIZE, "")
        if required and preferred:
            raise UserError(
                f"contradicts {KUEUE_REQUIRED}", where=where.key(KUEUE_PREFERRED), fix="only one of them can be set"
            )
        if bool(level) != bool(size):
            there, missing = (KUEUE_SLICE_LEVEL, KUEUE_SLICE_SIZE) if level else (KUEUE_SLICE_SIZE, KUEUE_SLICE_LEVEL)
            raise UserError(f"needs {missing} beside it", where=where.key(there))
        if not (required or preferred or level):
            return TopologyRequirement()
        slice_size = whole_number(size, where.key(KUEUE_SLICE_SIZE)) if size else 0
        topology = self._with_levels(*(key for key in (required, preferred, level) if key))
        return TopologyRequirement(topology, required, preferred, slice_level=level, slice_size=slice_size)

    def kai_annotations_requirement(self, annotations: Mapping[str, str], where: Where) -> TopologyRequirement:
        """`where` is the place of the annotations."""
        constraint = TopologyConstraint(
            annotations.get(KAI_TOPOLOGY, ""), annotations.get(KAI_REQUIRED, ""), annotations.get(KAI_PREFERRED, "")
        )
        names = (KAI_TOPOLOGY, KAI_REQUIRED, KAI_PREFERRED)
        places = [where.key(name) for name in names]
        if not constraint.topology and (constraint.required_topology_level or constraint.preferred_topology_level):
            raise UserError("is required to find the level", where=places[0])
        return self._kai_requirement(constraint, places)

    def kai_requirement(self, constraint: TopologyConstraint | None, where: Where) -> TopologyRequirement:
        """`where` is the place of the constraint."""
        names = ("topology", "requiredTopologyLevel", "preferredTopologyLevel")
        return (
            TopologyRequirement()
            if constraint is None
            else self._kai_requirement(constraint, [where.below(name) for name in names])
        )

    def _kai_requirement(self, constraint: TopologyConstraint, places: list[Where]) -> TopologyRequirement:
        required, preferred = constraint.required_topology_level, constraint.preferred_topology_level
        if not (required or preferred):
            return TopologyRequirement()
        topology = self._kai.get(constraint.topology)
        if topology is None:
            raise _unknown("Topology", constraint.topology, self._kai, places[0])
        for level, place in ((required, places[1]), (preferred, places[2])):
            if level and level not in topology.levels:
                raise _unknown(f"level of Topology {constraint.topology}", level, topology.levels, place)
        return TopologyRequirement(topology.name, required, preferred)

    def volcano_requirement(self, network: NetworkTopology | None, where: Where) -> TopologyRequirement:
        """`where` is the place of the network topology."""
        if network is None:
            return TopologyRequirement()
        tiers = self._tree.tiers
        if not tiers:
            raise UserError("no HyperNodes found", where=where, fix="add the HyperNodes to the manifests")
        highest = network.highest_tier_allowed
        if network.highest_tier_name:
            highest = self._tree.tier_named(network.highest_tier_name)
            if highest is None:
                names = self._tree.tier_names()
                raise _unknown("tier", network.highest_tier_name, names, where.below("highestTierName"))
        if not network.is_required():
            return TopologyRequirement(TOPOLOGY, closest=True)
        if highest is not None and highest > tiers[-1]:
            return TopologyRequirement(TOPOLOGY, required=TOP, closest=True)
        allowed = [tier for tier in tiers if highest is None or tier <= highest]
        if not allowed:
            raise UserError(
                f"no HyperNode is of tier {highest} or a faster one",
                where=where.below("highestTierAllowed"),
                fix=f"the fastest is tier {tiers[0]}",
            )
        return TopologyRequirement(TOPOLOGY, required=tier_label(allowed[-1]), closest=True)

    def _with_levels(self, *labels: str) -> str:
        """A declared topology with these levels; without one, each label is a topology of its own."""
        for known in (self._kueue, self._kai):
            for _, topology in sorted(known.items()):
                if all(label in topology.levels for label in labels):
                    return topology.name
        return ""


def _facts(family: str, topology: KueueTopology | KaiTopology) -> TopologyFacts:
    # Two ecosystems may each have a topology called "default".
    return TopologyFacts(f"{family}/{topology.metadata.name}", topology.labels())


def _unknown(what: str, name: str, known: Iterable[str], where: Where) -> UserError:
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        fix = f"did you mean {close[0]}?"
    else:
        fix = f"there are {', '.join(names)}" if names else "there is none at all"
    return UserError(f"{what} {excerpt(name)} not found", where=where, fix=fix)
