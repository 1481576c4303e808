"""Reads topology requests of a pod set, from a workload's own field or from annotations on a pod template."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.api.kueue.topology_requests import PodSetTopologyRequest, SliceConstraint
from shoal.engine.from_api.membership import whole_number
from shoal.engine.from_api.topologies import KUEUE_PREFERRED, KUEUE_REQUIRED, KUEUE_SLICE_LEVEL, KUEUE_SLICE_SIZE
from shoal.engine.queues.topology_facts import SliceLayer, TopologyRequest
from shoal.units.errors import UserError, Where

UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
LAYERS = "kueue.x-k8s.io/podset-slice-required-topology-constraints"
GROUP = "kueue.x-k8s.io/podset-group-name"

_LAYERS = msgspec.json.Decoder(tuple[SliceConstraint, ...])


def topology_of_request(request: PodSetTopologyRequest | None) -> TopologyRequest | None:
    """A request for nothing, as controllers write it where topologies are in use, is none."""
    if request is None:
        return None
    return _found(
        TopologyRequest(
            required=request.required or "",
            preferred=request.preferred or "",
            unconstrained=bool(request.unconstrained),
            group=request.pod_set_group_name or "",
            slice_level=request.pod_set_slice_required_topology or "",
            slice_size=request.pod_set_slice_size or 0,
            layers=tuple(SliceLayer(layer.topology, layer.size) for layer in request.slice_layers),
        )
    )


def topology_of_annotations(annotations: Mapping[str, str], where: Where) -> TopologyRequest | None:
    """`where` is the place of the annotations."""
    required, preferred = annotations.get(KUEUE_REQUIRED, ""), annotations.get(KUEUE_PREFERRED, "")
    unconstrained = annotations.get(UNCONSTRAINED, "").lower() == "true"
    named = [
        name
        for name, said in ((KUEUE_REQUIRED, required), (KUEUE_PREFERRED, preferred), (UNCONSTRAINED, unconstrained))
        if said
    ]
    if len(named) > 1:
        raise UserError(f"contradicts {named[0]}", where=where.key(named[1]), fix="only one of them can be set")
    level, size = annotations.get(KUEUE_SLICE_LEVEL, ""), annotations.get(KUEUE_SLICE_SIZE, "")
    if bool(level) != bool(size):
        there, missing = (KUEUE_SLICE_LEVEL, KUEUE_SLICE_SIZE) if level else (KUEUE_SLICE_SIZE, KUEUE_SLICE_LEVEL)
        raise UserError(f"needs {missing} beside it", where=where.key(there))
    return _found(
        TopologyRequest(
            required=required,
            preferred=preferred,
            unconstrained=unconstrained,
            group=annotations.get(GROUP, ""),
            slice_level=level,
            slice_size=whole_number(size, where.key(KUEUE_SLICE_SIZE)) if size else 0,
            layers=_layers(annotations[LAYERS], where.key(LAYERS)) if LAYERS in annotations else (),
        )
    )


def _layers(text: str, where: Where) -> tuple[SliceLayer, ...]:
    try:
        return tuple(SliceLayer(layer.topology, layer.size) for layer in _LAYERS.decode(text))
    except msgspec.MsgspecError as error:
        fix = 'write e.g. [{"topology": "rack", "size": 4}]'
        raise UserError("is not a list of topology and size", where=where, fix=fix) from error


def _found(request: TopologyRequest) -> TopologyRequest | None:
    """One with layers alone says the first as its slices too, so that readers that know slices only are right."""
    if request.layers and not request.slice_level:
        first = request.layers[0]
        request = msgspec.structs.replace(request, slice_level=first.level, slice_size=first.size)
    return None if request == TopologyRequest() else request
