"""A process lives for months: what came and went leaves nothing behind in what is known of a cluster."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from build.fed_worlds import FedWorld
from build.scripted_api import ScriptedApi
from shoal.api.pod import Pod
from shoal.client.clock import WallClock
from shoal.client.context import Context
from shoal.client.informer import Informer
from shoal.client.informers import Informers
from shoal.client.item import Obj, item_of
from shoal.client.kind import PODS
from shoal.client.recorder import Recorder
from shoal.engine.device_notation import NodeIds
from shoal.engine.devices.kind import DevicePositions
from shoal.engine.dra.requests import ClaimRef
from shoal.store.watched.pod_asks import PodAsks
from shoal.store.watched.pod_heads import head_of
from shoal.store.watched.queue_room import TakenRoom

_WARM, _ROUNDS = 20, 60
_BOUNDED = (
    *(f"world.gangs._reader._pods._asks.{name}" for name in ("_equal", "_identities", "_whos")),
    "world.gangs._signs",
)
"""Begun anew when they are full: what was written alike is written alike again."""


def _objects(number: int) -> Iterator[Obj]:
    """A namespace with a pod of a gang, a job's pod, a pod with a device claim of its own and a budget for all."""
    space, name = f"space-{number}", f"w-{number}"
    at = {"namespace": space}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
    room = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    yield {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n-{number}"}, "status": {"allocatable": room}}
    groups = [{"name": "workers", "policy": {"gang": {"minCount": 1}}}]
    spec: Obj = {"podGroups": groups}
    yield {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, **at},
        "spec": spec,
    }
    yield _pod("a", at, workloadRef={"name": name, "podGroup": "workers"})
    yield _pod("b", at, nodeName=f"n-{number}")
    claim = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    meta = {"name": f"claim-{number}", **at}
    yield {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": claim}
    yield _pod("c", at, resourceClaims=[{"name": "x", "resourceClaimName": f"claim-{number}"}])
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    meta = {"name": "budget", **at}
    yield {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": budget}


def _pod(name: str, at: dict[str, str], **spec: Any) -> Obj:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    body = {"schedulerName": "default-scheduler", "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "x"}, **at}, "spec": body}


def _sizes(root: object) -> dict[str, int]:
    """How many entries there are in all dicts, sets and lists that can be reached, by where they hang. The objects in
    caches are left out."""
    found: dict[str, int] = {}
    seen: set[int] = set()
    todo: list[tuple[str, object]] = [("world", root)]
    while todo:
        path, value = todo.pop()
        if id(value) in seen or isinstance(value, (Informer, str, bytes, int, float, type(None), type)):
            continue
        seen.add(id(value))
        if isinstance(value, (dict, set, frozenset, list, tuple)):
            found[path] = found.get(path, 0) + len(value)
            inner = list(value.values()) + list(value) if isinstance(value, dict) else list(value)
            todo += [(f"{path}[]", one) for one in inner]
        elif isinstance(value, msgspec.Struct):
            todo += [(f"{path}.{name}", getattr(value, name)) for name in value.__struct_fields__]
        elif type(value).__module__.startswith("shoal."):
            todo += [(f"{path}.{name}", one) for name, one in vars(value).items()] if hasattr(value, "__dict__") else []
    return found


def test_what_came_and_went_leaves_nothing_behind() -> None:
    fed = FedWorld()

    def rounds(first: int, count: int) -> dict[str, int]:
        for number in range(first, first + count):
            objects = list(_objects(number))
            fed.put(*objects)
            assert fed.drain()
            for obj in objects:
                fed.drop(obj)
            fed.drain()
            fed.drain()
        return _sizes(fed.world)

    before = rounds(0, _WARM)
    after = rounds(_WARM, _ROUNDS)
    assert sum(before.values()) > 50, "something is known"
    grown = [path for path, size in after.items() if size > before.get(path, 0) + 5 and not path.startswith(_BOUNDED)]
    assert grown == []


class _Allocated:
    """Every pod's claim is allocated: nobody else asks for that."""

    def refs(self, pod: Pod) -> tuple[tuple[ClaimRef, ...], Pod]:
        return (ClaimRef("x", f"{pod.metadata.key}-x"),), pod

    def positions(self, annotations: Mapping[str, str], node: str) -> DevicePositions:
        return ()

    def ids(self, node: str) -> NodeIds:
        raise NotImplementedError


def test_asks_that_are_each_their_own_are_not_kept_for_ever() -> None:
    asks, most = PodAsks({}, _Allocated(), None), 17_000
    for number in range(most):
        obj = _pod(f"p{number}", {"namespace": "a"}, resourceClaims=[{"name": "x", "resourceClaimName": "y"}])
        obj["metadata"] |= {"uid": str(number), "resourceVersion": str(number + 1)}
        item = item_of(msgspec.json.encode(obj))
        head = head_of(item)
        asks.ask(item, head, is_ours=True)
    assert 0 < _sizes(asks)["world._equal"] < most


def test_room_on_nodes_that_are_gone_is_forgotten_with_their_pods() -> None:
    room = TakenRoom(lambda _: ())
    informers = Informers(ScriptedApi(), WallClock(), random.Random(1))
    context = Context(
        "t", ScriptedApi(), informers, WallClock(), random.Random(1), Recorder(ScriptedApi(), WallClock(), "t")
    )
    room.follow(context, lambda: None)
    for number in range(50):
        obj = _pod("a", {"namespace": "a"}, nodeName=f"n-{number}")
        obj["metadata"] |= {"uid": f"u-{number}", "resourceVersion": str(2 * number + 1)}
        informers.of(PODS).learn(item_of(msgspec.json.encode(obj)))
        assert room.on(f"n-{number}")["cpu"] == 1000
        informers.of(PODS).learn_gone(("a", "a"), f"u-{number}")
        assert room.on(f"n-{number}") == {}
    assert all(size < 5 for path, size in _sizes(room).items() if path.startswith("world._on"))
