"""The live dashboard of a cluster: drawn over the whole terminal four times a second, or a line every few seconds.

It follows the cluster like any client and knows nothing of the server behind it. It may share that server's event loop,
so the loop does no more than keep count: frames are drawn and written in a thread, only when there is something new,
and seldom enough to leave the machine to the cluster; a key is answered at once. A terminal that takes nothing more
(Ctrl-S, a lost connection) holds up neither the server nor its end.

Rejected: `asyncio.to_thread`. The program would wait at its end for the thread that waits for the terminal.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from threading import Thread
from time import thread_time
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import structs
from rich.console import Console
from rich.live import Live

from shoal.cli.dashboard_caches import DashboardCaches
from shoal.cli.suspension import Suspension
from shoal.views.dashboard.account import Account, line
from shoal.views.dashboard.cluster_state import ClusterState
from shoal.views.dashboard.colours import Colours
from shoal.views.dashboard.facts import DashboardFacts, NodeDetail
from shoal.views.dashboard.frame import draw_frame
from shoal.views.dashboard.keys import KeyDecoder
from shoal.views.dashboard.marks import without_colours
from shoal.views.dashboard.rows import row_keys
from shoal.views.dashboard.screen_state import FrameLayout, ScreenState, press
from shoal.views.dashboard.words import duration

if TYPE_CHECKING:
    from shoal.cli.terminal_input import TerminalInput
    from shoal.client.clock import Clock
    from shoal.client.informers import Informers
    from shoal.client.port import Api

T = TypeVar("T")
_FRAME_S = 0.25
_QUIET_S = 1.0
"""Until the clock is drawn again where nothing else has changed."""
_LINE_S = 5.0
_COUNTS_PER_LINE = 5
_PATIENCE_S = 1.0
"""With a terminal, at the end."""
_ESCAPE_S = 0.05
"""How long an escape sequence may take to arrive."""


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

    share = 0.03

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
    def __init__(
        self,
        informers: Informers,
        clock: Clock,
        title: str = "Shoal",
        footer: str = "",
        drawing: Drawing = _IN_THREAD,
        namespace: str = "",
    ) -> None:
        """`namespace`: the only one whose pods, Workloads, gangs and Events are shown; empty for all."""
        self.account = Account()
        self.note: Callable[[], str] = str
        """A problem with the connection, if there is one."""
        self._drawing = drawing
        self._cluster = ClusterState(title, namespace)
        self._caches = DashboardCaches(informers, self._cluster)
        self._clock = clock
        self._started = clock.seconds()
        self._last = clock.seconds()
        self._footer = footer
        self._screen = ScreenState()
        self._layout = FrameLayout()
        self._shown = self.scene()
        """The facts of the last frame."""
        self._keys = KeyDecoder()
        self._woken = asyncio.Event()

    async def follow_optional_kinds(self, api: Api) -> None:
        await self._caches.follow_optional_kinds(api, self._clock)

    def scene(self) -> DashboardFacts:
        """The facts of now; also counted in the account."""
        now = self._clock.seconds()
        passed = int(now - self._started)
        found = self._cluster.scene(duration(passed), self._footer, now, self._screen.subject, self.note())
        if isinstance(found.detail, NodeDetail):
            found = structs.replace(found, detail=self._caches.completed(found.detail))
        self.account.add(found, now - self._last)
        self._last = now
        return found

    def take(self, keys: Iterable[str]) -> None:
        """What the user has typed."""
        for key in keys:
            rows = row_keys(self._screen, self._shown)
            self._screen = press(self._screen, key, rows, self._shown, self._layout)
        self._woken.set()

    async def draw(self, console: Console, keys: TerminalInput | None = None) -> None:
        """On the whole terminal, until the user quits or it is cancelled; what was on it before comes back."""
        live = Live(console=console, screen=True, auto_refresh=False)
        with keys if keys is not None else contextlib.nullcontext():
            try:
                await self._drawing.run(live.start)
                if keys is None:
                    await self._draw_frames(live)
                    return
                loop = asyncio.get_running_loop()
                keys.read_into(partial(_hand_over, loop, self._read))
                with Suspension(keys, live, self._woken.set, self._drawing.run).on_signals():
                    await self._draw_frames(live)
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

    async def _draw_frames(self, live: Live) -> None:
        colours = Colours()
        shown: object = None
        quiet_s = 0.0
        while not self._screen.is_done:
            present = (self._cluster.version, live.console.size, self._screen, self.note())
            pause_s = _FRAME_S
            if present != shown or quiet_s >= _QUIET_S or self._woken.is_set():
                shown, quiet_s = present, 0.0
                self._woken.clear()
                pause_s = max(_FRAME_S, await self._frame(live, colours) / self._drawing.share)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._woken.wait()
            quiet_s += pause_s

    async def _frame(self, live: Live, colours: Colours) -> float:
        """Draw a frame and return the seconds of computing that it took."""
        timer = self._drawing.timer
        began = timer()
        scene = self.scene()
        # A paused picture stays as it is; only a page that is opened now is made of what is known now.
        self._shown = structs.replace(self._shown, detail=scene.detail) if self._screen.is_paused else scene
        spent = timer() - began
        drawing, self._layout = await self._drawing.run(partial(_draw, live, self._shown, colours, self._screen, timer))
        return spent + drawing

    def _read(self, data: bytes) -> None:
        self.take(self._keys.feed(data))
        if self._keys.is_waiting:
            asyncio.get_running_loop().call_later(_ESCAPE_S, lambda: self.take(self._keys.flush()))


def _hand_over(loop: asyncio.AbstractEventLoop, read: Callable[[bytes], None], data: bytes) -> None:
    # The loop may have ended while the thread was reading.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(read, data)


def _draw(
    live: Live, scene: DashboardFacts, colours: Colours, screen: ScreenState, timer: Callable[[], float]
) -> tuple[float, FrameLayout]:
    began = timer()
    frame = draw_frame(scene, colours, live.console.size, screen)
    has_colours = live.console.color_system is not None and not live.console.no_color
    live.update(frame.text if has_colours else without_colours(frame.text, colours), refresh=True)
    return timer() - began, frame.layout
