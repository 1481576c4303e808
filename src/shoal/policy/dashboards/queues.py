"""Quota, backlog and waits of queues."""

from __future__ import annotations

from shoal.policy.dashboards.grafana import Dashboard, Panel, PanelQuery, Variable

_ON = 'cluster_queue=~"$queue"'
_GPUS = f'{_ON},resource="nvidia.com/gpu"'
_WAITS = f"sum by (cluster_queue, le) (rate(kueue_admission_wait_time_seconds_bucket{{{_ON}}}[1h]))"

QUEUES = Dashboard(
    "queues",
    "Queues",
    "ClusterQueues: quota, what is lent and borrowed, backlog and waits.",
    (
        Panel("Waiting workloads", (PanelQuery(f"sum(kueue_pending_workloads{{{_ON}}})"),), "stat", width=6),
        Panel("Admitted workloads", (PanelQuery(f"sum(kueue_admitted_active_workloads{{{_ON}}})"),), "stat", width=6),
        Panel("GPUs of quota", (PanelQuery(f"sum(kueue_cluster_queue_nominal_quota{{{_GPUS}}})"),), "stat", width=6),
        Panel("GPUs in use", (PanelQuery(f"sum(kueue_cluster_queue_resource_usage{{{_GPUS}}})"),), "stat", width=6),
        Panel(
            "GPUs: quota, reserved and requested",
            (
                PanelQuery(
                    f"sum by (cluster_queue) (kueue_cluster_queue_nominal_quota{{{_GPUS}}})", "{{cluster_queue}} quota"
                ),
                PanelQuery(
                    f"sum by (cluster_queue) (kueue_cluster_queue_resource_reservation{{{_GPUS}}})",
                    "{{cluster_queue}} reserved",
                ),
                PanelQuery(
                    f"sum by (cluster_queue) (kueue_cluster_queue_resource_pending{{{_GPUS}}})",
                    "{{cluster_queue}} requested",
                ),
            ),
        ),
        Panel(
            "Borrowed GPUs",
            (
                PanelQuery(
                    f"(sum by (cluster_queue) (kueue_cluster_queue_resource_reservation{{{_GPUS}}})"
                    f" - sum by (cluster_queue) (kueue_cluster_queue_nominal_quota{{{_GPUS}}})) > 0",
                    "{{cluster_queue}}",
                ),
            ),
            description="What a queue has reserved above its own quota.",
        ),
        Panel(
            "Waiting workloads",
            (
                PanelQuery(
                    f"sum by (cluster_queue, status) (kueue_pending_workloads{{{_ON}}})", "{{cluster_queue}} {{status}}"
                ),
            ),
            is_stacked=True,
            description="inadmissible waits for a change of the cluster or of quotas.",
        ),
        Panel(
            "Wait until admission",
            (
                PanelQuery(f"histogram_quantile(0.5, {_WAITS})", "{{cluster_queue}} half of them"),
                PanelQuery(f"histogram_quantile(0.95, {_WAITS})", "{{cluster_queue}} 95 %"),
            ),
            unit="s",
            description="Of the workloads that were admitted in the last hour.",
        ),
        Panel(
            "Evictions per hour",
            (
                PanelQuery(
                    f"sum by (cluster_queue, reason) (increase(kueue_evicted_workloads_total{{{_ON}}}[1h]))",
                    "{{cluster_queue}} {{reason}}",
                ),
            ),
        ),
        Panel(
            "Share of borrowed resources",
            (PanelQuery(f"kueue_cluster_queue_weighted_share{{{_ON}}}", "{{cluster_queue}}"),),
            description="With fair sharing: borrowed resources divided by weight.",
        ),
        Panel(
            "Queues that admit nothing",
            (PanelQuery(f'kueue_cluster_queue_status{{{_ON},status!="active"}} == 1'),),
            "table",
            "none",
            width=24,
        ),
    ),
    (Variable("queue", "ClusterQueue", "label_values(kueue_pending_workloads, cluster_queue)"),),
)
