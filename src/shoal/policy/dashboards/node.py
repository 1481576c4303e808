"""The GPUs of chosen nodes."""

from __future__ import annotations

from shoal.policy.dashboards.grafana import Dashboard, Panel, PanelQuery, Unit, Variable, use

_ON = 'Hostname=~"$node"'
_GPU = "{{Hostname}} GPU {{gpu}}"


def _of(title: str, metric: str, unit: Unit, factor: str = "", description: str = "") -> Panel:
    return Panel(title, (PanelQuery(f"{factor}{metric}{{{_ON}}}", _GPU),), unit=unit, description=description)


NODE = Dashboard(
    "node",
    "Node",
    "Each GPU of a node: use, memory, heat, power, errors, and the pods on it.",
    (
        Panel(
            "Utilisation",
            (PanelQuery(use(_ON), f"{_GPU} {{{{namespace}}}}/{{{{pod}}}}"),),
            unit="percent",
            shows_use=True,
        ),
        Panel(
            "Used memory",
            (PanelQuery(f"DCGM_FI_DEV_FB_USED{{{_ON}}}", _GPU),),
            unit="decmbytes",
        ),
        _of("Busy multiprocessors", "DCGM_FI_PROF_SM_ACTIVE", "percent", "100 * "),
        _of("Tensor cores", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "percent", "100 * "),
        _of("Memory interface", "DCGM_FI_PROF_DRAM_ACTIVE", "percent", "100 * "),
        _of("Temperature", "DCGM_FI_DEV_GPU_TEMP", "celsius"),
        _of("Power", "DCGM_FI_DEV_POWER_USAGE", "watt"),
        Panel(
            "NVLink",
            (PanelQuery(f"1000000 * rate(DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{{{_ON}}}[5m])", _GPU),),
            unit="Bps",
            description="Data over all links in both directions; the metric counts MB.",
        ),
        Panel(
            "PCIe",
            (
                PanelQuery(f"DCGM_FI_PROF_PCIE_TX_BYTES{{{_ON}}}", f"{_GPU} sent"),
                PanelQuery(f"DCGM_FI_PROF_PCIE_RX_BYTES{{{_ON}}}", f"{_GPU} received"),
            ),
            unit="Bps",
        ),
        Panel("Last Xid error", (PanelQuery(f"DCGM_FI_DEV_XID_ERRORS{{{_ON}}} > 0"),), "table", "none"),
        Panel(
            "Pods with GPUs",
            (
                PanelQuery(
                    "sum by (node, namespace, pod)"
                    ' (kube_pod_container_resource_requests{node=~"$node",resource=~"nvidia_com_.*"})'
                ),
            ),
            "table",
            "none",
            description="Needs kube-state-metrics, or shoal run --kube-state-metrics.",
        ),
        Panel(
            "Allocatable GPUs and requests",
            (
                PanelQuery(
                    'sum by (node) (kube_node_status_allocatable{node=~"$node",resource="nvidia_com_gpu"})',
                    "{{node}} allocatable",
                ),
                PanelQuery(
                    'sum by (node) (kube_pod_container_resource_requests{node=~"$node",resource="nvidia_com_gpu"})',
                    "{{node}} requested",
                ),
            ),
        ),
    ),
    (Variable("node", "Node", "label_values(DCGM_FI_DEV_GPU_TEMP, Hostname)"),),
)
