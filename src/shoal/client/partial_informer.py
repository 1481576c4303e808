"""Caches a kind of which most objects are only checked for existence: only objects with certain words are kept whole.

Clusters have thousands of ConfigMaps of up to a megabyte, and one or two of them contain a scheduler configuration.
"""

from __future__ import annotations

import random

import msgspec
from msgspec import structs

from shoal.client.clock import Clock
from shoal.client.informer import Informer
from shoal.client.item import Item
from shoal.client.kind import Kind
from shoal.client.outage import Outage
from shoal.client.port import Api


class PartialInformer(Informer):
    """Objects with one of the `hints` are kept whole, others without their content."""

    def __init__(
        self,
        api: Api,
        kind: Kind,
        clock: Clock,
        draw: random.Random,
        hints: tuple[bytes, ...],
        outage: Outage | None = None,
    ) -> None:
        super().__init__(api, kind, clock, draw, outage=outage)
        self._hints = hints

    def _learn(self, item: Item) -> None:
        super()._learn(item if any(word in item.data for word in self._hints) else _head_of(item))


def _head_of(item: Item) -> Item:
    meta = {"name": item.name, "namespace": item.namespace, "uid": item.uid, "resourceVersion": str(item.version)}
    return structs.replace(item, data=msgspec.json.encode({"metadata": meta}))
