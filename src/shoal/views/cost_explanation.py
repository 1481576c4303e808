"""Prints the explanation of a job's cost."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rich.console import Console
from rich.text import Text

from shoal.cost.explanation import JobCost, PodCost
from shoal.cost.records import Wait
from shoal.units.calendar_windows import HOUR_MS, rfc3339
from shoal.units.money import rounded
from shoal.views.enumeration import few
from shoal.views.queue_table import NAME, NUMBER, WORDS, Cell, show_table

_MOST_DEVICES = 2


def show_job(console: Console, job: JobCost, waits: Sequence[Wait], currency: str) -> None:
    pods = len(job.pods)
    console.print(
        Text(
            f"{job.name}: {job.amount:,.2f} {currency}, {job.gpu_hours:,.1f} GPU-hours in {pods} pod{_s(pods)}", "bold"
        )
    )
    kinds = list(job.classes)
    amounts = rounded([job.classes[kind] for kind in kinds])
    for kind, amount in zip(kinds, amounts, strict=True):
        console.print(f"  {kind:<22}{amount:>14,.2f}")
    if job.gang_wait_hours:
        console.print(f"  of it, {job.gang_wait_hours:,.1f} GPU-hours were held until the gang was complete")
    if waits:
        console.print(_waited(waits))
    console.print()
    headings = ["pod", "node", "GPUs", "devices", "from", "until", "node per hour", currency]
    shown = rounded([pod.amount for pod in job.pods])
    rows = [_pod(pod, amount) for pod, amount in zip(job.pods, shown, strict=True)]
    leasts = [NAME, NAME, NUMBER, WORDS, NUMBER, NUMBER, NUMBER, NUMBER]
    show_table(console, headings, leasts, rows, ("devices", "node per hour", "until", "from"))


def _waited(waits: Sequence[Wait]) -> str:
    total = sum((one.end_ms or one.start_ms) - one.start_ms for one in waits)
    reasons = few(sorted({one.reason for one in waits if one.reason}), 2)
    because = f" ({reasons})" if reasons else ""
    return f"  its pods waited {Decimal(total) / HOUR_MS:,.1f} hours in all{because}"


def _pod(pod: PodCost, amount: Decimal) -> list[Cell]:
    end = "runs" if pod.end_ms is None else rfc3339(pod.end_ms)
    return [
        pod.pod,
        pod.node,
        f"{pod.gpus:,.2f}".rstrip("0").rstrip("."),
        few(pod.devices, _MOST_DEVICES),
        rfc3339(pod.start_ms),
        f"{end}, preempted" if pod.is_preempted else end,
        f"{pod.rate:,.2f}",
        f"{amount:,.2f}",
    ]


def _s(count: int) -> str:
    return "" if count == 1 else "s"
