"""Reads how the connection to a trigger's server is encrypted."""

from __future__ import annotations

from shoal.autoscale.scaled_objects.trigger_metadata import TriggerError, TriggerMetadata
from shoal.autoscale.scaled_objects.trigger_sources import ServerTls


def server_tls(metadata: TriggerMetadata) -> ServerTls:
    """With the certificates of the authentication."""
    cert, key = metadata.parameters.get("cert", ""), metadata.parameters.get("key", "")
    if bool(cert) != bool(key):
        raise TriggerError("can't set only one of cert or key when using TLS")
    return ServerTls(
        metadata.flag("unsafeSsl", usual=False),
        metadata.parameters.get("ca", ""),
        cert,
        key,
        metadata.parameters.get("keyPassword", ""),
    )


def is_tls_enabled(metadata: TriggerMetadata) -> bool:
    """By `tls: enable`."""
    return metadata.choice("tls", ("disable", "enable")) == "enable"
