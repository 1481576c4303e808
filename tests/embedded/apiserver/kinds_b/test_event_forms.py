from __future__ import annotations

from typing import Any

from build.kind_objects import texts
from shoal.embedded.apiserver.builtin_conversion import convert_builtin
from shoal.embedded.apiserver.kinds.table import STRATEGIES

Obj = dict[str, Any]
NEWER: Obj = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "e", "namespace": "default"},
    "eventTime": "2026-11-21T10:00:00.000000Z",
    "reportingController": "example.com/c",
    "reportingInstance": "c-1",
    "action": "Did",
    "reason": "Because",
    "type": "Normal",
    "note": "hello",
    "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    "deprecatedSource": {},
}


def test_an_event_is_the_same_after_a_journey_through_the_other_group() -> None:
    core = convert_builtin(NEWER, "v1")
    assert core["apiVersion"] == "v1"
    assert core["involvedObject"] == NEWER["regarding"]
    assert core["message"] == "hello"
    assert core["reportingComponent"] == "example.com/c"
    assert convert_builtin(core, "events.k8s.io/v1") == NEWER


def test_an_event_of_the_newer_group_is_checked_strictly() -> None:
    strategy = STRATEGIES["events.k8s.io", "events"]
    assert strategy.validate(NEWER) == []
    timeless = {key: value for key, value in NEWER.items() if key != "eventTime"} | {"deprecatedCount": 3}
    assert texts(strategy.validate(timeless)) == [
        "eventTime: Required value",
        'count: Invalid value: "": needs to be unset',
    ]


def test_old_clients_may_say_less() -> None:
    event = {
        "apiVersion": "v1",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "count": 2,
    }
    assert STRATEGIES["", "events"].validate(event) == []
    elsewhere = event | {"involvedObject": {"kind": "Pod", "namespace": "other"}}
    assert texts(STRATEGIES["", "events"].validate(elsewhere)) == [
        'involvedObject.namespace: Invalid value: "other": does not match event.namespace'
    ]


def test_both_groups_select_by_the_same_stored_fields() -> None:
    core, newer = STRATEGIES["", "events"], STRATEGIES["events.k8s.io", "events"]
    found = newer.fields(NEWER)
    assert found == core.fields(convert_builtin(NEWER, "v1"))
    assert {*core.selectable(), *newer.selectable()} <= {*found}
    assert found["involvedObject.name"] == found["regarding.name"] == "p"


def test_an_event_of_the_newer_group_does_not_change_its_story() -> None:
    strategy = STRATEGIES["events.k8s.io", "events"]
    assert texts(strategy.validate_update(NEWER | {"note": "other"}, NEWER)) == [
        'message: Invalid value: "other": field is immutable'
    ]
