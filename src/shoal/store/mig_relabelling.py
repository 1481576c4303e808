"""Computes what a node would advertise with another MIG layout, as its MIG manager and device plugin would.

Only nodes with a MIG manager count: those whose labels say that their GPUs can be divided. GPUs that are divided on
demand by Shoal have no layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import structs

from shoal.api.node import Node
from shoal.data.gpus import read_product
from shoal.data.mig import Layout, layout_of_product
from shoal.devices.mig_layouts import DISABLED, default_layouts
from shoal.engine.device_notation import names
from shoal.engine.events import NodeFacts
from shoal.engine.from_api import node_facts_of
from shoal.units.quantity import Quantity

MIG_CONFIG = "nvidia.com/mig.config"
_CAPABLE = "nvidia.com/mig.capable"
SINGLE = "single"
Profiles = Sequence[tuple[str, int]]


def strategy_of(node: Node) -> str:
    return node.metadata.labels.get(names.MIG_STRATEGY, "none")


def has_profile(node: Node, profile: str) -> bool:
    """Whether its GPUs can have instances of the profile."""
    facts = layout_of_node(node)
    return facts is not None and facts.profile(profile) is not None


def layouts_for(node: Node, profiles: Profiles, whole: int) -> Iterator[str]:
    """Layouts under which the node's GPUs would have these instances, or so many whole GPUs, other than its own."""
    labels = node.metadata.labels
    facts = layout_of_node(node)
    if facts is None or labels.get(_CAPABLE) != "true" or names.OWN_MIG_LAYOUT in labels:
        return
    gpus, now = _gpus(node), labels.get(MIG_CONFIG, "")
    if whole and not profiles:
        if whole <= gpus and now not in ("", DISABLED):
            yield DISABLED
        return
    if strategy_of(node) != "mixed":
        return
    for name, specs in default_layouts(facts.name).items():
        counts = {_resource(profile): count * gpus for spec in specs if spec.enabled for profile, count in spec.counts}
        if name != now and all(counts.get(names.MIG_PREFIX + profile, 0) >= amount for profile, amount in profiles):
            yield name


def is_known_layout(node: Node, layout: str) -> bool:
    """Whether it is one that the MIG manager generates; its own file can have others."""
    facts = layout_of_node(node)
    return facts is not None and layout in default_layouts(facts.name)


def under_layout(node: Node, layout: str) -> Node:
    """The node as its MIG manager and device plugin would make it."""
    found = layout_of_node(node)
    specs = default_layouts(found.name)[layout] if found is not None else ()
    gpus = _gpus(node)
    enabled = any(spec.enabled for spec in specs)
    amounts = {name: Quantity.of(0) for name in node.status.allocatable if name.startswith(names.MIG_PREFIX)}
    amounts[names.GPU] = Quantity.of(0 if enabled else gpus)
    for spec in specs:
        amounts |= {_resource(profile): Quantity.of(count * gpus) for profile, count in spec.counts}
    labels = {**node.metadata.labels, MIG_CONFIG: layout}
    status = structs.replace(node.status, allocatable={**node.allocatable(), **amounts})
    return structs.replace(node, metadata=structs.replace(node.metadata, labels=labels), status=status)


def relabelled(facts: NodeFacts, node: Node, layout: str) -> NodeFacts:
    """The facts of the node under the layout; cordons and taints stay as they are in `facts`."""
    new = node_facts_of(under_layout(node, layout))
    return structs.replace(
        facts,
        allocatable={**new.allocatable},
        labels={**facts.labels, **new.labels},
        gpus=new.gpus,
        gpu_model=new.gpu_model,
        layout=structs.replace(new.layout, numa=facts.layout.numa, islands=facts.layout.islands),
    )


def layout_of_node(node: Node) -> Layout | None:
    """The MIG profiles that its GPU model offers."""
    return layout_of_product(read_product(node.metadata.labels.get(names.PRODUCT, "")).name)


def _gpus(node: Node) -> int:
    """Its physical GPUs, less those known to be unhealthy."""
    said = node.metadata.labels.get(names.COUNT, "")
    return int(said) if said.isascii() and said.isdecimal() and len(said) < 5 else 0


def _resource(profile: str) -> str:
    return names.MIG_PREFIX + profile.replace("+", ".")
