"""Serves the pages of `shoal web` beside the server of `shoal up`: the port, and a start that costs nothing.

Until the first request there is a socket and nothing else: no module of the pages is imported, and no cache is filled
for them. A cluster whose pages are never opened pays neither time nor memory for them.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.units.errors import UserError

if TYPE_CHECKING:
    from shoal.wiring.process_tasks import ProcessTasks
    from shoal.wiring.up import Show

USUAL_PORT = 8090
_LOOPBACK, _OPTION = "127.0.0.1", "--web-port"
_WAITING = 128


def web_socket(port: int | None) -> socket.socket:
    """Listens on loopback. `port`: None for the usual one, or a free one where another process uses that.

    Raises UserError for a port that is in use.
    """
    if port is not None:
        return _listening(port)
    try:
        return _listening(USUAL_PORT)
    except UserError:
        return _listening(0)


def _listening(port: int) -> socket.socket:
    """Two processes that start at once can bind the same port, and one of them listens: so this does both."""
    from shoal.embedded.apiserver.server.bound_socket import bind

    bound = bind(_LOOPBACK, port, _OPTION)
    try:
        bound.listen(_WAITING)
    except OSError as error:
        bound.close()
        what = f"cannot listen on {_LOOPBACK}:{port}: {error.strerror or error}"
        raise UserError(what, fix=f"choose another port with {_OPTION}") from None
    return bound


def address_of(bound: socket.socket) -> str:
    return f"http://{_LOOPBACK}:{port_of(bound)}/"


def port_of(bound: socket.socket) -> int:
    port: int = bound.getsockname()[1]
    return port


@dataclass(frozen=True)
class PagesBeside:
    """What the pages need to know of the cluster."""

    kubeconfig: Path
    history: Path | None
    """The folder of its history, if it has one."""
    prices: Path | None = None
    evaluates_alerts: bool = False
    """The cluster evaluates the rules of alerts, and its history has those that are active."""
    is_alone: bool = False
    """Nothing else in the process follows the cluster."""
    is_usual: bool = True
    """Commands find the history without being told."""

    def show(self, bound: socket.socket, others: Show | None) -> Show:
        """Serves until the server ends. `others`: what is shown as well. Requests wait from now on: an address that was
        printed is never refused."""
        bound.setblocking(False)

        async def show(tasks: ProcessTasks, stop: Callable[[], None]) -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._serve(bound, tasks))
                if others is not None:
                    group.create_task(others(tasks, stop))

        return show

    async def _serve(self, bound: socket.socket, tasks: ProcessTasks) -> None:
        await _first_request(bound)
        # In a thread, because the API server answers meanwhile.
        await asyncio.to_thread(import_module, "shoal.cli.web_runs")
        from shoal.cli.web_runs import FurtherOptions, serve_beside

        further = FurtherOptions(
            self.history,
            self.prices,
            has_recorded_alerts=self.evaluates_alerts,
            is_chosen=not self.is_usual,
        )

        async with asyncio.TaskGroup() as group:
            if self.is_alone:
                group.create_task(tasks.informers.run())
            group.create_task(serve_beside(self.kubeconfig, further, bound, tasks))


async def _first_request(bound: socket.socket) -> None:
    """The request itself waits in the queue of the socket."""
    loop, called = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(bound.fileno(), called.set)
    try:
        await called.wait()
    finally:
        with contextlib.suppress(ValueError):
            loop.remove_reader(bound.fileno())
