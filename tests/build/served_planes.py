"""A control plane that answers on a socket inside the test's own loop, with its kubeconfig: for other clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from shoal.embedded.apiserver.security.kubeconfig import write_kubeconfig
from shoal.embedded.apiserver.server.bound_socket import bind
from shoal.embedded.apiserver.server.control_plane import ControlPlane, open_plane
from shoal.embedded.apiserver.server.run import _end, _server
from shoal.embedded.apiserver.settings import Settings


class ServedPlane(msgspec.Struct, frozen=True):
    plane: ControlPlane
    kubeconfig: Path


@asynccontextmanager
async def served_plane(folder: Path, **settings: Any) -> AsyncIterator[ServedPlane]:
    kubeconfig = folder / "kubeconfig"
    bound = bind("127.0.0.1", 0)
    port = bound.getsockname()[1]
    plane = await open_plane(Settings(None, kubeconfig, **settings), ("127.0.0.1", port))
    server = _server(plane)
    listener = await asyncio.get_running_loop().create_server(server, sock=bound, ssl=plane.authority.server_context())
    write_kubeconfig(kubeconfig, f"https://127.0.0.1:{port}", plane.authority)
    try:
        yield ServedPlane(plane, kubeconfig)
    finally:
        await _end(plane, server, listener)
        await plane.close()
