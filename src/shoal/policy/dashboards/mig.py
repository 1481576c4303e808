"""MIG instances."""

from __future__ import annotations

from shoal.policy.dashboards.grafana import Dashboard, Panel, PanelQuery, Variable

_INSTANCE = "{{Hostname}} GPU {{gpu}} {{GPU_I_PROFILE}} {{GPU_I_ID}}"
_ON = 'GPU_I_ID!="",Hostname=~"$node"'

MIG = Dashboard(
    "mig",
    "MIG",
    "MIG instances: how many there are of each profile, who has them, and how they are used.",
    (
        Panel(
            "Instances by profile",
            (PanelQuery(f"count by (GPU_I_PROFILE) (DCGM_FI_DEV_FB_USED{{{_ON}}})", "{{GPU_I_PROFILE}}"),),
            is_stacked=True,
        ),
        Panel(
            "Instances without a pod",
            (PanelQuery(f'count by (GPU_I_PROFILE) (DCGM_FI_DEV_FB_USED{{{_ON},pod=""}})', "{{GPU_I_PROFILE}}"),),
        ),
        Panel(
            "Allocatable and requested",
            (
                PanelQuery(
                    'sum by (resource) (kube_node_status_allocatable{resource=~"nvidia_com_mig_.*",node=~"$node"})',
                    "{{resource}} allocatable",
                ),
                PanelQuery(
                    "sum by (resource)"
                    ' (kube_pod_container_resource_requests{resource=~"nvidia_com_mig_.*",node=~"$node"})',
                    "{{resource}} requested",
                ),
            ),
            width=24,
            description="Needs kube-state-metrics, or shoal run --kube-state-metrics.",
        ),
        Panel(
            "Activity",
            (PanelQuery(f"100 * DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{_ON}}}", _INSTANCE),),
            unit="percent",
            description="A GPU with MIG measures no utilisation; this is the activity of the instance's engines.",
        ),
        Panel(
            "Tensor cores", (PanelQuery(f"100 * DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{_ON}}}", _INSTANCE),), unit="percent"
        ),
        Panel("Used memory", (PanelQuery(f"DCGM_FI_DEV_FB_USED{{{_ON}}}", _INSTANCE),), unit="decmbytes"),
        Panel(
            "Used part of the memory",
            (
                PanelQuery(
                    f"100 * DCGM_FI_DEV_FB_USED{{{_ON}}}"
                    f" / (DCGM_FI_DEV_FB_USED{{{_ON}}} + DCGM_FI_DEV_FB_FREE{{{_ON}}})",
                    _INSTANCE,
                ),
            ),
            unit="percent",
        ),
        Panel(
            "Instances and their pods",
            (PanelQuery(f'DCGM_FI_DEV_FB_USED{{{_ON},pod!=""}}'),),
            "table",
            "decmbytes",
            width=24,
        ),
    ),
    (Variable("node", "Node", 'label_values(DCGM_FI_DEV_FB_USED{GPU_I_ID!=""}, Hostname)'),),
)
