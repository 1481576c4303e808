"""Finds queues of Volcano and KAI among manifests that are wrong by themselves: cycles of parents, a parent that does
not exist, a quota above the parent's, an unknown preemption policy.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.api.decode import Document, meta_of
from shoal.engine.queues.disciplines.kai.queue_faults import queue_fault
from shoal.engine.queues.disciplines.volcano.group_phases import QUEUE_CYCLE, QUEUE_MISSING
from shoal.engine.queues.disciplines.volcano.queue_forest import POLICIES, PRIORITY, preemption_policy
from shoal.sim import kai_queues, volcano_queues
from shoal.units.errors import excerpt


def queue_faults(documents: Sequence[Document]) -> list[tuple[Document, str]]:
    """The object of each such queue, and what is wrong."""
    of_volcano = [each for each in documents if volcano_queues.is_queue(each)]
    others = [each for each in documents if kai_queues.is_queue(each)]
    tree, of_kai = volcano_queues.volcano_tree(of_volcano), kai_queues.kai_queues(others)
    found: list[tuple[Document, str]] = []
    for document in (*of_volcano, *others):
        name, fault = meta_of(document.value).name, ""
        if tree is not None and volcano_queues.is_queue(document) and name in tree.queues:
            refusal = tree.closed(name)
            is_wrong = refusal is not None and refusal.reason in (QUEUE_CYCLE, QUEUE_MISSING)
            fault = f"spec.parent: {refusal.message}" if is_wrong and refusal is not None else ""
            policy = tree.queues[name].spec.preemption_policy
            if not fault and not preemption_policy(policy):
                known = ", ".join(POLICIES)
                fault = f"spec.preemptionPolicy: {excerpt(policy)} is none of {known}: {PRIORITY} is used"
        elif kai_queues.is_queue(document) and name in of_kai:
            fault = queue_fault(of_kai, name)
        if fault:
            found.append((document, fault))
    return found
