"""Requests for more quota: asks, grants, denies, and ends grants whose time is over.

Each step is an Event of the ResourceQuota and an annotation of the objects that it changes.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.client.clock import Clock
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES
from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS, EVENTS, NAMESPACES, RESOURCE_QUOTAS, Kind
from shoal.client.port import Api, Patch, Select
from shoal.client.refusals import ForbiddenError, NotFoundError
from shoal.client.served_writer import ServedWriter
from shoal.controllers.quota_grants.ending import end_grant, raise_queue, team_queue
from shoal.policy.tenants.grants import (
    ENDED,
    GRANTED,
    REQUEST_LABEL,
    REQUESTED,
    QuotaGrant,
    bounded,
    decision_patch,
    devices_words,
    end_s,
    ended_words,
    former_items,
    grant_of,
    granting_patch,
    is_over,
    request_object,
    requested_devices,
)
from shoal.policy.tenants.labels import QUOTA, SELECTOR, TEAM_LABEL
from shoal.policy.tenants.queue_grants import nominal_quotas
from shoal.units.errors import UserError, Where, excerpt
from shoal.wiring.tenants.times import timestamp

QUOTAS = RESOURCE_QUOTAS
_SELF = Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", is_namespaced=False)
_COMPONENT = "shoal-tenant"


class QuotaRequests:
    def __init__(self, api: Api, writer: ServedWriter, clock: Clock) -> None:
        self._api = api
        self._writer = writer
        self._clock = clock

    async def ask(self, namespace: str, devices: Mapping[str, int], life_s: float, reason: str) -> str:
        """The name of the request."""
        who, now = await self._user(), timestamp(self._clock)
        told = {
            "askedBy": who,
            "askedAt": now,
            "until": timestamp(self._clock, life_s) if life_s else "",
            "reason": reason,
        }
        quota = await self._quota(namespace)
        team = str((quota["metadata"].get("labels") or {}).get(TEAM_LABEL, namespace))
        name = f"quota-request-{int(self._clock.seconds())}"
        obj = request_object(namespace, team, name, devices, told)
        await self._api.create(CONFIG_MAPS, obj)
        await self._record(
            quota, REQUESTED, f"{who} asks for {devices_words(devices)}{_until(told['until'])}: {reason}"
        )
        return name

    async def listed(self, namespace: str = "") -> list[Obj]:
        found = (await self._api.list(CONFIG_MAPS, namespace, Select(labels=REQUEST_LABEL))).items
        return [item.obj() for item in found]

    async def approve(self, namespace: str, name: str, life_s: float | None) -> QuotaGrant:
        """`life_s`: None is the end that the request names, 0 is none."""
        request, quota = await self._request(namespace, name), await self._quota(namespace)
        if (request["metadata"].get("labels") or {}).get(REQUEST_LABEL) != "pending":
            raise UserError("is decided already", where=Where(obj=f"ConfigMap {namespace}/{name}"))
        devices, data = requested_devices(request), request.get("data") or {}
        earlier, queue = grant_of(quota), await self._team_queue(quota)
        grant = QuotaGrant(
            request=name,
            asked_by=bounded(str(data.get("askedBy", ""))),
            granted_by=await self._user(),
            granted_at=timestamp(self._clock),
            until=self._end(request, life_s),
            devices=devices,
            former=former_items(quota, devices),
            reason=bounded(str(data.get("reason", ""))),
            former_queue=nominal_quotas(queue, devices, earlier) if queue is not None else {},
        )
        await self._api.patch(QUOTAS, namespace, QUOTA, Patch("merge", granting_patch(quota, grant)))
        await raise_queue(self._api, self._queues(), quota, grant)
        await self._decide(namespace, name, "granted", grant.granted_by)
        asked = f"asked by {grant.asked_by}, request {name}"
        words = f"{grant.granted_by} grants {devices_words(devices)}{_until(grant.until)}, {asked}"
        await self._record(quota, GRANTED, words)
        return grant

    def _end(self, request: Obj, life_s: float | None) -> str:
        """As a time of the API, or empty for none."""
        if life_s is not None:
            return timestamp(self._clock, life_s) if life_s else ""
        # Members of the team can write anything there.
        until = str((request.get("data") or {}).get("until", ""))
        if not until:
            return ""
        end, now_s = end_s(until), self._clock.seconds()
        if end is None:
            meta = request["metadata"]
            where = Where(obj=f"ConfigMap {meta['namespace']}/{meta['name']}", path="data.until")
            raise UserError(f"{excerpt(until)} is no time", where=where, fix="give an end with --for")
        if end <= now_s:
            raise UserError(f"would end at {until}", where=Where(path="--for"), fix="give a time that is to come")
        return timestamp(self._clock, end - now_s)

    async def deny(self, namespace: str, name: str, reason: str) -> None:
        await self._request(namespace, name)
        quota, who = await self._quota(namespace), await self._user()
        await self._decide(namespace, name, "denied", who)
        await self._record(quota, "QuotaDenied", f"{who} denies request {name}: {reason or 'no reason is given'}")

    async def expire(self) -> list[tuple[str, QuotaGrant]]:
        """The grants that were ended, with their namespaces."""
        ended = []
        for item in (await self._api.list(QUOTAS, "", Select(labels=SELECTOR))).items:
            quota = item.obj()
            grant = grant_of(quota)
            if grant is None or not is_over(grant, self._clock.seconds()):
                continue
            namespace, by = quota["metadata"]["namespace"], (await self._user(), timestamp(self._clock))
            if not await end_grant(self._api, self._queues(), quota, grant, by):
                continue
            await self._record(quota, ENDED, ended_words(grant))
            ended.append((namespace, grant))
        return ended

    async def _request(self, namespace: str, name: str) -> Obj:
        try:
            found = (await self._api.get(CONFIG_MAPS, namespace, name)).obj()
        except NotFoundError:
            found = {}
        if REQUEST_LABEL not in ((found.get("metadata") or {}).get("labels") or {}):
            what = f"there is no request {name} in namespace {namespace}"
            raise UserError(what, where=Where(path="REQUEST"), fix="see shoal tenant requests")
        return found

    async def _quota(self, namespace: str) -> Obj:
        try:
            return (await self._api.get(QUOTAS, namespace, QUOTA)).obj()
        except NotFoundError:
            what = f"namespace {namespace} has no ResourceQuota {QUOTA}"
            raise UserError(what, where=Where(path="TEAM"), fix="create the team with shoal tenant apply") from None

    async def _team_queue(self, quota: Obj) -> Obj | None:
        try:
            return await team_queue(self._api, self._queues(), quota)
        except ForbiddenError:
            # Refused below, with the ResourceQuota, which is what a grant needs first.
            return None

    def _queues(self) -> Kind | None:
        """None where Kueue's kinds are not served."""
        return self._writer.kind_of({"apiVersion": CLUSTER_QUEUES.api_version, "kind": "ClusterQueue"})

    async def _decide(self, namespace: str, name: str, state: str, who: str) -> None:
        body = decision_patch(state, who, timestamp(self._clock))
        await self._api.patch(CONFIG_MAPS, namespace, name, Patch("merge", body))

    async def _user(self) -> str:
        found = await self._api.post(_SELF, "", "", "", {})
        return str(((found.get("status") or {}).get("userInfo") or {}).get("username", "")) or "an unknown user"

    async def _record(self, quota: Obj, reason: str, message: str) -> None:
        """A user who may not write Events can still ask."""
        meta, now = quota["metadata"], timestamp(self._clock)
        about = {"kind": "ResourceQuota", "apiVersion": "v1", "name": meta["name"], "namespace": meta["namespace"]}
        event: Obj = {
            "metadata": {"generateName": f"{meta['name']}.", "namespace": meta["namespace"]},
            "involvedObject": {**about, "uid": meta.get("uid", "")},
            "reason": reason,
            "message": message[:1024],
            "type": "Normal",
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            await self._api.create(EVENTS, event)
        except ForbiddenError:
            return


async def namespace_of(api: Api, team: str) -> str:
    """Of a team, by the label; the name itself where the user may not list namespaces."""
    try:
        found = (await api.list(NAMESPACES, "", Select(labels=f"{TEAM_LABEL}={team},{SELECTOR}"))).items
    except ForbiddenError:
        return team
    if not found:
        raise UserError(f"there is no team {team}", where=Where(path="TEAM"), fix="see shoal tenant list")
    return found[0].name


def _until(until: str) -> str:
    return f" until {until}" if until else ""
