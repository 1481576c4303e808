"""Reads which clients the endpoint trusts, from a ConfigMap that every cluster has."""

from __future__ import annotations

import msgspec

from shoal.embedded.kubelets.endpoint.endpoint import EndpointSettings
from shoal.embedded.kubelets.node_view import Obj

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"


def trusting(settings: EndpointSettings, config_map: Obj | None) -> EndpointSettings:
    """The settings with the authorities of the ConfigMap; without one, no further client is trusted."""
    data = (config_map or {}).get("data") or {}
    reported = {
        "client_ca": data.get("client-ca-file", ""),
        "proxy_ca": data.get("requestheader-client-ca-file", ""),
    }
    names = _names(data.get("requestheader-allowed-names", ""))
    return msgspec.structs.replace(
        settings, **{key: text for key, text in reported.items() if text}, **({"proxy_names": names} if names else {})
    )


def _names(text: str) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(text, type=tuple[str, ...]) if text else ()
    except msgspec.DecodeError:
        return ()
