"""Reads MachineDeployments and MachinePools of Cluster API as groups of equal machines, and keeps account of launches.

An annotation of the group lists each launch with its number of machines. It is written together with `spec.replicas`,
so both are right or neither is. A new Machine takes a free place of a launch, which its annotation names. Machines that
were there before the launches stay without one, and so do those that others ask for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from shoal.api.resources import amounts
from shoal.api.taints import Taint
from shoal.autoscale.node_claims.claim import PRICE
from shoal.autoscale.nodes.gpu_instances import MEMORY_KEPT, type_named
from shoal.autoscale.nodes.instance_types import ON_DEMAND, InstanceType, Offering
from shoal.autoscale.requirements.labels import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL
from shoal.client.kind import Kind
from shoal.cloud.group_offers import GroupOffer
from shoal.cloud.launch_account import Launch, Place, free_places, machines_of, place_of, without_place
from shoal.cloud.port import ANY_ZONE
from shoal.units.errors import UserError, Where
from shoal.units.quantity import Quantity

_PREFIX: Final = "cluster.x-k8s.io/cluster-api-autoscaler-node-group"
MOST: Final = f"{_PREFIX}-max-size"
"""A group takes part if it has this annotation, as with Cluster Autoscaler."""
LAUNCHES: Final = "shoal.dev/launches"
PLACE: Final = "shoal.dev/launch-place"
"""Of a Machine: the launch and the number of its place."""
_CAPACITY: Final = "capacity.cluster-autoscaler.kubernetes.io/"
_DEFAULT_PODS: Final = "110"

Raw = Mapping[str, Any]


class MachineGroup(msgspec.Struct, frozen=True):
    kind: Kind
    namespace: str
    name: str
    version: int
    replicas: int
    most: int = 0
    launches: Mapping[str, Launch] = {}
    offer: GroupOffer | None = None
    """None if nothing more is launched in the group."""
    problem: str = ""
    """Why its annotations do not describe a machine."""
    is_rolling_out: bool = False
    """Machines are being replaced: one that is removed now may not be the one that was meant."""

    @property
    def id(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def outside(self) -> int:
        """How many machines were not launched by Shoal."""
        return max(self.replicas - machines_of(self.launches), 0)

    def with_launch(self, token: str, launch: Launch) -> MachineGroup:
        """The group once the launch has been requested."""
        return replace(self, replicas=self.replicas + launch.count, launches={**self.launches, token: launch})

    def without_place(self, place: Place) -> MachineGroup:
        """The group with one machine fewer."""
        return replace(self, replicas=max(self.replicas - 1, 0), launches=without_place(self.launches, place))

    def without_lost(self, held: Collection[Place]) -> MachineGroup:
        """Without the places for which there are no replicas any more, because others took them away."""
        lost = machines_of(self.launches) - self.replicas
        group = self
        for place in reversed(free_places(self.launches, held)):
            if lost <= 0:
                break
            group, lost = replace(group, launches=without_place(group.launches, place)), lost - 1
        return group

    def launches_text(self) -> str:
        """The value of the annotation."""
        return msgspec.json.encode(dict(self.launches)).decode()


class ManagedMachine(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    group: str
    """The name of its MachineDeployment or MachinePool."""
    created: str
    provider_id: str = ""
    place: Place | None = None
    is_deleting: bool = False


def machine_of(raw: Raw) -> ManagedMachine:
    metadata = raw["metadata"]
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    return ManagedMachine(
        namespace=metadata["namespace"],
        name=metadata["name"],
        group=labels.get("cluster.x-k8s.io/deployment-name") or labels.get("cluster.x-k8s.io/pool-name") or "",
        created=str(metadata.get("creationTimestamp") or ""),
        provider_id=str((raw.get("spec") or {}).get("providerID") or ""),
        place=place_of(str(annotations.get(PLACE) or "")),
        is_deleting=metadata.get("deletionTimestamp") is not None,
    )


def new_places(group: MachineGroup, machines: Iterable[ManagedMachine]) -> dict[str, Place]:
    """The places that machines of the group take now, by the names of the machines.

    A machine that is being deleted holds its place until it is gone: its Node still drains.
    """
    known = list(machines)
    held = {each.place for each in known if each.place is not None}
    unassigned = sorted(
        (each for each in known if each.place is None and not each.is_deleting),
        key=lambda each: (each.created, each.name),
        reverse=True,
    )
    new = unassigned[: max(len(unassigned) - group.outside, 0)]
    return {
        machine.name: place for machine, place in zip(reversed(new), free_places(group.launches, held), strict=False)
    }


def group_of(kind: Kind, raw: Raw) -> MachineGroup | None:
    """None if the object takes no part. Raises UserError if its account cannot be read. A group whose machine is not
    described keeps its machines.
    """
    metadata, spec = raw["metadata"], raw.get("spec") or {}
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    if MOST not in annotations and LAUNCHES not in annotations:
        return None
    where = Where(obj=f"{kind.name} {metadata['namespace']}/{metadata['name']}")
    group = MachineGroup(
        kind=kind,
        namespace=metadata["namespace"],
        name=metadata["name"],
        version=int(metadata.get("resourceVersion") or 0),
        replicas=int(spec.get("replicas") or 0),
        launches=_launches(annotations.get(LAUNCHES) or "{}", where),
        is_rolling_out=_is_rolling_out(raw.get("status") or {}),
    )
    if MOST not in annotations or metadata.get("deletionTimestamp") is not None or spec.get("paused"):
        return group
    try:
        return replace(group, most=_whole(annotations, MOST, where), offer=_offer(group, spec, annotations, where))
    except UserError as error:
        return replace(group, problem=str(error))


def _offer(group: MachineGroup, spec: Raw, annotations: Mapping[str, str], where: Where) -> GroupOffer:
    machine = (spec.get("template") or {}).get("spec") or {}
    labels = _labels(annotations.get(f"{_CAPACITY}labels") or "", where)
    one = _type(group.name, labels, annotations, _zone(spec, machine, labels), where)
    return GroupOffer(group.id, one, _taints(annotations.get(f"{_CAPACITY}taints") or "", where))


def _is_rolling_out(status: Raw) -> bool:
    """By its condition, or because some replicas have an older template."""
    conditions = status.get("conditions") or ()
    if any(each.get("type") == "RollingOut" and each.get("status") == "True" for each in conditions):
        return True
    current = status.get("upToDateReplicas", status.get("updatedReplicas"))
    return current is not None and int(current) < int(status.get("replicas") or 0)


def _zone(spec: Raw, machine: Raw, labels: Mapping[str, str]) -> str:
    """The failure domain of the group, the zone of its labels, or a word for any zone."""
    several: Sequence[str] = spec.get("failureDomains") or ()
    named = machine.get("failureDomain") or (several[0] if len(several) == 1 else "")
    return str(named or labels.get(ZONE_LABEL) or ANY_ZONE)


def _type(
    name: str, labels: Mapping[str, str], annotations: Mapping[str, str], zone: str, where: Where
) -> InstanceType:
    type_name = labels.get(INSTANCE_TYPE_LABEL) or name
    known = type_named(type_name, (zone,))
    capacity_type = labels.get(CAPACITY_TYPE_LABEL) or ON_DEMAND
    described = _capacity(annotations, where)
    if known is None and not {"cpu", "memory"} <= described.keys():
        fix = f"set {_CAPACITY}cpu and {_CAPACITY}memory, or name a known instance type in {_CAPACITY}labels"
        raise UserError("its annotations do not describe the machine", where=where, fix=fix)
    price = _price(annotations, where)
    if price is None and known is not None:
        price = next((each.price for each in known.offerings if each.capacity_type == capacity_type), None)
    if price is None:
        raise UserError(
            f"the price of {type_name} ({capacity_type}) is not known",
            where=where,
            fix=f"set the annotation {PRICE}, as in '98.32'; 0 if its machines are paid already",
        )
    memory = described.get("memory", 0)
    base = known or InstanceType(type_name, {}, {"memory": round(memory * MEMORY_KEPT)})
    return replace(
        base,
        capacity={**base.capacity, **described},
        labels={**base.labels, INSTANCE_TYPE_LABEL: (type_name,), **{key: (value,) for key, value in labels.items()}},
        offerings=(Offering(zone, capacity_type, price),),
    )


def _capacity(annotations: Mapping[str, str], where: Where) -> dict[str, int]:
    quantities = {
        resource: annotations[f"{_CAPACITY}{key}"]
        for key, resource in (("cpu", "cpu"), ("memory", "memory"), ("ephemeral-disk", "ephemeral-storage"))
        if f"{_CAPACITY}{key}" in annotations
    }
    gpus = annotations.get(f"{_CAPACITY}gpu-count")
    if gpus is not None:
        quantities[annotations.get(f"{_CAPACITY}gpu-type") or "nvidia.com/gpu"] = gpus
    if quantities:
        quantities["pods"] = annotations.get(f"{_CAPACITY}maxPods") or _DEFAULT_PODS
    try:
        return amounts({name: Quantity.parse(text) for name, text in quantities.items()})
    except UserError as error:
        raise UserError(f"a value of {_CAPACITY}* is no quantity: {error}", where=where) from error


def _price(annotations: Mapping[str, str], where: Where) -> float | None:
    if PRICE not in annotations:
        return None
    try:
        price = float(annotations[PRICE])
    except ValueError:
        price = -1.0
    if not 0 <= price < 1e6:
        raise UserError(f"{PRICE} is no price per hour", where=where, fix="as in '98.32'")
    return price


def _whole(annotations: Mapping[str, str], key: str, where: Where) -> int:
    if not annotations[key].isdecimal() or len(annotations[key]) > 9:
        raise UserError(f"{key} is no whole number", where=where)
    return int(annotations[key])


def _labels(text: str, where: Where) -> dict[str, str]:
    """`key=value,key=value`."""
    found: dict[str, str] = {}
    for part in text.split(",") if text else ():
        key, equals, value = part.strip().partition("=")
        if not key or not equals:
            raise UserError(f"{_CAPACITY}labels is no list of key=value: {part.strip()!r}", where=where)
        found[key] = value
    return found


def _taints(text: str, where: Where) -> tuple[Taint, ...]:
    """`key=value:effect,key:effect`."""
    found: list[Taint] = []
    for part in text.split(",") if text else ():
        front, _, effect = part.strip().rpartition(":")
        key, _, value = front.partition("=")
        if not key or effect not in {"NoSchedule", "PreferNoSchedule", "NoExecute"}:
            raise UserError(f"{_CAPACITY}taints is no list of key=value:effect: {part.strip()!r}", where=where)
        found.append(msgspec.convert({"key": key, "value": value, "effect": effect}, Taint))
    return tuple(found)


def _launches(text: str, where: Where) -> dict[str, Launch]:
    try:
        return msgspec.json.decode(text, type=dict[str, Launch])
    except msgspec.MsgspecError as error:
        what = f"the annotation {LAUNCHES} was changed by others: {error}"
        raise UserError(what, where=where, fix="restore it, or remove it with the machines that it lists") from error
