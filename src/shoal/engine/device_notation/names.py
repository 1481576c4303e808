"""Defines the names by which devices are requested, advertised and described. Established names are used."""

from __future__ import annotations

from shoal.devices import names as shared

GPU = shared.GPU
MIG_PREFIX = shared.MIG_PREFIX
SHARED_SUFFIX = shared.SHARED_SUFFIX

GPU_SHARED = GPU + SHARED_SUFFIX

GPU_MEMORY = shared.GPU_MEMORY
GPU_MEMORY_PERCENT = shared.GPU_MEMORY_PERCENT
GPU_CORES = shared.GPU_CORES
VGPU = shared.VGPU
VGPU_MEMORY = shared.VGPU_MEMORY
VGPU_MEMORY_PERCENT = shared.VGPU_MEMORY_PERCENT
VGPU_CORES = shared.VGPU_CORES

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
ISLAND_SIZE = shared.ISLAND_SIZE
NVLINK = shared.NVLINK
MIG_STRATEGY = "nvidia.com/mig.strategy"
MIG_ROLE = "node-role.kubernetes.io/mig-enabled"

# Shoal's own, as annotations; on nodes as labels too.
SHARING_TAINT = "shoal.dev/gpu-sharing"
"""Taint of nodes that are kept for parts of GPUs."""
OWN_DEVICES = shared.OWN_DEVICES
OWN_ISLANDS = shared.OWN_ISLANDS
OWN_NUMA = shared.OWN_NUMA
OWN_NUMA_POLICY = shared.OWN_NUMA_POLICY
OWN_ONE_PER_REQUEST = shared.OWN_ONE_PER_REQUEST
OWN_TOPOLOGY = shared.OWN_TOPOLOGY
OWN_MIG_LAYOUT = shared.OWN_MIG_LAYOUT
OWN_MIG_DEVICES = shared.OWN_MIG_DEVICES
OWN_ISLAND = "shoal.dev/gpu-island"
OWN_NUMA_NODE = "shoal.dev/gpu-numa"
