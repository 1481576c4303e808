"""Builds and reads ControllerRevisions: their data, template, hash and name.

The data is a patch that `kubectl rollout undo` applies to the owner; therefore its template contains `$patch: replace`.
"""

from __future__ import annotations

from copy import deepcopy

from shoal.client.item import Obj
from shoal.client.kind import Kind
from shoal.client.owned_pods.ownership import controller_reference
from shoal.client.owned_pods.template_hash import template_hash


def data_of(template: Obj) -> Obj:
    return {"spec": {"template": {**deepcopy(template), "$patch": "replace"}}}


def template_of(revision: Obj) -> Obj:
    template = deepcopy(revision["data"]["spec"]["template"])
    template.pop("$patch", None)
    return dict(template)


def in_order(revisions: list[Obj]) -> list[Obj]:
    """Oldest first."""
    return sorted(revisions, key=_age)


def made_revision(owner: tuple[Kind, Obj], hash_label: str, number: int, collisions: int) -> Obj:
    kind, obj = owner
    meta, template = obj["metadata"], obj["spec"]["template"]
    hashed = template_hash(data_of(template), collisions)
    labels = (template.get("metadata") or {}).get("labels") or {}
    return {
        "metadata": {
            "name": f"{meta['name']}-{hashed}",
            "namespace": meta["namespace"],
            "labels": {**labels, hash_label: hashed},
            "annotations": dict(meta.get("annotations") or {}),
            "ownerReferences": [controller_reference(kind, meta)],
        },
        "data": data_of(template),
        "revision": number,
    }


def _age(revision: Obj) -> tuple[int, str, str]:
    meta = revision["metadata"]
    return revision["revision"], meta.get("creationTimestamp", ""), meta["name"]
