"""Rows are attributed to the pods that hold a device, for every form of device id."""

from __future__ import annotations

import pytest

from shoal.devices.dcgm_holders import (
    ClaimedDevice,
    ClaimedMig,
    ContainerHolding,
    DeviceHolders,
    HolderOptions,
    LabelFilter,
    PoolDevice,
    label_name,
    with_holder,
)
from shoal.devices.dcgm_jobs import is_job_file, jobs_in, jobs_on
from shoal.devices.dcgm_text import Entity, LabelNames, entity_labels, family, spelled
from shoal.devices.device_ids import share_of

WHOLE = Entity(gpu="0", uuid="GPU-a", device="nvidia0", pci="00000000:01:00.0", model="NVIDIA A100")
INSTANCE = Entity(gpu="0", uuid="GPU-a", device="nvidia0", profile="1g.10gb", instance="7")
SHARED = HolderOptions(has_virtual_gpus=True)
CLAIMED = PoolDevice("GPU-a", ClaimedMig("MIG-x", "1g.10gb"), "0-7")


def holding(pod: str, *ids: str, resource: str = "nvidia.com/gpu", **labels: str) -> ContainerHolding:
    return ContainerHolding(pod, "team", "main", resource, ids, uid=f"uid-{pod}", labels=labels)


def pods_on(entity: Entity, holdings: list[ContainerHolding], options: HolderOptions = HolderOptions()) -> list[str]:  # noqa: B008
    holders = DeviceHolders(holdings, options, {"MIG-b": "0-7"})
    return [f"{holder.pod}{':' if holder.vgpu else ''}{holder.vgpu}" for holder in holders.of(entity)]


@pytest.mark.parametrize(
    ("entity", "device", "id_type"),
    [
        (WHOLE, "GPU-a", "uid"),
        (WHOLE, "nvidia0", "device-name"),
        (WHOLE, "GPU-a::3", "uid"),
        (WHOLE, "nvidia0/vgpu1", "device-name"),
        (INSTANCE, "MIG-b", "uid"),
        (INSTANCE, "MIG-b::3", "uid"),
        (INSTANCE, "nvidia0/gi7", "uid"),
        (INSTANCE, "nvidia0/gi7/vgpu2", "device-name"),
    ],
)
def test_a_device_is_found_by_every_form_of_its_id(entity: Entity, device: str, id_type: str) -> None:
    options = HolderOptions(id_type="uid" if id_type == "uid" else "device-name")
    assert pods_on(entity, [holding("a", device)], options) == ["a"]


def test_a_pod_on_another_device_is_not_named() -> None:
    assert pods_on(WHOLE, [holding("a", "GPU-c"), holding("b", "MIG-b"), holding("c", "nvidia0")]) == []
    assert pods_on(INSTANCE, [holding("a", "GPU-a"), holding("b", "nvidia0/gi8")]) == []


def test_the_last_pod_that_is_listed_has_the_device_unless_gpus_are_virtual() -> None:
    holdings = [holding("a", "GPU-a::0"), holding("b", "GPU-a::1")]
    assert pods_on(WHOLE, holdings) == ["b"]
    assert pods_on(WHOLE, holdings, SHARED) == ["a:0", "b:1"]


def test_resources_that_are_no_gpus_count_when_they_are_configured() -> None:
    for resource in ("nvidia.com/gpu.shared", "example.com/fpga"):
        assert pods_on(WHOLE, [holding("a", "GPU-a", resource=resource)]) == []
        options = HolderOptions(resource_names=(resource,))
        assert pods_on(WHOLE, [holding("a", "GPU-a", resource=resource)], options) == ["a"]
    assert pods_on(WHOLE, [holding("a", "GPU-a", resource="nvidia.com/mig-1g.10gb")]) == ["a"]


def attributes_of(options: HolderOptions, one: ContainerHolding) -> tuple[dict[str, str], dict[str, str]]:
    holders = DeviceHolders(
        [one], options, {}, lambda pool, device: CLAIMED if (pool, device) == ("pool", "gpu-0") else None
    )
    (holder,) = holders.of(WHOLE)
    return with_holder({"DCGM_FI_DRIVER_VERSION": "580", "app": "field"}, {}, holder, options)


def test_the_old_names_and_the_uid_are_options() -> None:
    one = holding("a", "GPU-a::2")
    assert attributes_of(HolderOptions(), one)[1] == {"pod": "a", "namespace": "team", "container": "main"}
    assert attributes_of(HolderOptions(has_old_names=True, has_pod_uid=True), one)[1] == {
        "pod_name": "a",
        "pod_namespace": "team",
        "container_name": "main",
        "pod_uid": "uid-a",
    }
    assert attributes_of(SHARED, one)[1]["vgpu"] == "2"


def test_pod_labels_are_filtered_renamed_and_do_not_replace_the_names_of_the_pod() -> None:
    one = ContainerHolding(
        *("a", "team", "main", "nvidia.com/gpu", ("GPU-a",)),
        labels={"app.kubernetes.io/name": "x", "pod": "y", "app": "z", "1st": "w"},
    )
    options = HolderOptions(has_pod_labels=True)
    assert attributes_of(options, one)[0] == {
        "DCGM_FI_DRIVER_VERSION": "580",
        "app": "z",
        "app_kubernetes_io_name": "x",
        "_1st": "w",
    }
    only = HolderOptions(has_pod_labels=True, allow=("^app$",))
    assert attributes_of(only, one)[0] == {"DCGM_FI_DRIVER_VERSION": "580", "app": "z"}
    assert attributes_of(HolderOptions(), one)[0] == {"DCGM_FI_DRIVER_VERSION": "580", "app": "field"}


def test_a_claimed_device_names_its_claim_and_only_that_of_the_gpu_driver() -> None:
    claimed = ClaimedDevice("claim", "team", "gpu.nvidia.com", "pool", "gpu-0")
    one = ContainerHolding("a", "team", "main", claimed=(claimed, claimed))
    found = attributes_of(HolderOptions(), one)[1]
    assert {name: value for name, value in found.items() if name.startswith("dra_")} == {
        "dra_claim_name": "claim",
        "dra_claim_namespace": "team",
        "dra_driver_name": "gpu.nvidia.com",
        "dra_pool_name": "pool",
        "dra_device_name": "gpu-0",
        "dra_mig_profile": "1g.10gb",
        "dra_mig_device_uuid": "MIG-x",
    }
    other = ContainerHolding("a", "team", "main", claimed=(ClaimedDevice("claim", "team", "other", "pool", "gpu-0"),))
    assert DeviceHolders([other], HolderOptions(), {}, lambda *_: CLAIMED).of(WHOLE) == []


@pytest.mark.parametrize(
    ("device", "share"),
    [("GPU-a", None), ("GPU-a::3", "3"), ("nvidia0/vgpu1", "1"), ("nvidia0/gi1/vgpu0", "0"), ("a/vgpu::1", "::1")],
)
def test_the_number_of_a_share_is_behind_the_mark_of_its_plugin(device: str, share: str | None) -> None:
    assert share_of(device) == share


def test_a_pattern_that_is_none_is_left_out_and_without_patterns_all_labels_are_kept() -> None:
    wrong = LabelFilter(["[", "(?=a)"])
    assert (wrong.keeps("app"), wrong.wrong) == (True, ["[", "(?=a)"])
    some = LabelFilter(["[", "^app"])
    assert (some.keeps("app.x"), some.keeps("tier")) == (True, False)
    assert LabelFilter(["a"]).keeps("bar")


def test_letters_that_metrics_do_not_allow_become_underscores() -> None:
    assert label_name("app.kubernetes.io/näme-1") == "app_kubernetes_io_n_me_1"


def test_jobs_are_named_by_gpu_or_by_gpu_and_instance() -> None:
    assert [is_job_file(name) for name in ("0", "10.3", "0.", "a", "0.1.2", ".1", "٣")] == [True, True, *[False] * 5]
    assert jobs_in("one\r\ntwo\n") == ("one", "two")
    assert jobs_in("one\n\ntwo") == ("one", "", "two")
    assert jobs_in("") == ()
    jobs = {"0": ("whole",), "0.7": ("part",)}
    assert (jobs_on(WHOLE, jobs), jobs_on(INSTANCE, jobs)) == (("whole",), ("part",))
    assert jobs_on(Entity(gpu="1"), jobs) == ()


def test_values_and_help_are_escaped() -> None:
    labels = spelled((("pod", 'a"b\\c\nd'),))
    assert family("m", "gauge", "one\ntwo \\ three", [(labels, 1), (labels, 0.5)]) == [
        "# HELP m one\\ntwo \\\\ three",
        "# TYPE m gauge",
        'm{pod="a\\"b\\\\c\\nd"} 1',
        'm{pod="a\\"b\\\\c\\nd"} 0.500000',
    ]


def test_groups_have_the_labels_of_what_they_are_about() -> None:
    entity = Entity(gpu="3", uuid="GPU-a", device="1", nvswitch="nvswitch2", nvlink="5", hostname="node")
    names = {group: dict(entity_labels(entity, group)) for group in ("link", "switch", "cpu", "cpu-core")}
    assert names == {
        "link": {
            "nvlink": "5",
            "nvswitch": "nvswitch2",
            "gpu": "3",
            "gpu_uuid": "GPU-a",
            "device": "1",
            "hostname": "node",
        },
        "switch": {"nvswitch": "nvswitch2", "Hostname": "node"},
        "cpu": {"cpu": "3", "Hostname": "node"},
        "cpu-core": {"cpucore": "3", "cpu": "1", "Hostname": "node"},
    }


def test_the_names_of_the_node_and_uuid_labels_can_be_chosen() -> None:
    entity = Entity(gpu="0", uuid="GPU-a", hostname="node")
    assert dict(entity_labels(entity, "gpu", LabelNames("uuid", "hostname")))["uuid"] == "GPU-a"
    assert "Hostname" not in dict(entity_labels(entity, "gpu", LabelNames("uuid", "hostname")))
    assert "Hostname" in dict(entity_labels(entity))
