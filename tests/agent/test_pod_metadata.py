"""Labels and UIDs of pods come from the API server, with the credentials of the agent's pod."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from build.exporter_nodes import ExporterNode
from shoal.agent.exporter.node_watch import NodeWatch, Sources
from shoal.agent.exporter.settings import ExporterSettings
from shoal.agent.kubelet.api_reader import ApiReader
from shoal.agent.kubelet.pod_metadata import PodMetadata, PodsOfNode
from shoal.client.certificates import new_authority, new_server
from shoal.client.http.access import Access
from shoal.devices.dcgm_holders import ContainerHolding, HolderOptions
from shoal.units.errors import TemporaryError


class Api:
    def __init__(self) -> None:
        self.pods: dict[str, dict[str, str]] = {"train-0": {"app": "train"}}
        self.status = 200
        self.paths: list[str] = []
        self.tokens: list[str] = []

    def body(self) -> bytes:
        metadata = [
            {"name": name, "namespace": "team", "uid": f"uid-{name}", "labels": labels}
            for name, labels in self.pods.items()
        ]
        items: list[dict[str, Any]] = [{"metadata": one, "spec": {"nodeName": "node-1"}} for one in metadata]
        return json.dumps({"kind": "PodList", "items": items}).encode() if self.status == 200 else b"not allowed"


@contextmanager
def served(api: Api, pair: tuple[Path, Path] | None = None) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            api.paths.append(self.path)
            api.tokens.append(self.headers.get("Authorization", ""))
            body = api.body()
            self.send_response(api.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *values: object) -> None:  # noqa: A002 - the name of the base class
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    if pair is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pair)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Pods:
    def __init__(self, port: int) -> None:
        self.now_s = 0.0
        access = Access(f"http://127.0.0.1:{port}", "a test")
        self.found = PodsOfNode(ApiReader(access), "node-1", lambda: self.now_s)

    def labels(self, name: str, at_s: float) -> dict[str, str] | None:
        self.now_s = at_s
        pod = self.found.find("team", name)
        return None if pod is None else dict(pod.labels)


def test_the_pods_of_the_node_are_listed_once_for_all() -> None:
    api = Api()
    with served(api) as port:
        pods = Pods(port)
        assert [pods.labels("train-0", at_s) for at_s in (0.0, 1.0, 59.0)] == [{"app": "train"}] * 3
    assert api.paths == ["/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3Dnode-1"]


def test_an_unknown_pod_is_looked_up_again_soon_and_labels_are_renewed_after_a_while() -> None:
    api = Api()
    with served(api) as port:
        pods = Pods(port)
        assert pods.labels("serve-0", 0.0) is None
        api.pods = {"serve-0": {"app": "serve"}}
        assert [pods.labels("serve-0", at_s) for at_s in (4.0, 5.0)] == [None, {"app": "serve"}]
        api.pods = {"serve-0": {"app": "new"}}
        assert [pods.labels("serve-0", at_s) for at_s in (64.0, 65.0)] == [{"app": "serve"}, {"app": "new"}]


def test_while_the_server_refuses_known_pods_keep_their_labels_and_others_are_an_error() -> None:
    api = Api()
    with served(api) as port:
        pods = Pods(port)
        pods.labels("train-0", 0.0)
        api.status = 403
        assert pods.labels("train-0", 61.0) == {"app": "train"}
        with pytest.raises(TemporaryError, match="is answered with 403: not allowed"):
            pods.labels("serve-0", 70.0)


def test_a_server_that_is_not_there_is_a_temporary_error() -> None:
    with served(Api()) as port:
        pass
    with pytest.raises(TemporaryError, match="does not answer"):
        Pods(port).labels("train-0", 0.0)


def test_the_token_is_read_for_each_request_and_the_certificate_is_checked(tmp_path: Path) -> None:
    now = datetime.fromtimestamp(time.time(), UTC)
    authority, other = new_authority(now), new_authority(now)
    server = new_server(authority, ["127.0.0.1"], now)
    for name, data in (("ca.crt", authority.certificate), ("other.crt", other.certificate)):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "server.crt").write_bytes(server.certificate)
    (tmp_path / "server.key").write_bytes(server.key)
    token, api = tmp_path / "token", Api()
    with served(api, (tmp_path / "server.crt", tmp_path / "server.key")) as port:
        url = f"https://127.0.0.1:{port}"
        reader = ApiReader(Access(url, "a test", authority_file=tmp_path / "ca.crt", token_file=token))
        for text in ("one", "two\n"):
            token.write_text(text)
            reader.get("/api/v1/pods")
        with pytest.raises(TemporaryError, match="certificate verify failed"):
            ApiReader(Access(url, "a test", authority_file=tmp_path / "other.crt")).get("/api/v1/pods")
    assert api.tokens == ["Bearer one", "Bearer two"]


def test_labels_are_written_to_the_rows_of_the_pod() -> None:
    holders = HolderOptions(has_pod_labels=True, has_pod_uid=True, allow=("^app",))
    node = ExporterNode(settings=ExporterSettings("node-1", holders=holders))
    found = PodMetadata("train-0", "team", "uid-1", {"app.kubernetes.io/name": "train", "tier": "x"})
    sources = Sources(
        node.pods, metadata=lambda namespace, name: found if (namespace, name) == ("team", "train-0") else None
    )
    node.watch = NodeWatch(node.driver, node.state, ExporterSettings("node-1", holders=holders), sources)
    node.read()
    uuids = [gpu.uuid for gpu in node.driver.gpus().gpus]
    node.pods.now = [
        ContainerHolding(name, "team", "main", "nvidia.com/gpu", (uuid,))
        for name, uuid in (("train-0", uuids[0]), ("other-0", uuids[1]))
    ]
    node.watch.list_pods()
    first, second, *_ = (labels for labels, _ in node.rows()["DCGM_FI_DEV_GPU_TEMP"])
    assert (first["app_kubernetes_io_name"], first["pod_uid"], "tier" in first) == ("train", "uid-1", False)
    assert (second["pod"], "app_kubernetes_io_name" in second) == ("other-0", False)


def test_a_silent_api_server_leaves_the_names_of_the_pods() -> None:
    node = ExporterNode()

    def silent(namespace: str, name: str) -> PodMetadata | None:
        raise TemporaryError("no answer", 1.0)

    node.watch = NodeWatch(node.driver, node.state, ExporterSettings("node-1"), Sources(node.pods, metadata=silent))
    node.read()
    node.pods.now = [ContainerHolding("a", "team", "main", "nvidia.com/gpu", (node.driver.gpus().gpus[0].uuid,))]
    node.watch.list_pods()
    assert node.rows()["DCGM_FI_DEV_GPU_TEMP"][0][0]["pod"] == "a"
