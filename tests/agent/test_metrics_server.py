"""The server of the exporter answers scrapes and probes, and a silent client holds up no other."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from threading import Thread
from urllib.parse import urlsplit

import pytest

from shoal.agent.exporter.metrics_server import MetricsServer, listen_address
from shoal.units.errors import UserError

_TCP_INFO_BYTES, _PACKETS_WITH_DATA = 192, 152
"""Of Linux's structure `tcp_info`: its size, and where the number of received packets with data is."""


@contextmanager
def served(problem: str = "", text: Callable[[], str] = lambda: "metric 1\n") -> Iterator[tuple[str, int]]:
    server = MetricsServer(("127.0.0.1", 0), text, lambda: problem)
    thread = Thread(target=server.serve)
    thread.start()
    try:
        parts = urlsplit(server.url)
        yield str(parts.hostname), int(parts.port or 0)
    finally:
        server.stop()
        thread.join()
        server.close()


def get(address: tuple[str, int], path: str, method: str = "GET", timeout_s: float = 30) -> tuple[int, str, str]:
    connection = HTTPConnection(*address, timeout=timeout_s)
    connection.request(method, path)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.headers["Content-Type"], body


def test_metrics_are_served_in_the_text_format_of_prometheus() -> None:
    with served() as address:
        assert get(address, "/metrics") == (200, "text/plain; version=0.0.4; charset=utf-8", "metric 1\n")
        assert get(address, "/metrics?name=x")[0] == 200
        assert get(address, "/metrics", "HEAD")[2] == ""


def test_health_says_why_there_are_no_metrics_yet() -> None:
    with served() as address:
        assert get(address, "/health")[::2] == (200, "OK")
    with served("the driver is slow") as address:
        assert get(address, "/health")[::2] == (503, "the driver is slow")


def test_a_short_answer_is_one_packet() -> None:
    """The second of two packets would wait for the acknowledgement of the first, which clients delay by 40 ms."""
    with served() as address, socket.create_connection(address, timeout=30) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while not answer.endswith(b"\r\n\r\nmetric 1\n"):
            answer += client.recv(64 * 1024)
        info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
        assert struct.unpack_from("I", info, _PACKETS_WITH_DATA) == (1,)


def test_other_paths_name_those_that_exist_and_other_methods_are_refused() -> None:
    with served() as address:
        assert "/metrics" in get(address, "/")[2]
        assert get(address, "/other")[::2] == (404, "/other does not exist; /metrics and /health do\n")
        assert get(address, "/metrics", "POST")[0] == 501


def test_a_client_that_sends_nothing_does_not_hold_up_a_scrape() -> None:
    with served() as address, socket.create_connection(address), socket.create_connection(address):
        assert get(address, "/metrics")[0] == 200


def test_clients_that_keep_every_connection_busy_do_not_hold_up_a_scrape() -> None:
    """One that sends a byte now and then is never idle, so the oldest connection ends when there are too many."""
    with served() as address, ExitStack() as held:
        for _ in range(40):
            client = held.enter_context(socket.create_connection(address))
            client.sendall(b"GET /metrics HTTP/1.1\r\nX")
        assert get(address, "/metrics", timeout_s=5)[0] == 200


def test_metrics_that_cannot_be_written_are_logged_and_answered_as_an_error(caplog: pytest.LogCaptureFixture) -> None:
    def fails() -> str:
        raise ValueError("no such label")

    with served(text=fails) as address:
        status, _, body = get(address, "/metrics")
        assert (status, body) == (500, "the metrics cannot be written; see the log of the exporter\n")
    assert "no such label" in caplog.text


def test_an_address_in_use_is_a_user_error() -> None:
    with served() as address, pytest.raises(UserError, match=r"cannot listen at 127\.0\.0\.1:.*--listen"):
        MetricsServer(address, str, str)


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:9400", ("127.0.0.1", 9400)), (":9400", ("", 9400)), ("[::1]:0", ("::1", 0)), ("h:1", ("h", 1))],
)
def test_an_address_is_read(text: str, address: tuple[str, int]) -> None:
    assert listen_address(text) == address


@pytest.mark.parametrize("text", ["", "9400", "127.0.0.1", "127.0.0.1:", "h:70000", "::1:9400", "h:-1", "h:٣"])
def test_other_texts_are_no_address(text: str) -> None:
    with pytest.raises(UserError, match="is no address to listen at; write HOST:PORT"):
        listen_address(text)
