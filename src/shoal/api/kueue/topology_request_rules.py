"""Checks topology requests as Kueue does: contradicting levels, slices without a size, incomplete groups of pod
sets."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.api.kueue.lists import check_most
from shoal.api.kueue.topology_requests import PodSetTopologyRequest
from shoal.api.kueue.workloads import PodSet
from shoal.api.names import label_key_fault
from shoal.units.errors import UserError, Where, excerpt

MOST_LAYERS = 3
_MEMBERS_OF_A_GROUP = 2


def check_topology_request(request: PodSetTopologyRequest, where: Where) -> None:
    wishes = [
        name
        for name, wish in (
            ("required", request.required),
            ("preferred", request.preferred),
            ("unconstrained", request.unconstrained),
        )
        if wish
    ]
    if len(wishes) > 1:
        raise UserError(f"{' and '.join(wishes)} cannot be both set", where=where, fix="choose one")
    for name, level in (
        ("required", request.required),
        ("preferred", request.preferred),
        ("podSetSliceRequiredTopology", request.pod_set_slice_required_topology),
    ):
        if level is not None:
            _check_level(level, where.below(name))
    _check_slices(request, where)


def check_topology_requests(pod_sets: Sequence[PodSet], where: Where) -> None:
    """Pod sets of one group go to one place: a leader and its workers, wishing the same."""
    groups: dict[str, list[int]] = {}
    for index, pod_set in enumerate(pod_sets):
        request = pod_set.topology_request
        if request is not None and request.pod_set_group_name:
            groups.setdefault(request.pod_set_group_name, []).append(index)
    for name, members in groups.items():
        here = where.below(f"[{members[-1]}].topologyRequest.podSetGroupName")
        if len(members) != _MEMBERS_OF_A_GROUP:
            what = f"group {excerpt(name)} must have exactly two pod sets, got {len(members)}"
            raise UserError(what, where=here)
        if all(pod_sets[index].count != 1 for index in members):
            raise UserError(f"group {excerpt(name)} needs a pod set of a single pod: the leader", where=here)
        first, second = (pod_sets[index].topology_request for index in members)
        if first is not None and second is not None and _requirement(first) != _requirement(second):
            raise UserError(f"the pod sets of group {excerpt(name)} must request the same topology", where=here)


def _requirement(request: PodSetTopologyRequest) -> tuple[str | None, str | None]:
    return request.required, request.preferred


def _check_level(level: str, where: Where) -> None:
    if fault := label_key_fault(level):
        raise UserError(f"{excerpt(level)} is not a label key: {fault}", where=where)


def _check_slices(request: PodSetTopologyRequest, where: Where) -> None:
    level, size = request.pod_set_slice_required_topology, request.pod_set_slice_size
    if (level is None) != (size is None):
        missing = "podSetSliceSize" if size is None else "podSetSliceRequiredTopology"
        raise UserError("is required: slices have a level and a size", where=where.below(missing))
    if size is not None and size < 1:
        raise UserError(f"must be at least 1, got {size}", where=where.below("podSetSliceSize"))
    here = where.below("podsetSliceRequiredTopologyConstraints")
    check_most(request.slice_layers, MOST_LAYERS, here)
    outer: int | None = None
    for index, layer in enumerate(request.slice_layers):
        _check_level(layer.topology, here.below(f"[{index}].topology"))
        if outer is not None and (layer.size > outer or outer % layer.size):
            what = f"must divide the size of the layer above ({outer}), got {layer.size}"
            raise UserError(what, where=here.below(f"[{index}].size"))
        outer = layer.size
