"""Objects of the API as facts of an upgrade: revisions, driver pods, validators."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shoal.client.item import Item
from shoal.controllers.driver_upgrades.upgrade_facts import (
    DriverRevisions,
    component_nodes,
    driver_pod_item,
    node_head,
    upgrade_node,
)

_LABELS = {"app": "nvidia-driver-daemonset"}


def item(name: str, obj: dict[str, Any]) -> Item:
    metadata = {"name": name, "namespace": "ns", "uid": name, **obj.pop("metadata", {})}
    return Item("ns", name, name, 1, json.dumps({"metadata": metadata, **obj}).encode())


def daemon_set(name: str = "driver", generation: int = 1, observed: int = 1, **labels: str) -> Item:
    template = {"metadata": {"labels": labels or _LABELS}}
    obj = {"metadata": {"generation": generation}, "spec": {"template": template}}
    return item(name, {**obj, "status": {"observedGeneration": observed}})


def revision(number: int, hashed: str = "", owner: str = "driver") -> Item:
    metadata: dict[str, Any] = {"ownerReferences": [{"kind": "DaemonSet", "name": owner, "uid": owner}]}
    metadata["ownerReferences"][0] |= {"apiVersion": "apps/v1", "controller": True}
    metadata["labels"] = {"controller-revision-hash": hashed} if hashed else {}
    return item(f"driver-h{number}", {"metadata": metadata, "revision": number})


@pytest.mark.parametrize(
    ("sets", "revisions", "hashed", "is_current"),
    [
        pytest.param([daemon_set()], [revision(1), revision(2)], "h2", True, id="the newest revision is current"),
        pytest.param([daemon_set()], [revision(2), revision(1)], "h1", False, id="an older one is not"),
        pytest.param([daemon_set()], [revision(10, "x"), revision(9)], "x", True, id="a label names the hash"),
        pytest.param([daemon_set(generation=2)], [revision(1)], "h0", True, id="an unseen spec decides nothing"),
        pytest.param([daemon_set()], [], "h1", True, id="without revisions nothing is decided"),
        pytest.param([daemon_set(app="other")], [revision(2)], "h1", True, id="other DaemonSets are no drivers"),
        pytest.param([daemon_set()], [revision(2, owner="x"), revision(1)], "h1", True, id="revisions of others"),
    ],
)
def test_a_driver_pod_is_current_if_it_has_the_newest_revision_of_its_daemon_set(
    sets: list[Item], revisions: list[Item], hashed: str, is_current: bool
) -> None:
    assert DriverRevisions(sets, revisions).has_current("driver", hashed) is is_current


def driver_pod(name: str, hashed: str, labels: dict[str, str] | None = None, *, is_terminating: bool = False) -> Item:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "driver", "uid": "driver", "controller": True}
    metadata: dict[str, Any] = {
        "labels": {**(labels or _LABELS), "controller-revision-hash": hashed},
        "ownerReferences": [owner],
    }
    if is_terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"phase": "Running", "containerStatuses": [{"name": "c", "ready": True, "restartCount": 3}]}
    return item(name, {"metadata": metadata, "spec": {"nodeName": "n1"}, "status": status})


NODE = node_head(
    item(
        "n1",
        {
            "metadata": {"labels": {"nvidia.com/gpu-driver-upgrade-state": "upgrade-done"}},
            "spec": {"unschedulable": True},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        },
    )
)
REVISIONS = DriverRevisions([daemon_set()], [revision(2)])


def test_a_node_has_the_state_of_its_label_and_the_driver_pod_that_is_not_terminating() -> None:
    pods = [driver_pod("old", "h1", is_terminating=True), driver_pod("new", "h2")]
    found = upgrade_node("n1", NODE, pods, (), REVISIONS)
    assert (found.state, found.is_unschedulable, found.is_ready) == ("upgrade-done", True, True)
    assert found.driver_pod is not None
    assert found.driver_pod.runs_current_driver
    assert found.driver_pod.containers[0].restarts == 3
    chosen = driver_pod_item(pods)
    assert chosen is not None
    assert chosen.name == "new"


def test_a_terminating_driver_pod_is_known_and_not_deleted_again() -> None:
    pods = [driver_pod("old", "h1", is_terminating=True)]
    found = upgrade_node("n1", NODE, pods, (), REVISIONS)
    assert found.driver_pod is not None
    assert found.driver_pod.is_terminating
    assert driver_pod_item(pods) is None


@pytest.mark.parametrize(
    ("labels", "nodes"),
    [
        ({"app": "nvidia-driver-daemonset"}, ("n1",)),
        ({"app.kubernetes.io/component": "nvidia-driver"}, ("n1",)),
        ({"app": "nvidia-operator-validator"}, ("n1",)),
        ({"app": "nvidia-driver-daemonset-of-others"}, ()),
        ({"app": "web"}, ()),
    ],
)
def test_driver_and_validator_pods_are_found_by_their_labels(labels: dict[str, str], nodes: tuple[str, ...]) -> None:
    assert component_nodes(driver_pod("p", "h", labels)) == nodes
