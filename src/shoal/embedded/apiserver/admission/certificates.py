"""Records the requesting user in certificate requests, and refuses requests for the group `system:masters`."""

from __future__ import annotations

import base64
import binascii

from shoal.embedded.apiserver.admission.plugin import AdmissionPlugin, forbid, spec_of
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.resource import Resource

_SIGNER = "kubernetes.io/kube-apiserver-client"
_MASTERS = "system:masters"


def _is_request(operation: str, resource: Resource, subresource: str) -> bool:
    home = ("certificates.k8s.io", "certificatesigningrequests")
    return operation == "CREATE" and resource.home == home and not subresource


class RequestingUser(AdmissionPlugin):
    """Approvers decide by the requesting user, so the requester must not set it. Kubernetes' strategy does this."""

    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        return _is_request(operation, resource, subresource)

    def mutate(self, admission: AdmissionAttributes) -> None:
        actor, spec = admission.call.actor, spec_of(admission.written)
        reported: dict[str, object] = {"username": actor.name, "uid": actor.uid, "groups": list(actor.groups)}
        reported["extra"] = {key: list(values) for key, values in actor.extra}
        for key, value in reported.items():
            spec.pop(key, None)
            if value:
                spec[key] = value


class CertificateSubjectRestriction(AdmissionPlugin):
    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        return _is_request(operation, resource, subresource)

    def validate(self, admission: AdmissionAttributes) -> None:
        spec = (admission.obj or {}).get("spec") or {}
        if spec.get("signerName") != _SIGNER:
            return
        try:
            groups = _organizations(spec.get("request") or "")
        except (ValueError, binascii.Error) as fault:
            raise forbid(admission, f"failed to parse CSR: {fault}") from fault
        if _MASTERS in groups:
            raise forbid(admission, f"use of {_SIGNER} signer with {_MASTERS} group is not allowed")


def _organizations(request: str) -> tuple[str, ...]:
    # Loaded when first needed: few clusters ever sign a request, all of them start.
    from cryptography import x509

    from shoal.api.subjects import organizations, reading

    with reading():
        return organizations(x509.load_pem_x509_csr(base64.b64decode(request)).subject)
