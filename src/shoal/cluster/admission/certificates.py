"""Nobody becomes a member of `system:masters` by asking for a client certificate."""

from __future__ import annotations

import base64
import binascii

from shoal.cluster.admission.plugin import Plugin, forbid
from shoal.cluster.calls import Admission
from shoal.cluster.resource import Resource

_SIGNER = "kubernetes.io/kube-apiserver-client"
_MASTERS = "system:masters"


class CertificateSubjectRestriction(Plugin):
    def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
        home = ("certificates.k8s.io", "certificatesigningrequests")
        return operation == "CREATE" and resource.home == home and not subresource

    def validate(self, admission: Admission) -> None:
        spec = (admission.obj or {}).get("spec") or {}
        if spec.get("signerName") != _SIGNER:
            return
        try:
            groups = _organizations(spec.get("request") or "")
        except (ValueError, binascii.Error) as fault:
            raise forbid(admission, f"failed to parse CSR: {fault}") from fault
        if _MASTERS in groups:
            raise forbid(admission, f"use of {_SIGNER} signer with {_MASTERS} group is not allowed")


def _organizations(request: str) -> list[str]:
    # Loaded when first needed: few clusters ever sign a request, all of them start.
    from cryptography import x509

    parsed = x509.load_pem_x509_csr(base64.b64decode(request))
    return [str(one.value) for one in parsed.subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)]
