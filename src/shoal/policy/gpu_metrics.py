"""Names of GPU metrics that are often written and that current exporters do not use."""

from __future__ import annotations

METRICS = {
    "dcgm_gpu_utilization": "DCGM_FI_DEV_GPU_UTIL",
    "dcgm_mem_copy_utilization": "DCGM_FI_DEV_MEM_COPY_UTIL",
    "dcgm_fb_used": "DCGM_FI_DEV_FB_USED",
    "dcgm_fb_free": "DCGM_FI_DEV_FB_FREE",
    "dcgm_dram_active": "DCGM_FI_PROF_DRAM_ACTIVE",
    "dcgm_gpu_temp": "DCGM_FI_DEV_GPU_TEMP",
    "dcgm_power_usage": "DCGM_FI_DEV_POWER_USAGE",
    "dcgm_nvlink_bandwidth_total": "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
}
"""Names of the exporter before version 2, with the current ones."""
RATIOS = frozenset({"dcgm_dram_active"})
"""Metrics whose current form is a ratio from 0 to 1."""
GAUGES = frozenset(
    {
        *("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"),
        *("DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE"),
    }
)
