"""Makes the NodeClaims of a plan, in the groups in which they are launched.

All nodes of a gang that have one offering are launched by one request, which the cloud grants as a whole or not at all.
Other nodes are launched one by one, so that one of them without capacity does not hold up the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec

from shoal.autoscale.node_claims import claim as names
from shoal.autoscale.nodes.plan import NewNode
from shoal.autoscale.requirements import RequirementSet
from shoal.autoscale.requirements.admitted import AdmittedValues
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, POOL_LABEL, ZONE_LABEL

_MOST_TYPES: Final = 60
_MOST_PODS: Final = 50
_OFFERED: Final = frozenset({INSTANCE_TYPE_LABEL, ZONE_LABEL, CAPACITY_TYPE_LABEL, POOL_LABEL})
_TEMPLATE: Final = ("taints", "startupTaints", "nodeClassRef", "expireAfter", "terminationGracePeriod", "kubelet")

Raw = Mapping[str, Any]


class LaunchGroup(msgspec.Struct, frozen=True):
    """New nodes that one request launches."""

    nodes: tuple[NewNode, ...]


def launch_groups(nodes: Iterable[NewNode], gangs: Mapping[str, str]) -> list[LaunchGroup]:
    """`gangs`: the gang of each pod that belongs to one."""
    alone: list[LaunchGroup] = []
    together: dict[tuple[str, ...], list[NewNode]] = {}
    for node in nodes:
        gang = next((gangs[pod] for pod in node.pods if pod in gangs), "")
        if not gang:
            alone.append(LaunchGroup((node,)))
            continue
        key = (gang, node.pool, node.launch.name, node.offering.zone, node.offering.capacity_type)
        together.setdefault(key, []).append(node)
    return [*(LaunchGroup(tuple(each)) for each in together.values()), *alone]


def claim_object(
    node: NewNode, pool: Raw, name: str, group: tuple[str, int], expected_s: float, replaces: Sequence[str] = ()
) -> dict[str, Any]:
    """`pool`: the NodePool. `group`: the token of the request, and how many nodes it launches."""
    meta = pool.get("metadata") or {}
    template: Raw = (pool.get("spec") or {}).get("template") or {}
    given: Raw = template.get("metadata") or {}
    token, size = group
    annotations = {
        **(given.get("annotations") or {}),
        names.POOL_HASH: pool_hash(pool),
        names.GROUP: token,
        names.GROUP_SIZE: str(size),
        names.PODS: ",".join(node.pods[:_MOST_PODS]),
        names.PRICE: f"{node.price:.5f}",
        names.EXPECTED: str(round(expected_s)),
    }
    if replaces:
        annotations[names.REPLACES] = ",".join(replaces)
    spec: Raw = template.get("spec") or {}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "labels": _labels(node, given.get("labels") or {}),
            "annotations": annotations,
            "finalizers": [names.FINALIZER],
            "ownerReferences": [
                {
                    "apiVersion": "karpenter.sh/v1",
                    "kind": "NodePool",
                    "name": node.pool,
                    "uid": str(meta.get("uid", "")),
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "requirements": _requirements(node),
            **{field: spec[field] for field in _TEMPLATE if field in spec and field != "kubelet"},
        },
    }


def pool_hash(pool: Raw) -> str:
    """Of the fields of a NodePool whose change makes its nodes drift, whatever their labels are."""
    template: Raw = (pool.get("spec") or {}).get("template") or {}
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    fields = {"labels": meta.get("labels") or {}, "annotations": meta.get("annotations") or {}}
    fields |= {field: spec[field] for field in _TEMPLATE if field in spec}
    return blake2b(msgspec.json.encode(fields, order="sorted"), digest_size=8).hexdigest()


def _labels(node: NewNode, given: Mapping[str, str]) -> dict[str, str]:
    """Those of the pool, those that the requirements leave one value for, and those of the offering."""
    single = {
        key: next(iter(admitted.values))
        for key, admitted in node.requirements.items()
        if not admitted.is_open and len(admitted.values) == 1
    }
    return {
        **single,
        **given,
        POOL_LABEL: node.pool,
        INSTANCE_TYPE_LABEL: node.launch.name,
        ZONE_LABEL: node.offering.zone,
        CAPACITY_TYPE_LABEL: node.offering.capacity_type,
    }


def _requirements(node: NewNode) -> list[dict[str, Any]]:
    types = [one.name for one in node.types[:_MOST_TYPES]]
    found: list[dict[str, Any]] = [
        {"key": INSTANCE_TYPE_LABEL, "operator": "In", "values": types},
        {"key": ZONE_LABEL, "operator": "In", "values": list(node.zones)},
        {"key": CAPACITY_TYPE_LABEL, "operator": "In", "values": list(node.capacity_types)},
    ]
    return [*found, *requirement_objects(node.requirements)]


def requirement_objects(requirements: RequirementSet) -> list[dict[str, Any]]:
    """As a NodeClaim writes them, without those of the offering."""
    return [
        each
        for key, admitted in sorted(requirements.items())
        if key not in _OFFERED
        for each in _written(key, admitted)
    ]


def _written(key: str, admitted: AdmittedValues) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if admitted.gte is not None:
        found.append({"key": key, "operator": "Gt", "values": [str(admitted.gte - 1)]})
    if admitted.lte is not None:
        found.append({"key": key, "operator": "Lt", "values": [str(admitted.lte + 1)]})
    if found and not admitted.values:
        return found
    values = {"values": sorted(admitted.values)} if admitted.values else {}
    return [*found, {"key": key, "operator": admitted.kind, **values}]
