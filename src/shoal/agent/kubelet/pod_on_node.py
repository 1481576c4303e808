"""One pod of this node: what its containers are started with, and where its progress is stored and reported."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from shoal.agent.foreign_file import read_foreign
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.launches import Launcher, LaunchInputs, termination_file
from shoal.agent.kubelet.pod_store import PodStore, StoredPod
from shoal.agent.kubelet.references import MissingSourceError, Reference, Sources, references_of, values_in
from shoal.agent.kubelet.runtime import Launch, PodRuntime, RunKey, StartRefused
from shoal.agent.kubelet.volumes import VolumeFault, audiences_of
from shoal.client.clock import Clock
from shoal.client.kind import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, Kind
from shoal.client.kubelet.pod_facts import PodFacts
from shoal.client.kubelet.pod_run import PodRun
from shoal.client.port import Api
from shoal.client.recorder import Recorder
from shoal.client.refusals import NotFoundError, RefusedError
from shoal.units.errors import TemporaryError

Obj = dict[str, Any]
_log = logging.getLogger("shoal.agent.kubelet")
_KINDS = {"configmap": CONFIG_MAPS, "secret": SECRETS}
_MESSAGE_BYTES, _LOG_BYTES, _LOG_LINES = 4096, 64 * 1024, 80
RUNTIME_CLASSES = Kind("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", is_namespaced=False)


class NodeParts(msgspec.Struct, frozen=True):
    """What all pods of the node share."""

    api: Api
    clock: Clock
    launcher_of: Callable[[Obj], Launcher]
    """The launcher of a pod, by its spec."""
    gpus: NodeGpus
    store: PodStore
    events: Recorder
    node: str
    address: str
    allocatable: Callable[[], dict[str, str]]
    report: Callable[[str], None]
    """Write the status of a pod, by uid."""
    server: Mapping[str, str] = {}
    """The variables by which programs in pods find the API server."""


class PodOnNode:
    """Implements `PodScene`."""

    def __init__(self, parts: NodeParts, pod: Obj, run: PodRun) -> None:
        self._parts = parts
        self.pod = pod
        self.run = run
        self.facts = msgspec.convert(pod, PodFacts)
        self.clock = parts.clock
        self._launcher = parts.launcher_of(pod)
        self.stopping = asyncio.Event()
        self._launching = asyncio.Lock()
        """The containers of a pod share its volumes."""
        self.folder = parts.store.folder_of(run.uid)
        if run.stop_since_s is not None:
            self.stopping.set()

    @property
    def runtime(self) -> PodRuntime:
        return self._launcher.runtime

    @property
    def address(self) -> str:
        return self.run.ip or self._parts.address

    def changed(self) -> None:
        self.run.changes += 1
        try:
            self._parts.store.put(StoredPod(self.run, self.pod, self._parts.gpus.held(self.run.uid)))
        except OSError as error:
            # On a full disk running containers continue; a new one is refused, because its launch cannot be stored.
            _log.warning("pod %s/%s cannot be stored: %s", self.run.namespace, self.run.name, error)
        self._parts.report(self.run.uid)

    def tell(self, reason: str, message: str, container: str = "", *, warns: bool = False) -> None:
        run = self.run
        one = run.container(container) if container else None
        field = ""
        if one is not None:
            field = f"spec.{'containers' if one.role == 'main' else 'initContainers'}{{{one.name}}}"
        meta = {"name": run.name, "namespace": run.namespace, "uid": run.uid}
        about = {"kind": "Pod", "apiVersion": "v1", "metadata": meta}
        type_: Literal["Normal", "Warning"] = "Warning" if warns else "Normal"
        self._parts.events.record(about, reason, message, type_=type_, host=self._parts.node, field=field)

    def spec_of(self, container: str) -> Obj:
        spec = self.pod["spec"]
        every = (*(spec.get("initContainers") or ()), *spec["containers"])
        found: Obj = next(one for one in every if one["name"] == container)
        return found

    async def launch_of(self, container: str) -> Launch:
        try:
            inputs = LaunchInputs(
                pod=self.pod,
                container=self.spec_of(container),
                folder=self.folder,
                node_address=self._parts.address,
                allocatable=self._parts.allocatable(),
                sources=await self._sources(),
                tokens=await self._tokens(),
                tell=self.tell,
                handler=self._handler,
                server=self._parts.server,
            )
            async with self._launching:
                launch = await self._launcher.launch(inputs)
        except MissingSourceError as error:
            raise StartRefused("CreateContainerConfigError", str(error)) from None
        except VolumeFault as fault:
            self.tell("FailedMount", str(fault), warns=True)
            raise StartRefused("ContainerCreating", str(fault), is_told=True) from None
        except OSError as error:
            words = f"{error.filename or self.folder}: {error.strerror}"
            raise StartRefused("CreateContainerError", words) from None
        except (TemporaryError, RefusedError) as error:
            raise StartRefused("CreateContainerConfigError", str(error)) from None
        self.run.ip = launch.address or self._parts.address
        return launch

    def last_words(self, key: RunKey, code: int) -> str:
        text = _end_of(termination_file(self.folder, key.container), _MESSAGE_BYTES)
        spec = self.spec_of(key.container)
        if not text and code and spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            logs = "".join(_end_of(path, _LOG_BYTES) for path in self.runtime.log_files(key))
            text = "\n".join(line.split(" ", 3)[-1] for line in logs.splitlines()[-_LOG_LINES:])
        return text[-_MESSAGE_BYTES:]

    async def end(self) -> None:
        """Free what the pod needs only while its containers run. Returns when it is done."""
        await self._until_done(self._launcher.end)

    async def remove(self) -> None:
        """Remove what the runtime has of the pod. Returns when it is done."""
        await self._until_done(self._launcher.remove)

    async def _until_done(self, step: Callable[[str, Path], Awaitable[None]]) -> None:
        while True:
            try:
                await step(self.run.uid, self.folder)
            except TemporaryError as error:
                await self.clock.sleep(error.delay_s)
            else:
                return

    async def _handler(self) -> str:
        name = self.pod["spec"].get("runtimeClassName")
        if not name:
            return ""
        return str((await self._parts.api.get(RUNTIME_CLASSES, "", name)).obj().get("handler") or "")

    async def _sources(self) -> Sources:
        found: dict[Reference, dict[str, bytes] | None] = {}
        for one in references_of(self.pod):
            if one in found:
                continue
            try:
                item = await self._parts.api.get(_KINDS[one.of], self.run.namespace, one.name)
                found[one] = values_in({"kind": _KINDS[one.of].name, **item.obj()})
            except NotFoundError:
                found[one] = None
        return found

    async def _tokens(self) -> dict[str, str]:
        account = self.pod["spec"].get("serviceAccountName") or "default"
        bound = {"kind": "Pod", "apiVersion": "v1", "name": self.run.name, "uid": self.run.uid}
        found: dict[str, str] = {}
        for audience, life_s in audiences_of(self.pod):
            wanted: Obj = {"expirationSeconds": life_s, "boundObjectRef": bound}
            if audience:
                wanted["audiences"] = [audience]
            body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": wanted}
            said = await self._parts.api.post(SERVICE_ACCOUNTS, self.run.namespace, account, "token", body)
            found[audience] = said["status"]["token"]
        return found


def _end_of(path: Path, most_bytes: int) -> str:
    """Of a file that the container can replace by anything; empty without one."""
    try:
        return read_foreign(path, most_bytes, is_end=True).decode(errors="replace")
    except OSError:
        return ""
