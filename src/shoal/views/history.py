"""Tells in a few lines what happened to an object, from its Events and conditions, the newest last.

Events of a few seconds that say the same of several pods are one line. Messages that name another workload by its uid
get its name. What is true now, such as the refusals of a scheduler, is left out: other headings have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from shoal.views.enumeration import few

MOST_LINES = 8
_MOST_NAMES = 3
_NOW = frozenset(
    {
        *("FailedScheduling", "WaitingForQuota", "ExceedsMaxQuota", "NoMatchingFlavor", "TopologyPlacementFailed"),
        *("WaitingForPreemptedWorkloads", "PendingEvaluation", "Pending", "WaitingForPodsReady"),
    }
)
"""Reasons that describe a state."""
_VERBS: Mapping[str, str] = {
    "Scheduled": "scheduled",
    "Started": "started",
    "Completed": "completed",
    "Killing": "is being stopped",
    "SuccessfulDelete": "",
    "SuccessfulCreate": "",
}
"""Of Normal Events: the words, or none for those that say nothing new."""
FAILED, DELETED = "ContainerFailed", "PodDeleted"
"""Reasons that no Event has: the end of a container by its status, and a pod that its controller deleted."""
_SCHEDULED = "Scheduled"
"""Told of one pod only: of a job it is enough that its pods started."""
_STOPS = frozenset({"Preempted", "EvictedDueToPreempted", "Stopped"})
_CAUSES = frozenset(
    {*_STOPS, FAILED, "Evicted", "Moved", "StaleJob", "NodeNotReady", "TaintManagerEviction", "Suspended", "Completed"}
)
"""After one of these, of the pod or of its owner, it says nothing more that the pod ends."""
_ENDINGS = frozenset({"Killing", DELETED})
_SOON = timedelta(seconds=90)
_TOGETHER = timedelta(seconds=5)
"""What happens to pods within this time is one line."""
_TOLD = frozenset({"Admitted", "Evicted", "Requeued", "DeadlineExceeded", "Rebooted", "XidError", "Moved", "StaleJob"})
_OF_NODES = frozenset({"NodeNotReady", "NodeReady", "Rebooted", "XidError", "GpuMended", "RemovingNode"})
_TAINT = "TaintManagerEviction"
_ACCOMMODATED = re.compile(
    r"Preempted to accommodate a workload \(UID: (?P<uid>[^,]*), JobUID: (?P<job>[^)]*)\) due to (?P<why>[^;]*)"
)
_BY = re.compile(r"Preempted by (?:pod |gang )?(?P<name>\S+)")
_ADMITTED = re.compile(r"Admitted by (?P<queue>[Cc]lusterQueue \S+?),? ")
_CREATED, _UNNAMED = re.compile(r'^(Error creating: \S+) "[^"]*"'), r"\1 ..."
"""The name of a pod or job that a controller tries to create is another one each time."""


class Happening(msgspec.Struct, frozen=True):
    """An Event, or a condition that changed."""

    at: datetime
    kind: str
    """In small letters."""
    name: str
    reason: str
    message: str = ""
    is_warning: bool = False
    version: int = 0
    """The resource version of an Event: of two Events within a second, the later one has the higher."""


def history_lines(happenings: Iterable[Happening], names: Mapping[str, str], subject: str) -> list[str]:
    """`names`: objects by uid. `subject`: the kind in whose history pods are named."""
    merged: dict[tuple[str, str], list[Happening]] = {}
    began: dict[str, datetime] = {}
    in_order = sorted(happenings, key=_order)
    for each in in_order:
        words = "" if subject != "pod" and each.reason == _SCHEDULED else _words(each, names)
        if words and not _is_explained(each, in_order):
            is_together = each.kind == "pod" and words in began and each.at - began[words] <= _TOGETHER
            at = began[words] = began[words] if is_together else each.at
            merged.setdefault((f"{at:%H:%M:%S}", words), []).append(each)
    lines = [f"{moment} {_who(found, subject)}{words}" for (moment, words), found in _once(merged)]
    return lines[-MOST_LINES:]


def _order(one: Happening) -> tuple[datetime, bool, int, bool, str, str]:
    """Within a second Events are in the order of their versions, and what has none follows. Without versions, what
    happened to nodes comes before what followed from it."""
    return (one.at.replace(microsecond=0), not one.version, one.version, one.kind != "node", one.reason, one.name)


def _is_explained(ending: Happening, happenings: Iterable[Happening]) -> bool:
    """Whether another line says why the pod ends."""
    return ending.reason in _ENDINGS and any(
        each.reason in _CAUSES
        and abs(ending.at - each.at) <= _SOON
        and (each.kind != ending.kind or each.name == ending.name)
        and each.kind != "node"
        for each in happenings
    )


def _once(
    merged: Mapping[tuple[str, str], list[Happening]],
) -> list[tuple[tuple[str, str], list[Happening]]]:
    """A warning that is repeated counts once, at its last time."""
    last: dict[str, tuple[tuple[str, str], list[Happening]]] = {}
    for (moment, words), found in merged.items():
        like = words if found[-1].is_warning else f"{moment} {words}"
        last.pop(like, None)
        last[like] = (moment, words), found
    return list(last.values())


def _words(each: Happening, names: Mapping[str, str]) -> str:
    if each.reason in _NOW:
        return ""
    if each.kind == "node":
        is_told = each.is_warning or each.reason in _OF_NODES
        return f"{each.reason}: {each.message}" if is_told else ""
    if each.reason == FAILED:
        return f"failed: {each.message}"
    if each.reason == DELETED:
        return "deleted"
    if each.reason == _TAINT:
        is_over = each.message.startswith("Cancelling")
        return "was not evicted: the taint of its node is gone" if is_over else "evicted because of a taint of its node"
    if each.reason in _STOPS:
        return _stopped(each.message, names)
    if each.reason == "Started" and (found := _ADMITTED.match(f"{each.message} ")):
        return f"admitted by C{found['queue'][1:]}"
    if each.reason == "Admitted" and (found := _ADMITTED.match(f"{each.message} ")):
        return f"admitted by C{found['queue'][1:]}"
    if not each.is_warning and each.reason in _VERBS:
        where = each.message.rpartition(" to ")[2] if each.reason == "Scheduled" else ""
        return f"{_VERBS[each.reason]} to node {where}" if where else _VERBS[each.reason]
    if each.is_warning or each.reason in _TOLD:
        return f"{each.reason}: {_CREATED.sub(_UNNAMED, each.message)}" if each.message else each.reason
    return ""


def _stopped(message: str, names: Mapping[str, str]) -> str:
    found = _ACCOMMODATED.match(message)
    if found is not None:
        other = names.get(found["job"]) or names.get(found["uid"]) or "a workload that is gone"
        return f"stopped for {other} ({found['why'].strip()})"
    by = _BY.match(message)
    if by is None:
        return f"stopped: {message}"
    return f"stopped for {names.get(by['name'], by['name'])}"


def _who(found: Sequence[Happening], subject: str) -> str:
    """The pods that it concerns, unless a pod is asked about, and the node."""
    if found[0].kind == "node":
        return f"node {found[0].name}: "
    pods = list(dict.fromkeys(each.name for each in found if each.kind == "pod"))
    if not pods or subject == "pod":
        return ""
    return f"{few(pods, _MOST_NAMES)} " if len(pods) <= _MOST_NAMES else f"{len(pods):,} pods "
