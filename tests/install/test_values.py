"""The values of an installation: layers, types, unknown names, and values of guides that the chart does not have."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from shoal.install.cluster_policy import cluster_policy, component_configs, default_driver
from shoal.install.values.known import BY_PATH, OPTIONS
from shoal.install.values.reading import ChartValues, ValuesText, read_values
from shoal.units.errors import UserError


def _read(text: str = "", *sets: str, kept: dict[str, Any] | None = None) -> ChartValues:
    given = [ValuesText("--values", text, "values.yaml")] if text else []
    return read_values([*given, *(ValuesText("--set", one) for one in sets)], kept)


def _spec(text: str = "", *sets: str) -> dict[str, Any]:
    found: dict[str, Any] = cluster_policy(_read(text, *sets))["spec"]
    return found


def test_without_values_the_defaults_of_the_chart_apply_and_nothing_is_warned_about() -> None:
    values = _read()
    assert values.warnings == ()
    assert values.given == {}
    assert values.get("mig.strategy") == "single"
    assert (values.get("driver.enabled"), values.get("toolkit.enabled"), values.get("nfd.enabled")) == (True,) * 3


def test_each_option_has_one_line_of_documentation_and_one_name() -> None:
    assert len(BY_PATH) == len(OPTIONS)
    assert [one.path for one in OPTIONS if not one.about and not one.path.startswith("validator.")] == []


def test_a_set_option_wins_over_a_file_and_a_later_file_over_an_earlier_one() -> None:
    texts = [
        ValuesText("--set", "driver.version=3"),
        ValuesText("--values", "driver: {version: '1', enabled: false}", "a.yaml"),
        ValuesText("--values", "driver: {version: '2'}", "b.yaml"),
    ]
    values = read_values(texts)
    assert values.given == {"driver": {"version": "3", "enabled": False}}


def test_one_changed_value_keeps_the_others_of_the_present_installation() -> None:
    values = _read("", "driver.version=580.82.07", kept={"mig": {"strategy": "mixed"}})
    assert (values.get("mig.strategy"), values.get("driver.version")) == ("mixed", "580.82.07")
    assert values.given == {"mig": {"strategy": "mixed"}, "driver": {"version": "580.82.07"}}


def test_a_null_removes_the_default() -> None:
    values = _read("", "devicePlugin.mps.root=null,driver.enabled=null")
    assert (values.get("devicePlugin.mps.root"), values.get("driver.enabled")) == ("", False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("driver: {enabeld: false}", 'values.yaml: "driver.enabeld" is not an option'),
        ("driver: {enabeld: false}", "is ignored; did you mean driver.enabled?"),
        ("mig: {stategy: mixed}", "did you mean mig.strategy?"),
        ("dcgmExporters: {enabled: true}", "did you mean dcgmExporter"),
        ("driver: {enabled: 'false'}", 'driver.enabled: "false" is a text; it is read as false'),
        ("driver: {version: 580.10}", "write it in quotes"),
        ("devicePlugin: {config: {name: ts}}", "has no effect on nodes without the label"),
        ("nfd: {enabled: false}", "nodes get no GPU stack"),
        ("nodeFeatureDiscovery: {enabled: true}", "it is read as nfd.enabled"),
        ("mig: {strategy: mixed, config: all-1g.10gb}", "it is read as migManager.config.default=all-1g.10gb"),
        ("mps: {enabled: true, replicas: 8}", "8 replicas of nvidia.com/gpu"),
        ("toolkit: {version: 1.17.4}", "it is read as v1.17.4-ubuntu20.04"),
        ("toolkit: {version: v1.17.4-ubi8}", "lets containers escape"),
    ],
)  # fmt: skip
def test_warnings(text: str, words: str) -> None:
    warnings = _read(text).warnings
    assert any(words in one for one in warnings), warnings


def test_a_safe_toolkit_draws_no_warning() -> None:
    assert _read("toolkit: {version: v1.18.0}").warnings == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("driver: {enabled: maybe}", "values.yaml: driver.enabled: must be true or false"),
        ("driver: true", "driver is a group of options"),
        ("mig: {strategy: mixd}", "did you mean mixed?"),
        ("driver: {env: {A: b}}", "driver.env: must be a list"),
        ("driver: {version: [1]}", "driver.version: must be a text"),
        ("replicas: -1", "replicas: must be a whole number"),
        ("mps: {enabled: true, replicas: 1}", "at least 2"),
        ("- a", "is not an object"),
        ("a: 1\n---\nb: 2", "several documents"),
    ],
)
def test_errors(text: str, words: str) -> None:
    with pytest.raises(UserError) as caught:
        _read(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("driver: {enabled: false}", {"driver": {"enabled": False}}),
        ("toolkit: {enabled: false}", {"toolkit": {"enabled": False}}),
        ("mig: {strategy: mixed}", {"mig": {"strategy": "mixed"}}),
        (
            "devicePlugin: {config: {name: ts, default: any}}",
            {"devicePlugin": {"config": {"name": "ts", "default": "any"}}},
        ),
        (
            "dcgmExporter: {serviceMonitor: {enabled: true, interval: 30s}}",
            {"dcgmExporter": {"serviceMonitor": {"enabled": True, "interval": "30s"}}},
        ),
        (
            "driver: {upgradePolicy: {gpuPodDeletion: {force: true}, maxUnavailable: 2}}",
            {"driver": {"upgradePolicy": {"podDeletion": {"force": True}, "maxUnavailable": 2}}},
        ),
        ("driver: {nvidiaDriverCRD: {enabled: true}}", {"driver": {"useNvidiaDriverCRD": True}}),
        (
            "migManager: {env: [{name: WITH_REBOOT, value: 'true'}]}",
            {"migManager": {"env": [{"name": "WITH_REBOOT", "value": "true"}]}},
        ),
        ("driver: {version: 580.82.07}", {"driver": {"version": "580.82.07"}}),
        ("gds: {enabled: true}", {"gds": {"enabled": True}}),
    ],
)
def test_an_option_goes_to_the_field_of_its_name(text: str, expected: dict[str, Any]) -> None:
    assert _contains(_spec(text), expected)


def _contains(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(name in whole and _contains(whole[name], part[name]) for name in part)
    return bool(whole == part)


def test_without_an_image_a_component_is_shoals_and_driver_and_toolkit_are_nvidias() -> None:
    spec = _spec()
    assert [name for name, one in spec.items() if isinstance(one, dict) and "image" in one] == ["driver", "toolkit"]
    assert (spec["driver"]["version"], spec["toolkit"]["version"]) == ("580.95.05", "v1.18.0")


def test_what_the_published_definition_requires_is_always_there() -> None:
    required = {
        *("operator", "daemonsets", "driver", "toolkit", "devicePlugin", "dcgm", "dcgmExporter", "gfd"),
        *("nodeStatusExporter",),
    }
    assert required <= set(_spec())


def test_mps_of_a_guide_is_a_configuration_that_the_device_plugin_reads() -> None:
    from shoal.devices.plugin_config import parse_plugin_config

    values = _read("mps: {enabled: true, replicas: 8}")
    (config,) = component_configs(values, "gpu-operator")
    plugin = cluster_policy(values)["spec"]["devicePlugin"]
    assert plugin["config"] == {"name": config["metadata"]["name"], "default": "mps"}
    parsed = parse_plugin_config(config["data"]["mps"], "none")
    assert (parsed.sharing, parsed.replicas_of("nvidia.com/gpu")) == ("mps", 8)


def test_a_configuration_that_is_created_has_a_name_of_its_own() -> None:
    values = _read("migManager: {config: {create: true, data: {config.yaml: 'version: v1'}}}")
    (config,) = component_configs(values, "ns")
    assert config["metadata"] == {"name": "mig-parted-config", "namespace": "ns"}
    assert cluster_policy(values)["spec"]["migManager"]["config"]["name"] == "mig-parted-config"


def test_drivers_described_by_objects_begin_with_one_default() -> None:
    (driver,) = default_driver(_read("driver: {nvidiaDriverCRD: {enabled: true}, kernelModuleType: open}"))
    assert driver["spec"]["kernelModuleType"] == "open"
    assert default_driver(_read()) == []


def test_values_that_were_read_are_read_again_in_the_same_way() -> None:
    first = _read("mps: {enabled: true, replicas: 4}\nmig: {strategy: none}")
    again = _read(yaml.safe_dump(first.given))
    assert again.effective == first.effective
    assert again.warnings == ()


def test_the_documented_values_are_the_defaults_and_change_nothing() -> None:
    from shoal.install.values.documented import documented_values

    text = documented_values()
    values = read_values([ValuesText("--values", text, "values.yaml")])
    assert values.warnings == ()
    assert values.effective == read_values([]).effective
    assert "  # Install NVIDIA's driver on nodes with GPUs; false where the hosts have it.\n  enabled: true\n" in text
