"""Every rule that can turn a node away, in the order in which a person would look.

To add one: a file, and a line here.
"""

from shoal.engine.filters.gpu_model import GpuModel
from shoal.engine.filters.node_affinity import NodeAffinity
from shoal.engine.filters.node_name import NodeName
from shoal.engine.filters.ports import HostPorts
from shoal.engine.filters.rule import NodeFilter, StaticFilter
from shoal.engine.filters.taints import Taints
from shoal.engine.filters.unschedulable import Unschedulable

STATIC_FILTERS: tuple[StaticFilter, ...] = (
    NodeName(),
    Unschedulable(),
    NodeAffinity(),
    Taints(),
    GpuModel(),
)
"""Read labels, taints and names: once per ask, again for nodes whose labels or taints change."""

NODE_FILTERS: tuple[NodeFilter, ...] = (HostPorts(),)
"""Read what changes with every pod. Resources, pod slots and devices are not listed: they are the fused record."""
