"""The account of the node agents, its permissions, and the admission policies that keep an agent to its own Node.

RBAC cannot limit a write to one object whose name depends on the pod, so ValidatingAdmissionPolicies do: the token of
an agent names its Node. The policies match the agents alone, so they cannot stop another client.
"""

from __future__ import annotations

from typing import Any

from shoal.data.role_lines import rules

Obj = dict[str, Any]
AGENT = "shoal-agent"
OPERAND_ACCOUNTS = ("nvidia-device-plugin", "nvidia-gpu-feature-discovery", "shoal-node-discovery")
"""Of the components in which Shoal's agent runs and writes to its own Node or to the pods there."""
_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io/v1"
_LINES = (
    # The label nvidia.com/device-plugin.config of its own Node. Roles cannot limit a watch to one object.
    "get,list,watch nodes",
    # The pods of its own Node, with the devices that the scheduler chose.
    "get,list,watch pods",
    "patch pods/status",
    "patch nodes,nodes/status",
    "create,patch events",
    # Asked for by the admission policy shoal-guard-devices. No such resource exists.
    "update pods/devices",
)
_NODE_NAMES = "request.userInfo.?extra.orValue({})[?'authentication.kubernetes.io/node-name'].orValue([])"
_OLD_LABELS = "oldObject.metadata.?labels.orValue({})"


def agent_access(namespace: str) -> list[Obj]:
    """Without labels."""
    subject = {"kind": "ServiceAccount", "name": AGENT, "namespace": namespace}
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": AGENT}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": AGENT, "namespace": namespace}},
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": AGENT}, "rules": rules(_LINES)},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": AGENT},
            "roleRef": role,
            "subjects": [subject],
        },
    ]


def agent_policies(namespace: str, accounts: tuple[str, ...] = (AGENT,)) -> list[Obj]:
    """Without labels. They match these accounts of the namespace and no other user."""
    users = [f"'system:serviceaccount:{namespace}:{account}'" for account in accounts]
    is_agent = f"== {users[0]}" if len(users) == 1 else f"in [{', '.join(users)}]"
    return [
        *_policy("shoal-agent-own-pods", is_agent, ["pods/status"], _PODS),
        *_policy("shoal-agent-own-node", is_agent, ["nodes", "nodes/status"], _NODE),
    ]


def _policy(name: str, is_agent: str, resources: list[str], validations: tuple[tuple[str, str], ...]) -> list[Obj]:
    rule = {"apiGroups": [""], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": resources, "scope": "*"}
    # With the defaults of the server: the field has one owner as a whole, and without them a second client that applies
    # the same object would conflict.
    constraints: Obj = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
    spec: Obj = {
        "failurePolicy": "Fail",
        "matchConstraints": {**constraints, "resourceRules": [rule]},
        "matchConditions": [{"name": "is-the-agent", "expression": f"request.userInfo.username {is_agent}"}],
        "validations": [
            {"expression": expression, "message": message, "reason": "Forbidden"} for expression, message in validations
        ],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {"apiVersion": _ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec},
        {
            "apiVersion": _ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": binding,
        },
    ]


_ONLY_DEVICES = (
    "object.status == oldObject.status "
    f"&& object.metadata.?labels.orValue({{}}) == {_OLD_LABELS} "
    "&& object.metadata.?annotations.orValue({}).all(key, key == 'shoal.dev/devices' "
    "|| oldObject.metadata.?annotations.orValue({})[?key] == optional.of(object.metadata.annotations[key])) "
    "&& oldObject.metadata.?annotations.orValue({}).all(key, key == 'shoal.dev/devices' "
    "|| key in object.metadata.?annotations.orValue({}))"
)
_SAME_RESOURCES = (
    "object.status.?capacity.orValue({}) == oldObject.status.?capacity.orValue({}) "
    "&& object.status.?allocatable.orValue({}) == oldObject.status.?allocatable.orValue({})"
)
_SAME_CONDITIONS = (
    "object.status.?conditions.orValue([]).filter(one, one.type != 'GPUHealthy') "
    "== oldObject.status.?conditions.orValue([]).filter(one, one.type != 'GPUHealthy')"
)
_SAME_RESTRICTED_LABELS = (
    "object.metadata.?labels.orValue({}).all(key, !key.startsWith('node-restriction.kubernetes.io/') "
    f"|| {_OLD_LABELS}[?key] == optional.of(object.metadata.labels[key]))"
)
_PODS = (
    (f"{_NODE_NAMES} == [object.spec.?nodeName.orValue('')]", "an agent may only report the pods of its own Node"),
    (_ONLY_DEVICES, "an agent may only report the devices of a pod"),
)
_NODE = (
    (f"{_NODE_NAMES} == [object.metadata.name]", "an agent may only change its own Node"),
    ("object.spec == oldObject.spec", "an agent may not change the spec of a Node"),
    (_SAME_RESOURCES, "the resources of a Node are reported by its kubelet"),
    (_SAME_CONDITIONS, "an agent may only write the condition GPUHealthy"),
    (_SAME_RESTRICTED_LABELS, "an agent may not write labels that decide which pods may run on the Node"),
)
