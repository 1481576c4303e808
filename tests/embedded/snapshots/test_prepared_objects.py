"""Which objects of a snapshot are created, in which order, and how they differ from what they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shoal.embedded.snapshots.preparation import Prepared, with_uids
from shoal.embedded.snapshots.preparation import prepared as prepared_for
from shoal.embedded.snapshots.reading import read_objects
from shoal.units.errors import UserError

Obj = dict[str, Any]
NODE: Obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


def prepared(objects: list[Obj], devices: tuple[str, ...] = ()) -> Prepared:
    """`devices`: the ids of the node n."""
    return prepared_for(objects, lambda node, device: node == "n" and device in devices)


def thing(kind: str, name: str, owner: str = "", **more: Any) -> Obj:
    meta: Obj = {"name": name, "namespace": "t", "uid": f"uid-{name}", "resourceVersion": "7"} | more.pop("meta", {})
    if owner:
        meta["ownerReferences"] = [{"kind": "Owner", "name": owner, "uid": f"uid-{owner}", "controller": True}]
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": more.pop("spec", {}), **more}


def pod(name: str, owner: str = "", phase: str = "Running", **spec: Any) -> Obj:
    made = {"nodeName": "n", "containers": [{"name": "c"}], **spec}
    return thing("Pod", name, owner, spec=made, status={"phase": phase})


def names(objects: list[Obj], *kinds: str) -> list[str]:
    return [each["metadata"]["name"] for each in objects if each["kind"] in kinds]


def test_owners_come_before_what_they_own_and_rules_that_refuse_pods_last() -> None:
    given = [pod("p", "rs"), thing("ResourceQuota", "q"), thing("ReplicaSet", "rs", "d"), thing("Deployment", "d")]
    found = prepared([NODE, *given]).objects
    assert names(found, "Deployment", "ReplicaSet", "Pod", "ResourceQuota") == ["d", "rs", "p", "q"]


def test_older_objects_come_first() -> None:
    jobs = [
        thing("Job", f"j{at}", meta={"creationTimestamp": f"2026-01-0{at}T00:00:00Z"}, spec={"template": {}})
        for at in (3, 1, 2)
    ]
    assert names(prepared([NODE, *jobs]).objects, "Job") == ["j1", "j2", "j3"]


def test_an_owner_that_is_not_in_the_snapshot_is_no_owner() -> None:
    (found,) = [each for each in prepared([NODE, pod("p", "gone")]).objects if each["kind"] == "Pod"]
    assert found["metadata"]["ownerReferences"] == []


@pytest.mark.parametrize(
    ("obj", "why"),
    [
        (thing("Event", "e"), "they tell of the other cluster"),
        (thing("Pod", "p", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}), "they were being deleted"),
        (pod("p", nodeName="other"), "their nodes are not in the snapshot"),
        (
            thing("Pod", "p", meta={"annotations": {"kubernetes.io/config.mirror": "x"}}),
            "they are static pods of their nodes",
        ),
        (thing("Secret", "s", type="kubernetes.io/service-account-token"), "tokens are of the other cluster"),
    ],
)
def test_what_has_no_meaning_in_a_copy_is_left_out_with_the_reason(obj: Obj, why: str) -> None:
    found = prepared([NODE, obj])
    assert names(found.objects, obj["kind"]) == []
    assert [(left.kind, left.why) for left in found.left_out] == [(obj["kind"], why)]


def test_pods_that_run_have_no_status_and_no_end_and_pods_that_ended_keep_theirs() -> None:
    given = [
        pod("job", restartPolicy="Never"),
        pod("service"),
        pod("chosen", restartPolicy="Never"),
        pod("over", phase="Failed", restartPolicy="Never"),
    ]
    given[2]["metadata"]["annotations"] = {"shoal.dev/run-for": "5m"}
    found = {each["metadata"]["name"]: each for each in prepared([NODE, *given]).objects if each["kind"] == "Pod"}
    assert found["job"]["metadata"]["annotations"] == {"shoal.dev/run-for": "87600h"}
    assert "annotations" not in found["service"]["metadata"]
    assert found["chosen"]["metadata"]["annotations"] == {"shoal.dev/run-for": "5m"}
    assert [name for name, each in found.items() if "status" in each] == ["over"]
    assert {each["spec"]["nodeName"] for each in found.values()} == {"n"}


def test_the_selector_of_a_job_is_made_anew() -> None:
    labels = {"controller-uid": "u", "batch.kubernetes.io/controller-uid": "u", "job-name": "j", "app": "x"}
    template = {"metadata": {"labels": labels}, "spec": {"restartPolicy": "Never", "containers": []}}
    job = thing("Job", "j", spec={"selector": {"matchLabels": {"controller-uid": "u"}}, "template": template})
    (found,) = [each for each in prepared([NODE, job]).objects if each["kind"] == "Job"]
    assert "selector" not in found["spec"]
    assert found["spec"]["template"]["metadata"]["labels"] == {"app": "x"}
    assert found["spec"]["template"]["metadata"]["annotations"] == {"shoal.dev/run-for": "87600h"}


def test_namespaces_accounts_and_priority_classes_that_are_missing_are_added() -> None:
    found = prepared([NODE, pod("p", serviceAccountName="robot", priorityClassName="high", priority=1000)])
    assert sorted((each["kind"], each["metadata"]["name"]) for each in found.made) == [
        ("Namespace", "t"),
        ("PriorityClass", "high"),
        ("ServiceAccount", "default"),
        ("ServiceAccount", "robot"),
    ]
    (made,) = [each for each in found.made if each["kind"] == "PriorityClass"]
    assert made["value"] == 1000
    assert names(found.objects, "Namespace", "PriorityClass", "ServiceAccount", "Pod")[-1] == "p"


def test_a_volume_whose_place_is_not_told_is_in_a_folder_and_bound_by_name() -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": "c", "namespace": "t", "uid": "u"}
    bare = thing("PersistentVolume", "v", spec={"capacity": {"storage": "1Gi"}, "claimRef": claim})
    told = thing("PersistentVolume", "w", spec={"csi": {"driver": "d", "volumeHandle": "h"}})
    found = {each["metadata"]["name"]: each["spec"] for each in prepared([NODE, bare, told]).objects if "spec" in each}
    assert found["v"]["hostPath"] == {"path": "/snapshot/v"}
    assert "uid" not in found["v"]["claimRef"]
    assert "hostPath" not in found["w"]


def test_uids_are_translated_wherever_they_are() -> None:
    given = {"labels": {"controller-uid": "old"}, "owners": [{"uid": "old", "name": "older"}], "count": 3}
    assert with_uids(given, {"old": "new"}) == {
        "labels": {"controller-uid": "new"},
        "owners": [{"uid": "new", "name": "older"}],
        "count": 3,
    }


def test_owners_in_a_circle_end_no_program() -> None:
    assert len(names(prepared([NODE, thing("A", "a", "b"), thing("A", "b", "a")]).objects, "A")) == 2


@pytest.mark.parametrize("form", ["list", "typed list", "documents"])
def test_lists_and_documents_are_read_with_all_fields(form: str, tmp_path: Path) -> None:
    given = [pod("a"), pod("b")]
    match form:
        case "list":
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": given})
        case "typed list":
            items = [{key: value for key, value in each.items() if key not in ("apiVersion", "kind")} for each in given]
            text = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items})
        case _:
            text = "\n---\n".join(map(json.dumps, given))
    (tmp_path / "file.json").write_text(text)
    assert read_objects(tmp_path / "file.json") == given


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "has no objects"), ("a: 1", "expected an object with apiVersion and kind"), ("[1]", "kind")],
)
def test_a_file_without_objects_is_one_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "file.yaml").write_text(text)
    with pytest.raises(UserError, match=words):
        read_objects(tmp_path / "file.yaml")


@pytest.mark.parametrize(("ids", "is_kept"), [(["GPU-a"], True), (["GPU-a", "GPU-b"], False)])
def test_devices_that_the_node_does_not_have_are_chosen_again(ids: list[str], is_kept: bool) -> None:
    given = pod("p")
    given["metadata"]["annotations"] = {"shoal.dev/devices": json.dumps({"c": {"nvidia.com/gpu": ids}}), "other": "x"}
    found = prepared([NODE, given], devices=("GPU-a",))
    (made,) = [each for each in found.objects if each["kind"] == "Pod"]
    assert ("shoal.dev/devices" in made["metadata"]["annotations"]) is is_kept
    assert made["metadata"]["annotations"]["other"] == "x"
    assert [left.kind for left in found.left_out] == ["choice of GPUs by a Pod"] * (not is_kept)
