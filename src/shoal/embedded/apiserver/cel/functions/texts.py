"""Texts: the standard functions and the strings extension (with `format`)."""

from __future__ import annotations

import base64
import binascii
from datetime import datetime, timedelta
from typing import Any

from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.functions.overload import Table, row
from shoal.embedded.apiserver.cel.functions.times import duration_text, timestamp_text
from shoal.embedded.apiserver.cel.values import kind_name


def _at(text: str, place: int) -> str:
    if not 0 <= place <= len(text):
        raise CelFault(f"index out of range: {place}")
    return text[place : place + 1]


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if not 0 <= start <= len(text):
        raise CelFault(f"index out of range: {start}")
    if not 0 <= last <= len(text):
        raise CelFault(f"index out of range: {last}")
    if start > last:
        raise CelFault(f"invalid substring range. start: {start}, end: {last}")
    return text[start:last]


def _split(text: str, by: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if by == "":
        parts = list(text)
        return parts if most < 0 or len(parts) <= most else [*parts[: most - 1], "".join(parts[most - 1 :])]
    return text.split(by, most - 1 if most > 0 else -1)


def _join(parts: list[Any], by: str = "") -> str:
    if any(not isinstance(one, str) for one in parts):
        raise CelFault("no such overload")
    return by.join(parts)


def _lower(text: str) -> str:
    return "".join(one.lower() if one.isascii() else one for one in text)


def _upper(text: str) -> str:
    return "".join(one.upper() if one.isascii() else one for one in text)


def _quote(text: str) -> str:
    escapes = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    escapes |= {"\\": "\\\\", '"': '\\"'}
    return '"' + "".join(escapes.get(one, one) for one in text) + '"'


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        raise CelFault(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if not 0 <= start <= len(text):
        raise CelFault(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part))


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise CelFault("illegal base64 data") from None


def _format(pattern: str, values: list[Any]) -> str:
    out: list[str] = []
    index = place = 0
    while index < len(pattern):
        one = pattern[index]
        index += 1
        if one != "%":
            out.append(one)
            continue
        if pattern[index : index + 1] == "%":
            out.append("%")
            index += 1
            continue
        precision = ""
        if pattern[index : index + 1] == ".":
            index += 1
            while pattern[index : index + 1].isdigit():
                precision += pattern[index]
                index += 1
        verb = pattern[index : index + 1]
        index += 1
        if place >= len(values):
            raise CelFault(f"index {place} out of range")
        out.append(_verb(verb, precision, values[place]))
        place += 1
    return "".join(out)


def _verb(verb: str, precision: str, value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    digits = int(precision or 6)
    match verb:
        case "s":
            return _shown(value)
        case "d" if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        case "f" if is_number:
            return f"{value:.{digits}f}"
        case "e" if is_number:
            return f"{value:.{digits}e}"
        case "b" if isinstance(value, int):
            return f"{int(value):b}"
        case "o" if isinstance(value, int) and not isinstance(value, bool):
            return f"{value:o}"
        case "x" | "X" if isinstance(value, int | str | bytes) and not isinstance(value, bool):
            raw = value.encode() if isinstance(value, str) else value
            text = raw.hex() if isinstance(raw, bytes) else f"{raw:x}"
            return text.upper() if verb == "X" else text
    raise CelFault(f"error during formatting: %{verb} does not take a {kind_name(value)}")


def _shown(value: Any) -> str:
    from shoal.embedded.apiserver.cel.functions.standard import double_text

    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_shown(key)}: {_shown(value[key])}" for key in sorted(value, key=str)) + "}"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, datetime):
        return timestamp_text(value)
    return duration_text(value) if isinstance(value, timedelta) else str(value)


TABLE: Table = (
    row("_+_(string, string) text", lambda one, other: one + other),
    row("_+_(bytes, bytes) bytes", lambda one, other: one + other),
    row("string!contains(string) bool", lambda text, part: part in text),
    row("string!startsWith(string) bool", str.startswith),
    row("string!endsWith(string) bool", str.endswith),
    row("string!charAt(int) string", _at),
    row("string!indexOf(string) int", _index_of),
    row("string!indexOf(string, int) int", _index_of),
    row("string!lastIndexOf(string) int", _last_index_of),
    row("string!lastIndexOf(string, int) int", _last_index_of),
    row("string!lowerAscii() same", _lower),
    row("string!upperAscii() same", _upper),
    row("string!replace(string, string) string", lambda text, old, new: text.replace(old, new)),
    row("string!replace(string, string, int) string", lambda text, old, new, most: text.replace(old, new, most)),
    row("string!split(string) strings", _split),
    row("string!split(string, int) strings", _split),
    row("string!substring(int) same", _substring),
    row("string!substring(int, int) same", _substring),
    row("string!trim() same", str.strip),
    row("string!reverse() same", lambda text: text[::-1]),
    row("string!format(list) string", _format),
    row("strings.quote(string) string", _quote),
    row("list!join() string", _join),
    row("list!join(string) string", _join),
    row("base64.encode(bytes) string", lambda value: base64.b64encode(value).decode()),
    row("base64.decode(string) bytes", _decode),
)
