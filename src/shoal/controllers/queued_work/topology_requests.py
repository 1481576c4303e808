"""Makes the `topologyRequest` of a Workload's pod set from the annotations of its template."""

from __future__ import annotations

from typing import Any

from shoal.controllers.queued_work.fields import string_map
from shoal.engine.from_api.queues.topology_requests import topology_of_annotations
from shoal.store.queues.job_parts import Obj
from shoal.units.errors import Where

_WHERE = Where(path="metadata.annotations")


def topology_request(
    template: Obj, index_label: str = "", sub_group_label: str = "", sub_groups: int | None = None
) -> Obj:
    """Empty if the template requests no topology. The labels give the index of a pod and of its sub-group.
    Raises UserError."""
    request = topology_of_annotations(string_map(template, "metadata", "annotations"), _WHERE)
    if request is None:
        return {}
    sliced = bool(request.slice_level) and not request.layers
    layers = [{"topology": layer.level, "size": layer.size} for layer in request.layers]
    fields: tuple[tuple[str, Any], ...] = (
        ("required", request.required),
        ("preferred", request.preferred),
        ("unconstrained", request.unconstrained),
        ("podIndexLabel", index_label),
        ("subGroupIndexLabel", sub_group_label),
        ("subGroupCount", sub_groups if sub_group_label else None),
        ("podSetGroupName", request.group),
        ("podSetSliceRequiredTopology", request.slice_level if sliced else ""),
        ("podSetSliceSize", request.slice_size if sliced else None),
        ("podsetSliceRequiredTopologyConstraints", layers),
    )
    return {name: value for name, value in fields if value}
