"""A pod stays five minutes on a node that went away, unless it says how long itself."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.admission.plugin import POD, AdmissionPlugin, spec_of
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.resource import Resource

_KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class DefaultTolerationSeconds(AdmissionPlugin):
    def __init__(self, seconds: int = 300) -> None:
        self._seconds = seconds

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        return resource.home == POD and not subresource and operation in ("CREATE", "UPDATE")

    def mutate(self, admission: AdmissionAttributes) -> None:
        if admission.obj is None:
            return
        spec = spec_of(admission.obj)
        given = spec.get("tolerations") or []
        answered = {one.get("key", "") for one in given if one.get("effect", "") in ("NoExecute", "")}
        missing = [] if "" in answered else [key for key in _KEYS if key not in answered]
        if missing:
            spec["tolerations"] = [*given, *(self._toleration(key) for key in missing)]

    def _toleration(self, key: str) -> dict[str, Any]:
        return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": self._seconds}
