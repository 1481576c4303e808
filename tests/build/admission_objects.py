"""Configurations of admission for tests: webhooks, policies and their bindings."""

from __future__ import annotations

from typing import Any

import pytest

from build.hook_server import HookServer
from build.planes import Operations, config_map
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
VERSION = f"{GROUP}/v1"
_PLURALS = {
    kind: kind.lower().removesuffix("y") + ("ies" if kind.endswith("y") else "s")
    for kind in (
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    )
}
EVERYTHING = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["configmaps"]}


def webhook(server: HookServer, path: str, **more: Any) -> Obj:
    """A webhook for config maps, by URL."""
    return {
        "name": f"{path.strip('/')}.example.com",
        "clientConfig": {"url": f"{server.url}{path}", "caBundle": server.bundle},
        "rules": [EVERYTHING],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
        **more,
    }


def validating(name: str, *webhooks: Obj) -> Obj:
    return _configuration("ValidatingWebhookConfiguration", name, webhooks)


def mutating(name: str, *webhooks: Obj) -> Obj:
    return _configuration("MutatingWebhookConfiguration", name, webhooks)


def _configuration(kind: str, name: str, webhooks: tuple[Obj, ...]) -> Obj:
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "webhooks": list(webhooks)}


def policy(name: str, *expressions: str | Obj, **spec: Any) -> Obj:
    """A validating policy for config maps."""
    validations = [{"expression": one} if isinstance(one, str) else one for one in expressions]
    whole = {"matchConstraints": {"resourceRules": [EVERYTHING]}, "validations": validations, **spec}
    return {"apiVersion": VERSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": whole}


def binding(name: str, policy_name: str, *actions: str, **spec: Any) -> Obj:
    whole = {"policyName": policy_name, "validationActions": list(actions or ("Deny",)), **spec}
    kind = "ValidatingAdmissionPolicyBinding"
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": whole}


def mutation(name: str, *mutations: Obj, **spec: Any) -> Obj:
    """A mutating policy for config maps."""
    rules = [{**EVERYTHING, "operations": ["CREATE", "UPDATE"]}]
    whole = {
        "matchConstraints": {"resourceRules": rules},
        "mutations": list(mutations),
        "reinvocationPolicy": "Never",
        **spec,
    }
    return {"apiVersion": VERSION, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": whole}


def mutation_binding(name: str, policy_name: str, **spec: Any) -> Obj:
    kind = "MutatingAdmissionPolicyBinding"
    whole = {"policyName": policy_name, **spec}
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": whole}


def laid_over(expression: str) -> Obj:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def json_patched(expression: str) -> Obj:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


async def configure(cluster: Operations, *objects: Obj) -> None:
    for obj in objects:
        await cluster.create(_PLURALS[obj["kind"]], obj, GROUP)


async def refusal(cluster: Operations, obj: Obj | None = None) -> ApiError:
    """How the creation of a config map is refused."""
    with pytest.raises(ApiError) as found:
        await cluster.create("configmaps", obj or config_map("a"))
    return found.value
