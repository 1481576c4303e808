"""Serves the metrics of the node over plain HTTP: `/metrics` and `/health`.

A client that sends nothing is left after ten seconds. Each connection has a thread of its own, and there are at most 32
of them; one more ends the oldest, so clients that are slow on purpose do not keep Prometheus from its scrapes.
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Lock
from typing import Any

from shoal.prometheus.exposition import PLAIN
from shoal.units.errors import UserError

_log = logging.getLogger("shoal.agent.exporter")
_IDLE_S = 10.0
_MOST_CONNECTIONS = 32
_PAGE = "GPU metrics of this node: /metrics; health of the exporter: /health\n"
_FAILED = "the metrics cannot be written; see the log of the exporter\n"


def listen_address(text: str) -> tuple[str, int]:
    """`HOST:PORT`, `[IPV6]:PORT`, or `:PORT` for all addresses of the machine."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535 or (":" in host and host[:1] != "["):
        raise UserError(f"{text} is no address to listen at", fix="write HOST:PORT, such as 127.0.0.1:9400")
    return host.strip("[]"), int(port)


class MetricsServer:
    def __init__(self, address: tuple[str, int], text: Callable[[], str], problem: Callable[[], str]) -> None:
        """`text` writes the metrics. `problem` says why the exporter is not healthy; empty if it is. Raises `UserError`
        if the address cannot be used.
        """
        try:
            self._server = _server(address, _handler(text, problem))
        except OSError as error:
            raise UserError(
                f"cannot listen at {address[0]}:{address[1]}: {error.strerror or error}",
                fix="end the program that uses the port, or choose another one by --listen",
            ) from error

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        shown = host.decode() if isinstance(host, bytes) else host
        return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"

    def serve(self) -> None:
        """Until `stop` is called, from another thread."""
        self._server.serve_forever(poll_interval=0.5)

    def stop(self) -> None:
        self._server.shutdown()

    def close(self) -> None:
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, *given: Any) -> None:
        self._free = BoundedSemaphore(_MOST_CONNECTIONS)
        self._open: dict[int, Any] = {}
        """The sockets of all connections, the oldest first."""
        self._lock = Lock()
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self._end_oldest()
            self._free.acquire()
        with self._lock:
            self._open[id(request)] = request
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread could be started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(id(request), None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - those of the base class
        """A client that goes away is no error of the exporter."""
        if not isinstance(sys.exception(), OSError):
            _log.error("a request failed", exc_info=True)

    def _end_oldest(self) -> None:
        """Its thread reads the end of the connection then, and ends."""
        with self._lock:
            oldest = next(iter(self._open.values()), None)
            if oldest is not None:
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)


class _ServerV6(_Server):
    address_family = socket.AF_INET6


def _server(address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> _Server:
    kind = _ServerV6 if ":" in address[0] else _Server
    return kind(address, handler)


def _handler(text: Callable[[], str], problem: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _IDLE_S
        protocol_version = "HTTP/1.1"
        # Without these a short answer is two packets, and the second one waits 40 ms for the client's acknowledgement.
        disable_nagle_algorithm = True
        wbufsize = 64 * 1024

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            if path == "/metrics":
                self._answer_metrics()
            elif path == "/health":
                why = problem()
                self._answer(503 if why else 200, why or "OK")
            elif path == "/":
                self._answer(200, _PAGE)
            else:
                self._answer(404, f"{self.path[:200]} does not exist; /metrics and /health do\n")

        def do_HEAD(self) -> None:
            self.do_GET()

        def _answer_metrics(self) -> None:
            try:
                found = text()
            except Exception:  # noqa: BLE001 - a client has to know that there are none
                _log.exception("the metrics cannot be written")
                self._answer(500, _FAILED)
            else:
                self._answer(200, found, PLAIN)

        def _answer(self, code: int, body: str, kind: str = "text/plain; charset=utf-8") -> None:
            data = body.encode(errors="replace")
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, format: str, *values: object) -> None:  # noqa: A002 - the name of the base class
            """Scrapes are not logged."""

    return Handler
