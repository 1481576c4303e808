"""The same HTTP stack with nothing behind it: reads a body and sends it back, over TLS with client certificates.

`python -m bench.cluster.echo FOLDER` writes FOLDER/kubeconfig and prints a line when it answers. What the API server
does besides carrying requests is the difference between the two.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import uvloop
from aiohttp import web

from shoal.embedded.apiserver.security.authority import open_authority
from shoal.embedded.apiserver.security.kubeconfig import write_kubeconfig

_HOST = "127.0.0.1"
_START_S = 60
_READY = "ready"


class EchoProcess:
    """The server below in a process of its own, until `stop`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.kubeconfig = folder / "kubeconfig"
        command = [sys.executable, "-m", "bench.cluster.echo", str(folder)]
        self.process = subprocess.Popen(  # noqa: S603 - this file
            command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        )
        assert self.process.stdout is not None
        if _READY not in self.process.stdout.readline():
            raise RuntimeError("the echo server did not start")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(_START_S)
        if self.process.stdout is not None:
            self.process.stdout.close()


async def _echo(request: web.BaseRequest) -> web.Response:
    return web.Response(status=201, body=await request.read(), content_type="application/json")


async def _serve(folder: Path) -> None:
    authority = open_authority(None, datetime.now(UTC), (_HOST,))  # noqa: TID251 - certificates want the date
    loop = asyncio.get_running_loop()
    server = web.Server(_echo, access_log=None)
    listener = await loop.create_server(server, _HOST, 0, ssl=authority.server_context(), backlog=1024)
    port = listener.sockets[0].getsockname()[1]
    write_kubeconfig(folder / "kubeconfig", f"https://{_HOST}:{port}", authority)
    print(_READY, flush=True)
    await listener.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(Path(sys.argv[1])))
