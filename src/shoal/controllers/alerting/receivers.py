"""Sends alerts: to Alertmanager, to a webhook, and as Events of Kubernetes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from shoal.api.alert_targets import shown
from shoal.client.context import Context
from shoal.client.item import Obj
from shoal.client.kind import NAMESPACES, NODES, PODS, Kind
from shoal.policy.alert_messages import alertmanager_alerts, webhook_body
from shoal.policy.alert_states import AlertRound

Post = Callable[[str, bytes], Awaitable[None]]
"""Sends JSON to an address. Raises OSError or TimeoutError where it is not accepted."""
_AT_ONCE = 64
_AGAIN_MS = 60_000
_MOST_EVENTS = 100
"""In one round."""
_QUIET = "info"
_NO_OBJECT: Obj = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "kube-system"},
}
"""What alerts are about that name no object."""


class AlertmanagerReceiver:
    """Alerts are sent again each minute: Alertmanager takes those as ended that are not."""

    def __init__(self, address: str, post: Post) -> None:
        self.name = shown(address)
        self._url, self._post = f"{address}/api/v2/alerts", post
        self._sent_ms = 0

    async def send(self, told: AlertRound) -> None:
        is_due = told.at_ms - self._sent_ms >= _AGAIN_MS
        alerts = alertmanager_alerts(told.firing if is_due else told.changes.fired, told.changes.ended, told.at_ms)
        for at in range(0, len(alerts), _AT_ONCE):
            await self._post(self._url, msgspec.json.encode(alerts[at : at + _AT_ONCE]))
        if is_due:
            self._sent_ms = told.at_ms


class WebhookReceiver:
    def __init__(self, address: str, post: Post) -> None:
        self.name = shown(address)
        self._url, self._post = address, post

    async def send(self, told: AlertRound) -> None:
        if told.changes.fired or told.changes.ended:
            await self._post(self._url, msgspec.json.encode(webhook_body(told.changes)))


class EventReceiver:
    """Of alerts that fire; those of the severity `info` would be one Event for each idle GPU."""

    name = "events"

    def __init__(self, context: Context) -> None:
        self._context = context

    async def send(self, told: AlertRound) -> None:
        found = [one for one in told.changes.fired if one.labels.get("severity") != _QUIET]
        for one in found[:_MOST_EVENTS]:
            texts = one.annotations
            message = f"{texts.get('description', '')} {texts.get('runbook', '')}".strip()
            self._context.events.record(self._about(one.labels), one.labels["alertname"], message, type_="Warning")

    def _about(self, labels: dict[str, str]) -> Obj:
        """The most special object that the labels name."""
        namespace, pod = labels.get("namespace", ""), labels.get("pod", "")
        if namespace and pod:
            return self._object(PODS, namespace, pod)
        if queue := labels.get("cluster_queue"):
            return {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": queue}}
        if node := labels.get("node") or labels.get("Hostname", ""):
            return self._object(NODES, "", node)
        return self._object(NAMESPACES, "", namespace) if namespace else _NO_OBJECT

    def _object(self, kind: Kind, namespace: str, name: str) -> Obj:
        meta = {"name": name} | ({"namespace": namespace} if namespace else {})
        item = self._context.informers.of(kind).get(namespace, name)
        if item is not None:
            meta["uid"] = item.uid
        return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": meta}
