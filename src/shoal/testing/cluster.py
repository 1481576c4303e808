"""A cluster for tests: `shoal up` in a child process, and a client for what tests do to it.

The API server listens with TLS on a free port of the loopback interface and keeps its objects in memory. All methods
are synchronous and may be called from any thread, also while an event loop runs in the caller's thread.

Rejected: the server in a thread of the test process. The server changes the garbage collector's thresholds and freezes
its heap, handles signals, and would share the interpreter lock with the code under test.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, get_args

from shoal.api.yaml_text import read_yaml
from shoal.cli.node_faults import break_gpu, break_node, heal_gpu, heal_node
from shoal.client.http.access import Access
from shoal.client.http.api import KubeApi
from shoal.client.http.connection import Connection
from shoal.client.http.locate import locate
from shoal.client.http.settings import KubeSettings
from shoal.client.item import Obj
from shoal.client.kind import DEFINITIONS, NAMESPACES, NODES, SERVICE_ACCOUNTS, Kind
from shoal.client.port import Select
from shoal.client.refusals import ExpiredError, NotFoundError
from shoal.units.errors import UserError

T = TypeVar("T")
Scheduler = Literal["simple", "shoal"]
Authorization = Literal["always-allow", "rbac"]
RefusalStatus = Literal[409, 429, 500, 503]
_YAML = {".yaml", ".yml", ".json"}
_REQUEST_S, _START_S, _END_S = 20.0, 60.0, 10.0


@dataclass(frozen=True)
class KubeClusterOptions:
    """What a cluster for tests consists of."""

    nodes: str = "2xp5.48xlarge"
    """Simulated nodes, as for `shoal up --nodes`; "none" for none."""
    controllers: bool = True
    """Whether the generic controllers run, such as those of Deployments, Jobs and namespaces."""
    scheduler: Scheduler = "simple"
    kube_version: str = "1.36"
    foreign_kinds: bool = False
    """Whether the kinds of other projects are installed, such as Kueue's. Takes more time at start."""
    speed: float = 1.0
    """Seconds of cluster time per second: probes, back-offs, leases and node failures need so much less time."""
    authorization: Authorization = "always-allow"
    """Whether RBAC limits users other than the administrator."""
    definitions: tuple[Path | str | Obj, ...] = ()
    """CustomResourceDefinitions to install before the first test: files, folders of YAML files, or objects."""


def options_from_ini(nodes: str, scheduler: str) -> KubeClusterOptions:
    """Empty values leave the defaults."""
    usual = KubeClusterOptions()
    known = {str(name): name for name in get_args(Scheduler)}
    if scheduler and scheduler not in known:
        raise UserError(f'kube_scheduler "{scheduler}" is not known', fix="choose simple or shoal")
    return KubeClusterOptions(nodes=nodes or usual.nodes, scheduler=known.get(scheduler, usual.scheduler))


def _definition_objects(definitions: Sequence[Path | str | Obj]) -> Iterator[Obj]:
    for one in definitions:
        if isinstance(one, dict):
            yield one
            continue
        path = Path(one)
        files = sorted(found for found in path.iterdir() if found.suffix in _YAML) if path.is_dir() else [path]
        for file in files:
            try:
                text = file.read_text(encoding="utf-8")
            except OSError as error:
                raise UserError(f"the definitions in {file} cannot be read: {error.strerror}") from None
            yield from (obj for _, obj in read_yaml(text, str(file)) if obj.get("kind") == "CustomResourceDefinition")


def _is_established(definition: Obj) -> bool:
    conditions = definition.get("status", {}).get("conditions", ())
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


class KubeCluster:
    """A running cluster. `stop` ends it; as a context manager it stops at the end of the block."""

    def __init__(self, options: KubeClusterOptions | None = None) -> None:
        self.options = options or KubeClusterOptions()
        self._folder = tempfile.TemporaryDirectory(prefix="shoal-testing-")
        self.kubeconfig = Path(self._folder.name) / "kubeconfig"
        self._log = Path(self._folder.name) / "log"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="shoal-testing", daemon=True)
        self._api: KubeApi | None = None
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command, no shell
                self._command(), stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )
        self._thread.start()
        try:
            self._await_ready()
            self._access: Access = locate(self.kubeconfig, "")
            self._api = self._run(self._open())
            self._install(self.options.definitions)
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return str(self._access.server)

    def kubeconfig_dict(self) -> Obj:
        """The administrator's kubeconfig as an object, with its private key, for clients that do not read files."""
        return next(content for _, content in read_yaml(self.kubeconfig.read_text()))

    def token(self, namespace: str, service_account: str = "default", duration_s: int = 3600) -> str:
        """A new bearer token of a ServiceAccount, for tests that check what RBAC allows."""
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": duration_s},
        }
        answer = self._run(self._client.post(SERVICE_ACCOUNTS, namespace, service_account, "token", body))
        return str(answer["status"]["token"])

    def stop(self) -> None:
        """End the cluster and delete its files. Further calls do nothing."""
        if self._loop.is_closed():
            return
        if self._api is not None:
            self._run(self._api.close())
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_END_S)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._folder.cleanup()

    # -- objects ----------------------------------------------------------------------------------------------------

    def namespace(self, prefix: str = "test") -> str:
        """Create a namespace. Returns its name once its ServiceAccount `default` exists, if controllers run."""
        name = f"{prefix}-{uuid.uuid4().hex[:10]}"
        self._run(self._client.create(NAMESPACES, {"metadata": {"name": name}}))
        if self.options.controllers:
            self.wait_for(SERVICE_ACCOUNTS, "default", namespace=name)
        return name

    def delete_namespace(self, name: str) -> None:
        """Begin the deletion of a namespace. Does nothing if it does not exist."""
        with contextlib.suppress(NotFoundError):
            self._run(self._client.delete(NAMESPACES, "", name))

    def create(self, kind: Kind, obj: Obj) -> Obj:
        return self._run(self._client.create(kind, obj)).obj()

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        return self._run(self._client.get(kind, namespace, name)).obj()

    def node_names(self) -> list[str]:
        return sorted(item.name for item in self._run(self._client.list(NODES)).items)

    def wait_for(
        self,
        kind: Kind,
        name: str,
        condition: Callable[[Obj], bool] = bool,
        timeout_s: float = 30.0,
        namespace: str = "",
    ) -> Obj:
        """The object, once it exists and fulfils the condition. Raises TimeoutError with its last state.

        It follows a watch, so that no time is lost between the change and the return. `condition` is called in another
        thread.
        """
        return self._run(self._wait_for(kind, name, condition, timeout_s, namespace))

    # -- faults -----------------------------------------------------------------------------------------------------

    def fail_node(self, name: str) -> None:
        """Stop a node with its kubelet and all pods, until `heal_node`."""
        self._run(break_node(self._client, name, "fail"))

    def heal_node(self, name: str) -> None:
        """End all faults of a node and of its GPUs."""
        self._run(heal_node(self._client, name))

    def fail_gpu(self, node: str, gpu: int, xid: int = 79) -> None:
        """Make a GPU report an XID error."""
        self._run(break_gpu(self._client, node, gpu, xid))

    def heal_gpu(self, node: str, gpu: int) -> None:
        self._run(heal_gpu(self._client, node, gpu))

    def slow_api(self, delay_ms: int, duration_s: int = 60) -> None:
        """Delay each answer of the API server for a time; 0 ms ends the delay."""
        body = {"delay_ms": delay_ms, "jitter_ms": 0, "seconds": duration_s}
        self._run(self._post_fault("slow-api", body))

    def refuse_requests(
        self,
        status: RefusalStatus = 409,
        count: int = 1,
        *,
        verbs: Sequence[str] = ("update", "patch"),
        resource: str = "",
        namespace: str = "",
    ) -> None:
        """Refuse the next `count` matching requests: 409 Conflict, 429 with Retry-After, 500 or 503.

        It replaces a present fault of this kind; a count of 0 ends it.
        """
        body = {"status": status, "count": count, "verbs": list(verbs), "resource": resource, "namespace": namespace}
        self._run(self._post_fault("refuse-requests", body))

    def expire_watches(self) -> None:
        """End every watch; clients receive 410 Gone and have to list again."""
        self._run(self._post_fault("expire-watches", {}))

    # -- private ----------------------------------------------------------------------------------------------------

    def _install(self, definitions: Sequence[Path | str | Obj]) -> None:
        names = [self.create(DEFINITIONS, obj)["metadata"]["name"] for obj in _definition_objects(definitions)]
        for name in names:
            self.wait_for(DEFINITIONS, name, _is_established)

    @property
    def _client(self) -> KubeApi:
        if self._api is None or self._loop.is_closed():
            raise RuntimeError("the cluster does not run")
        return self._api

    def _command(self) -> list[str]:
        options = self.options
        return [
            *(sys.executable, "-m", "shoal", "up", "--memory", "--no-dashboard", "--port", "0", "--metrics-port", "0"),
            *("--state", os.fspath(self.kubeconfig.with_name("state")), "--kubeconfig", os.fspath(self.kubeconfig)),
            *("--nodes", options.nodes, "--scheduler", options.scheduler, "--kube-version", options.kube_version),
            *("--speed", f"{options.speed:g}", "--authorization", options.authorization),
            "--controllers" if options.controllers else "--no-controllers",
            "--foreign-kinds" if options.foreign_kinds else "--no-foreign-kinds",
        ]

    def _await_ready(self) -> None:
        """The command prints one line once the server answers and the nodes are ready."""
        output = self._process.stdout
        assert output is not None  # noqa: S101 - a pipe was asked for
        late = threading.Timer(_START_S, self._process.kill)
        late.start()
        try:
            is_ready = "export KUBECONFIG" in output.readline()
        finally:
            late.cancel()
        if not is_ready:
            raise RuntimeError(f"the cluster did not start: {self._log.read_text().strip()}")

    async def _open(self) -> KubeApi:
        return KubeApi(self._access, random.Random(), KubeSettings(timeout_s=_REQUEST_S))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _wait_for(
        self, kind: Kind, name: str, condition: Callable[[Obj], bool], timeout_s: float, namespace: str
    ) -> Obj:
        seen: list[Obj] = []
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    with contextlib.suppress(ExpiredError):
                        if await self._follow(kind, name, condition, namespace, seen):
                            return seen[-1]
        except TimeoutError:
            last = f"its last state: {seen[-1]}" if seen else "it was not found"
            raise TimeoutError(
                f'{kind.plural} "{name}" did not fulfil the condition in {timeout_s:g} s; {last}'
            ) from None

    async def _follow(
        self, kind: Kind, name: str, condition: Callable[[Obj], bool], namespace: str, seen: list[Obj]
    ) -> bool:
        """Whether an object that fulfils the condition was seen, as the last of `seen`, before the watch ended."""
        select = Select(fields=f"metadata.name={name}")
        listed = await self._client.list(kind, namespace, select)
        for item in listed.items:
            seen[:] = [item.obj()]
            if condition(seen[-1]):
                return True
        watch = self._client.watch(kind, listed.version, namespace, select)
        try:
            async for batch in watch:
                for change in batch:
                    if change.item is None or change.kind == "DELETED":
                        continue
                    seen[:] = [change.item.obj()]
                    if condition(seen[-1]):
                        return True
        finally:
            await watch.aclose()
        return False

    async def _post_fault(self, fault: str, body: dict[str, Any]) -> None:
        connection = Connection(self._access, KubeSettings())
        try:
            await connection.ask("POST", f"/shoal/faults/{fault}", body=body)
        finally:
            await connection.close()
