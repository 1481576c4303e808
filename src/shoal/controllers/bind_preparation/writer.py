"""Writes what a pod needs before it is bound: volumes are chosen and provisioned, claims allocated and reserved, and
the names of devices returned for the binding.

Guarantees: it may be called again for the same pod, by this process or by a later one, and after any failure; a pod
that needs nothing costs a few searches in its bytes. A failed write is raised as a typed error: the caller decides
whether to wait, to decide again or to give up.

Rejected: claims before volumes. Volumes may take minutes, in which the devices would be unusable for others.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.api.pod import Pod
from shoal.client.context import Context
from shoal.client.item import Item, Key
from shoal.client.kind import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS
from shoal.client.refusals import NotFoundError
from shoal.client.volumes.needs import Mounts, mounts_of
from shoal.controllers.bind_preparation.attachment import Attachment
from shoal.controllers.bind_preparation.claims import ClaimWriter
from shoal.controllers.bind_preparation.device_demands import DeviceDemands
from shoal.controllers.bind_preparation.extended_claims import ExtendedClaims
from shoal.controllers.bind_preparation.instances import MigInstances
from shoal.controllers.bind_preparation.used_devices import UsedDevices
from shoal.controllers.bind_preparation.users import User
from shoal.controllers.bind_preparation.volumes import VolumeWriter
from shoal.devices.mig_demand import WantedPlace
from shoal.engine.device_demand import Demand, DeviceGrant, MigTiles
from shoal.engine.device_notation import names
from shoal.engine.dra.requests import ClaimGrant, Picks
from shoal.engine.from_api import ask_of_pod
from shoal.engine.plan import Place
from shoal.store.dra.extended import EXTENDED
from shoal.store.volumes.rules import NOWHERE
from shoal.store.watched.device_ids import chosen_ids, devices_annotation, needs_taken, placed_tiles
from shoal.store.watched.devices import WatchedDevices
from shoal.store.watched.pod_views import PodView
from shoal.store.watched.reading import value_of
from shoal.store.watched.volumes import WatchedVolumes
from shoal.units.errors import ConflictError, TemporaryError

_MOUNTS = (b'"persistentVolumeClaim"', b'"ephemeral"')
_LONGEST_S, _POLL_S = 15.0, 0.1


class Writer:
    """One for each process: only it knows the choices that are not yet visible in the caches."""

    def __init__(self, context: Context, devices: WatchedDevices, volumes: WatchedVolumes) -> None:
        self._context = context
        self._clock = context.clock
        self._pods = context.informers.of(PODS)
        self._devices = devices
        self._volumes = volumes
        self._volume_writer = VolumeWriter(context, volumes.needs)
        self._held = UsedDevices(context)
        self._asking = DeviceDemands()
        self._attached = Attachment(context, devices.claims.by_key)
        self._instances = MigInstances(context, devices.ids)

    async def prepare(
        self, view: PodView, place: Place, is_wanted: Callable[[], bool] = lambda: True
    ) -> dict[str, str]:
        """Prepare claims and volumes, which may take minutes; returns the annotations of the binding. The wait ends
        when the decision no longer holds.
        """
        item = self._pods.get(view.namespace, view.name)
        if item is None or item.uid != view.uid:
            raise NotFoundError(f'pods "{view.name}" not found')
        user = User(view.namespace, view.name, view.uid, is_wanted)
        if any(word in item.data for word in _MOUNTS):
            mounts = mounts_of(item)
            if mounts.claims:
                await self._serve_volumes(user, mounts, place.node)
        grant = place.grant
        demand = view.event.ask.devices if view.event is not None else _demand_of(item)
        claims = grant.claims if grant is not None else ()
        if demand is None and not claims:
            return {}
        if claims:
            await self._serve_claims(value_of(PODS, item, Pod), user, claims, place.node)
        if isinstance(demand, MigTiles) and grant is not None and grant.parts:
            await self._serve_instances(user, demand, grant, place.node)
        return self._named(item, demand, place)

    async def free(self, view: PodView) -> None:
        """Deallocate claims that were allocated for this pod alone, which is on no node."""
        user, writer = User(view.namespace, view.name, view.uid), self._claim_writer()
        for ref in view.event.ask.claims if view.event is not None else ():
            claim = self._devices.claims.by_key.get(ref.shared)
            if claim is None or any(one.uid != user.uid for one in claim.status.reserved_for):
                continue
            if claim.is_allocated():
                await writer.free((claim.metadata.namespace, claim.metadata.name), user)

    def _claim_writer(self) -> ClaimWriter:
        pools, served = self._devices.pools, self._devices.served
        return ClaimWriter(self._context, pools.reach, served(RESOURCE_CLAIMS), served(DEVICE_CLASSES), pools.binding)

    # -- volumes ----------------------------------------------------------------------------------------------------

    async def _serve_volumes(self, user: User, mounts: Mounts, node: str) -> None:
        needs = self._volumes.needs
        needed = needs.needed(mounts)
        if isinstance(needed, str):
            raise TemporaryError(needed, 1.0)
        if not needed.waiting:
            return
        wanted = needs.wanted(needed, node, self._volumes.labels_of(node))
        if wanted is None:
            raise ConflictError(NOWHERE)
        self._volumes.reserve(wanted)
        try:
            await self._volume_writer.choose(wanted, node)
            await self._volume_writer.bound(user, mounts, wanted, node)
        finally:
            self._volumes.withdraw(wanted)

    # -- claims -----------------------------------------------------------------------------------------------------

    async def _serve_claims(self, pod: Pod, user: User, grants: tuple[ClaimGrant, ...], node: str) -> None:
        writer = self._claim_writer()
        extended = ExtendedClaims(self._context, self._devices.class_of, self._devices.served(RESOURCE_CLAIMS))
        reserved: list[Key] = []
        try:
            for grant in grants:
                picks, is_extended = grant.picks, grant.name == EXTENDED and not grant.shared
                if is_extended:
                    key, picks = await extended.made(pod, user), extended.renamed(pod, picks)
                else:
                    key = await self._claim_of(user, grant)
                self._check_free(key, picks)
                reserved.append(key)
                await writer.reserve(key, user, picks, node)
                if grant.name == EXTENDED:
                    await extended.tell(pod, user, key)
            await self._attached.ready(user, pod.spec.scheduler_name, reserved, node)
        except Exception:
            for key in reversed(reserved):
                await writer.release(key, user)
            raise

    async def _claim_of(self, user: User, grant: ClaimGrant) -> Key:
        """The key of the claim: its own name, or that of the claim created for the pod, once it exists."""
        if grant.shared:
            namespace, _, name = grant.shared.partition("/")
            return namespace, name
        ends_s = self._clock.seconds() + _LONGEST_S
        at = f"{user.namespace}/{user.name}", grant.name
        while True:
            user.check()
            key = self._devices.claims.made.get(at)
            claim = self._devices.claims.by_key.get(key) if key is not None else None
            if claim is not None and any(owner.uid == user.uid for owner in claim.metadata.owner_references):
                return user.namespace, claim.metadata.name
            if self._clock.seconds() >= ends_s:
                what = "waiting for dynamic resource controller to create the resourceclaim"
                raise TemporaryError(f'pod "{user.namespace}/{user.name}": {what} "{grant.name}"', 1.0)
            await self._clock.sleep(_POLL_S)

    def _check_free(self, key: Key, picks: Picks) -> None:
        """Raises an error if another claim has the device meanwhile, from a scheduler that decided at the same time."""
        own = "/".join(key)
        for pick in picks:
            others = self._devices.claims.holders(pick.device) - {own}
            if others and not pick.admin and not self._devices.pools.is_shared(pick.device):
                raise ConflictError(f'device {pick.device} was given to resourceclaim "{min(others)}" meanwhile')

    async def _serve_instances(self, user: User, demand: MigTiles, grant: DeviceGrant, node: str) -> None:
        layout = self._devices.ids(node).layout
        placed = placed_tiles(layout, demand, grant) if layout else {}
        places = [WantedPlace(gpu, name, start) for name, each in placed.items() for gpu, start in each]
        if places:
            await self._instances.ready(user, node, sorted(places))

    # -- names of devices -------------------------------------------------------------------------------------------

    def _named(self, item: Item, demand: Demand | None, place: Place) -> dict[str, str]:
        if demand is None:
            return {}
        node, grant = place.node, place.grant
        must_know = needs_taken(demand, grant)
        taken = self._held.on(node, item) if must_know else frozenset()
        chosen = chosen_ids(self._asking.of(item), demand, grant, self._devices.ids(node), taken)
        if must_know:
            self._held.choose(node, item, chosen)
        text = devices_annotation(chosen)
        return {names.OWN_DEVICES: text} if text else {}


def _demand_of(item: Item) -> Demand | None:
    return ask_of_pod(value_of(PODS, item, Pod)).devices
