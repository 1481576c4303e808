"""Values that Go reads in its own way: quantities, times, bytes, integers or strings.

Each reader answers the value as Kubernetes will show it, or raises `UndecodableError` with Go's words. Readers of
texts are cached where fleets repeat a few spellings.
"""

from __future__ import annotations

import binascii
import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

QUANTITY_WORDS = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_QUANTITY_FORM = re.compile(r"([+-]?[0-9.]+)((?:[eEinumkKMGTP]+[-+]?[0-9]*|[-+][0-9]*)?)")
"""The same as in these words, but digits can be split in one way only."""
_NUMERIC_WORDS = "unable to parse numeric part of quantity"
_SUFFIX_WORDS = "unable to parse quantity's suffix"

_INSTANT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)",
)
_SECONDS = "2006-01-02T15:04:05Z07:00"
_MICROS = "2006-01-02T15:04:05.000000Z07:00"
_AS_WRITTEN = {
    _SECONDS: re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII),
    _MICROS: re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII),
}
"""By layout, what is written already as Kubernetes would."""


class UndecodableError(Exception):
    """A value that Go cannot read into its field. The path grows while the walk unwinds."""

    def __init__(self, words: str, go_type: str = "") -> None:
        super().__init__(words)
        self.words = words
        """The whole message, or with `go_type` the part before `into`."""
        self.go_type = go_type
        self.struct = ""
        self.path: list[str] = []
        """Innermost field first."""

    def text(self) -> str:
        if not self.go_type:
            return self.words
        if not self.path:
            return f"{self.words} into Go value of type {self.go_type}"
        return f"{self.words} into Go struct field {self.struct}.{'.'.join(reversed(self.path))} of type {self.go_type}"


def mismatch(value: Any, go_type: str) -> UndecodableError:
    return UndecodableError(f"json: cannot unmarshal {json_kind(value)}", go_type)


def json_kind(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"


def bad_number(value: Any, go_type: str) -> UndecodableError:
    return UndecodableError(f"json: cannot unmarshal number {value!r}", go_type)


def quantity(value: Any) -> str:
    if isinstance(value, bool):
        raise UndecodableError(QUANTITY_WORDS)
    if isinstance(value, str):
        return quantity_text(value.strip())
    if isinstance(value, (int, float)):
        return quantity_text(repr(value))
    raise UndecodableError(QUANTITY_WORDS)


@lru_cache(maxsize=16384)
def quantity_text(text: str) -> str:
    """The canonical spelling of a quantity."""
    try:
        return str(Quantity.parse(text))
    except UserError:
        form = _QUANTITY_FORM.fullmatch(text)
        if form is None:
            raise UndecodableError(QUANTITY_WORDS) from None
        number, suffix = form.groups()
        numeric = number.lstrip("+-").count(".") < 2 and bool(number.strip("+-."))
        raise UndecodableError((_SUFFIX_WORDS if suffix else _NUMERIC_WORDS) if numeric else QUANTITY_WORDS) from None


def time(value: Any) -> str:
    return _instant(value, _SECONDS)


def micro_time(value: Any) -> str:
    return _instant(value, _MICROS)


def _instant(value: Any, layout: str) -> str:
    if not isinstance(value, str):
        raise mismatch(value, "string")
    return instant_text(value, layout)


@lru_cache(maxsize=4096)
def instant_text(text: str, layout: str) -> str:
    """An RFC 3339 time in UTC as Kubernetes writes it: whole seconds, or microseconds."""
    if _AS_WRITTEN[layout].fullmatch(text) is not None:
        # Heartbeats bring a new one each time.
        with suppress(ValueError):
            datetime.fromisoformat(text)
            return text
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise _unparsed(text, layout)
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    if layout == _MICROS and (fraction is None or len(fraction) != 6):
        raise _unparsed(text, layout)
    micros = int((fraction or "0")[:6].ljust(6, "0"))
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), micros, UTC)
        if zone != "Z":
            offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
            moment = moment - offset if zone[0] == "+" else moment + offset
    except (ValueError, OverflowError):
        raise UndecodableError(f'parsing time "{text}": {_out_of_range(int(month), int(hour), int(minute))}') from None
    spelled = moment.replace(tzinfo=None).isoformat(timespec="microseconds")
    return spelled[: 26 if layout == _MICROS else 19] + "Z"


def _out_of_range(month: int, hour: int, minute: int) -> str:
    if not 1 <= month <= 12:
        return "month out of range"
    if hour > 23:
        return "hour out of range"
    return "minute out of range" if minute > 59 else "day out of range"


_LAYOUT = re.compile(r"2006|01|-|02|T|15|:|04|05|\.000000|Z07:00")
_TWO_DIGITS = re.compile(r"\d\d")
_PIECES = {
    "2006": re.compile(r"\d{4}"),
    ".000000": re.compile(r"[.,]\d{6}"),
    "Z07:00": re.compile(r"Z|[+-]\d\d:\d\d"),
    "-": re.compile("-"),
    "T": re.compile("T"),
    ":": re.compile(":"),
}


def _unparsed(text: str, layout: str) -> UndecodableError:
    """Say as Go does which piece of the layout was not found where."""
    rest = text
    for piece in _LAYOUT.findall(layout):
        found = _PIECES.get(piece, _TWO_DIGITS).match(rest)
        if found is None:
            return UndecodableError(f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{piece}"')
        rest = rest[found.end() :]
        if piece == "05" and layout == _SECONDS and (fraction := re.match(r"[.,]\d+", rest)):
            rest = rest[fraction.end() :]
    return UndecodableError(f'parsing time "{text}": extra text: "{rest}"')


def int_or_string(value: Any) -> int | str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        words = bad_number(value, "int32") if isinstance(value, float) else mismatch(value, "int32")
        raise UndecodableError(words.text())
    if not -(2**31) <= value < 2**31:
        raise UndecodableError(bad_number(value, "int32").text())
    return value


def base64_text(value: str) -> None:
    try:
        binascii.a2b_base64(value.replace("\n", "").replace("\r", "").encode("ascii"), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError):
        raise UndecodableError(f"illegal base64 data at input byte {_first_bad_byte(value)}") from None


_ALPHABET = re.compile(rb"[A-Za-z0-9+/\r\n]*")


def _first_bad_byte(value: str) -> int:
    data = value.encode()
    good = _ALPHABET.match(data)
    return good.end() if good is not None and good.end() < len(data) and data[good.end()] != 61 else len(data)
