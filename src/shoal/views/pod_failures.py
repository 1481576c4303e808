"""Tells why the containers of pods ended or do not start: exit codes with signals, reasons, and last messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shoal.units.errors import one_line
from shoal.views.enumeration import few

Obj = Mapping[str, Any]
_SIGNALS: Mapping[int, str] = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    9: "SIGKILL",
    10: "SIGUSR1",
    11: "SIGSEGV",
    12: "SIGUSR2",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
}
_FIRST_SIGNAL = 128
_LONGEST = 240
_MOST_PODS = 3
_QUIET = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons for which a container waits that are no failure."""


def failure_lines(pods: Iterable[Obj]) -> list[str]:
    """Pods that failed alike are one line."""
    found: dict[str, list[str]] = {}
    for pod in pods:
        for words in _of_pod(pod):
            found.setdefault(words, []).append(str(pod["metadata"].get("name", "")))
    return [f"{few(list(dict.fromkeys(names)), _MOST_PODS)}: {words}" for words, names in found.items()]


def failed_ends(pod: Obj) -> Iterator[tuple[str, str]]:
    """When each container of the pod ended with a failure, the last time and the time before, and how."""
    status = pod.get("status") or {}
    for field in ("initContainerStatuses", "containerStatuses"):
        for each in status.get(field) or ():
            what = "init container" if field.startswith("init") else "container"
            for state in ("lastState", "state"):
                ended = (each.get(state) or {}).get("terminated") or {}
                if ended.get("exitCode") or ended.get("signal"):
                    yield str(ended.get("finishedAt") or ""), f"{what} {each.get('name', '')} {_end(ended)}"


def job_lines(job: Obj) -> list[str]:
    """Why a Job has failed."""
    lines = []
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Failed" and condition.get("status") == "True":
            reason, message = condition.get("reason", ""), _short(condition.get("message", ""))
            limit = (job.get("spec") or {}).get("backoffLimit")
            more = f" (backoffLimit {limit})" if reason == "BackoffLimitExceeded" and limit is not None else ""
            lines.append(f"{reason}: {message}{more}".strip(": "))
    return lines


def _of_pod(pod: Obj) -> Iterator[str]:
    status = pod.get("status") or {}
    if status.get("phase") == "Failed" and (status.get("reason") or status.get("message")):
        yield ": ".join(part for part in (status.get("reason", ""), _short(status.get("message", ""))) if part)
    for field in ("initContainerStatuses", "containerStatuses"):
        for each in status.get(field) or ():
            yield from _of_container(each, "init container" if field.startswith("init") else "container")


def _of_container(status: Obj, what: str) -> Iterator[str]:
    name, restarts = status.get("name", ""), status.get("restartCount") or 0
    state, last = status.get("state") or {}, status.get("lastState") or {}
    ended = state.get("terminated") or last.get("terminated") or {}
    times = f", {restarts} {'restart' if restarts == 1 else 'restarts'}" if restarts else ""
    if ended and (ended.get("exitCode") or ended.get("signal")):
        yield f"{what} {name} {_end(ended)}{times}"
    waiting = state.get("waiting") or {}
    reason = waiting.get("reason", "")
    if reason not in _QUIET and not (reason == "CrashLoopBackOff" and ended):
        message = _short(waiting.get("message", ""))
        yield f"{what} {name} does not start: {reason}" + (f": {message}" if message else "")


def _end(ended: Obj) -> str:
    code = int(ended.get("exitCode") or 0)
    signal = _SIGNALS.get(code - _FIRST_SIGNAL, "") if code > _FIRST_SIGNAL else ""
    if ended.get("signal"):
        signal = _SIGNALS.get(int(ended["signal"]), f"signal {ended['signal']}")
    reason = ended.get("reason", "")
    notes = ", ".join(part for part in (signal, reason if reason not in ("Error", "Completed") else "") if part)
    message = _short(ended.get("message", ""))
    return f"exited with code {code}" + (f" ({notes})" if notes else "") + (f": {message}" if message else "")


def _short(text: str) -> str:
    """The end of a long message says most."""
    line = one_line(text.strip())
    return line if len(line) <= _LONGEST else f"...{line[-_LONGEST:]}"
