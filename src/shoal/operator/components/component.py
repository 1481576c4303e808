"""Lists the components: the state that the operator reports, the DaemonSet, and the label that selects its nodes.

The names are those of NVIDIA's GPU operator, so that selectors in guides and in other tools find the pods.
"""

from __future__ import annotations

import msgspec

from shoal.devices.operator_labels import DEPLOY


class Component(msgspec.Struct, frozen=True):
    state: str
    """The name of its state, as the operator reports it."""
    name: str
    """Of the DaemonSet, and the value of the label `app` of its pods."""
    field: str
    """In the spec of the policy."""
    deploy: str = ""
    """The end of the label of the nodes on which it runs; empty: all nodes."""
    account: str = ""
    is_waited_for: bool = True
    """Whether the policy is not ready until its pods are."""

    @property
    def service_account(self) -> str:
        return self.account or self.name

    @property
    def node_selector(self) -> dict[str, str]:
        return {DEPLOY + self.deploy: "true"} if self.deploy else {}


DISCOVERY = Component("discovery", "nvidia-node-feature-discovery", "", is_waited_for=False)
DRIVER = Component("state-driver", "nvidia-driver-daemonset", "driver", "driver", "nvidia-driver")
TOOLKIT = Component(
    "state-container-toolkit",
    "nvidia-container-toolkit-daemonset",
    "toolkit",
    "container-toolkit",
    "nvidia-container-toolkit",
)
VALIDATOR = Component("state-operator-validation", "nvidia-operator-validator", "validator", "operator-validator")
PLUGIN = Component(
    "state-device-plugin", "nvidia-device-plugin-daemonset", "devicePlugin", "device-plugin", "nvidia-device-plugin"
)
MPS = Component(
    "state-mps-control-daemon",
    "nvidia-device-plugin-mps-control-daemon",
    "devicePlugin",
    "device-plugin",
    "nvidia-device-plugin-mps-control-daemon",
)
DCGM = Component("state-dcgm", "nvidia-dcgm", "dcgm", "dcgm")
EXPORTER = Component("state-dcgm-exporter", "nvidia-dcgm-exporter", "dcgmExporter", "dcgm-exporter")
FEATURES = Component(
    "gpu-feature-discovery", "gpu-feature-discovery", "gfd", "gpu-feature-discovery", "nvidia-gpu-feature-discovery"
)
MIG_MANAGER = Component("state-mig-manager", "nvidia-mig-manager", "migManager", "mig-manager")
STATUS_EXPORTER = Component(
    "state-node-status-exporter", "nvidia-node-status-exporter", "nodeStatusExporter", "node-status-exporter"
)
VGPU_MANAGER = Component(
    "state-vgpu-manager", "nvidia-vgpu-manager-daemonset", "vgpuManager", "vgpu-manager", "nvidia-vgpu-manager"
)
VGPU_DEVICES = Component(
    "state-vgpu-device-manager", "nvidia-vgpu-device-manager", "vgpuDeviceManager", "vgpu-device-manager"
)
SANDBOX_VALIDATOR = Component("state-sandbox-validation", "nvidia-sandbox-validator", "validator", "sandbox-validator")
VFIO_MANAGER = Component("state-vfio-manager", "nvidia-vfio-manager", "vfioManager", "vfio-manager")
SANDBOX_PLUGIN = Component(
    "state-sandbox-device-plugin",
    "nvidia-sandbox-device-plugin-daemonset",
    "sandboxDevicePlugin",
    "sandbox-device-plugin",
    "nvidia-sandbox-device-plugin",
)
KATA_PLUGIN = Component(
    "state-kata-sandbox-device-plugin",
    "nvidia-kata-sandbox-device-plugin-daemonset",
    "kataSandboxDevicePlugin",
    "kata-sandbox-device-plugin",
    "nvidia-kata-sandbox-device-plugin",
)
KATA_MANAGER = Component("state-kata-manager", "nvidia-kata-manager", "kataManager", "kata-manager")
CC_MANAGER = Component("state-cc-manager", "nvidia-cc-manager", "ccManager", "cc-manager")

COMPONENTS: tuple[Component, ...] = (
    DISCOVERY,
    DRIVER,
    TOOLKIT,
    VALIDATOR,
    PLUGIN,
    MPS,
    DCGM,
    EXPORTER,
    FEATURES,
    MIG_MANAGER,
    STATUS_EXPORTER,
    VGPU_MANAGER,
    VGPU_DEVICES,
    SANDBOX_VALIDATOR,
    VFIO_MANAGER,
    SANDBOX_PLUGIN,
    KATA_PLUGIN,
    KATA_MANAGER,
    CC_MANAGER,
)
"""In the order of the states."""
