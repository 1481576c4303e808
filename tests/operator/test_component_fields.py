"""Each field of a ClusterPolicy has the effect that it has with NVIDIA's operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import msgspec
import pytest

from build.operator_objects import FACTS, Built, gpu_node
from shoal.operator.components.facts import fleet_facts
from shoal.operator.policy.operands import ImageFields, Operand
from shoal.operator.policy.reading import _WITHOUT_EFFECT
from shoal.operator.policy.spec import ClusterPolicySpec

Obj = dict[str, Any]
DRIVER, TOOLKIT, PLUGIN = (
    "nvidia-driver-daemonset",
    "nvidia-container-toolkit-daemonset",
    "nvidia-device-plugin-daemonset",
)
EXPORTER, FEATURES, MIG, VALIDATOR = (
    "nvidia-dcgm-exporter",
    "gpu-feature-discovery",
    "nvidia-mig-manager",
    "nvidia-operator-validator",
)
SANDBOX = {"sandboxWorkloads": {"enabled": True}}
KATA = {"sandboxWorkloads": {"enabled": True, "mode": "kata"}}
IMAGE = {"repository": "reg.example/team", "image": "one", "version": "v1"}
PRECOMPILED = "nvidia-driver-daemonset-5.15.0-105-generic-ubuntu22.04"
OPERANDS: dict[str, tuple[str, str, Obj]] = {
    "driver": (DRIVER, "nvidia-driver-ctr", {}),
    "toolkit": (TOOLKIT, "nvidia-container-toolkit-ctr", {}),
    "devicePlugin": (PLUGIN, "nvidia-device-plugin", {}),
    "gfd": (FEATURES, "gpu-feature-discovery", {}),
    "dcgm": ("nvidia-dcgm", "nvidia-dcgm-ctr", {"dcgm": {"enabled": True}}),
    "dcgmExporter": (EXPORTER, "nvidia-dcgm-exporter", {}),
    "migManager": (MIG, "nvidia-mig-manager", {}),
    "nodeStatusExporter": (
        "nvidia-node-status-exporter",
        "nvidia-node-status-exporter",
        {"nodeStatusExporter": {"enabled": True}},
    ),
    "validator": (VALIDATOR, "nvidia-operator-validator", {}),
    "vgpuManager": ("nvidia-vgpu-manager-daemonset", "nvidia-vgpu-manager-ctr", {"vgpuManager": {"enabled": True}}),
    "vgpuDeviceManager": ("nvidia-vgpu-device-manager", "nvidia-vgpu-device-manager", {}),
    "vfioManager": ("nvidia-vfio-manager", "nvidia-vfio-manager", {}),
    "sandboxDevicePlugin": ("nvidia-sandbox-device-plugin-daemonset", "nvidia-sandbox-device-plugin-ctr", {}),
    "kataSandboxDevicePlugin": (
        "nvidia-kata-sandbox-device-plugin-daemonset",
        "nvidia-kata-sandbox-device-plugin-ctr",
        KATA,
    ),
    "kataManager": ("nvidia-kata-manager", "nvidia-kata-manager", {"kataManager": {"enabled": True}}),
    "ccManager": ("nvidia-cc-manager", "nvidia-cc-manager", {"ccManager": {"enabled": True}}),
}
"""DaemonSet and container of each component, and what turns it on."""
IN_DRIVER = {"gds": "nvidia-fs-ctr", "gdrcopy": "nvidia-gdrcopy-ctr"}
"""Components that are containers of the driver."""


def merged(*specs: Obj) -> Obj:
    found: Obj = {}
    for spec in specs:
        for name, value in spec.items():
            both = isinstance(found.get(name), dict) and isinstance(value, dict)
            found[name] = {**found[name], **value} if both else value
    return found


def operand(component: str, **fields: Any) -> Built:
    """The policy with these fields of one component, whose image is named."""
    return Built(merged(SANDBOX, OPERANDS[component][2], {component: {**IMAGE, **fields}}))


def of(component: str, built: Built) -> Obj:
    return built.container(*OPERANDS[component][:2])


def _image_of(component: str, **fields: Any) -> str:
    return str(of(component, operand(component, **fields))["image"])


def _versions(component: str) -> list[str]:
    return [_image_of(component, **{**IMAGE, "version": one}) for one in ("v2", DIGEST)]


DIGEST = "sha256:" + "0" * 64
ENV = [{"name": "EXTRA", "value": "1"}, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "0"}]
LIMITS = {"limits": {"cpu": "500m"}}


def _pod_of(component: str, **fields: Any) -> Obj:
    return operand(component, **fields).pod(OPERANDS[component][0])


def _changed_env(component: str) -> list[str]:
    env = operand(component, env=ENV).env(*OPERANDS[component][:2])
    return [env["EXTRA"], env["NVIDIA_VISIBLE_DEVICES"]]


def _present(component: str) -> list[bool]:
    return [OPERANDS[component][0] in operand(component, enabled=on).daemon_sets for on in (True, False)]


def _tag(component: str) -> str:
    return "-ubuntu22.04" if component == "driver" else ""


COMMON: dict[str, tuple[Callable[[str], object], Callable[[str], object]]] = {
    "enabled": (_present, lambda _: [True, False]),
    "repository": (
        lambda c: _image_of(c, repository="reg.example/other"),
        lambda c: f"reg.example/other/one:v1{_tag(c)}",
    ),
    "image": (lambda c: _image_of(c, image="another"), lambda c: f"reg.example/team/another:v1{_tag(c)}"),
    "version": (_versions, lambda c: [f"reg.example/team/one:v2{_tag(c)}", f"reg.example/team/one@{DIGEST}"]),
    "imagePullPolicy": (
        lambda c: of(c, operand(c, imagePullPolicy="Always"))["imagePullPolicy"],
        lambda _: "Always",
    ),
    "imagePullSecrets": (
        lambda c: _pod_of(c, imagePullSecrets=["ngc"])["imagePullSecrets"],
        lambda _: [{"name": "ngc"}],
    ),
    "resources": (lambda c: of(c, operand(c, resources=LIMITS))["resources"], lambda _: LIMITS),
    "args": (lambda c: of(c, operand(c, args=["--one", "--two"]))["args"], lambda _: ["--one", "--two"]),
    "env": (_changed_env, lambda _: ["1", "0"]),
    "hostNetwork": (
        lambda c: [_pod_of(c, hostNetwork=True)[one] for one in ("hostNetwork", "dnsPolicy")],
        lambda _: [True, "ClusterFirstWithHostNet"],
    ),
}
"""What is looked at, and what is there, by field."""


@pytest.mark.parametrize("field", COMMON)
@pytest.mark.parametrize("component", OPERANDS)
def test_a_field_that_all_components_have(component: str, field: str) -> None:
    look, expected = COMMON[field]
    assert look(component) == expected(component)


OWN_IMAGE = ("devicePlugin", "gfd", "dcgmExporter", "migManager", "validator")


@pytest.mark.parametrize("component", OWN_IMAGE)
def test_a_component_without_a_repository_runs_shoals_image_and_keeps_its_command(component: str) -> None:
    container = of(component, Built({component: {"args": ["--more"], "imagePullPolicy": "Always"}}))
    assert (container["image"], container["imagePullPolicy"]) == ("registry.example/shoal:1.0", "Always")
    assert (container["args"][0], container["args"][-1]) == ("agent", "--more")
    assert "command" not in container


CASES: dict[str, tuple[Obj, Callable[[Built], object], object]] = {
    "operator.runtimeClass": (
        {"operator": {"runtimeClass": "gpu"}},
        lambda b: (b.get("RuntimeClass", "gpu")["handler"], b.pod(PLUGIN)["runtimeClassName"]),
        ("gpu", "gpu"),
    ),
    "operator.labels": (
        {"operator": {"labels": {"team": "ml"}}},
        lambda b: b.get("RuntimeClass", "nvidia")["metadata"]["labels"]["team"],
        "ml",
    ),
    "operator.annotations": (
        {"operator": {"annotations": {"team": "ml"}}},
        lambda b: b.get("RuntimeClass", "nvidia")["metadata"]["annotations"],
        {"team": "ml"},
    ),
    "daemonsets.labels": (
        {"daemonsets": {"labels": {"team": "ml"}}},
        lambda b: {b.get("DaemonSet", one)["spec"]["template"]["metadata"]["labels"]["team"] for one in b.daemon_sets},
        {"ml"},
    ),
    "daemonsets.annotations": (
        {"daemonsets": {"annotations": {"a": "b"}}},
        lambda b: b.get("DaemonSet", DRIVER)["spec"]["template"]["metadata"]["annotations"],
        {"a": "b"},
    ),
    "daemonsets.tolerations": (
        {"daemonsets": {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}},
        lambda b: b.pod(PLUGIN)["tolerations"],
        [{"key": "dedicated", "operator": "Exists"}],
    ),
    "daemonsets.priorityClassName": (
        {"daemonsets": {"priorityClassName": "high"}},
        lambda b: {b.pod(one)["priorityClassName"] for one in b.daemon_sets},
        {"high"},
    ),
    "daemonsets.updateStrategy": (
        {"daemonsets": {"updateStrategy": "OnDelete"}},
        lambda b: b.get("DaemonSet", PLUGIN)["spec"]["updateStrategy"],
        {"type": "OnDelete"},
    ),
    "daemonsets.rollingUpdate.maxUnavailable": (
        {"daemonsets": {"rollingUpdate": {"maxUnavailable": "20%"}}},
        lambda b: b.get("DaemonSet", PLUGIN)["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"],
        "20%",
    ),
    "driver.useNvidiaDriverCRD": (
        {"driver": {"useNvidiaDriverCRD": True}},
        lambda b: DRIVER in b.daemon_sets,
        False,
    ),
    "driver.usePrecompiled": (
        {"driver": {"usePrecompiled": True, "version": "580"}},
        lambda b: (
            b.container(PRECOMPILED)["image"],
            b.pod(PRECOMPILED)["nodeSelector"]["feature.node.kubernetes.io/kernel-version.full"],
        ),
        ("nvcr.io/nvidia/driver:580-5.15.0-105-generic-ubuntu22.04", "5.15.0-105-generic"),
    ),
    "driver.useOpenKernelModules": (
        {"driver": {"useOpenKernelModules": True}},
        lambda b: b.env(DRIVER)["KERNEL_MODULE_TYPE"],
        "open",
    ),
    "driver.kernelModuleType": (
        {"driver": {"kernelModuleType": "proprietary"}},
        lambda b: b.env(DRIVER)["KERNEL_MODULE_TYPE"],
        "proprietary",
    ),
    "driver.startupProbe": (
        {"driver": {"startupProbe": {"failureThreshold": 7}}},
        lambda b: (
            b.container(DRIVER)["startupProbe"]["failureThreshold"],
            b.container(DRIVER)["startupProbe"]["periodSeconds"],
        ),
        (7, 10),
    ),
    "driver.livenessProbe": (
        {"driver": {"livenessProbe": {"periodSeconds": 33}}},
        lambda b: (b.container(DRIVER)["livenessProbe"]["periodSeconds"], "readinessProbe" in b.container(DRIVER)),
        (33, False),
    ),
    "driver.readinessProbe": (
        {"driver": {"readinessProbe": {"timeoutSeconds": 9}}},
        lambda b: (b.container(DRIVER)["readinessProbe"]["timeoutSeconds"], "livenessProbe" in b.container(DRIVER)),
        (9, False),
    ),
    "driver.rdma.enabled": (
        {"driver": {"rdma": {"enabled": True}}},
        lambda b: b.container(DRIVER, "nvidia-peermem-ctr")["args"],
        ["reload_nvidia_peermem"],
    ),
    "driver.rdma.useHostMofed": (
        {"driver": {"rdma": {"enabled": True, "useHostMofed": True}}},
        lambda b: b.env(DRIVER)["USE_HOST_MOFED"],
        "true",
    ),
    "driver.upgradePolicy": (
        {"driver": {"upgradePolicy": {"drain": {"force": True, "timeoutSeconds": 5, "deleteEmptyDir": True}}}},
        lambda b: [
            b.env(DRIVER, "k8s-driver-manager")[one]
            for one in ("DRAIN_USE_FORCE", "DRAIN_TIMEOUT_SECONDS", "DRAIN_DELETE_EMPTYDIR_DATA")
        ],
        ["true", "5s", "true"],
    ),
    "driver.manager": (
        {
            "driver": {
                "manager": {
                    **IMAGE,
                    "imagePullPolicy": "Always",
                    "env": [{"name": "ENABLE_AUTO_DRAIN", "value": "true"}],
                }
            }
        },
        lambda b: (
            b.container(DRIVER, "k8s-driver-manager")["image"],
            b.container(DRIVER, "k8s-driver-manager")["imagePullPolicy"],
            b.env(DRIVER, "k8s-driver-manager")["ENABLE_AUTO_DRAIN"],
        ),
        ("reg.example/team/one:v1", "Always", "true"),
    ),
    "driver.repoConfig.configMapName": (
        {"driver": {"repoConfig": {"configMapName": "repos"}}},
        lambda b: mount(b, DRIVER, "/etc/apt/sources.list.d/nvidia.list"),
        "nvidia.list",
    ),
    "driver.certConfig.name": (
        {"driver": {"certConfig": {"name": "certs"}}},
        lambda b: mount(b, DRIVER, "/usr/local/share/ca-certificates/ca.crt"),
        "ca.crt",
    ),
    "driver.licensingConfig.secretName": (
        {"driver": {"licensingConfig": {"secretName": "license"}}},
        lambda b: mount(b, DRIVER, "/drivers/gridd.conf"),
        "gridd.conf",
    ),
    "driver.licensingConfig.nlsEnabled": (
        {"driver": {"licensingConfig": {"secretName": "license", "nlsEnabled": False}}},
        lambda b: mount(b, DRIVER, "/drivers/ClientConfigToken/client_configuration_token.tok"),
        None,
    ),
    "driver.virtualTopology.config": (
        {"driver": {"virtualTopology": {"config": "topology"}}},
        lambda b: mount(b, DRIVER, "/etc/nvidia/nvidia-topologyd.conf"),
        "nvidia-topologyd.conf",
    ),
    "driver.kernelModuleConfig.name": (
        {"driver": {"kernelModuleConfig": {"name": "modules"}}},
        lambda b: (mount(b, DRIVER, "/drivers/nvidia.conf"), mount(b, DRIVER, "/drivers/nvidia-uvm.conf")),
        ("nvidia.conf", "nvidia-uvm.conf"),
    ),
    "driver.secretEnv": (
        {"driver": {"secretEnv": "proxy"}},
        lambda b: b.container(DRIVER)["envFrom"],
        [{"secretRef": {"name": "proxy"}}],
    ),
    "toolkit.installDir": (
        {"toolkit": {"installDir": "/opt/nvidia"}},
        lambda b: (b.env(TOOLKIT)["ROOT"], mount(b, TOOLKIT, "/opt/nvidia")),
        ("/opt/nvidia", ""),
    ),
    "devicePlugin.config.name": (
        {"devicePlugin": {"config": {"name": "sharing"}}},
        lambda b: (b.env(PLUGIN)["CONFIG_FILE"], b.env(FEATURES)["CONFIG_FILE"], config_map(b, PLUGIN)),
        ("/available-configs", "/available-configs", "sharing"),
    ),
    "devicePlugin.config.default": (
        {"devicePlugin": {"config": {"name": "sharing", "default": "any"}}},
        lambda b: (b.env(PLUGIN)["DEFAULT_CONFIG"], b.env(FEATURES)["DEFAULT_CONFIG"]),
        ("any", "any"),
    ),
    "devicePlugin.mps.root": (
        {"devicePlugin": {"mps": {"root": "/var/mps"}}},
        lambda b: (b.env(PLUGIN)["MPS_ROOT"], mount(b, PLUGIN, "/var/mps")),
        ("/var/mps", ""),
    ),
    "dcgmExporter.config.name": (
        {"dcgmExporter": {"config": {"name": "metrics"}}},
        lambda b: (config_map(b, EXPORTER), b.env(EXPORTER)["DCGM_EXPORTER_COLLECTORS"]),
        ("metrics", "/etc/dcgm-exporter/dcgm-metrics.csv"),
    ),
    "dcgmExporter.serviceMonitor.enabled": (
        {"dcgmExporter": {"serviceMonitor": {"enabled": True}}},
        lambda b: b.get("ServiceMonitor", EXPORTER)["spec"]["endpoints"][0]["interval"],
        "15s",
    ),
    "dcgmExporter.serviceMonitor.interval": (
        {"dcgmExporter": {"serviceMonitor": {"enabled": True, "interval": "30s"}}},
        lambda b: b.get("ServiceMonitor", EXPORTER)["spec"]["endpoints"][0]["interval"],
        "30s",
    ),
    "dcgmExporter.serviceMonitor.scrapeTimeout": (
        {"dcgmExporter": {"serviceMonitor": {"enabled": True, "scrapeTimeout": "9s"}}},
        lambda b: b.get("ServiceMonitor", EXPORTER)["spec"]["endpoints"][0]["scrapeTimeout"],
        "9s",
    ),
    "dcgmExporter.serviceMonitor.honorLabels": (
        {"dcgmExporter": {"serviceMonitor": {"enabled": True, "honorLabels": True}}},
        lambda b: b.get("ServiceMonitor", EXPORTER)["spec"]["endpoints"][0]["honorLabels"],
        True,
    ),
    "dcgmExporter.serviceMonitor.additionalLabels": (
        {"dcgmExporter": {"serviceMonitor": {"enabled": True, "additionalLabels": {"release": "prom"}}}},
        lambda b: b.get("ServiceMonitor", EXPORTER)["metadata"]["labels"]["release"],
        "prom",
    ),
    "dcgmExporter.serviceMonitor.relabelings": (
        {"dcgmExporter": {"serviceMonitor": {"enabled": True, "relabelings": [{"action": "labeldrop"}]}}},
        lambda b: b.get("ServiceMonitor", EXPORTER)["spec"]["endpoints"][0]["relabelings"],
        [{"action": "labeldrop"}],
    ),
    "dcgmExporter.service.type": (
        {"dcgmExporter": {"service": {"type": "NodePort"}}},
        lambda b: b.get("Service", EXPORTER)["spec"]["type"],
        "NodePort",
    ),
    "dcgmExporter.service.internalTrafficPolicy": (
        {"dcgmExporter": {"service": {"internalTrafficPolicy": "Local"}}},
        lambda b: b.get("Service", EXPORTER)["spec"]["internalTrafficPolicy"],
        "Local",
    ),
    "dcgmExporter.hostPID": ({"dcgmExporter": {"hostPID": True}}, lambda b: b.pod(EXPORTER)["hostPID"], True),
    "dcgmExporter.hpcJobMapping.enabled": (
        {"dcgmExporter": {"hpcJobMapping": {"enabled": True}}},
        lambda b: b.env(EXPORTER)["DCGM_HPC_JOB_MAPPING_DIR"],
        "/var/lib/dcgm-exporter/job-mapping",
    ),
    "dcgmExporter.hpcJobMapping.directory": (
        {"dcgmExporter": {"hpcJobMapping": {"enabled": True, "directory": "/jobs"}}},
        lambda b: (b.env(EXPORTER)["DCGM_HPC_JOB_MAPPING_DIR"], mount(b, EXPORTER, "/jobs")),
        ("/jobs", ""),
    ),
    "dcgmExporter.enablePodLabels": (
        {"dcgmExporter": {"enablePodLabels": True}},
        lambda b: (
            b.env(EXPORTER)["DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS"],
            b.get("ClusterRole", EXPORTER)["rules"][0]["resources"],
        ),
        ("true", ["pods"]),
    ),
    "dcgmExporter.enablePodUID": (
        {"dcgmExporter": {"enablePodUID": True}},
        lambda b: b.env(EXPORTER)["DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID"],
        "true",
    ),
    "dcgmExporter.podLabelAllowlistRegex": (
        {"dcgmExporter": {"podLabelAllowlistRegex": ["^app$", "^team$"]}},
        lambda b: b.env(EXPORTER)["DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX"],
        "^app$,^team$",
    ),
    "mig.strategy": (
        {"mig": {"strategy": "mixed"}},
        lambda b: (b.env(PLUGIN)["MIG_STRATEGY"], b.env(FEATURES)["MIG_STRATEGY"]),
        ("mixed", "mixed"),
    ),
    "migManager.config.name": (
        {"migManager": {"config": {"name": "layouts"}}},
        lambda b: (config_map(b, MIG), b.env(MIG)["CONFIG_FILE"]),
        ("layouts", "/mig-parted-config/config.yaml"),
    ),
    "migManager.gpuClientsConfig.name": (
        {"migManager": {**IMAGE, "gpuClientsConfig": {"name": "clients"}}},
        lambda b: config_map(b, MIG),
        "clients",
    ),
    "psa.enabled": (
        {"psa": {"enabled": True}},
        lambda b: b.get("Namespace", "gpu-operator")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"],
        "privileged",
    ),
    "validator.plugin.env": (
        {"validator": {"plugin": {"env": [{"name": "WITH_WORKLOAD", "value": "true"}]}}},
        lambda b: b.env(VALIDATOR, "plugin-validation")["WITH_WORKLOAD"],
        "true",
    ),
    "validator.toolkit.env": (
        {"validator": {"toolkit": {"env": [{"name": "A", "value": "1"}]}}},
        lambda b: b.env(VALIDATOR, "toolkit-validation")["A"],
        "1",
    ),
    "validator.driver.env": (
        {"validator": {"driver": {"env": [{"name": "A", "value": "1"}]}}},
        lambda b: (b.env(VALIDATOR, "driver-validation")["A"], b.env(TOOLKIT, "driver-validation")["A"]),
        ("1", "1"),
    ),
    "validator.cuda.env": (
        {"validator": {"cuda": {"env": [{"name": "A", "value": "1"}]}}},
        lambda b: b.env(VALIDATOR, "cuda-validation")["A"],
        "1",
    ),
    "validator.vfioPCI.env": (
        merged(SANDBOX, {"validator": {"vfioPCI": {"env": [{"name": "A", "value": "1"}]}}}),
        lambda b: b.env("nvidia-sandbox-validator", "vfio-pci-validation")["A"],
        "1",
    ),
    "validator.vgpuManager.env": (
        merged(SANDBOX, {"validator": {"vgpuManager": {"env": [{"name": "A", "value": "1"}]}}}),
        lambda b: b.env("nvidia-sandbox-validator", "vgpu-manager-validation")["A"],
        "1",
    ),
    "validator.vgpuDevices.env": (
        merged(SANDBOX, {"validator": {"vgpuDevices": {"env": [{"name": "A", "value": "1"}]}}}),
        lambda b: b.env("nvidia-sandbox-validator", "vgpu-devices-validation")["A"],
        "1",
    ),
    "validator.ccManager.env": (
        merged(SANDBOX, {"validator": {"ccManager": {"env": [{"name": "A", "value": "1"}]}}}),
        lambda b: b.env("nvidia-sandbox-validator", "cc-manager-validation")["A"],
        "1",
    ),
    "sandboxWorkloads.enabled": (SANDBOX, lambda b: "nvidia-vfio-manager" in b.daemon_sets, True),
    "sandboxWorkloads.mode": (
        {**KATA, "kataSandboxDevicePlugin": IMAGE},
        lambda b: [one for one in b.daemon_sets if "sandbox-device-plugin" in one],
        ["nvidia-kata-sandbox-device-plugin-daemonset"],
    ),
    "vfioManager.driverManager": (
        merged(SANDBOX, {"vfioManager": {"driverManager": IMAGE}}),
        lambda b: b.container("nvidia-vfio-manager", "k8s-driver-manager")["image"],
        "reg.example/team/one:v1",
    ),
    "vgpuManager.driverManager": (
        merged(SANDBOX, {"vgpuManager": {**IMAGE, "enabled": True, "driverManager": {**IMAGE, "version": "v3"}}}),
        lambda b: b.container("nvidia-vgpu-manager-daemonset", "k8s-driver-manager")["image"],
        "reg.example/team/one:v3",
    ),
    "vgpuManager.kernelModuleConfig.name": (
        merged(SANDBOX, {"vgpuManager": {**IMAGE, "enabled": True, "kernelModuleConfig": {"name": "modules"}}}),
        lambda b: config_map(b, "nvidia-vgpu-manager-daemonset"),
        "modules",
    ),
    "vgpuDeviceManager.config.name": (
        merged(SANDBOX, {"vgpuDeviceManager": {"config": {"name": "vgpus"}}}),
        lambda b: config_map(b, "nvidia-vgpu-device-manager"),
        "vgpus",
    ),
    "vgpuDeviceManager.config.default": (
        merged(SANDBOX, {"vgpuDeviceManager": {"config": {"default": "all"}}}),
        lambda b: b.env("nvidia-vgpu-device-manager")["DEFAULT_VGPU_CONFIG"],
        "all",
    ),
    "cdi.enabled": (
        {"cdi": {"enabled": False}},
        lambda b: (b.env(PLUGIN)["DEVICE_LIST_STRATEGY"], "CDI_ENABLED" in b.env(TOOLKIT)),
        ("envvar", False),
    ),
    "cdi.nriPluginEnabled": (
        {"cdi": {"nriPluginEnabled": True}},
        lambda b: b.env(TOOLKIT)["ENABLE_NRI_PLUGIN"],
        "true",
    ),
    "kataManager.config": (
        merged(SANDBOX, {"kataManager": {"enabled": True, "config": {"artifactsDir": "/opt"}}}),
        lambda b: b.env("nvidia-kata-manager")["KATA_CONFIG"],
        '{"artifactsDir":"/opt"}',
    ),
    "ccManager.defaultMode": (
        merged(SANDBOX, {"ccManager": {"enabled": True, "defaultMode": "devtools"}}),
        lambda b: b.env("nvidia-cc-manager")["DEFAULT_CC_MODE"],
        "devtools",
    ),
    "hostPaths.rootFS": (
        {"hostPaths": {"rootFS": "/sysroot"}},
        lambda b: volume(b, TOOLKIT, "host-root"),
        "/sysroot",
    ),
    "hostPaths.driverInstallDir": (
        {"hostPaths": {"driverInstallDir": "/opt/driver"}},
        lambda b: volume(b, TOOLKIT, "driver-install-dir"),
        "/opt/driver",
    ),
    "hostPaths.kubeletRootDir": (
        {"hostPaths": {"kubeletRootDir": "/data/kubelet"}},
        lambda b: volume(b, PLUGIN, "device-plugins"),
        "/data/kubelet/device-plugins",
    ),
    "gds.enabled": (
        {"gds": {"enabled": True}},
        lambda b: b.container(DRIVER, "nvidia-fs-ctr")["image"],
        "nvcr.io/nvidia/cloud-native/nvidia-fs:2.26.6-ubuntu22.04",
    ),
    "gdrcopy.enabled": (
        {"gdrcopy": {"enabled": True}},
        lambda b: b.container(DRIVER, "nvidia-gdrcopy-ctr")["image"],
        "nvcr.io/nvidia/cloud-native/gdrdrv:v2.5.1-ubuntu22.04",
    ),
}
"""By the path of the field: a policy, what is looked at, and what is there."""


def mount(built: Built, name: str, path: str) -> str | None:
    """The sub-path of a mount; None without such a mount."""
    found = [one for one in built.container(name)["volumeMounts"] if one["mountPath"] == path]
    return str(found[0].get("subPath", "")) if found else None


def volume(built: Built, name: str, volume_name: str) -> str:
    return next(str(one["hostPath"]["path"]) for one in built.pod(name)["volumes"] if one["name"] == volume_name)


def config_map(built: Built, name: str) -> str:
    return next(str(one["configMap"]["name"]) for one in built.pod(name)["volumes"] if "configMap" in one)


@pytest.mark.parametrize("path", CASES)
def test_the_effect_of(path: str) -> None:
    spec, look, expected = CASES[path]
    assert look(Built(spec)) == expected


ELSEWHERE = {
    "operator.defaultRuntime": "test_the_default_runtime_applies_where_no_node_names_its_own",
    "dcgm.enabled": "COMMON",
    "migManager.config.default": "tests of the labels of nodes",
    "sandboxWorkloads.defaultWorkload": "tests of the labels of nodes",
    "driver.upgradePolicy": "tests of driver upgrades",
}
"""Fields whose effect is tested in another place."""


def leaves(type_: type[msgspec.Struct], path: str = "") -> Iterator[tuple[str, type[msgspec.Struct]]]:
    hints = get_type_hints(type_)
    for field in msgspec.structs.fields(type_):
        name, nested = f"{path}{field.encode_name}", hints[field.name]
        if isinstance(nested, type) and issubclass(nested, msgspec.Struct):
            yield from leaves(nested, f"{name}.")
        else:
            yield name, type_


def is_tested(path: str) -> bool:
    component, _, field = path.partition(".")
    if component in OPERANDS and field in COMMON:
        return True
    if component in IN_DRIVER and field in {one.encode_name for one in msgspec.structs.fields(Operand)}:
        return True
    known = {*CASES, *ELSEWHERE, *(one.removeprefix("spec.") for one in _WITHOUT_EFFECT)}
    return any(path == one or path.startswith(f"{one}.") for one in known)


def test_every_field_is_tested_or_has_no_effect() -> None:
    assert [path for path, _ in leaves(ClusterPolicySpec) if not is_tested(path)] == []


@pytest.mark.parametrize("component", IN_DRIVER)
def test_a_module_beside_the_driver_has_the_fields_of_a_component(component: str) -> None:
    fields = {
        **IMAGE,
        "enabled": True,
        "imagePullPolicy": "Always",
        "args": ["run"],
        "resources": {"limits": {"cpu": "1"}},
    }
    env = [{"name": "A", "value": "1"}]
    pod = {"imagePullSecrets": ["ngc"], "hostNetwork": True}
    built = Built({component: {**fields, "env": env, **pod}})
    container = built.container(DRIVER, IN_DRIVER[component])
    assert container["image"] == "reg.example/team/one:v1-ubuntu22.04"
    assert (container["imagePullPolicy"], container["args"]) == ("Always", ["run"])
    assert container["resources"] == {"limits": {"cpu": "1"}}
    assert built.env(DRIVER, IN_DRIVER[component])["A"] == "1"
    assert (built.pod(DRIVER)["imagePullSecrets"], built.pod(DRIVER)["hostNetwork"]) == ([{"name": "ngc"}], True)
    assert IN_DRIVER[component] not in [one["name"] for one in Built({}).pod(DRIVER)["containers"]]


def test_the_default_runtime_applies_where_no_node_names_its_own() -> None:
    spec = {"operator": {"defaultRuntime": "crio"}}
    assert Built(spec, fleet_facts([gpu_node(runtime="")])).env(TOOLKIT)["RUNTIME"] == "crio"
    assert Built(spec, FACTS).env(TOOLKIT)["RUNTIME"] == "containerd"
    assert Built({}, fleet_facts([gpu_node(runtime="cri-o://1.33")])).env(TOOLKIT)["RUNTIME"] == "crio"


def test_image_fields_are_those_of_a_component() -> None:
    """The table of common fields is complete."""
    assert {one.encode_name for one in msgspec.structs.fields(Operand)} == set(COMMON)
    assert {one.encode_name for one in msgspec.structs.fields(ImageFields)} <= set(COMMON)
