"""Lists the filters, in the order in which they are evaluated.

To add one: a file, and a line here.
"""

from shoal.engine.filters.claims import ClaimsReached, ClaimsServed, ClaimsUsable
from shoal.engine.filters.closeness import Closeness
from shoal.engine.filters.device_capacity import DeviceCapacity
from shoal.engine.filters.gpu_model import GpuModel
from shoal.engine.filters.kubelet_refusals import KubeletRefusals
from shoal.engine.filters.mig_instances import MigInstances
from shoal.engine.filters.node_affinity import NodeAffinity
from shoal.engine.filters.node_name import NodeName
from shoal.engine.filters.ports import HostPorts
from shoal.engine.filters.rule import NodeFilter, StaticFilter
from shoal.engine.filters.shared_gpus import SharedGpus
from shoal.engine.filters.taints import Taints
from shoal.engine.filters.unschedulable import Unschedulable

STATIC_FILTERS: tuple[StaticFilter, ...] = (
    Unschedulable(),
    KubeletRefusals(),
    NodeName(),
    Taints(),
    SharedGpus(),
    MigInstances(),
    NodeAffinity(),
    GpuModel(),
)
"""Read labels, taints and names, in kube-scheduler's order: once per ask, again for nodes where they change."""

NODE_FILTERS: tuple[NodeFilter, ...] = (
    HostPorts(),
    DeviceCapacity(),
    Closeness(),
    ClaimsUsable(),
    ClaimsReached(),
    ClaimsServed(),
)
"""Read what changes with every pod. Resources, pod slots and whole devices are not listed: see the fused record."""
