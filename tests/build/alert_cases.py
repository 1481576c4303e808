"""Series that fire alerts and series that must not: for promtool, and for the evaluation without Prometheus."""

from __future__ import annotations

GPU = 'gpu="0",UUID="GPU-1",Hostname="n-0",namespace="team",pod="train-0"'
OTHER = GPU.replace('gpu="0",UUID="GPU-1"', 'gpu="1",UUID="GPU-2"')
TEMP, USE, NVLINK = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"
USED, FREE, RESERVED = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
MIG = GPU + ',GPU_I_PROFILE="3g.40gb",GPU_I_ID="1"'
XID = "DCGM_FI_DEV_XID_ERRORS"
Series = dict[str, str]


def one(metric: str, values: str, labels: str = GPU) -> Series:
    return {f"{metric}{{{labels}}}": values}


def memory(used: int, free: int, reserved: int | None = None) -> Series:
    found = one(USED, f"{used}x60") | one(FREE, f"{free}x60")
    return found if reserved is None else found | one(RESERVED, f"{reserved}x60")


def leaking(step: int) -> Series:
    return one(USED, f"78000+{step}x80") | one(FREE, f"3000-{step}x80")


def stalled(*labels: str, use: int = 100, traffic: str = "0+90x60 5400x80") -> Series:
    found: Series = {}
    for each in labels:
        found |= one(NVLINK, traffic, each) | one(USE, f"{use}x200", each)
    return found


def waits(le_1800: str, all_of_them: str) -> Series:
    name = "kueue_admission_wait_time_seconds_bucket"
    return {
        f'{name}{{cluster_queue="gold",le="1800"}}': le_1800,
        f'{name}{{cluster_queue="gold",le="3600"}}': all_of_them,
        f'{name}{{cluster_queue="gold",le="+Inf"}}': all_of_them,
    }


def slo(seconds: int, queue: str = "gold") -> Series:
    name = "shoal_cluster_queue_wait_slo_seconds"
    return one(name, f"{seconds}x200", f'cluster_queue="{queue}",replica_role="leader"')


def quota(pending: int, reserved: int) -> Series:
    of = 'cluster_queue="gold",resource="nvidia.com/gpu"'
    return (
        one("kueue_cluster_queue_resource_pending", f"{pending}x100", of)
        | one("kueue_cluster_queue_resource_reservation", f"{reserved}x100", of + ',flavor="h100"')
        | one("kueue_cluster_queue_nominal_quota", "8x100", of + ',flavor="h100"')
    )


def states(broken_up: int) -> Series:
    return one("shoal_gpus", f"{broken_up}x100", 'state="broken_up"') | one("shoal_gpus", "8x100", 'state="used"')


def gangs(free: int, short: int) -> Series:
    return one("shoal_waiting_gangs", f"{free}x100", 'gpus="free"') | one(
        "shoal_waiting_gangs", f"{short}x100", 'gpus="short"'
    )


def unsaved(seconds: int, spot: int) -> Series:
    return one("shoal_unsaved_work_seconds", f"{seconds}x100", 'namespace="team",pod="train-0",node="n-0"') | one(
        "kubecost_node_is_spot", f"{spot}x100", 'instance="n-0",node="n-0",instance_type="p5"'
    )


def budget(spent: float, forecast: float) -> Series:
    of = 'kind="team",name="red"'
    return one("shoal_budget_spent_ratio", f"{spent}x200", of) | one(
        "shoal_budget_forecast_ratio", f"{forecast}x200", of
    )


def refused(values: str, reason: str = "no capacity") -> Series:
    return one("shoal_node_scaling_refused_requests_total", values, f'reason="{reason}"')


def priced(held: float, price: float) -> Series:
    of = 'instance="n-0",node="n-0"'
    return one("container_gpu_allocation", f"{held}x600", of + ',namespace="team",pod="train-0",team="team"') | one(
        "node_gpu_hourly_cost", f"{price}x600", of + ',instance_type="p5",region="us"'
    )


FIRES: list[tuple[str, Series, str]] = [
    ("GPUHighTemperature", one(TEMP, "86x20"), "5m"),
    ("GPULowUtilization", one(USE, "9x100"), "30m"),
    ("LowGPUUtilization", one(USE, "19x500"), "2h"),
    ("GPUUnderutilized", one(USE, "19x500"), "4h"),
    ("GPUHighUtilization", one(USE, "96x100"), "30m"),
    ("HighGPUMemoryUsage", memory(91, 9), "6m"),
    ("GPUMemoryAlmostFull", memory(96, 4), "6m"),
    ("GPUMemoryAlmostFull", memory(96, 2, 2), "6m"),
    ("GPUMemoryLeaking", leaking(10), "30m"),
    ("GPUXIDError", one(XID, "0x10 31x20"), "7m"),
    # The labels of the error change with it.
    ("GPUXIDError", one(XID, "0x10 _x20") | one(XID, "_x10 48x20", GPU + ',err_code="48"'), "7m"),
    ("NCCLTrainingStalled", stalled(GPU, OTHER), "50m"),
    ("GPUIdleWhileHeld", one(USE, "2x600"), "4h10m"),
    # An instance has no utilisation.
    ("GPULowUtilization", one(ENGINE, "0.09x100", MIG), "31m"),
    ("LowGPUUtilization", one(ENGINE, "0.19x500", MIG), "2h1m"),
    ("GPUUnderutilized", one(ENGINE, "0.19x500", MIG), "4h1m"),
    ("GPUHighUtilization", one(ENGINE, "0.96x100", MIG), "31m"),
    ("GPUIdleWhileHeld", one(ENGINE, "0.02x600", MIG), "4h10m"),
    ("IdleGPUCostHigh", priced(2, 2.6) | one(USE, "2x600") | one(USE, "3x600", OTHER), "4h10m"),
    ("IdleGPUCostHigh", priced(0.5, 10.2) | one(ENGINE, "0.02x600", MIG), "4h10m"),
    # One of two GPUs.
    ("IdleGPUCostHigh", priced(2, 5.1) | one(USE, "2x600") | one(USE, "90x600", OTHER), "4h10m"),
    ("QueueAdmissionSlow", waits("0+1x200", "0+10x200"), "1h"),
    ("QueueAdmissionSlow", waits("0+1x200", "0+10x200") | slo(600), "1h"),
    # All within half an hour, of which the queue allows ten minutes.
    ("QueueAdmissionSlow", waits("0+10x200", "0+10x200") | slo(600), "1h"),
    ("QuotaNotReturned", quota(4, 2), "31m"),
    ("GPUFragmentationHigh", states(4), "31m"),
    ("GangWaitsForFreeGPUs", gangs(1, 0), "16m"),
    ("CapacityRefused", refused("0x40 1x20"), "23m"),
    ("CapacityRefused", refused("_x10 1x20"), "8m"),
    ("BudgetExceeded", budget(1, 2), "6m"),
    ("BudgetAtRisk", budget(0.5, 1.1), "61m"),
    ("UnsavedWorkOnSpotNode", unsaved(1801, 1), "6m"),
]
DOES_NOT: list[tuple[str, Series, str]] = [
    ("GPUHighTemperature", one(TEMP, "86x20"), "4m30s"),
    ("GPUHighTemperature", one(TEMP, "85x20"), "10m"),
    ("GPULowUtilization", one(USE, "10x100"), "40m"),
    ("GPULowUtilization", one(USE, "9x30 50 9x30"), "30m"),
    ("LowGPUUtilization", one(USE, "21x500"), "3h"),
    ("GPUUnderutilized", one(USE, "19x500"), "3h59m"),
    ("GPUHighUtilization", one(USE, "95x100"), "40m"),
    # 60 percent: used divided by free would be 1.5.
    ("HighGPUMemoryUsage", memory(60, 40), "10m"),
    ("GPUMemoryAlmostFull", memory(60, 40), "10m"),
    ("GPUMemoryAlmostFull", memory(94, 2, 4), "10m"),
    ("GPUMemoryLeaking", leaking(0), "30m"),
    ("GPUMemoryLeaking", one(USED, "1000+10x80") | one(FREE, "79000-10x80"), "30m"),
    ("GPUXIDError", one(XID, "0x60"), "10m"),
    # Once: the gauge keeps the last error.
    ("GPUXIDError", one(XID, "0x10 31x60"), "20m"),
    ("NCCLTrainingStalled", stalled(GPU), "50m"),
    ("NCCLTrainingStalled", stalled(GPU, OTHER, traffic="0x200"), "50m"),
    ("NCCLTrainingStalled", stalled(GPU, OTHER, traffic="0+90x200"), "50m"),
    ("NCCLTrainingStalled", stalled(GPU, OTHER, use=0), "50m"),
    ("GPUIdleWhileHeld", one(USE, "2x600", 'gpu="0",UUID="GPU-1",Hostname="n-0",namespace="",pod=""'), "4h10m"),
    ("GPUIdleWhileHeld", one(USE, "30x600"), "4h10m"),
    # A whole GPU has both; its utilisation counts.
    ("GPULowUtilization", one(USE, "80x100") | one(ENGINE, "0.05x100"), "40m"),
    ("GPULowUtilization", one(ENGINE, "0.8x100", MIG), "40m"),
    ("LowGPUUtilization", one(ENGINE, "0.8x500", MIG), "3h"),
    ("GPUHighUtilization", one(ENGINE, "0.8x100", MIG), "40m"),
    ("GPUIdleWhileHeld", one(ENGINE, "0.8x600", MIG), "4h10m"),
    ("IdleGPUCostHigh", priced(2, 2.4) | one(USE, "2x600") | one(USE, "3x600", OTHER), "4h10m"),
    ("IdleGPUCostHigh", priced(2, 5.1) | one(USE, "60x600") | one(USE, "90x600", OTHER), "4h10m"),
    ("IdleGPUCostHigh", priced(0.5, 20) | one(ENGINE, "0.8x600", MIG), "4h10m"),
    ("IdleGPUCostHigh", one(USE, "2x600"), "4h10m"),
    ("QueueAdmissionSlow", waits("0+10x200", "0+10x200"), "1h"),
    ("QueueAdmissionSlow", waits("0+1x200", "0+10x200") | slo(3600), "1h"),
    ("QueueAdmissionSlow", waits("0+10x200", "0+10x200") | slo(600, "silver"), "1h"),
    ("QuotaNotReturned", quota(0, 2), "40m"),
    ("QuotaNotReturned", quota(4, 8), "40m"),
    ("GPUFragmentationHigh", states(1), "40m"),
    ("GangWaitsForFreeGPUs", gangs(0, 5), "40m"),
    ("CapacityRefused", refused("0x60"), "40m"),
    ("CapacityRefused", refused("3x60"), "40m"),
    ("CapacityRefused", refused("0+1x60", "throttled"), "40m"),
    ("BudgetExceeded", budget(0.99, 2), "40m"),
    ("BudgetAtRisk", budget(0.5, 1), "90m"),
    ("BudgetAtRisk", budget(1, 2), "90m"),
    ("GangWaitsForFreeGPUs", gangs(1, 0), "14m"),
    ("UnsavedWorkOnSpotNode", unsaved(1801, 0), "40m"),
    ("UnsavedWorkOnSpotNode", unsaved(1700, 1), "40m"),
]
