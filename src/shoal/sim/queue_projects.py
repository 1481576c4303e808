"""Selects the queues that decide about a set of manifests: those of one discipline, or all that are present."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shoal.api.decode import Document
from shoal.api.kueue import ClusterQueue, Cohort, LocalQueue, Workload
from shoal.sim import kai_queues, volcano_queues
from shoal.units.errors import UserError, Where


def _is_of_kueue(document: Document) -> bool:
    return isinstance(document.value, ClusterQueue | LocalQueue | Cohort | Workload)


DISCIPLINES: dict[str, tuple[str, Callable[[Document], bool]]] = {
    "kueue": ("Kueue", _is_of_kueue),
    "fairshare": ("KAI", kai_queues.is_queue),
    "volcano": ("Volcano", volcano_queues.is_queue),
}
"""Name -> the project whose queues it decides about, and whether an object is one of them."""


def queues_of_discipline(documents: Sequence[Document], name: str) -> Sequence[Document]:
    """The documents without the queues of other disciplines; all of them for an empty name."""
    if not name:
        return documents
    project, is_mine = DISCIPLINES[name]
    if not any(map(is_mine, documents)):
        raise UserError(
            f"the manifests have no queue of {project}",
            where=Where(path="--discipline"),
            fix="add its queues, or leave out the option: then the queues that are present decide",
        )
    others = [is_other for other, (_, is_other) in DISCIPLINES.items() if other != name]
    return [each for each in documents if not any(is_other(each) for is_other in others)]
