"""Lists pods: the GPUs that each asks for or holds, its node, its devices, its queue, and why it waits."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from shoal.views.queue_table import KIND, NAME, NUMBER, WORDS, Cell, show_table

MOST_LINES = 40
_STYLES = {"waits": "red", "queued": "yellow", "nominated": "cyan", "ending": "yellow", "failed": "red"}
_NOTHING = "·"
_MOST_NAMES = 2


class PodLine(msgspec.Struct, frozen=True):
    pod: str
    state: str
    """`waits`, `queued` (a queue or a gate keeps it back), `nominated`, `starts`, `runs`, `ending`, `succeeded` or
    `failed`."""
    gpus: float
    instances: dict[str, int]
    """MIG instances by profile."""
    node: str
    devices: list[int | str]
    """The devices that it holds, where they are known."""
    queue: str
    code: str
    """Why it waits."""
    message: str


def show_pods(
    console: Console, pods: Sequence[PodLine], *, is_wide: bool = False, most: int | None = MOST_LINES
) -> None:
    """`most`: the number of rows without -o wide."""
    names = ["pod", "state", "GPUs", "node", "devices", "queue", "because"]
    shown = pods if is_wide else pods[:most]
    rows = [_row(pod, is_wide=is_wide) for pod in shown]
    show_table(console, names, [NAME, KIND, NUMBER, NAME, KIND, KIND, WORDS], rows)
    if len(pods) > len(shown):
        console.print(Text(f"and {len(pods) - len(shown):,} more; -o wide or -o json has them all", "dim"))


def _row(pod: PodLine, *, is_wide: bool) -> list[Cell]:
    gpus = f"{pod.gpus:,.2f}".rstrip("0").rstrip(".") if pod.gpus else ""
    instances = ", ".join(f"{count} x {profile}" for profile, count in pod.instances.items())
    return [
        pod.pod,
        Text(pod.state, _STYLES.get(pod.state, "")),
        gpus or instances or _NOTHING,
        pod.node or _NOTHING,
        ",".join(map(str, pod.devices if is_wide else _short(pod.devices))) or _NOTHING,
        pod.queue or _NOTHING,
        f"{pod.code}: {pod.message}" if is_wide and pod.code else pod.code or pod.message,
    ]


def _short(devices: Sequence[int | str]) -> Sequence[int | str]:
    """Devices of claims without driver and pool, and of many only the first, so that a row stays one line."""
    names = [each.rpartition("/")[2] for each in devices if isinstance(each, str) and "/" in each]
    if not names:
        return devices
    others = [each for each in devices if not (isinstance(each, str) and "/" in each)]
    return [*others, *(names if len(names) <= _MOST_NAMES else [f"{names[0]} and {len(names) - 1} more"])]
