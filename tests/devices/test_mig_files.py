"""Files of MIG layouts: what is accepted, what is refused with mig-parted's message, which GPUs an entry selects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from shoal.api.yaml_out import to_yaml
from shoal.devices.mig_config import MigConfigError, parse_mig_config, read_mig_config, selected_config
from shoal.devices.mig_export import exported_document, exported_specs
from shoal.devices.mig_layouts import MigOffer, MigSpec, generated_layouts
from shoal.devices.mig_profile_names import MigNameError, flattened, parse_profile
from shoal.devices.pci_ids import is_matched, parse_pci_id

H100 = parse_pci_id("0x233010DE:0x16C110DE")


def entry(**fields: Any) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in fields.items()}


def document(*entries: Any) -> dict[str, Any]:
    return {"version": "v1", "mig-configs": {"mine": list(entries)}}


def test_an_entry_has_devices_filters_and_counts_of_profiles() -> None:
    found = read_mig_config(
        document(
            entry(devices=[0, 2], mig_enabled=True, mig_devices={"2g.10gb": 1, "1g.5gb": 2, "3g.20gb": 0}),
            entry(devices="all", device_filter="0x20B010DE", mig_enabled=False),
            entry(devices="all", device_filter=["A", "B"], mig_enabled=True, mig_devices={}),
        )
    )
    assert found == {
        "mine": (
            MigSpec(enabled=True, counts=(("1g.5gb", 2), ("2g.10gb", 1)), devices=(0, 2)),
            MigSpec(enabled=False, filters=("0x20B010DE",)),
            MigSpec(enabled=True, filters=("A", "B")),
        )
    }


def test_a_compute_instance_that_takes_its_gpu_instance_whole_is_the_gpu_instance() -> None:
    (spec,) = read_mig_config(document(entry(devices="all", mig_enabled=True, mig_devices={"7c.7g.80gb": 1})))["mine"]
    assert spec.counts == (("7g.80gb", 1),)


ON = {"devices": "all", "mig_enabled": True}
REFUSED: Mapping[str, tuple[Any, str]] = {
    "a list": ([], "the file is a list, not an object"),
    "no version": ({"mig-configs": {}}, "unable to parse with missing 'version' field"),
    "nothing": ({}, "unknown version: "),
    "another version": ({"version": "v2"}, "unknown version: v2"),
    "a number as version": ({"version": 1}, "unknown version: 1"),
    "another field": ({"version": "v1", "configs": {}}, "unexpected field: configs"),
    "no layout": ({"version": "v1", "mig-configs": {}}, "at least one entry in 'mig-configs' is required"),
    "a layout without entries": (document(), "at least one entry in 'mine' is required"),
    "an entry that is a text": (document("all"), "mine[0]: the entry is a text, not an object"),
    "no devices": (document(entry(mig_enabled=False)), "mine[0]: missing required field: devices"),
    "no mode": (document(entry(devices="all")), "missing required field: mig-enabled"),
    "another field in an entry": (document(entry(**ON, color=1)), "unexpected field: color"),
    "enabled without instances": (document(entry(**ON)), "missing required field 'mig-devices' when"),
    "another word for devices": (document(entry(devices="some", mig_enabled=False)), "input for 'devices': some"),
    "a number for devices": (document(entry(devices=0, mig_enabled=False)), "devices is a number"),
    "a text in devices": (document(entry(devices=[0, "1"], mig_enabled=False)), "devices is a list, not all or"),
    "a text for the mode": (document(entry(devices="all", mig_enabled="yes")), "mig-enabled is a text"),
    "a number for the filter": (document(entry(**ON, device_filter=1, mig_devices={})), "device-filter is a number"),
    "instances without MIG": (
        document(entry(devices="all", mig_enabled=False, mig_devices={"1g.5gb": 1})),
        "MIG devices included when 'mig-enabled' is false",
    ),
    "only zeros": (
        document(entry(**ON, mig_devices={"1g.5gb": 0})),
        "error validating values in 'mig-devices' field: all counts for all MigProfiles are 0",
    ),
    "a negative count": (document(entry(**ON, mig_devices={"1g.5gb": -1})), "invalid count for '1g.5gb': -1"),
    "a text as count": (document(entry(**ON, mig_devices={"1g.5gb": "1"})), "not an object of profiles"),
    "no profile": (document(entry(**ON, mig_devices={"half": 1})), "invalid format for 'half': cannot parse fields"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_file_is_refused_with_the_message_of_mig_parted(case: str) -> None:
    given, message = REFUSED[case]
    with pytest.raises(MigConfigError) as caught:
        read_mig_config(given)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["version: [", "version: v1\nversion: v1\n", "plain"])
def test_a_file_that_is_no_yaml_object_is_refused(text: str) -> None:
    with pytest.raises(MigConfigError):
        parse_mig_config(text)


def test_without_a_name_the_only_layout_is_selected() -> None:
    one = read_mig_config(document(entry(devices="all", mig_enabled=False)))
    assert selected_config(one, None) == selected_config(one, "mine") == one["mine"]
    with pytest.raises(MigConfigError, match="selected mig-config not present: other"):
        selected_config(one, "other")
    with pytest.raises(MigConfigError, match="missing required flag 'selected-config' when more than one"):
        selected_config({**one, "other": one["mine"]}, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty string"),
        ("1g", "wrong number of fields"),
        ("1x.5gb", "missing 'g' from '%dg'"),
        ("ag.5gb", "malformed number in '%dg'"),
        ("1g.5gb ", "leading or trailing spaces on '%dgb'"),
        ("1g.5gb+", "empty attribute in list"),
        ("1g.5gb+me,me", "non unique attribute"),
        ("1g.5gb+ me", "leading or trailing spaces in attribute"),
        ("1g.5gb+2me", "begins with a number"),
        ("1g.5gb+m_e", "non alpha-numeric"),
        ("1g.5gb+me-gfx", "contains both '+/-' attributes"),
    ],
)
def test_a_wrong_name_of_a_profile_is_refused(text: str, message: str) -> None:
    with pytest.raises(MigNameError) as caught:
        parse_profile(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text", ["1g.5gb", "1g.5gb+me", "1g.24gb+me.all", "1g.24gb-me", "1c.3g.40gb", "2c.4g.40gb+me,gfx"]
)
def test_names_of_profiles_are_read_and_written(text: str) -> None:
    assert parse_profile(text).text == text


def test_large_instances_are_created_first_and_those_with_attributes_before_their_like() -> None:
    counts = (("1c.3g.20gb", 1), ("1g.5gb", 2), ("1g.5gb+me", 1), ("3g.20gb", 1), ("4g.20gb", 1))
    assert flattened(counts) == ("4g.20gb", "3g.20gb", "1c.3g.20gb", "1g.5gb+me", "1g.5gb", "1g.5gb")


@pytest.mark.parametrize(
    ("filters", "matches"),
    [
        ((), True),
        (("",), False),
        (("0x233010DE",), True),
        (("0x233010de:0x16c110de",), True),
        (("0x233010DE:0x16C010DE",), False),
        (("0x20B010DE", "0x233010DE"), True),
        (("590352606",), True),
        (("233010DE",), False),
        (("0x233010DE:1:2",), False),
        (("H100",), False),
    ],
)
def test_a_filter_names_gpus_by_their_pci_id(filters: tuple[str, ...], matches: bool) -> None:
    assert is_matched(filters, H100) is matches


def test_a_filter_with_a_board_does_not_match_a_gpu_whose_board_is_unknown() -> None:
    assert not is_matched(("0x233010DE:0x16C110DE",), parse_pci_id("0x233010DE"))
    assert not is_matched(("0x233010DE",), None)


def test_layouts_of_a_node_with_two_kinds_of_gpus_name_the_kinds() -> None:
    small = MigOffer("0x20B010DE", (("1g.5gb", 7), ("1g.10gb", 4), ("2g.10gb", 3), ("3g.20gb", 2), ("7g.40gb", 1)))
    large = MigOffer("0x20B510DE", (("1g.10gb", 7), ("7g.80gb", 1)))
    found = generated_layouts([small, large])
    assert found["all-1g.10gb"] == (
        MigSpec(enabled=True, counts=(("1g.10gb", 4),), filters=("0x20B010DE",)),
        MigSpec(enabled=True, counts=(("1g.10gb", 7),), filters=("0x20B510DE",)),
    )
    assert [spec.filters for spec in found["all-balanced"]] == [("0x20B010DE",)]
    assert "all-balanced" not in generated_layouts([large])


def test_an_export_is_read_again_as_the_same_layout() -> None:
    seven, balanced = (("1g.10gb", 7),), (("1g.10gb", 2), ("3g.40gb", 1))
    gpus = [(0, "A", True, seven), (1, "A", True, seven), (2, "B", True, balanced), (3, "B", False, ())]
    specs = exported_specs(gpus)
    assert specs == (
        MigSpec(enabled=True, counts=seven, filters=("A",)),
        MigSpec(enabled=True, counts=balanced, devices=(2,), filters=("B",)),
        MigSpec(enabled=False, devices=(3,), filters=("B",)),
    )
    assert parse_mig_config(to_yaml(exported_document(specs, "current"))) == {"current": specs}


def test_an_export_of_equal_gpus_is_one_entry() -> None:
    assert exported_specs([(0, "A", False, ()), (1, "B", False, ())]) == (MigSpec(enabled=False),)
