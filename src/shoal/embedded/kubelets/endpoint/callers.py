"""Authorizes callers of the kubelets' port by their certificate: the API server, and its proxy for the metrics API.

The two are told apart by the authority that signed, not by the port: an authority of users must not make proxies, and
the one of proxies must not make users. What API servers trust stands in the ConfigMap
`kube-system/extension-apiserver-authentication`. Rejected: asking the API server for every request whether it is
allowed, as a real kubelet does. The API server has decided already before it asks.
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
        """Of a certificate as DER; None for who showed none. TLS has checked its validity already."""

    def ask_in(self, context: ssl.SSLContext) -> None:
        """Have a server's TLS ask for certificates of these authorities."""
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
        except Exception:  # noqa: BLE001, S112 - whatever is wrong with it, it is not of this authority
            continue
        return True
    return False
