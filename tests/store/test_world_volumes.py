"""Volumes among manifests: pods of a cluster wait for them as they do there; pods written by hand go where they may."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shoal.api.decode import read
from shoal.engine.events import PodArrived
from shoal.engine.reasons import Code
from shoal.store.held_pods import HeldPod
from shoal.store.manifest_cluster import ManifestCluster, manifest_cluster_of

Obj = dict[str, Any]
NONE_MAKES_IT = "kubernetes.io/no-provisioner"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def world(*objects: Obj) -> ManifestCluster:
    return manifest_cluster_of(read(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}), "w.json"))


def node(name: str) -> Obj:
    room = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": room},
    }


def pod(name: str = "p", *, uid: str = "u", claim: str = "data", node: str = "", **volume: Any) -> Obj:
    mounted = volume or {"persistentVolumeClaim": {"claimName": claim}}
    spec = {
        "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
        "volumes": [{"name": "v", **mounted}],
        "nodeName": node,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "uid": uid}, "spec": spec}


def claim(volume: str = "", *, class_: str = "", mode: str = "ReadWriteOnce", phase: str = "Bound") -> Obj:
    spec: Obj = {"accessModes": [mode], "storageClassName": class_, "resources": {"requests": {"storage": "1Gi"}}}
    meta: Obj = {"name": "data", "namespace": "default", "uid": "c"}
    if volume:
        spec["volumeName"] = volume
        meta["annotations"] = BOUND
    made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
    return {**made, "status": {"phase": phase}}


def volume(name: str, on: str, class_: str = "", phase: str = "Available") -> Obj:
    there = {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_,
        "nodeAffinity": affinity,
    }
    made = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
    return {**made, "status": {"phase": phase}}


def storage_class(provisioner: str = "x", mode: str = "Immediate") -> Obj:
    made = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    return {**made, "provisioner": provisioner, "volumeBindingMode": mode}


def waits_for(found: ManifestCluster, key: str = "default/p") -> str:
    hold = found.gated[key]
    assert isinstance(hold, HeldPod)
    assert hold.code == Code.VOLUMES
    assert key not in {event.key for event in found.events if isinstance(event, PodArrived)}
    return hold.message


def help_of(found: ManifestCluster) -> str:
    hold = found.gated["default/p"]
    assert isinstance(hold, HeldPod)
    return hold.help


def goes_to(found: ManifestCluster, *nodes: str) -> set[str]:
    (event,) = (each for each in found.events if isinstance(each, PodArrived))
    assert not found.warnings
    terms = event.ask.nodes
    return {name for name in nodes if terms.matches(name, {"kubernetes.io/hostname": name})}


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        ([storage_class()], 'persistentvolumeclaim "data" not found'),
        ([claim(phase="Pending")], "pod has unbound immediate PersistentVolumeClaims"),
        (
            [claim("gone", phase="Lost")],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"',
        ),
        ([claim("gone")], "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
        (
            [storage_class(NONE_MAKES_IT, "WaitForFirstConsumer"), claim(class_="fast", phase="Pending")],
            "node(s) didn't find available persistent volumes to bind",
        ),
        (
            [volume("v", "n1"), claim("v", mode="ReadWriteOncePod"), pod("other", node="n1")],
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
        ),
    ],
)
def test_a_pod_of_a_cluster_waits_for_its_volumes_in_the_clusters_words(objects: list[Obj], words: str) -> None:
    assert waits_for(world(node("n1"), *objects, pod())) == words


def test_the_claim_that_a_misspelled_name_resembles_is_named() -> None:
    found = world(node("n1"), pod(claim="datta"), claim("v"), volume("v", "n1", phase="Bound"))
    assert help_of(found) == "Create the claim, or correct its name in the pod. Did you mean data?"


def test_a_class_that_does_not_exist_is_named_with_the_nearest() -> None:
    classes = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}}
    words = help_of(world(node("n1"), pod(), claim(class_="fsat", phase="Pending"), {**classes, "provisioner": "p"}))
    assert words.startswith('StorageClass "fsat" of claim default/data not found. Create the claim again')
    assert words.endswith("Did you mean fast?")


def test_a_claim_of_its_own_has_to_be_made_first() -> None:
    found = world(node("n1"), storage_class(), pod(ephemeral={"volumeClaimTemplate": {"spec": {}}}))
    assert 'ephemeral volume controller to create the persistentvolumeclaim "p-v"' in waits_for(found)


@pytest.mark.parametrize("uid", ["u", ""])
def test_a_bound_volume_ties_its_pod_to_the_nodes_that_reach_it(uid: str) -> None:
    found = world(node("n1"), node("n2"), volume("v", "n2", phase="Bound"), claim("v"), pod(uid=uid))
    assert goes_to(found, "n1", "n2") == {"n2"}


def test_a_claim_that_waits_for_its_pod_goes_where_a_volume_is_or_can_be_made() -> None:
    late = claim(class_="fast", phase="Pending")
    local = storage_class(NONE_MAKES_IT, "WaitForFirstConsumer")
    found = world(node("n1"), node("n2"), local, volume("v", "n1", "fast"), late, pod())
    assert goes_to(found, "n1", "n2") == {"n1"}
    anywhere = world(node("n1"), node("n2"), storage_class("x", "WaitForFirstConsumer"), late, pod())
    assert goes_to(anywhere, "n1", "n2") == {"n1", "n2"}


@pytest.mark.parametrize("objects", [[], [storage_class()], [claim(phase="")], [claim("gone")]])
def test_a_pod_written_by_hand_waits_for_no_volume(objects: list[Obj]) -> None:
    assert goes_to(world(node("n1"), *objects, pod(uid="")), "n1") == {"n1"}


def test_a_picture_without_any_volume_says_nothing_about_them() -> None:
    assert goes_to(world(node("n1"), pod()), "n1") == {"n1"}


def test_a_claim_that_cannot_be_read_is_left_out_with_a_warning() -> None:
    odd = claim("v")
    odd["spec"]["resources"]["requests"]["storage"] = "much"
    found = world(node("n1"), storage_class(), odd, pod())
    assert 'claim "data" not found' in waits_for(found)
    (said,) = found.warnings
    assert "PersistentVolumeClaim default/data" in said
    assert "left out" in said


def test_pods_on_nodes_are_there_whatever_became_of_their_volumes() -> None:
    assert world(node("n1"), storage_class(), pod(node="n1")).gated == {}
