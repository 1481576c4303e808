"""Converts resource slices, device classes and claims of a live cluster to events, and determines the claims of pods.

Guarantees: after any changes the facts equal those that `store/dra` reads from the same objects at once; a change of
one slice evaluates expressions on the devices of its pool only; pods whose claims got another meaning are listed
(`stirred`). Unreadable objects are left out and reported.

Rejected: reading all objects again after each change. Forty thousand devices take seconds, and claims change all the
time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

from shoal.api.claims import ResourceClaim, ResourceClaimTemplate
from shoal.api.device_classes import DeviceClass
from shoal.api.pod import Pod
from shoal.api.slices import ResourceSlice
from shoal.api.wire import ApiStruct
from shoal.client.context import Context
from shoal.client.item import Item
from shoal.client.kind import (
    DEVICE_CLASSES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Kind,
)
from shoal.client.served import Served
from shoal.engine.device_notation import NodeIds, positions_of_pod
from shoal.engine.devices.kind import DevicePositions
from shoal.engine.dra.requests import ClaimFacts, ClaimRef
from shoal.engine.events import ClaimGone, ClaimSeen, DevicesGone, DevicesSeen, Event
from shoal.store.dra.claim_refs import ClaimRefs, Templates
from shoal.store.dra.extended import Extended
from shoal.store.dra.facts import claim_facts, sets_of, slice_facts
from shoal.store.dra.sets import DeviceSets
from shoal.store.object_faults import UNREADABLE, ObjectFault, ObjectFaults, message_of
from shoal.store.watched.claims import KnownClaims
from shoal.store.watched.dependents import Dependents
from shoal.store.watched.node_devices import NodeDevices
from shoal.store.watched.pools import KnownPools
from shoal.store.watched.reading import value_of
from shoal.units.errors import UserError, Where

V = TypeVar("V", bound=ApiStruct)
_KINDS = (DEVICE_CLASSES, RESOURCE_SLICES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS)
_OLDER = ("v1beta2", "v1beta1")
Handler = Callable[[Kind, str, Item | None], None]


class WatchedDevices:
    """`wake` is called when there are changes to drain."""

    def __init__(self, context: Context, served: Served, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._informers = context.informers
        self._served = served
        self._troubles = ObjectFaults()
        self._sets = DeviceSets()
        self.pools = KnownPools()
        self.claims = KnownClaims()
        self._templates: dict[str, ResourceClaimTemplate] = {}
        self._reported: dict[str, ClaimFacts] = {}
        self._dirty_pieces: dict[str, None] = {}
        self._dirty_claims: dict[str, None] = {}
        self._are_sets_old = self._are_resources_old = False
        self._pods = Dependents()
        self._asking = Dependents()
        """Claims by the sets that they request."""
        self._nodes = NodeDevices(context.informers.of(NODES), self.pools, self._resources_changed)
        self._extended = Extended(self._sets)
        known = self.claims
        self._refs = ClaimRefs(self._sets, known.by_key, self._templates, known.made, self._extended)
        context.informers.of(PODS).on_change(self._pod_changed)
        handlers = (self._class_changed, self._piece_changed, self._template_changed, self._claim_changed)
        for kind, handler in zip(_KINDS, handlers, strict=True):
            older = (kind._replace(version=version) for version in _OLDER)
            served.when_there(kind, self._following(handler), *older)

    def _following(self, handler: Handler) -> Callable[[Kind], None]:
        def follow(kind: Kind) -> None:
            self._informers.of(kind).on_change(lambda before, after: handler(kind, _key(before, after), after))

        return follow

    async def synced(self) -> None:
        await self._informers.synced([NODES, *(found for kind in _KINDS if (found := self._served.find(kind)))])

    def take_troubles(self) -> list[ObjectFault]:
        """Unreadable objects, each once."""
        return self._troubles.take()

    def served(self, kind: Kind) -> Kind:
        """The kind in the version that is served."""
        return self._served.find(kind) or kind

    # -- queries -----------------------------------------------------------------------------------------------------

    def refs(self, pod: Pod) -> tuple[tuple[ClaimRef, ...], Pod]:
        """The claims of the pod, and the pod without the resources that claims provide."""
        self._settle()
        claimed = self._refs.of(pod)
        self._pods.put(pod.metadata.key, needs_of(pod, self._refs, self._templates, self._extended))
        if self._sets.has_news:
            self._wake()
        return claimed

    def forget(self, key: str) -> None:
        """Forget the pod template of this name. Pods are forgotten when their objects are deleted."""
        self._pods.drop(key)

    def stirred(self) -> set[str]:
        """Pods (namespace/name) for which the results above may have changed."""
        self._settle()
        return self._pods.take()

    def positions(self, annotations: Mapping[str, str], node: str) -> DevicePositions:
        """The devices that a pod on the node names as its own; none where they cannot be read."""
        try:
            return positions_of_pod(annotations, Where(), self.ids(node))
        except UserError:
            return ()

    def class_of(self, resource: str) -> str:
        """The class that serves an extended resource, if one does."""
        return self._extended.class_of(resource)

    def ids(self, node: str) -> NodeIds:
        """The ids of the node's devices."""
        return self._nodes.ids(node)

    def take_renamed(self) -> set[str]:
        """Nodes whose device ids changed since the last call."""
        return self._nodes.take_renamed()

    # -- event handlers
    # ----------------------------------------------------------------------------------------------------

    def _read(self, kind: Kind, key: str, item: Item | None, what: type[V]) -> V | None:
        if item is not None:
            try:
                value = value_of(kind, item, what)
            except UserError as error:
                self._troubles.put(ObjectFault(kind, key, item.uid, UNREADABLE, message_of(error)))
                return None
            self._troubles.settle(kind, key)
            return value
        self._troubles.settle(kind, key)
        return None

    def _piece_changed(self, kind: Kind, key: str, item: Item | None) -> None:
        piece = self._read(kind, key, item, ResourceSlice)
        facts = slice_facts(piece) if piece is not None else None
        if not self._nodes.put_piece(key, facts):
            return
        if facts is None:
            self._sets.drop(key)
        else:
            self._sets.put(facts)
        self._dirty_pieces[key] = None
        self._are_sets_old = True
        self._wake()

    def _class_changed(self, kind: Kind, key: str, item: Item | None) -> None:
        value = self._read(kind, key, item, DeviceClass)
        known = self._sets.classes.get(key)
        if value is None:
            self._sets.drop_class(key)
        elif known is None or known.spec != value.spec:
            self._sets.put_class(value)
        else:
            return
        self._are_sets_old = self._are_resources_old = True
        self._wake()

    def _template_changed(self, kind: Kind, key: str, item: Item | None) -> None:
        template = self._read(kind, key, item, ResourceClaimTemplate)
        if template is not None:
            self._templates[key] = template
        else:
            self._templates.pop(key, None)
        if self._pods.stir(("template", key)):
            self._wake()

    def _claim_changed(self, kind: Kind, key: str, item: Item | None) -> None:
        claim = self._read(kind, key, item, ResourceClaim)
        for pod in self.claims.put(key, claim):
            self._pods.stir(("made", pod))
        self._pods.stir(("claim", key))
        self._dirty_claims[key] = None
        self._wake()

    def _resources_changed(self) -> None:
        self._are_resources_old = True
        self._wake()

    def _pod_changed(self, before: Item | None, after: Item | None) -> None:
        if after is None and before is not None:
            self.forget(f"{before.namespace}/{before.name}")

    # -- reporting ----------------------------------------------------------------------------------------------------

    def drain(self) -> list[Event]:
        """The changes of devices, sets and claims since the last call."""
        self._settle()
        dirty, self._dirty_pieces = self._dirty_pieces, {}
        pieces: list[Event] = []
        for name in dirty:
            piece = self.pools.get(name)
            pieces.append(DevicesGone(name) if piece is None else DevicesSeen(piece))
        claims = self._claim_events()
        return [*pieces, *self._sets.news(), *claims]

    def _claim_events(self) -> list[Event]:
        dirty, self._dirty_claims = self._dirty_claims, {}
        events: list[Event] = []
        for key in dirty:
            claim = self.claims.by_key.get(key)
            if claim is None:
                self._asking.drop(key)
                if self._reported.pop(key, None) is not None:
                    events.append(ClaimGone(key))
                continue
            facts = claim_facts(claim, self._sets)
            self._asking.put(key, sets_of(claim.spec.devices))
            if self._reported.get(key) != facts:
                self._reported[key] = facts
                events.append(ClaimSeen(facts))
        return events

    def _settle(self) -> None:
        """Notify the dependents of sets and resources whose meaning changed."""
        if self._are_sets_old:
            self._are_sets_old = False
            for key in self._sets.renewed():
                self._pods.stir(key)
                self._asking.stir(key)
        if self._are_resources_old:
            self._are_resources_old = False
            for resource in self._extended.renew(self._nodes.advertised()):
                self._pods.stir(("resource", resource))
        for claim in self._asking.take():
            self._dirty_claims[claim] = None


def _key(before: Item | None, after: Item | None) -> str:
    item = after or before
    if item is None:
        return ""
    return f"{item.namespace}/{item.name}" if item.namespace else item.name


def needs_of(pod: Pod, refs: ClaimRefs, templates: Templates, extended: Extended) -> list[Hashable]:
    """Names, each with its kind of object; sets by their keys."""
    key, namespace = pod.metadata.key, pod.metadata.namespace
    needs: list[Hashable] = []
    for claim in pod.spec.resource_claims:
        name = claim.resource_claim_template_name
        if not name:
            continue
        template, made = templates.get(f"{namespace}/{name}"), refs.made_for(pod, claim)
        spec = made.spec if made is not None else template.spec.spec if template is not None else None
        needs += [("template", f"{namespace}/{name}"), ("made", key), *(sets_of(spec.devices) if spec else ())]
        reported = (one.resource_claim_name for one in pod.status.resource_claim_statuses if one.name == claim.name)
        needs += [("claim", f"{namespace}/{each}") for each in reported]
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        resources = container.resources
        for resource in {**resources.requests, **resources.limits}:
            if "/" in resource:
                class_name = extended.class_of(resource)
                needs += [("resource", resource), ("made", key), *([(class_name, ())] if class_name else ())]
    return needs
