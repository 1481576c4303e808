"""Partial views read the fields that they declare, and answer as the whole objects do."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.conditions import Condition, find_condition, is_condition_true
from shoal.api.lease import Lease
from shoal.api.partial import DeletionMeta, LabeledMeta, MetadataOf, OwnedMeta, PartialNode, PartialPod
from shoal.api.pod import Pod

PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown", "")


def pod(phase: str = "Running", *, ready: str = "", deleted: str | None = None, gate: str = "") -> bytes:
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    gates = [{"name": gate}] if gate else []
    metadata = {"name": "p", "uid": "u", **({"deletionTimestamp": deleted} if deleted else {})}
    spec = {"schedulingGates": gates, "containers": [{"name": "c", "resources": {"limits": {"cpu": "not a number"}}}]}
    return msgspec.json.encode(
        {"metadata": metadata, "spec": spec, "status": {"phase": phase, "conditions": conditions}}
    )


def read(data: bytes) -> PartialPod:
    return msgspec.json.decode(data, type=PartialPod)


@given(st.sampled_from(PHASES), st.sampled_from([None, "2026-01-01T00:00:00Z"]))
def test_a_partial_pod_has_ended_or_terminates_when_the_whole_pod_does(phase: str, deleted: str | None) -> None:
    metadata = {"deletionTimestamp": deleted} if deleted else {}
    data = msgspec.json.encode({"metadata": metadata, "spec": {}, "status": {"phase": phase}})
    whole, part = msgspec.json.decode(data, type=Pod), read(data)
    assert part.is_finished() == whole.is_finished()
    assert part.is_terminating() == whole.is_terminating()
    assert part.is_active() == (not whole.is_finished() and not whole.is_terminating())


@pytest.mark.parametrize(("ready", "expected"), [("True", True), ("False", False), ("Unknown", False), ("", False)])
def test_a_pod_is_ready_when_its_condition_is_true(ready: str, expected: bool) -> None:
    assert read(pod(ready=ready)).is_ready() == expected


def test_quantities_of_containers_are_not_parsed() -> None:
    assert read(pod()).uid == "u"


def test_gates_are_found_by_name() -> None:
    gated = read(pod(gate="kueue.x-k8s.io/admission")).spec
    assert gated.is_gated_by("kueue.x-k8s.io/admission")
    assert not gated.is_gated_by("other")


def test_a_node_without_conditions_is_not_ready() -> None:
    assert not msgspec.json.decode(b'{"metadata": {"name": "n"}}', type=PartialNode).is_ready()


def test_metadata_alone_is_read_from_any_kind() -> None:
    data = b'{"kind": "X", "metadata": {"labels": {"a": "b"}, "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": 5}'
    assert msgspec.json.decode(data, type=MetadataOf[LabeledMeta]).metadata.labels == {"a": "b"}
    assert msgspec.json.decode(data, type=MetadataOf[DeletionMeta]).metadata.is_terminating()


def test_the_controller_is_the_owner_that_says_so() -> None:
    owners = b'{"ownerReferences": [{"kind": "A", "name": "a"}, {"kind": "B", "name": "b", "controller": true}]}'
    controller = msgspec.json.decode(owners, type=OwnedMeta).controller()
    assert controller is not None
    assert (controller.kind, controller.name) == ("B", "b")
    assert OwnedMeta().controller() is None


def test_the_condition_of_a_type_is_found_whatever_its_status() -> None:
    conditions = (Condition("A", "False"), Condition("B", "True"))
    assert find_condition(conditions, "A") is conditions[0]
    assert find_condition(conditions, "C") is None
    assert [is_condition_true(conditions, name) for name in ("A", "B", "C")] == [False, True, False]


def test_a_lease_without_a_spec_has_no_holder() -> None:
    lease = msgspec.json.decode(b'{"metadata": {}}', type=Lease)
    assert lease.content().holder_identity is None
    assert lease.content().renewed_at() is None
