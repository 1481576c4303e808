"""Finds the ReplicaSet with the template of a Deployment, or builds a new one."""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy

from shoal.client.item import Obj
from shoal.client.kind import DEPLOYMENTS
from shoal.client.owned_pods.ownership import controller_reference
from shoal.client.owned_pods.template_hash import template_hash

HASH = "pod-template-hash"


def same_template(one: Obj, other: Obj) -> bool:
    """Compares templates without the hash label, which only ReplicaSets have."""
    return _unhashed(one) == _unhashed(other)


def newest(deployment: Obj, sets: Iterable[Obj]) -> Obj | None:
    """The oldest one with the right template: two may have it after a race, and the choice must not change."""
    template = deployment["spec"]["template"]
    fitting = [one for one in sets if same_template(one["spec"]["template"], template)]
    return min(fitting, key=by_age, default=None)


def by_age(one: Obj) -> tuple[str, str]:
    return one["metadata"].get("creationTimestamp", ""), one["metadata"]["name"]


def made_set(deployment: Obj, replicas: int, annotations: dict[str, str]) -> Obj:
    meta, spec = deployment["metadata"], deployment["spec"]
    collisions = (deployment.get("status") or {}).get("collisionCount")
    hashed = template_hash(_unhashed(spec["template"]), collisions)
    template = deepcopy(spec["template"])
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH: hashed}
    template["metadata"] = {**(template.get("metadata") or {}), "labels": labels}
    selector = deepcopy(spec["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: hashed}
    made = {"replicas": replicas, "selector": selector, "template": template}
    if spec.get("minReadySeconds"):
        made["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "metadata": {
            "name": f"{meta['name']}-{hashed}",
            "namespace": meta["namespace"],
            "labels": dict(labels),
            "annotations": annotations,
            "ownerReferences": [controller_reference(DEPLOYMENTS, meta)],
        },
        "spec": made,
    }


def _unhashed(template: Obj) -> Obj:
    meta = template.get("metadata") or {}
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH}
    rest = {key: value for key, value in meta.items() if key not in ("labels", "creationTimestamp") and value}
    return {**template, "metadata": {**rest, "labels": labels}}
