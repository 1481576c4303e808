"""Ends one grant of more quota: in the ClusterQueue of the team, then in its ResourceQuota.

Guarantees: it can be repeated after a failure between the two steps. The grant is in the ResourceQuota until its own
step, and afterwards the ResourceQuota has a record of it, which members of the team cannot write. A grant that was
replaced meanwhile is not ended, in neither object, and no change of another client is overwritten.

The labels of a ResourceQuota are no proof that it belongs to a team: a ClusterQueue is changed only if it and the
namespace have the labels of the team, too.

Rejected: a mark at the request. It is a ConfigMap, and the right to change those of all namespaces is the right to
configure what runs there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from shoal.client.item import Obj
from shoal.client.kind import NAMESPACES, RESOURCE_QUOTAS, Kind
from shoal.client.port import Api, Patch
from shoal.client.refusals import NotFoundError
from shoal.policy.tenants.grants import QuotaGrant, encoded, ending_patch, grant_of
from shoal.policy.tenants.labels import GRANT, QUOTA, TEAM_LABEL
from shoal.policy.tenants.queue_grants import former_queue, granted_queue, is_of_team
from shoal.units.errors import ConflictError

_log = logging.getLogger("shoal.controllers")
_TRIES = 5


async def end_grant(api: Api, queues: Kind | None, quota: Obj, grant: QuotaGrant, by: tuple[str, str]) -> bool:
    """False if the quota has another grant meanwhile, or none. `queues`: the ClusterQueues as the server has them, None
    without them. `by`: who ends it, and when."""
    namespace = quota["metadata"]["namespace"]
    try:
        quota = (await api.get(RESOURCE_QUOTAS, namespace, QUOTA)).obj()
    except NotFoundError:
        return False
    found = grant_of(quota)
    if found is None or not found.is_same(grant) or found.until != grant.until:
        return False

    def ended(queue: Obj) -> Obj | None:
        there = grant_of(queue)
        return former_queue(queue, found) if there is None or there.is_same(found) else None

    await _change_queue(api, queues, quota, ended, None)
    await api.patch(RESOURCE_QUOTAS, namespace, QUOTA, Patch("merge", ending_patch(quota, found, by)))
    return True


async def raise_queue(api: Api, queues: Kind | None, quota: Obj, grant: QuotaGrant) -> None:
    """The nominal quotas of the team's ClusterQueue, and its annotation."""
    await _change_queue(api, queues, quota, lambda queue: granted_queue(queue, grant.devices), encoded(grant))


async def team_queue(api: Api, queues: Kind | None, quota: Obj) -> Obj | None:
    """The ClusterQueue of the team whose ResourceQuota this is; None if there is none that is proved to be."""
    meta = quota["metadata"]
    team = str((meta.get("labels") or {}).get(TEAM_LABEL, ""))
    if queues is None or not team:
        return None
    try:
        queue = (await api.get(queues, "", team)).obj()
        namespace = (await api.get(NAMESPACES, "", meta["namespace"])).obj()
    except NotFoundError:
        return None
    if is_of_team(quota, team) and is_of_team(queue, team) and is_of_team(namespace, team):
        return queue
    words = "ClusterQueue %s is not changed: it or namespace %s lacks the labels of team %s"
    _log.warning(words, team, meta["namespace"], team)
    return None


async def _change_queue(
    api: Api, queues: Kind | None, quota: Obj, change: Callable[[Obj], Obj | None], grant: str | None
) -> None:
    for left in reversed(range(_TRIES)):
        queue = await team_queue(api, queues, quota)
        changed = change(queue) if queue is not None else None
        if queues is None or changed is None:
            return
        meta = {"annotations": {GRANT: grant}, "resourceVersion": changed["metadata"]["resourceVersion"]}
        body: dict[str, Any] = {"metadata": meta, "spec": changed["spec"]}
        try:
            await api.patch(queues, "", changed["metadata"]["name"], Patch("merge", body))
        except ConflictError:
            if not left:
                raise
        else:
            return
