"""Topology requests of pod sets: required or preferred levels, slices, and groups of pod sets."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from shoal.api.wire import ApiStruct

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class SliceConstraint(ApiStruct, frozen=True):
    """A layer of slices: so many pods within one domain of a level."""

    topology: str
    size: Annotated[int, Meta(ge=1, le=2**31 - 1)]


class PodSetTopologyRequest(ApiStruct, frozen=True):
    required: str | None = None
    preferred: str | None = None
    unconstrained: bool | None = None
    pod_index_label: str | None = None
    sub_group_index_label: str | None = None
    sub_group_count: Count | None = None
    pod_set_group_name: str | None = None
    pod_set_slice_required_topology: str | None = None
    pod_set_slice_size: Count | None = None
    slice_layers: tuple[SliceConstraint, ...] = field(default=(), name="podsetSliceRequiredTopologyConstraints")
    """Slices within slices, outermost first."""
