"""Resource flavors: kinds of nodes under a name that quota can be given in.

A flavor with a topology places pods by it, so it has to say by a node label which nodes are its own.
"""

from __future__ import annotations

from msgspec import field

from shoal.api.kueue.lists import check_most
from shoal.api.kueue.references import check_reference
from shoal.api.meta import ObjectMeta
from shoal.api.selectors import check_labels
from shoal.api.taints import Taint, Toleration, check_taints
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where

MOST = 8


class ResourceFlavorSpec(ApiStruct, frozen=True):
    node_labels: dict[str, str] = field(default_factory=dict)
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology_name: str = ""


class ResourceFlavor(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ResourceFlavorSpec = field(default_factory=ResourceFlavorSpec)


def check_flavor(flavor: ResourceFlavor, where: Where) -> None:
    check_meta(flavor.metadata, where.below("metadata"))
    spec, where = flavor.spec, where.below("spec")
    for name, items in (
        ("nodeLabels", spec.node_labels),
        ("nodeTaints", spec.node_taints),
        ("tolerations", spec.tolerations),
    ):
        check_most(items, MOST, where.below(name))
    check_labels(spec.node_labels, where.below("nodeLabels"))
    check_taints(spec.node_taints, where.below("nodeTaints"))
    for index, toleration in enumerate(spec.tolerations):
        toleration.check(where.below(f"tolerations[{index}]"))
    if spec.topology_name:
        check_reference(spec.topology_name, where.below("topologyName"))
        if not spec.node_labels:
            fix = "name a label that the flavor's nodes have in common"
            raise UserError("at least one is required with a topologyName", where=where.below("nodeLabels"), fix=fix)
