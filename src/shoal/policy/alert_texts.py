"""Fills in the texts of alerts: the part of Prometheus' templates that the texts of `alert_rules` use.

    {{ $labels.gpu }}   {{ $value }}   {{ $value | printf "%.0f" }}   {{ $value | humanizePercentage }}
    {{ $value | humanizeDuration }}   {{ with $labels.pod }}, held by {{ . }}{{ end }}

The texts are Shoal's own; a test compares them with those that Prometheus writes. Values of labels are inserted as they
are: who shows them, escapes them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_PART = re.compile(r"\{\{(?P<action>[^{}]{1,200})\}\}")
_LABEL = "$labels."


def rendered(template: str, labels: Mapping[str, str], value: float) -> str:
    """Raises ValueError for an action that is not known."""
    parts: list[str] = []
    shown, dot, at = True, "", 0
    for found in _PART.finditer(template):
        if shown:
            parts.append(template[at : found.start()])
        at = found.end()
        action = found["action"].strip()
        if action.startswith("with "):
            dot = _label(action.removeprefix("with ").strip(), labels)
            shown = bool(dot)
        elif action == "end":
            shown, dot = True, ""
        elif shown:
            parts.append(_value(action, labels, value, dot))
    parts.append(template[at:])
    return "".join(parts)


def _value(action: str, labels: Mapping[str, str], value: float, dot: str) -> str:
    if action == ".":
        return dot
    if action.startswith(_LABEL):
        return _label(action, labels)
    name, _, form = (part.strip() for part in action.partition("|"))
    if name != "$value":
        raise ValueError(f"{action} is not known")
    if not form:
        return number(value)
    if form == "humanizePercentage":
        return f"{number(value * 100)}%"
    if form == "humanizeDuration":
        return duration(value)
    if form in ('printf "%.0f"', 'printf "%.2f"'):
        return f"{value:.2f}" if "2" in form else f"{value:.0f}"
    raise ValueError(f"{form} is not known")


def number(value: float) -> str:
    """In at most four digits, as Prometheus' `%.4g`."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'+' if value > 0 else '-'}Inf"
    return f"{value:.4g}"


def duration(seconds: float) -> str:
    if not math.isfinite(seconds):
        return number(seconds)
    if abs(seconds) < 1:
        return f"{seconds * 1000:.4g}ms" if seconds else "0s"
    whole = int(abs(seconds))
    sign = "-" if seconds < 0 else ""
    if whole < 60:
        return f"{seconds:.4g}s"
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    if days:
        return f"{sign}{days}d {hours}h {minutes}m {rest}s"
    return f"{sign}{hours}h {minutes}m {rest}s" if hours else f"{sign}{minutes}m {rest}s"


def _label(text: str, labels: Mapping[str, str]) -> str:
    if not text.startswith(_LABEL):
        raise ValueError(f"{text} is not known")
    return labels.get(text.removeprefix(_LABEL), "")
