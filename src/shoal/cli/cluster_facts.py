"""Reads the facts that a running cluster reports about itself, over its API and as its administrator."""

from __future__ import annotations

import base64
import json
import os
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import yaml

if TYPE_CHECKING:
    from shoal.embedded.apiserver.security.state_folder import Running

_TIMEOUT_S = 5
_COUNTED = (("nodes", "/api/v1/nodes"), ("pods", "/api/v1/pods"), ("namespaces", "/api/v1/namespaces"))


def facts(running: Running) -> Iterator[tuple[str, str]]:
    yield "server", f"{running.url} (pid {running.pid})"
    yield "kubeconfig", running.kubeconfig
    try:
        context = _client(Path(running.kubeconfig))
        yield "ready", _get(running.url, "/readyz", context)
        yield "version", json.loads(_get(running.url, "/version", context))["gitVersion"]
        for name, path in _COUNTED:
            yield name, f"{_count(running.url, path, context):,}"
        metrics = _metrics(running.url, context)
        if metrics:
            yield "metrics", metrics
    except HTTPError as error:
        yield "ready", f"no: the server answers {error.code}"
    except (URLError, OSError, ValueError, KeyError, StopIteration) as error:
        yield "ready", f"not known: {type(error).__name__} {error}"


def _get(url: str, path: str, context: ssl.SSLContext) -> str:
    with urlopen(f"{url}{path}", timeout=_TIMEOUT_S, context=context) as answer:  # noqa: S310 - the url is our own
        return str(answer.read().decode())


def _count(url: str, path: str, context: ssl.SSLContext) -> int:
    found: dict[str, Any] = json.loads(_get(url, f"{path}?limit=1", context))
    return len(found["items"]) + int(found["metadata"].get("remainingItemCount") or 0)


def _metrics(url: str, context: ssl.SSLContext) -> str:
    """Where Prometheus finds the nodes' exporters, if there are simulated nodes."""
    nodes: list[dict[str, Any]] = json.loads(_get(url, "/api/v1/nodes?limit=1", context))["items"]
    told = ((nodes[0]["metadata"].get("annotations") or {}) if nodes else {}).get("shoal.dev/metrics", "")
    server = told.partition("/nodes/")[0]
    return f"{server}/nodes/NODE/metrics, all of them at {server}/sd" if server else ""


def _client(kubeconfig: Path) -> ssl.SSLContext:
    content = yaml.safe_load(kubeconfig.read_text())
    user = next(one["user"] for one in content["users"] if one["name"] == "shoal")
    cluster = next(one["cluster"] for one in content["clusters"] if one["name"] == "shoal")
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    descriptor, path = tempfile.mkstemp(prefix="shoal-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            for key in ("client-certificate-data", "client-key-data"):
                file.write(base64.b64decode(user[key]))
        context.load_cert_chain(path)
    finally:
        Path(path).unlink()
    return context
