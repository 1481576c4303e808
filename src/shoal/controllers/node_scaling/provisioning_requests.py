"""Carries ProvisioningRequests: reads them, and writes their conditions.

The pods of a request exist in plans only. While a request waits they are planned as a gang; once its capacity is there
they keep their places for ten minutes, less those for which pods were created meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet

from shoal.api.pod import Pod
from shoal.autoscale.nodes.plan import NodePlan
from shoal.autoscale.provisioning_requests.demand import Demand, RequestedCapacity, demand_of
from shoal.autoscale.provisioning_requests.pods import requested_pods
from shoal.autoscale.provisioning_requests.progress import (
    NewCondition,
    due_condition,
    found_condition,
    impossible,
    next_due_s,
    retry_s,
    revoked,
    templates_due_s,
    unkept,
)
from shoal.autoscale.provisioning_requests.request import (
    CAPACITY_REVOKED,
    CLAIMS,
    FAILED,
    PROVISIONED,
    ProvisioningRequest,
    request_of,
)
from shoal.client.conditions import WriteTime, put
from shoal.client.context import Context
from shoal.client.item import Item, Obj
from shoal.client.kind import POD_TEMPLATES, RESOURCE_QUOTAS, Kind
from shoal.client.port import Patch
from shoal.store.quota_room import QuotaRoom
from shoal.units.errors import UserError


class ProvisioningRequests:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._kind: Kind | None = None
        self._tries: dict[str, tuple[int, float]] = {}
        """By uid: how often no capacity was found, and when it is tried again."""
        self.quota_room = QuotaRoom()
        """What the ResourceQuotas leave beside the requests, as of the last call of `demand`."""
        self._granted: dict[str, tuple[Pod, ...]] = {}
        """By uid: the pods of requests whose capacity is kept, whatever becomes of their PodTemplates."""

    def follow(self, kind: Kind, changed: Callable[[], None]) -> None:
        """The server has this kind."""
        self._kind = kind
        for each in (kind, POD_TEMPLATES, RESOURCE_QUOTAS):
            self._context.informers.of(each).on_change(lambda _before, _after: changed())

    @property
    def is_needed(self) -> bool:
        """Whether some request is not decided yet, or its capacity is kept."""
        return any(not request.is_ended for _, request in self._known())

    @property
    def remembered(self) -> frozenset[str]:
        """The uids of the requests of which this process knows more than their objects say."""
        return frozenset(self._tries) | frozenset(self._granted)

    async def advance(self) -> float | None:
        """Write the conditions that need no planning. Returns the seconds until another one is due."""
        now_s = self._context.clock.seconds()
        soonest = []
        self._forget_deleted()
        for item, request in self._known():
            if request.is_ended:
                self._tries.pop(request.uid, None)
                self._granted.pop(request.uid, None)
                continue
            due, due_s = due_condition(request, now_s), next_due_s(request)
            templates = self._templates(request)
            if now_s < templates_due_s(request) and any(each.template not in templates for each in request.pod_sets):
                due_s = min(due_s, templates_due_s(request))
            elif due is None or due.type != FAILED:
                due = self._unusable(request, templates) or due
            if due is not None:
                await self._write(item, due)
            again_s = self._tries[request.uid][1] if request.uid in self._tries else due_s
            soonest.append(max(min(due_s, again_s) - now_s, 1.0))
        return min(soonest, default=None)

    def demand(self, present: Sequence[Pod]) -> Demand:
        """What is to be planned now. `present`: the pods of the cluster."""
        quotas = [item.obj() for item in self._context.informers.of(RESOURCE_QUOTAS)]
        self.quota_room = QuotaRoom(quotas, lambda: present)
        now_s = self._context.clock.seconds()
        requests = [request for _, request in self._known()]
        found = demand_of(requests, self._pods, present, lambda each: self._tries.get(each.uid, (0, 0.0))[1] <= now_s)
        return found.within(self.quota_room.refusal)

    def _pods(self, request: ProvisioningRequest) -> tuple[Pod, ...]:
        """The pods for which capacity is kept, or is to be found. Raises UserError if none can be made."""
        if not request.has(PROVISIONED):
            return requested_pods(request, self._templates(request))
        if request.uid not in self._granted:
            self._granted[request.uid] = requested_pods(request, self._templates(request))
        return self._granted[request.uid]

    async def conclude(
        self, wanted: Sequence[RequestedCapacity], plan: NodePlan, launched: Collection[str], claims: Mapping[str, str]
    ) -> bool:
        """Write what the plan means for these requests. `claims`: the names of NodeClaims, by the names of their nodes
        in plans. Returns whether capacity was found for one of the requests.
        """
        has_found = False
        for each in wanted:
            condition = found_condition(each.request, each.keys, plan, launched)
            item = self._item(each.request)
            if condition is None or item is None:
                continue
            if condition.type == PROVISIONED and condition.is_true:
                self._tries.pop(each.request.uid, None)
                self._granted[each.request.uid] = each.all_pods
                homes = {plan.placed[key] for key in each.keys if key in plan.placed}
                await self._note_claims(item, sorted(claims[home] for home in homes if home in claims))
                has_found = True
            else:
                attempts = self._tries.get(each.request.uid, (0, 0.0))[0] + 1
                self._tries[each.request.uid] = attempts, self._context.clock.seconds() + retry_s(attempts)
            await self._write(item, condition)
        return has_found

    async def revoke(
        self, booked: Sequence[RequestedCapacity], homeless: Collection[str], there: AbstractSet[str]
    ) -> None:
        """Bookings whose nodes are gone. `homeless`: pods that found no place. `there`: the NodeClaims that stay."""
        for each in booked:
            gone = set(each.request.claims) - there
            item = self._item(each.request)
            if item is not None and gone and not each.keys.isdisjoint(homeless):
                await self._write(item, revoked(sorted(gone)))

    @property
    def _are_known(self) -> bool:
        of = self._context.informers.of
        kinds = (POD_TEMPLATES, RESOURCE_QUOTAS)
        return self._kind is not None and of(self._kind).is_synced and all(of(each).is_synced for each in kinds)

    def _known(self) -> list[tuple[Item, ProvisioningRequest]]:
        """The oldest first; none before all are known."""
        if self._kind is None or not self._are_known:
            return []
        found = [(item, request_of(item.obj())) for item in self._context.informers.of(self._kind)]
        return sorted((each for each in found if each[1].is_known), key=lambda each: (each[1].created_s, each[1].key))

    def _forget_deleted(self) -> None:
        if self._are_known:
            for uid in self.remembered - {request.uid for _, request in self._known()}:
                self._tries.pop(uid, None)
                self._granted.pop(uid, None)

    def _item(self, request: ProvisioningRequest) -> Item | None:
        return (
            None if self._kind is None else self._context.informers.of(self._kind).get(request.namespace, request.name)
        )

    def _unusable(self, request: ProvisioningRequest, templates: Mapping[str, Obj]) -> NewCondition | None:
        """What is wrong with a request for whose capacity no pods can be made."""
        if request.uid in self._granted and request.has(PROVISIONED):
            return None
        try:
            requested_pods(request, templates)
        except UserError as error:
            return unkept(str(error)) if request.has(PROVISIONED) else impossible(str(error))
        return None

    def _templates(self, request: ProvisioningRequest) -> dict[str, Obj]:
        """Those that are there, by name."""
        informer = self._context.informers.of(POD_TEMPLATES)
        return {
            each.template: item.obj().get("template") or {}
            for each in request.pod_sets
            if (item := informer.get(request.namespace, each.template)) is not None
        }

    async def _write(self, item: Item, new: NewCondition) -> None:
        clock = self._context.clock
        status: Obj = dict(item.obj().get("status") or {})
        if put(status, new.type, (new.is_true, new.reason, new.message), WriteTime(clock.text(), clock.seconds())):
            patch = Patch("merge", {"metadata": {"uid": item.uid}, "status": {"conditions": status["conditions"]}})
            await self._patch(item, patch, "status")
            about: Obj = {"kind": "ProvisioningRequest", "apiVersion": "autoscaling.x-k8s.io/v1"}
            about["metadata"] = {"name": item.name, "namespace": item.namespace, "uid": item.uid}
            is_bad = new.type in (FAILED, CAPACITY_REVOKED) or not new.is_true
            self._context.events.record(about, new.reason, new.message, type_="Warning" if is_bad else "Normal")

    async def _note_claims(self, item: Item, claims: Sequence[str]) -> None:
        notes = {CLAIMS: ",".join(claims) or None}
        await self._patch(item, Patch("merge", {"metadata": {"uid": item.uid, "annotations": notes}}))

    async def _patch(self, item: Item, patch: Patch, subresource: str = "") -> None:
        if self._kind is not None:
            await self._context.api.patch(self._kind, item.namespace, item.name, patch, subresource)
