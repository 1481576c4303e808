"""Declares alerts about GPUs and queues, and writes them as a PrometheusRule or as a rule file of Prometheus.

Memory is used memory divided by all memory, never by free memory; gauges are not passed to `rate()`. An Xid error is
the value of a gauge, so the alert compares it with the value ten minutes before. A stalled job is a pod with several
GPUs that had traffic on NVLink: pods with one GPU and GPUs without NVLink have none while they are well.

Each alert has a runbook as an annotation, so that it can be read without a link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

MEMORY_RATIO = "shoal:gpu_memory_used:ratio"
MEMORY = (
    "DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE"
    " + (DCGM_FI_DEV_FB_RESERVED or 0 * DCGM_FI_DEV_FB_USED))"
)
USE = "shoal:gpu_utilization:percent"
"""Of a GPU or a MIG instance: instances have no utilisation, only the activity of their engines."""
RECORDED = ((MEMORY_RATIO, MEMORY), (USE, "DCGM_FI_DEV_GPU_UTIL or 100 * DCGM_FI_PROF_GR_ENGINE_ACTIVE"))
"""Recording rules by name, which the alerts read."""
_XID = "DCGM_FI_DEV_XID_ERRORS"
_NVLINK = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"
_GPU = "GPU {{ $labels.gpu }}{{ with $labels.GPU_I_ID }} (MIG instance {{ . }}){{ end }} of {{ $labels.Hostname }}"
_HOLDER = "{{ with $labels.pod }}, held by {{ $labels.namespace }}/{{ . }}{{ end }}"
_QUEUE = "ClusterQueue {{ $labels.cluster_queue }}"


class AlertRule(msgspec.Struct, frozen=True):
    name: str
    expression: str
    lasting: str
    """How long the expression has to be true."""
    severity: Literal["info", "warning", "critical"]
    summary: str
    description: str
    runbook: str


_GPU_ALERTS = (
    AlertRule(
        "GPUHighTemperature",
        "DCGM_FI_DEV_GPU_TEMP > 85",
        "5m",
        "warning",
        f"{_GPU} is hot",
        f"{_GPU} has {{{{ $value }}}} degrees{_HOLDER}.",
        "Check fans and airflow of the node. The GPU reduces its clocks near its limit (nvidia-smi -q -d TEMPERATURE).",
    ),
    AlertRule(
        "GPULowUtilization",
        f"{USE} < 10",
        "30m",
        "info",
        f"{_GPU} is hardly used",
        f"{_GPU} is used to {{{{ $value }}}} percent{_HOLDER}.",
        "If a pod holds the GPU, look at its log: it may wait for data. shoal top shows who holds what.",
    ),
    AlertRule(
        "LowGPUUtilization",
        f"avg_over_time({USE}[1h]) < 20",
        "2h",
        "info",
        f"{_GPU} is used little",
        f'{_GPU} was used to {{{{ $value | printf "%.0f" }}}} percent in the last hour{_HOLDER}.',
        "Consider a MIG instance or a shared GPU for this workload.",
    ),
    AlertRule(
        "GPUUnderutilized",
        f"avg_over_time({USE}[1h]) < 20",
        "4h",
        "warning",
        f"{_GPU} has been used little for hours",
        f'{_GPU} was used to {{{{ $value | printf "%.0f" }}}} percent in the last hour{_HOLDER}.',
        "Consider a MIG instance or a shared GPU for this workload, or end it.",
    ),
    AlertRule(
        "GPUHighUtilization",
        f"{USE} > 95",
        "30m",
        "info",
        f"{_GPU} is saturated",
        f"{_GPU} is used to {{{{ $value }}}} percent{_HOLDER}.",
        "Training is well at this use. A server of models needs another replica.",
    ),
    AlertRule(
        "HighGPUMemoryUsage",
        f"{MEMORY_RATIO} > 0.9",
        "5m",
        "warning",
        f"The memory of {_GPU} is nearly full",
        f"{{{{ $value | humanizePercentage }}}} of the memory of {_GPU} is used{_HOLDER}.",
        "Frameworks reserve memory in advance; where this one does not, reduce the batch size before it fails.",
    ),
    AlertRule(
        "GPUMemoryAlmostFull",
        f"{MEMORY_RATIO} > 0.95",
        "5m",
        "critical",
        f"The memory of {_GPU} is almost full",
        f"{{{{ $value | humanizePercentage }}}} of the memory of {_GPU} is used{_HOLDER}.",
        "The next allocation may fail. Reduce the batch size, or use a GPU with more memory (shoal size).",
    ),
    AlertRule(
        "GPUMemoryLeaking",
        f"({MEMORY_RATIO} > 0.95) and deriv(DCGM_FI_DEV_FB_USED[10m]) > 0",
        "10m",
        "warning",
        f"The memory of {_GPU} is almost full and grows",
        f"{{{{ $value | humanizePercentage }}}} of the memory of {_GPU} is used, and it grows{_HOLDER}.",
        "Look for tensors that are kept between steps. The process ends with CUDA out of memory if it goes on.",
    ),
    AlertRule(
        "GPUXIDError",
        f"({_XID} > 0) unless ({_XID} == ({_XID} offset 10m))",
        "1m",
        "critical",
        f"{_GPU} reports Xid {{{{ $value }}}}",
        f"{_GPU} reports Xid {{{{ $value }}}}{_HOLDER}. An equal error within ten minutes is not seen as a new one.",
        "shoal xid {{ $value }} says what the error means and what to do.",
    ),
    AlertRule(
        "NCCLTrainingStalled",
        f"(rate({_NVLINK}[5m]) == 0) and (max_over_time(rate({_NVLINK}[5m])[1h:1m]) > 0)"
        ' and on (namespace, pod) (count by (namespace, pod) (DCGM_FI_DEV_GPU_UTIL{pod!=""}) > 1)'
        ' and on (namespace, pod) (max by (namespace, pod) (DCGM_FI_DEV_GPU_UTIL{pod!=""}) > 0)',
        "10m",
        "critical",
        "Pod {{ $labels.namespace }}/{{ $labels.pod }} may have stalled",
        f"{_GPU} sends nothing over NVLink any more, though it did within the last hour and the pod uses its GPUs.",
        "Look at the log of every rank with NCCL_DEBUG=INFO: one that has ended or waits holds up all others.",
    ),
    AlertRule(
        "GPUIdleWhileHeld",
        f'sum by (namespace) (avg_over_time({USE}{{pod!=""}}[1h]) < bool 5) > 0',
        "4h",
        "warning",
        "Namespace {{ $labels.namespace }} pays for idle GPUs",
        "{{ $value }} GPUs or MIG instances that pods of {{ $labels.namespace }} hold have been idle for hours.",
        "shoal top shows who holds them. End what is not used, or let it use a part of a GPU.",
    ),
)
_REFUSED = 'shoal_node_scaling_refused_requests_total{reason="no capacity"}'
_SCHEDULING_ALERTS = (
    AlertRule(
        "GangWaitsForFreeGPUs",
        'shoal_waiting_gangs{gpus="free"} > 0',
        "15m",
        "warning",
        "Gangs wait although enough GPUs are free",
        "{{ $value }} gangs wait although as many GPUs are free as their missing pods need.",
        "shoal why GANG says what is missing: GPUs on one node or in one domain, quota, or a rule that no node meets.",
    ),
    AlertRule(
        "CapacityRefused",
        # A counter that has just appeared has no increase yet.
        f"(increase({_REFUSED}[15m]) > 0) or (({_REFUSED} > 0) unless ({_REFUSED} offset 15m))",
        "1m",
        "warning",
        "The cloud has no capacity for nodes that pods wait for",
        "The cloud has refused requests for nodes within 15 minutes, because it has no such capacity.",
        "shoal scale plan says which nodes are wanted. Allow more instance types, zones or capacity types in the "
        "NodePool, or use a reservation.",
    ),
    AlertRule(
        "UnsavedWorkOnSpotNode",
        "(shoal_unsaved_work_seconds > 1800) and on (node) (kubecost_node_is_spot == 1)",
        "5m",
        "warning",
        "Pod {{ $labels.namespace }}/{{ $labels.pod }} would lose much work",
        "Pod {{ $labels.namespace }}/{{ $labels.pod }} on spot node {{ $labels.node }} saved its work last"
        " {{ $value | humanizeDuration }} ago. An interruption would lose what it did since.",
        "Let it save more often, or check why it has stopped to save; the annotation shoal.dev/last-checkpoint has the"
        " time. shoal top shows its node.",
    ),
)
_BUDGET = "The budget of {{ $labels.kind }} {{ $labels.name }}"
_HELD = "container_gpu_allocation * on (node) group_left () node_gpu_hourly_cost"
_COST_ALERTS = (
    AlertRule(
        "IdleGPUCostHigh",
        # Of the price of what a pod holds, the part of its GPUs that are idle.
        f"sum by (namespace) (({_HELD}) * on (namespace, pod) group_left ()"
        f' avg by (namespace, pod) (avg_over_time({USE}{{pod!=""}}[1h]) < bool 5)) > 5',
        "4h",
        "warning",
        "Idle GPUs of namespace {{ $labels.namespace }} cost much",
        'GPUs that pods of namespace {{ $labels.namespace }} hold and do not use cost {{ $value | printf "%.2f" }}'
        " per hour, in the currency of the prices.",
        "shoal cost advise says what would cost less; shoal top shows who holds the GPUs.",
    ),
    AlertRule(
        "BudgetExceeded",
        "shoal_budget_spent_ratio >= 1",
        "5m",
        "warning",
        f"{_BUDGET} is spent",
        "{{ $value | humanizePercentage }} of the budget of this month is spent.",
        "shoal cost budget shows budgets, shoal cost --window month what they were spent on.",
    ),
    AlertRule(
        "BudgetAtRisk",
        "(shoal_budget_forecast_ratio > 1) unless on (kind, name) (shoal_budget_spent_ratio >= 1)",
        "1h",
        "info",
        f"{_BUDGET} will not last for the month",
        "At the spending of the last seven days the month comes to {{ $value | humanizePercentage }} of the budget.",
        "shoal cost advise says what would cost less.",
    ),
)
_WAITED = "kueue_admission_wait_time_seconds"
_QUEUE_ALERTS = (
    AlertRule(
        "QueueAdmissionSlow",
        f"histogram_quantile(0.95, sum by (cluster_queue, le) (rate({_WAITED}_bucket[1h])))"
        " > on (cluster_queue) (max by (cluster_queue) (shoal_cluster_queue_wait_slo_seconds)"
        # Kueue itself has no SLO of a queue.
        f" or max by (cluster_queue) ({_WAITED}_bucket) * 0 + 1800)",
        "15m",
        "warning",
        f"Workloads wait long in {_QUEUE}",
        f"In the last hour the slowest twentieth of {_QUEUE} waited {{{{ $value | humanizeDuration }}}} or longer,"
        " which is more than its SLO.",
        "shoal queue shows quota, borrowing and backlog; shoal why explains one workload.",
    ),
    AlertRule(
        "QuotaNotReturned",
        "(sum by (cluster_queue, resource) (kueue_cluster_queue_resource_pending) > 0)"
        " and (sum by (cluster_queue, resource) (kueue_cluster_queue_resource_reservation)"
        " < sum by (cluster_queue, resource) (kueue_cluster_queue_nominal_quota))",
        "30m",
        "warning",
        f"{_QUEUE} waits below its own quota",
        f"Workloads of {_QUEUE} wait for {{{{ $value }}}} {{{{ $labels.resource }}}}; its own quota is unused.",
        "Others may have borrowed it: shoal queue shows who, and spec.preemption.reclaimWithinCohort whether it is "
        "reclaimed. Or one workload requests more than is left: shoal why explains it.",
    ),
    AlertRule(
        "GPUFragmentationHigh",
        'sum(shoal_gpus{state="broken_up"}) / sum(shoal_gpus) > 0.2',
        "30m",
        "warning",
        "Many GPUs are free only in parts",
        "{{ $value | humanizePercentage }} of all GPUs are the free rest of partly used GPUs.",
        "shoal pack compares placements with less fragmentation.",
    ),
)
ALERTS = (*_GPU_ALERTS, *_SCHEDULING_ALERTS, *_QUEUE_ALERTS, *_COST_ALERTS)


def rule_groups() -> list[dict[str, Any]]:
    """The groups of a rule file."""
    return [
        {
            "name": "shoal-gpu",
            "interval": "30s",
            "rules": [*({"record": name, "expr": text} for name, text in RECORDED), *map(_rule, _GPU_ALERTS)],
        },
        {"name": "shoal-scheduling", "interval": "30s", "rules": [*map(_rule, _SCHEDULING_ALERTS)]},
        {"name": "shoal-queues", "interval": "30s", "rules": [*map(_rule, _QUEUE_ALERTS)]},
        {"name": "shoal-costs", "interval": "30s", "rules": [*map(_rule, _COST_ALERTS)]},
    ]


def prometheus_rule(name: str, namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """An object of the Prometheus operator. `labels`: those by which a Prometheus selects rules."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = dict(labels)
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata,
        "spec": {"groups": rule_groups()},
    }


def _rule(alert: AlertRule) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "description": alert.description, "runbook": alert.runbook},
    }
