"""All GPUs of a cluster."""

from __future__ import annotations

from shoal.policy.dashboards.grafana import Dashboard, Panel, PanelQuery, use

_HELD_USE = use('pod!=""')

FLEET = Dashboard(
    "fleet",
    "Fleet",
    "GPUs of the cluster: how many are used, how well, and what waits for them.",
    (
        Panel("GPUs", (PanelQuery("sum(shoal_gpus)"),), "stat", width=4),
        Panel("Held GPUs", (PanelQuery('sum(shoal_gpus{state="used"})'),), "stat", width=4),
        Panel(
            "Free only in parts",
            (PanelQuery('100 * sum(shoal_gpus{state="broken_up"}) / sum(shoal_gpus)'),),
            "stat",
            "percent",
            4,
            "The free rest of GPUs that pods use in part.",
        ),
        Panel("Utilisation", (PanelQuery(f"avg{use()}"),), "stat", "percent", 4, shows_use=True),
        Panel("Waiting pods", (PanelQuery("sum(scheduler_pending_pods)"),), "stat", width=4),
        Panel(
            "Gangs that wait beside free GPUs",
            (PanelQuery('sum(shoal_waiting_gangs{gpus="free"})'),),
            "stat",
            width=4,
            description="As many GPUs are free as their missing pods need. shoal why says what is missing.",
        ),
        Panel("GPUs by state", (PanelQuery("sum by (state) (shoal_gpus)", "{{state}}"),), is_stacked=True),
        Panel("Waiting pods", (PanelQuery("sum by (queue) (scheduler_pending_pods)", "{{queue}}"),), is_stacked=True),
        Panel(
            "Held GPUs by namespace",
            (PanelQuery("sum by (namespace) (container_gpu_allocation)", "{{namespace}}"),),
            is_stacked=True,
            description="Parts of a GPU are counted by their share. Needs a history.",
        ),
        Panel(
            "Utilisation by namespace",
            (PanelQuery(f"avg by (namespace) {_HELD_USE}", "{{namespace}}"),),
            unit="percent",
            shows_use=True,
        ),
        Panel(
            "Utilisation by node",
            (PanelQuery(f"avg by (Hostname) {use()}", "{{Hostname}}"),),
            "bargauge",
            "percent",
            shows_use=True,
            description="Green from 70 to 95 %, yellow from 40 %, red below; above 95 % inference is saturated.",
        ),
        Panel(
            "Used memory by node",
            (
                PanelQuery(
                    "100 * sum by (Hostname) (DCGM_FI_DEV_FB_USED)"
                    " / sum by (Hostname) (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)",
                    "{{Hostname}}",
                ),
            ),
            unit="percent",
            description="Used memory divided by used and free memory.",
        ),
        Panel(
            "Hottest GPU by node",
            (PanelQuery("max by (Hostname) (DCGM_FI_DEV_GPU_TEMP)", "{{Hostname}}"),),
            unit="celsius",
        ),
        Panel("Power", (PanelQuery("sum(DCGM_FI_DEV_POWER_USAGE)", "all GPUs"),), unit="watt"),
        Panel(
            "GPUs with an Xid error",
            (PanelQuery("DCGM_FI_DEV_XID_ERRORS > 0"),),
            "table",
            "none",
            description="The last error of each GPU. shoal xid NUMBER says what it means.",
        ),
        Panel(
            "Idle GPUs that pods hold",
            (PanelQuery(f"sum by (namespace) (avg_over_time({_HELD_USE}[1h:1m]) < bool 5)", "{{namespace}}"),),
            description="GPUs and MIG instances whose mean use of an hour is below 5 %.",
        ),
    ),
)
