"""Metrics as a small cluster has them over half an hour, in the texts of the exporters and of Shoal: two nodes with
GPUs, of which one has MIG instances, three pods, two queues."""

from __future__ import annotations

from collections.abc import Iterator

STEP_S, STEPS = 30, 150
_QUEUES = ("gold", "silver")
_FIELDS = {
    "DCGM_FI_DEV_GPU_UTIL": 60,
    "DCGM_FI_DEV_GPU_TEMP": 55,
    "DCGM_FI_DEV_POWER_USAGE": 400,
    "DCGM_FI_DEV_FB_USED": 30_000,
    "DCGM_FI_DEV_FB_FREE": 50_000,
    "DCGM_FI_PROF_SM_ACTIVE": 0.5,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 0.25,
    "DCGM_FI_PROF_DRAM_ACTIVE": 0.3,
    "DCGM_FI_PROF_PCIE_TX_BYTES": 1_000_000,
    "DCGM_FI_PROF_PCIE_RX_BYTES": 2_000_000,
}
_OF_INSTANCES = ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE")


def texts_at(step: int) -> list[str]:
    """The lines of all sources at a step, without types."""
    return [*_gpus(step), *_instances(), *_scheduler(), *_queues(step), *_prices(), *_objects()]


def _gpus(step: int) -> Iterator[str]:
    for gpu in range(4):
        pod = f',container="main",namespace="team-a",pod="train-{gpu // 2}"' if gpu < 3 else ""
        labels = f'gpu="{gpu}",UUID="GPU-{gpu}",device="nvidia{gpu}",modelName="H100",Hostname="n-0"{pod}'
        for name, value in _FIELDS.items():
            yield f"{name}{{{labels}}} {value + gpu if value > 1 else value}"
        yield f"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{{{labels}}} {step * 90 * (gpu + 1)}"
        yield f"DCGM_FI_DEV_XID_ERRORS{{{labels}}} {31 if gpu == 1 else 0}"


def _instances() -> Iterator[str]:
    for number, profile in enumerate(("3g.40gb", "3g.40gb", "1g.10gb")):
        pod = ',container="main",namespace="team-b",pod="serve-0"' if number == 0 else ""
        labels = f'gpu="0",UUID="GPU-m",device="nvidia0",modelName="H100",Hostname="n-1"{pod}'
        labels += f',GPU_I_PROFILE="{profile}",GPU_I_ID="{number + 1}"'
        for name in _OF_INSTANCES:
            yield f"{name}{{{labels}}} {10_000 + number}"
        yield f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels}}} 0.4"
        yield f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{labels}}} 0.2"


def _scheduler() -> Iterator[str]:
    for state, gpus in (("used", 4), ("empty", 1), ("broken_up", 0.5)):
        yield f'shoal_gpus{{state="{state}"}} {gpus}'
    for queue, value in (("active", 1), ("unschedulable", 2), ("gated", 0)):
        yield f'scheduler_pending_pods{{queue="{queue}"}} {value}'
    for state, value in (("free", 1), ("short", 2)):
        yield f'shoal_waiting_gangs{{gpus="{state}"}} {value}'


def _queues(step: int) -> Iterator[str]:
    for at, queue in enumerate(_QUEUES):
        own = f'cluster_queue="{queue}"'
        for status, value in (("active", 2 + at), ("inadmissible", at)):
            yield f'kueue_pending_workloads{{{own},status="{status}"}} {value}'
        yield f"kueue_admitted_active_workloads{{{own}}} {3 + at}"
        of_gpus = f'cohort="all",{own},flavor="h100",resource="nvidia.com/gpu"'
        yield f"kueue_cluster_queue_nominal_quota{{{of_gpus}}} 4"
        yield f"kueue_cluster_queue_resource_usage{{{of_gpus}}} {3 + 3 * at}"
        yield f"kueue_cluster_queue_resource_reservation{{{of_gpus}}} {3 + 3 * at}"
        yield f'kueue_cluster_queue_resource_pending{{{own},resource="nvidia.com/gpu"}} {2 * at}'
        yield f'kueue_cluster_queue_weighted_share{{{own},cohort="all"}} {100 * at}'
        for status in ("active", "pending", "terminating"):
            is_now = status == ("pending" if at else "active")
            yield f'kueue_cluster_queue_status{{{own},status="{status}"}} {int(is_now)}'
        for bound, count in (("60", 1), ("600", 3), ("+Inf", 4)):
            labels = f'{own},priority_class="",le="{bound}"'
            yield f"kueue_admission_wait_time_seconds_bucket{{{labels}}} {step * count}"
        yield f'kueue_evicted_workloads_total{{{own},reason="Preempted"}} {step // 10}'


def _prices() -> Iterator[str]:
    for node, kind, per_gpu, gpus, spot in (("n-0", "p5", 6.5, 4, 0), ("n-1", "p4d", 2.5, 1, 1)):
        own = f'instance="{node}",node="{node}",instance_type="{kind}",region="us-east-1"'
        yield f"node_gpu_hourly_cost{{{own}}} {per_gpu}"
        yield f"node_total_hourly_cost{{{own}}} {per_gpu * gpus * 1.25}"
        yield f"node_gpu_count{{{own}}} {gpus}"
        yield f"kubecost_node_is_spot{{{own}}} {spot}"
    for node, namespace, pod, held in (
        ("n-0", "team-a", "train-0", 2.0),
        ("n-0", "team-a", "train-1", 1.0),
        ("n-1", "team-b", "serve-0", 0.5),
    ):
        own = f'instance="{node}",namespace="{namespace}",node="{node}",pod="{pod}",team="{namespace}"'
        yield f"container_gpu_allocation{{{own}}} {held}"


def _objects() -> Iterator[str]:
    for node, resource, number in (("n-0", "nvidia_com_gpu", 4), ("n-1", "nvidia_com_mig_3g_40gb", 2)):
        yield f'kube_node_status_allocatable{{node="{node}",resource="{resource}",unit="integer"}} {number}'
    for node, namespace, pod, resource in (
        ("n-0", "team-a", "train-0", "nvidia_com_gpu"),
        ("n-1", "team-b", "serve-0", "nvidia_com_mig_3g_40gb"),
    ):
        own = f'namespace="{namespace}",pod="{pod}",uid="{pod}",container="main",node="{node}"'
        yield f'kube_pod_container_resource_requests{{{own},resource="{resource}",unit="integer"}} 1'
