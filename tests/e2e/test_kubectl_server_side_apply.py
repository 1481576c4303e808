"""`kubectl apply --server-side`: who owns which field, who may take it, and how one comes from client-side apply."""

from __future__ import annotations

from typing import Any

from build.kubectl_runs import Kubectl

Obj = dict[str, Any]


def settings(**data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}


def owners(kubectl: Kubectl, key: str) -> set[str]:
    """The managers that own a key of the data."""
    found = kubectl.get("configmap", "settings", "--show-managed-fields")["metadata"]["managedFields"]
    return {one["manager"] for one in found if f"f:{key}" in one["fieldsV1"].get("f:data", {})}


def apply(kubectl: Kubectl, manager: str, obj: Obj, *more: str) -> str:
    return kubectl("apply", "--server-side", "-f-", f"--field-manager={manager}", *more, given=obj)


def test_two_managers_own_their_own_fields_and_drop_only_those(kubectl: Kubectl) -> None:
    assert apply(kubectl, "ann", settings(a="1", b="2")) == "configmap/settings serverside-applied\n"
    apply(kubectl, "bob", settings(c="3"))
    apply(kubectl, "ann", settings(a="1"))
    assert kubectl.get("configmap", "settings")["data"] == {"a": "1", "c": "3"}
    assert (owners(kubectl, "a"), owners(kubectl, "c")) == ({"ann"}, {"bob"})


def test_a_conflict_names_manager_and_field_and_force_takes_it(kubectl: Kubectl) -> None:
    apply(kubectl, "ann", settings(a="1"))
    refusal = kubectl.refused("apply", "--server-side", "-f-", "--field-manager=bob", given=settings(a="2"))
    assert refusal.startswith('error: Apply failed with 1 conflict: conflict with "ann": .data.a\n')
    assert apply(kubectl, "bob", settings(a="2"), "--force-conflicts") == "configmap/settings serverside-applied\n"
    assert owners(kubectl, "a") == {"bob"}


def test_agreeing_managers_own_a_field_together_and_it_stays_until_both_let_go(kubectl: Kubectl) -> None:
    apply(kubectl, "ann", settings(a="1", keep="x"))
    apply(kubectl, "bob", settings(a="1", keep="x"))
    assert owners(kubectl, "a") == {"ann", "bob"}
    apply(kubectl, "ann", settings(keep="x"))
    assert kubectl.get("configmap", "settings")["data"]["a"] == "1"
    apply(kubectl, "bob", settings(keep="x"))
    assert "a" not in kubectl.get("configmap", "settings")["data"]


def test_an_object_of_client_side_apply_comes_over_without_a_conflict(kubectl: Kubectl) -> None:
    kubectl("apply", "-f-", given=settings(a="1", b="2"))
    assert kubectl("apply", "--server-side", "-f-", given=settings(a="9")) == "configmap/settings serverside-applied\n"
    assert kubectl.get("configmap", "settings")["data"] == {"a": "9"}
    assert owners(kubectl, "a") == {"kubectl"}


def test_what_a_patch_changed_conflicts_with_a_later_apply(kubectl: Kubectl) -> None:
    apply(kubectl, "ann", settings(a="1"))
    kubectl("patch", "configmap", "settings", "--field-manager=fixer", "-p", '{"data": {"a": "5"}}')
    refusal = kubectl.refused("apply", "--server-side", "-f-", "--field-manager=ann", given=settings(a="1"))
    assert 'conflict with "fixer" using v1: .data.a' in refusal


def test_a_dry_run_tells_of_conflicts_and_changes_nothing(kubectl: Kubectl) -> None:
    apply(kubectl, "ann", settings(a="1"))
    version = kubectl.get("configmap", "settings")["metadata"]["resourceVersion"]
    told = apply(kubectl, "ann", settings(a="2"), "--dry-run=server")
    assert told == "configmap/settings serverside-applied (server dry run)\n"
    dry = ("apply", "--server-side", "-f-", "--field-manager=bob", "--dry-run=server")
    assert "1 conflict" in kubectl.refused(*dry, given=settings(a="2"))
    assert kubectl.get("configmap", "settings")["metadata"]["resourceVersion"] == version


def test_server_side_diff_shows_the_change(kubectl: Kubectl) -> None:
    apply(kubectl, "kubectl", settings(a="1"))
    shown = kubectl.run("diff", "--server-side", "-f-", given=settings(a="2"))
    assert shown.code == 1
    assert '-  a: "1"' in shown.out
    assert '+  a: "2"' in shown.out
