"""What conditions say of a namespace on its way out."""

from __future__ import annotations

from shoal.client.kind import CONFIG_MAPS, DEPLOYMENTS, PODS
from shoal.embedded.controllers.namespaces.remaining_content import Left, RemainingContent, conditions


def _told(remains: RemainingContent) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["message"]) for one in conditions((), remains, "now")}


def test_kinds_and_finalizers_are_counted_and_named_in_order() -> None:
    remains = RemainingContent()
    remains.count(PODS, [Left("a", finalizers=("z/z",)), Left("b", finalizers=("a/a", "z/z"))])
    remains.count(DEPLOYMENTS, [Left("c")])
    remains.count(CONFIG_MAPS, [])
    told = _told(remains)
    words = "Some resources are remaining: deployments.apps has 1 resource instances, pods. has 2 resource instances"
    assert told["NamespaceContentRemaining"] == ("True", words)
    words = "Some content in the namespace has finalizers remaining: "
    words += "a/a in 1 resource instances, z/z in 2 resource instances"
    assert told["NamespaceFinalizersRemaining"] == ("True", words)


def test_what_could_not_be_deleted_is_said() -> None:
    remains = RemainingContent(failures=["b is held", "a is held"])
    words = "Failed to delete all resource types, 2 remaining: a is held, b is held"
    assert _told(remains)["NamespaceDeletionContentFailure"] == ("True", words)
    assert not remains.is_empty


def test_two_namespaces_do_not_share_what_is_left() -> None:
    RemainingContent().count(PODS, [Left("a", finalizers=("z/z",))])
    assert RemainingContent().is_empty
    assert not RemainingContent().finalizers


def test_a_condition_keeps_its_time_for_as_long_as_its_status_stays() -> None:
    remains = RemainingContent()
    remains.count(PODS, [Left("a")])
    first = conditions((), remains, "early")
    remains.count(DEPLOYMENTS, [Left("a")])
    second = conditions(first, remains, "late")
    assert {one["lastTransitionTime"] for one in second} == {"early"}
    assert second != first
    third = conditions(second, RemainingContent(), "later")
    assert {one["type"]: one["lastTransitionTime"] for one in third}["NamespaceContentRemaining"] == "later"
