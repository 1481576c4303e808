"""Finds by how much ResourceQuotas have to be raised until the pods that they refuse are admitted.

The API server names only the first quota that refuses an object, and judges pods only after their controller. So every
raise is tried: the same objects are judged again under the raised quotas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import structs

from shoal.api.decode import Document
from shoal.api.pod import Pod
from shoal.api.resource_quotas import ResourceQuota
from shoal.store.held_pods import HeldPod
from shoal.store.quota_refusals import refused_pods, usage_of_quotas
from shoal.units.quantity import ZERO, Quantity
from shoal.views.refused_pods import Exceeded, exceeded

_MOST_ROUNDS = 8
_Amounts = dict[tuple[str, str], Exceeded]
"""By quota and resource."""


class Raises(NamedTuple):
    found: Sequence[Exceeded]
    obstacle: str = ""
    """Why the pods would be refused even then."""


def raises_for(documents: Sequence[Document], refused: Mapping[str, HeldPod], namespace: str) -> Raises:
    """Of pods that are refused. Without quotas that are exceeded, nothing is found."""
    found: _Amounts = {}
    left = dict(refused)
    for _ in range(_MOST_ROUNDS):
        short = exceeded([hold.message for hold in left.values()], None, len(left))
        for each in short:
            key = each.name, each.resource
            found[key] = structs.replace(found[key], need=each.wanted) if key in found else each
        if not short:
            break
        documents = _raised(documents, found, namespace)
        now = refused_pods(documents)
        left = {key: now[key] for key in refused if key in now}
        if not left:
            break
    return Raises(list(found.values()), next((hold.message for hold in left.values()), ""))


def also_exceeded(found: Sequence[Exceeded], quotas: Sequence[dict[str, Any]], pod: Pod, pods: int) -> list[Exceeded]:
    """The quotas that Events name, and the others of the namespace that the pods would exceed after these."""
    short = {(each.name, each.resource): each for each in found}
    for quota, amounts in usage_of_quotas(quotas, pod):
        for resource, requested in amounts.items():
            used = (quota.said or {}).get(resource, ZERO)
            each = Exceeded(quota.name, resource, requested, used, quota.hard[resource], pods)
            if requested > ZERO and each.hard < each.wanted:
                short.setdefault((quota.name, resource), each)
    return list(short.values())


def _raised(documents: Sequence[Document], found: _Amounts, namespace: str) -> list[Document]:
    return [
        Document(_with(document.value, found), document.where)
        if isinstance(document.value, ResourceQuota) and document.value.metadata.namespace == namespace
        else document
        for document in documents
    ]


def _with(quota: ResourceQuota, found: _Amounts) -> ResourceQuota:
    more: dict[str, Quantity] = {
        resource: each.wanted for (name, resource), each in found.items() if name == quota.metadata.name
    }
    status = quota.status
    if status is not None:
        status = structs.replace(status, hard={**status.hard, **more})
    return structs.replace(quota, spec=structs.replace(quota.spec, hard={**quota.spec.hard, **more}), status=status)
