"""What a rule may look up beside the object that it looks at, as far as it is known.

What is not known yet, or may not be read, is not missing: advice that is wrong is worse than none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from shoal.api.taints import Taint
from shoal.store.live.item import Obj
from shoal.store.live.kind import Kind


class NodeSight(msgspec.Struct, frozen=True):
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()


class Around(Protocol):
    def nodes(self) -> Iterable[NodeSight]: ...

    def find(self, kind: Kind, namespace: str, name: str) -> Obj | None: ...

    def all(self, kind: Kind, namespace: str = "") -> Iterable[Obj]:
        """Of all namespaces without one."""
        ...

    def lacks(self, kind: Kind, namespace: str, name: str) -> bool:
        """It is known that there is none."""
        ...


def dig(obj: Any, *steps: str | int) -> Any:
    """None where the way ends early, or leads through something of another shape."""
    for step in steps:
        if isinstance(step, int):
            obj = obj[step] if isinstance(obj, list) and step < len(obj) else None
        else:
            obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def maps(found: Any) -> list[Obj]:
    """The maps of a list; none where it is no list."""
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def texts(found: Any) -> list[str]:
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def named(found: Any) -> dict[str, Any]:
    """A map with texts for keys; empty where it is none."""
    return {key: value for key, value in found.items() if isinstance(key, str)} if isinstance(found, dict) else {}
