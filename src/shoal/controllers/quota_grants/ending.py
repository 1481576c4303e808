"""Ends one grant of more quota: in the ClusterQueue of the team, then in its ResourceQuota.

Guarantees: it can be repeated after a failure between the two steps. The grant is in the ResourceQuota until its own
step, and afterwards the ResourceQuota has a record of it, which members of the team cannot write.

Rejected: a mark at the request. It is a ConfigMap, and the right to change those of all namespaces is the right to
configure what runs there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.client.item import Obj
from shoal.client.kind import RESOURCE_QUOTAS, Kind
from shoal.client.port import Api, Patch
from shoal.client.refusals import NotFoundError
from shoal.policy.tenants.grants import (
    QuotaGrant,
    amounts_of,
    ending_patch,
    queue_with,
)
from shoal.policy.tenants.labels import GRANT, QUOTA, TEAM_LABEL


async def end_grant(api: Api, queues: Kind | None, quota: Obj, grant: QuotaGrant, by: tuple[str, str]) -> None:
    """`queues`: the ClusterQueues as the server has them, None without them. `by`: who ends it, and when."""
    namespace = quota["metadata"]["namespace"]
    await change_queue(api, queues, quota, amounts_of(grant.former), None)
    await api.patch(RESOURCE_QUOTAS, namespace, QUOTA, Patch("merge", ending_patch(quota, grant, by)))


async def change_queue(
    api: Api, queues: Kind | None, quota: Obj, amounts: Mapping[str, str], grant: str | None
) -> None:
    """The nominal quotas of the team's ClusterQueue, and its annotation."""
    team = str((quota["metadata"].get("labels") or {}).get(TEAM_LABEL, ""))
    if queues is None or not team:
        return
    try:
        queue = (await api.get(queues, "", team)).obj()
    except NotFoundError:
        return
    changed = queue_with(queue, amounts)
    if changed is not None:
        body: dict[str, Any] = {"metadata": {"annotations": {GRANT: grant}}, "spec": changed["spec"]}
        await api.patch(queues, "", team, Patch("merge", body))
