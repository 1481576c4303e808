"""How a pod set of a Workload says where in a topology its pods are to be, from the annotations of its template."""

from __future__ import annotations

from typing import Any

from shoal.controllers.queued_work.fields import texts
from shoal.engine.from_api.queues.topology_wishes import topology_of_annotations
from shoal.store.queues.job_parts import Obj
from shoal.units.errors import Where

_WHERE = Where(path="metadata.annotations")


def topology_request(
    template: Obj, index_label: str = "", sub_group_label: str = "", sub_groups: int | None = None
) -> Obj:
    """Empty where nothing is asked for. The labels are those that tell which of the pods one is, and of which part.
    Raises UserError."""
    wish = topology_of_annotations(texts(template, "metadata", "annotations"), _WHERE)
    if wish is None:
        return {}
    sliced = bool(wish.slice_level) and not wish.layers
    layers = [{"topology": layer.level, "size": layer.size} for layer in wish.layers]
    fields: tuple[tuple[str, Any], ...] = (
        ("required", wish.required),
        ("preferred", wish.preferred),
        ("unconstrained", wish.unconstrained),
        ("podIndexLabel", index_label),
        ("subGroupIndexLabel", sub_group_label),
        ("subGroupCount", sub_groups if sub_group_label else None),
        ("podSetGroupName", wish.group),
        ("podSetSliceRequiredTopology", wish.slice_level if sliced else ""),
        ("podSetSliceSize", wish.slice_size if sliced else None),
        ("podsetSliceRequiredTopologyConstraints", layers),
    )
    return {name: value for name, value in fields if value}
