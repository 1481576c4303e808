"""Defines the names by which devices are requested, advertised and described. Established names are used."""

from __future__ import annotations

GPU = "nvidia.com/gpu"
GPU_SHARED = "nvidia.com/gpu.shared"
MIG_PREFIX = "nvidia.com/mig-"
SHARED_SUFFIX = ".shared"

# HAMi's resources, and Volcano's for the same thing.
GPU_MEMORY = "nvidia.com/gpumem"
GPU_MEMORY_PERCENT = "nvidia.com/gpumem-percentage"
GPU_CORES = "nvidia.com/gpucores"
VGPU = "volcano.sh/vgpu-number"
VGPU_MEMORY = "volcano.sh/vgpu-memory"
VGPU_MEMORY_PERCENT = "volcano.sh/vgpu-memory-percentage"
VGPU_CORES = "volcano.sh/vgpu-cores"

# KAI's annotations and label.
FRACTION = "gpu-fraction"
FRACTION_MEMORY = "gpu-memory"
FRACTION_DEVICES = "gpu-fraction-num-devices"

DEVICE_GROUP = "runai-gpu-group"
HAMI_REGISTER = "hami.io/node-nvidia-register"
HAMI_ALLOCATED = "hami.io/vgpu-devices-allocated"

# Labels of NVIDIA's feature discovery.
PRODUCT = "nvidia.com/gpu.product"
COUNT = "nvidia.com/gpu.count"
MEMORY_MIB = "nvidia.com/gpu.memory"
REPLICAS = "nvidia.com/gpu.replicas"
SHARING = "nvidia.com/gpu.sharing-strategy"
ISLAND_SIZE = "gpu.nvidia.com/nvlink-gpus-per-island"
NVLINK = "gpu.nvidia.com/nvlink-enabled"
MIG_STRATEGY = "nvidia.com/mig.strategy"

# Shoal's own, as annotations; on nodes as labels too.
SHARING_TAINT = "shoal.dev/gpu-sharing"
"""Taint of nodes that are kept for parts of GPUs."""
OWN_ISLANDS = "shoal.dev/gpu-islands"
OWN_NUMA = "shoal.dev/gpu-numa"
OWN_NUMA_POLICY = "shoal.dev/topology-manager-policy"
OWN_MIG_LAYOUT = "shoal.dev/mig-layout"
OWN_MIG_DEVICES = "shoal.dev/mig-devices"
OWN_ONE_PER_REQUEST = "shoal.dev/fail-requests-greater-than-one"
OWN_ISLAND = "shoal.dev/gpu-island"
OWN_NUMA_NODE = "shoal.dev/gpu-numa"
OWN_DEVICES = "shoal.dev/devices"
OWN_TOPOLOGY = "shoal.dev/topology"
