"""Finds the bounds of LimitRanges that refuse a pod, and the bounds with which they allow it.

A pod that leaves out an amount, or whose ratio of limit to request is too large, needs other amounts: no bound is
proposed for it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import structs

from shoal.api.decode import Document
from shoal.api.limit_ranges import LimitRange, LimitRangeItem
from shoal.api.pod import Pod
from shoal.api.wire import to_json
from shoal.policy.admission.limit_bounds import LimitRangeBounds, pod_faults
from shoal.store.manifest_admission import creation_of
from shoal.units.quantity import Quantity
from shoal.views.remedies import Remedy
from shoal.views.remedy_commands import names_command

_SIDES = {"maximum": "max", "minimum": "min"}
_ASKED = ", but "


class _LimitBound(NamedTuple):
    at: int
    """The entry of the LimitRange."""
    side: str
    resource: str
    kind: str
    before: Quantity
    after: Quantity

    def words(self) -> str:
        verb = "raise" if self.side == "max" else "lower"
        return f"{verb} {self.side}.{self.resource} of type {self.kind} from {self.before} to {self.after}"


def limit_corrections(
    documents: Sequence[Document], pod: Pod, *, is_living: bool
) -> tuple[Remedy, tuple[tuple[Document, Document], ...]] | None:
    """The change, and each LimitRange before and after it; None where no bound refuses the pod."""
    words: list[str] = []
    commands: list[str] = []
    replaced: list[tuple[Document, Document]] = []
    for document in documents:
        limits = document.value
        if not isinstance(limits, LimitRange) or limits.metadata.namespace != pod.metadata.namespace:
            continue
        bounds = _bounds(limits, pod)
        if not bounds:
            continue
        replaced.append((document, dataclasses.replace(document, value=_with(limits, bounds))))
        words.append(f"In LimitRange {limits.metadata.key}, {' and '.join(each.words() for each in bounds)}.")
        paths = [(("spec", "limits", str(each.at), each.side, each.resource), str(each.after)) for each in bounds]
        commands.append(names_command("limitrange", limits.metadata.key, paths))
    if not replaced:
        return None
    return Remedy(" ".join(words), tuple(commands) if is_living else ()), tuple(replaced)


def _bounds(limits: LimitRange, pod: Pod) -> list[_LimitBound]:
    spec = creation_of(pod).get("spec") or {}
    found: dict[tuple[int, str, str], _LimitBound] = {}
    for at, item in enumerate(limits.spec.limits):
        for fault in pod_faults(LimitRangeBounds(json.loads(to_json(item))), spec):
            what, asks, asked = fault.partition(_ASKED)
            side = _SIDES.get(what.partition(" ")[0], "")
            if not side or not asks:
                continue
            resource = what.split()[1]
            before = getattr(item, side)[resource]
            after = Quantity.parse(asked.split()[-1])
            known = found.get((at, side, resource))
            if known is not None:
                after = max(known.after, after) if side == "max" else min(known.after, after)
            found[at, side, resource] = _LimitBound(at, side, resource, item.type, before, after)
    return list(found.values())


def _with(limits: LimitRange, bounds: Sequence[_LimitBound]) -> LimitRange:
    items = list(limits.spec.limits)
    for bound in bounds:
        items[bound.at] = _item_with(items[bound.at], bound)
    return structs.replace(limits, spec=structs.replace(limits.spec, limits=tuple(items)))


def _item_with(item: LimitRangeItem, bound: _LimitBound) -> LimitRangeItem:
    if bound.side == "max":
        return structs.replace(item, max={**item.max, bound.resource: bound.after})
    return structs.replace(item, min={**item.min, bound.resource: bound.after})
