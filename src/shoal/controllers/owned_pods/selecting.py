"""The selector of a workload's spec as a value."""

from __future__ import annotations

import msgspec

from shoal.api.selectors import LabelSelector, Selector
from shoal.store.live.item import Obj


def selector_of_spec(spec: Obj) -> Selector:
    """Of the newer kinds, whose selectors have labels and expressions."""
    return msgspec.convert(spec.get("selector") or {}, LabelSelector).selector()
