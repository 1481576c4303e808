"""The dashboard shares an event loop with the server: neither a terminal nor a quiet cluster may cost it anything."""

from __future__ import annotations

import asyncio
import io
import logging
import random
from collections.abc import Callable
from threading import Event
from typing import TypeVar

import msgspec
import pytest
from rich.console import Console

from build.virtual_time import virtual
from shoal.cli.dashboard import Drawing, LiveDashboard, ThreadDrawing
from shoal.cli.dashboard_caches import DashboardCaches
from shoal.cli.dashboard_runs import Notes
from shoal.client.clock import LoopClock
from shoal.client.ecosystem_kinds import CLUSTER_QUEUES
from shoal.client.informers import Informers
from shoal.client.item import Item, item_of
from shoal.client.kind import JOBS, NODES, PODS
from shoal.client.port import ServedKind
from shoal.views.dashboard.cluster_state import ClusterState

T = TypeVar("T")


class _Terminal(io.StringIO):
    """Takes nothing while it is `stalled`."""

    def __init__(self) -> None:
        super().__init__()
        self.moves = Event()
        self.moves.set()
        self.tried = Event()

    @property
    def frames(self) -> int:
        """The cursor goes home before each, and once at first."""
        return self.getvalue().count("\x1b[H") - 1

    def write(self, text: str) -> int:
        self.tried.set()
        self.moves.wait()
        return super().write(text)


def _console(terminal: io.StringIO) -> Console:
    return Console(file=terminal, force_terminal=True, width=80, height=24, color_system="256")


class _AtOnce:
    """Draws in the event loop. By its timer, drawing takes no time."""

    share = 0.05

    def timer(self) -> float:
        return 0.0

    async def run(self, what: Callable[[], T]) -> T:
        return what()


class _Slow(_AtOnce):
    """Each reading of the timer is a second later than the one before: a frame takes two seconds."""

    def __init__(self) -> None:
        self._ticks = iter(range(1_000))

    def timer(self) -> float:
        return float(next(self._ticks))


def _dashboard(drawing: Drawing | None = None, informers: Informers | None = None) -> LiveDashboard:
    return LiveDashboard(informers or _informers(), LoopClock(0.0), drawing=drawing or ThreadDrawing())


def _informers() -> Informers:
    # No informer runs, so no API is needed.
    return Informers(None, LoopClock(0.0), random.Random(0))  # type: ignore[arg-type]


def _node(name: str, version: int) -> Item:
    metadata = {"name": name, "uid": name, "resourceVersion": str(version)}
    return item_of(msgspec.json.encode({"metadata": metadata, "status": {"capacity": {"nvidia.com/gpu": "8"}}}))


@virtual
async def test_a_terminal_that_takes_nothing_holds_up_neither_the_loop_nor_its_end() -> None:
    terminal = _Terminal()
    terminal.moves.clear()
    drawing = asyncio.ensure_future(_dashboard().draw(_console(terminal)))
    try:
        await asyncio.sleep(0)
        assert terminal.tried.wait(10)
        await asyncio.sleep(60)
        drawing.cancel()
        await asyncio.wait([drawing], timeout=60)
        assert drawing.done()
    finally:
        terminal.moves.set()


@virtual
async def test_the_terminal_is_left_as_it_was() -> None:
    terminal = _Terminal()
    drawing = asyncio.ensure_future(_dashboard(_AtOnce()).draw(_console(terminal)))
    await asyncio.sleep(1)
    drawing.cancel()
    await asyncio.wait([drawing])
    assert terminal.getvalue().startswith("\x1b[?1049h")
    assert terminal.getvalue().endswith("\x1b[?25h\x1b[?1049l")


@virtual
async def test_a_quiet_cluster_is_drawn_once_a_second() -> None:
    terminal = _Terminal()
    drawing = asyncio.ensure_future(_dashboard(_AtOnce()).draw(_console(terminal)))
    await asyncio.sleep(10.1)
    drawing.cancel()
    assert terminal.frames == 11


@virtual
async def test_frames_that_take_long_are_drawn_seldom() -> None:
    terminal = _Terminal()
    drawing = asyncio.ensure_future(_dashboard(_Slow()).draw(_console(terminal)))
    # Drawing may take a twentieth of a core: one frame in 40 s.
    await asyncio.sleep(399)
    drawing.cancel()
    assert terminal.frames == 10


@virtual
async def test_a_key_is_answered_at_once_although_frames_are_drawn_seldom() -> None:
    terminal, dashboard = _Terminal(), _dashboard(_Slow())
    drawing = asyncio.ensure_future(dashboard.draw(_console(terminal)))
    await asyncio.sleep(1)
    before = terminal.frames
    dashboard.take(["?"])
    await asyncio.sleep(0.01)
    drawing.cancel()
    assert terminal.frames == before + 1
    assert "any key closes it" in terminal.getvalue()


@virtual
async def test_the_picture_ends_when_the_user_quits() -> None:
    terminal, dashboard = _Terminal(), _dashboard(_AtOnce())
    drawing = asyncio.ensure_future(dashboard.draw(_console(terminal)))
    await asyncio.sleep(1)
    dashboard.take(["q"])
    await asyncio.wait_for(drawing, 1)
    assert terminal.getvalue().endswith("\x1b[?25h\x1b[?1049l")


@virtual
async def test_a_paused_picture_stays_and_shows_what_has_changed_when_it_goes_on() -> None:
    terminal, informers = _Terminal(), _informers()
    dashboard = _dashboard(_AtOnce(), informers)
    drawing = asyncio.ensure_future(dashboard.draw(_console(terminal)))
    informers.of(NODES).learn(_node("first", 1))
    await asyncio.sleep(1)
    dashboard.take(["p"])
    await asyncio.sleep(1)
    informers.of(NODES).learn(_node("second", 2))
    await asyncio.sleep(5)
    assert "first" in terminal.getvalue()
    assert "PAUSED" in terminal.getvalue()
    assert "second" not in terminal.getvalue()
    dashboard.take(["p"])
    await asyncio.sleep(1)
    drawing.cancel()
    assert "second" in terminal.getvalue()


@virtual
async def test_kinds_of_other_projects_are_followed_once_they_are_served_in_an_older_version_too() -> None:
    informers, state = _informers(), ClusterState()
    caches = DashboardCaches(informers, state)
    caches.follow([])
    assert informers.known(CLUSTER_QUEUES) is None
    older = CLUSTER_QUEUES._replace(version="v1beta1")
    caches.follow([ServedKind(older, frozenset({"list", "watch"}), ("v1beta1",))])
    queue = {"metadata": {"name": "q", "uid": "u", "resourceVersion": "1"}}
    informers.of(older).learn(item_of(msgspec.json.encode(queue)))
    assert [each.name for each in state.scene("").queues] == ["q"]


JOB_CASES: dict[str, tuple[dict[str, object], list[tuple[str, int]]]] = {
    "all pods of the job": ({"annotations": {"shoal.dev/gang": "true"}}, [("t/train", 3)]),
    "a number": ({"annotations": {"shoal.dev/gang": "2"}}, [("t/train", 2)]),
    "a queue of Kueue": ({"labels": {"kueue.x-k8s.io/queue-name": "q"}}, [("t/train", 3)]),
    "no gang": ({"annotations": {"shoal.dev/gang": "false"}}, []),
    "nothing": ({}, []),
    "no number": ({"annotations": {"shoal.dev/gang": "all"}}, []),
}


@pytest.mark.parametrize(("meta", "gangs"), JOB_CASES.values(), ids=JOB_CASES)
@virtual
async def test_jobs_that_are_gangs_are_followed(meta: dict[str, object], gangs: list[tuple[str, int]]) -> None:
    informers, state = _informers(), ClusterState()
    DashboardCaches(informers, state).follow([ServedKind(JOBS, frozenset({"list", "watch"}), ("v1",))])
    named = {"name": "train", "namespace": "t", "uid": "u", "resourceVersion": "1"}
    template = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
    job = {"metadata": named | meta, "spec": {"parallelism": 3, "completions": 3, "template": template}}
    owner = [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}]
    pod = {"metadata": named | {"name": "train-0", "uid": "p", "ownerReferences": owner}, "spec": template["spec"]}
    informers.of(PODS).learn(item_of(msgspec.json.encode(pod)))
    informers.of(JOBS).learn(item_of(msgspec.json.encode(job)))
    assert [(each.name, each.needs) for each in state.scene("").gangs] == gangs
    ended = job | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    ended["metadata"] = named | meta | {"resourceVersion": "2"}
    informers.of(JOBS).learn(item_of(msgspec.json.encode(ended)))
    assert state.scene("").gangs == []


def test_a_note_stays_for_a_minute_and_an_outage_until_it_ends() -> None:
    now, lacking = [0.0], ["pods"]
    notes = Notes(lambda: now[0], lambda: lacking)
    log = logging.Logger("test")  # noqa: LOG001 - apart from the loggers of the process
    log.addHandler(notes)
    log.warning("queues cannot be followed: it is too old\x1b[2J")
    assert notes.text().startswith("queues cannot be followed: it is too old")
    assert notes.text().isprintable()
    now[0] = 61.0
    assert notes.text() == ""
    log.warning("no answer; it is asked again until it answers")
    now[0] = 1_000.0
    assert notes.text().startswith("no answer")
    log.warning("the server answers again")
    assert notes.text() == ""


def test_the_text_of_a_request_to_the_pages_is_no_note() -> None:
    notes = Notes(lambda: 0.0, lambda: ())
    for name in ("shoal.web", "shoal.web.streams"):
        notes.handle(logging.LogRecord(name, logging.ERROR, "", 0, "/renew your token", (), None))
    assert notes.text() == ""
    notes.handle(logging.LogRecord("shoal.store", logging.WARNING, "", 0, "pods cannot be followed", (), None))
    assert notes.text() == "pods cannot be followed"


def test_many_different_warnings_leave_the_last_ones() -> None:
    now = [0.0]
    notes = Notes(lambda: now[0], lambda: ())
    log = logging.Logger("test")  # noqa: LOG001 - apart from the loggers of the process
    log.addHandler(notes)
    log.warning("first")
    for number in range(1_000):
        log.warning("kind-%d", number)
    assert notes.text() != "first"
    assert notes.text().startswith("kind-9")


def test_a_missing_right_is_shown_as_long_as_it_is_missing_and_that_to_pods_first() -> None:
    now, lacking = [0.0], ["pods"]
    notes = Notes(lambda: now[0], lambda: lacking)
    log = logging.Logger("test")  # noqa: LOG001 - apart from the loggers of the process
    log.addHandler(notes)
    log.warning("pods cannot be followed: pods is forbidden")
    log.warning("queues cannot be followed: queues is forbidden")
    now[0] = 1_000.0
    assert notes.text() == "pods cannot be followed: pods is forbidden"
    lacking.clear()
    assert notes.text() == ""
