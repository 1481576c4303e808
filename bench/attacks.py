"""What other clients feel while one tenant sends costly requests: `python -m bench.attacks [--quick]`.

A `shoal up` with simulated nodes in a process of its own. For each load another user asks for a small object every 50
ms, and the 99th percentile of its answers stands beside the bar. Then one tenant floods the server with pods of large
annotations while another one creates small pods: their time to be bound is compared with that on the idle server.
Readers that never read come last, with the memory that they cost.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import yaml

from bench.cluster.accounts import resident_mb
from build.cluster_server import ServerProcess

BAR_MS, BAR_RATIO = 250.0, 2.0
Obj = dict[str, Any]
_PODS = "/api/v1/namespaces/{}/pods"


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
            self._address.hostname or "", self._address.port, context=self._context, timeout=120
        )

    def ask(self, method: str, path: str, body: Obj | None = None, media: str = "application/json") -> tuple[int, Obj]:
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, path, sent, {**self.headers, "Content-Type": media})
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read())

    def unread(self, path: str) -> socket.socket:
        """A connection that asks and never reads."""
        raw = socket.create_connection((self._address.hostname or "", self._address.port or 0))
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wrapped = self._context.wrap_socket(raw, server_hostname=self._address.hostname)
        lines = [f"GET {path} HTTP/1.1", "Host: x", *(f"{name}: {text}" for name, text in self.headers.items())]
        wrapped.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return wrapped


def pod(name: str, namespace: str, **annotations: str) -> Obj:
    metadata = {"name": name, "namespace": namespace, "annotations": annotations}
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1m"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def _loads(scale: int) -> Iterator[tuple[str, str, str, Obj, str]]:
    """Name, method, path, body and media type of one costly request each."""
    text = "application/json"
    env = pod("p", "a")
    env["spec"]["containers"][0]["env"] = [{"name": f"e{place}", "value": "v"} for place in range(600 * scale)]
    yield f"pod with {600 * scale:,} env", "POST", _PODS.format("a") + "?dryRun=All", env, text
    maps = "/api/v1/namespaces/a/configmaps"
    data = {f"k{place}": "v" for place in range(900 * scale)}
    config: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}
    for manager in ("one", "two"):
        path = f"{maps}/m?fieldManager={manager}&force=true"
        yield f"apply of {900 * scale:,} keys by {manager}", "PATCH", path, config, "application/apply-patch+yaml"
    names = [f"a.b/f{place}" for place in range(600 * scale)]
    held = {**config, "metadata": {"name": "f", "finalizers": names}, "data": {}}
    yield f"{600 * scale:,} finalizers", "POST", f"{maps}?dryRun=All", held, text
    values = [f"v{place}" for place in range(2000 * scale)]
    spec = {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": values}]}}
    policy: Obj = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "n"}}
    path = "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies?dryRun=All"
    yield f"policy of {2000 * scale:,} values", "POST", path, {**policy, "spec": spec}, text


def _percentile(seconds: Sequence[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.99)] * 1e3 if seconds else float("nan")


def _felt(folder: Path, method: str, path: str, body: Obj, media: str) -> tuple[int, float]:
    """The answer to a costly request, and what another user waits for meanwhile."""
    taken: list[float] = []
    over = threading.Event()

    def probe() -> None:
        client = Client(folder, "other")
        while not over.is_set():
            began = monotonic()
            client.ask("GET", "/api/v1/namespaces/default")
            taken.append(monotonic() - began)
            over.wait(0.05)

    prober = threading.Thread(target=probe)
    prober.start()
    code, _ = Client(folder, "tenant").ask(method, path, body, media)
    over.set()
    prober.join()
    return code, _percentile(taken)


def _time_to_bind(folder: Path, number: int, prefix: str) -> float:
    client, taken = Client(folder, "other"), list[float]()
    for place in range(number):
        began = monotonic()
        client.ask("POST", _PODS.format("b"), pod(f"{prefix}{place}", "b"))
        while monotonic() - began < 60:
            if client.ask("GET", f"{_PODS.format('b')}/{prefix}{place}")[1].get("spec", {}).get("nodeName"):
                break
            threading.Event().wait(0.005)
        taken.append(monotonic() - began)
    return _percentile(taken)


def _flood(folder: Path, over: threading.Event, seconds: float) -> None:
    client, ends, place = Client(folder, "tenant"), monotonic() + seconds, 0
    while not over.is_set() and monotonic() < ends:
        place += 1
        big = pod(f"big-{threading.get_ident()}-{place}", "a", **{"shoal.dev/devices": "0," * 100_000})
        client.ask("POST", _PODS.format("a"), big)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of everything")
    quick = parser.parse_args(arguments).quick
    with tempfile.TemporaryDirectory(prefix="shoal-attacks-") as name:
        folder = Path(name)
        server = ServerProcess(folder, "--nodes", "20xp5.48xlarge", is_bare=False)
        try:
            _run(folder, server.process.pid, quick)
        finally:
            server.stop()
    return 0


def _run(folder: Path, pid: int, quick: bool) -> None:
    admin = Client(folder, "admin")
    for namespace in ("a", "b"):
        admin.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    for name, method, path, body, media in _loads(20 if quick else 100):
        code, waits_ms = _felt(folder, method, path, body, media)
        print(f"{name}: {code}, others' p99 {waits_ms:.0f} ms (bar {BAR_MS:.0f})", flush=True)
    number = 10 if quick else 40
    alone_ms = _time_to_bind(folder, number, "alone")
    over = threading.Event()
    flooders = [threading.Thread(target=_flood, args=(folder, over, 60.0)) for _ in range(3)]
    for flooder in flooders:
        flooder.start()
    flooded_ms = _time_to_bind(folder, number, "flooded")
    over.set()
    for flooder in flooders:
        flooder.join()
    ratio = flooded_ms / alone_ms
    print(
        f"time to bind: p99 {alone_ms:.0f} ms alone, {flooded_ms:.0f} ms in a flood: {ratio:.1f} (bar {BAR_RATIO:.0f})"
    )
    before = resident_mb(pid)
    stuck = [admin.unread(_PODS.format("a") + ("?watch=1" if place % 2 else "")) for place in range(60)]
    threading.Event().wait(3)
    print(f"60 readers that never read: {before:.0f} MB before, {resident_mb(pid):.0f} MB with them", flush=True)
    for one in stuck:
        one.close()


if __name__ == "__main__":
    main()
