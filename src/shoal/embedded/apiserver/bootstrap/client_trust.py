"""Publishes the trusted certificates for servers of aggregated APIs: those of users, and of this server as their proxy.

They read it from a ConfigMap of this name, with Kubernetes' keys. The authority of the proxy is one of its own: if it
were that of users, each user with a certificate could act as any other.
"""

from __future__ import annotations

import msgspec

from shoal.embedded.apiserver.bootstrap.seed import Seed, seed
from shoal.embedded.apiserver.security.authority import FRONT_PROXY, Authority

_HEADERS = {
    "requestheader-username-headers": ("X-Remote-User",),
    "requestheader-uid-headers": ("X-Remote-Uid",),
    "requestheader-group-headers": ("X-Remote-Group",),
    "requestheader-extra-headers-prefix": ("X-Remote-Extra-",),
    "requestheader-allowed-names": (FRONT_PROXY,),
}


def client_trust(authority: Authority) -> Seed:
    data = {name: msgspec.json.encode(values).decode() for name, values in _HEADERS.items()}
    data["client-ca-file"] = authority.root_certificate
    data["requestheader-client-ca-file"] = authority.front_proxy_root.certificate.decode()
    kind = ("v1", "ConfigMap", "configmaps")
    return seed(kind, "extension-apiserver-authentication", "kube-system", data=data)
