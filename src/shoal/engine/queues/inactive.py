"""Finds why a cluster queue is inactive and admits no workload: it is stopped, or an object it names is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.engine.queues.clusterqueue import ClusterQueue

if TYPE_CHECKING:
    from shoal.engine.queues.state import Queues


def inactive_reason(queues: Queues, queue: ClusterQueue) -> tuple[str, str] | None:
    """The reason, and words that follow the queue's name; None where it admits."""
    facts = queue.facts
    if facts.stop != "None":
        return "Stopped", "is stopped"
    if facts.cohort in queues.cycles:
        return "CohortCycle", f"belongs to cohort {facts.cohort}, which is its own ancestor"
    used = dict.fromkeys(flavor.name for group in facts.groups for flavor in group.flavors)
    missing = [name for name in used if name not in queues.flavors]
    if missing:
        return "FlavorNotFound", f"uses ResourceFlavor {', '.join(missing)}, which is not there"
    if "TopologyAwareScheduling" in queues.settings.gates:
        for name in used:
            topology = queues.flavors[name].topology
            if topology and topology not in queues.topologies:
                return "TopologyNotFound", f"uses Topology {topology}, which is not there"
    for check in facts.checks:
        known = queues.checks.get(check.name)
        if known is None:
            return "AdmissionCheckNotFound", f"demands AdmissionCheck {check.name}, which is not there"
        if not known.active:
            return "AdmissionCheckInactive", f"demands AdmissionCheck {check.name}, which is not active"
    return None
