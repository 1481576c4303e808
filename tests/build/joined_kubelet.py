"""The kubelet of a joined machine in virtual time: its network can be cut, and its process killed and started again.

Pods "run" in a runtime that outlives the kubelet, as processes do.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from build.small_clusters import SmallCluster
from shoal.agent.kubelet.gpus import NodeGpus
from shoal.agent.kubelet.kubelet import Kubelet
from shoal.agent.kubelet.launches import LaunchInputs
from shoal.agent.kubelet.machine import ThisMachine
from shoal.agent.kubelet.node import NodeDescription, NodeOfThisMachine
from shoal.agent.kubelet.own_objects import OwnObjectsApi
from shoal.agent.kubelet.pod_on_node import NodeParts
from shoal.agent.kubelet.pod_store import PodStore
from shoal.agent.kubelet.runtime import ByteStream, Command, Consumption, Exit, Launch, RunKey, Started, StartRefused
from shoal.agent.kubelet.volumes import Tokens
from shoal.client.clock import Clock
from shoal.client.context import Context
from shoal.client.informers import Informers
from shoal.client.item import Item, Listed, Obj
from shoal.client.kind import Kind
from shoal.client.kubelet.environment import Surroundings
from shoal.client.port import EVERYTHING, GENTLY, Api, Batches, Deletion, Patch, Select, ServedKind
from shoal.client.recorder import Recorder
from shoal.client.refusals import NO_ANSWER, BusyError
from shoal.client.write_through import WriteThroughApi
from shoal.embedded.apiserver.calls import Actor
from shoal.embedded.apiserver.inside.api import InsideApi

T = TypeVar("T")


class CutApi:
    """Any Api whose calls get no answer while it is cut; open watches end."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._cut = asyncio.Event()

    def cut(self) -> None:
        self._cut.set()

    def heal(self) -> None:
        self._cut.clear()

    async def _asked(self, call: Callable[[], Awaitable[T]]) -> T:
        if self._cut.is_set():
            raise BusyError("no route to host", reason=NO_ANSWER)
        return await call()

    async def get(self, kind: Kind, namespace: str, name: str) -> Item:
        return await self._asked(lambda: self._api.get(kind, namespace, name))

    async def list(self, kind: Kind, namespace: str = "", select: Select = EVERYTHING) -> Listed:
        return await self._asked(lambda: self._api.list(kind, namespace, select))

    async def watch(self, kind: Kind, since: int, namespace: str = "", select: Select = EVERYTHING) -> Batches:
        batches = self._api.watch(kind, since, namespace, select)
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            while True:
                batch = asyncio.ensure_future(anext(batches, None))
                await asyncio.wait((batch, cut), return_when=asyncio.FIRST_COMPLETED)
                if self._cut.is_set():
                    batch.cancel()
                    await asyncio.gather(batch, return_exceptions=True)
                    raise BusyError("connection reset", reason=NO_ANSWER)
                found = batch.result()
                if found is None:
                    return
                yield found
        finally:
            cut.cancel()
            with suppress(RuntimeError):
                await batches.aclose()

    async def create(self, kind: Kind, obj: Obj) -> Item:
        return await self._asked(lambda: self._api.create(kind, obj))

    async def update(self, kind: Kind, obj: Obj, subresource: str = "") -> Item:
        return await self._asked(lambda: self._api.update(kind, obj, subresource))

    async def patch(self, kind: Kind, namespace: str, name: str, patch: Patch, subresource: str = "") -> Item:
        return await self._asked(lambda: self._api.patch(kind, namespace, name, patch, subresource))

    async def delete(self, kind: Kind, namespace: str, name: str, how: Deletion = GENTLY) -> Item | None:
        return await self._asked(lambda: self._api.delete(kind, namespace, name, how))

    async def post(self, kind: Kind, namespace: str, name: str, subresource: str, obj: Obj) -> Obj:
        return await self._asked(lambda: self._api.post(kind, namespace, name, subresource, obj))

    async def served(self) -> tuple[ServedKind, ...]:
        return await self._asked(self._api.served)

    async def close(self) -> None:
        await self._api.close()


class MemoryRuntime:
    """Implements `PodRuntime`: a container runs until it is stopped."""

    name = "memory"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.starts: list[RunKey] = []
        self._ends: dict[RunKey, asyncio.Future[Exit]] = {}

    @property
    def running(self) -> list[str]:
        """The uids of pods with a running container."""
        return [key.pod for key, end in self._ends.items() if not end.done()]

    async def start(self, key: RunKey, launch: Launch) -> Started:
        if key not in self._ends:
            self.starts.append(key)
            self._ends[key] = asyncio.get_running_loop().create_future()
        return Started()

    async def find(self, key: RunKey) -> Started | None:
        return Started() if key in self._ends else None

    async def wait(self, key: RunKey) -> Exit:
        return await asyncio.shield(self._ends[key])

    async def stop(self, key: RunKey, grace_s: float) -> None:
        end = self._ends.get(key)
        if end is not None and not end.done():
            end.set_result(Exit(143, 0.0, self._clock.seconds()))

    async def run(self, key: RunKey, command: Sequence[str], *, tty: bool = False, is_short: bool = False) -> Command:
        raise StartRefused("", "no commands")

    def log_files(self, key: RunKey) -> Sequence[Path]:
        return ()

    async def attach(self, key: RunKey, *, has_input: bool, tty: bool) -> Command:
        raise AssertionError(key)

    async def written(self, keys: Sequence[RunKey]) -> Mapping[RunKey, int]:
        raise AssertionError(keys)

    async def consumption(self, keys: Sequence[RunKey]) -> Mapping[RunKey, Consumption]:
        return {key: Consumption(self._clock.seconds(), 0.0, 0) for key in keys}

    async def forward_ports(self, pod: str) -> ByteStream:
        raise AssertionError(pod)

    async def remove(self, pod: str) -> None:
        assert pod not in self.running


class MemoryLauncher:
    """Implements `Launcher`."""

    def __init__(self, runtime: MemoryRuntime) -> None:
        self.runtime = runtime

    async def launch(self, inputs: LaunchInputs) -> Launch:
        return Launch((), {}, inputs.folder)

    async def refresh(self, pod: dict[str, Any], folder: Path, around: Surroundings, tokens: Tokens) -> None: ...

    async def end(self, uid: str, folder: Path) -> None: ...

    async def remove(self, uid: str, folder: Path) -> None:
        await self.runtime.remove(uid)


class JoinedKubelet:
    def __init__(self, cluster: SmallCluster, folder: Path, name: str) -> None:
        actor = Actor(f"system:node:{name}", ("system:nodes", "system:authenticated"))
        self.network = CutApi(InsideApi(cluster.plane, actor, "kubelet"))
        self.runtime = MemoryRuntime(cluster.clock)
        self._cluster, self._folder, self._name = cluster, folder / name, name
        self._tasks: list[asyncio.Task[Any]] = []

    def start(self) -> None:
        """A new process, with the state of the former one."""
        clock, random_ = self._cluster.clock, random.Random(1)
        informers = Informers(OwnObjectsApi(self.network, self._name), clock, random_)
        events = Recorder(self.network, clock, "kubelet")
        context = Context("kubelet", WriteThroughApi(self.network, informers), informers, clock, random_, events)
        machine = ThisMachine(self._name, 4, 8 << 30, 1 << 40, "192.0.2.9")
        described = NodeDescription(machine, self.runtime.name)
        kubelets: list[Kubelet] = []
        parts = NodeParts(
            context.api,
            clock,
            lambda _: MemoryLauncher(self.runtime),
            NodeGpus(None),
            PodStore(self._folder),
            events,
            self._name,
            machine.address,
            described.allocatable,
            lambda uid: kubelets[0].report(uid),
        )
        node = NodeOfThisMachine(context.api, clock, lambda: described)
        kubelets.append(Kubelet(context, parts, node, lambda _: None))
        self._tasks = [asyncio.ensure_future(run()) for run in (informers.run, kubelets[0].run, events.run)]

    async def kill(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
