"""How much each collection holds that hangs from some objects: what grows with every pod that ever was, leaks."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType
from typing import Any

_COLLECTIONS = (list, set, frozenset, deque, tuple)
_OURS = (
    "shoal.client",
    "shoal.controllers",
    "shoal.devices",
    "shoal.embedded.controllers",
    "shoal.embedded.gpus",
    "shoal.embedded.kubelets",
    "shoal.embedded.scheduler",
    "shoal.store",
)
"""Not the server, which rightly keeps Events and a history."""
_PLAIN = (str, bytes, int, float, bool, type(None), type)


def sizes(roots: Iterable[object]) -> Counter[str]:
    """Lengths by path: `Loop.queue._failures`. Collections at the same path in many objects are added up."""
    found: Counter[str] = Counter()
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [(type(root).__name__, root) for root in roots]
    while waiting:
        path, thing = waiting.pop()
        if isinstance(thing, _PLAIN) or id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, dict):
            found[path] += len(thing)
            waiting += [(f"{path}[]", value) for value in thing.values()]
        elif isinstance(thing, _COLLECTIONS) and not hasattr(thing, "_fields"):
            found[path] += len(thing)
            waiting += [(f"{path}[]", value) for value in thing]
        else:
            waiting += _parts(path, thing)
    return found


def _parts(path: str, thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, MethodType):
        yield type(thing.__self__).__name__, thing.__self__
    elif isinstance(thing, FunctionType):
        for name, cell in zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True):
            yield f"{thing.__qualname__}.{name}", cell.cell_contents
    elif type(thing).__module__.startswith(_OURS):
        for name in _names(thing):
            value = getattr(thing, name, None)
            is_collection = isinstance(value, (dict, *_COLLECTIONS))
            yield (f"{type(thing).__name__}.{name}" if is_collection else f"{path}.{name}"), value


def _names(thing: Any) -> Iterator[str]:
    yield from getattr(thing, "__dict__", ())
    for kind in type(thing).__mro__:
        for slots in (kind.__dict__.get("__slots__"), kind.__dict__.get("__struct_fields__")):
            yield from slots if isinstance(slots, tuple) else ()
