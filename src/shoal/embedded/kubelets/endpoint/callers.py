"""Authorizes callers of the kubelets' port by their certificate: the API server, and its proxy for the metrics API.

The two are distinguished by the authority that signed their certificates, not by the port: an authority for users must
not sign proxies, and the one for proxies must not sign users. The ConfigMap
`kube-system/extension-apiserver-authentication` has the authorities that API servers trust. Rejected: a subject access
review for every request, as a real kubelet does. The API server has authorized the request already.
"""

from __future__ import annotations

import ssl
from functools import lru_cache
from typing import Literal

from cryptography import x509
from cryptography.x509.oid import NameOID

Caller = Literal["server", "proxy", "stranger", "anonymous"]
SERVER_NAMES = ("kube-apiserver-kubelet-client", "apiserver-kubelet-client")
MASTERS = "system:masters"


class Callers:
    """`client_ca` and `proxy_ca` are certificates as PEM; without one, no certificate is trusted."""

    def __init__(self, client_ca: str = "", proxy_ca: str = "", proxy_names: tuple[str, ...] = ()) -> None:
        self._bundle = f"{client_ca}\n{proxy_ca}".strip()
        self._clients = _certificates(client_ca)
        self._proxies = _certificates(proxy_ca)
        self._proxy_names = proxy_names
        self.who = lru_cache(maxsize=64)(self._who)
        """The caller of a certificate (DER); None without a certificate. TLS has checked its validity already."""

    def ask_in(self, context: ssl.SSLContext) -> None:
        """Let the TLS context of a server request certificates of these authorities."""
        if self._bundle:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(cadata=self._bundle)

    def _who(self, der: bytes | None) -> Caller:
        if der is None:
            return "anonymous"
        shown = x509.load_der_x509_certificate(der)
        names, groups = _values(shown, NameOID.COMMON_NAME), _values(shown, NameOID.ORGANIZATION_NAME)
        if _is_issued(shown, self._clients):
            return "server" if names & set(SERVER_NAMES) or MASTERS in groups else "stranger"
        if _is_issued(shown, self._proxies) and (not self._proxy_names or names & set(self._proxy_names)):
            return "proxy"
        return "stranger"


def _certificates(pem: str) -> tuple[x509.Certificate, ...]:
    return tuple(x509.load_pem_x509_certificates(pem.encode())) if pem.strip() else ()


def _values(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> set[str]:
    return {str(one.value) for one in certificate.subject.get_attributes_for_oid(oid)}


def _is_issued(shown: x509.Certificate, authorities: tuple[x509.Certificate, ...]) -> bool:
    for authority in authorities:
        try:
            shown.verify_directly_issued_by(authority)
        except Exception:  # noqa: BLE001, S112 - a certificate with any fault is not of this authority
            continue
        return True
    return False
