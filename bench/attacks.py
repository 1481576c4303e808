"""What other clients feel while one tenant sends costly requests: `python -m bench.attacks [--quick] [--only WORD]`.

A `shoal up` with simulated nodes in a process of its own, and the tenant in another. For each load three connections
of the tenant send the same costly request over and over; another user reads and writes a small object every 50 ms, and
the 99th percentile of its answers stands beside the bar. Then the tenant creates pods as fast as it can while another
one creates small pods: their time to be bound is compared with that on the idle server. Readers that never read come
last, with the memory that they cost.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import math
import os
import socket
import ssl
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import yaml

from bench.attack_loads import POD_FLOODS, PODS, Costly, Obj, costly_requests, pod
from bench.cluster.accounts import resident_mb
from build.cluster_server import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.queues import Queue

BAR_MS, BAR_RATIO = 250.0, 2.0
NODES = "100xp5.48xlarge"
"""They hold 11,000 pods. A flood creates about 4,000 while another tenant's pods are bound, and on full nodes none of
these would be: this compares times to bind, not capacities."""
_LONGEST_WAIT_S = 120.0
_CONNECTIONS = 3
_SPAWN = get_context("spawn")


class Client:
    """One user's connection."""

    def __init__(self, folder: Path, user: str) -> None:
        kubeconfig = yaml.safe_load((folder / "kubeconfig").read_text())
        self._address = urlsplit(kubeconfig["clusters"][0]["cluster"]["server"])
        token = (folder / "state" / "keys" / "admin.token").read_text().strip()
        self.headers = {"Authorization": f"Bearer {token}", "Impersonate-User": user}
        authority = base64.b64decode(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=authority)
        self._connection = http.client.HTTPSConnection(
            self._address.hostname or "", self._address.port, context=self._context, timeout=_LONGEST_WAIT_S
        )

    def send(self, method: str, path: str, body: str | None = None, media: str = "application/json") -> bytes:
        return self.answer(method, path, body, media).read()

    def answer(
        self, method: str, path: str, body: str | None = None, media: str = "application/json"
    ) -> http.client.HTTPResponse:
        self._connection.request(method, path, body, {**self.headers, "Content-Type": media})
        return self._connection.getresponse()

    def ask(self, method: str, path: str, body: Obj | None = None) -> Obj:
        found: Obj = json.loads(self.send(method, path, None if body is None else json.dumps(body)))
        return found

    def unread(self, path: str) -> socket.socket:
        """A connection that asks and never reads."""
        raw = socket.create_connection((self._address.hostname or "", self._address.port or 0))
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wrapped = self._context.wrap_socket(raw, server_hostname=self._address.hostname)
        lines = [f"GET {path} HTTP/1.1", "Host: x", *(f"{name}: {text}" for name, text in self.headers.items())]
        wrapped.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return wrapped


Codes = Counter[int]


def _repeat(folder: Path, what: Costly, over: Event, told: Queue[Codes]) -> None:
    body = what.body if isinstance(what.body, str) else json.dumps(what.body)

    def ask(client: Client, _: int) -> int:
        answer = client.answer(what.method, what.path, body or None, what.media)
        answer.read()
        return answer.status

    _in_threads(folder, ask, over, told)


def _create(folder: Path, name: str, over: Event, told: Queue[Codes]) -> None:
    make = POD_FLOODS[name]

    def ask(client: Client, number: int) -> int:
        answer = client.answer("POST", PODS.format("a"), json.dumps(make(number)))
        answer.read()
        return answer.status

    _in_threads(folder, ask, over, told)


def _in_threads(folder: Path, ask: Callable[[Client, int], int], over: Event, told: Queue[Codes]) -> None:
    codes: Codes = Counter()

    def repeat(place: int) -> None:
        client = Client(folder, "tenant")
        while not over.is_set():
            codes[ask(client, place)] += 1
            place += _CONNECTIONS

    threads = [threading.Thread(target=repeat, args=(place,)) for place in range(_CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    told.put(codes)


@contextmanager
def _flooded(target: Callable[..., None], folder: Path, what: object) -> Iterator[Codes]:
    """While another process sends; the codes of its answers are known at the end."""
    over, told, codes = _SPAWN.Event(), _SPAWN.Queue(), Counter[int]()
    process = _SPAWN.Process(target=target, args=(folder, what, over, told))
    process.start()
    threading.Event().wait(1.0)
    try:
        yield codes
    finally:
        over.set()
        codes.update(told.get())
        process.join()


def _percentile(seconds: Sequence[float], part: float = 0.99) -> float:
    return sorted(seconds)[int(len(seconds) * part)] * 1e3 if seconds else float("nan")


def _waits(folder: Path, seconds: float) -> list[float]:
    """Of the other user: a read and a small write every 50 ms."""
    client, taken, ends = Client(folder, "other"), list[float](), monotonic() + seconds
    text = json.dumps({"data": {"a": "b"}})
    while monotonic() < ends:
        for asked in (
            ("GET", "/api/v1/namespaces/default"),
            ("PATCH", "/api/v1/namespaces/b/configmaps/small", text, "application/merge-patch+json"),
        ):
            began = monotonic()
            client.send(*asked)
            taken.append(monotonic() - began)
        threading.Event().wait(0.05)
    return taken


def _times_to_bind(folder: Path, number: int, prefix: str) -> list[float]:
    client, watch, taken = Client(folder, "other"), Client(folder, "other"), list[float]()
    lines = watch.answer("GET", f"{PODS.format('b')}?watch=1")
    for place in range(number):
        began = monotonic()
        client.ask("POST", PODS.format("b"), pod(f"{prefix}{place}", "b"))
        try:
            for line in lines:
                obj = json.loads(line)["object"]
                if obj["metadata"]["name"] == f"{prefix}{place}" and obj["spec"].get("nodeName"):
                    break
        except TimeoutError:
            # The next load may still be measured; this figure is far beyond its bar.
            taken.append(math.inf)
            break
        taken.append(monotonic() - began)
        threading.Event().wait(0.05)
    client.send("DELETE", f"{PODS.format('b')}?gracePeriodSeconds=0")
    return taken


def _emptied(admin: Client) -> None:
    admin.send("DELETE", f"{PODS.format('a')}?gracePeriodSeconds=0")
    while admin.ask("GET", f"{PODS.format('a')}?limit=1")["items"]:
        threading.Event().wait(0.2)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of everything")
    parser.add_argument("--only", default="", metavar="WORD", help="the loads that have it in their names")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="shoal-attacks-") as name:
        folder = Path(name)
        server = ServerProcess(folder, "--nodes", NODES, is_bare=False)
        try:
            _run(folder, server.process.pid, given.quick, given.only)
        finally:
            server.stop()
    return 0


def _run(folder: Path, pid: int, quick: bool, only: str) -> None:
    admin = Client(folder, "admin")
    for namespace in ("a", "b"):
        admin.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    admin.ask("POST", "/api/v1/namespaces/b/configmaps", {"metadata": {"name": "small"}})
    seconds, number = (2.0, 20) if quick else (8.0, 100)
    alone = _waits(folder, seconds)
    print(
        f"alone: p50 {_percentile(alone, 0.5):.0f} p99 {_percentile(alone):.0f} ms; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    for costly in costly_requests(20 if quick else 100):
        if only in costly.name:
            with _flooded(_repeat, folder, costly) as codes:
                taken = _waits(folder, seconds)
            print(
                f"{costly.name}: {dict(codes)}, others' p50 {_percentile(taken, 0.5):.0f} p99 {_percentile(taken):.0f}"
                f" max {max(taken) * 1e3:.0f} ms (bar {BAR_MS:.0f}); load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    idle = _times_to_bind(folder, number, "alone")
    print(f"time to bind alone: p50 {_percentile(idle, 0.5):.0f} p99 {_percentile(idle):.0f} ms", flush=True)
    for name in POD_FLOODS:
        if only in name:
            with _flooded(_create, folder, name) as codes:
                taken = _times_to_bind(folder, number, "flooded")
            print(
                f"{name}: {dict(codes)}, time to bind p50 {_percentile(taken, 0.5):.0f} p99 {_percentile(taken):.0f}"
                f" ms, {_percentile(taken) / _percentile(idle):.1f} times (bar {BAR_RATIO:.0f});"
                f" load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
            _emptied(admin)
    if only in "readers":
        _stuck_readers(admin, pid)


def _stuck_readers(admin: Client, pid: int) -> None:
    for place in range(150):
        obj = {"metadata": {"name": f"read{place}"}, "data": {"a": "x" * 100_000}}
        admin.ask("POST", "/api/v1/namespaces/a/configmaps", obj)
    before = resident_mb(pid)
    path = "/api/v1/namespaces/a/configmaps"
    stuck = [admin.unread(path + ("?watch=1" if place % 2 else "")) for place in range(60)]
    threading.Event().wait(3)
    print(f"60 readers that never read: {before:.0f} MB before, {resident_mb(pid):.0f} MB with them", flush=True)
    for one in stuck:
        one.close()


if __name__ == "__main__":
    main()
