"""The label `nvidia.com/mig.config` changes how GPUs are cut, and its state says how it went."""

from __future__ import annotations

import pytest

from build.gpu_pods import GPU, Obj, config_map, device_manager, gpu_pod, granted
from shoal.devices.mig_layouts import default_layouts
from shoal.embedded.gpus.node_gpus import Complaint, ExtendedResourceAmounts

CONFIG, STATE = "nvidia.com/mig.config", "nvidia.com/mig.config.state"


def mig_config(lines: str) -> dict[str, Obj]:
    return {"gpu-operator/custom": config_map(config__yaml=f"version: v1\nmig-configs:\n  mine: {lines}")}


@pytest.mark.parametrize(
    ("machine", "layout", "resources"),
    [
        ("dgx-a100-80", "all-1g.10gb", {"nvidia.com/mig-1g.10gb": 56}),
        ("dgx-a100-40", "all-1g.10gb", {"nvidia.com/mig-1g.10gb": 32}),
        ("dgx-h100", "all-7g.80gb", {"nvidia.com/mig-7g.80gb": 8}),
        ("dgx-h100", "all-1g.10gb.me", {"nvidia.com/mig-1g.10gb.me": 8}),
        (
            "dgx-h100",
            "all-balanced",
            {"nvidia.com/mig-1g.10gb": 16, "nvidia.com/mig-2g.20gb": 8, "nvidia.com/mig-3g.40gb": 8},
        ),
        ("a30-box-4", "all-balanced", {"nvidia.com/mig-1g.6gb": 8, "nvidia.com/mig-2g.12gb": 4}),
        ("dgx-h100", "all-enabled", {}),
        ("dgx-h100", "all-disabled", {GPU: 8}),
    ],
)
def test_named_layouts_cut_what_their_name_says(machine: str, layout: str, resources: dict[str, int]) -> None:
    node = device_manager(machine)
    said = node.configure({CONFIG: layout}, {})
    assert any("was applied" in words for words in said)
    found = {name: one.capacity for name, one in node.resources().items() if one.capacity}
    assert found == resources
    assert node.labels()[STATE] == "success"
    assert node.configure({CONFIG: layout}, {}) == []


@pytest.mark.parametrize("name", sorted(default_layouts("RTX-PRO-6000-96GB")))
def test_every_default_layout_can_be_cut(name: str) -> None:
    assert device_manager(f"rtx-pro-6000-box-8[mig={name}]").labels()[STATE] == "success"


def test_a_layout_of_a_config_map_is_followed_gpu_by_gpu() -> None:
    node = device_manager("dgx-a100-40")
    lines = (
        "[{devices: all, mig-enabled: false},"
        ' {devices: [0, 1], mig-enabled: true, mig-devices: {"2g.10gb": 3, "1g.5gb": 1}}]'
    )
    node.configure({CONFIG: "mine"}, mig_config(lines))
    assert {name: one.capacity for name, one in node.resources().items()} == {
        GPU: 6,
        "nvidia.com/mig-1g.5gb": 2,
        "nvidia.com/mig-2g.10gb": 6,
    }


def test_a_filter_picks_gpus_by_their_pci_id() -> None:
    lines = (
        '[{devices: all, device-filter: ["0x20B210DE"], mig-enabled: true, mig-devices: {"1g.10gb": 7}},'
        ' {devices: all, device-filter: "0x20b010de", mig-enabled: true, mig-devices: {"1g.5gb": 7}}]'
    )
    small, large = device_manager("dgx-a100-40"), device_manager("dgx-a100-80")
    for node in (small, large):
        node.configure({CONFIG: "mine"}, mig_config(lines))
    assert "nvidia.com/mig-1g.5gb" in small.resources()
    assert "nvidia.com/mig-1g.10gb" in large.resources()


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ('[{devices: all, mig-enabled: true, mig-devices: {"1g.20gb": 1}}]', "has no MIG profile 1g.20gb"),
        ('[{devices: all, mig-enabled: true, mig-devices: {"1g.5gb": 8}}]', "8 x 1g.5gb do not fit on A100-40GB"),
        ('[{devices: all, mig-enabled: true, mig-devices: {"4g.20gb": 1, "2g.10gb": 3}}]', "do not fit together"),
        ("[{devices: [9], mig-enabled: true, mig-devices: {}}]", "no GPU 9"),
        ('[{devices: all, device-filter: "0x233010DE", mig-enabled: true, mig-devices: {}}]', "names no GPU"),
        (
            '[{devices: all, mig-enabled: false, mig-devices: {"1g.5gb": 1}}]',
            "MIG devices included when 'mig-enabled' is false",
        ),
        ('[{devices: all, mig-enabled: true, mig-devices: {"1g.5gb": 0}}]', "all counts for all MigProfiles are 0"),
        ("[{devices: some, mig-enabled: false}]", "invalid string input for 'devices': some"),
        ("[{devices: all, mig-enabled: false, color: red}]", "unexpected field: color"),
        ("[{devices: all, mig-enabled: true}]", "missing required field 'mig-devices' when 'mig-enabled' is true"),
        ('[{devices: all, mig-enabled: true, mig-devices: {"3g.20gb": 3}}]', "nearest possible layout is 2 x 3g.20gb"),
        ('[{devices: all, mig-enabled: true, mig-devices: {"1c.3g.20gb": 2}}]', "one compute instance in each"),
        ("{", "cannot be read"),
    ],
)
def test_an_impossible_layout_changes_nothing_and_fails(lines: str, told: str) -> None:
    node = device_manager("dgx-a100-40")
    (said,) = node.configure({CONFIG: "mine"}, mig_config(lines))
    assert told in said
    assert node.labels()[STATE] == "failed"
    assert node.resources() == {GPU: ExtendedResourceAmounts(8, 8)}


def test_an_unknown_layout_names_those_that_are_known() -> None:
    node = device_manager("dgx-a100-40")
    (said,) = node.configure({CONFIG: "all-1g.18gb"}, {})
    assert "no such layout; known are all-disabled, all-enabled, all-balanced, all-1g.5gb" in said


def test_gpus_in_use_are_not_cut() -> None:
    node = device_manager("dgx-a100-40")
    granted(node.admit(gpu_pod("a", 1)))
    (said,) = node.configure({CONFIG: "all-1g.5gb"}, {})
    assert "GPU 0 is in use by another client" in said
    assert isinstance(said, Complaint)
    assert node.labels()[STATE] == "failed"
    node.release("a")
    assert node.configure({CONFIG: "all-1g.5gb"}, {}) == []
    node.configure({CONFIG: "all-disabled"}, {})
    node.configure({CONFIG: "all-1g.5gb"}, {})
    assert node.labels()[STATE] == "success"


def test_a_gpu_without_mig_has_no_manager_that_would_follow_the_label() -> None:
    node = device_manager("g5.12xlarge")
    assert node.configure({CONFIG: "all-disabled"}, {}) == []
    (said,) = node.configure({CONFIG: "all-1g.5gb"}, {})
    assert said.startswith("MIG layout all-1g.5gb was not applied: no GPU of this node has MIG")
    assert isinstance(said, Complaint)
    assert node.configure({CONFIG: "all-1g.5gb"}, {}) == []
    assert STATE not in node.labels()


def test_single_wants_one_profile_on_all_gpus() -> None:
    node = device_manager("dgx-a100-40[strategy=single]")
    said = node.configure({CONFIG: "all-balanced"}, {})
    assert "the device plugin does not start: all MIG devices on the node must be of the same type" in said
    assert node.resources() == {GPU: ExtendedResourceAmounts(0, 0)}
    assert node.labels()["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-40GB-MIG-INVALID"
    node.configure({CONFIG: "all-1g.5gb"}, {})
    assert node.resources() == {GPU: ExtendedResourceAmounts(56, 56)}


def test_with_strategy_none_cut_gpus_are_still_offered_whole() -> None:
    assert device_manager("dgx-a100-40[mig=all-1g.5gb,strategy=none]").resources() == {
        GPU: ExtendedResourceAmounts(8, 8)
    }
