"""Messages that JSON writes as something else: times as text, quantities as text, raw JSON as itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shoal.embedded.apiserver.protobuf.wire import BYTES, VARINT, Value, WireError, fields, signed, text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANO = 1_000_000_000
_JSON = msgspec.json.Decoder()


def _members(data: memoryview) -> dict[int, Value]:
    return {number: value for number, _, value in fields(data)}


def _number(found: dict[int, Value], key: int) -> int:
    value = found.get(key, 0)
    if not isinstance(value, int):
        raise WireError(f"proto: wrong wireType = {BYTES} for field {key}")
    return signed(value)


def _chars(found: dict[int, Value], key: int) -> str:
    value = found.get(key)
    if isinstance(value, int):
        raise WireError(f"proto: wrong wireType = {VARINT} for field {key}")
    return text(value) if value is not None else ""


def _instant(data: memoryview) -> tuple[datetime, int]:
    found = _members(data)
    try:
        return _EPOCH + timedelta(seconds=_number(found, 1)), _number(found, 2)
    except OverflowError:
        raise WireError("Time.MarshalJSON: year outside of range [0,9999]") from None


def time(data: memoryview) -> Any:
    return f"{_instant(data)[0]:%Y-%m-%dT%H:%M:%SZ}" if data else None


def micro_time(data: memoryview) -> Any:
    if not data:
        return None
    instant, nanos = _instant(data)
    return f"{instant:%Y-%m-%dT%H:%M:%S}.{nanos // 1000 % 1_000_000:06d}Z"


def duration(data: memoryview) -> Any:
    """As Go writes it: `1h0m0s`, `1.5s`, `0s`."""
    nanos = _number(_members(data), 1)
    sign, nanos = ("-", -nanos) if nanos < 0 else ("", nanos)
    seconds, rest = divmod(nanos, _NANO)
    if not seconds and rest:
        unit, name = next((unit, name) for unit, name in ((10**6, "ms"), (10**3, "µs"), (1, "ns")) if rest >= unit)
        return f"{sign}{_decimal(rest, unit)}{name}"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{head}{_decimal(seconds * _NANO + rest, _NANO)}s"


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    digits = str(rest).zfill(len(str(unit)) - 1).rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)


def quantity(data: memoryview) -> Any:
    return _chars(_members(data), 1) or "0"


def int_or_string(data: memoryview) -> Any:
    found = _members(data)
    return _chars(found, 3) if _number(found, 1) else _number(found, 2)


def raw(data: memoryview) -> Any:
    """JSON within protobuf."""
    inside = _members(data).get(1)
    if inside is None or isinstance(inside, int) or not inside:
        return None
    try:
        return _JSON.decode(inside)
    except (msgspec.DecodeError, RecursionError) as error:
        raise WireError(f"json: {error}") from None


def texts(data: memoryview) -> Any:
    """A list that has a message of its own around it."""
    return [text(value) for number, _, value in fields(data) if number == 1 and not isinstance(value, int)]


READERS: dict[str, Callable[[memoryview], Any]] = {
    "Time": time,
    "MicroTime": micro_time,
    "Duration": duration,
    "Quantity": quantity,
    "IntOrString": int_or_string,
    "RawExtension": raw,
    "FieldsV1": raw,
    "Texts": texts,
}
