"""Label selectors as specs have them: which labels they take, and how they are written as one text.

They were checked when they were written; an unknown operator matches nothing all the same.

`shoal.api.selectors` reads the same form of manifests, and tells people what is wrong with it. Rejected: reading each
into such a value. Most are asked once, with the object that contains them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Selector = Mapping[str, Any]


def is_empty(selector: Selector | None) -> bool:
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def selects(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether a label selector takes these labels; an empty one takes all."""
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_holds(one, labels) for one in selector.get("matchExpressions") or ())


def text_of(selector: Selector | None) -> str:
    """As command lines and autoscalers take it, its requirements ordered by key; empty where it takes all."""
    if not selector:
        return ""
    texts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    texts += [(one["key"], _text(one)) for one in selector.get("matchExpressions") or ()]
    return ",".join(text for _, text in sorted(texts, key=lambda pair: pair[0]))


def _holds(one: Selector, labels: Mapping[str, str]) -> bool:
    key, values = one.get("key", ""), one.get("values") or ()
    match one.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False


def _text(one: Selector) -> str:
    key, operator = one["key"], one["operator"]
    if operator == "Exists":
        return str(key)
    if operator == "DoesNotExist":
        return f"!{key}"
    word = "in" if operator == "In" else "notin"
    return f"{key} {word} ({','.join(sorted(one.get('values') or ()))})"
