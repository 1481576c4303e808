"""A proxy in front of a server of EC2's API that adds what moto lacks, and faults.

- Client tokens, as EC2 documents them: a request with a known token creates nothing and gets the former answer; with
  other parameters it is refused.
- Faults of the next requests of an action: refused with an error, lost before or after the server has carried them out,
  or held until the test lets them go.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import parse_qsl

_PATIENCE_S = 60.0
_ERROR = (
    "<Response><Errors><Error><Code>{code}</Code><Message>refused by the proxy</Message></Error></Errors>"
    "<RequestID>1</RequestID></Response>"
)


@dataclass
class Fault:
    """Meets one request of this action."""

    action: str
    how: Literal["refused", "request lost", "answer lost", "answer held"]
    code: str = ""
    status: int = 400
    carried_out: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


@dataclass
class Seen:
    """A request that came in."""

    action: str
    token: str


Reply = tuple[int, bytes]


class Ec2Proxy:
    def __init__(self, endpoint: str) -> None:
        self._upstream = endpoint.removeprefix("http://")
        self._lock = threading.Lock()
        self._known: dict[str, tuple[tuple[tuple[str, str], ...], Reply]] = {}
        self.faults: list[Fault] = []
        self.seen: list[Seen] = []

    def clear(self) -> None:
        self._known.clear()
        self.faults.clear()
        self.seen.clear()

    def requests(self, action: str) -> int:
        return sum(each.action == action for each in self.seen)

    def reply(self, body: bytes, headers: dict[str, str]) -> Reply | None:
        """None: the connection is closed without an answer."""
        asked = tuple(sorted(parse_qsl(body.decode(), keep_blank_values=True)))
        action, token = dict(asked).get("Action", ""), dict(asked).get("ClientToken", "")
        fault = self._fault_of(action)
        self.seen.append(Seen(action, token))
        if fault is not None and fault.how == "request lost":
            return None
        if fault is not None and fault.how == "refused":
            return fault.status, _ERROR.format(code=fault.code).encode()
        with self._lock:
            found = self._carried_out(asked, token, body, headers)
        if fault is None:
            return found
        fault.carried_out.set()
        if fault.how == "answer held":
            fault.released.wait(_PATIENCE_S)
        return None

    def _fault_of(self, action: str) -> Fault | None:
        for fault in self.faults:
            if fault.action == action:
                self.faults.remove(fault)
                return fault
        return None

    def _carried_out(
        self, asked: tuple[tuple[str, str], ...], token: str, body: bytes, headers: dict[str, str]
    ) -> Reply:
        if token in self._known:
            former, answer = self._known[token]
            return answer if former == asked else (400, _ERROR.format(code="IdempotentParameterMismatch").encode())
        connection = HTTPConnection(self._upstream, timeout=_PATIENCE_S)
        connection.request("POST", "/", body, headers)
        response = connection.getresponse()
        found = response.status, response.read()
        connection.close()
        if token and found[0] == 200:
            self._known[token] = asked, found
        return found


@contextmanager
def ec2_proxy(endpoint: str) -> Iterator[tuple[Ec2Proxy, str]]:
    """The proxy and its address."""
    proxy = Ec2Proxy(endpoint)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kept = {"Authorization", "Content-Type", "X-Amz-Date", "Host"}
            found = proxy.reply(body, {key: value for key, value in self.headers.items() if key in kept})
            self.close_connection = True
            if found is None:
                return
            status, answer = found
            self.send_response(status)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield proxy, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join(_PATIENCE_S)
