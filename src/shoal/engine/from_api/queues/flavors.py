"""Converts flavors, topologies and admission checks to facts."""

from __future__ import annotations

from shoal.api.kueue import AdmissionCheck, ResourceFlavor
from shoal.api.topology import KueueTopology
from shoal.engine.queues.admission_checks import AdmissionCheckFacts
from shoal.engine.queues.facts import FlavorFacts
from shoal.engine.queues.topology_facts import TopologyLevels


def flavor_facts_of(flavor: ResourceFlavor) -> FlavorFacts:
    spec = flavor.spec
    return FlavorFacts(
        name=flavor.metadata.name,
        labels=spec.node_labels,
        taints=spec.node_taints,
        tolerations=spec.tolerations,
        topology=spec.topology_name,
    )


def topology_levels_of(topology: KueueTopology) -> TopologyLevels:
    return TopologyLevels(topology.metadata.name, topology.labels())


def check_facts_of(check: AdmissionCheck) -> AdmissionCheckFacts:
    """A check written by hand has no status and is meant to work, as a node without conditions is; on a server its
    controller says whether it does."""
    says_so = any(condition.type == "Active" for condition in check.status.conditions)
    is_by_hand = not (says_so or check.metadata.uid)
    return AdmissionCheckFacts(check.metadata.name, check.spec.controller_name, check.is_active() or is_by_hand)
