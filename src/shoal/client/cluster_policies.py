"""Ranks the ClusterPolicies of a server: the one that applies, and then the ignored ones."""

from __future__ import annotations

from shoal.client.ecosystem_kinds import CLUSTER_POLICIES, MISPLACED_CLUSTER_POLICIES
from shoal.client.informers import Informers
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.operator.policy.active import PolicyCandidate, ranked


def ranked_policies(informers: Informers) -> list[tuple[Kind, Item]]:
    """Of the kinds that are followed, without those that are being deleted."""
    found = {}
    for kind in (CLUSTER_POLICIES, MISPLACED_CLUSTER_POLICIES):
        for item in informers.known(kind) or ():
            meta = item.obj()["metadata"]
            if not meta.get("deletionTimestamp"):
                candidate = PolicyCandidate(item.name, str(meta.get("creationTimestamp", "")), kind.group, item.uid)
                found[candidate] = (kind, item)
    return [found[one] for one in ranked(found)]
