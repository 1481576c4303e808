"""Authorizes nodes before RBAC, as the authorization modes `Node,RBAC` of Kubernetes do.

A node is a user `system:node:NAME` in the group `system:nodes`. It reads the Secrets, ConfigMaps, claims, volumes and
service accounts that pods bound to it refer to, by name; it reads itself and its pods; it writes what NodeRestriction
then confines to its own objects. What else nodes share is the role `system:node`.
"""

from __future__ import annotations

import msgspec

from shoal.data.role_lines import rules
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.reading import Reader
from shoal.embedded.apiserver.request_info import RequestInfo
from shoal.embedded.apiserver.security.authorize import UserPermissions
from shoal.embedded.apiserver.security.component_roles import ROLES
from shoal.embedded.apiserver.security.node_pods import NodePods
from shoal.embedded.apiserver.security.rbac import SUPERUSERS, Rbac
from shoal.embedded.apiserver.security.rules import read_rules
from shoal.embedded.apiserver.security.verdict import AccessDecision

NODES, NODE_PREFIX = "system:nodes", "system:node:"
LEASES = "kube-node-lease"
_ALLOWED, _NO_OPINION = AccessDecision(True), AccessDecision(False)
_LEASE_VERBS = ("get", "create", "update", "patch", "delete")
_NO_RULES = "node authorizer does not support user rule resolution"


def node_of(actor: Actor) -> str | None:
    """The node name of a user; empty for a node without a name, None for other users."""
    if NODES in actor.groups and actor.name.startswith(NODE_PREFIX):
        return actor.name[len(NODE_PREFIX) :]
    return None


class NodeAuthorizer:
    """An authorizer: the rules of nodes, then RBAC."""

    def __init__(self, rbac: Rbac, reader: Reader, pods: NodePods) -> None:
        self._rbac = rbac
        self._reader = reader
        self._pods = pods
        self._rules = read_rules(rules(ROLES["system:node"]))
        self.rules_of = rbac.rules_of

    def allows(self, actor: Actor, asked: RequestInfo) -> AccessDecision:
        node = node_of(actor)
        # What RBAC decides is kept by what it was asked, so that it is asked about no more than it looks at.
        plain = msgspec.structs.replace(asked, fields=()) if asked.fields else asked
        if node is None or SUPERUSERS in actor.groups:
            return self._rbac.allows(actor, plain)
        if node:
            own = self._decide(node, asked)
        else:
            own = AccessDecision(False, f'unknown node for user "{actor.name}"')
        if own.allowed:
            return own
        found = self._rbac.allows(actor, plain)
        if found.allowed:
            return found
        return AccessDecision(False, "\n".join(reason for reason in (own.reason, found.reason) if reason))

    def held(self, actor: Actor, namespace: str) -> UserPermissions:
        found = self._rbac.held(actor, namespace)
        return found if node_of(actor) is None else UserPermissions(found.rules, (*found.faults, _NO_RULES))

    def _decide(self, node: str, asked: RequestInfo) -> AccessDecision:
        if not asked.is_resource:
            return self._by_role(asked)
        match asked.group, asked.resource:
            case ("", "secrets" | "configmaps"):
                return self._namespaced(node, asked)
            case ("", "persistentvolumeclaims") if asked.subresource == "status":
                if asked.verb not in ("update", "patch"):
                    return AccessDecision(False, "can only get/update/patch this type")
                return self._related(node, asked)
            case ("", "persistentvolumeclaims" | "persistentvolumes"):
                return self._gets(node, asked)
            case ("resource.k8s.io", "resourceclaims") | ("storage.k8s.io", "volumeattachments"):
                return self._gets(node, asked)
            case ("", "serviceaccounts"):
                return self._account(node, asked)
            case ("coordination.k8s.io", "leases"):
                return _lease(node, asked)
            case ("storage.k8s.io", "csinodes"):
                return _csi_node(node, asked)
            case ("resource.k8s.io", "resourceslices"):
                return self._slice(node, asked)
            case ("", "nodes"):
                return _node(node, asked)
            case ("", "pods"):
                return self._pod(node, asked)
        return self._by_role(asked)

    def _by_role(self, asked: RequestInfo) -> AccessDecision:
        return _ALLOWED if any(rule.allows(asked) for rule in self._rules) else _NO_OPINION

    def _gets(self, node: str, asked: RequestInfo) -> AccessDecision:
        if asked.verb != "get":
            return AccessDecision(False, "can only get individual resources of this type")
        if asked.subresource:
            return AccessDecision(False, "cannot get subresource")
        return self._related(node, asked)

    def _namespaced(self, node: str, asked: RequestInfo) -> AccessDecision:
        if asked.verb not in ("get", "list", "watch"):
            return AccessDecision(False, "can only read resources of this type")
        if asked.subresource:
            return AccessDecision(False, "cannot read subresource")
        if not asked.namespace:
            return AccessDecision(False, "can only read namespaced object of this type")
        return self._related(node, asked)

    def _account(self, node: str, asked: RequestInfo) -> AccessDecision:
        if asked.verb == "get" and not asked.subresource:
            return self._namespaced(node, asked)
        if asked.verb != "create" or not asked.name:
            return AccessDecision(False, "can only create tokens for individual service accounts")
        if asked.subresource != "token":
            return AccessDecision(False, "can only create token subresource of serviceaccount")
        return self._related(node, asked)

    def _slice(self, node: str, asked: RequestInfo) -> AccessDecision:
        if asked.subresource:
            return AccessDecision(False, "cannot authorize ResourceSlice subresources")
        match asked.verb:
            case "create":
                return _ALLOWED
            case "get" | "update" | "patch" | "delete":
                return self._related(node, asked)
            case "watch" | "list" | "deletecollection":
                if ("spec.nodeName", node) in asked.fields:
                    return _ALLOWED
                words = "can only list/watch/deletecollection resourceslices with nodeName field selector"
                return AccessDecision(False, words)
        words = "get, watch, list, create, update, patch, delete, deletecollection"
        return AccessDecision(False, f"only the following verbs are allowed for a ResourceSlice: {words}")

    def _pod(self, node: str, asked: RequestInfo) -> AccessDecision:
        match asked.subresource, asked.verb:
            case "", "get":
                return self._related(node, asked)
            case "", "list" | "watch":
                if ("spec.nodeName", node) in asked.fields:
                    return _ALLOWED
                if asked.name:
                    return self._related(node, asked)
                return AccessDecision(False, "can only list/watch pods with spec.nodeName field selector")
            case ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create"):
                return _ALLOWED
        return _NO_OPINION

    def _related(self, node: str, asked: RequestInfo) -> AccessDecision:
        if not asked.name:
            return AccessDecision(False, "No Object name found")
        if self._is_related(node, asked):
            return _ALLOWED
        return AccessDecision(False, f"no relationship found between node '{node}' and this object")

    def _is_related(self, node: str, asked: RequestInfo) -> bool:
        match asked.resource:
            case "secrets" | "configmaps" | "serviceaccounts" | "persistentvolumeclaims" | "resourceclaims":
                return self._pods.has(node, asked.resource, asked.namespace, asked.name)
            case "persistentvolumes":
                return self._pods.has_volume(node, asked.name)
        found = self._reader.get(asked.group, asked.resource, asked.namespace, asked.name)
        return found is not None and (found.get("spec") or {}).get("nodeName") == node


def _lease(node: str, asked: RequestInfo) -> AccessDecision:
    if asked.verb not in _LEASE_VERBS:
        return AccessDecision(False, "can only get, create, update, patch, or delete a node lease")
    if asked.namespace != LEASES:
        return AccessDecision(False, f'can only access leases in the "{LEASES}" system namespace')
    if asked.verb != "create" and asked.name != node:
        return AccessDecision(False, "can only access node lease with the same name as the requesting node")
    return _ALLOWED


def _csi_node(node: str, asked: RequestInfo) -> AccessDecision:
    if asked.verb not in _LEASE_VERBS:
        return AccessDecision(False, "can only get, create, update, patch, or delete a CSINode")
    if asked.subresource:
        return AccessDecision(False, "cannot authorize CSINode subresources")
    if asked.verb != "create" and asked.name != node:
        return AccessDecision(False, "can only access CSINode with the same name as the requesting node")
    return _ALLOWED


def _node(node: str, asked: RequestInfo) -> AccessDecision:
    match asked.subresource, asked.verb:
        case ("", "create" | "update" | "patch") | ("status", "update" | "patch"):
            return _ALLOWED
        case "", "get" | "list" | "watch":
            if asked.name == node:
                return _ALLOWED
            whose = f"'{asked.name}'" if asked.name else "all nodes"
            return AccessDecision(False, f"node '{node}' cannot read {whose}, only its own Node object")
    return _NO_OPINION
