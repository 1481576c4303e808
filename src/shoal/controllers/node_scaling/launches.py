"""Launches the instances of NodeClaims, one request for each launch group.

The NodeClaims exist before the request, and their group is its token. So a process that is killed after the request
and before the record repeats it, and gets the same instances. A group of which NodeClaims are missing, and for which
the cloud has no instances, was never requested, because its process was killed while it wrote them: it is given up, and
planned again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from shoal.api.resources import amounts
from shoal.api.taints import Taint
from shoal.autoscale.node_claims.claim import LAUNCHED, UNREGISTERED_TAINT, NodeClaim
from shoal.autoscale.nodes.advertised_devices import advertised
from shoal.autoscale.nodes.catalog import quantities_of
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.client.ecosystem_kinds import NODE_CLAIMS
from shoal.client.item import Obj
from shoal.cloud.port import (
    GROUP_TAG,
    POOL_TAG,
    CloudInstance,
    InstanceRequest,
    NoCapacityError,
    ThrottledError,
)
from shoal.controllers.node_scaling.parts import ScalingParts
from shoal.units.errors import TemporaryError, UserError, one_line

_log = logging.getLogger("shoal.nodes")
_STARTUP_TAINTS = "shoal.dev/startup-taints"
_AGAIN_S = 2.0

Types = Mapping[str, Mapping[str, InstanceType]]
"""By pool and name."""


class Launches:
    def __init__(self, parts: ScalingParts) -> None:
        self._context = parts.context
        self._cloud = parts.cloud
        self._writer = parts.writer
        self._failures = parts.failures
        self._refusals = parts.refusals
        self._observer = parts.observer
        self._say = parts.say
        self._claims = parts.context.informers.of(NODE_CLAIMS)

    async def launch(self, group: Sequence[NodeClaim], types: Types, *, is_requested: bool) -> float | None:
        """`group`: all NodeClaims of a group, also those that are being deleted. `is_requested`: whether the cloud has
        instances for it. Returns the seconds after which it has to be called again.
        """
        members = sorted((each for each in group if not each.is_deleting), key=lambda each: each.name)
        waiting = [each for each in members if not each.has(LAUNCHED)]
        first = waiting[0]
        if not is_requested and len(waiting) == len(members) < first.group_size:
            for claim in waiting:
                self._say(
                    claim,
                    "LaunchGroupIncomplete",
                    "not all NodeClaims of its launch group were written",
                    is_normal=False,
                )
                await self._drop(claim)
            return None
        request = self._request(first)
        try:
            instances = await self._cloud.create(request)
        except NoCapacityError as error:
            await self._has_no_capacity(waiting, error)
            return None
        except ThrottledError as error:
            self._observer.refused("throttled")
            return error.delay_s
        except TemporaryError as error:
            self._observer.refused("no answer")
            _log.info("launch group %s: %s", first.group, error)
            return error.delay_s
        except UserError as error:
            # A pool with an invalid node class does not keep other pools from their nodes.
            self._observer.refused("invalid")
            await self._is_refused(waiting, request.node_class, error)
            return None
        self._refusals.note_grant(first.pool)
        taken = {each.provider_id for each in group if each.provider_id}
        free = [each for each in instances if each.provider_id not in taken]
        for claim, instance in zip(waiting, free, strict=False):
            await self._record(claim, instance, types)
        return _AGAIN_S if len(free) < len(waiting) else None

    def _request(self, claim: NodeClaim) -> InstanceRequest:
        item = self._claims.get("", claim.name)
        spec: Obj = {} if item is None else item.obj()["spec"]
        startup = [each["key"] for each in spec.get("startupTaints") or ()]
        taints = [*(spec.get("taints") or ()), *(spec.get("startupTaints") or ())]
        instance_type, zone, capacity_type = claim.offering
        return InstanceRequest(
            token=claim.group,
            instance_type=instance_type,
            zone=zone,
            capacity_type=capacity_type,
            count=claim.group_size,
            tags={GROUP_TAG: claim.group, POOL_TAG: claim.pool, _STARTUP_TAINTS: ",".join(startup)},
            node_labels=dict(claim.labels),
            taints=(
                *(Taint(each["key"], each["effect"], str(each.get("value") or "")) for each in taints),
                Taint(UNREGISTERED_TAINT, "NoExecute"),
            ),
            node_class=str((spec.get("nodeClassRef") or {}).get("name") or ""),
        )

    async def _record(self, claim: NodeClaim, instance: CloudInstance, types: Types) -> None:
        one = types.get(claim.pool, {}).get(instance.instance_type)
        status: Obj = {"providerID": instance.provider_id}
        if one is not None:
            status["capacity"] = _quantities(one.capacity, claim.labels)
            status["allocatable"] = _quantities(one.allocatable(), claim.labels)
        words = f"{instance.instance_type} in {instance.zone} ({instance.capacity_type}) as {instance.id}"
        await self._writer.set_conditions(claim.name, [(LAUNCHED, "True", "Launched", "")], status)
        self._say(claim, "Launched", f"requested {words}")

    async def _has_no_capacity(self, waiting: Sequence[NodeClaim], error: NoCapacityError) -> None:
        now_s = self._context.clock.seconds()
        until_s = self._failures.note_failure(waiting[0].offering, now_s)
        self._observer.refused("no capacity")
        for claim in waiting:
            words = f"{error}; this offering is not tried again for {until_s - now_s:.0f} s"
            self._say(claim, "InsufficientCapacity", words, is_normal=False)
            await self._drop(claim)

    async def _is_refused(self, waiting: Sequence[NodeClaim], node_class: str, error: UserError) -> None:
        now_s, words = self._context.clock.seconds(), one_line(str(error))
        until_s = self._refusals.note_refusal(waiting[0].pool, node_class, words, now_s)
        for claim in waiting:
            told = f"{words}; the pool is not tried again for {until_s - now_s:.0f} s"
            self._say(claim, "LaunchRefused", told, is_normal=False)
            await self._drop(claim)

    async def _drop(self, claim: NodeClaim) -> None:
        """Nothing was created for it."""
        await self._writer.delete(claim)
        await self._writer.release(claim)


def _quantities(amounts_of: Mapping[str, int], labels: Mapping[str, str]) -> dict[str, str]:
    found = quantities_of(advertised(amounts_of, labels))
    return {name: str(each) for name, each in found.items() if amounts(found).get(name)}
