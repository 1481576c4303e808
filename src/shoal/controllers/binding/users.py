"""The pod for whose sake something is written."""

from __future__ import annotations

from typing import NamedTuple

from shoal.store.live.item import Key


class User(NamedTuple):
    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)
