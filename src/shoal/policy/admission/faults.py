"""Several faults of one object in one text, as Kubernetes aggregates errors."""

from __future__ import annotations


def aggregate(faults: list[str]) -> str:
    """Several faults as one text, each said once."""
    reported = list(dict.fromkeys(faults))
    return reported[0] if len(reported) == 1 else f"[{', '.join(reported)}]"
