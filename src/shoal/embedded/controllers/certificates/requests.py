"""Parses certificate signing requests, and decides whether their signer may sign them. The functions are pure."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection
from contextlib import suppress
from typing import Any

import msgspec
from cryptography import x509

from shoal.api.subjects import common_name, has_one_common_name, organizations, reading
from shoal.client.item import Obj

CLIENT, KUBELET_CLIENT, KUBELET_SERVING = (
    "kubernetes.io/kube-apiserver-client",
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
)
SIGNERS = (CLIENT, KUBELET_CLIENT, KUBELET_SERVING)
_NODES, _NODE = "system:nodes", "system:node:"
_KEYS = {"key encipherment", "digital signature"}


class CertificateRequest(msgspec.Struct, frozen=True):
    """The subject and the other names of a request."""

    common_name: str
    organizations: tuple[str, ...]
    dns: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()
    is_ambiguous: bool = False
    """Whether the subject has more than one common name."""


def pem_of(request: Obj) -> bytes:
    return b64decode(request["spec"]["request"])


def asked(pem: bytes) -> CertificateRequest:
    """Raises ValueError for text that is not a request."""
    with reading():
        parsed = x509.load_pem_x509_csr(pem)
        subject = parsed.subject
        names: Any = ()
        with suppress(x509.ExtensionNotFound):
            names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        found = {
            kind: tuple(str(one.value) for one in names if isinstance(one, kind))
            for kind in (x509.DNSName, x509.IPAddress, x509.RFC822Name, x509.UniformResourceIdentifier)
        }
        return CertificateRequest(
            common_name(subject),
            organizations(subject),
            found[x509.DNSName],
            found[x509.IPAddress],
            found[x509.RFC822Name],
            found[x509.UniformResourceIdentifier],
            is_ambiguous=bool(common_name(subject)) and not has_one_common_name(subject),
        )


def signer_fault(signer: str, wanted: CertificateRequest, usages: Collection[str]) -> str:
    """Why this signer must not sign the request; empty if it may."""
    uses = set(usages)
    if signer == CLIENT:
        if "client auth" not in uses or uses - _KEYS - {"client auth"}:
            return "usages did not match [client auth, digital signature, key encipherment]"
        return ""
    if wanted.organizations != (_NODES,):
        return "subject organization is not system:nodes"
    if wanted.is_ambiguous:
        return "subject has more than one common name"
    if not wanted.common_name.startswith(_NODE):
        return "subject common name does not begin with system:node:"
    is_client = signer == KUBELET_CLIENT
    for kind, names in (("Email", wanted.emails), ("URI", wanted.uris)):
        if names:
            return f"{kind} subjectAltNames are not allowed"
    if is_client and wanted.dns:
        return "DNS subjectAltNames are not allowed"
    if is_client and wanted.ips:
        return "IP subjectAltNames are not allowed"
    if not is_client and not (wanted.dns or wanted.ips):
        return "DNS or IP subjectAltName is required"
    purpose = "client auth" if is_client else "server auth"
    if uses not in (_KEYS | {purpose}, {"digital signature", purpose}):
        return f"usages did not match [digital signature, {purpose}]"
    return ""


def has_condition(request: Obj, *types: str) -> bool:
    return any(one["type"] in types for one in (request.get("status") or {}).get("conditions") or ())


def with_condition(request: Obj, type_: str, reason: str, message: str, now: str) -> Obj:
    """The request, with one more condition; changed in place."""
    reported = {"type": type_, "status": "True", "reason": reason, "message": message}
    reported |= {"lastUpdateTime": now, "lastTransitionTime": now}
    request.setdefault("status", {}).setdefault("conditions", []).append(reported)
    return request
