"""The live dashboard of a cluster: drawn over the whole terminal four times a second, or a line every few seconds.

It follows nodes, pods and Events like any client and knows nothing of the server behind them. It may share that
server's event loop, so the loop does no more than keep count: frames are drawn and written in a thread, only when there
is something new, and seldom enough to leave the machine to the cluster. A terminal that takes nothing more (Ctrl-S, a
lost connection) holds up neither the server nor its end.

Rejected: `asyncio.to_thread`. The program would wait at its end for the thread that waits for the terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from threading import Thread
from time import thread_time
from typing import TYPE_CHECKING, Protocol, TypeVar

from rich.console import Console
from rich.live import Live

from shoal.client.kind import EVENTS, NODES, PODS
from shoal.views.dashboard.account import Account, line
from shoal.views.dashboard.cluster_state import ClusterState
from shoal.views.dashboard.colours import Colours
from shoal.views.dashboard.frame import draw_frame
from shoal.views.dashboard.marks import without_colours
from shoal.views.dashboard.reading import event_facts, node_facts, pod_facts

if TYPE_CHECKING:
    from pathlib import Path

    from shoal.client.clock import Clock
    from shoal.client.informers import Informers
    from shoal.client.item import Item
    from shoal.views.dashboard.facts import DashboardFacts
    from shoal.wiring.process_tasks import ProcessTasks
    from shoal.wiring.up import Show

T = TypeVar("T")
_FRAME_S = 0.25
_QUIET_S = 1.0
"""Until the clock is drawn again where nothing else has changed."""
_LINE_S = 5.0
_COUNTS_PER_LINE = 5
_PATIENCE_S = 1.0
"""With a terminal, at the end."""


class Drawing(Protocol):
    """How frames are drawn: with a terminal, in a thread of their own."""

    share: float
    """The largest part of a core that drawing may take."""

    def timer(self) -> float:
        """The computing time of the current thread in seconds."""
        ...

    async def run(self, what: Callable[[], T]) -> T: ...


class ThreadDrawing:
    """Draws in a daemon thread, which ends with the program even while it waits for the terminal."""

    share = 0.05

    def timer(self) -> float:
        return thread_time()

    async def run(self, what: Callable[[], T]) -> T:
        done: Future[T] = Future()
        done.set_running_or_notify_cancel()

        def run() -> None:
            try:
                done.set_result(what())
            except Exception as failure:  # noqa: BLE001 - passed to the caller that awaits it
                done.set_exception(failure)

        Thread(target=run, name="dashboard", daemon=True).start()
        return await asyncio.wrap_future(done)


_IN_THREAD = ThreadDrawing()


class LiveDashboard:
    def __init__(self, informers: Informers, clock: Clock, footer: str = "", drawing: Drawing = _IN_THREAD) -> None:
        self._drawing = drawing
        self.account = Account()
        self._watched = ClusterState()
        self._clock = clock
        self._started = clock.seconds()
        self._last = clock.seconds()
        self._footer = footer
        informers.of(NODES).on_change(self._node)
        informers.of(PODS).on_change(self._pod)
        informers.of(EVENTS).on_change(self._event)

    def scene(self) -> DashboardFacts:
        """Now; also counted in the account."""
        now = self._clock.seconds()
        passed = int(now - self._started)
        scene = self._watched.scene(_duration(passed), self._footer)
        self.account.add(scene, now - self._last)
        self._last = now
        return scene

    async def draw(self, console: Console) -> None:
        """On the whole terminal, until cancelled; what was on it before comes back."""
        colours = Colours()
        live = Live(console=console, screen=True, auto_refresh=False)
        shown: object = None
        quiet_s = 0.0
        try:
            await self._drawing.run(live.start)
            while True:
                present = (self._watched.changes, console.size)
                pause_s = _FRAME_S
                if present != shown or quiet_s >= _QUIET_S:
                    shown, quiet_s = present, 0.0
                    pause_s = max(_FRAME_S, await self._frame(live, colours) / self._drawing.share)
                await asyncio.sleep(pause_s)
                quiet_s += pause_s
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE_S):
                    await self._drawing.run(live.stop)

    async def add(self, say: Callable[[str], None]) -> None:
        """A line every few seconds, until cancelled."""
        while True:
            for _ in range(_COUNTS_PER_LINE):
                await asyncio.sleep(_LINE_S / _COUNTS_PER_LINE)
                scene = self.scene()
            await self._drawing.run(partial(say, line(scene).plain))

    async def _frame(self, live: Live, colours: Colours) -> float:
        """Draw a frame and return the seconds of computing that it took."""
        timer = self._drawing.timer
        began = timer()
        scene = self.scene()
        spent = timer() - began
        return spent + await self._drawing.run(partial(_draw, live, scene, colours, timer))

    def _node(self, before: Item | None, after: Item | None) -> None:
        if after is not None:
            self._watched.put_node(node_facts(after.data))
        elif before is not None:
            self._watched.drop_node(node_facts(before.data).name)

    def _pod(self, before: Item | None, after: Item | None) -> None:
        if after is not None:
            self._watched.put_pod(pod_facts(after.data))
        elif before is not None:
            self._watched.drop_pod(pod_facts(before.data).address)

    def _event(self, _: Item | None, after: Item | None) -> None:
        if after is not None:
            self._watched.put_event(event_facts(after.data))


def _draw(live: Live, scene: DashboardFacts, colours: Colours, timer: Callable[[], float]) -> float:
    began = timer()
    width, height = live.console.size
    frame = draw_frame(scene, colours, width, height)
    has_colours = live.console.color_system is not None and not live.console.no_color
    live.update(frame if has_colours else without_colours(frame, colours), refresh=True)
    return timer() - began


def _duration(seconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"


def dashboard_beside_server(kubeconfig: Path) -> Show:
    """Draws the dashboard on the terminal until the server ends."""

    async def show(tasks: ProcessTasks, _: Callable[[], None]) -> None:
        dashboard = LiveDashboard(tasks.informers, tasks.clock, f"export KUBECONFIG={kubeconfig}   Ctrl-C ends it")
        await dashboard.draw(Console(highlight=False))

    return show
