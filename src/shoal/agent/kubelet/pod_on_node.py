"""One pod of this node: what its containers are started with, and where its progress is stored and reported."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from shoal.agent.foreign_file import read_foreign
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.launches import Launcher, LaunchInputs, termination_file
from shoal.agent.kubelet.pod_store import PodStore, StoredPod
from shoal.agent.kubelet.pod_tokens import PodTokens
from shoal.agent.kubelet.runtime import Launch, PodRuntime, RunKey, StartRefused
from shoal.agent.kubelet.source_reader import SourceReader
from shoal.agent.kubelet.volumes import VolumeFault, has_content
from shoal.client.clock import Clock
from shoal.client.kind import Kind
from shoal.client.kubelet.environment import Surroundings
from shoal.client.kubelet.pod_facts import PodFacts
from shoal.client.kubelet.pod_fields import Addresses
from shoal.client.kubelet.pod_run import PodRun
from shoal.client.kubelet.probe_result import ProbeResult
from shoal.client.kubelet.references import MissingSourceError, references_of, volume_references_of
from shoal.client.port import Api
from shoal.client.recorder import Recorder
from shoal.client.refusals import RefusedError
from shoal.units.errors import TemporaryError

Obj = dict[str, Any]
_log = logging.getLogger("shoal.agent.kubelet")
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
        self.probed = Counter[ProbeResult]()
        self._launching = asyncio.Lock()
        """The containers of a pod share its volumes."""
        self._tokens = PodTokens(parts.api, parts.clock)
        self._last_fault = ""
        self.folder = parts.store.folder_of(run.uid)
        if run.stop_since_s is not None:
            self.stopping.set()

    @property
    def runtime(self) -> PodRuntime:
        return self._launcher.runtime

    @property
    def address(self) -> str:
        return self.run.ip or self._parts.address

    def follow(self, pod: Obj) -> bool:
        """Take over what may change of the object. Returns whether files in volumes may differ now."""
        before, self.facts = self.pod["metadata"], msgspec.convert(pod, PodFacts)
        self.pod = {**self.pod, "metadata": pod["metadata"]}
        return any(before.get(field) != pod["metadata"].get(field) for field in ("labels", "annotations"))

    async def update_volumes(self, reader: SourceReader) -> None:
        """Write the files that have changed since the first container was prepared. A fault is reported once, and the
        files stay as they are."""
        volumes = [one for one in self.pod["spec"].get("volumes") or () if has_content(one)]
        # While a container is prepared, which can take as long as its image, its volumes are written anyway.
        if not volumes or self._launching.locked() or not (self.folder / "volumes" / volumes[-1]["name"]).exists():
            return
        try:
            sources = await reader.read(self.run.namespace, volume_references_of(self.pod))
            addresses = Addresses(self.address, self._parts.address)
            around = Surroundings(addresses, self._parts.allocatable(), sources)
            tokens = await self._tokens.of(self.pod)
            async with self._launching:
                await self._launcher.refresh(self.pod, self.folder, around, tokens)
        except (VolumeFault, OSError) as fault:
            if str(fault) != self._last_fault:
                self.tell("FailedMount", str(fault), warns=True)
            self._last_fault = str(fault)
        except (TemporaryError, RefusedError) as error:
            _log.info("the volumes of pod %s/%s are not updated now: %s", self.run.namespace, self.run.name, error)
        else:
            self._last_fault = ""

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
                sources=await SourceReader(self._parts.api).read(self.run.namespace, references_of(self.pod)),
                tokens=await self._tokens.of(self.pod),
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


def _end_of(path: Path, most_bytes: int) -> str:
    """Of a file that the container can replace by anything; empty without one."""
    try:
        return read_foreign(path, most_bytes, is_end=True).decode(errors="replace")
    except OSError:
        return ""
