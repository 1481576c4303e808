"""Evaluates which devices a request selects: by its class and its own selectors.

The name of a set is made of its selectors, so that requests for the same devices share one set. Selectors are evaluated
one after the other, the class's first; a device that one of them rejects is not passed to the next. As in Kubernetes,
an expression that fails on some device fails altogether: the selected devices are then unknown, and the claim waits
with the error of the expression. If it fails on several devices, the error of the first slice by name is reported.

Results are cached for each pool. When a slice changes, only its pool is evaluated again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from shoal.api.device_classes import DeviceClass, DeviceSelector
from shoal.engine.dra.devices import SliceFacts
from shoal.engine.events import DeviceSetSeen
from shoal.store.dra.cel import Fault, device_value, selector_of
from shoal.units.errors import excerpt
from shoal.units.near_texts import aside_words


class Meant(NamedTuple):
    """The name of a set, or the reason why it cannot be determined."""

    name: str = ""
    fault: str = ""


Expressions = tuple[str, ...]
SetKey = tuple[str, Expressions]
"""A class name, and further selectors."""


class _Seen(NamedTuple):
    piece: str
    device: str
    value: Mapping[str, Any]


class _Failed(NamedTuple):
    """The error of an expression. The error that is met first is the smallest: by selector, slice and position."""

    selector: int
    piece: str
    place: int
    words: str


class _Verdict(NamedTuple):
    chosen: list[_Seen]
    failed: _Failed | None


class _Pool:
    """The slices of one pool, and the results of expressions for its devices."""

    def __init__(self) -> None:
        self.pieces: dict[str, SliceFacts] = {}
        self._devices: list[_Seen] | None = None
        self._verdicts: dict[tuple[Expressions, ...], _Verdict] = {}

    def forget(self) -> None:
        self._devices = None
        self._verdicts.clear()

    def verdict(self, *chains: Expressions) -> _Verdict:
        """The result of the last chain of selectors, on the devices that the previous chains leave."""
        known = self._verdicts.get(chains)
        if known is None:
            devices = self.verdict(*chains[:-1]).chosen if len(chains) > 1 else self._all()
            known = self._verdicts[chains] = _judged(devices, chains[-1])
        return known

    def _all(self) -> list[_Seen]:
        if self._devices is None:
            newest = max(piece.generation for piece in self.pieces.values())
            pieces = sorted(self.pieces.values(), key=attrgetter("name"))
            self._devices = [each for piece in pieces if piece.generation == newest for each in _seen(piece)]
        return self._devices


class DeviceSets:
    """All sets of devices that requests select."""

    def __init__(self, classes: Iterable[DeviceClass] = (), pieces: Iterable[SliceFacts] = ()) -> None:
        self.classes: dict[str, DeviceClass] = {}
        self._pools: dict[str, _Pool] = {}
        self._pool_of: dict[str, str] = {}
        self._sets: dict[str, frozenset[str]] = {}
        self._meant: dict[SetKey, Meant] = {}
        self._reported: dict[str, frozenset[str]] = {}
        self._fresh: dict[str, frozenset[str]] = {}
        for each in classes:
            self.put_class(each)
        for piece in pieces:
            self.put(piece)

    # -- facts ------------------------------------------------------------------------------------------------------

    def put(self, piece: SliceFacts) -> None:
        """Add a slice. Earlier results for sets stay until `renewed` is called."""
        if self._pool_of.get(piece.name, piece.pool_key) != piece.pool_key:
            self.drop(piece.name)
        self._pool_of[piece.name] = piece.pool_key
        pool = self._pools.setdefault(piece.pool_key, _Pool())
        pool.pieces[piece.name] = piece
        pool.forget()

    def drop(self, name: str) -> None:
        key = self._pool_of.pop(name, None)
        if key is None:
            return
        pool = self._pools[key]
        del pool.pieces[name]
        pool.forget()
        if not pool.pieces:
            del self._pools[key]

    def put_class(self, each: DeviceClass) -> None:
        self.classes[each.metadata.name] = each
        self._forget_verdicts()

    def drop_class(self, name: str) -> None:
        self.classes.pop(name, None)
        self._forget_verdicts()

    def _forget_verdicts(self) -> None:
        for pool in self._pools.values():
            pool.forget()

    # -- sets -------------------------------------------------------------------------------------------------------

    def meant(self, class_name: str, selectors: tuple[DeviceSelector, ...]) -> Meant:
        """The set of a class and further selectors."""
        key = class_name, tuple(selector.cel.expression for selector in selectors)
        known = self._meant.get(key)
        if known is None:
            known = self._meant[key] = self._evaluated(*key)
        return known

    def renewed(self) -> set[SetKey]:
        """Evaluate all sets named so far again; returns those whose result changed."""
        before, self._meant = self._meant, {}
        self._sets = {}
        self._meant = {key: self._evaluated(*key) for key in before}
        return {key for key, meant in self._meant.items() if before[key] != meant}

    def events(self) -> list[DeviceSetSeen]:
        """All sets named so far."""
        return [DeviceSetSeen(name, devices) for name, devices in sorted(self._sets.items())]

    @property
    def has_news(self) -> bool:
        return bool(self._fresh)

    def news(self) -> list[DeviceSetSeen]:
        """The sets named or changed since the last call."""
        fresh, self._fresh = self._fresh, {}
        self._reported |= fresh
        return [DeviceSetSeen(name, devices) for name, devices in sorted(fresh.items())]

    def _evaluated(self, class_name: str, expressions: Expressions) -> Meant:
        if class_name not in self.classes:
            return Meant(fault=f"device class {class_name} does not exist{aside_words(class_name, self.classes)}")
        of_class = tuple(selector.cel.expression for selector in self.classes[class_name].spec.selectors)
        fault = self._fault(of_class)
        if fault:
            return Meant(fault=f"device class {class_name}: {fault}")
        fault = self._fault(of_class, expressions)
        if fault:
            return Meant(fault=fault)
        name = " and ".join([f"class {class_name}", *expressions])
        verdicts = (pool.verdict(of_class, expressions) for pool in self._pools.values())
        devices = frozenset(each.device for verdict in verdicts for each in verdict.chosen)
        self._sets[name] = devices
        if self._reported.get(name) != devices:
            self._fresh[name] = devices
        return Meant(name)

    def _fault(self, *chains: Expressions) -> str:
        """The first error that the last of the chains meets."""
        failed = min(
            (failed for pool in self._pools.values() if (failed := pool.verdict(*chains).failed) is not None),
            default=None,
        )
        wrong = _first_wrong(chains[-1])
        if failed is not None and (wrong is None or failed.selector < wrong):
            return failed.words
        if wrong is None:
            return ""
        expression = chains[-1][wrong]
        return f"selectors[{wrong}] {excerpt(expression)}: {selector_of(expression).fault}"


def _first_wrong(expressions: Expressions) -> int | None:
    """The first invalid expression."""
    return next((number for number, each in enumerate(expressions) if selector_of(each).fault), None)


def _seen(piece: SliceFacts) -> list[_Seen]:
    return [
        _Seen(
            piece.name,
            f"{piece.pool_key}/{device.name}",
            device_value(
                piece.driver,
                device.attributes,
                {name: has.value for name, has in device.capacity.items()},
                device.shared,
            ),
        )
        for device in piece.devices
    ]


def _judged(devices: list[_Seen], expressions: Expressions) -> _Verdict:
    """The devices that all the expressions select, or the error of the first that fails."""
    for number, expression in enumerate(expressions[: _first_wrong(expressions)]):
        selector = selector_of(expression)
        left = []
        for place, each in enumerate(devices):
            verdict = selector.selects(each.value)
            if isinstance(verdict, Fault):
                words = f"selectors[{number}] {excerpt(expression)} fails on device {each.device}: {verdict.what}"
                return _Verdict([], _Failed(number, each.piece, place, words))
            if verdict:
                left.append(each)
        devices = left
    return _Verdict(devices, None)
