"""Tells whether a scheduler of a pod's `schedulerName` is known: a misspelled name leaves a pod waiting without a word.

The objects of a cluster do not list its schedulers. A name is known if Shoal places pods of that name, or if any pod of
that name was considered: it has a node or the condition PodScheduled.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from shoal.api.pod import Pod
from shoal.wiring.run_choice import OWN_NAMES


def is_unknown_scheduler(pod: Pod, others: Iterable[Pod]) -> bool:
    """Only for a pod without a node that no scheduler has considered."""
    name = pod.spec.scheduler_name
    if name in OWN_NAMES or _is_considered(pod):
        return False
    return not any(each.spec.scheduler_name == name and _is_considered(each) for each in others)


def unknown_scheduler_words(pod: Pod) -> str:
    return f'no scheduler "{pod.spec.scheduler_name}" has considered it'


def near_scheduler(pod: Pod) -> str:
    """The known name that is most like the one of the pod; empty where none is."""
    return next(iter(difflib.get_close_matches(pod.spec.scheduler_name, OWN_NAMES, 1)), "")


def _is_considered(pod: Pod) -> bool:
    return bool(pod.spec.node_name) or any(each.type == "PodScheduled" for each in pod.status.conditions)
