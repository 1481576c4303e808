"""Nobody grants through a role or a binding what they do not have themselves."""

from __future__ import annotations

from typing import Any

import pytest

from build.rbac import actor, binding, cluster_binding, cluster_role, role
from build.readers import FixedReader
from shoal.embedded.apiserver.calls import Actor, AdmissionAttributes, Call
from shoal.embedded.apiserver.resource import Resource
from shoal.embedded.apiserver.security.authorize import AllowRecognised
from shoal.embedded.apiserver.security.escalation import EscalationCheck
from shoal.embedded.apiserver.security.rbac import Rbac
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]
BOB = Actor("bob", ("devs", "system:authenticated"))


def written(obj: Obj, by: Actor = BOB, old: Obj | None = None) -> AdmissionAttributes:
    namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
    plural = f"{obj['kind'].lower()}s"
    resource = Resource("rbac.authorization.k8s.io", "v1", plural, obj["kind"], bool(namespace))
    call = Call("create" if old is None else "update", resource, by, namespace, name if old else "")
    return AdmissionAttributes("CREATE" if old is None else "UPDATE", call, name, obj, old)


def refusal(reader: FixedReader, admission: AdmissionAttributes) -> ApiError:
    with pytest.raises(ApiError) as caught:
        EscalationCheck(Rbac(reader)).validate(admission)
    return caught.value


def is_accepted(check: EscalationCheck, admission: AdmissionAttributes) -> bool:
    try:
        check.validate(admission)
    except ApiError:
        return False
    return True


def test_a_role_with_more_than_its_writer_has_is_refused_rule_by_rule() -> None:
    reader = FixedReader(role("ns", "own", "list pods"), binding("ns", "Role own", "User bob"))
    error = refusal(reader, written(role("ns", "more", "get,list pods", "get deployments @apps")))
    assert error.code == 403
    assert error.message == (
        'roles.rbac.authorization.k8s.io "more" is forbidden: user "bob" (groups=["devs" "system:authenticated"]) is '
        "attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["get"]}\n'
        '{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}'
    )


def test_a_role_within_what_its_writer_has_is_fine() -> None:
    reader = FixedReader(cluster_role("own", "* pods,pods/log"), cluster_binding("own", "Group devs"))
    check = EscalationCheck(Rbac(reader))
    assert is_accepted(check, written(role("ns", "less", "get pods/log", "list pods")))
    assert not is_accepted(check, written(role("ns", "more", "get pods/exec", "list pods")))


def test_rights_in_one_namespace_are_none_in_another() -> None:
    reader = FixedReader(role("ns", "own", "list pods"), binding("ns", "Role own", "User bob"))
    assert refusal(reader, written(role("other", "same", "list pods"))).code == 403


def test_the_verb_escalate_lifts_the_check() -> None:
    any_right = written(role("ns", "any", "* * @*"))
    for verb in ("escalate", "update"):
        right = cluster_role("own", f"{verb} roles @rbac.authorization.k8s.io")
        check = EscalationCheck(Rbac(FixedReader(right, cluster_binding("own", "User bob"))))
        assert is_accepted(check, any_right) == (verb == "escalate")


def test_the_verb_escalate_on_one_name_is_none_to_create_it() -> None:
    own = cluster_role("own", "escalate roles @rbac.authorization.k8s.io =any")
    reader = FixedReader(own, cluster_binding("own", "User bob"))
    strong = role("ns", "any", "* * @*")
    assert refusal(reader, written(strong)).code == 403
    EscalationCheck(Rbac(reader)).validate(written(strong, old=role("ns", "any")))


@pytest.mark.parametrize(
    "strong", [role("ns", "strong", "* * @*"), binding("ns", "ClusterRole strong", "User eve")], ids=["role", "binding"]
)
def test_only_what_garbage_collection_writes_is_changed_without_the_rights(strong: Obj) -> None:
    def changed(**metadata: Any) -> AdmissionAttributes:
        return written({**strong, "metadata": {**strong["metadata"], **metadata}}, old=strong)

    reader = FixedReader(cluster_role("strong", "* * @*"))
    EscalationCheck(Rbac(reader)).validate(changed(finalizers=["a"], ownerReferences=[{"name": "x"}], managedFields=[]))
    # By a label a role is gathered into others.
    assert refusal(reader, changed(labels={"rbac.authorization.k8s.io/aggregate-to-view": "true"})).code == 403


def test_a_role_that_gathers_others_is_changed_by_who_has_all_rights_only() -> None:
    reader = FixedReader(cluster_role("own", "list pods"), cluster_binding("own", "User bob"))
    old = cluster_role("wide", gathers="to-wide")
    assert refusal(reader, written(cluster_role("wide"), old=old)).message.endswith("to use the aggregationRule")


def test_binding_a_role_needs_its_rights_or_the_verb_bind() -> None:
    strong = cluster_role("strong", "delete nodes")
    bound = cluster_binding("strong", "User eve")
    error = refusal(FixedReader(strong), written(bound))
    assert error.message.startswith('clusterrolebindings.rbac.authorization.k8s.io "strong-binding" is forbidden: user')
    assert error.message.endswith('{APIGroups:[""], Resources:["nodes"], Verbs:["delete"]}')
    may_bind = cluster_role("binder", "bind clusterroles @rbac.authorization.k8s.io =strong")
    reader = FixedReader(strong, may_bind, cluster_binding("binder", "User bob"))
    EscalationCheck(Rbac(reader)).validate(written(bound))


def test_binding_a_role_that_is_not_there_is_not_found() -> None:
    error = refusal(FixedReader(), written(binding("ns", "Role gone", "User eve")))
    assert (error.code, error.message) == (404, 'role.rbac.authorization.k8s.io "gone" not found')


def test_gathering_other_roles_needs_all_rights_there_are() -> None:
    reader = FixedReader(cluster_role("own", "list pods"), cluster_binding("own", "User bob"))
    error = refusal(reader, written(cluster_role("wide", gathers="to-wide")))
    assert error.message.endswith("must have cluster-admin privileges to use the aggregationRule")


def test_superusers_and_clusters_without_rbac_are_not_checked() -> None:
    strong = role("ns", "any", "* * @*")
    check = EscalationCheck(Rbac(FixedReader()))
    assert is_accepted(check, written(strong, by=actor("root", "system:masters")))
    assert not is_accepted(check, written(strong))
    assert is_accepted(EscalationCheck(AllowRecognised()), written(strong))
