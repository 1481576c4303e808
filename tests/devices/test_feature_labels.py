"""The labels of feature discovery follow from what a driver reports."""

from __future__ import annotations

import msgspec
import pytest

from shoal.devices.feature_labels import FeatureError, LabelInput, VgpuHost, feature_labels
from shoal.devices.operator_labels import operator_labels
from shoal.devices.plugin_config import PluginConfig
from shoal.devices.port import DriverVersions, Fabric, InstalledGpu, MigAttributes, MigInstance
from shoal.devices.product_names import sanitised

GPU = InstalledGpu(
    0,
    "GPU-0",
    "NVIDIA A100-SXM4-80GB",
    "",
    memory_mib=81_920,
    compute_capability="8.0",
    is_mig=False,
    pci_class=0x030200,
)
ATTRIBUTES = MigAttributes(14, 1, 1, 1, 0, 0, 0, 0)
SHARED = PluginConfig(sharing="time-slicing", replicas=(("nvidia.com/gpu", 4), ("nvidia.com/mig-1g.10gb", 2)))


def scene(*gpus: InstalledGpu, config: PluginConfig = PluginConfig(), driver: str = "580.95.05") -> LabelInput:  # noqa: B008
    return LabelInput(DriverVersions(driver, "13.0"), gpus or (GPU,), config, "DGX A100\n")


def cut(*profiles: str, index: int = 0) -> InstalledGpu:
    instances = tuple(
        MigInstance(f"MIG-{index}-{n}", name, n, None, None, 9856, attributes=ATTRIBUTES)
        for n, name in enumerate(profiles)
    )
    return msgspec.structs.replace(GPU, index=index, is_mig=True, instances=instances)


def labels(given: LabelInput, prefix: str = "") -> dict[str, str]:
    found = {name.removeprefix("nvidia.com/"): value for name, value in feature_labels(given).items()}
    return {name: value for name, value in found.items() if name.startswith(prefix)}


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3"),
        ("  two   words ", "two-words"),
        ("Quadro (RTX) 6000/8000", "Quadro-RTX-60008000"),
        ("a\tb\n", "ab"),
        ("under_score.dot-dash", "under_score.dot-dash"),
        ("", ""),
    ],
)
def test_names_become_label_values(text: str, label: str) -> None:
    assert sanitised(text) == label


@pytest.mark.parametrize(
    ("capability", "family"),
    [
        ("1.3", "tesla"),
        ("3.7", "kepler"),
        ("5.2", "maxwell"),
        ("6.1", "pascal"),
        ("7.0", "volta"),
        ("7.2", "volta"),
        ("7.5", "turing"),
        ("8.0", "ampere"),
        ("8.7", "ampere"),
        ("8.9", "ada-lovelace"),
        ("9.0", "hopper"),
        ("10.3", "blackwell"),
        ("12.0", "blackwell"),
        ("13.0", "rubin"),
        ("4.0", "undefined"),
        ("11.0", "undefined"),
    ],
)
def test_the_family_follows_from_the_compute_capability(capability: str, family: str) -> None:
    gpu = msgspec.structs.replace(GPU, compute_capability=capability)
    assert labels(scene(gpu))["gpu.family"] == family


@pytest.mark.parametrize(("driver", "parts"), [("580.95.05", ("580", "95", "05")), ("400.300", ("400", "300", ""))])
def test_the_driver_version_is_divided_at_its_dots(driver: str, parts: tuple[str, str, str]) -> None:
    found = labels(scene(driver=driver))
    assert tuple(found[f"cuda.driver-version.{name}"] for name in ("major", "minor", "revision")) == parts
    assert tuple(found[f"cuda.driver.{name}"] for name in ("major", "minor", "rev")) == parts


@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        (scene(driver="580"), "driver-version"),
        (scene(driver="1.2.3.4"), "driver-version"),
        (scene(cut("1g.10gb"), config=PluginConfig(sharing="mps")), "mps-with-mig"),
        (scene(config=msgspec.structs.replace(PluginConfig(), mig_strategy="both")), "unknown-strategy"),
    ],
)
def test_labels_that_cannot_be_true_are_refused(given: LabelInput, refusal: str) -> None:
    with pytest.raises(FeatureError) as raised:
        feature_labels(given)
    assert raised.value.refusal == refusal


def test_without_gpus_only_virtual_gpus_and_the_time_are_labelled() -> None:
    empty = LabelInput(DriverVersions("580", None), (), PluginConfig(), timestamp_s=7)
    assert feature_labels(empty) == {"nvidia.com/gfd.timestamp": "7", "nvidia.com/vgpu.present": "false"}


@pytest.mark.parametrize("capability", [None, "0.0"])
def test_an_unknown_compute_capability_has_no_labels(capability: str | None) -> None:
    found = labels(scene(msgspec.structs.replace(GPU, compute_capability=capability)))
    assert not {"gpu.family", "gpu.compute.major", "gpu.compute.minor"} & {*found}


def test_what_the_driver_does_not_report_has_no_label() -> None:
    bare = LabelInput(DriverVersions("580.95", None), (InstalledGpu(0, "GPU-0", "X", ""),), PluginConfig())
    found = labels(bare)
    assert not {"gpu.memory", "gpu.family", "gpu.compute.major", "cuda.runtime-version.full"} & {*found}
    assert (found["gpu.machine"], found["gpu.mode"], found["mig.capable"]) == ("unknown", "unknown", "false")


@pytest.mark.parametrize(
    ("classes", "mode"),
    [
        ((0x030200, 0x030200), "compute"),
        ((0x030000, 0x030000), "graphics"),
        ((0x030000, 0x030200), "unknown"),
        ((0x030200, None), "unknown"),
        ((0x010000, 0x010000), "unknown"),
    ],
)
def test_the_mode_is_that_of_all_gpus(classes: tuple[int | None, ...], mode: str) -> None:
    gpus = [msgspec.structs.replace(GPU, pci_class=one) for one in classes]
    assert labels(scene(*gpus))["gpu.mode"] == mode


@pytest.mark.parametrize(
    ("fabrics", "clique"),
    [
        ((Fabric("c", "1"), Fabric("c", "1")), "c.1"),
        ((Fabric("c", "1"), None), "c.1"),
        ((Fabric("c", "1"), Fabric("c", "2")), None),
        ((Fabric("c", "1"), Fabric("d", "1")), None),
        ((Fabric("", "1"),), None),
        ((Fabric("c", "1"), Fabric("", "1")), None),
        ((None, None), None),
    ],
)
def test_a_clique_is_named_if_all_attached_gpus_are_in_it(
    fabrics: tuple[Fabric | None, ...], clique: str | None
) -> None:
    gpus = [msgspec.structs.replace(GPU, fabric=one) for one in fabrics]
    assert labels(scene(*gpus)).get("gpu.clique") == clique


def test_the_last_virtual_gpu_names_the_driver_of_the_host() -> None:
    vgpus = (VgpuHost("490.00", "r490_00"), VgpuHost("535.1", "r535_01"))
    found = labels(msgspec.structs.replace(scene(), vgpus=vgpus), "vgpu.")
    assert found == {
        "vgpu.present": "true",
        "vgpu.host-driver-version": "535.1",
        "vgpu.host-driver-branch": "r535_01",
    }


@pytest.mark.parametrize(
    ("config", "product"),
    [
        (SHARED, "NVIDIA-A100-SXM4-80GB-SHARED"),
        (msgspec.structs.replace(SHARED, rename=True), "NVIDIA-A100-SXM4-80GB"),
        (msgspec.structs.replace(SHARED, renames=(("nvidia.com/gpu", "nvidia.com/part"),)), "NVIDIA-A100-SXM4-80GB"),
        (msgspec.structs.replace(SHARED, replicas=(("nvidia.com/other", 4),)), "NVIDIA-A100-SXM4-80GB"),
    ],
    ids=["shared", "renamed by default", "renamed", "another resource"],
)
def test_a_shared_product_is_marked_where_the_resource_keeps_its_name(config: PluginConfig, product: str) -> None:
    assert labels(scene(config=config))["gpu.product"] == product


def test_gpus_in_mig_mode_are_not_shared_as_whole_gpus() -> None:
    found = labels(scene(cut("1g.10gb"), config=SHARED), "gpu.")
    assert (found["gpu.product"], found["gpu.replicas"], found["gpu.sharing-strategy"]) == (
        "NVIDIA-A100-SXM4-80GB",
        "0",
        "none",
    )


def test_mixed_describes_each_profile_beside_the_whole_gpus() -> None:
    config = msgspec.structs.replace(SHARED, mig_strategy="mixed")
    found = labels(scene(cut("1g.10gb", "1g.10gb+me"), msgspec.structs.replace(GPU, index=1), config=config))
    assert (found["gpu.count"], found["gpu.replicas"], found["mig.strategy"]) == ("2", "4", "mixed")
    assert found["mig-1g.10gb.product"] == "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED"
    assert (found["mig-1g.10gb.replicas"], found["mig-1g.10gb.sharing-strategy"]) == ("2", "time-slicing")
    assert found["mig-1g.10gb.me.product"] == "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb.me"
    assert (found["mig-1g.10gb.me.memory"], found["mig-1g.10gb.me.multiprocessors"]) == ("9856", "14")


def test_single_describes_instances_as_gpus() -> None:
    config = PluginConfig(mig_strategy="single")
    found = labels(scene(cut("1g.10gb", "1g.10gb"), cut("1g.10gb", index=1), config=config), "gpu.")
    assert (found["gpu.product"], found["gpu.count"], found["gpu.memory"]) == (
        "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",
        "3",
        "9856",
    )
    assert (found["gpu.slices.gi"], found["gpu.engines.copy"], found["gpu.replicas"]) == ("1", "1", "1")


@pytest.mark.parametrize(
    "gpus",
    [(cut("1g.10gb"), GPU), (cut("1g.10gb"), cut(index=1)), (cut("1g.10gb", "2g.20gb"),)],
    ids=["not all are in MIG mode", "one has no instances", "two profiles"],
)
def test_single_that_cannot_be_applied_is_marked_invalid(gpus: tuple[InstalledGpu, ...]) -> None:
    found = labels(scene(*gpus, config=PluginConfig(mig_strategy="single")), "gpu.")
    assert found["gpu.product"] == "NVIDIA-A100-SXM4-80GB-MIG-INVALID"
    assert [found[f"gpu.{name}"] for name in ("count", "replicas", "memory", "sharing-strategy")] == ["0", "0", "0", ""]
    assert "gpu.slices.gi" not in found


def test_of_several_models_the_most_frequent_is_described() -> None:
    others = [msgspec.structs.replace(GPU, index=index, name="NVIDIA L40S", memory_mib=46_068) for index in (1, 2)]
    found = labels(scene(GPU, *others))
    assert (found["gpu.product"], found["gpu.count"], found["gpu.memory"]) == ("NVIDIA-L40S", "2", "46068")


def test_labels_of_the_operator_are_not_those_of_discovery() -> None:
    capable, plain = operator_labels(is_mig_capable=True), operator_labels(is_mig_capable=False)
    assert {*capable} - {*plain} == {"nvidia.com/gpu.deploy.mig-manager"}
    assert not {*capable} & {*feature_labels(scene())}
