"""What is wrong with a node and its GPU stack: each cause alone, and two at once."""

from __future__ import annotations

from typing import Any

import pytest

from build.diagnosed_clusters import causes, diagnosed, event, gpu_node, operand, running, waiting
from build.manifests import Object, node, thing

PLUGIN, DRIVER = "nvidia-device-plugin-daemonset", "nvidia-driver-daemonset"
NO_DRIVER = "Failed to initialize NVML: could not load NVML library."


def plugin_set(**spec: object) -> Object:
    made = thing("apps/v1", "DaemonSet", f"gpu-operator/{PLUGIN}", spec={"template": {"spec": spec}})
    made["metadata"]["labels"] = {"app": PLUGIN}
    return made


def on_silent_node(*objects: Object, **more: Any) -> list[str]:
    return causes("node", "gpu-1", gpu_node(gpus=0, **more), *objects)


def test_a_missing_driver_and_a_wrong_configuration_of_the_plugin_are_told_apart() -> None:
    assert on_silent_node(operand(PLUGIN, waits="CrashLoopBackOff", last=NO_DRIVER)) == ["DriverNotFound"]
    wrong = operand(PLUGIN, waits="CrashLoopBackOff", last="unable to load config: unknown field timeSlicin")
    assert on_silent_node(wrong) == ["PluginConfigInvalid"]


def test_a_plugin_that_is_not_ready_without_a_driver_lacks_the_driver() -> None:
    waits = operand(PLUGIN)
    waits["status"]["containerStatuses"][0]["ready"] = False
    assert on_silent_node(waits) == ["DriverMissing"]
    assert on_silent_node(waits, operand(DRIVER)) == ["PluginNotReady"]
    assert on_silent_node(waits, labels={"nvidia.com/cuda.driver-version.full": "570.86"}) == ["PluginNotReady"]


def test_the_check_stops_at_the_first_broken_layer() -> None:
    driver = operand(DRIVER, waits="CrashLoopBackOff", last="modprobe: FATAL: Module nvidia not found")
    assert on_silent_node(driver, operand(PLUGIN, waits="CrashLoopBackOff", last=NO_DRIVER)) == ["DriverNotReady"]


def test_a_plugin_that_runs_and_reports_nothing_is_a_cause() -> None:
    found = diagnosed("node", "gpu-1", gpu_node(gpus=0), operand(DRIVER), operand(PLUGIN))
    assert [cause.id for cause in found.causes] == ["PluginReportsNoGpus"]
    assert "the pod of the driver is ready" in [each.what for each in found.ruled_out]


NETWORK = thing("apps/v1", "DaemonSet", "kube-system/network", spec={})


@pytest.mark.parametrize(
    ("sets", "more", "identifier"),
    [
        ([NETWORK], {}, "PluginNotInstalled"),
        ([plugin_set()], {"spec": {"taints": [{"key": "training", "effect": "NoSchedule"}]}}, "TaintKeepsPluginOff"),
        ([plugin_set(nodeSelector={"gpu": "yes"})], {}, "PluginSelectorMissesNode"),
        ([plugin_set()], {}, "PluginPodMissing"),
        ([], {"labels": {"nvidia.com/gpu.deploy.device-plugin": "paused-for-mig-change"}}, "PluginPaused"),
    ],
)
def test_a_plugin_that_is_not_on_the_node_has_one_cause(
    sets: list[Object], more: dict[str, Any], identifier: str
) -> None:
    assert on_silent_node(running("elsewhere", 0, on="other"), *sets, **more) == [identifier]


def test_a_machine_type_with_gpus_shows_that_the_gpu_stack_is_missing() -> None:
    bare = node("gpu-1", labels={"node.kubernetes.io/instance-type": "p5.48xlarge"})
    assert causes("node", "gpu-1", bare, NETWORK, running("other", 0)) == ["PluginNotInstalled"]
    found = causes("pod", "team/train", waiting(), bare, NETWORK)
    assert found == ["GpusNotAdvertised", "PluginNotInstalled"]
    other = node("gpu-1", labels={"node.kubernetes.io/instance-type": "m5.large"})
    assert causes("pod", "team/train", waiting(), other, NETWORK) == ["NoGpuNodes"]


def test_devices_without_one_that_is_allocatable_are_unhealthy() -> None:
    sick = gpu_node(gpus=0)
    sick["status"]["capacity"] = {"nvidia.com/gpu": "8"}
    assert causes("node", "gpu-1", sick, operand(PLUGIN)) == ["AllGpusUnhealthy"]


def test_pods_that_are_not_known_leave_the_stack_unchecked() -> None:
    found = diagnosed("node", "gpu-1", gpu_node())
    assert found.causes == ()
    assert "the pods of the GPU stack" in [each.check for each in found.not_run]


# -- MIG -------------------------------------------------------------------------------------------------------


def mig_node(state: str = "failed", layout: str = "all-1g.10gb", **labels: str) -> Object:
    marks = {"nvidia.com/mig.config": layout, "nvidia.com/mig.config.state": state}
    return gpu_node(labels={key: value for key, value in {**marks, **labels}.items() if value})


MANAGER = operand("nvidia-mig-manager")
MIG_FILE = "version: v1\nmig-configs:\n  all-disabled:\n  - {devices: all, mig-enabled: false}\n"
LAYOUTS = thing("v1", "ConfigMap", "gpu-operator/mig", data={"config.yaml": MIG_FILE})


def test_a_pod_that_holds_a_gpu_is_named_where_a_mig_layout_fails() -> None:
    (cause,) = diagnosed("node", "gpu-1", mig_node(), MANAGER, running("notebook", 1)).causes
    assert cause.id == "MigGpuInUse"
    assert "clients: pod team/notebook" in cause.evidence
    assert cause.commands[0].startswith("kubectl drain gpu-1")


@pytest.mark.parametrize(
    ("node", "objects", "identifier"),
    [
        (mig_node(layout="custom"), [MANAGER, LAYOUTS], "UnknownMigLayout"),
        (mig_node(**{"nvidia.com/mig.capable": "false"}), [MANAGER], "MigNotSupported"),
        (mig_node(state=""), [operand("other")], "MigManagerMissing"),
        (mig_node(), [MANAGER], "MigChangeFailed"),
    ],
)
def test_a_mig_layout_is_not_applied_for_one_cause(node: Object, objects: list[Object], identifier: str) -> None:
    assert causes("node", "gpu-1", node, *objects) == [identifier]


def test_a_mig_layout_that_is_applied_is_ruled_out_and_one_in_progress_is_not() -> None:
    assert causes("node", "gpu-1", mig_node(state="success"), MANAGER) == []
    found = diagnosed("node", "gpu-1", mig_node(state="pending"), MANAGER)
    assert found.causes == ()
    assert any("in progress" in each.why for each in found.not_run)


# -- sharing ---------------------------------------------------------------------------------------------------

SHARING = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n"
WITHOUT_RESOURCES = "version: v1\nsharing:\n  timeSlicing: {}\n"


def configs(**data: str) -> Object:
    return thing("v1", "ConfigMap", "gpu-operator/sharing", data=data or {"any": SHARING})


def policy(**config: str) -> Object:
    return thing("nvidia.com/v1", "ClusterPolicy", "cluster-policy", spec={"devicePlugin": {"config": config}})


def counted(gpus: int = 2, config: str = "") -> Object:
    label = {"nvidia.com/device-plugin.config": config} if config else {}
    return gpu_node(gpus=gpus, labels={"nvidia.com/gpu.count": "2", **label})


@pytest.mark.parametrize(
    ("objects", "identifier"),
    [
        ([counted(), configs(), policy()], "PluginConfigNotNamed"),
        ([counted(), configs(), policy(name="sharing")], "NoPluginConfigSelected"),
        (
            [counted(config="tesla-t4"), configs(), policy(name="sharing")],
            "UnknownPluginConfig",
        ),
        ([counted(), configs(), policy(name="sharing", default="any")], "PluginNotRestarted"),
        (
            [
                counted(),
                configs(any=WITHOUT_RESOURCES),
                policy(name="sharing", default="any"),
            ],
            "PluginConfigInvalid",
        ),
    ],
)
def test_the_number_of_shared_gpus_is_unchanged_for_one_cause(objects: list[Object], identifier: str) -> None:
    assert causes("node", "gpu-1", *objects) == [identifier]


def test_a_shared_count_as_configured_is_ruled_out() -> None:
    found = diagnosed("node", "gpu-1", counted(gpus=8), configs(), policy(name="sharing", default="any"))
    assert found.causes == ()
    assert any("8 nvidia.com/gpu, as the configuration any says" in each.what for each in found.ruled_out)


# -- errors and losses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "is_tainted"), [(48, True), (63, True), (64, True), (79, True), (31, False)])
def test_an_xid_names_its_meaning_and_hardware_errors_a_taint(number: int, is_tainted: bool) -> None:
    node = gpu_node()
    said = event(node, "GPUUnhealthy", f"GPU 3 (GPU-abc): Xid {number}: something; act")
    (cause,) = diagnosed("node", "gpu-1", node, said, running("train")).causes
    assert cause.id == f"Xid{number}"
    assert ("kubectl taint node gpu-1 gpu-health=failed:NoSchedule" in cause.commands) is is_tainted
    assert "pods with GPUs on the node: pod team/train" in cause.evidence


def healthy(since: str) -> Object:
    node = gpu_node()
    node["status"]["conditions"].append({"type": "GPUHealthy", "status": "True", "lastTransitionTime": since})
    return node


@pytest.mark.parametrize(("since", "identifiers"), [("2026-01-01T12:00:00Z", []), ("2026-01-01T10:00:00Z", ["Xid79"])])
def test_an_error_is_over_once_the_node_says_later_that_its_gpus_are_healthy(
    since: str, identifiers: list[str]
) -> None:
    node = healthy(since)
    said = event(node, "XidError", "NVRM: Xid (PCI:0000:53:00): 79, GPU has fallen off the bus")
    said["lastTimestamp"] = "2026-01-01T11:00:00Z"
    assert causes("node", "gpu-1", node, said) == identifiers


def test_events_about_an_earlier_object_of_the_same_name_are_not_evidence() -> None:
    node = gpu_node()
    node["metadata"]["uid"] = "2"
    said = event(node, "GPUUnhealthy", "GPU 3 (GPU-abc): Xid 79: fallen off the bus")
    said["involvedObject"]["uid"] = "1"
    assert causes("node", "gpu-1", node, said) == []
    said["involvedObject"]["uid"] = "gpu-1"
    assert causes("node", "gpu-1", node, said) == ["Xid79"]


def test_the_layout_of_a_node_whose_manager_does_not_run_is_neither_applied_nor_not() -> None:
    starting = operand("nvidia-mig-manager", waits="PodInitializing")
    found = diagnosed("node", "gpu-1", mig_node(state="success"), starting)
    assert not [each for each in found.ruled_out if "MIG layout" in each.what]
    assert "whether the MIG layout all-1g.10gb is applied" in [each.check for each in found.not_run]


def test_the_software_of_a_node_that_does_not_report_is_not_judged() -> None:
    node = gpu_node(gpus=0)
    node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    found = diagnosed("node", "gpu-1", node, operand(PLUGIN, waits="CrashLoopBackOff", last=NO_DRIVER))
    assert [cause.id for cause in found.causes] == ["NodeNotReady"]
    assert "its GPU software" in [each.check for each in found.not_run]


def test_a_gpu_is_found_by_its_uuid() -> None:
    node = gpu_node()
    said = event(node, "GPUUnhealthy", "GPU 3 (GPU-abc): Xid 79: fallen off the bus")
    assert causes("gpu", "GPU-abc", node, said) == ["Xid79"]
    assert causes("gpu", "GPU-other", node, said) == []


def test_without_events_xids_are_not_ruled_out() -> None:
    found = diagnosed("node", "gpu-1", gpu_node(), running("a"))
    assert "Xid errors" in [each.check for each in found.not_run]


def test_a_lost_node_tells_what_becomes_of_its_pods() -> None:
    node = gpu_node()
    node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]
    alone = running("alone", 1)
    owned = running("owned", 1, meta={"ownerReferences": [{"kind": "Job", "name": "train", "controller": True}]})
    (cause,) = diagnosed("node", "gpu-1", node, alone, owned).causes
    assert cause.id == "NodeNotReady"
    assert "pod team/alone runs there: no controller replaces it" in cause.evidence
    assert any("no volume that outlives it" in text for text in cause.evidence)


def test_a_lost_node_and_a_failed_mig_layout_are_two_causes() -> None:
    node = mig_node()
    node["status"]["conditions"] = [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]
    assert causes("node", "gpu-1", node, MANAGER) == ["NodeNotReady", "MigChangeFailed"]


# -- use -------------------------------------------------------------------------------------------------------


def metrics(util: float, used: float = 60_000, free: float = 20_000, power: float = 300, **more: float) -> str:
    values = {"GPU_UTIL": util, "FB_USED": used, "FB_FREE": free, "POWER_USAGE": power, "POWER_MGMT_LIMIT": 700, **more}
    labels = 'gpu="0",UUID="GPU-abc",Hostname="gpu-1",exported_pod="train",exported_namespace="team"'
    return "".join(f"DCGM_FI_DEV_{name}{{{labels}}} {value}\n" for name, value in values.items())


@pytest.mark.parametrize(
    ("text", "identifiers"),
    [
        (metrics(95), []),
        (metrics(0), ["IdleGpu"]),
        (metrics(20), ["CpuBottleneck"]),
        (metrics(40, used=2_000, free=78_000), ["OversizedGpu"]),
        (metrics(10, power=690), ["StuckProcess"]),
        (metrics(95, CLOCKS_EVENT_REASONS=0x40, GPU_TEMP=88), ["ThermalThrottling"]),
        (metrics(20, CLOCKS_EVENT_REASONS=0x20, GPU_TEMP=88), ["ThermalThrottling", "CpuBottleneck"]),
    ],
)
def test_a_gpu_that_is_used_little_has_a_cause(text: str, identifiers: list[str]) -> None:
    assert causes("gpu", "GPU-abc", gpu_node(), metrics=text) == identifiers
