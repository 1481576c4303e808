"""The default flow schemas and priority levels, as every cluster has them.

Written as tables; what all rows have in common is in the two functions below them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from shoal.embedded.apiserver.bootstrap.seed import Seed, seed
from shoal.embedded.apiserver.resource import Obj

_KEPT_UP = {"apf.kubernetes.io/autoupdate-spec": "true"}


class PriorityLevel(NamedTuple):
    """A priority level; queues are how many, how many a flow is dealt, and how long each may be."""

    name: str
    shares: int
    lendable_percent: int
    queues: tuple[int, int, int] | None


_LEVELS = (
    PriorityLevel("catch-all", 5, 0, None),
    PriorityLevel("global-default", 20, 50, (128, 6, 50)),
    PriorityLevel("leader-election", 10, 0, (16, 4, 50)),
    PriorityLevel("node-high", 40, 25, (64, 6, 50)),
    PriorityLevel("system", 30, 33, (64, 6, 50)),
    PriorityLevel("workload-high", 40, 50, (128, 6, 50)),
    PriorityLevel("workload-low", 100, 90, (128, 6, 50)),
)


def _group(name: str) -> Obj:
    return {"kind": "Group", "group": {"name": name}}


def _user(name: str) -> Obj:
    return {"kind": "User", "user": {"name": name}}


def _accounts(name: str = "*") -> Obj:
    return {"kind": "ServiceAccount", "serviceAccount": {"name": name, "namespace": "kube-system"}}


def _resources(verbs: str, groups: str, resources: str, namespaces: str = "*", cluster: bool = False) -> Obj:
    rule: Obj = {"apiGroups": groups.split(","), "namespaces": namespaces.split(","), "resources": resources.split(",")}
    if cluster:
        rule["clusterScope"] = True
    return {**rule, "verbs": verbs.split(",")}


_EVERYTHING = [_resources("*", "*", "*", cluster=True)]
_ANY_PATH = [{"nonResourceURLs": ["*"], "verbs": ["*"]}]
_LEASES = _resources("get,create,update", "coordination.k8s.io", "leases")


def _rule(subjects: list[Obj], resources: list[Obj], paths: list[Obj] | None = None) -> Obj:
    rule: Obj = {"resourceRules": resources, "subjects": subjects}
    if paths:
        rule["nonResourceRules"] = paths
    return rule


class Flow(NamedTuple):
    """A flow schema: who is in it, its precedence, and how its flows are distinguished."""

    name: str
    precedence: int
    level: str
    apart: str
    rules: tuple[Obj, ...]


_NODES = [_group("system:nodes")]
_EVERYBODY = [_group("system:unauthenticated"), _group("system:authenticated")]
_PROBES = {
    "nonResourceRules": [{"nonResourceURLs": ["/healthz", "/readyz", "/livez"], "verbs": ["get"]}],
    "subjects": _EVERYBODY,
}
_FLOWS = (
    Flow("exempt", 1, "exempt", "", (_rule([_group("system:masters")], _EVERYTHING, _ANY_PATH),)),
    Flow("probes", 2, "exempt", "", (_PROBES,)),
    Flow(
        "system-leader-election",
        100,
        "leader-election",
        "ByUser",
        (
            _rule(
                [_user("system:kube-controller-manager"), _user("system:kube-scheduler"), _accounts()],
                [{**_LEASES, "namespaces": ["kube-system"]}],
            ),
        ),
    ),
    Flow(
        "endpoint-controller",
        150,
        "workload-high",
        "ByUser",
        (
            _rule(
                [
                    _user("system:kube-controller-manager"),
                    _accounts("endpoint-controller"),
                    _accounts("endpointslicemirroring-controller"),
                ],
                [_resources("get,create,update", "", "endpoints")],
            ),
        ),
    ),
    Flow("workload-leader-election", 200, "leader-election", "ByUser", (_rule([_accounts()], [_LEASES]),)),
    Flow(
        "system-node-high",
        400,
        "node-high",
        "ByUser",
        (
            _rule(
                _NODES,
                [
                    _resources("*", "", "nodes,nodes/status", cluster=True),
                    _resources("*", "coordination.k8s.io", "leases"),
                ],
            ),
        ),
    ),
    Flow("system-nodes", 500, "system", "ByUser", (_rule(_NODES, _EVERYTHING, _ANY_PATH),)),
    Flow(
        "kube-controller-manager",
        800,
        "workload-high",
        "ByNamespace",
        (_rule([_user("system:kube-controller-manager")], _EVERYTHING, _ANY_PATH),),
    ),
    Flow(
        "kube-scheduler",
        800,
        "workload-high",
        "ByNamespace",
        (_rule([_user("system:kube-scheduler")], _EVERYTHING, _ANY_PATH),),
    ),
    Flow(
        "kube-system-service-accounts",
        900,
        "workload-high",
        "ByNamespace",
        (_rule([_accounts()], _EVERYTHING, _ANY_PATH),),
    ),
    Flow(
        "service-accounts",
        9000,
        "workload-low",
        "ByUser",
        (_rule([_group("system:serviceaccounts")], _EVERYTHING, _ANY_PATH),),
    ),
    Flow("global-default", 9900, "global-default", "ByUser", (_rule(_EVERYBODY, _EVERYTHING, _ANY_PATH),)),
    Flow("catch-all", 10000, "catch-all", "ByUser", (_rule(_EVERYBODY, _EVERYTHING, _ANY_PATH),)),
)


def flow_control(now: str) -> Iterator[Seed]:
    yield _level("exempt", {"type": "Exempt", "exempt": {"lendablePercent": 0, "nominalConcurrencyShares": 0}})
    for level in _LEVELS:
        yield _level(level.name, {"type": "Limited", "limited": _limits(level)})
    for flow in _FLOWS:
        spec: Obj = {
            "matchingPrecedence": flow.precedence,
            "priorityLevelConfiguration": {"name": flow.level},
            "rules": list(flow.rules),
        }
        if flow.apart:
            spec["distinguisherMethod"] = {"type": flow.apart}
        yield seed(
            ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "flowschemas"),
            flow.name,
            annotations=_KEPT_UP,
            spec=spec,
            status={"conditions": [_not_dangling(flow.level, now)]},
        )


def _level(name: str, spec: Obj) -> Seed:
    kind = ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "prioritylevelconfigurations")
    return seed(kind, name, annotations=_KEPT_UP, spec=spec, status={})


def _limits(level: PriorityLevel) -> dict[str, Any]:
    response: Obj = {"type": "Reject"}
    if level.queues is not None:
        queues, hand_size, length = level.queues
        queuing = {"handSize": hand_size, "queueLengthLimit": length, "queues": queues}
        response = {"queuing": queuing, "type": "Queue"}
    return {
        "lendablePercent": level.lendable_percent,
        "limitResponse": response,
        "nominalConcurrencyShares": level.shares,
    }


def _not_dangling(level: str, now: str) -> Obj:
    message = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" and it exists'
    return {
        "type": "Dangling",
        "status": "False",
        "reason": "Found",
        "message": message,
        "lastTransitionTime": now,
    }
