"""Caches that are told objects one by one, without a server: for readers that follow informers."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from typing import Any, cast

import msgspec

from shoal.client.clock import Clock
from shoal.client.context import Context
from shoal.client.informers import Informers
from shoal.client.item import item_of
from shoal.client.kind import Kind
from shoal.client.port import Api
from shoal.client.recorder import Recorder
from shoal.client.served import Served

Obj = dict[str, Any]


class AllServed(Served):
    """Every kind is there, in its first version."""

    def when_there(self, kind: Kind, then: Callable[[Kind], None] | None = None, *others: Kind) -> None:
        super().when_there(kind, None, *others)
        if then is not None:
            then(kind)

    def find(self, kind: Kind) -> Kind | None:
        return kind


class Told:
    """`put` and `drop` are what a watch would say."""

    def __init__(self) -> None:
        draw, nobody = random.Random(1), cast(Any, None)
        self.informers = Informers(cast(Api, nobody), cast(Clock, nobody), draw)
        self.context = Context(
            "test", cast(Api, nobody), self.informers, cast(Clock, nobody), draw, cast(Recorder, nobody)
        )
        self.served = AllServed(self.context)
        self._version = count(1)

    def put(self, kind: Kind, obj: Obj) -> None:
        version = next(self._version)
        informer, meta = self.informers.of(kind), obj["metadata"]
        known = informer.get(meta.get("namespace", ""), meta["name"])
        uid = known.uid if known is not None else f"{meta['name']}-{version}"
        noted = {"uid": uid, **meta, "resourceVersion": str(version)}
        told = {"apiVersion": kind.api_version, "kind": kind.name, **obj, "metadata": noted}
        informer.learn(item_of(msgspec.json.encode(told)))

    def drop(self, kind: Kind, namespace: str, name: str) -> None:
        informer = self.informers.of(kind)
        item = informer.get(namespace, name)
        if item is not None:
            informer.learn_gone(item.key, item.uid)
