"""`shoal cluster slow-api` and `expire-watches`: what is asked of which server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from aiohttp import web

from shoal.cli.cluster_faults import add_faults
from shoal.cli.exit_codes import exit_code

SLOW = "/shoal/faults/slow-api"


class Server:
    """Answers every POST with `code`; keeps what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.code = 200
        self.asked: list[tuple[str, Any]] = []
        self.kubeconfig = folder / "config"
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        port = asyncio.run_coroutine_threadsafe(self._start(), self.loop).result(10)
        entry = {"server": f"http://127.0.0.1:{port}"}
        content = {
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a"}}],
            "clusters": [{"name": "a", "cluster": entry}],
        }
        self.kubeconfig.write_text(yaml.safe_dump(content))

    async def _start(self) -> int:
        self.runner = web.ServerRunner(web.Server(self._answer))
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        port: int = self.runner.addresses[0][1]
        return port

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        self.asked.append((request.path, await request.json()))
        return web.json_response({}, status=self.code)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.runner.cleanup(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.stop()


def shoal(server: Server, *arguments: str) -> int:
    app = typer.Typer()
    app.callback()(lambda: None)
    add_faults(app)
    command = typer.main.get_command(app)
    given = [*arguments, "--kubeconfig", str(server.kubeconfig)]
    return exit_code(lambda: command.main(args=given, prog_name="shoal cluster", standalone_mode=False))


def test_slowness_is_asked_for_with_its_numbers(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert shoal(server, "slow-api") == 0
    assert shoal(server, "slow-api", "--delay-ms", "50", "--jitter-ms", "20", "--seconds", "5") == 0
    assert shoal(server, "slow-api", "--delay-ms", "0") == 0
    assert server.asked == [
        (SLOW, {"delay_ms": 200, "jitter_ms": 0, "seconds": 60}),
        (SLOW, {"delay_ms": 50, "jitter_ms": 20, "seconds": 5}),
        (SLOW, {"delay_ms": 0, "jitter_ms": 0, "seconds": 60}),
    ]
    assert capsys.readouterr().out.splitlines() == [
        "answers come 200 ms later for 60 s",
        "answers come 50 to 70 ms later for 5 s",
        "answers come at once",
    ]


def test_watches_are_expired(server: Server) -> None:
    assert shoal(server, "expire-watches") == 0
    assert server.asked == [("/shoal/faults/expire-watches", {})]


@pytest.mark.parametrize("command", ["slow-api", "expire-watches"])
def test_another_server_than_the_embedded_one_has_no_such_faults(
    command: str, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.code = 404
    assert shoal(server, command) == 2
    out, err = capsys.readouterr()
    named, line = err.splitlines()
    assert out == ""
    assert named.startswith("cluster: ")
    assert "is not an embedded cluster" in line


def test_a_server_that_fails_is_a_failure(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.code = 500
    assert shoal(server, "expire-watches") == 1
    assert "answered 500" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--delay-ms", "-1"], ["--seconds", "0"], ["--jitter-ms", "x"]])
def test_numbers_out_of_bounds_are_the_users_fault(server: Server, wrong: list[str]) -> None:
    assert shoal(server, "slow-api", *wrong) == 2
    assert server.asked == []
