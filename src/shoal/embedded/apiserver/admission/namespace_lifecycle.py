"""Nothing is created in a namespace that is missing or on its way out, and three namespaces never go."""

from __future__ import annotations

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.admission.plugin import AdmissionPlugin, forbid
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.resource import Resource

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
_REVIEWS = ("authorization.k8s.io", "localsubjectaccessreviews")


class NamespaceLifecycle(AdmissionPlugin):
    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:  # noqa: ARG002 - doors below an object count as the object
        if resource.home == ("", "namespaces"):
            return operation == "DELETE"
        return resource.namespaced and operation in ("CREATE", "UPDATE") and resource.home != _REVIEWS

    def mutate(self, admission: AdmissionAttributes) -> None:
        if admission.operation == "DELETE":
            if admission.name in IMMORTAL:
                raise status.forbidden("namespaces", "", admission.name, "this namespace may not be deleted")
            return
        name = admission.namespace
        namespace = self._reader.get("", "namespaces", "", name)
        if namespace is None:
            raise status.not_found("namespaces", "", name)
        if admission.operation == "CREATE" and is_terminating(namespace):
            raise _terminating(admission, name)


def is_terminating(namespace: dict[str, object]) -> bool:
    phase = namespace.get("status")
    return isinstance(phase, dict) and phase.get("phase") == "Terminating"


def _terminating(admission: AdmissionAttributes, name: str) -> status.ApiError:
    refusal = forbid(admission, f"unable to create new content in namespace {name} because it is being terminated")
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {name} is being terminated",
        "field": "metadata.namespace",
    }
    refusal.details = {**(refusal.details or {}), "causes": [cause]}
    return refusal
