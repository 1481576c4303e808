"""Builds the webhook configurations of the API server: for admission, and in definitions for conversion."""

from __future__ import annotations

import base64
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from shoal.client.kind import PODS, Kind
from shoal.controllers.gatekeeping.expressions import asks_rendezvous, is_nobodys
from shoal.controllers.gatekeeping.held_kinds import HELD_KINDS, KEEPERS, QUEUE_LABEL, HoldingRules
from shoal.controllers.gatekeeping.policies import GROUP, OURS

Obj = dict[str, Any]
HOOKS = Kind(GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", is_namespaced=False)
NAME = "shoal-gatekeeping"
PROVIDED = "shoal.dev/provided"
"""A label of definitions that Shoal installed, with the name of their project."""
BESIDE = {"shoal.dev/webhook": "beside-the-server"}
"""A label of configurations whose webhook started with the server and has another address after a restart."""
HOLDING_PATH, RENDEZVOUS_PATH, CONVERTING_PATH = "/hold", "/rendezvous", "/convert"
INJECT = "cert-manager.io/inject-ca-from"
"""The annotation by which cert-manager writes the authority of a Certificate to an object."""
_TIMEOUT_S = 5


class WebhookAddress(msgspec.Struct, frozen=True):
    """The address of the webhook: a URL, else a Service."""

    url: str = ""
    namespace: str = "shoal-system"
    service: str = "shoal-webhook"
    port: int = 443
    is_beside: bool = False
    """Whether the webhook runs on the server's own machine and is started with it."""
    injected_from: str = ""
    """The Certificate from which cert-manager writes the authority to the configurations; empty: Shoal writes it."""

    def client(self, path: str, bundle: bytes) -> Obj:
        trusted = {} if self.injected_from else {"caBundle": base64.b64encode(bundle).decode()}
        if self.url:
            return {"url": f"{self.url.rstrip('/')}{path}", **trusted}
        service = {"namespace": self.namespace, "name": self.service, "port": self.port, "path": path}
        return {"service": service, **trusted}

    @property
    def annotations(self) -> dict[str, str]:
        """Of the configurations that refer to it."""
        return {INJECT: self.injected_from} if self.injected_from else {}

    def hosts(self) -> tuple[str, ...]:
        """The host names of the Service, used or not."""
        name = f"{self.service}.{self.namespace}.svc"
        return (name, f"{name}.cluster.local")


def configuration(
    address: WebhookAddress, bundle: bytes, rules: HoldingRules | None, defaults: Collection[str] = ()
) -> Obj:
    """Without rules nothing is held, but pods get the variables of a rendezvous. `defaults`: namespaces with a default
    queue. Unless everything is held, requests in other namespaces do not call the webhook.
    """
    names_one = {"matchExpressions": [{"key": QUEUE_LABEL, "operator": "Exists"}]}
    names_none = {"matchExpressions": [{"key": QUEUE_LABEL, "operator": "DoesNotExist"}]}
    asks = {"name": "asks-for-rendezvous", "expression": asks_rendezvous()}
    # Most pods have a controller, and none of these gets a default queue.
    nobodys = {"name": "is-no-pod-of-others", "expression": f"request.kind.kind != 'Pod' || ({is_nobodys()})"}
    client = address.client(HOLDING_PATH, bundle)
    hooks = [
        _hook("rendezvous", address.client(RENDEZVOUS_PATH, bundle), (PODS,), {"matchConditions": [asks]}),
    ]
    kinds = [kind for kind in HELD_KINDS if rules is not None and rules.holds(kind)]
    if rules is not None and kinds:
        selected = {"namespaceSelector": rules.selector()}
        named = {**selected, "objectSelector": names_one, "failurePolicy": "Fail"}
        hooks.append(_hook("hold", client, kinds, named, is_changed=True))
        if defaults or rules.everything:
            where = rules.selector() if rules.everything else _among(defaults, rules.selector())
            unnamed = {"namespaceSelector": where, "objectSelector": names_none, "matchConditions": [nobodys]}
            hooks.append(_hook("default", client, kinds, unnamed))
    labels = {**OURS, **BESIDE} if address.is_beside else dict(OURS)
    annotations = {"annotations": address.annotations} if address.annotations else {}
    return {"metadata": {"name": NAME, "labels": labels, **annotations}, "webhooks": hooks}


def _among(namespaces: Collection[str], selector: Obj) -> Obj:
    one_of = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": sorted(namespaces)}
    return {**selector, "matchExpressions": [*selector.get("matchExpressions", ()), one_of]}


def conversion(address: WebhookAddress, bundle: bytes) -> Obj:
    """`spec.conversion` of a definition."""
    webhook = {"clientConfig": address.client(CONVERTING_PATH, bundle), "conversionReviewVersions": ["v1"]}
    return {"strategy": "Webhook", "webhook": webhook}


def _hook(name: str, client: Obj, kinds: Sequence[Kind], more: Obj, *, is_changed: bool = False) -> Obj:
    return {
        "name": f"{name}.gatekeeping.shoal.dev",
        "clientConfig": client,
        "rules": _rules(kinds, is_changed=is_changed),
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": _TIMEOUT_S,
        "reinvocationPolicy": "IfNeeded",
        "failurePolicy": "Ignore",
        **more,
    }


def _rules(kinds: Sequence[Kind], *, is_changed: bool) -> list[Obj]:
    """`is_changed`: include updates of the kinds that keep pods running."""
    keepers = {keeper.kind for keeper in KEEPERS}
    found = []
    for kind in kinds:
        operations = ["CREATE", "UPDATE"] if is_changed and kind in keepers else ["CREATE"]
        found.append(
            {
                "apiGroups": [kind.group],
                "apiVersions": ["*"],
                "resources": [kind.plural],
                "operations": operations,
                "scope": "Namespaced",
            }
        )
    return found
