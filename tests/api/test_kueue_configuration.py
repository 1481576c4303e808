"""Kueue's configuration: what it leaves out, what the older version meant, and what it cannot say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shoal.api.decode import read
from shoal.api.kueue import Configuration
from shoal.api.kueue.config_map import unwrapped
from shoal.api.kueue.durations import seconds
from shoal.units.errors import UserError, Where
from shoal.units.quantity import Quantity

OLD, NEW = "config.kueue.x-k8s.io/v1beta1", "config.kueue.x-k8s.io/v1beta2"


def only(version: str, **rest: Any) -> Configuration:
    (document,) = read(json.dumps({"apiVersion": version, "kind": "Configuration", **rest}), "c.json")
    assert isinstance(document.value, Configuration)
    return document.value


def test_the_new_version_waits_for_pods_unless_told_not_to() -> None:
    configuration = only(NEW)
    assert configuration.waits_for_pods_ready()
    wait = configuration.wait_for_pods_ready
    assert (wait.timeout_s(), wait.recovery_s(), wait.block_admission) == (1800.0, 1800.0, False)
    assert (wait.requeuing_strategy.timestamp, wait.requeuing_strategy.backoff_limit_count) == ("Eviction", None)
    assert not only(NEW, featureGates={"DisableWaitForPodsReady": True}).waits_for_pods_ready()


def test_the_old_version_waits_only_where_it_says_so_and_then_blocks() -> None:
    assert not only(OLD).waits_for_pods_ready()
    assert not only(OLD, waitForPodsReady={"timeout": "1h"}).waits_for_pods_ready()
    wait = only(OLD, waitForPodsReady={"enable": True}).wait_for_pods_ready
    assert (wait.enable, wait.timeout_s(), wait.recovery_s(), wait.block_admission) == (True, 300.0, None, True)
    assert not only(OLD, waitForPodsReady={"enable": True, "blockAdmission": False}).wait_for_pods_ready.block_admission


def test_fair_sharing_is_on_by_being_there_and_in_the_old_version_by_its_switch() -> None:
    assert only(NEW).fair_sharing is None
    sharing = only(NEW, fairSharing={}).fair_sharing
    assert sharing is not None
    assert sharing.preemption_strategies == ("LessThanOrEqualToFinalShare", "LessThanInitialShare")
    assert only(OLD, fairSharing={"enable": False}).fair_sharing is None
    assert only(OLD, fairSharing={"enable": True}).fair_sharing == sharing


def test_resources_and_usage_are_read() -> None:
    configuration = only(
        NEW,
        resources={
            "quotaCheckStrategy": "IgnoreUndeclared",
            "excludeResourcePrefixes": ["example.com/"],
            "transformations": [{"input": "gpu", "strategy": "Replace", "outputs": {"credits": "500m"}}],
        },
        admissionFairSharing={"usageHalfLifeTime": "168h", "resourceWeights": {"cpu": 2}},
        controller={"groupKindConcurrency": {"Job.batch": 5}},
    )
    (transformation,) = configuration.resources.transformations
    assert transformation.outputs == {"credits": Quantity.parse("0.5")}
    sharing = configuration.admission_fair_sharing
    assert sharing is not None
    assert (sharing.half_life_s(), sharing.sampling_s(), sharing.resource_weights) == (604800.0, 300.0, {"cpu": 2.0})


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a time without a unit": ({"waitForPodsReady": {"timeout": "300"}}, "waitForPodsReady.timeout", "write e.g. 300s"),
    "a time that has passed": (
        {"admissionFairSharing": {"usageHalfLifeTime": "-1h"}},
        "admissionFairSharing.usageHalfLifeTime",
        "0 or more",
    ),
    "a strategy nobody has": (
        {"fairSharing": {"preemptionStrategies": ["Fair"]}},
        "fairSharing.preemptionStrategies[0]",
        "supported values are",
    ),
    "strategies the wrong way around": (
        {"fairSharing": {"preemptionStrategies": ["LessThanInitialShare", "LessThanOrEqualToFinalShare"]}},
        "fairSharing.preemptionStrategies",
        "turn the two around",
    ),
    "one resource transformed twice": (
        {"resources": {"transformations": [{"input": "a"}, {"input": "a"}]}},
        "resources.transformations[1].input",
        '"a" is transformed twice',
    ),
    "less than nothing for something": (
        {"resources": {"transformations": [{"input": "a", "outputs": {"b": "-1"}}]}},
        "resources.transformations[0].outputs.b",
        "must be 0 or more",
    ),
}


@pytest.mark.parametrize(("raw", "field", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(raw: dict[str, Any], field: str, why: str) -> None:
    with pytest.raises(UserError) as caught:
        only(NEW, **raw)
    assert caught.value.where.path == field
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0.0), ("0s", 0.0), ("90s", 90.0), ("1h30m", 5400.0), ("1.5h", 5400.0), ("250ms", 0.25), (".5m", 30.0)],
)
def test_lengths_of_time(text: str, expected: float) -> None:
    assert seconds(text, Where()) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "1h-3m", "five", "5m!", "1d", "9" * 100 + "s"])
def test_what_is_no_length_of_time(text: str) -> None:
    with pytest.raises(UserError, match="is not a length of time"):
        seconds(text, Where())


def config_map(text: str) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
            "data": {"controller_manager_config.yaml": text, "other": "text"},
        }
    )


def test_a_configuration_inside_a_config_map_is_found() -> None:
    inside = f"apiVersion: {NEW}\nkind: Configuration\nfairSharing: {{}}\n"
    _, document = unwrapped(read(config_map(inside), "m.json"))
    assert isinstance(document.value, Configuration)
    assert document.value.fair_sharing is not None
    assert document.where.path == "data[controller_manager_config.yaml]"


def test_a_mistake_inside_a_config_map_names_both_places() -> None:
    inside = f"apiVersion: {NEW}\nkind: Configuration\nfairSharing: 3\n"
    with pytest.raises(UserError) as caught:
        list(unwrapped(read(config_map(inside), "m.json")))
    text = str(caught.value)
    assert "ConfigMap kueue-system/kueue-manager-config" in text
    assert "data[controller_manager_config.yaml]: fairSharing: expected a mapping" in text
