"""Adds to an explanation why the model server that the object belongs to has its number of replicas."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.api.decode import Document, Unknown, meta_of, name_of_kind
from shoal.api.workloads import Deployment, StatefulSet
from shoal.autoscale.serving.annotations import is_asked_for
from shoal.cli.explanation_text import insert
from shoal.cli.live_history import Family
from shoal.views.explanation import Explanation
from shoal.views.serving_replicas import replica_lines

HEADING = "replicas"
_MOST_OWNERS = 4
"""From a pod to its model server; objects that own each other do not end this search."""


def tell_replicas(explanation: Explanation, documents: Sequence[Document], family: Family) -> None:
    model = _model(documents, family)
    if model is not None:
        insert(explanation, HEADING, *replica_lines(meta_of(model.value).annotations, _replicas(model)))


def _model(documents: Sequence[Document], family: Family) -> Document | None:
    """The object itself, or the first of its owners that asks to be scaled as a model server."""
    there = {(name_of_kind(each).lower(), meta_of(each.value).key): each for each in documents}
    found = there.get((family.kind, family.key))
    for _ in range(_MOST_OWNERS):
        if found is None:
            return None
        meta = meta_of(found.value)
        if is_asked_for(meta.annotations):
            return found
        owner = meta.controller()
        namespace = meta.key.rpartition("/")[0]
        found = None if owner is None else there.get((owner.kind.lower(), f"{namespace}/{owner.name}"))
    return None


def _replicas(model: Document) -> int | None:
    value = model.value
    if isinstance(value, Deployment | StatefulSet):
        return value.spec.replicas
    spec = value.raw.get("spec") if isinstance(value, Unknown) else None
    found = spec.get("replicas") if isinstance(spec, dict) else None
    return found if isinstance(found, int) else None
