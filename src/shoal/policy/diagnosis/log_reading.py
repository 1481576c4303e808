"""Finds known problems in a log: lines of the patterns, and Xid errors of the kernel log.

Guarantees: linear time, and a bounded answer: each problem is one cause, with the first lines that show it. Very long
lines are read in their first part only.
"""

from __future__ import annotations

from collections.abc import Iterator

from shoal.devices.xids import is_known, xid_of
from shoal.policy.diagnosis.cluster_facts import text_of
from shoal.policy.diagnosis.log_patterns import PATTERNS, LogPattern
from shoal.policy.diagnosis.verdicts import FoundCause, RuledOut, Verdict, shell_command
from shoal.policy.readiness.all_reduce import all_reduce_outcome

_MOST_LINE = 4096
_MOST_LINES = 3
"""That are shown for each cause."""
NVLINK_GB_S = 300.0
"""Bus bandwidth that GPUs with NVLink reach."""
_BANDWIDTH = "busbw"
_SLOW = (
    "all_reduce_perf is slower than GPUs with NVLink are: below 200 GB/s the network or NVLink is misconfigured; GPUs"
    " that are connected by PCIe alone do not reach more"
)
_XID_MARK = "nvrm: xid"
_ROW_REMAPPED = 63
_REMAPPED = "reset the GPU when it is idle, to activate the remapped row of memory; if it occurs again, replace the GPU"
_HARDWARE = frozenset({"reset", "drain-and-reset", "nvlink", "power", "reboot", "power-cycle", "support"})
_SUBORDINATE = {
    "WorkerFailed": frozenset(pattern.id for pattern in PATTERNS) - {"WorkerFailed", "NcclOverSockets"},
    "NcclTimeout": frozenset({"CudaOutOfMemory", "SharedMemoryTooSmall"}),
    "NcclPeerUnreachable": frozenset({"CudaOutOfMemory", "SharedMemoryTooSmall"}),
    "NcclSystemError": frozenset({"SharedMemoryTooSmall", "NcclPeerUnreachable", "DriverTooOld"}),
}
"""A problem that the other ones explain, where the log shows one of them."""


def read_log(text: str, subject: str) -> list[Verdict]:
    """The causes that the log shows; one `RuledOut` if it shows none."""
    found = causes_in(text, subject)
    if found:
        return list(found)
    test = all_reduce_outcome(text, NVLINK_GB_S, subject)
    if test.state == "pass":
        return [RuledOut(subject, each.removeprefix(f"{subject}: ")) for each in test.evidence]
    return [RuledOut(subject, "the log contains no known message of CUDA, NCCL, drivers, images or launchers")]


def causes_in(text: str, subject: str) -> list[FoundCause]:
    lines: dict[str, list[str]] = {}
    xids: dict[int, list[str]] = {}
    for line in text.splitlines():
        lower = line[:_MOST_LINE].lower()
        if _XID_MARK in lower:
            number = logged_xid(lower)
            if number is not None:
                xids.setdefault(number, []).append(line)
            continue
        for pattern in PATTERNS:
            if _has(lower, pattern):
                lines.setdefault(pattern.id, []).append(line)
    kept = [
        pattern
        for pattern in PATTERNS
        if pattern.id in lines and not _SUBORDINATE.get(pattern.id, frozenset()) & lines.keys()
    ]
    return [
        *(_xid_cause(number, xids[number], subject) for number in _in_order(xids)),
        *(
            FoundCause(pattern.id, subject, pattern.what, pattern.fix, _shown(lines[pattern.id]), pattern.commands)
            for pattern in kept
        ),
        *_all_reduce(text, subject),
    ]


def _all_reduce(text: str, subject: str) -> Iterator[FoundCause]:
    """What `shoal check --smoke all-reduce` finds in the output of all_reduce_perf."""
    test = all_reduce_outcome(text, NVLINK_GB_S, subject) if _BANDWIDTH in text else None
    if test is not None and test.state == "fail":
        is_wrong = any("FAILED" in each for each in test.evidence)
        name = "WrongResults" if is_wrong else "SlowAllReduce"
        what = "all_reduce_perf has wrong results" if is_wrong else _SLOW
        yield FoundCause(name, subject, what, test.fix, test.evidence, test.commands)


def logged_xid(line: str) -> int | None:
    """The number in `NVRM: Xid (PCI:0000:53:00): 79, pid=...`."""
    _, _, after = line.lower().partition(_XID_MARK)
    _, _, behind = after.partition("): ")
    digits = behind[: len(behind[:5]) - len(behind[:5].lstrip("0123456789"))]
    return int(digits) if digits else None


def is_hardware(number: int) -> bool:
    """Whether the GPU has to be taken out of service until an operator acts."""
    return xid_of(number).action in _HARDWARE or number == _ROW_REMAPPED


def _has(line: str, pattern: LogPattern) -> bool:
    if not any(all(word in line for word in form) for form in pattern.forms):
        return False
    return not any(word in line for word in pattern.without)


def _in_order(xids: dict[int, list[str]]) -> Iterator[int]:
    """Without consequences of others, as far as there are others."""
    own = [number for number in xids if xid_of(number).action != "preceding"]
    yield from own or xids


def _xid_cause(number: int, lines: list[str], subject: str) -> FoundCause:
    name = f"Xid {number} ({xid_of(number).meaning})" if is_known(number) else f"Xid {number}"
    commands = (f"shoal xid {number}", *(taint_commands("NODE") if is_hardware(number) else ()))
    return FoundCause(f"Xid{number}", subject, f"the driver reported {name}", xid_fix(number), _shown(lines), commands)


def xid_fix(number: int) -> str:
    return _REMAPPED if number == _ROW_REMAPPED else xid_of(number).advice


def taint_commands(node: str) -> tuple[str, ...]:
    return (
        shell_command("kubectl taint node {} gpu-health=failed:NoSchedule", node),
        shell_command("kubectl drain {} --ignore-daemonsets --delete-emptydir-data", node),
    )


def _shown(lines: list[str]) -> tuple[str, ...]:
    more = len(lines) - _MOST_LINES
    return (
        *(text_of(line[:_MOST_LINE]) for line in lines[:_MOST_LINES]),
        *((f"and {more:,} more lines",) if more > 0 else ()),
    )
