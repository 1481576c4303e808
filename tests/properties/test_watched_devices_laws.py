"""Whatever happens to slices, classes, claims and templates: what was kept up equals what is read at once."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.told_objects import Told
from shoal.api.claims import ResourceClaim, ResourceClaimTemplate
from shoal.api.device_classes import DeviceClass
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.slices import ResourceSlice
from shoal.api.wire import ApiStruct
from shoal.client.item import Item
from shoal.client.kind import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Kind,
)
from shoal.engine.events import ClaimGone, ClaimSeen, DeviceSetSeen, DevicesGone, DevicesSeen
from shoal.store.dra import dra_of
from shoal.store.watched.devices import WatchedDevices
from shoal.store.watched.reading import value_of

Obj = dict[str, Any]
DRIVER = "gpu.nvidia.com"
EXPRESSIONS = (
    'device.attributes["gpu.nvidia.com"].type == "gpu"',
    'device.attributes["gpu.nvidia.com"].model == "B"',
    'device.driver == "gpu.nvidia.com"',
    "device.driver ==",
)

expressions = st.lists(st.sampled_from(EXPRESSIONS), max_size=2)
names = st.sampled_from(["a", "b", "c"])


def selectors(texts: list[str]) -> list[Obj]:
    return [{"cel": {"expression": text}} for text in texts]


def slice_of(name: str, pool: str, generation: int, models: list[str | None]) -> Obj:
    devices = []
    for at, model in enumerate(models):
        told = {"type": {"string": "gpu"}, **({"model": {"string": model}} if model else {})}
        devices.append({"name": f"{name}{at}", "attributes": told})
    spec = {
        "driver": DRIVER,
        "nodeName": "n1",
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
        "devices": devices,
    }
    return {"metadata": {"name": name}, "spec": spec}


def claim_spec(of: str, texts: list[str]) -> Obj:
    exact = {"deviceClassName": of, "selectors": selectors(texts)}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exact}]}}


def claim_of(name: str, spec: Obj, owner: str, device: str, is_terminating: bool) -> Obj:
    meta: Obj = {"name": name, "namespace": "team", "annotations": {}}
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": owner, "controller": True}]
        meta["annotations"] = {"resource.kubernetes.io/pod-claim-name": "mine"}
    if is_terminating:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    result = {"request": "gpu", "driver": DRIVER, "pool": "p", "device": device}
    status = {"allocation": {"devices": {"results": [result]}}} if device else {}
    return {"metadata": meta, "spec": spec, "status": status}


def pod_of(name: str, claims: list[Obj], told: str, resource: str) -> Obj:
    limits = {resource: "1"} if resource else {}
    status = {"resourceClaimStatuses": [{"name": "mine", "resourceClaimName": told}]} if told else {}
    containers = [{"name": "main", "resources": {"limits": limits, "requests": limits}}]
    return {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"containers": containers, "resourceClaims": claims},
        "status": status,
    }


specs = st.builds(claim_spec, st.sampled_from(["k", "l"]), expressions)
changes = st.one_of(
    st.tuples(
        st.just(RESOURCE_SLICES),
        st.builds(
            slice_of,
            names,
            st.sampled_from(["p", "q"]),
            st.integers(1, 2),
            st.lists(st.sampled_from(["A", "B", None]), max_size=2),
        ),
    ),
    st.tuples(
        st.just(DEVICE_CLASSES),
        st.builds(
            lambda name, texts, extended: {
                "metadata": {"name": name},
                "spec": {"selectors": selectors(texts), **({"extendedResourceName": extended} if extended else {})},
            },
            st.sampled_from(["k", "l"]),
            expressions,
            st.sampled_from(["", "example.com/gpu"]),
        ),
    ),
    st.tuples(
        st.just(RESOURCE_CLAIM_TEMPLATES),
        st.builds(
            lambda name, spec: {"metadata": {"name": name, "namespace": "team"}, "spec": {"spec": spec}},
            st.sampled_from(["t", "u"]),
            specs,
        ),
    ),
    st.tuples(
        st.just(RESOURCE_CLAIMS),
        st.builds(
            claim_of, names, specs, st.sampled_from(["", "x", "y"]), st.sampled_from(["", "a0", "b0"]), st.booleans()
        ),
    ),
    st.tuples(
        st.just(PODS),
        st.builds(
            pod_of,
            st.sampled_from(["x", "y", "z"]),
            st.sampled_from(
                [
                    [],
                    [{"name": "mine", "resourceClaimTemplateName": "t"}],
                    [{"name": "mine", "resourceClaimTemplateName": "u"}, {"name": "ours", "resourceClaimName": "a"}],
                ]
            ),
            st.sampled_from(["", "a", "b"]),
            st.sampled_from(["", "example.com/gpu", "deviceclass.resource.kubernetes.io/k"]),
        ),
    ),
    st.tuples(
        st.just(NODES),
        st.builds(
            lambda amount: {"metadata": {"name": "n1"}, "status": {"allocatable": {"example.com/gpu": amount}}},
            st.sampled_from(["0", "2"]),
        ),
    ),
)
steps = st.lists(st.tuples(changes, st.sampled_from(["put", "put", "put", "drop", "drain"])), max_size=30)


MINE = {"name": "mine", "resourceClaimTemplateName": "t"}
FIRST: tuple[tuple[Kind, Obj], ...] = (
    (RESOURCE_SLICES, slice_of("a", "p", 1, ["A", "B"])),
    (DEVICE_CLASSES, {"metadata": {"name": "k"}, "spec": {"selectors": selectors([EXPRESSIONS[0]])}}),
    (DEVICE_CLASSES, {"metadata": {"name": "l"}, "spec": {}}),
    (
        RESOURCE_CLAIM_TEMPLATES,
        {"metadata": {"name": "t", "namespace": "team"}, "spec": {"spec": claim_spec("k", [EXPRESSIONS[1]])}},
    ),
    (PODS, pod_of("x", [MINE], "", "")),
    (PODS, pod_of("y", [MINE], "", "example.com/gpu")),
)
"""So that most changes concern somebody."""


class Kept:
    """The facts as events made them, and what pods claim as it was asked when somebody said that it was due."""

    def __init__(self, told: Told) -> None:
        self.told = told
        self.devices = WatchedDevices(told.context, told.served, lambda: None)
        self.pieces: dict[str, Any] = {}
        self.sets: dict[str, Any] = {}
        self.claims: dict[str, Any] = {}
        self.refs: dict[str, Any] = {}
        self._new: set[str] = set()
        told.informers.of(PODS).on_change(self._pod_changed)

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        item = after or before
        assert item is not None
        self._new.add(f"{item.namespace}/{item.name}")

    def drain(self) -> None:
        for _ in range(2):
            for event in self.devices.drain():
                match event:
                    case DevicesSeen(piece):
                        self.pieces[piece.name] = piece
                    case DevicesGone(name):
                        self.pieces.pop(name, None)
                    case DeviceSetSeen(name, devices):
                        self.sets[name] = devices
                    case ClaimSeen(claim):
                        self.claims[claim.key] = claim
                    case ClaimGone(key):
                        del self.claims[key]
            for key in self.devices.stirred() | self._new:
                item = self.told.informers.of(PODS).get(*key.split("/"))
                if item is None:
                    self.refs.pop(key, None)
                else:
                    self.refs[key] = self.devices.refs(value_of(PODS, item, Pod))
            self._new.clear()


def present(told: Told, kind: Kind, what: type[ApiStruct]) -> list[Any]:
    items = sorted(told.informers.of(kind), key=lambda item: item.key)
    return [value_of(kind, item, what) for item in items]


@given(steps)
@settings(max_examples=examples(80), deadline=None)
def test_what_is_kept_up_is_what_is_read_at_once(taken: list[tuple[tuple[Kind, Obj], str]]) -> None:
    told = Told()
    kept = Kept(told)
    for kind, obj in FIRST:
        told.put(kind, obj)
    kept.drain()
    for (kind, obj), what in taken:
        meta = obj["metadata"]
        if what == "drop":
            told.drop(kind, meta.get("namespace", ""), meta["name"])
        else:
            told.put(kind, obj)
        if what == "drain":
            kept.drain()
    kept.drain()
    pods = present(told, PODS, Pod)
    wanted = dra_of(
        present(told, RESOURCE_SLICES, ResourceSlice),
        present(told, DEVICE_CLASSES, DeviceClass),
        present(told, RESOURCE_CLAIMS, ResourceClaim),
        present(told, RESOURCE_CLAIM_TEMPLATES, ResourceClaimTemplate),
        pods,
        present(told, NODES, Node),
    )
    read = {pod.metadata.key: kept.refs[pod.metadata.key] for pod in pods}
    assert {key: refs for key, (refs, _) in read.items() if refs} == wanted.refs
    stripped = {pod.metadata.key: read[pod.metadata.key][1] for pod in pods if read[pod.metadata.key][1] != pod}
    assert stripped == wanted.stripped
    assert kept.pieces == {event.piece.name: event.piece for event in wanted.events if isinstance(event, DevicesSeen)}
    assert kept.claims == {event.claim.key: event.claim for event in wanted.events if isinstance(event, ClaimSeen)}
    sets = {event.name: event.devices for event in wanted.events if isinstance(event, DeviceSetSeen)}
    assert {name: devices for name, devices in kept.sets.items() if name in sets} == sets
    assert not kept.devices.take_troubles()
