"""Explains why a gang waits: what is short, how many members could start, and whether waiting can help."""

from __future__ import annotations

from shoal.engine.cluster import Cluster
from shoal.engine.gang_members import Gang
from shoal.engine.gangs.attempt import is_running
from shoal.engine.gangs.evidence import GroupEvidence
from shoal.engine.reasons import Code, Evidence
from shoal.views.asks import pods_words
from shoal.views.decision import Reason
from shoal.views.remedies import unmatched_words
from shoal.views.why import kube_line, nearest_sentence


def gang_reason(gang: GroupEvidence, pod: Evidence) -> Reason:
    """`pod` is about one waiting pod of the part that is short."""
    return Reason(gang_code(gang, pod), gang_message(gang, pod), gang_help(gang, pod))


def gang_code(gang: GroupEvidence, pod: Evidence) -> Code:
    """Of a gang with one pod the code of the pod: there is nothing that it has to start with."""
    return pod.code if is_pod_alone(gang, pod) else gang.code


def is_pod_alone(gang: GroupEvidence, pod: Evidence) -> bool:
    """Whether the evidence of its only pod says why it waits."""
    return gang.is_one_pod and not pod.fitting


def gang_message(gang: GroupEvidence, pod: Evidence) -> str:
    """What is short, and what one of its pods sees of the nodes."""
    if is_pod_alone(gang, pod):
        return kube_line(pod)
    match gang.code:
        case Code.GANG_UNKNOWN:
            return f"its {pods_words(gang.exist)} {'names' if gang.exist == 1 else 'name'} a group that does not exist."
        case Code.GANG_MALFORMED if gang.is_unreadable:
            return f"its gang cannot be as it is written: {gang.fault}."
        case Code.GANG_MALFORMED:
            return f"its parts make no tree: {gang.fault}."
        case Code.GANG_TOO_SMALL:
            return f"{_subject(gang)} needs {pods_words(gang.needs)}, and only {gang.exist} {_exist(gang.exist)}."
        case _:
            return f"{gang_shortage(gang).removesuffix('.')}; for one of them, {kube_line(pod)}"


def gang_shortage(gang: GroupEvidence) -> str:
    """How many pods have to start together."""
    running = f", of which {gang.running} run" if gang.running else ""
    together = f" in one {gang.level}" if gang.level else " at once"
    return f"{_subject(gang)} needs {pods_words(gang.needs)}{together}{running}."


def gang_help(gang: GroupEvidence, pod: Evidence) -> str:
    """The largest that could run, now and ever."""
    match gang.code:
        case Code.GANG_UNKNOWN:
            return "Add the PodGroup, or take the group's name off the pods."
        case Code.GANG_MALFORMED if gang.is_unreadable:
            return "It is tried again when that is corrected."
        case Code.GANG_MALFORMED:
            return "Correct the names and parents of the group's parts."
        case Code.GANG_TOO_SMALL:
            missing = pods_words(gang.needs - gang.exist)
            lower = "" if gang.has_fixed_minimum else f", or lower the minimum to {gang.exist}"
            return f"Create {missing} more{lower}."
    if gang.unmatched:
        return unmatched_words(gang.unmatched)
    if is_pod_alone(gang, pod):
        return nearest_sentence(pod)
    cordoned = sum(cause.nodes for cause in pod.causes if cause.code is Code.UNSCHEDULABLE)
    if gang.is_hopeless and gang.limit_level and not cordoned:
        what = (
            f"a slice of {pods_words(gang.slice_size)}"
            if gang.limit_level == gang.slice_level
            else pods_words(gang.needs)
        )
        largest = f" The largest, {'/'.join(gang.largest)}, holds {gang.largest_pods}." if gang.largest else ""
        return (
            f"Waiting does not help: no {gang.limit_level} can hold {what} of it, even if everything else were gone."
            f"{largest}"
        )
    if gang.fit_now >= gang.needs and gang.slice_level:
        size = gang.slice_size
        return f"Its pods would fit, but not each slice of {size:,} of them in one {gang.slice_level}."
    if gang.fit_now >= gang.needs:
        # Each part has room by itself, only not all of them together.
        return "Each of its parts would fit by itself, but not all of them together."
    where = f" (in {'/'.join(gang.domain)})" if gang.domain else ""
    most = f"The most that could run now is {gang.fit_now} of {gang.needs}{where}"
    if gang.is_hopeless and cordoned:
        nodes = "1 node is" if cordoned == 1 else f"{cordoned:,} nodes are"
        left = f"{most}, and {gang.fit_empty} if everything else were gone"
        return f"{left}. {nodes} cordoned: kubectl uncordon may help, waiting alone does not."
    if gang.is_hopeless:
        return f"{most}, and {gang.fit_empty} if everything else were gone: waiting does not help."
    nearest = "" if pod.fitting else f" {nearest_sentence(pod)}"
    return f"{most}.{nearest}"


def empty_nodes_words(pod: Evidence, gang: GroupEvidence | None) -> str:
    """What of a workload would not fit even if nothing else ran on the nodes; empty where all of it might."""
    if any(lack.total < lack.asked for lack in pod.shortfalls):
        return "Waiting for pods to end does not help: no node is large enough for its pods, even if it were empty."
    if gang is None or not gang.is_hopeless:
        return ""
    if gang.limit_level:
        return gang_help(gang, pod)
    return (
        f"Waiting for pods to end does not help: {gang.fit_empty:,} of its {pods_words(gang.needs)} would fit, even if "
        f"nothing else ran on the nodes."
    )


def _subject(gang: GroupEvidence) -> str:
    if gang.role:
        return f"role {gang.role}"
    return f"part {gang.part}" if gang.part else "the gang"


def _exist(count: int) -> str:
    return "exists" if count == 1 else "exist"


def lost_pods(cluster: Cluster, gang: Gang) -> int:
    """How many pods a gang that runs has too few of, if no replacement has been made yet."""
    least = gang.facts.minimum if gang.facts is not None else 0
    if gang.waiting or not gang.running or is_running(cluster, gang):
        return 0
    return max(least - len(gang.running), 0)


def lost_words(lost: int) -> str:
    verbs = ("was", "has") if lost == 1 else ("were", "have")
    return f"{pods_words(lost)} ended or {verbs[0]} lost and {verbs[1]} not been replaced yet"
