"""The device plugin's configuration file: what is accepted, what is refused and why, and what is ignored."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.devices.plugin_config import PluginConfig, parse_plugin_config, started_config
from shoal.devices.plugin_file import parse_plugin_file, pattern_matches
from shoal.devices.plugin_flags import PluginFlags
from shoal.devices.plugin_resources import PluginConfigError

UUID = "GPU-b1028956-cfa2-0990-bf4a-5da9abb51763"


def sharing(block: str, kind: str = "timeSlicing") -> str:
    return f"version: v1\nsharing: {{{kind}: {block}}}"


def resource(fields: str) -> str:
    return sharing(f"{{resources: [{{{fields}}}]}}")


@pytest.mark.parametrize("text", ["", "version: v1", '{"version": "v1"}', "sharing: {}"])
def test_a_file_without_settings_is_accepted(text: str) -> None:
    assert parse_plugin_config(text, "single") == PluginConfig(mig_strategy="single")


@pytest.mark.parametrize(
    ("text", "refusal", "told"),
    [
        ("version: v2", "version", "unknown version: v2"),
        ("[1]", "type", "config file: expected a map"),
        ("version: [", "syntax", "error parsing config file"),
        ("version: v1\nsharing: 3", "type", "sharing: expected a map"),
        (sharing("{}"), "no-resources", "no resources specified"),
        (sharing("{resources: []}"), "no-resources", "no resources specified"),
        (sharing("{resources: gpu}"), "type", "sharing.timeSlicing.resources: expected a list"),
        (sharing("{renameByDefault: 1, resources: [{name: gpu, replicas: 2}]}"), "type", "renameByDefault"),
        (resource("replicas: 2"), "missing-name", "no resource name specified"),
        (resource("name: gpu"), "missing-replicas", "no replicas specified"),
        (resource("name: gpu, replicas: 1"), "replicas-too-few", "number of replicas must be >= 2"),
        (resource("name: gpu, replicas: -3"), "replicas-too-few", "number of replicas must be >= 2"),
        (resource("name: gpu, replicas: many"), "replicas", "resources[0].replicas: expected a whole number"),
        (resource("name: gpu, replicas: true"), "replicas", "expected a whole number"),
        (resource('name: "", replicas: 2'), "resource-name", "incorrect format for resource name 'nvidia.com/'"),
        (resource("name: GPU, replicas: 2"), "resource-name", "incorrect format"),
        (resource("name: example.com/gpu, replicas: 2"), "resource-name", "'nvidia.com/example.com/gpu'"),
        (resource(f"name: {'g' * 53}, replicas: 2"), "resource-name", "63 characters or less"),
        (resource("name: gpu, replicas: 2, rename: Shared"), "resource-name", "nvidia.com/Shared"),
        (resource("name: gpu, replicas: 2, devices: some"), "devices", "'some' but not 'all'"),
        (resource("name: gpu, replicas: 2, devices: 0"), "devices", "not above 0: 0"),
        (resource("name: gpu, replicas: 2, devices: [-1]"), "devices", "devices[0]"),
        (resource("name: gpu, replicas: 2, devices: [GPU-1]"), "devices", "GPU-1"),
        (resource("name: gpu, replicas: 2, devices: {a: 1}"), "devices", "neither 'all' nor a number nor a list"),
        ("resources: {gpus: [{pattern: '*', name: GPU}]}", "resource-name", "nvidia.com/GPU"),
        ("imex: {channelIDs: [1]}", "imex-channels", "invalid IMEX channel IDs"),
        ("imex: {channelIDs: [0, 1]}", "imex-channels", "imex.channelIDs is [0, 1]"),
        ("flags: {failOnInitError: maybe}", "type", "flags.failOnInitError: expected true or false"),
        ("flags: {gfd: {sleepInterval: soon}}", "duration", "flags.gfd.sleepInterval"),
        ("flags: {plugin: {deviceListStrategy: {a: 1}}}", "type", "invalid deviceListStrategy"),
    ],
)
def test_a_mistake_in_the_file_is_refused_in_the_words_of_the_plugin(text: str, refusal: str, told: str) -> None:
    with pytest.raises(PluginConfigError) as raised:
        parse_plugin_file(text)
    assert (raised.value.refusal, told in str(raised.value)) == (refusal, True), raised.value


@pytest.mark.parametrize(
    ("written", "devices"),
    [
        ("all", "all"),
        ("2", 2),
        ("[0, '1', '0:3']", ("0", "1", "0:3")),
        (f"[{UUID}]", (UUID,)),
        (f"[{UUID.replace('GPU', 'MIG')}]", (UUID.replace("GPU", "MIG"),)),
        (f"[MIG-{UUID}/3/0]", (f"MIG-{UUID}/3/0",)),
        ("[]", ()),
    ],
)
def test_devices_are_all_a_number_or_a_list_of_indexes_and_uuids(written: str, devices: Any) -> None:
    block = parse_plugin_file(resource(f"name: gpu, replicas: 2, devices: {written}")).block
    assert block is not None
    assert block.resources[0].devices == devices


def test_names_are_completed_and_renamed_by_default() -> None:
    file = parse_plugin_file(sharing("{renameByDefault: true, resources: [{name: gpu, replicas: 2}]}"))
    assert file.block is not None
    assert (file.block.resources[0].name, file.block.resources[0].rename) == ("nvidia.com/gpu", "nvidia.com/gpu.shared")


@pytest.mark.parametrize(
    ("rename_by_default", "rename"), [("true", "nvidia.com/gpu.shared"), ("false", "")], ids=["by default", "not"]
)
def test_the_plugin_ignores_names_and_devices_of_single_resources(rename_by_default: str, rename: str) -> None:
    fields = "name: gpu, replicas: 2, rename: part, devices: [0]"
    file = parse_plugin_file(sharing(f"{{renameByDefault: {rename_by_default}, resources: [{{{fields}}}]}}"))
    block, notes = file.in_force()
    assert block is not None
    assert (block.resources[0].rename, block.resources[0].devices) == (rename, "all")
    assert notes == ("nvidia.com/gpu: the device plugin ignores devices and rename",)


@pytest.mark.parametrize(
    ("kind", "given", "limited"),
    [
        ("timeSlicing", "", False),
        ("mps", "", True),
        ("timeSlicing", "failRequestsGreaterThanOne: true, ", True),
        ("mps", "failRequestsGreaterThanOne: false, ", False),
    ],
)
def test_whether_larger_requests_fail_depends_on_the_strategy(kind: str, given: str, limited: bool) -> None:
    config = parse_plugin_config(sharing(f"{{{given}resources: [{{name: gpu, replicas: 2}}]}}", kind), "none")
    assert config.one_per_request == limited


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("flags: {migStrategy: bogus}", "mig-strategy"),
        ("flags: {deviceDiscoveryStrategy: guess}", "device-discovery-strategy"),
        ("flags: {plugin: {deviceListStrategy: [envvar, smoke]}}", "device-list-strategy"),
        ("flags: {plugin: {deviceIDStrategy: name}}", "device-id-strategy"),
        ("flags: {plugin: {sharedDevicesAllocationPolicy: balanced}}", "allocation-policy"),
        (sharing("{resources: [{name: gpu, replicas: 2}]}", "mps"), "mps-root"),
        (sharing("{resources: [{name: gpu, replicas: 2}]}", "mps") + "\nflags: {migStrategy: mixed}", "mps-with-mixed"),
        (sharing("{resources: [{name: gpu, replicas: 49}]}", "mps") + "\nflags: {mpsRoot: /run/mps}", "mps-clients"),
        (resource("name: gpu, replicas: 100000"), "replicas-too-many"),
    ],
)
def test_the_plugin_does_not_start_with_values_that_it_does_not_know(text: str, refusal: str) -> None:
    file = parse_plugin_file(text)
    with pytest.raises(PluginConfigError) as raised:
        started_config(file, PluginFlags())
    assert raised.value.refusal == refusal


def test_values_of_the_file_come_before_defaults_and_names_are_found_in_any_case() -> None:
    text = (
        "flags: {migstrategy: single, plugin: {deviceListStrategy: envvar, passDeviceSpecs: true},"
        " gfd: {sleepInterval: 5s}}"
    )
    flags = parse_plugin_file(text).flags.over(PluginFlags(mig_strategy="mixed", mps_root="/mps"))
    assert (flags.mig_strategy, flags.mps_root, flags.device_list_strategy) == ("single", "/mps", ("envvar",))
    assert (flags.pass_device_specs, flags.features.sleep_interval_ns) == (True, 5_000_000_000)


def test_an_infinite_interval_is_no_interval() -> None:
    flags = parse_plugin_file("flags: {gfd: {sleepInterval: infinite}}").flags.over(PluginFlags())
    assert flags.features.sleep_interval_ns is None


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("*", "NVIDIA A100", True),
        ("1g.*", "1g.24gb", True),
        ("1g.*", "1gx24gb", False),
        ("A100*80GB", "A100-SXM4-80GB", True),
        ("A100", "A100-SXM4", False),
        ("1g.24gb+me.all", "1g.24gb+me.all", True),
        ("", "", True),
    ],
)
def test_only_a_star_is_special_in_patterns(pattern: str, text: str, matches: bool) -> None:
    assert pattern_matches(pattern, text) == matches
