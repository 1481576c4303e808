"""Computes what another quota, more nodes or another policy would change, with the code of `shoal decide` and
`shoal queue diff`.

The documents of the cluster are read once. Both worlds are made of them, so everything that is not proposed is equal.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from shoal.api.decode import Document
from shoal.api.node import Node
from shoal.cli.known_names import check_known
from shoal.cli.manifests import Loaded, loaded_of, rounds_of
from shoal.cli.named_nodes import documents_of_machines
from shoal.cli.object_source import Source
from shoal.cli.other_queues import has_other_queues
from shoal.cli.proposed_queues import proposed_queues
from shoal.cli.queue_manifests import are_queues, lived, replaced
from shoal.engine.profile import DEFAULT_POLICY, POLICIES
from shoal.sim.answers import answer
from shoal.sim.queue_diff import compare
from shoal.sim.queue_projects import DISCIPLINES
from shoal.units.errors import UserError, Where
from shoal.views.decision import Decision
from shoal.views.queue_diff import Comparison
from shoal.views.what_if import Proposal, WhatIfAnswer, pod_changes

_SEED = 42
_NOTHING = Proposal()
_NOTES = {
    "fair_sharing": "Kueue turns fair sharing on by fairSharing in its Configuration, and off where it is missing.",
    "placement": "The policy that places pods is policy in the Configuration of shoal run.",
    "discipline": "Whose queues decide follows from the queues that a cluster has.",
}
"""Where a setting is that no command changes."""
_MOST_NODES = 1_000
_MOST_LETTERS = 400
_FILES = (".yaml", ".yml", ".json", "/")
_NODES = Where(path="nodes")
_HOST_NAME = "kubernetes.io/hostname"


def what_if(source: Source, proposal: Proposal) -> WhatIfAnswer:
    """Raises UserError for a proposal that names what the cluster does not have."""
    _check_policies(proposal)
    now = list(source.documents)
    queues = proposed_queues(now, proposal)
    added = _added_nodes(now, proposal.nodes) if proposal.nodes else []
    proposed = [*replaced(now, queues.documents), *added]
    pods, unchanged = pod_changes(_decided(now), _decided(proposed, proposal))
    changes = _compared(now, proposed, proposal)
    notes = [*source.notes, *queues.notes, *(_NOTES[key] for key in _NOTES if getattr(proposal, key))]
    return WhatIfAnswer(changes, pods, unchanged, len(added), queues.commands, notes)


def _check_policies(proposal: Proposal) -> None:
    if proposal.placement:
        check_known(proposal.placement, tuple(POLICIES), "policy", Where(path="placement"))
    if proposal.discipline:
        check_known(proposal.discipline, tuple(DISCIPLINES), "discipline", Where(path="discipline"))


def _loaded(documents: Sequence[Document], proposal: Proposal) -> Loaded:
    return loaded_of(documents, proposal.placement or DEFAULT_POLICY, discipline=proposal.discipline)


def _decided(documents: Sequence[Document], proposal: Proposal = _NOTHING) -> Decision:
    loaded = _loaded(documents, proposal)
    return answer(rounds_of(loaded, _SEED), loaded.manifests.gated)


def _compared(now: Sequence[Document], proposed: Sequence[Document], proposal: Proposal) -> Comparison | None:
    """Loaded again: a world that was decided about is another one."""
    if not (are_queues(now) or has_other_queues(now)):
        return None
    # The files of the documents are not named: none of these worlds is a file.
    present, before = lived(now, _loaded(now, _NOTHING), "", _SEED)
    future, after = lived(proposed, _loaded(proposed, proposal), "", _SEED)
    return compare(present, future, before, after)


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
