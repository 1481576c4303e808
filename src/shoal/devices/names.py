"""Defines the names of resources, labels and annotations that the engine, simulated nodes and agents share."""

from __future__ import annotations

from shoal.data.mig import RESOURCE_PREFIX

DOMAIN = "nvidia.com/"
GPU = "nvidia.com/gpu"
MIG_PREFIX = RESOURCE_PREFIX
SHARED_SUFFIX = ".shared"

# HAMi's resources, and Volcano's for the same thing.
GPU_MEMORY = "nvidia.com/gpumem"
GPU_MEMORY_PERCENT = "nvidia.com/gpumem-percentage"
GPU_CORES = "nvidia.com/gpucores"
VGPU = "volcano.sh/vgpu-number"
VGPU_MEMORY = "volcano.sh/vgpu-memory"
VGPU_MEMORY_PERCENT = "volcano.sh/vgpu-memory-percentage"
VGPU_CORES = "volcano.sh/vgpu-cores"

NVLINK = "gpu.nvidia.com/nvlink-enabled"
ISLAND_SIZE = "gpu.nvidia.com/nvlink-gpus-per-island"

# Shoal's own, as annotations of nodes and pods; on nodes as labels too.
OWN_ISLANDS = "shoal.dev/gpu-islands"
OWN_NUMA = "shoal.dev/gpu-numa"
OWN_NUMA_POLICY = "shoal.dev/topology-manager-policy"
OWN_ONE_PER_REQUEST = "shoal.dev/fail-requests-greater-than-one"
OWN_DEVICES = "shoal.dev/devices"
OWN_TOPOLOGY = "shoal.dev/topology"
OWN_MIG_LAYOUT = "shoal.dev/mig-layout"
OWN_MIG_DEVICES = "shoal.dev/mig-devices"
OWN_DRA = "shoal.dev/dra"
"""Of nodes and NodePools: whether GPUs are devices of resource claims instead of resources of a device plugin: `true`,
`dynamic-mig` where MIG instances are created for claims, or `false`."""
OWN_MIG_WANTED = "mig.shoal.dev/"
"""Before the uid of a pod: the MIG instances that the node has to create for it."""

_ACCELERATORS = (
    DOMAIN,
    *(f"amd.com/{name}" for name in ("gpu", "spx", "dpx", "qpx", "cpx")),
    "gpu.intel.com/",
    "habana.ai/",
    "aws.amazon.com/neuron",
    "google.com/tpu",
    "volcano.sh/vgpu-",
)


def is_accelerator(resource: str) -> bool:
    """Whether it is a GPU or another accelerator of any vendor, or a part of one."""
    return resource.startswith(_ACCELERATORS)
