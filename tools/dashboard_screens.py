"""Writes pictures of the terminal dashboard: docs/images/dashboard.svg, and the screens that tests compare.

`python -m tools.dashboard_screens` writes them anew after the dashboard has changed; look at the difference before you
commit it. The cluster in them is made here, with fixed times, so that each run writes the same.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import structs
from rich.console import Console
from rich.text import Text

from shoal.views.dashboard.cluster_state import ClusterState
from shoal.views.dashboard.colours import Colours
from shoal.views.dashboard.facts import (
    DashboardFacts,
    DashboardNode,
    DashboardPod,
    EventFacts,
    NodeDetail,
    PageSubject,
    QueueFacts,
    QuotaFacts,
    Slot,
    WorkloadFacts,
)
from shoal.views.dashboard.frame import draw_frame
from shoal.views.dashboard.marks import without_colours
from shoal.views.dashboard.rows import row_keys
from shoal.views.dashboard.screen_state import FrameLayout, ScreenState, press

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "dashboard.svg"
SCREENS = ROOT / "tests" / "views" / "dashboard" / "screens"
SIZES = ((80, 24), (120, 40), (200, 60))
_PICTURE_SIZE = (120, 40)
NOW_S = 1_767_261_600.0
"""2026-01-01T10:00:00Z."""
KEYS: dict[str, Sequence[str]] = {
    "nodes": (),
    "waiting": ("2", "down"),
    "queues": ("3",),
    "gangs": ("4",),
    "events": ("5", "s"),
    "node": ("/", *"p5-48xlarge-3", "enter", "enter"),
    "queue": ("3", "enter"),
    "gang": ("4", "enter"),
    "filtered": ("/", *"p4d", "enter"),
    "help": ("?",),
}
"""The keys after which each screen is drawn."""
_SLICES = 7


def example() -> ClusterState:
    """A cluster with two kinds of nodes, three teams, two queues, a gang that waits and a failed GPU."""
    cluster = ClusterState("Shoal on production")
    for node in _nodes():
        cluster.put_node(node)
    for pod in _pods():
        cluster.put_pod(pod)
    for queue in _queues():
        cluster.queues.put_queue(queue)
    for team in ("pretrain", "vision"):
        cluster.queues.put_local_queue(team, team, team)
    for workload in _workloads():
        cluster.queues.put_workload(workload)
    for event in _events():
        cluster.put_event(event)
    for number in range(24):
        cluster.scene("", now_s=NOW_S - 10 * (24 - number))
    return cluster


def facts_of(cluster: ClusterState, opened: PageSubject | None = None) -> DashboardFacts:
    facts = cluster.scene("12:34", "", NOW_S, opened)
    shares = [0.2 + 0.65 * (at % 17) / 16 for at in range(40)]
    facts = structs.replace(facts, history=shares, done=1_234, failed=2)
    if isinstance(facts.detail, NodeDetail):
        labels = [("node.kubernetes.io/instance-type", "p5.48xlarge"), ("topology.kubernetes.io/zone", "eu-west-1a")]
        detail = structs.replace(facts.detail, labels=labels, faults={3: "XID 79"})
        facts = structs.replace(facts, detail=detail)
    return facts


def screen(name: str, size: tuple[int, int], colours: Colours | None = None) -> Text:
    """The screen after the keys of `KEYS`."""
    cluster, state, layout = example(), ScreenState(), FrameLayout()
    colours = colours or Colours()
    for key in KEYS[name]:
        facts = facts_of(cluster, state.subject)
        state = press(state, key, row_keys(state, facts), facts, layout)
        layout = draw_frame(facts, colours, size, state).layout
    return draw_frame(facts_of(cluster, state.subject), colours, size, state).text


def screen_names() -> Iterator[str]:
    """The names of the files. Only a test that reads a screen draws it."""
    for width, height in SIZES:
        yield from (f"{name}-{width}x{height}.txt" for name in KEYS)
        yield f"nodes-{width}x{height}-no-color.txt"


def screen_text(file_name: str) -> str:
    name, size, *plain = file_name.removesuffix(".txt").split("-", 2)
    width, _, height = size.partition("x")
    colours = Colours()
    drawn = screen(name, (int(width), int(height)), colours)
    return _plain(without_colours(drawn, colours) if plain else drawn)


def picture() -> str:
    width, height = _PICTURE_SIZE
    console = Console(
        record=True, width=width, height=height, file=io.StringIO(), force_terminal=True, color_system="256"
    )
    console.print(screen("nodes", (width, height)))
    return console.export_svg(title="shoal top --watch", unique_id="dashboard")


def main() -> None:
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), encoding="utf-8")
    SCREENS.mkdir(exist_ok=True)
    for name in screen_names():
        (SCREENS / name).write_text(screen_text(name), encoding="utf-8")


def _plain(text: Text) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.plain.split("\n"))


def _nodes() -> Iterator[DashboardNode]:
    for number in range(8):
        broken = frozenset({3}) if number == 3 else frozenset[int]()
        yield DashboardNode(f"p5-48xlarge-{number}", "p5.48xlarge", 8, (), broken=broken, is_ready=number != 6)
    for number in range(7):
        yield DashboardNode(f"p4d-24xlarge-{number}", "p4d.24xlarge", 8, (), is_cordoned=number == 5)
    slots = [Slot(f"MIG-{gpu}-{at}", gpu, at / 8, 1 / 8) for gpu in range(8) for at in range(_SLICES)]
    yield DashboardNode("p4d-24xlarge-7", "p4d.24xlarge", 8, tuple(slots))


def _pods() -> Iterator[DashboardPod]:
    for number in range(4):
        yield _pod(
            "pretrain", f"llm-{number}", 8, f"p5-48xlarge-{number if number < 3 else 7}", gang="pretrain/llm", load=92
        )
    for number, gpus in enumerate((4, 4, 2, 1, 8, 4)):
        yield _pod("vision", f"train-{number}", gpus, f"p4d-24xlarge-{number % 4}", load=88)
    for number in range(5):
        yield _pod("serving", f"chat-{number}", 1, f"p5-48xlarge-{3 + number % 3}", load=4 if number == 0 else 55)
    for number in range(11):
        devices = (f"MIG-{number % 3}-{number // 3}",)
        yield structs.replace(_pod("serving", f"embed-{number}", 1, "p4d-24xlarge-7", load=40), devices=devices)
    for number in range(3):
        why = "1 node(s) didn't have room for the whole gang, 15 Insufficient nvidia.com/gpu"
        yield _pod("pretrain", f"next-{number}", 8, "", gang="pretrain/next", why=why, minute=50)
    yield _pod("vision", "probe", 1, "", why="14 node(s) didn't match Pod's node affinity/selector", minute=20)


def _pod(
    team: str,
    name: str,
    gpus: float,
    node: str,
    *,
    gang: str = "",
    load: int | None = None,
    why: str = "",
    minute: int = 0,
) -> DashboardPod:
    phase, created = ("Running" if node else "Pending"), f"2026-01-01T09:{minute:02}:00Z"
    needs = {"pretrain/llm": 4, "pretrain/next": 3}.get(gang, 0)
    return DashboardPod(team, name, phase, node, gpus, (), why, created, gang=gang, gang_needs=needs, load=load)


def _queues() -> Iterator[QueueFacts]:
    for name, nominal, used, pending in (("pretrain", 24, 32, 1), ("vision", 32, 23, 1)):
        quotas = (
            QuotaFacts("nvidia.com/gpu", "gpu-nodes", nominal, used, max(0, used - nominal)),
            QuotaFacts("memory", "gpu-nodes", 2.0**43, 2.0**42, 0),
        )
        yield QueueFacts("ClusterQueue", name, "research", quotas, pending, 3)


def _workloads() -> Iterator[WorkloadFacts]:
    why = "insufficient unused quota for nvidia.com/gpu in flavor gpu-nodes, 8 more needed"
    for team, owner, pods, gpus, state in (
        ("pretrain", "job/llm", 4, 32, "admitted"),
        ("pretrain", "job/ablation", 2, 16, "pending"),
        ("vision", "job/train", 6, 23, "admitted"),
        ("vision", "job/sweep", 4, 16, "pending"),
    ):
        is_pending = state == "pending"
        yield WorkloadFacts(
            team,
            f"{owner.replace('/', '-')}-1a2b3",
            team,
            "" if is_pending else team,
            owner,
            pods,
            gpus,
            "pending" if is_pending else "admitted",
            why if is_pending else "",
            "2026-01-01T09:55:00Z",
        )


def _events() -> Iterator[EventFacts]:
    yield _event(
        31,
        "XidError",
        "node/p5-48xlarge-3",
        "NVRM: Xid (PCI:0000:64:00): 79, GPU has fallen off the bus.",
        is_warning=True,
    )
    yield _event(35, "Preempted", "workload/job-sweep-1a2b3", "Preempted to accommodate a workload of pretrain")
    yield _event(
        40, "NodeNotReady", "node/p5-48xlarge-6", "Node p5-48xlarge-6 status is now: NodeNotReady", is_warning=True
    )
    for number in range(30):
        yield _event(41, "Started", f"pod/train-{number}", "Container started")
        yield _event(42, "Completed", f"job/train-{number}", "Job completed")


def _event(minute: int, reason: str, about: str, message: str, *, is_warning: bool = False) -> EventFacts:
    at = f"2026-01-01T09:{minute:02}:00Z"
    return EventFacts(at, about, reason, message, is_warning, 1, f"default/{about}-{reason}", "default")


if __name__ == "__main__":
    main()
