"""How the API server is told of the webhook: a configuration for admission, and what definitions say of conversion."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.controllers.gatekeeping.expressions import asks_rendezvous
from shoal.controllers.gatekeeping.held_kinds import HELD_KINDS, KEEPERS, QUEUE_LABEL, HoldingRules
from shoal.controllers.gatekeeping.policies import GROUP, OURS
from shoal.store.live.kind import PODS, Kind

Obj = dict[str, Any]
HOOKS = Kind(GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", is_namespaced=False)
NAME = "shoal-gatekeeping"
HOLDING_PATH, RENDEZVOUS_PATH, CONVERTING_PATH = "/hold", "/rendezvous", "/convert"
_TIMEOUT_S = 5


class Address(msgspec.Struct, frozen=True):
    """Where the API server reaches the webhook: by a URL, else by a Service."""

    url: str = ""
    namespace: str = "shoal-system"
    service: str = "shoal-webhook"
    port: int = 443

    def client(self, path: str, bundle: bytes) -> Obj:
        trusted = {"caBundle": base64.b64encode(bundle).decode()}
        if self.url:
            return {"url": f"{self.url.rstrip('/')}{path}", **trusted}
        service = {"namespace": self.namespace, "name": self.service, "port": self.port, "path": path}
        return {"service": service, **trusted}

    def hosts(self) -> tuple[str, ...]:
        """Names of the Service, whether it is used or not."""
        name = f"{self.service}.{self.namespace}.svc"
        return (name, f"{name}.cluster.local")


def configuration(address: Address, bundle: bytes, rules: HoldingRules | None) -> Obj:
    """Without rules nothing is held, and pods get the variables of a rendezvous all the same."""
    names_one = {"matchExpressions": [{"key": QUEUE_LABEL, "operator": "Exists"}]}
    names_none = {"matchExpressions": [{"key": QUEUE_LABEL, "operator": "DoesNotExist"}]}
    asks = {"name": "asks-for-rendezvous", "expression": asks_rendezvous()}
    client = address.client(HOLDING_PATH, bundle)
    hooks = [
        _hook("rendezvous", address.client(RENDEZVOUS_PATH, bundle), (PODS,), {"matchConditions": [asks]}),
    ]
    if rules is not None:
        selected = {"namespaceSelector": rules.selector()}
        named = {**selected, "objectSelector": names_one, "failurePolicy": "Fail"}
        hooks.append(_hook("hold", client, HELD_KINDS, named, is_changed=True))
        hooks.append(_hook("default", client, HELD_KINDS, {**selected, "objectSelector": names_none}))
    return {"metadata": {"name": NAME, "labels": dict(OURS)}, "webhooks": hooks}


def conversion(address: Address, bundle: bytes) -> Obj:
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
    """`is_changed`: of keepers of pods later changes too."""
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
