"""Which devices a request means: the set that its class and its own selectors leave of all devices.

Sets have names made of what selects them, so that requests which mean the same devices share one. Selectors are
evaluated one after the other, the class's first, and a device that one of them refuses is not shown to the next. As in
Kubernetes an expression that fails on some device fails for good: which devices were meant is then not known, and the
claim waits with the expression's complaint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from shoal.api.device_classes import DeviceClass, DeviceSelector
from shoal.engine.dra.devices import SliceFacts
from shoal.engine.events import DeviceSetSeen
from shoal.store.dra.cel import Fault, device_value, selector_of
from shoal.units.errors import excerpt


class Meant(NamedTuple):
    """The name of a set, or why there is none."""

    name: str = ""
    fault: str = ""


_Seen = list[tuple[str, Mapping[str, Any]]]


class DeviceSets:
    """All sets that somebody asked for."""

    def __init__(self, classes: Iterable[DeviceClass], pieces: Iterable[SliceFacts]) -> None:
        self.classes = {each.metadata.name: each for each in classes}
        self._pieces = list(pieces)
        self._devices: _Seen | None = None
        self._of_class: dict[str, _Seen | str] = {}
        self._sets: dict[str, frozenset[str]] = {}
        self._meant: dict[tuple[str, tuple[str, ...]], Meant] = {}

    def meant(self, class_name: str, selectors: tuple[DeviceSelector, ...]) -> Meant:
        """The set of a class and further selectors."""
        expressions = tuple(selector.cel.expression for selector in selectors)
        key = class_name, expressions
        known = self._meant.get(key)
        if known is None:
            known = self._meant[key] = self._evaluated(class_name, expressions)
        return known

    def events(self) -> list[DeviceSetSeen]:
        """The sets named so far."""
        return [DeviceSetSeen(name, devices) for name, devices in sorted(self._sets.items())]

    def _evaluated(self, class_name: str, expressions: tuple[str, ...]) -> Meant:
        if class_name not in self.classes:
            return Meant(fault=f"device class {class_name} does not exist")
        found = self._class(class_name)
        if isinstance(found, str):
            return Meant(fault=f"device class {class_name}: {found}")
        chosen = _chosen(found, expressions)
        if isinstance(chosen, str):
            return Meant(fault=chosen)
        name = " and ".join([f"class {class_name}", *expressions])
        self._sets[name] = frozenset(device for device, _ in chosen)
        return Meant(name)

    def _class(self, name: str) -> _Seen | str:
        known = self._of_class.get(name)
        if known is None:
            selectors = self.classes[name].spec.selectors
            known = _chosen(self._all(), tuple(selector.cel.expression for selector in selectors))
            self._of_class[name] = known
        return known

    def _all(self) -> _Seen:
        if self._devices is None:
            newest: dict[str, int] = {}
            for piece in self._pieces:
                newest[piece.pool_key] = max(newest.get(piece.pool_key, 0), piece.generation)
            self._devices = [
                (
                    f"{piece.pool_key}/{device.name}",
                    device_value(
                        piece.driver,
                        device.attributes,
                        {name: has.value for name, has in device.capacity.items()},
                        device.shared,
                    ),
                )
                for piece in self._pieces
                if piece.generation == newest[piece.pool_key]
                for device in piece.devices
            ]
        return self._devices


def _chosen(devices: _Seen, expressions: tuple[str, ...]) -> _Seen | str:
    """The devices that all the expressions select, or the complaint of one of them."""
    for number, expression in enumerate(expressions):
        selector = selector_of(expression)
        if selector.fault:
            return f"selectors[{number}] {excerpt(expression)}: {selector.fault}"
        left = []
        for device, value in devices:
            verdict = selector.selects(value)
            if isinstance(verdict, Fault):
                return f"selectors[{number}] {excerpt(expression)} fails on device {device}: {verdict.what}"
            if verdict:
                left.append((device, value))
        devices = left
    return devices
