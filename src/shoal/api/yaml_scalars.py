"""Unquoted YAML scalars as Kubernetes' own reader (go-yaml, YAML 1.1, then JSON) takes them.

Both readers of YAML use it: that of manifests (`yaml_text.py`) and that of request bodies in the embedded API server.
So `shoal decide` and `kubectl apply` take a file to mean the same: `on` and `yes` are true, `1_000` is a number, `017`
is octal, and a date is text.
"""

from __future__ import annotations

import math
import re
from typing import Any

from shoal.units.bounded_cache import kept

_TRUE = frozenset(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"))
_FALSE = frozenset(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"))
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_INT = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0[bB][01]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES = {"0x": 16, "0o": 8, "0b": 2}
_MOST_DIGITS = 1000
"""Of an integer. JSON has no limit either, and no field of any kind takes so many."""
_LONGEST_WHOLE_FLOAT = 1e21


class ScalarError(ValueError):
    """A scalar that JSON cannot have, in the words of Kubernetes."""


@kept(most=16384)
def plain(text: str) -> Any:
    """The value of an unquoted scalar: None, a truth value, a number or text."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    bare = text.replace("_", "") if text[0].isdigit() or text[0] in "+-." else text
    if _INT.fullmatch(bare):
        return _integer(bare)
    if _FLOAT.fullmatch(bare):
        value = float(bare)
        if not math.isfinite(value):
            raise ScalarError(f"json: unsupported value: {_infinite(value)}")
        # Go writes whole floats without a point, so in JSON they are integers.
        return int(value) if value.is_integer() and abs(value) < _LONGEST_WHOLE_FLOAT else value
    if text.lower() in (".inf", "+.inf", "-.inf"):
        raise ScalarError(f"json: unsupported value: {'-Inf' if text[0] == '-' else '+Inf'}")
    if text in (".nan", ".NaN", ".NAN"):
        raise ScalarError("json: unsupported value: NaN")
    return text


def key_text(value: Any) -> str | None:
    """A key of a map as JSON has it, from the value that the key's scalar has; None for what cannot be a key."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (str, int, float)) else None


def _integer(text: str) -> int:
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.lstrip("+"))
    base = _BASES.get(digits[:2].lower())
    if len(digits) > _MOST_DIGITS:
        raise ScalarError(f"yaml: an integer of {len(digits)} digits is out of range")
    if base is not None:
        return sign * int(digits[2:], base)
    return sign * int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)


def _infinite(value: float) -> str:
    return "+Inf" if value > 0 else "-Inf"
