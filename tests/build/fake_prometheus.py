"""A Prometheus server over series in memory: its API for range queries, with Shoal's own evaluator."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from shoal.prometheus.promql.evaluation import Evaluation
from shoal.prometheus.promql.parser import parsed
from shoal.prometheus.promql.series import CURRENT_MS, SeriesStore

Answer = tuple[int, dict[str, str], bytes]


class FakePrometheus:
    """`answer` may be replaced to let the server be slow, refuse, or answer something else."""

    def __init__(self, store: SeriesStore) -> None:
        self.store = store
        self.url = ""
        self.asked: list[tuple[str, dict[str, str]]] = []
        """Paths with queries, and headers."""
        self.answer: Callable[[str, dict[str, str]], Answer] = self.evaluated

    def evaluated(self, path: str, query: dict[str, str]) -> Answer:
        if not path.endswith("/api/v1/query_range"):
            return 404, {}, b"404 page not found"
        if not query["timeout"].removesuffix("ms").isdecimal():
            return 400, {}, b'{"status":"error","error":"invalid parameter timeout"}'
        start, end, step = (round(float(query[name]) * 1000) for name in ("start", "end", "step"))
        evaluation, tree = Evaluation(self.store, 15_000), parsed(query["query"])
        found: dict[str, dict[str, object]] = {}
        last = max((series.times[-1] for name in self.store.kept for series in self.store.of(name)), default=0)
        # Later there is nothing: no range is longer than a step.
        for at in range(start, min(end, last + step + CURRENT_MS) + 1, step):
            for one in evaluation.vector(tree, at):
                labels = dict(one.labels.pairs)
                series = found.setdefault(json.dumps(labels), {"metric": labels, "values": []})
                values = series["values"]
                assert isinstance(values, list)
                values.append([at / 1000, str(one.value)])
        data = {"resultType": "matrix", "result": list(found.values())}
        return 200, {"Content-Type": "application/json"}, json.dumps({"status": "success", "data": data}).encode()


@contextmanager
def serving(fake: FakePrometheus) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            fake.asked.append((self.path, dict(self.headers.items())))
            status, headers, body = fake.answer(parts.path, query)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            if "Content-Length" not in headers:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield fake.url
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
