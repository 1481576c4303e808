"""What is made of an owner's kind: how many of its pods start together, and in which parts.

A part is written down only where pods are needed for it; pods of one that is not count for the whole. What is wrong in
an owner is the user's error, told on its pods, which wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.controllers.kai.owned import Owned
from shoal.units.errors import UserError, Where, excerpt

TRAIN, BUILD, INFERENCE = "train", "build", "inference"
MINIMUM_KEY = "kai.scheduler/batch-min-member"
SET_MINIMUM_KEY = "kai.scheduler/min-member"
TOPOLOGY_KEYS = {
    "topology": "kai.scheduler/topology",
    "requiredTopologyLevel": "kai.scheduler/topology-required-placement",
    "preferredTopologyLevel": "kai.scheduler/topology-preferred-placement",
}


class Part(msgspec.Struct, frozen=True):
    name: str
    minimum: int = 0
    """Zero of a part that has parts, all of which it needs."""
    parent: str = ""
    closeness: dict[str, str] = {}
    """As in `topologyConstraint`."""


class Shape(msgspec.Struct, frozen=True):
    minimum: int = 1
    parts: tuple[Part, ...] = ()
    part: str = ""
    """That the pod belongs to."""
    suffix: str = ""
    """Where an owner has several groups, which one this is."""
    priority: str = TRAIN
    """The class of a pod for which nobody names one."""
    is_for_one: bool = False
    """Each pod has a group of its own, which ends with it."""


class Look(msgspec.Struct, frozen=True):
    """What a shape is read from."""

    pod: Owned
    owner: Owned
    """Whose group it is."""
    chain: tuple[Owned, ...] = ()
    """All that stand above the pod."""
    cluster: Owned | None = None
    """Of Ray: the one in which the pod is to be, or for which it works."""


def minimum_of(owned: Owned, key: str, otherwise: int) -> int:
    """A number that somebody wrote on it."""
    text = owned.annotations.get(key)
    return otherwise if text is None else count_of(text, f"{owned.kind} {owned.namespace}/{owned.name}", key)


def count_of(text: str, obj: str, key: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 0
    if number < 1:
        where = Where(obj=obj).with_path(f"metadata.annotations[{key}]")
        raise UserError(f"{excerpt(text)} is not a whole number above zero", where=where)
    return number


def in_parts(minimum: int, counts: Mapping[str, int], part: str) -> Shape:
    parts = tuple(Part(name, count) for name, count in counts.items() if count > 0)
    return Shape(minimum, parts, part if counts.get(part, 0) > 0 else "")


def closeness(notes: Mapping[str, Any]) -> dict[str, str]:
    """What annotations ask for of a topology; nothing where no level is named."""
    found = {field: text for field, key in TOPOLOGY_KEYS.items() if isinstance(text := notes.get(key), str) and text}
    return found if len(found) > 1 and "topology" in found else {}


def without(owner: Owned, path: str) -> UserError:
    return UserError(
        "asks for no pods: their group cannot be made",
        where=Where(obj=f"{owner.kind} {owner.namespace}/{owner.name}").with_path(path),
    )
