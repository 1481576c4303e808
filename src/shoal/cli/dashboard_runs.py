"""Shows the dashboard: beside the server of `shoal up` or its demonstration, or of any cluster (`top --watch`)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import re
import signal
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer
from rich.console import Console

from shoal.cli.cluster_access import in_one_line
from shoal.cli.dashboard import LiveDashboard
from shoal.cli.terminal_input import terminal_input
from shoal.client.clock import WallClock
from shoal.client.http.api import KubeApi
from shoal.client.http.settings import KubeSettings
from shoal.client.informers import Informers
from shoal.client.kind import NODES, PODS
from shoal.client.kueue_versions import KueueVersionsApi
from shoal.client.port import Select
from shoal.units.errors import one_line

if TYPE_CHECKING:
    from shoal.client.http.access import Access
    from shoal.client.port import Api
    from shoal.wiring.process_tasks import ProcessTasks
    from shoal.wiring.up import Show

_TIMEOUT_S = 20.0
_NO_OBJECT = Select(labels="shoal.dev/no-such-label")
"""The answer says whether the kind may be listed, and is short."""
_FIRST_S, _NOTE_S = 5.0, 60.0
_CONTEXT = re.compile(r'context "([^"]+)"')
_PAGES = "shoal.web"
"""The logger of the web server: its messages have the paths of requests in them, and are no warnings of the client."""
_MOST_NOTES = 64
_ENDLESS, _OVER = "it is asked again until it answers", "the server answers again"


def dashboard_beside_server(kubeconfig: Path, pages: str = "") -> Show:
    """Draws the dashboard on the terminal until the server ends, or the user quits, which ends the server. `pages`: the
    address of the web dashboard, if there is one."""

    async def show(tasks: ProcessTasks, stop: Callable[[], None]) -> None:
        footer = f"export KUBECONFIG={kubeconfig}" + (f"   {pages}" if pages else "")
        dashboard = LiveDashboard(tasks.informers, tasks.clock, "Shoal", footer)
        await show_on_terminal(dashboard, tasks.api)
        stop()

    return show


async def show_on_terminal(dashboard: LiveDashboard, api: Api) -> None:
    """Until the user quits, or it is cancelled."""
    following = asyncio.ensure_future(dashboard.follow_optional_kinds(api))
    try:
        await dashboard.draw(Console(highlight=False), terminal_input())
    finally:
        following.cancel()


def watch_cluster(access: Access, namespace: str = "", *, is_drawn: bool) -> None:
    """Until the user quits, or SIGINT, SIGTERM or SIGHUP. `namespace`: the only one whose objects are
    listed. `is_drawn`: on the terminal; else a line now and then."""
    with in_one_line(access):
        asyncio.run(_watch(access, namespace, is_drawn=is_drawn))


async def _watch(access: Access, namespace: str, *, is_drawn: bool) -> None:
    clock, draw = WallClock(), random.Random()
    api = KueueVersionsApi(KubeApi(access, draw, KubeSettings(timeout_s=_TIMEOUT_S)))
    try:
        # A cluster that cannot be reached, or that refuses this user, is one line instead of an empty dashboard.
        await api.list(NODES, select=_NO_OBJECT)
        informers = Informers(api, clock, draw)
        needed = [informers.of(kind) for kind in (PODS, NODES)]
        notes = Notes(clock.seconds, lambda: [each.kind.plural for each in needed if not each.is_synced])
        title = f"Shoal on {cluster_name(access)}" + (f", namespace {one_line(namespace)}" if namespace else "")
        dashboard = LiveDashboard(informers, clock, title, namespace=namespace)
        dashboard.note = notes.text
        if is_drawn:
            logging.getLogger("shoal").addHandler(notes)
            logging.getLogger("shoal").propagate = False
        following = asyncio.ensure_future(informers.run())
        # Without the right to list pods the nodes are shown all the same.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_S):
                await informers.synced((NODES, PODS))
        showing = asyncio.ensure_future(
            show_on_terminal(dashboard, api) if is_drawn else print_lines(dashboard, api, typer.echo)
        )
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(name, showing.cancel)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await showing
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
    finally:
        await api.close()


async def print_lines(dashboard: LiveDashboard, api: Api, say: Callable[[str], None]) -> None:
    """For pipes: a line every five seconds, until it is cancelled."""
    following = asyncio.ensure_future(dashboard.follow_optional_kinds(api))
    try:
        await dashboard.add(say)
    finally:
        following.cancel()


def cluster_name(access: Access) -> str:
    """The context of the kubeconfig, else the address of the server."""
    found = _CONTEXT.search(access.where)
    return one_line(found[1]) if found is not None else urlsplit(access.server).netloc


class Notes(logging.Handler):
    """The most important warning of the client, for the dashboard: standard error is under the picture."""

    def __init__(self, timer: Callable[[], float], lacking: Callable[[], Collection[str]]) -> None:
        """`lacking`: the plurals of the kinds without which the picture is wrong, while they have not been read."""
        super().__init__(logging.WARNING)
        self._timer, self._lacking = timer, lacking
        self._texts: dict[str, tuple[str, float]] = {}
        """By first word, which names the kind: the last warning, and its time."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name == _PAGES or record.name.startswith(f"{_PAGES}."):
            return
        text = one_line(record.getMessage())
        if text == _OVER:
            self._texts = {word: found for word, found in self._texts.items() if _ENDLESS not in found[0]}
        else:
            self._texts[text.partition(" ")[0]] = text, self._timer()
            while len(self._texts) > _MOST_NOTES:
                del self._texts[min(self._texts, key=lambda word: self._texts[word][1])]

    def text(self) -> str:
        """An outage until it ends, what keeps a needed kind from being read as long as it does, others for a minute."""
        found: list[str] = []
        for kind, (text, at_s) in self._texts.items():
            if _ENDLESS in text:
                return text
            if kind in self._lacking():
                found.insert(0, text)
            elif self._timer() - at_s <= _NOTE_S:
                found.append(text)
        return next(iter(found), "")
