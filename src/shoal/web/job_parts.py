"""The parts of the page of one job: how far its pods are, and their history from the queue to the devices."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.units.calendar_windows import rfc3339
from shoal.views.dashboard.facts import DashboardPod, WorkloadFacts
from shoal.views.dashboard.words import plural, seconds_since
from shoal.views.job_history import JobSubject, PodAttempt
from shoal.views.job_progress import JobProgress, PodProgress, ProgressSource, job_progress
from shoal.views.queue_diff import span
from shoal.views.queue_history import waited_s
from shoal.web.history_answers import JobHistory
from shoal.web.markup import Markup, address, element, joined
from shoal.web.ports import PageCommands
from shoal.web.tables import DataTable, Heading, TableCell

_UNKNOWN = "unknown"
_LATE_S = 3600.0
"""Work that was not saved for longer than this is marked."""


def progress_of(pods: Sequence[DashboardPod], now_s: float) -> JobProgress:
    """Of the pods that run."""
    running = (pod for pod in pods if pod.phase == "Running" and pod.node)
    return job_progress((ProgressSource(pod.full_name, pod.started, pod.reported) for pod in running), now_s)


def progress_markup(progress: JobProgress) -> Markup:
    pairs = [("unsaved work", *_unsaved(progress)), ("network share", *_network(progress))]
    pairs.append(("stragglers", *_stragglers(progress)))
    found = (joined((element("dt", name), element("dd", words, class_=style or None))) for name, words, style in pairs)
    return joined((element("h2", "Progress"), element("dl", *found, class_="pairs")))


def progress_table(progress: JobProgress, command: str) -> DataTable:
    headings = [Heading("pod"), Heading("step"), Heading("unsaved", is_number=True)]
    headings += [Heading("time of a step", is_number=True), Heading("network", is_number=True)]
    headings += [Heading("own time", is_number=True), Heading("state")]
    rows = [_row(one) for one in progress.pods]
    empty = "No pod of it runs."
    return DataTable("progress", "Progress of each pod", command, headings, rows, empty)


def queue_markup(workload: WorkloadFacts | None, now_s: float) -> Markup | None:
    """What its Workload says about quota."""
    if workload is None:
        return None
    queue = workload.cluster_queue or workload.queue
    lines = [f"queued at {workload.requeued or workload.created}"]
    began = workload.requeued or workload.created
    if workload.reserved:
        waited = waited_s(workload)
        after = "" if waited is None else f", after {span(waited)}"
        lines.append(f"got quota of {queue} at {workload.reserved}{after}")
    else:
        since = seconds_since(began, now_s)
        lines.append(f"has no quota of {queue or 'any queue'}" + ("" if since is None else f", for {span(since)}"))
    one = workload.preemption
    if one is not None:
        lines.append(f"was preempted at {one.at} for queue {one.by_queue or 'not known'} ({one.reason})")
    lines += [workload.why] if workload.why else []
    return joined((element("h2", "Quota"), *(element("p", line) for line in lines)))


def history_table(subject: JobSubject, history: JobHistory, commands: PageCommands) -> DataTable:
    names = [("pod", False), ("queued", False), ("waited", True), ("reasons", False), ("node", False)]
    names += [("bound", False), ("runs since", False), ("ended", False), ("devices", False)]
    rows = [_history_row(subject.namespace, one) for one in history.attempts]
    command = commands.table(address(subject.kind, subject.namespace, subject.name), "history")
    empty = history.fault or "The history has nothing of it in these 7 days."
    title = "From the queue to the devices, of the last 7 days"
    return DataTable("history", title, command, [Heading(*name) for name in names], rows, empty)


def history_notes(history: JobHistory) -> Markup:
    notes = list(history.notes)
    if history.all_attempts > len(history.attempts):
        notes.append(f"The newest {len(history.attempts):,} of {history.all_attempts:,} are shown.")
    return joined(element("p", note, class_="empty") for note in notes)


def _unsaved(progress: JobProgress) -> tuple[str, str]:
    if progress.unsaved_s is None:
        return f"{_UNKNOWN}: {progress.no_checkpoint}", "empty"
    told = sum(1 for one in progress.pods if one.unsaved_s is not None)
    words = f"{span(progress.unsaved_s)} since the last checkpoint ({told} of {plural(len(progress.pods), 'pod')} say)"
    return words, "waits" if progress.unsaved_s > _LATE_S else ""


def _network(progress: JobProgress) -> tuple[str, str]:
    if progress.network_share is None:
        return f"{_UNKNOWN}: {progress.no_network}", "empty"
    told = sum(1 for one in progress.pods if one.network_share is not None)
    words = f"{100 * progress.network_share:.0f} % of a step, the mean of {told} of {plural(len(progress.pods), 'pod')}"
    return words, ""


def _stragglers(progress: JobProgress) -> tuple[str, str]:
    if progress.no_stragglers:
        return f"{_UNKNOWN}: {progress.no_stragglers}", "empty"
    slow = progress.stragglers
    if not slow:
        return "none: no pod needs 10 % longer than the median", ""
    return f"the others wait for {', '.join(one.pod for one in slow)}", "fault"


def _row(one: PodProgress) -> list[TableCell]:
    state = one.fault or ("straggler" if one.is_straggler else "")
    return [
        TableCell(one.pod, address("pod", *one.pod.split("/", 1))),
        TableCell(one.step),
        TableCell("" if one.unsaved_s is None else span(one.unsaved_s)),
        TableCell(_seconds(one.step_s)),
        TableCell("" if one.network_share is None else f"{100 * one.network_share:.0f} %"),
        TableCell(_seconds(one.own_s)),
        TableCell(state, style="fault" if state else ""),
    ]


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def _history_row(namespace: str, one: PodAttempt) -> list[TableCell]:
    ended = "" if one.end_ms is None else rfc3339(one.end_ms) + (" (preempted)" if one.is_preempted else "")
    return [
        TableCell(one.pod, address("pod", namespace, one.pod)),
        TableCell(_time(one.queued_ms)),
        TableCell(span(one.waited_ms / 1000)),
        TableCell("; ".join(one.reasons)),
        TableCell(one.machine, address("node", one.machine) if one.machine else ""),
        TableCell(_time(one.bound_ms)),
        TableCell(_time(one.running_ms)),
        TableCell(ended, style="fault" if one.is_preempted else ""),
        # The last cell of a row is folded.
        TableCell(", ".join(one.devices)),
    ]


def _time(at_ms: int | None) -> str:
    return "" if at_ms is None else rfc3339(at_ms)
