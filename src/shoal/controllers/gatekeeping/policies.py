"""Builds the admission policies that hold jobs and pods at their creation and keep running ones in their queue.

Kubernetes evaluates them itself: no process of Shoal must answer while a job is created, and while Shoal does not run
no job bypasses its queue. Each policy is defined twice: for objects that name their queue, and, with the LocalQueue
`default` of the object's namespace as its parameter, for those that do not. Only the first fails closed: it matches
labelled objects alone, while the second would stop every pod of a cluster whose queues were uninstalled.

Rejected: one policy for everything. A fault in the expression of one kind would admit or stop all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from shoal.client.kind import PODS, Kind
from shoal.controllers.gatekeeping import expressions as cel
from shoal.controllers.gatekeeping import gpu_parts as parts
from shoal.controllers.gatekeeping.held_kinds import (
    DEFAULT_QUEUE,
    KEEPERS,
    QUEUE_LABEL,
    SWITCHES,
    HoldingRules,
    Keeper,
    Switch,
)

Obj = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
POLICIES = Kind(GROUP, "v1", "mutatingadmissionpolicies", "MutatingAdmissionPolicy", is_namespaced=False)
BINDINGS = Kind(GROUP, "v1", "mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", is_namespaced=False)
CHECKING = Kind(GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", is_namespaced=False)
CHECKING_BINDINGS = CHECKING._replace(
    plural="validatingadmissionpolicybindings", name="ValidatingAdmissionPolicyBinding"
)
OLDER_POLICIES = POLICIES._replace(version="v1beta1")
OLDER_BINDINGS = BINDINGS._replace(version="v1beta1")
OURS = {"app.kubernetes.io/managed-by": "shoal", "app.kubernetes.io/component": "gatekeeping"}
"""Labels of objects that Shoal may change and delete."""

_ON_CREATE = ("CREATE",)
_ON_WRITE = ("CREATE", "UPDATE")
Conditions = Sequence[tuple[str, str]]


class PolicyPair:
    """A policy and its binding, without apiVersion and kind."""

    def __init__(self, name: str, spec: Obj, binding: Obj) -> None:
        meta: Obj = {"name": name, "labels": dict(OURS)}
        self.name = name
        self.policy: Obj = {"metadata": meta, "spec": spec}
        self.binding: Obj = {"metadata": meta, "spec": {"policyName": name, **binding}}


def queue_policies(rules: HoldingRules, queues: Kind | None) -> list[PolicyPair]:
    """`queues`: LocalQueues in the served version; None without them: then there is no default queue."""
    found = list(_named(rules))
    if queues is not None:
        found += _by_default(rules, queues)
    return found


def checking_policies(rules: HoldingRules) -> list[PolicyPair]:
    """The validating policies: a running job stays in its queue, as in Kueue, because another queue has not granted it
    quota.
    """
    return [_keeping(switch, kinds, rules) for switch, kinds in _switches(rules)]


def _keeping(switch: Switch, kinds: Sequence[Kind], rules: HoldingRules) -> PolicyPair:
    message = f"metadata.labels[{QUEUE_LABEL}]: field is immutable while the job is not suspended"
    conditions = (("has-a-spec", cel.has_spec()), ("runs", cel.runs(switch.path)))
    spec: Obj = {
        "matchConstraints": {"namespaceSelector": rules.selector(), "resourceRules": _rules(kinds, ("UPDATE",))},
        "matchConditions": [{"name": short, "expression": text} for short, text in conditions],
        "validations": [{"expression": cel.keeps_queue(), "message": message, "reason": "Invalid"}],
        "failurePolicy": "Ignore",
    }
    return PolicyPair(f"shoal-keep-queue-{switch.name}", spec, {"validationActions": ["Deny"]})


def devices_policy() -> PolicyPair:
    """Protects device annotations. The devices of a pod are written when it is bound, by a client that may bind; and
    its annotated requests must not change on a node, because the scheduler and the quota have used them.
    """
    validations = [
        {"expression": cel.leaves_devices_alone(), "reason": "Forbidden", "message": cel.DEVICES_MESSAGE},
        {"expression": cel.asks_before_it_is_bound(), "reason": "Forbidden", "message": cel.FRACTION_MESSAGE},
    ]
    spec: Obj = {
        # Updates of the status may change annotations too.
        "matchConstraints": {"resourceRules": _rules((PODS, PODS._replace(plural="pods/status")), _ON_WRITE)},
        # In this order: the first one that is false decides.
        "matchConditions": [
            {"name": "changes-annotations", "expression": cel.changes_annotations()},
            {"name": "speaks-of-devices", "expression": cel.speaks_of_devices()},
        ],
        "validations": validations,
        "failurePolicy": "Fail",
    }
    return PolicyPair("shoal-guard-devices", spec, {"validationActions": ["Deny"]})


def parts_policy() -> PolicyPair:
    """Limits parts of GPUs in annotations, which the quota of kube-apiserver does not count: the devices of one pod
    plus the recorded usage must be within the quota. The parts of other pods are not counted, because a policy sees
    only one pod.
    """
    validation = {"expression": parts.are_within(), "reason": "Forbidden", "messageExpression": parts.exceeded()}
    conditions = (("asks-for-parts", parts.are_asked_for()), ("is-no-mirror-pod", f"!({cel.is_own_mirror_pod()})"))
    spec: Obj = {
        "paramKind": {"apiVersion": "v1", "kind": "ResourceQuota"},
        "matchConstraints": {"resourceRules": _rules((PODS,), _ON_CREATE)},
        "matchConditions": [{"name": short, "expression": text} for short, text in conditions],
        "variables": [{"name": name, "expression": text} for name, text in parts.VARIABLES.items()],
        "validations": [validation],
        "failurePolicy": "Fail",
    }
    every = {"selector": {}, "parameterNotFoundAction": "Allow"}
    return PolicyPair("shoal-limit-gpu-parts", spec, {"paramRef": every, "validationActions": ["Deny"]})


def rendezvous_policy() -> PolicyPair:
    conditions = (("asks-for-rendezvous", cel.asks_rendezvous()),)
    return _pair("shoal-rendezvous", (PODS,), conditions, [cel.rendezvous()])


def _named(rules: HoldingRules) -> Iterator[PolicyPair]:
    asks: list[tuple[str, str]] = [] if rules.everything else [("asks-for-a-queue", cel.asks_for_queue())]
    labelled = {"matchExpressions": [{"key": QUEUE_LABEL, "operator": "Exists"}]}
    selecting: Obj = {"namespaceSelector": rules.selector()}
    if not rules.everything:
        selecting["objectSelector"] = labelled
    child = ("is-no-part-of-another-job", cel.is_no_child())
    for switch, kinds in _switches(rules):
        conditions = (*asks, child, ("has-a-spec", cel.has_spec()))
        yield _pair(f"shoal-hold-{switch.name}", kinds, conditions, [cel.suspending(switch.path)], selecting)
    pods: Conditions = (
        ("is-to-be-held", _held_pod(rules)),
        ("is-not-on-a-node", cel.is_unbound()),
    )
    if rules.holds(PODS):
        yield _pair("shoal-hold-pods", (PODS,), pods, [cel.gating()], selecting)
    handed = {**selecting, "objectSelector": labelled}
    for keeper in _keepers(rules):
        name = f"shoal-hand-down-{keeper.kind.plural}"
        asked: Conditions = (("asks-for-a-queue", cel.asks_for_queue()), child)
        yield _pair(name, (keeper.kind,), asked, [cel.handing_down(keeper)], handed, _ON_WRITE)


def _held_pod(rules: HoldingRules) -> str:
    queued = f"({cel.asks_for_queue()}) && (({cel.is_held_by_parent()}) || ({cel.is_no_child()}))"
    return f"{queued} || ({cel.is_nobodys()})" if rules.everything else queued


def _by_default(rules: HoldingRules, queues: Kind) -> Iterator[PolicyPair]:
    selecting: Obj = {"namespaceSelector": rules.selector()}
    asks = ("asks-for-no-queue", cel.asks_for_no_queue())
    child = ("is-no-part-of-another-job", cel.is_no_child())
    label = cel.labelled_default()
    for switch, kinds in _switches(rules):
        conditions = (asks, child, ("has-a-spec", cel.has_spec()))
        mutations = [label, cel.suspending(switch.path)]
        name = f"shoal-hold-{switch.name}-default"
        yield _with_default(_pair(name, kinds, conditions, mutations, selecting), queues)
    pods = (asks, ("has-no-owner", cel.is_nobodys()), ("is-not-on-a-node", cel.is_unbound()))
    mutations = [label, cel.gating()]
    if rules.holds(PODS):
        yield _with_default(_pair("shoal-hold-pods-default", (PODS,), pods, mutations, selecting), queues)
    for keeper in _keepers(rules):
        name = f"shoal-hand-down-{keeper.kind.plural}-default"
        mutations = [label, cel.handing_down(keeper, f"'{DEFAULT_QUEUE}'")]
        yield _with_default(_pair(name, (keeper.kind,), (asks, child), mutations, selecting), queues)


def _switches(rules: HoldingRules) -> Iterator[tuple[Switch, Sequence[Kind]]]:
    """The switches, with their held kinds."""
    for switch in SWITCHES:
        if kinds := [kind for kind in switch.kinds if rules.holds(kind)]:
            yield switch, kinds


def _keepers(rules: HoldingRules) -> Iterator[Keeper]:
    return (keeper for keeper in KEEPERS if rules.holds(keeper.kind))


def _with_default(pair: PolicyPair, queues: Kind) -> PolicyPair:
    pair.policy["spec"]["paramKind"] = {"apiVersion": queues.api_version, "kind": queues.name}
    pair.policy["spec"]["failurePolicy"] = "Ignore"
    pair.binding["spec"]["paramRef"] = {"name": DEFAULT_QUEUE, "parameterNotFoundAction": "Allow"}
    return pair


def _pair(
    name: str,
    kinds: Sequence[Kind],
    conditions: Conditions,
    mutations: Sequence[str],
    selecting: Obj | None = None,
    operations: Sequence[str] = _ON_CREATE,
) -> PolicyPair:
    spec: Obj = {
        "matchConstraints": {**(selecting or {}), "resourceRules": _rules(kinds, operations)},
        "matchConditions": [{"name": short, "expression": text} for short, text in conditions],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": text}} for text in mutations],
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
    }
    return PolicyPair(name, spec, {})


def _rules(kinds: Sequence[Kind], operations: Sequence[str]) -> list[Obj]:
    groups: dict[str, list[str]] = {}
    for kind in kinds:
        groups.setdefault(kind.group, []).append(kind.plural)
    return [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": list(operations), "resources": plurals}
        for group, plurals in groups.items()
    ]
