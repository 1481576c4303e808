"""Applies the objects of a team, and deletes them.

Guarantees: a namespace or a ClusterQueue that the team does not own is not touched unless the caller adopts it. What
several teams use is created if it is missing, never changed, and never deleted with a team. A grant of more quota that
is not over stays, and its end gives what was applied last.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from shoal.client.clock import Clock
from shoal.client.item import Obj
from shoal.client.kind import DEVICE_CLASSES, NAMESPACES, NODES, PODS, Kind
from shoal.client.port import Api, Select
from shoal.client.refusals import NotFoundError
from shoal.client.served_writer import ServedWriter, described
from shoal.devices.names import is_accelerator
from shoal.policy.tenants.grants import grant_of, is_over
from shoal.policy.tenants.labels import MANAGED_BY, MANAGER, QUOTA, SELECTOR, TEAM_LABEL
from shoal.policy.tenants.objects import TeamSurroundings, shared_objects, team_objects
from shoal.policy.tenants.team import Team
from shoal.units.errors import UserError, Where

_OWNED = ("Namespace", "ClusterQueue")
_PRUNED = (
    ("", "ResourceQuota"),
    ("", "LimitRange"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("kueue.x-k8s.io", "LocalQueue"),
    ("kueue.x-k8s.io", "ClusterQueue"),
)
Change = Literal["created", "configured", "unchanged", "deleted", "skipped"]


class AppliedObject(msgspec.Struct, frozen=True, rename="camel"):
    object: str
    change: Change
    why: str = ""


class TenantObjects:
    def __init__(self, api: Api, writer: ServedWriter, clock: Clock, *, is_dry_run: bool = False) -> None:
        self._api = api
        self._writer = writer
        self._clock = clock
        self._is_dry_run = is_dry_run

    async def apply(self, team: Team, *, adopts: bool) -> list[AppliedObject]:
        wanted = team_objects(team, await self.surroundings(team))
        if not adopts:
            await self._check_owner(team, wanted)
        done = [await self._created(obj) for obj in shared_objects(team)]
        done += [await self._applied(obj) for obj in wanted]
        return [*done, *await self._pruned(team, wanted)]

    async def surroundings(self, team: Team) -> TeamSurroundings:
        nodes = await self._listed(NODES)
        advertised = {
            name
            for node in nodes
            for name, amount in ((node.get("status") or {}).get("allocatable") or {}).items()
            # A kubelet lists all sizes of huge pages.
            if amount != "0" or is_accelerator(name)
        }
        classes = [obj["metadata"]["name"] for obj in await self._listed(DEVICE_CLASSES)]
        meta = {"name": QUOTA, "namespace": team.namespace}
        quota = await self._writer.find({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta})
        grant = grant_of(quota) if quota else None
        is_in_force = grant is not None and not is_over(grant, self._clock.seconds())
        return TeamSurroundings(
            advertised,
            [name for name in classes if "nvidia" in name],
            grant.devices if grant is not None and is_in_force else {},
            grant,
        )

    async def delete(self, name: str, *, is_forced: bool) -> list[AppliedObject]:
        """Raises UserError if there is no such team, or if pods of it run."""
        found = await self._listed(NAMESPACES, f"{TEAM_LABEL}={name},{SELECTOR}")
        namespaces = [obj for obj in found if "deletionTimestamp" not in obj["metadata"]]
        if not namespaces:
            raise UserError(f"there is no team {name}", where=Where(path="TEAM"), fix="see shoal tenant list")
        for namespace in namespaces:
            pods = (await self._api.list(PODS, namespace["metadata"]["name"])).items
            if pods and not is_forced:
                what = f"{len(pods)} pods are in namespace {namespace['metadata']['name']}"
                raise UserError(what, where=Where(path="TEAM"), fix="end them, or delete them too with --force")
        queues = await self._of_kind("kueue.x-k8s.io", "ClusterQueue", f"{TEAM_LABEL}={name},{SELECTOR}")
        done = []
        # Namespaces first: their workloads hold the queue.
        for obj in (*namespaces, *queues):
            if not self._is_dry_run:
                await self._writer.delete(obj)
            done.append(AppliedObject(described(obj), "deleted"))
        return done

    async def _check_owner(self, team: Team, wanted: Iterable[Obj]) -> None:
        for obj in wanted:
            if obj["kind"] not in _OWNED:
                continue
            there = await self._writer.find(obj)
            labels = (there or {}).get("metadata", {}).get("labels") or {}
            if there and (labels.get(MANAGED_BY) != MANAGER or labels.get(TEAM_LABEL) != team.name):
                owner = f"belongs to team {labels[TEAM_LABEL]}" if TEAM_LABEL in labels else "exists"
                fix = "use another name, or add --adopt to isolate what runs there"
                raise UserError(f"{owner} already", where=Where(obj=described(obj)), fix=fix)

    async def _created(self, obj: Obj) -> AppliedObject:
        if self._writer.kind_of(obj) is None:
            return AppliedObject(described(obj), "skipped", "the cluster has no such kind")
        if await self._writer.find(obj):
            return AppliedObject(described(obj), "unchanged")
        await self._writer.apply(obj)
        return AppliedObject(described(obj), "created")

    async def _applied(self, obj: Obj) -> AppliedObject:
        before = await self._writer.find(obj)
        try:
            after = await self._writer.apply(obj)
        except NotFoundError:
            if not self._is_dry_run:
                raise
            # The namespace is not created by a dry run, so the server cannot check what is in it.
            return AppliedObject(described(obj), "created", "not checked: the namespace does not exist yet")
        if after is None:
            return AppliedObject(described(obj), "skipped", "the cluster has no such kind")
        if before is None:
            return AppliedObject(described(obj), "created")
        # Not the version of the object: controllers write its status and finalizers meanwhile.
        is_same = _content(before) == _content(after)
        return AppliedObject(described(obj), "unchanged" if is_same else "configured")

    async def _pruned(self, team: Team, wanted: Iterable[Obj]) -> list[AppliedObject]:
        """What an earlier version of the team had and this one does not."""
        kept = {described(obj) for obj in wanted}
        done = []
        for group, kind in _PRUNED:
            for obj in await self._of_kind(group, kind, f"{TEAM_LABEL}={team.name},{SELECTOR}"):
                if described(obj) not in kept:
                    if not self._is_dry_run:
                        await self._writer.delete(obj)
                    done.append(AppliedObject(described(obj), "deleted", "the team has it no longer"))
        return done

    async def _of_kind(self, group: str, name: str, selector: str) -> list[Obj]:
        kind = self._writer.kind_of({"apiVersion": f"{group}/" if group else "v1", "kind": name})
        return [] if kind is None else await self._listed(kind, selector)

    async def _listed(self, kind: Kind, selector: str = "") -> list[Obj]:
        try:
            found = (await self._api.list(kind, "", Select(labels=selector))).items
        except NotFoundError:
            return []
        return [{"apiVersion": kind.api_version, "kind": kind.name, **item.obj()} for item in found]


def _content(obj: Obj) -> Obj:
    meta = {key: value for key, value in obj["metadata"].items() if key in ("labels", "annotations")}
    return {**{key: value for key, value in obj.items() if key not in ("metadata", "status")}, "metadata": meta}
