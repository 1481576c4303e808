"""The PodGroup of the scheduler plugins' Coscheduling: a flat gang with a minimum and a time to wait for it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, field

from shoal.api.meta import ObjectMeta
from shoal.api.resource_rules import check_amounts
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct, Quantities
from shoal.units.errors import Where

Count = Annotated[int, Meta(ge=0, le=2**31 - 1)]


class CoschedulingPodGroupSpec(ApiStruct, frozen=True):
    min_member: Count = 0
    min_resources: Quantities = field(default_factory=dict)
    schedule_timeout_seconds: Count | None = None


class CoschedulingPodGroupStatus(ApiStruct, frozen=True):
    phase: str = ""


class CoschedulingPodGroup(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: CoschedulingPodGroupSpec = field(default_factory=CoschedulingPodGroupSpec)
    status: CoschedulingPodGroupStatus = field(default_factory=CoschedulingPodGroupStatus)


def check_coscheduling_pod_group(group: CoschedulingPodGroup, where: Where) -> None:
    check_meta(group.metadata, where.below("metadata"))
    check_amounts(group.spec.min_resources, where.below("spec.minResources"))
