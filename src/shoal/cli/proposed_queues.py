"""Changes ClusterQueues and the Configuration of Kueue as a proposal asks, with the commands that would do it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from shlex import quote as quoted
from typing import NamedTuple

import msgspec
from msgspec import structs

from shoal.api.decode import Document
from shoal.api.kueue import ClusterQueue, Configuration
from shoal.api.kueue.configuration import FairSharingConfig
from shoal.api.kueue.quotas import FairSharing
from shoal.cli.known_names import check_known
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.quantity import Quantity
from shoal.views.what_if import QUEUE_POLICIES, Proposal, QueuePolicyChange

_QUOTA, _QUEUE, _FAIR = Where(path="quota"), Where(path="queue"), Where(path="fair sharing")
_STATES = ("on", "off")
_WEIGHT = "fairSharing.weight"


@dataclass
class ProposedQueues:
    documents: list[Document] = field(default_factory=list)
    """What is changed, to replace the objects of the same kind and name."""
    commands: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _Queue(NamedTuple):
    value: ClusterQueue
    where: Where

    def with_spec(self, **fields: object) -> _Queue:
        return _Queue(structs.replace(self.value, spec=structs.replace(self.value.spec, **fields)), self.where)


def proposed_queues(documents: Sequence[Document], proposal: Proposal) -> ProposedQueues:
    """Raises UserError for a queue or a value that cannot be."""
    found = ProposedQueues()
    changed: dict[str, _Queue] = {}
    if proposal.quota:
        changed[proposal.queue], command = _with_quota(_queue_of(documents, changed, proposal.queue), proposal)
        found.commands.append(command)
    for one in proposal.policies:
        changed[one.queue] = _with_policy(_queue_of(documents, changed, one.queue), one)
    found.commands += [
        _policy_command(queue, [one for one in proposal.policies if one.queue == queue])
        for queue in dict.fromkeys(one.queue for one in proposal.policies)
    ]
    found.documents += (Document(one.value, one.where) for one in changed.values())
    is_fair = _is_fair(documents)
    if proposal.fair_sharing:
        check_known(proposal.fair_sharing, _STATES, "state", _FAIR)
        is_fair = proposal.fair_sharing == "on"
        found.documents.append(_configured(documents, is_fair=is_fair))
    if not is_fair and any(one.field == _WEIGHT for one in proposal.policies):
        found.notes.append("Fair sharing is off: a weight has no effect.")
    return found


def _queue_of(documents: Sequence[Document], changed: dict[str, _Queue], name: str) -> _Queue:
    if name in changed:
        return changed[name]
    for one in documents:
        if isinstance(one.value, ClusterQueue) and one.value.metadata.name == name:
            return _Queue(one.value, one.where)
    raise UserError(f"there is no ClusterQueue {excerpt(name)}", where=_QUEUE)


def _with_quota(queue: _Queue, proposal: Proposal) -> tuple[_Queue, str]:
    """The ClusterQueue with the quota, and the command that would change it."""
    try:
        amount = Quantity.parse(proposal.quota)
    except UserError as error:
        raise UserError(error.what, where=_QUOTA, fix="write a quantity, as in 16 or 512Gi") from None
    if amount < Quantity.of(0):
        raise UserError("is less than 0", where=_QUOTA)
    for (group, flavor, resource), names in _quotas(queue.value):
        if names != (proposal.flavor, proposal.resource):
            continue
        changed = _Queue(_replaced_quota(queue.value, (group, flavor, resource), amount), queue.where)
        path = f"/spec/resourceGroups/{group}/flavors/{flavor}/resources/{resource}/nominalQuota"
        patch = msgspec.json.encode([{"op": "replace", "path": path, "value": proposal.quota}]).decode()
        command = f"kubectl patch clusterqueue {quoted(proposal.queue)} --type=json -p {quoted(patch)}"
        return changed, command
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


def _with_policy(queue: _Queue, change: QueuePolicyChange) -> _Queue:
    check_known(change.field, tuple(QUEUE_POLICIES), "field", _QUEUE)
    here = Where(path=change.field)
    if change.field == _WEIGHT:
        try:
            sharing = FairSharing(weight=Quantity.parse(change.value))
        except UserError as error:
            raise UserError(error.what, where=here, fix="write a number, as in 2 or 0.5") from None
        sharing.check(here)
        return queue.with_spec(fair_sharing=sharing)
    check_known(change.value, QUEUE_POLICIES[change.field], "value", here)
    name = structs_name(change.field)
    if change.field.startswith("preemption."):
        return queue.with_spec(preemption=structs.replace(queue.value.spec.preemption, **{name: change.value}))
    return queue.with_spec(**{name: change.value})


def structs_name(path: str) -> str:
    """`preemption.withinClusterQueue` -> `within_cluster_queue`."""
    last = path.rpartition(".")[2]
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in last)


def _policy_command(queue: str, changes: Sequence[QueuePolicyChange]) -> str:
    groups: dict[str, dict[str, object]] = {"": {}}
    for one in changes:
        outer, _, inner = one.field.rpartition(".")
        groups.setdefault(outer, {})[inner] = one.value
    plain = groups.pop("")
    patch = msgspec.json.encode({"spec": {**plain, **groups}}).decode()
    return f"kubectl patch clusterqueue {quoted(queue)} --type=merge -p {quoted(patch)}"


def _configuration(documents: Sequence[Document]) -> Document | None:
    return next((one for one in documents if isinstance(one.value, Configuration)), None)


def _is_fair(documents: Sequence[Document]) -> bool:
    found = _configuration(documents)
    return found is not None and isinstance(found.value, Configuration) and found.value.fair_sharing is not None


def _configured(documents: Sequence[Document], *, is_fair: bool) -> Document:
    found = _configuration(documents)
    old = found.value if found is not None and isinstance(found.value, Configuration) else Configuration()
    sharing = (old.fair_sharing or FairSharingConfig()) if is_fair else None
    return Document(structs.replace(old, fair_sharing=sharing), Where() if found is None else found.where)
