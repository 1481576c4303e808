"""Reads the objects of a live cluster that a diagnosis needs, with the reasons why some could not be read.

Guarantees: a kind that the server does not have has no objects; a kind that the user may not read is named with the
refusal, so that its checks count as not run. ConfigMaps are kept only if they configure the device plugin
or MIG, or are dashboards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from shoal.client import ecosystem_kinds as others
from shoal.client import kind as core
from shoal.client.item import Obj
from shoal.client.kind import Kind
from shoal.client.port import Api
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.client.served import answering
from shoal.policy.diagnosis.gangs import JOB_KINDS
from shoal.policy.kinds import CLUSTER_POLICY, GroupKind

_KINDS: tuple[Kind, ...] = (
    core.NODES,
    core.PODS,
    core.EVENTS,
    core.NAMESPACES,
    core.CONFIG_MAPS,
    core.DAEMON_SETS,
    others.WORKLOADS,
    others.LOCAL_QUEUES,
    others.CLUSTER_QUEUES,
    others.RESOURCE_FLAVORS,
    others.NODE_POOLS,
    others.NODE_CLAIMS,
    others.NODE_TOPOLOGIES,
)
_WANTED = (*(GroupKind(kind.group, kind.name) for kind in _KINDS), CLUSTER_POLICY, *JOB_KINDS)
_DASHBOARD_LABEL = "grafana_dashboard"
_CONFIG_WORDS = ("sharing", "mig-configs", "migStrategy")


@dataclass(frozen=True, slots=True)
class DiagnosedObjects:
    objects: list[Obj] = field(default_factory=list)
    complete: set[GroupKind] = field(default_factory=set)
    """Kinds of which all objects are known."""
    unread: dict[GroupKind, str] = field(default_factory=dict)
    """Why the objects of other kinds are not known."""


async def read_diagnosed_objects(api: Api, others: Iterable[GroupKind] = ()) -> DiagnosedObjects:
    """`others`: more kinds to read."""
    wanted = tuple(dict.fromkeys((*_WANTED, *others)))
    there = {GroupKind(one.kind.group, one.kind.name): one.kind for one in await answering(api)}
    served = [(named, there[named]) for named in wanted if named in there]
    found = DiagnosedObjects(complete={named for named in wanted if named not in there})
    lists = await asyncio.gather(*(_listed(api, kind) for _, kind in served))
    for (named, _), listed in zip(served, lists, strict=True):
        if isinstance(listed, ForbiddenError):
            found.unread[named] = str(listed)
            continue
        found.complete.add(named)
        found.objects.extend(obj for obj in listed if named.name != "ConfigMap" or _is_configuration(obj))
    return found


async def _listed(api: Api, kind: Kind) -> list[Obj] | ForbiddenError:
    head: Obj = {"apiVersion": kind.api_version, "kind": kind.name}
    try:
        return [{**item.obj(), **head} for item in (await api.list(kind)).items]
    except NotFoundError:
        return []
    except ForbiddenError as error:
        return error


def _is_configuration(obj: Obj) -> bool:
    if _DASHBOARD_LABEL in (obj["metadata"].get("labels") or {}):
        return True
    data = obj.get("data")
    texts = data.values() if isinstance(data, dict) else ()
    return any(isinstance(text, str) and word in text for text in texts for word in _CONFIG_WORDS)
