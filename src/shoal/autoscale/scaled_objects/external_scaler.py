"""The triggers external and external-push: a server names their metrics and targets itself.

Both are polled: a stream of activations is not opened.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from shoal.autoscale.scaled_objects.metric_names import indexed_name
from shoal.autoscale.scaled_objects.spec import Trigger
from shoal.autoscale.scaled_objects.trigger_metadata import TriggerError, TriggerMetadata, host_and_port
from shoal.autoscale.scaled_objects.trigger_sources import (
    Bounds,
    ExternalScaler,
    ExternalScalerMetric,
    ReadTrigger,
    ServerTls,
    external_trigger,
)

EXTERNAL_TYPES = ("external", "external-push")
_OWN = ("scalerAddress", "tlsCertFile", "caCert", "tlsClientCert", "tlsClientKey", "enableTLS", "unsafeSsl")
"""Parameters that are not sent to the server."""


class NamedTarget(Struct, frozen=True):
    """A metric that the server serves, and its target."""

    name: str
    target: float


def external_scaler(metadata: TriggerMetadata) -> ExternalScaler:
    host, port = host_and_port(metadata.text("scalerAddress"))
    sent = {name: text for name, text in metadata.written.items() if name not in _OWN}
    sent.update({name: metadata.text(name.removesuffix("FromEnv"), "") for name in sent if name.endswith("FromEnv")})
    if metadata.text("tlsCertFile", ""):
        raise TriggerError('parameter "tlsCertFile" is a file of the server and not supported; use caCert')
    ca = metadata.parameters.get("caCert", "")
    cert, key = metadata.parameters.get("tlsClientCert", ""), metadata.parameters.get("tlsClientKey", "")
    tls = ServerTls(ca=ca, cert=cert, key=key) if ca or metadata.flag("enableTLS", usual=False) else None
    if tls is not None and metadata.flag("unsafeSsl", usual=False):
        raise TriggerError('parameter "unsafeSsl" is not supported; give the certificate authority with caCert')
    return ExternalScaler(host, port, sent, tls)


def external_placeholder(trigger: Trigger, metadata: TriggerMetadata, index: int, namespace: str) -> ReadTrigger:
    """With the settings that were checked; the metrics are those that the server names."""
    source = ExternalScalerMetric(external_scaler(metadata), "", namespace, "")
    return external_trigger(trigger, index, indexed_name(index, trigger.type), source, Bounds(1.0))


def external_triggers(
    trigger: Trigger, placeholder: ReadTrigger, owner: str, targets: Sequence[NamedTarget]
) -> list[ReadTrigger]:
    """One for each metric that the server serves for the object `owner`."""
    source, found = placeholder.source, list[ReadTrigger]()
    if not isinstance(source, ExternalScalerMetric):
        return [placeholder]
    for one in targets:
        if not one.name or not math.isfinite(one.target) or one.target <= 0:
            raise TriggerError(f'the external scaler names the metric "{one.name}" with the target {one.target:g}')
        named = ExternalScalerMetric(source.scaler, owner, source.namespace, one.name)
        name = indexed_name(placeholder.index, one.name)
        found.append(external_trigger(trigger, placeholder.index, name, named, Bounds(one.target)))
    if not found:
        raise TriggerError("the external scaler names no metric")
    return found
