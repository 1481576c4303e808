"""Refers to the objects that Events of node scaling are about."""

from __future__ import annotations

from shoal.autoscale.node_claims.claim import NodeClaim
from shoal.client.ecosystem_kinds import NODE_CLAIMS, NODE_POOLS
from shoal.client.item import Item, Obj
from shoal.client.kind import NODES, PODS, Kind


def claim_reference(claim: NodeClaim) -> Obj:
    return _reference(NODE_CLAIMS, claim.name, claim.uid)


def pool_reference(item: Item) -> Obj:
    return _reference(NODE_POOLS, item.name, item.uid)


def node_reference(item: Item) -> Obj:
    return _reference(NODES, item.name, item.uid)


def pod_reference(namespace: str, name: str, uid: str) -> Obj:
    found = _reference(PODS, name, uid)
    found["metadata"]["namespace"] = namespace
    return found


def _reference(kind: Kind, name: str, uid: str) -> Obj:
    return {"kind": kind.name, "apiVersion": kind.api_version, "metadata": {"name": name, "uid": uid}}
