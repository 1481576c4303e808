"""Label selectors as roles have them, asked one object at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    wanted = selector.get("matchLabels") or {}
    terms = selector.get("matchExpressions") or []
    matches = all(labels.get(key) == value for key, value in wanted.items())
    return matches and all(_holds(term, labels) for term in terms)


def _holds(term: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = term["key"], term.get("values") or ()
    match term["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return labels.get(key) not in values or key not in labels
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False
