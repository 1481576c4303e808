"""Declares the spec of a ClusterPolicy (`nvidia.com/v1`), with the defaults of NVIDIA's chart.

Every field of the custom resource is here, also those without effect, so that `reading.py` can tell a field that is
misspelled from one that is known.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from shoal.operator.policy.operands import (
    ComponentEnv,
    ConfigName,
    ConfigReference,
    EnvVar,
    ImageFields,
    Obj,
    OffOperand,
    Operand,
    PolicyStruct,
    Switch,
)

MigStrategy = Literal["none", "single", "mixed"]
KernelModuleType = Literal["auto", "open", "proprietary"]
WorkloadConfig = Literal["container", "vm-passthrough", "vm-vgpu"]
GPU_TOLERATION: Obj = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


class OperatorFields(PolicyStruct, frozen=True):
    default_runtime: str = ""
    """The container runtime, if no node names its own."""
    runtime_class: str = "nvidia"
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    init_container: ImageFields = ImageFields()
    use_ocp_driver_toolkit: bool = field(name="use_ocp_driver_toolkit", default=False)


class RollingUpdate(PolicyStruct, frozen=True):
    max_unavailable: int | str = "1"


class DaemonSetFields(PolicyStruct, frozen=True):
    """Fields of all DaemonSets."""

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Obj, ...] = (GPU_TOLERATION,)
    priority_class_name: str = "system-node-critical"
    update_strategy: Literal["RollingUpdate", "OnDelete"] = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class Probe(PolicyStruct, frozen=True):
    initial_delay_seconds: int | None = None
    timeout_seconds: int | None = None
    period_seconds: int | None = None
    success_threshold: int | None = None
    failure_threshold: int | None = None


class RdmaFields(PolicyStruct, frozen=True):
    enabled: bool = False
    use_host_mofed: bool = False


class DriverManager(ImageFields, frozen=True):
    env: tuple[EnvVar, ...] = ()


class Licensing(PolicyStruct, frozen=True):
    config_map_name: str = ""
    secret_name: str = ""
    nls_enabled: bool = True


class RepoConfig(PolicyStruct, frozen=True):
    config_map_name: str = ""


class VirtualTopology(PolicyStruct, frozen=True):
    config: str = ""


class WaitForCompletion(PolicyStruct, frozen=True):
    timeout_seconds: int = 0
    pod_selector: str = ""


class PodDeletion(PolicyStruct, frozen=True):
    force: bool = False
    timeout_seconds: int = 300
    delete_empty_dir: bool = False


class Drain(PolicyStruct, frozen=True):
    enable: bool = False
    force: bool = False
    pod_selector: str = ""
    timeout_seconds: int = 300
    delete_empty_dir: bool = False


class UpgradePolicyFields(PolicyStruct, frozen=True):
    """The names of the fields; `operator/upgrades/policy.py` parses the values."""

    auto_upgrade: bool = True
    max_parallel_upgrades: int = 1
    max_unavailable: int | str = "25%"
    wait_for_completion: WaitForCompletion = WaitForCompletion()
    pod_deletion: PodDeletion = PodDeletion()
    gpu_pod_deletion: PodDeletion = PodDeletion()
    drain: Drain = Drain()


class DriverFields(Operand, frozen=True):
    use_nvidia_driver_crd: bool = field(name="useNvidiaDriverCRD", default=False)
    use_precompiled: bool = False
    use_open_kernel_modules: bool = False
    kernel_module_type: KernelModuleType = "auto"
    startup_probe: Probe = Probe()
    liveness_probe: Probe = Probe()
    readiness_probe: Probe = Probe()
    rdma: RdmaFields = RdmaFields()
    upgrade_policy: UpgradePolicyFields = UpgradePolicyFields()
    manager: DriverManager = DriverManager()
    repo_config: RepoConfig = RepoConfig()
    cert_config: ConfigName = ConfigName()
    licensing_config: Licensing = Licensing()
    virtual_topology: VirtualTopology = VirtualTopology()
    kernel_module_config: ConfigName = ConfigName()
    secret_env: str = ""
    rolling_update: RollingUpdate = RollingUpdate()


class ToolkitFields(Operand, frozen=True):
    install_dir: str = "/usr/local/nvidia"


class MpsFields(PolicyStruct, frozen=True):
    root: str = "/run/nvidia/mps"


class DevicePluginFields(Operand, frozen=True):
    config: ConfigReference = ConfigReference()
    mps: MpsFields = MpsFields()


class DcgmFields(OffOperand, frozen=True):
    host_port: int = 5555


class ServiceMonitorFields(PolicyStruct, frozen=True):
    enabled: bool = False
    interval: str = "15s"
    scrape_timeout: str = ""
    honor_labels: bool = False
    additional_labels: dict[str, str] = field(default_factory=dict)
    relabelings: tuple[Obj, ...] = ()


class ServiceFields(PolicyStruct, frozen=True):
    type: str = "ClusterIP"
    internal_traffic_policy: str = "Cluster"


class JobMapping(PolicyStruct, frozen=True):
    enabled: bool = False
    directory: str = "/var/lib/dcgm-exporter/job-mapping"


class ExporterFields(Operand, frozen=True):
    config: ConfigName = ConfigName()
    service_monitor: ServiceMonitorFields = ServiceMonitorFields()
    service: ServiceFields = ServiceFields()
    host_pid: bool = field(name="hostPID", default=False)
    hpc_job_mapping: JobMapping = JobMapping()
    enable_pod_labels: bool = False
    enable_pod_uid: bool = field(name="enablePodUID", default=False)
    pod_label_allowlist_regex: tuple[str, ...] = ()


class MigFields(PolicyStruct, frozen=True):
    strategy: MigStrategy = "single"


class MigManagerFields(Operand, frozen=True):
    config: ConfigReference = ConfigReference(default="all-disabled")
    gpu_clients_config: ConfigName = ConfigName()


class ValidatorFields(Operand, frozen=True):
    plugin: ComponentEnv = ComponentEnv()
    toolkit: ComponentEnv = ComponentEnv()
    driver: ComponentEnv = ComponentEnv()
    cuda: ComponentEnv = ComponentEnv()
    vfio_pci: ComponentEnv = field(name="vfioPCI", default=ComponentEnv())
    vgpu_manager: ComponentEnv = ComponentEnv()
    vgpu_devices: ComponentEnv = ComponentEnv()
    cc_manager: ComponentEnv = ComponentEnv()


class SandboxFields(PolicyStruct, frozen=True):
    enabled: bool = False
    default_workload: WorkloadConfig = "container"
    mode: Literal["kubevirt", "kata"] = "kubevirt"


class VfioManagerFields(Operand, frozen=True):
    driver_manager: DriverManager = DriverManager()


class VgpuManagerFields(OffOperand, frozen=True):
    driver_manager: DriverManager = DriverManager()
    kernel_module_config: ConfigName = ConfigName()


class VgpuDeviceManagerFields(Operand, frozen=True):
    config: ConfigReference = ConfigReference(default="default")


class CdiFields(PolicyStruct, frozen=True):
    enabled: bool = True
    default: bool = False
    nri_plugin_enabled: bool = False


class KataManagerFields(OffOperand, frozen=True):
    config: dict[str, Any] = field(default_factory=dict)


class ConfidentialFields(OffOperand, frozen=True):
    default_mode: Literal["on", "off", "devtools", "ppcie"] = "off"


class HostPaths(PolicyStruct, frozen=True):
    root_fs: str = field(name="rootFS", default="/")
    driver_install_dir: str = "/run/nvidia/driver"
    kubelet_root_dir: str = "/var/lib/kubelet"


class ClusterPolicySpec(PolicyStruct, frozen=True):
    operator: OperatorFields = OperatorFields()
    daemonsets: DaemonSetFields = DaemonSetFields()
    driver: DriverFields = DriverFields()
    toolkit: ToolkitFields = ToolkitFields()
    device_plugin: DevicePluginFields = DevicePluginFields()
    dcgm: DcgmFields = DcgmFields()
    dcgm_exporter: ExporterFields = ExporterFields()
    node_status_exporter: OffOperand = OffOperand()
    gfd: Operand = Operand()
    mig: MigFields = MigFields()
    mig_manager: MigManagerFields = MigManagerFields()
    psp: Switch = Switch()
    psa: Switch = Switch()
    validator: ValidatorFields = ValidatorFields()
    gds: OffOperand = OffOperand()
    gdrcopy: OffOperand = OffOperand()
    sandbox_workloads: SandboxFields = SandboxFields()
    vfio_manager: VfioManagerFields = VfioManagerFields()
    sandbox_device_plugin: Operand = Operand()
    kata_sandbox_device_plugin: Operand = Operand()
    vgpu_manager: VgpuManagerFields = VgpuManagerFields()
    vgpu_device_manager: VgpuDeviceManagerFields = VgpuDeviceManagerFields()
    cdi: CdiFields = CdiFields()
    kata_manager: KataManagerFields = KataManagerFields()
    cc_manager: ConfidentialFields = ConfidentialFields()
    host_paths: HostPaths = HostPaths()
