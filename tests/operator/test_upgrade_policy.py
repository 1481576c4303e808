"""Reading `upgradePolicy`: the values as written, and a refusal that names the field."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.operator.upgrades.policy import PodRemoval, UpgradePolicy, drain_selector, parse_upgrade_policy
from shoal.units.errors import UserError, Where

AT = Where(path="spec.driver.upgradePolicy")


def parsed(**written: Any) -> UpgradePolicy:
    return parse_upgrade_policy(written, AT)


def test_a_policy_is_read_as_it_is_written() -> None:
    found = parsed(
        autoUpgrade=True,
        maxParallelUpgrades=2,
        maxUnavailable="25%",
        drain={"enable": True, "force": True, "podSelector": "a=b", "timeoutSeconds": 300, "deleteEmptyDir": True},
        podDeletion={"timeoutSeconds": 60},
        waitForCompletion={"podSelector": "app=job", "timeoutSeconds": 30},
    )
    assert (found.is_automatic, found.max_parallel, found.max_unavailable, found.jobs_timeout_s) == (True, 2, "25%", 30)
    assert found.drain == PodRemoval(
        is_enabled=True, is_forced=True, pod_selector="a=b", timeout_s=300, deletes_empty_dirs=True
    )
    assert found.pod_deletion == PodRemoval(timeout_s=60)
    assert found.jobs is not None
    assert found.jobs.matches({"app": "job"})
    assert not found.jobs.matches({"app": "web"})


def test_nothing_is_added_to_what_is_written() -> None:
    assert parse_upgrade_policy(None, AT) == parsed() == UpgradePolicy()
    assert parsed(waitForCompletion={"podSelector": ""}).jobs is None
    assert parsed(drain=None, maxUnavailable=None, waitForCompletion=None) == UpgradePolicy()


def test_pod_deletion_is_read_by_both_of_its_names() -> None:
    assert parsed(gpuPodDeletion={"force": True}).pod_deletion == parsed(podDeletion={"force": True}).pod_deletion
    assert parsed(gpuPodDeletion={"force": True}).pod_deletion.is_forced


@pytest.mark.parametrize(
    ("written", "nodes", "most"),
    [(None, 7, 7), (3, 7, 3), (0, 7, 0), ("25%", 4, 1), ("25%", 5, 2), ("0%", 5, 0), ("100%", 5, 5), ("25%", 0, 0)],
)
def test_the_most_unavailable_nodes(written: int | str | None, nodes: int, most: int) -> None:
    assert parsed(maxUnavailable=written).most_unavailable(nodes) == most


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"maxParallelUpgrades": -1}, "maxParallelUpgrades: must be a whole number, 0 or more"),
        ({"maxParallelUpgrades": "1"}, "maxParallelUpgrades: must be a whole number, 0 or more"),
        ({"autoUpgrade": "yes"}, "autoUpgrade: must be true or false"),
        ({"drain": []}, "drain: must be an object"),
        ({"drain": {"enable": 1}}, "drain.enable: must be true or false"),
        ({"drain": {"podSelector": 5}}, "drain.podSelector: must be a text"),
        ({"drain": {"podSelector": "a=("}}, 'drain.podSelector: selector "a=(": found "(", expected a value'),
        ({"podDeletion": {"timeoutSeconds": 1.5}}, "podDeletion.timeoutSeconds: must be a whole number, 0 or more"),
        ({"gpuPodDeletion": {"force": "no"}}, "gpuPodDeletion.force: must be true or false"),
        (
            {"waitForCompletion": {"podSelector": "app in"}},
            "waitForCompletion.podSelector: selector \"app in\": found the end, expected '('",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(written: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_upgrade_policy(written, AT)
    assert str(caught.value) == f"spec.driver.upgradePolicy.{message}"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a quarter", '"a quarter"'),
        ("25", '"25"'),
        ("-1%", '"-1%"'),
        ("1234567890%", '"1234567890%"'),
        (True, "True"),
        (-1, "-1"),
    ],
)
def test_a_wrong_number_of_unavailable_nodes_is_refused(written: Any, shown: str) -> None:
    with pytest.raises(UserError) as caught:
        parsed(maxUnavailable=written)
    wrong = f"{shown} is neither a number of nodes nor a percentage"
    assert str(caught.value) == f'spec.driver.upgradePolicy.maxUnavailable: {wrong}; write e.g. 2 or "25%"'


def test_a_label_keeps_a_pod_during_the_drain() -> None:
    plain, chosen = drain_selector(parsed()), drain_selector(parsed(drain={"podSelector": "team=a"}))
    skip = {"nvidia.com/gpu-driver-upgrade-drain.skip": "true"}
    assert (plain.matches({}), plain.matches(skip)) == (True, False)
    assert [chosen.matches(labels) for labels in ({}, {"team": "a"}, {"team": "a", **skip})] == [False, True, False]
