"""Names of metrics of GPUs, queues and model servers that are often written otherwise than exporters write them."""

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
SERVER_METRICS = {
    "vllm_num_requests_running": "vllm:num_requests_running",
    "vllm_num_requests_waiting": "vllm:num_requests_waiting",
    "vllm_gpu_cache_usage_perc": "vllm:gpu_cache_usage_perc",
    "vllm_time_to_first_token_seconds_bucket": "vllm:time_to_first_token_seconds_bucket",
}
"""Names of vLLM's metrics with an underscore, with the current ones."""
NOT_COLLECTED = {
    "DCGM_FI_DEV_PCIE_TX_THROUGHPUT": "DCGM_FI_PROF_PCIE_TX_BYTES",
    "DCGM_FI_DEV_PCIE_RX_THROUGHPUT": "DCGM_FI_PROF_PCIE_RX_BYTES",
}
"""Metrics that are not in the default list of counters, with those that are."""
HISTOGRAMS = frozenset(
    {
        *("kueue_admission_wait_time_seconds", "kueue_admission_checks_wait_time_seconds"),
        *("kueue_quota_reserved_wait_time_seconds", "kueue_admission_attempt_duration_seconds"),
        *("kueue_local_queue_admission_wait_time_seconds", "kueue_ready_wait_time_seconds"),
        *("scheduler_pod_scheduling_sli_duration_seconds", "scheduler_scheduling_attempt_duration_seconds"),
        *("vllm:time_to_first_token_seconds", "vllm:e2e_request_latency_seconds", "vllm:time_per_output_token_seconds"),
    }
)
EXPORTED_LABELS = frozenset(
    {
        *("gpu", "UUID", "device", "pci_bus_id", "modelName", "GPU_I_ID", "GPU_I_PROFILE", "Hostname", "hostname"),
        *("namespace", "pod", "container", "pod_uid", "exported_namespace", "exported_pod", "exported_container"),
        *("err_code", "err_msg", "DCGM_FI_DRIVER_VERSION", "vgpu", "hpc_job", "nvlink", "nvswitch", "cpu", "cpucore"),
        *("instance", "job", "endpoint", "service", "prometheus", "cluster", "node", "kubernetes_node"),
    }
)
"""Labels of dcgm-exporter's samples, and those that Prometheus, its operator and usual relabel rules add."""
