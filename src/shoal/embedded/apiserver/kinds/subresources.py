"""Restricts which fields a write to a subresource may change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.embedded.apiserver.field_errors import FieldError
from shoal.embedded.apiserver.kinds.certificates.requests import ApprovalStrategy
from shoal.embedded.apiserver.kinds.core.namespaces import check_finalizer
from shoal.embedded.apiserver.kinds.pods.ephemeral import EPHEMERAL_CONTAINERS
from shoal.embedded.apiserver.kinds.pods.resize import RESIZE
from shoal.embedded.apiserver.strategy import Strategy

Obj = dict[str, Any]


class OnlyPart(Strategy):
    """One part of the object may change; everything else stays, metadata apart from what operations guard included."""

    def __init__(self, *path: str) -> None:
        self._path = path

    def prepare_update(self, new: Obj, old: Obj) -> None:
        wanted: Any = new
        for step in self._path:
            wanted = (wanted or {}).get(step)
        for key in {*new, *old} - {"metadata", "apiVersion", "kind"}:
            if key in old:
                new[key] = old[key]
            else:
                new.pop(key, None)
        place = new
        for step in self._path[:-1]:
            place[step] = dict(place.get(step) or {})
            place = place[step]
        if wanted is None:
            place.pop(self._path[-1], None)
        else:
            place[self._path[-1]] = wanted

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - nothing else can differ
        return []


class NamespaceFinalizers(OnlyPart):
    def __init__(self) -> None:
        super().__init__("spec", "finalizers")

    def validate_update(self, new: Obj, old: Obj) -> list[FieldError]:  # noqa: ARG002 - the signature is the strategy's
        errors: list[FieldError] = []
        for place, one in enumerate((new.get("spec") or {}).get("finalizers") or ()):
            check_finalizer(one, f"spec.finalizers[{place}]", errors)
        return errors


DOORS: Mapping[tuple[str, str, str], Strategy] = {
    ("", "pods", "ephemeralcontainers"): EPHEMERAL_CONTAINERS,
    ("", "pods", "resize"): RESIZE,
    ("", "namespaces", "finalize"): NamespaceFinalizers(),
    ("certificates.k8s.io", "certificatesigningrequests", "approval"): ApprovalStrategy(),
    ("apiextensions.k8s.io", "customresourcedefinitions", "finalize"): OnlyPart("metadata", "finalizers"),
}
"""By group, plural and subresource. The finalize door of definitions is the server's own and not served."""
