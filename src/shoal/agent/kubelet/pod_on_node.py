"""One pod of this node: what its containers are started with, and where its progress is stored and reported."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from shoal.agent.foreign_file import read_foreign
from shoal.agent.kubelet.environment import Surroundings, command_of, environment_of
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.pod_store import PodStore, StoredPod
from shoal.agent.kubelet.references import MissingSourceError, Reference, Sources, references_of, values_in
from shoal.agent.kubelet.runtime import ContainerLimits, Launch, PodRuntime, RunKey, StartRefused
from shoal.agent.kubelet.volumes import VolumeFault, audiences_of, provide
from shoal.client.clock import Clock
from shoal.client.kind import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS
from shoal.client.kubelet.pod_facts import PodFacts
from shoal.client.kubelet.pod_run import PodRun
from shoal.client.port import Api
from shoal.client.recorder import Recorder
from shoal.client.refusals import NotFoundError, RefusedError
from shoal.units.errors import TemporaryError, UserError
from shoal.units.quantity import Quantity

Obj = dict[str, Any]
_log = logging.getLogger("shoal.agent.kubelet")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KINDS = {"configmap": CONFIG_MAPS, "secret": SECRETS}
_MESSAGE_BYTES, _LOG_LINES, _LOG_BYTES = 4096, 80, 64 * 1024


class NodeParts(msgspec.Struct, frozen=True):
    """What all pods of the node share."""

    api: Api
    clock: Clock
    runtime: PodRuntime
    gpus: NodeGpus
    store: PodStore
    events: Recorder
    node: str
    address: str
    allocatable: Callable[[], dict[str, str]]
    report: Callable[[str], None]
    """Write the status of a pod, by uid."""


class PodOnNode:
    """Implements `PodScene`."""

    def __init__(self, parts: NodeParts, pod: Obj, run: PodRun) -> None:
        self._parts = parts
        self.pod = pod
        self.run = run
        self.facts = msgspec.convert(pod, PodFacts)
        self.clock, self.runtime, self.address = parts.clock, parts.runtime, parts.address
        self.stopping = asyncio.Event()
        self.folder = parts.store.folder_of(run.uid)
        if run.stop_since_s is not None:
            self.stopping.set()

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
        spec = self.spec_of(container)
        try:
            around = Surroundings(self.address, self._parts.allocatable(), await self._sources())
            tokens = await self._tokens()
            paths = await asyncio.to_thread(provide, self.pod, self.folder / "volumes", around, tokens)
            work = self.folder / "work"
            work.mkdir(parents=True, exist_ok=True)
            mounts = _linked(self.folder / "mounts" / container, spec, paths)
            given = self._given(container, work, self.folder / "mounts" / container, mounts)
            environment = environment_of(self.pod, spec, msgspec.structs.replace(around, given=given))
        except MissingSourceError as error:
            raise StartRefused("CreateContainerConfigError", str(error)) from None
        except VolumeFault as fault:
            self.tell("FailedMount", str(fault), warns=True)
            raise StartRefused("ContainerCreating", str(fault)) from None
        except OSError as error:
            words = f"{error.filename or self.folder}: {error.strerror}"
            raise StartRefused("CreateContainerError", words) from None
        except (TemporaryError, RefusedError) as error:
            raise StartRefused("CreateContainerConfigError", str(error)) from None
        folder = Path(spec["workingDir"]) if spec.get("workingDir") else work
        return Launch(command_of(spec, environment), environment, folder, limits_of(spec), spec.get("image", ""))

    def last_words(self, key: RunKey, code: int) -> str:
        spec = self.spec_of(key.container)
        text = _end_of(self.folder / f"termination-{key.container}", _MESSAGE_BYTES)
        if not text and code and spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            logs = "".join(_end_of(path, _LOG_BYTES) for path in self.runtime.log_files(key))
            text = "\n".join(line.split(" ", 3)[-1] for line in logs.splitlines()[-_LOG_LINES:])
        return text[-_MESSAGE_BYTES:]

    def _given(self, container: str, work: Path, root: Path, mounts: dict[str, Path]) -> dict[str, str]:
        message = self.folder / f"termination-{container}"
        message.unlink(missing_ok=True)
        spec = self.pod["spec"]
        return {
            "PATH": _PATH,
            "HOME": str(work),
            "HOSTNAME": spec.get("hostname") or self.run.name,
            "SHOAL_MOUNTS": str(root),
            "SHOAL_TERMINATION_LOG": str(message),
            **{f"SHOAL_MOUNT_{_variable(name)}": str(path) for name, path in mounts.items()},
            **self._parts.gpus.environment(self.run.uid, container),
        }

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


def limits_of(container: Obj) -> ContainerLimits:
    limits = (container.get("resources") or {}).get("limits") or {}

    def nano(resource: str) -> int | None:
        try:
            return Quantity.parse(str(limits[resource])).nano if resource in limits else None
        except UserError:
            return None

    cpu, memory = nano("cpu"), nano("memory")
    return ContainerLimits(
        None if cpu is None else -(-cpu // 1_000_000), None if memory is None else -(-memory // 1_000_000_000)
    )


def _linked(root: Path, container: Obj, volumes: dict[str, Path]) -> dict[str, Path]:
    """Links at the mount paths below `root`; returns where each volume is."""
    found: dict[str, Path] = {}
    for mount in container.get("volumeMounts") or ():
        link = root / mount["mountPath"].strip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(volumes[mount["name"]])
        found[mount["name"]] = volumes[mount["name"]]
    return found


def _variable(name: str) -> str:
    return name.upper().replace("-", "_").replace(".", "_")


def _end_of(path: Path, most_bytes: int) -> str:
    """Of a file that the container can replace by anything; empty without one."""
    try:
        return read_foreign(path, most_bytes, is_end=True).decode(errors="replace")
    except OSError:
        return ""
