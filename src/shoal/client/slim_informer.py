"""Keeps a cache of one kind with only those fields of its objects that a reader needs.

A pod has ten kilobytes, of which a reader that asks whether it is ready needs three hundred bytes. The items of this
cache have only the declared fields, so `obj()` of them is not the whole object.
"""

from __future__ import annotations

import random

import msgspec

from shoal.client.clock import Clock
from shoal.client.informer import Informer
from shoal.client.item import Item, shortened
from shoal.client.kind import Kind
from shoal.client.outage import Outage
from shoal.client.port import EVERYTHING, Api, Select


class SlimInformer(Informer):
    def __init__(
        self,
        api: Api,
        kind: Kind,
        clock: Clock,
        draw: random.Random,
        fields: type[msgspec.Struct],
        select: Select = EVERYTHING,
        namespace: str = "",
        outage: Outage | None = None,
    ) -> None:
        """`fields`: what is kept of each object."""
        super().__init__(api, kind, clock, draw, select, namespace, outage)
        self._fields = fields

    def _learn(self, item: Item) -> None:
        super()._learn(shortened(item, self._fields))
