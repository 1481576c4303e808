"""Deletes the content of one namespace as far as possible, and counts the remaining objects.

Pods are deleted first: objects that they use (network policies, Secrets, claims) stay while one of them runs. Each
object is deleted once, in the background, with its own grace period.

Rejected: one request for all objects of a kind. It reports less about objects that it could not delete, and the client
protocol would have the method for this one caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from shoal.client.item import Item
from shoal.client.kind import (
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DISRUPTION_BUDGETS,
    ENDPOINT_SLICES,
    ENDPOINTS,
    EVENTS,
    JOBS,
    LEASES,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    VOLUME_CLAIMS,
    Kind,
)
from shoal.client.port import Api, Deletion
from shoal.client.refusals import NotFoundError
from shoal.embedded.controllers.namespaces.remaining_content import Left, RemainingContent
from shoal.units.errors import ShoalError

_AT_ONCE = 32
_BUILT_IN = (
    SERVICES,
    ENDPOINTS,
    ENDPOINT_SLICES,
    CONFIG_MAPS,
    SECRETS,
    SERVICE_ACCOUNTS,
    VOLUME_CLAIMS,
    REPLICATION_CONTROLLERS,
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
    CONTROLLER_REVISIONS,
    JOBS,
    CRON_JOBS,
    DISRUPTION_BUDGETS,
    RESOURCE_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    LEASES,
    EVENTS,
)
"""Kinds that are deleted even before discovery has answered."""


class _Slim(msgspec.Struct, gc=False):
    metadata: Left


class ContentDeletion:
    """While the server of an aggregated group does not answer, the kinds of the last complete discovery are deleted."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._kinds: tuple[Kind, ...] = _BUILT_IN

    async def empty(self, namespace: str) -> RemainingContent:
        remaining = RemainingContent()
        await _empty_kind(self._api, PODS, namespace, remaining)
        if not remaining.is_empty:
            return remaining
        try:
            served = await self._api.served()
        except ShoalError as error:
            remaining.undiscovered = f"unable to retrieve the complete list of server APIs: {error.what}"
        else:
            self._kinds = tuple(
                one.kind for one in served if one.kind.is_namespaced and {"list", "delete"} <= one.verbs
            )
        for kind in self._kinds:
            if kind != PODS:
                await _empty_kind(self._api, kind, namespace, remaining)
        return remaining


async def _empty_kind(api: Api, kind: Kind, namespace: str, remaining: RemainingContent) -> None:
    try:
        found = (await api.list(kind, namespace)).items
        if not found:
            return
        await _delete_all(api, kind, found, remaining)
        left = (await api.list(kind, namespace)).items
    except NotFoundError:
        # The kind itself was removed meanwhile.
        return
    except ShoalError as error:
        remaining.failures.append(error.what)
        return
    remaining.count(kind, [item.read(_Slim).metadata for item in left])


async def _delete_all(api: Api, kind: Kind, items: Sequence[Item], remaining: RemainingContent) -> None:
    asked = [item for item in items if item.read(_Slim).metadata.deletion_timestamp is None]
    for start in range(0, len(asked), _AT_ONCE):
        group = [_delete(api, kind, item) for item in asked[start : start + _AT_ONCE]]
        remaining.failures += [words for words in await asyncio.gather(*group) if words]


async def _delete(api: Api, kind: Kind, item: Item) -> str:
    """Returns why it could not be deleted."""
    try:
        await api.delete(kind, item.namespace, item.name, Deletion(policy="Background", uid=item.uid))
    except NotFoundError:
        return ""
    except ShoalError as error:
        return error.what
    return ""
