"""Progress told to the pod's own annotations, with what a pod has: its service account and the cluster's authority."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from build.cluster_server import ServerProcess
from build.live_schedulers import pod
from shoal.client.http.access import Access
from shoal.client.http.api import KubeApi
from shoal.client.http.locate import locate
from shoal.client.item import Obj
from shoal.client.kind import PODS, SERVICE_ACCOUNTS
from shoal.train import Progress, reporter_of
from shoal.train.progress import ProgressAnnotator

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    server = ServerProcess(tmp_path_factory.mktemp("server"), "--memory")
    yield locate(server.kubeconfig)
    server.stop()


async def made_pod(access: Access, account: Path) -> None:
    """A pod named `worker`, and what a pod finds of its service account."""
    api = KubeApi(access, random.Random())
    try:
        await api.create(SERVICE_ACCOUNTS, {"metadata": {"name": "trainer", "namespace": "default"}})
        obj = pod("worker")
        obj["metadata"]["namespace"] = "default"
        await api.create(PODS, obj)
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        made = await api.post(SERVICE_ACCOUNTS, "default", "trainer", "token", asked)
    finally:
        await api.close()
    (account / "token").write_text(made["status"]["token"])
    (account / "ca.crt").write_text(access.authority)


async def noted(access: Access) -> dict[str, str]:
    api = KubeApi(access, random.Random())
    try:
        meta: Obj = (await api.get(PODS, "default", "worker")).obj()["metadata"]
        return dict(meta.get("annotations") or {})
    finally:
        await api.close()


def test_a_pod_is_annotated_with_how_far_it_is_and_when_it_was_saved(access: Access, tmp_path: Path) -> None:
    asyncio.run(made_pod(access, tmp_path))
    host, _, port = access.server.removeprefix("https://").rpartition(":")
    environment = {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": port,
        "POD_NAME": "worker",
        "POD_NAMESPACE": "default",
    }
    reporter = reporter_of(environment, tmp_path)
    assert isinstance(reporter, ProgressAnnotator)
    reporter.tell(Progress(7, 100, 60.0))
    reporter.close()
    assert asyncio.run(noted(access)) == {
        "shoal.dev/progress": "7/100",
        "shoal.dev/last-checkpoint": "1970-01-01T00:01:00Z",
    }


def test_a_server_that_is_not_there_harms_nobody(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("x")
    environment = {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": "1",
        "POD_NAME": "worker",
        "POD_NAMESPACE": "default",
    }
    reporter = reporter_of(environment, tmp_path)
    reporter.tell(Progress(7, 100, 60.0))
    reporter.close()
    # It was tried and given up; nobody hangs on it.
    assert "shoal-progress" not in {thread.name for thread in threading.enumerate()}
