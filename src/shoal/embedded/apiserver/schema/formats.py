"""The string formats that schemas may ask for; others are not checked, as in Kubernetes."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from urllib.parse import urlsplit

from shoal.embedded.apiserver.names import label_fault, subdomain_fault

_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_DATE_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt ]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]\d{2}:?\d{2})")
_DURATION = re.compile(
    r"[+-]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w)((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h|d|w))*"
)
_DURATION_WORDS = re.compile(
    r"(?i)(\d+\s*(ns|nano|us|µs|micro|ms|milli|s|sec|seconds?|m|min|minutes?|h|hr|hours?|d|days?|w|wk|weeks?)\s*)+"
)
_EMAIL = re.compile(r"[^@\s<>]+@[^@\s<>]+")
_HOST = re.compile(r"(?i)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?)(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?)*\.?")
_MAC = re.compile(r"(?i)([0-9a-f]{2}([:-]))([0-9a-f]{2}\2){4,6}[0-9a-f]{2}|([0-9a-f]{4}\.){2,3}[0-9a-f]{4}")
_HEX_COLOR = re.compile(r"(?i)#?([0-9a-f]{3}|[0-9a-f]{6})")
_BYTE_255 = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_RGB_COLOR = re.compile(rf"rgb\({_BYTE_255},{_BYTE_255},{_BYTE_255}\)")
_SSN = re.compile(r"\d{3}[- ]?\d{2}[- ]?\d{4}")


def format_fault(name: str, text: str) -> bool:
    """Whether a text is not of a format."""
    check = _FORMATS.get(name.replace("-", "") if not name.startswith("k8s-") else name)
    return check is not None and not check(text)


def _is_date(text: str) -> bool:
    try:
        return len(text) == 10 and date.fromisoformat(text) is not None
    except ValueError:
        return False


def _is_date_time(text: str) -> bool:
    found = _DATE_TIME.fullmatch(text)
    return found is not None and _is_date(found[1])


def _is_duration(text: str) -> bool:
    return text == "0" or bool(_DURATION.fullmatch(text) or _DURATION_WORDS.fullmatch(text))


def _is_ip(version: int) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            return ipaddress.ip_address(text).version == version and "%" not in text
        except ValueError:
            return False

    return check


def _is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def _is_uri(text: str) -> bool:
    if re.search(r"[\x00-\x20\x7f]", text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(parts.scheme) or text.startswith("/")


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_uuid(version: str) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        if not _UUID.fullmatch(text):
            return False
        digits = text.replace("-", "").lower()
        return not version or (digits[12] == version and (version == "3" or digits[16] in "89ab"))

    return check


def _is_isbn(length: int) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        digits = text.replace("-", "").replace(" ", "")
        if length == 10 and re.fullmatch(r"\d{9}[\dX]", digits):
            values = [10 if one == "X" else int(one) for one in digits]
            return sum(place * one for place, one in enumerate(values, 1)) % 11 == 0
        if length == 13 and re.fullmatch(r"\d{13}", digits):
            return sum(int(one) * (3 if place % 2 else 1) for place, one in enumerate(digits)) % 10 == 0
        return False

    return check


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]", "", text)
    if not re.fullmatch(r"\d{13,19}", digits):
        return False
    doubled = [int(one) * (2 if place % 2 else 1) for place, one in enumerate(reversed(digits))]
    return sum(one - 9 if one > 9 else one for one in doubled) % 10 == 0


def _is_host(text: str) -> bool:
    return len(text) <= 255 and bool(_HOST.fullmatch(text))


_FORMATS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": lambda text: bool(re.fullmatch(r"(?i)[0-9a-f]{24}", text)),
    "uri": _is_uri,
    "email": lambda text: bool(_EMAIL.fullmatch(text)),
    "hostname": _is_host,
    "ipv4": _is_ip(4),
    "ipv6": _is_ip(6),
    "cidr": _is_cidr,
    "mac": lambda text: bool(_MAC.fullmatch(text)),
    "uuid": _is_uuid(""),
    "uuid3": _is_uuid("3"),
    "uuid4": _is_uuid("4"),
    "uuid5": _is_uuid("5"),
    "isbn": lambda text: _is_isbn(10)(text) or _is_isbn(13)(text),
    "isbn10": _is_isbn(10),
    "isbn13": _is_isbn(13),
    "creditcard": _is_credit_card,
    "ssn": lambda text: bool(_SSN.fullmatch(text)),
    "hexcolor": lambda text: bool(_HEX_COLOR.fullmatch(text)),
    "rgbcolor": lambda text: bool(_RGB_COLOR.fullmatch(text)),
    "byte": _is_base64,
    "date": _is_date,
    "duration": _is_duration,
    "datetime": _is_date_time,
    "k8s-short-name": lambda text: not label_fault(text),
    "k8s-long-name": lambda text: not subdomain_fault(text),
}


def is_known_format(name: str) -> bool:
    """Whether a format means something: of texts, or of numbers."""
    written = name if name.startswith("k8s-") else name.replace("-", "")
    return written in _FORMATS or name in ("int32", "int64", "float", "double", "password")
