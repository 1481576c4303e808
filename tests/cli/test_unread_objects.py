"""`shoal why` of an object that no decision reads: its pods, over however many makers between."""

from __future__ import annotations

import json

from build.manifests import Object, pod, replicas
from shoal.api.decode import read
from shoal.cli.unread_objects import Unread, explain_unread

SERVICE = Unread("InferenceService", "t", "llama")


def owned(obj: Object, kind: str, name: str) -> Object:
    obj["metadata"]["ownerReferences"] = [
        {"apiVersion": "x/v1", "kind": kind, "name": name, "uid": "1", "controller": True}
    ]
    return obj


def told(*objects: Object) -> tuple[str, dict[str, list[str]]]:
    documents = read(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}), "world.json")
    explanation = explain_unread(SERVICE, documents)
    assert explanation.title == "inferenceservice t/llama"
    return explanation.outcome, dict(explanation.chapters)


def test_pods_are_found_below_those_that_the_operator_made() -> None:
    outcome, chapters = told(
        owned(replicas("Deployment", "t/predictor", 2), "InferenceService", "llama"),
        owned(replicas("ReplicaSet", "t/predictor-1", 2), "Deployment", "predictor"),
        owned(pod("t/runs", on="n", status={"phase": "Running"}), "ReplicaSet", "predictor-1"),
        owned(pod("t/waits"), "ReplicaSet", "predictor-1"),
        owned(pod("t/ended", on="n", status={"phase": "Succeeded"}), "ReplicaSet", "predictor-1"),
        owned(pod("u/of-another-namespace"), "InferenceService", "llama"),
        pod("t/of-nobody"),
    )
    assert outcome == "exists; pods: 1 runs, 1 waits"
    assert chapters["pods"] == ["n: runs", "those that wait: waits"]


def test_owners_in_a_ring_end_somewhere() -> None:
    ring = [
        owned(replicas("ReplicaSet", f"t/{one}", 1), "ReplicaSet", other) for one, other in (("a", "b"), ("b", "a"))
    ]
    outcome, _ = told(*ring, owned(pod("t/lost"), "ReplicaSet", "a"))
    assert outcome == "exists and has no pods yet"
