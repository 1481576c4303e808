"""Devices may be had for administration, past who uses them, only in a namespace that says so."""

from __future__ import annotations

from shoal.embedded.apiserver import status
from shoal.embedded.apiserver.admission.plugin import AdmissionPlugin
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.field_errors import not_allowed
from shoal.embedded.apiserver.reading import Obj, Reader
from shoal.embedded.apiserver.resource import Resource

_GROUP = "resource.k8s.io"
_KINDS = ((_GROUP, "resourceclaims"), (_GROUP, "resourceclaimtemplates"))
_LABEL = "resource.kubernetes.io/admin-access"


class DeviceAdminAccess(AdmissionPlugin):
    """Kubernetes has this among the claims' own rules; it needs the namespace, so it is here."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        return operation == "CREATE" and resource.home in _KINDS and not subresource

    def validate(self, admission: AdmissionAttributes) -> None:
        resource = admission.call.resource
        spec: Obj = (admission.obj or {}).get("spec") or {}
        if resource.plural == "resourceclaimtemplates":
            spec = spec.get("spec") or {}
        for at, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
            if (request.get("exactly") or {}).get("adminAccess") and not self._is_allowed(admission.namespace):
                field = f"spec.devices.requests[{at}].adminAccess"
                words = f"admin access to devices requires the `{_LABEL}: true` label on the containing namespace"
                raise status.invalid(resource.kind, resource.group, admission.name, [not_allowed(field, words)])

    def _is_allowed(self, name: str) -> bool:
        namespace = self._reader.get("", "namespaces", "", name) or {}
        labels = (namespace.get("metadata") or {}).get("labels") or {}
        return bool(labels.get(_LABEL) == "true")
