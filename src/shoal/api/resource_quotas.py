"""Resource quotas: how much the objects of a namespace may use in total."""

from __future__ import annotations

from typing import Literal

from msgspec import field

from shoal.api.meta import ObjectMeta
from shoal.api.resource_rules import check_amounts
from shoal.api.validity import check_meta
from shoal.api.wire import ApiStruct, Quantities
from shoal.units.errors import Where


class ScopeExpression(ApiStruct, frozen=True):
    scope_name: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = "Exists"
    values: tuple[str, ...] = ()


class ScopeSelector(ApiStruct, frozen=True):
    match_expressions: tuple[ScopeExpression, ...] = ()


class ResourceQuotaSpec(ApiStruct, frozen=True):
    hard: Quantities = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(ApiStruct, frozen=True):
    hard: Quantities = field(default_factory=dict)
    used: Quantities = field(default_factory=dict)


class ResourceQuota(ApiStruct, frozen=True):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ResourceQuotaSpec = field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus | None = None


def check_resource_quota(quota: ResourceQuota, where: Where) -> None:
    check_meta(quota.metadata, where.below("metadata"))
    check_amounts(quota.spec.hard, where.below("spec.hard"))
