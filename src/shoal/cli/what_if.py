"""Computes what another quota or more nodes would change, with the code of `shoal decide` and `shoal queue diff`.

The documents of the cluster are read once. Both worlds are made of them, so everything that is not proposed is equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote as quoted

import msgspec
from msgspec import structs

from shoal.api.decode import Document
from shoal.api.kueue import ClusterQueue
from shoal.api.node import Node
from shoal.cli.manifests import loaded_of, rounds_of
from shoal.cli.named_nodes import documents_of_machines
from shoal.cli.object_source import Source
from shoal.cli.queue_manifests import replaced
from shoal.sim.answers import answer
from shoal.sim.queue_diff import compare
from shoal.sim.queue_future import future_of
from shoal.sim.queue_rounds import QueueRounds
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.quantity import Quantity
from shoal.views.decision import Decision
from shoal.views.queue_diff import Comparison
from shoal.views.what_if import Proposal, WhatIfAnswer, pod_changes

_SEED = 42
_MOST_NODES = 1_000
_MOST_LETTERS = 400
_FILES = (".yaml", ".yml", ".json", "/")
_NODES, _QUOTA, _QUEUE = Where(path="nodes"), Where(path="quota"), Where(path="queue")
_HOST_NAME = "kubernetes.io/hostname"


def what_if(source: Source, proposal: Proposal) -> WhatIfAnswer:
    """Raises UserError for a proposal that names what the cluster does not have."""
    now = list(source.documents)
    changed, command = _with_quota(now, proposal) if proposal.quota else (None, "")
    added = _added_nodes(now, proposal.nodes) if proposal.nodes else []
    proposed = [*(now if changed is None else replaced(now, [changed])), *added]
    pods, unchanged = pod_changes(_decided(now), _decided(proposed))
    return WhatIfAnswer(_queues(now, proposed), pods, unchanged, len(added), command, source.notes)


def _decided(documents: Sequence[Document]) -> Decision:
    loaded = loaded_of(documents)
    return answer(rounds_of(loaded, _SEED), loaded.manifests.gated)


def _queues(now: Sequence[Document], proposed: Sequence[Document]) -> Comparison | None:
    """Loaded again: a world that was decided about is another one."""
    lived = []
    for documents in (now, proposed):
        loaded = loaded_of(documents)
        # Where no node is known, pods wait for ever.
        rounds = rounds_of(loaded, _SEED, steps=None if loaded.cluster.row_of else ())
        if not isinstance(rounds, QueueRounds) or loaded.queued is None:
            return None
        lived.append((future_of(rounds), loaded.queued.workloads))
    (present, before), (future, after) = lived
    return compare(present, future, before, after)


def _with_quota(documents: Sequence[Document], proposal: Proposal) -> tuple[Document, str]:
    """The ClusterQueue with the quota, and the command that would change it."""
    document = next(
        (one for one in documents if isinstance(one.value, ClusterQueue) and one.value.metadata.name == proposal.queue),
        None,
    )
    if document is None or not isinstance(document.value, ClusterQueue):
        raise UserError(f"there is no ClusterQueue {excerpt(proposal.queue)}", where=_QUEUE)
    queue = document.value
    try:
        amount = Quantity.parse(proposal.quota)
    except UserError as error:
        raise UserError(error.what, where=_QUOTA, fix="write a quantity, as in 16 or 512Gi") from None
    if amount < Quantity.of(0):
        raise UserError("is less than 0", where=_QUOTA)
    for (group, flavor, resource), names in _quotas(queue):
        if names != (proposal.flavor, proposal.resource):
            continue
        changed = _replaced_quota(queue, (group, flavor, resource), amount)
        path = f"/spec/resourceGroups/{group}/flavors/{flavor}/resources/{resource}/nominalQuota"
        patch = msgspec.json.encode([{"op": "replace", "path": path, "value": proposal.quota}]).decode()
        command = f"kubectl patch clusterqueue {quoted(proposal.queue)} --type=json -p {quoted(patch)}"
        return Document(changed, document.where), command
    what = f"ClusterQueue {excerpt(proposal.queue)} has no quota of {excerpt(proposal.resource)} in this flavor"
    raise UserError(what, where=_QUOTA)


def _quotas(queue: ClusterQueue) -> Iterator[tuple[tuple[int, int, int], tuple[str, str]]]:
    """Where each is, and its flavor and resource."""
    for group, of_group in enumerate(queue.spec.resource_groups):
        for flavor, of_flavor in enumerate(of_group.flavors):
            for resource, quota in enumerate(of_flavor.resources):
                yield (group, flavor, resource), (of_flavor.name, quota.name)


def _replaced_quota(queue: ClusterQueue, place: tuple[int, int, int], amount: Quantity) -> ClusterQueue:
    group, flavor, resource = place
    groups = [*queue.spec.resource_groups]
    flavors = [*groups[group].flavors]
    resources = [*flavors[flavor].resources]
    resources[resource] = structs.replace(resources[resource], nominal_quota=amount)
    flavors[flavor] = structs.replace(flavors[flavor], resources=tuple(resources))
    groups[group] = structs.replace(groups[group], flavors=tuple(flavors))
    return structs.replace(queue, spec=structs.replace(queue.spec, resource_groups=tuple(groups)))


def _added_nodes(documents: Sequence[Document], fleet: str) -> list[Document]:
    """With names that no node has."""
    taken = {one.value.metadata.name for one in documents if isinstance(one.value, Node)}
    found = []
    for document in documents_of_machines([_checked(fleet)]):
        node = document.value
        if isinstance(node, Node):
            name = f"new-{node.metadata.name}"
            while name in taken:
                name = f"new-{name}"
            taken.add(name)
            labels = {**node.metadata.labels, _HOST_NAME: name}
            metadata = structs.replace(node.metadata, name=name, labels=labels)
            found.append(Document(structs.replace(node, metadata=metadata), document.where))
    return found


def _checked(fleet: str) -> str:
    """Machines alone: a viewer must not have files of the server read. Raises UserError."""
    if len(fleet) > _MOST_LETTERS or any(name in fleet.lower() for name in _FILES):
        raise UserError("names no machines", where=_NODES, fix="write machines as in 2xp5.48xlarge,1xdgx-a100-80")
    numbers = (part.partition("x")[0].strip() for part in fleet.split(","))
    count = sum(int(number) for number in numbers if number.isdecimal())
    if count > _MOST_NODES:
        raise UserError(f"{count:,} are too many", where=_NODES, fix=f"name at most {_MOST_NODES:,} machines")
    return fleet
