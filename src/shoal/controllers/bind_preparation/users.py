"""The pod for which claims and volumes are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from shoal.client.item import Key
from shoal.units.errors import ConflictError


def _always() -> bool:
    return True


class User(NamedTuple):
    namespace: str
    name: str
    uid: str
    is_wanted: Callable[[], bool] = _always
    """Whether the decision for the node still holds."""

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)

    def check(self) -> None:
        """Raises an error once the decision does not hold."""
        if not self.is_wanted():
            raise ConflictError("the pod's place was given up meanwhile")
