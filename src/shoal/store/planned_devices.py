"""Reads the devices and resource claims (DRA) of a cluster for a planning of nodes, with those of nodes to come.

Nothing is read where no pod has claims, apart from whether pools publish devices at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from shoal.api.claims import ResourceClaim, ResourceClaimTemplate
from shoal.api.device_classes import DeviceClass
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.resources import amounts
from shoal.api.slices import Attribute, ResourceSlice
from shoal.autoscale.nodes.advertised_devices import gives_by_claims
from shoal.autoscale.nodes.device_templates import common_attributes, copied, of_machine, on_node
from shoal.autoscale.nodes.existing_nodes import ExistingNode
from shoal.autoscale.nodes.instance_types import InstanceType
from shoal.autoscale.nodes.planned_devices import PlannedDevices, row_name, with_copies
from shoal.autoscale.nodes.pools import NodePool
from shoal.autoscale.requirements.labels import POOL_LABEL
from shoal.devices.claimable_devices import CLAIM_DRIVER
from shoal.devices.names import DOMAIN, OWN_DRA
from shoal.engine.dra.devices import SliceFacts
from shoal.engine.dra.requests import ClaimFacts, ClaimRef
from shoal.store.dra.claim_refs import Claimed, ClaimRefs, made_for
from shoal.store.dra.extended import Extended, advertised_by
from shoal.store.dra.facts import claim_ask, claim_facts, slice_facts
from shoal.store.dra.sets import DeviceSets
from shoal.store.inventory import Inventory

_GKE_DRIVER: Final = "cloud.google.com/gke-gpu-dra-driver"
_IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
_MOVED: Final = "@moved"
"""After the name of a claim whose pods move together, and which is then allocated again."""

_REMEMBERED_S: Final = 3600.0
"""How long the devices of nodes that are gone are expected of the next ones."""
_MOST_SETS: Final = 1000
"""Sets of devices that are kept up to date; those of claims that are gone are forgotten at times."""

Types = Mapping[str, tuple[InstanceType, ...]]
_Pieces = tuple[ResourceSlice, ...]


def with_claim_labels(pools: Iterable[NodePool], inventory: Inventory) -> tuple[NodePool, ...]:
    """The pools, with the label that their GPUs are devices of claims where that follows from the cluster.

    Nodes of the pool tell, else its label, else the whole cluster: it has devices or a class of the driver, and no
    device plugin advertises GPUs. Where a device plugin advertises the GPUs of all nodes of a pool, its label is wrong,
    and nodes for claims would be provisioned without end.
    """
    publishing = {piece.spec.node_name for piece in filter(_is_of_gpus, _slices(inventory))}
    by_pool: dict[str, set[bool]] = {}
    for placed in inventory.of(Node):
        meta = placed.value.metadata
        if meta.name in publishing:
            by_pool.setdefault(meta.labels.get(POOL_LABEL, ""), set()).add(True)
        elif any(name.startswith(DOMAIN) and amount for name, amount in amounts(placed.value.allocatable()).items()):
            by_pool.setdefault(meta.labels.get(POOL_LABEL, ""), set()).add(False)
    has_plugin = any(False in found for found in by_pool.values())
    has_driver = bool(publishing) or any(_is_of_driver(each.value) for each in inventory.of(DeviceClass))

    def labelled(pool: NodePool) -> NodePool:
        found = by_pool.get(pool.name)
        if found == {False}:
            return replace(pool, labels={**pool.labels, OWN_DRA: "false"}) if OWN_DRA in pool.labels else pool
        if OWN_DRA in pool.labels:
            return pool
        by_claims = has_driver and not has_plugin if found is None else found == {True}
        if by_claims or pool.labels.get(_GKE_DRIVER) == "true":
            return replace(pool, labels={**pool.labels, OWN_DRA: "true"})
        return pool

    return tuple(map(labelled, pools))


def _is_of_driver(each: DeviceClass) -> bool:
    return any(f"'{CLAIM_DRIVER}'" in one.cel.expression.replace('"', "'") for one in each.spec.selectors)


def _is_of_gpus(piece: ResourceSlice) -> bool:
    return piece.spec.driver == CLAIM_DRIVER


def _slices(inventory: Inventory) -> Iterator[ResourceSlice]:
    return (each.value for each in inventory.of(ResourceSlice))


def published_nodes(inventory: Inventory) -> frozenset[str]:
    """The nodes whose pools of devices of NVIDIA's driver are complete."""
    return frozenset(_complete(filter(_is_of_gpus, _slices(inventory))))


def _complete(pieces: Iterable[ResourceSlice]) -> dict[str, list[ResourceSlice]]:
    """By node, the newest generation of its pools, where all of them are there."""
    pools: dict[str, dict[tuple[str, str], list[ResourceSlice]]] = {}
    for piece in pieces:
        spec = piece.spec
        if spec.node_name:
            pools.setdefault(spec.node_name, {}).setdefault((spec.driver, spec.pool.name), []).append(piece)
    found: dict[str, list[ResourceSlice]] = {}
    for node, by_pool in pools.items():
        kept: list[ResourceSlice] = []
        for each in by_pool.values():
            newest = max(piece.spec.pool.generation for piece in each)
            new = [piece for piece in each if piece.spec.pool.generation == newest]
            if len(new) < new[0].spec.pool.resource_slice_count:
                break
            kept += new
        else:
            found[node] = kept
    return found


class _Example(NamedTuple):
    labels: Mapping[str, str]
    """Of the pool."""
    pieces: _Pieces
    seen_s: float


class KnownDevices:
    """The slices and classes as of the last planning, so that expressions are evaluated on what has changed only."""

    def __init__(self) -> None:
        self.sets = DeviceSets()
        self._classes: dict[str, DeviceClass] = {}
        self._facts: dict[str, tuple[ResourceSlice, SliceFacts]] = {}
        self._made: dict[str, tuple[tuple[object, ...], tuple[ResourceSlice, ...]]] = {}
        self._examples: dict[str, _Example] = {}
        self._now_s = 0.0

    def begin(self, now_s: float) -> None:
        """Another planning."""
        self._now_s = now_s

    def example(self, row: str, pool: NodePool, found: _Pieces) -> _Pieces:
        """The slices of a node of this pool and type, or for an hour those that the last one had: without it, a node
        whose devices differ from what was expected would be removed as empty, and provisioned again.
        """
        if found:
            self._examples[row] = _Example(pool.labels, found, self._now_s)
            return found
        last = self._examples.get(row)
        is_valid = last is not None and last.labels == pool.labels and self._now_s - last.seen_s < _REMEMBERED_S
        return last.pieces if last is not None and is_valid else ()

    def update(self, classes: Iterable[DeviceClass], pieces: Iterable[ResourceSlice]) -> dict[str, SliceFacts]:
        """The slices by name, as facts; `sets` is of these from now on."""
        named = {each.metadata.name: each for each in classes}
        before, self._facts = self._facts, {}
        for piece in pieces:
            known = before.get(piece.metadata.name)
            is_known = known is not None and known[0] is piece
            self._facts[piece.metadata.name] = known if known and is_known else (piece, slice_facts(piece))
        if named != self._classes or len(self.sets.events()) > _MOST_SETS:
            self._classes = named
            self.sets = DeviceSets(named.values(), (facts for _, facts in self._facts.values()))
        else:
            gone = before.keys() - self._facts.keys()
            new = [facts for name, (_, facts) in self._facts.items() if before.get(name, (None, None))[1] is not facts]
            for name in gone:
                self.sets.drop(name)
            for facts in new:
                self.sets.put(facts)
            if gone or new:
                self.sets.renewed()
        return {name: facts for name, (_, facts) in self._facts.items()}

    def made(
        self, row: str, given: tuple[object, ...], make: Callable[[], tuple[ResourceSlice, ...]]
    ) -> tuple[ResourceSlice, ...]:
        """The slices of a template; the same as at the last planning if they are made of the same."""
        known = self._made.get(row)
        if known is None or known[0] != given:
            known = self._made[row] = given, make()
        return known[1]


class PlannedClaims:
    """The claims and devices that one planning depends on."""

    def __init__(
        self,
        inventory: Inventory,
        pools: Sequence[NodePool],
        types: Types,
        nodes: Sequence[ExistingNode],
        known: KnownDevices,
    ) -> None:
        self._nodes = nodes
        claims = {each.value.metadata.key: each.value for each in inventory.of(ResourceClaim)}
        self._templates = {each.value.metadata.key: each.value for each in inventory.of(ResourceClaimTemplate)}
        self._claims = claims
        pieces = list(_slices(inventory))
        complete = _complete(pieces)
        templates = _templates(pools, types, _examples(nodes, complete), common_attributes(pieces), known)
        facts = known.update((each.value for each in inventory.of(DeviceClass)), (*pieces, *templates))
        self._of_templates = tuple(facts[piece.metadata.name] for piece in templates)
        starting = {node.name for node in nodes if not node.is_initialized and node.name not in complete}
        present = [facts[piece.metadata.name] for piece in pieces if piece.spec.node_name not in starting]
        self._sets = known.sets
        by_name = sorted(claims.items(), reverse=True)
        made = {pod: key for key, claim in by_name if (pod := made_for(claim)) is not None}
        advertised = frozenset().union(*(advertised_by(each.value) for each in inventory.of(Node)))
        extended = Extended(self._sets, advertised)
        self._refs = ClaimRefs(self._sets, claims, self._templates, made, extended)
        self._elsewhere = ClaimRefs(self._sets, {}, self._templates, {}, extended)
        self._on_one_node = _on_one_node(claims, nodes)
        by_row: dict[str, list[SliceFacts]] = {}
        for piece in self._of_templates:
            by_row.setdefault(piece.reach.node_name, []).append(piece)
        self._copies = [
            (piece, on_node(piece, node.name))
            for node in nodes
            if node.name in starting and node.is_managed
            for piece in by_row.get(row_name(node.pool, node.instance_type), ())
        ]
        self._present = (*present, *(copy for _, copy in self._copies))

    def read(self, pods: Iterable[Pod]) -> tuple[PlannedDevices, dict[str, Pod]]:
        """What the planning depends on, and by namespace and name the pods without what claims provide."""
        refs: dict[str, tuple[ClaimRef, ...]] = {}
        stripped: dict[str, Pod] = {}
        moved: set[str] = set()
        for pod in (*pods, *(pod for node in self._nodes for pod in node.pods)):
            claimed = self._if_moved(pod, moved) if pod.spec.node_name else self._refs.of(pod)
            if claimed.pod is not pod:
                stripped[pod.metadata.key] = claimed.pod
            if claimed.refs:
                refs[pod.metadata.key] = claimed.refs
        contents = {key: self._content(template) for key, template in self._templates.items()}
        facts = [claim_facts(claim, self._sets) for claim in self._claims.values()]
        again = [ClaimFacts(each.key + _MOVED, each.ask) for each in facts if each.key in moved]
        sets = tuple(with_copies(tuple(self._sets.events()), self._copies))
        devices = PlannedDevices(self._of_templates, self._present, sets, (*facts, *again), refs, contents)
        return devices, stripped

    def _content(self, template: ResourceClaimTemplate) -> ClaimRef:
        ask, fault = claim_ask(template.spec.spec.devices, self._sets)
        return ClaimRef("", own=ask, trouble=f"claim from {template.metadata.name}: {fault}" if fault else "")

    def _if_moved(self, pod: Pod, moved: set[str]) -> Claimed:
        """What the pod's claims are once it is deleted and created again: those made for it are made anew, and one
        whose pods are all on this node is allocated again.
        """
        if not pod.spec.resource_claims:
            return self._elsewhere.of(pod)
        own = self._elsewhere.of(replace(pod, status=replace(pod.status, resource_claim_statuses=())))
        found: list[ClaimRef] = []
        for ref in own.refs:
            if ref.shared and self._on_one_node.get(ref.shared) == pod.spec.node_name:
                moved.add(ref.shared)
                found.append(ClaimRef(ref.name, ref.shared + _MOVED))
            else:
                found.append(ref)
        return Claimed(tuple(found), own.pod)


def planned_devices(
    inventory: Inventory,
    pools: Sequence[NodePool],
    types: Types,
    nodes: Sequence[ExistingNode],
    pods: Sequence[Pod],
    known: KnownDevices,
) -> tuple[PlannedDevices, dict[str, Pod]]:
    """The devices and claims of a planning, and by namespace and name the pods without what claims provide."""
    classes = {each.value.spec.extended_resource_name for each in inventory.of(DeviceClass)} - {""}
    every = (*pods, *(pod for node in nodes for pod in node.pods))
    # The pods of buffers are not there yet, and name templates.
    is_concerned = bool(inventory.of(ResourceClaimTemplate)) or any(
        pod.spec.resource_claims or _requests_devices(pod, classes) for pod in every
    )
    if not is_concerned:
        return PlannedDevices(), {}
    return PlannedClaims(inventory, pools, types, nodes, known).read(pods)


def _requests_devices(pod: Pod, classes: Collection[str]) -> bool:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    named = (name for each in containers for name in each.resources.requests if "/" in name)
    return any(name in classes or name.startswith(_IMPLICIT) for name in named)


def _on_one_node(claims: Mapping[str, ResourceClaim], nodes: Iterable[ExistingNode]) -> dict[str, str]:
    """The claims all of whose users are on one node, and this node."""
    home = {pod.metadata.key: node.name for node in nodes for pod in node.pods if pod.spec.node_name}
    found: dict[str, str] = {}
    for key, claim in claims.items():
        users = {home.get(f"{claim.metadata.namespace}/{each.name}", "") for each in claim.status.reserved_for}
        if len(users) == 1 and "" not in users:
            found[key] = users.pop()
    return found


def _may_be_of(pool: NodePool, one: InstanceType) -> bool:
    """Whether the requirements of the pool admit the type."""
    return all(
        any(map(admitted.has, values))
        for key, admitted in pool.requirements.items()
        if (values := one.labels.get(key)) is not None
    )


def _examples(
    nodes: Iterable[ExistingNode], complete: Mapping[str, list[ResourceSlice]]
) -> dict[str, list[ResourceSlice]]:
    """The slices of one node of each pool and type, by the name of their row."""
    found: dict[str, list[ResourceSlice]] = {}
    for node in sorted(nodes, key=lambda each: (not each.is_initialized, each.is_deleting, each.name)):
        if node.name in complete:
            found.setdefault(row_name(node.pool, node.instance_type), complete[node.name])
    return found


def _templates(
    pools: Sequence[NodePool],
    types: Types,
    examples: Mapping[str, list[ResourceSlice]],
    common: Mapping[str, Attribute],
    known: KnownDevices,
) -> list[ResourceSlice]:
    """The devices of each pool and type: those of a node that has them, else those that are known of its machine."""
    found: list[ResourceSlice] = []
    for pool in pools:
        for one in types.get(pool.name, ()):
            row = row_name(pool.name, one.name)
            example = known.example(row, pool, tuple(examples.get(row, ())))
            if not (example or gives_by_claims(pool.labels)) or not _may_be_of(pool, one):
                continue

            def make(
                row: str = row, one: InstanceType = one, pool: NodePool = pool, example: _Pieces = example
            ) -> tuple[ResourceSlice, ...]:
                pieces = copied(example, row)
                is_complete = not gives_by_claims(pool.labels) or any(_is_of_gpus(piece) for piece in pieces)
                return pieces if is_complete else (*pieces, *of_machine(row, one, pool.labels, common))

            found += known.made(row, (example, one, pool.labels, common), make)
    return found
