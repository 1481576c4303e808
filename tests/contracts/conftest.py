"""One suite of API behaviour, for every server that claims to be Kubernetes.

Without anything set it runs against `shoal up`; with SHOAL_TEST_KUBECONFIG against the cluster that names. Where the
two differ, ours is wrong. A test says what it needs beyond the API itself (`@pytest.mark.needs("controllers")`); what a
cluster has is said by SHOAL_TEST_HAS, a comma-separated list (by default a real one has everything but `reachable`:
that it can call servers of the machine the tests run on, and `doors`: that it finds the doors of simulated kubelets,
which it looks for at their nodes' addresses, and `node-proxy`: that it calls them for `nodes/NAME/proxy`, which a
kube-apiserver does not where they listen on loopback). Each test works in a namespace of its own and assumes nothing of
what else is there, so that several workers may share one cluster; those that need GPUs of simulated nodes take turns.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from build.cluster_api import Api
from build.cluster_server import ServerProcess
from build.shoal_process import shoal_process
from build.simulated_pods import until_no_gpu_is_held

EVERYTHING = frozenset({"api", "controllers", "kubelet", "serviceaccounts"})
OURS = EVERYTHING | {"reachable", "doors", "node-proxy"}
"""`reachable`: the server can call a webhook that listens on the loopback of the machine where the tests run."""
NODES = "2xp5.48xlarge"


def _has() -> frozenset[str]:
    said = os.environ.get("SHOAL_TEST_HAS")
    if said is not None:
        return frozenset(part.strip() for part in said.split(",")) | {"api"}
    return EVERYTHING if os.environ.get("SHOAL_TEST_KUBECONFIG") else OURS


@pytest.fixture(autouse=True)
def _needed(request: pytest.FixtureRequest) -> None:
    wanted = {name for mark in request.node.iter_markers("needs") for name in mark.args}
    missing = sorted(wanted - _has())
    if missing:
        pytest.skip(f"needs {', '.join(missing)}, which this cluster does not have")


@pytest.fixture(scope="package")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    given = os.environ.get("SHOAL_TEST_KUBECONFIG")
    if given:
        # kubectl runs in a folder of its own.
        yield Path(given).expanduser().absolute()
        return
    server = ServerProcess(tmp_path_factory.mktemp("contracts"), "--nodes", NODES, is_bare=False)
    yield server.kubeconfig
    server.stop()


@pytest.fixture(scope="package")
def shoal(kubeconfig: Path) -> Iterator[None]:
    """Somebody places the pods of the scheduler `shoal`: with `shoal up` it is there, elsewhere it is started.

    Of several test runs beside each other, one of them leads.
    """
    if not os.environ.get("SHOAL_TEST_KUBECONFIG"):
        yield
        return
    with shoal_process(kubeconfig, "run", "--controllers", "scheduler"):
        yield


@pytest.fixture
async def simulated_gpus(kubeconfig: Path) -> AsyncIterator[None]:
    """The GPUs of the simulated nodes, for this test alone: other workers on the same machine wait for their turn."""
    name = hashlib.sha256(str(kubeconfig).encode()).hexdigest()[:16]
    with (Path(tempfile.gettempdir()) / f"shoal-contracts-{os.getuid()}-{name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield
        if os.environ.get("SHOAL_TEST_KUBECONFIG"):
            async with Api.open(kubeconfig) as client:
                await until_no_gpu_is_held(client)


@pytest.fixture
async def api(kubeconfig: Path) -> AsyncIterator[Api]:
    """A client with a namespace of its own (`api.namespace`), which is gone after the test."""
    async with Api.open(kubeconfig) as client:
        await client.make_namespace()
        yield client
        await client.remove_namespace()
