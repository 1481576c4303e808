"""Parses the annotations that control a simulated pod: `shoal.dev/NAME`, or `NAME.CONTAINER` for one container.

Invalid values are ignored; `complaints` reports them. A typing error does not stop a workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from shoal.embedded.kubelets.durations import seconds_of
from shoal.units.errors import UserError, excerpt
from shoal.units.quantity import Quantity

PREFIX = "shoal.dev/"
T = TypeVar("T")


def duration(annotations: Mapping[str, str], name: str, container: str = "") -> float | None:
    return _value(annotations, name, container, seconds_of)


def whole(annotations: Mapping[str, str], name: str, container: str = "") -> int | None:
    """A whole number from 0 to 255, such as `exit-code`."""
    return _value(annotations, name, container, _code)


def share(annotations: Mapping[str, str], name: str, container: str = "") -> float | None:
    """A percentage, as a number from 0 to 1."""
    return _value(annotations, name, container, _percent)


def mebibytes(annotations: Mapping[str, str], name: str, container: str = "") -> int | None:
    return _value(annotations, name, container, _mebibytes)


def text(annotations: Mapping[str, str], name: str, container: str = "") -> str | None:
    return _value(annotations, name, container, str)


def complaints(annotations: Mapping[str, str], containers: Iterable[str]) -> Iterator[str]:
    """The faults of the annotations, one sentence each."""
    names = tuple(containers)
    for key, value in annotations.items():
        if not key.startswith(PREFIX):
            continue
        name, _, container = key[len(PREFIX) :].partition(".")
        reader = _READERS.get(name)
        if reader is None:
            continue
        if container and container not in names:
            yield f"{key}: container {excerpt(container)} not found; the annotation is ignored"
            continue
        try:
            reader(value)
        except UserError as error:
            yield f"{key}: {error}; the default is used"


def _value(annotations: Mapping[str, str], name: str, container: str, read: Callable[[str], T]) -> T | None:
    key = name if "/" in name else PREFIX + name
    for candidate in (f"{key}.{container}", key) if container else (key,):
        said = annotations.get(candidate)
        if said is not None:
            try:
                return read(said)
            except UserError:
                continue
    return None


def _code(said: str) -> int:
    if not said.isascii() or not said.isdecimal() or len(said) > 3 or int(said) > 255:
        raise UserError(f"{excerpt(said)} is not a number from 0 to 255")
    return int(said)


def _percent(said: str) -> float:
    try:
        value = float(said.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise UserError(f"{excerpt(said)} is not a percentage from 0 to 100")
    return value / 100


def _mebibytes(said: str) -> int:
    """A plain number means mebibytes; `20Gi` is a quantity of bytes."""
    if said.isascii() and said.isdecimal() and len(said) < 10:
        return int(said)
    amount = Quantity.parse(said.removesuffix("B")).nano // 1_000_000_000
    if amount < 0:
        raise UserError(f"{excerpt(said)} is negative")
    return amount >> 20


_READERS: dict[str, Callable[[str], object]] = {
    "run-for": seconds_of,
    "start-delay": seconds_of,
    "ready-after": seconds_of,
    "unready-after": seconds_of,
    "unhealthy-after": seconds_of,
    "stop-after": seconds_of,
    "exit-code": _code,
    "init-for": seconds_of,
    "init-exit-code": _code,
    "gpu-util": _percent,
    "gpu-memory": _mebibytes,
}
