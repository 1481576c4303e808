"""The names of the external metrics of triggers, as the autoscalers that KEDA makes have them."""

from __future__ import annotations

COMPOSITE = "composite-metric"
"""The one metric of a ScaledObject with a formula."""

_DASHED = str.maketrans(dict.fromkeys("/.:%()", "-"))


def indexed_name(index: int, name: str) -> str:
    return f"s{index}-{normalized(name)}"


def normalized(text: str) -> str:
    return text.translate(_DASHED)
