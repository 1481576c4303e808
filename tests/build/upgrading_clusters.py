"""A small cluster with a ClusterPolicy, nodes, driver and validator pods, and the controller of driver upgrades.

async with upgrading_cluster(tmp_path, "gpu-0", "gpu-1") as run:
    await run.set_policy(maxParallelUpgrades=1)
    await run.publish("2")
    await run.until_all("upgrade-done")
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from build.small_clusters import SmallCluster, small_cluster
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import CLUSTER_POLICIES, NVIDIA_DRIVERS
from shoal.client.informers import Informers
from shoal.client.item import Item, Obj
from shoal.client.kind import CONTROLLER_REVISIONS, DAEMON_SETS, DEFINITIONS, NODES, PODS, Kind
from shoal.client.port import Api, Deletion
from shoal.client.recorder import Recorder
from shoal.client.refusals import NotFoundError
from shoal.client.served import Served
from shoal.client.write_through import WriteThroughApi
from shoal.controllers.driver_upgrades.controller import DriverUpgrades
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.apiserver.settings import AuthorizationMode
from shoal.operator.upgrades.states import STATE_LABEL

DRIVER_APP, VALIDATOR_APP = {"app": "nvidia-driver-daemonset"}, {"app": "nvidia-operator-validator"}
HASH = "controller-revision-hash"


class _Upgrades:
    """The controller, with the search for served kinds that `shoal run` does beside it."""

    def __init__(self, context: Context) -> None:
        self.name = context.name
        self._served = Served(context)
        self.upgrades = DriverUpgrades(context, self._served)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._served.run())
            group.create_task(self.upgrades.run())


def upgrades_controller(context: Context) -> Controller:
    return _Upgrades(context)


class UpgradingCluster:
    def __init__(self, cluster: SmallCluster) -> None:
        self.cluster = cluster
        self.current = "1"
        """The revision of the DaemonSet."""
        self.ready_after_s = 5.0
        self.broken: set[str] = set()
        """Nodes on which the new driver crashes."""
        self.worst_unavailable = 0
        """The most nodes that were unschedulable at once."""
        self.sets: dict[str, str] = {}
        """The uids of the DaemonSets."""
        self._tasks: list[asyncio.Task[Any]] = []
        self._process: _Upgrades | None = None

    # -- the objects --------------------------------------------------------------------------------------------------

    async def set_policy(self, **fields: Any) -> None:
        spec = {"driver": {"upgradePolicy": {"autoUpgrade": True, **fields}}}
        await self.cluster.create(CLUSTER_POLICIES, {"metadata": {"name": "cluster-policy"}, "spec": spec})

    async def add_nvidia_driver(self, name: str, written: Any, nodes: str) -> None:
        """An NVIDIADriver with this upgrade policy, for the nodes with the label `pool` of this value, and its
        DaemonSet."""
        spec = {"nodeSelector": {"pool": nodes}, **({} if written is None else {"upgradePolicy": written})}
        made = await self.cluster.create(NVIDIA_DRIVERS, {"metadata": {"name": name}, "spec": spec})
        owner = {"apiVersion": "nvidia.com/v1alpha1", "kind": "NVIDIADriver", "name": name}
        owners = [{**owner, "uid": made["metadata"]["uid"], "controller": True}]
        labels = {**DRIVER_APP, "pool": name}
        pod = {"nodeSelector": {"pool": nodes}, "containers": [{"name": "c", "image": "x"}]}
        body = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
        await self.cluster.create(DAEMON_SETS, {"metadata": {"name": name, "ownerReferences": owners}, "spec": body})

    async def publish(self, revision: str) -> None:
        """The DaemonSet of the driver gets a new revision."""
        self.current = revision
        await self._revision("driver", revision)

    async def node(self, name: str) -> Obj:
        return await self.cluster.get(NODES, name)

    async def states(self) -> dict[str, str]:
        nodes = await self.cluster.all(NODES)
        return {one["metadata"]["name"]: (one["metadata"].get("labels") or {}).get(STATE_LABEL, "") for one in nodes}

    async def until_all(self, state: str, within_s: float = 600.0) -> None:
        async def is_so() -> bool:
            return set((await self.states()).values()) == {state}

        await self.cluster.until(is_so, within_s)

    async def drivers(self) -> dict[str, str]:
        """The revision of the driver pod of each node."""
        return {
            one["spec"]["nodeName"]: one["metadata"]["labels"][HASH]
            for one in await self.cluster.pods()
            if _app(one) == DRIVER_APP["app"]
        }

    async def add_pod(self, name: str, node: str, *, gpus: int = 0, owner: str = "ReplicaSet", **more: Any) -> None:
        """A running pod of a workload."""
        metadata: Obj = {"name": name, "labels": more.pop("labels", {}), "annotations": more.pop("annotations", {})}
        if owner:
            one = {"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "u-o", "controller": True}
            metadata["ownerReferences"] = [one]
        limits = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
        containers = [{"name": "main", "image": "x", **limits}]
        # The pod ends as soon as it is evicted, since no kubelet is here.
        spec = {"nodeName": node, "containers": containers, "terminationGracePeriodSeconds": 0, **more}
        await self.cluster.create(PODS, {"metadata": metadata, "spec": spec})
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await self.cluster.patch(PODS, name, {"status": ready}, subresource="status")

    # -- the other programs -------------------------------------------------------------------------------------------

    async def prepare(self, names: tuple[str, ...], *, has_validator: bool) -> None:
        kinds = {
            "clusterpolicies.nvidia.com",
            "nvidiadrivers.nvidia.com",
            "misplacedclusterpolicies.config.openshift.io",
        }
        for definition in definitions():
            if definition["metadata"]["name"] in kinds:
                await self.cluster.create(DEFINITIONS, definition)
        for set_name, labels in (("driver", DRIVER_APP), *((("validator", VALIDATOR_APP),) if has_validator else ())):
            template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
            spec = {"selector": {"matchLabels": labels}, "template": template, "updateStrategy": {"type": "OnDelete"}}
            made = await self.cluster.create(DAEMON_SETS, {"metadata": {"name": set_name}, "spec": spec})
            self.sets[set_name] = made["metadata"]["uid"]
            observed = {"observedGeneration": 1, "currentNumberScheduled": 0, "numberMisscheduled": 0}
            status: Obj = {**observed, "desiredNumberScheduled": 0, "numberReady": 0}
            await self.cluster.patch(DAEMON_SETS, set_name, {"status": status}, subresource="status")
        await self._revision("driver", "1")
        for name in names:
            node_status: Obj = {
                "conditions": [{"type": "Ready", "status": "True"}],
                "capacity": {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"},
            }
            node_status["allocatable"] = node_status["capacity"]
            await self.cluster.create(NODES, {"metadata": {"name": name}, "status": node_status})
        await self.play_daemon_sets()

    async def _revision(self, owner: str, revision: str) -> None:
        reference = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": owner, "uid": self.sets[owner]}
        metadata = {
            "name": f"{owner}-{revision}",
            "labels": {HASH: revision},
            "ownerReferences": [{**reference, "controller": True}],
        }
        body = {"metadata": metadata, "revision": int(revision), "data": {"spec": {}}}
        await self.cluster.create(CONTROLLER_REVISIONS, body)

    async def play_daemon_sets(self) -> None:
        """What the DaemonSet controller and the kubelets do in a moment."""
        nodes = await self.cluster.all(NODES)
        unschedulable = sum(bool(one["spec"].get("unschedulable")) for one in nodes)
        self.worst_unavailable = max(self.worst_unavailable, unschedulable)
        pods = await self.cluster.pods()
        for set_name, labels in (("driver", DRIVER_APP), ("validator", VALIDATOR_APP)):
            if set_name not in self.sets:
                continue
            own = {one["spec"]["nodeName"]: one for one in pods if _app(one) == labels["app"]}
            for node in nodes:
                name = node["metadata"]["name"]
                await self._play(set_name, labels, name, own.get(name))

    async def _play(self, set_name: str, labels: dict[str, str], node: str, pod: Obj | None) -> None:
        if pod is None:
            reference = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": set_name, "uid": self.sets[set_name]}
            metadata = {
                "generateName": f"{set_name}-",
                "labels": {**labels, HASH: self.current if set_name == "driver" else "1"},
                "ownerReferences": [{**reference, "controller": True}],
            }
            spec = {"nodeName": node, "containers": [{"name": "c", "image": "x"}], "terminationGracePeriodSeconds": 0}
            await self.cluster.create(PODS, {"metadata": metadata, "spec": spec})
            return
        meta = pod["metadata"]
        if meta.get("deletionTimestamp"):
            await self.cluster.delete(PODS, meta["name"], Deletion(grace_s=0))
            return
        statuses = pod["status"].get("containerStatuses")
        is_broken = set_name == "driver" and node in self.broken and meta["labels"][HASH] != "1"
        if statuses and (statuses[0]["ready"] or is_broken):
            return
        age_s = self.cluster.clock.seconds() - _seconds(meta["creationTimestamp"])
        if age_s >= self.ready_after_s:
            status = {"name": "c", "image": "x", "imageID": "", "ready": not is_broken}
            status["restartCount"] = 11 if is_broken else 0
            body = {"status": {"phase": "Running", "containerStatuses": [status]}}
            await self.cluster.patch(PODS, meta["name"], body, subresource="status")

    async def play(self) -> None:
        while True:
            try:
                await self.play_daemon_sets()
            except NotFoundError:
                continue
            await self.cluster.pass_time(1.0)

    # -- the controller -----------------------------------------------------------------------------------------------

    def start(self, api: Api | None = None) -> asyncio.Task[Any]:
        """One process with caches of its own."""
        port = api or self.cluster.api
        informers = Informers(port, self.cluster.clock, self.cluster.draw)
        recorder = Recorder(self.cluster.api, self.cluster.clock, "shoal-operator")
        context = Context(
            "shoal-driver-upgrades",
            WriteThroughApi(port, informers),
            informers,
            self.cluster.clock,
            self.cluster.draw,
            recorder,
        )
        self._process = _Upgrades(context)
        main = asyncio.ensure_future(self._process.run())
        self._tasks += [main, asyncio.ensure_future(informers.run()), asyncio.ensure_future(recorder.run())]
        return main

    def upgrades(self) -> DriverUpgrades:
        """The controller of the process that was started last."""
        assert self._process is not None
        return self._process.upgrades

    async def kill(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _app(pod: Obj) -> str:
    return str((pod["metadata"].get("labels") or {}).get("app", ""))


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@asynccontextmanager
async def upgrading_cluster(
    folder: Path,
    *names: str,
    has_validator: bool = True,
    is_started: bool = True,
    authorization: AuthorizationMode = "always-allow",
) -> AsyncIterator[UpgradingCluster]:
    async with small_cluster(folder, authorization=authorization) as cluster:
        run = UpgradingCluster(cluster)
        await run.prepare(names or ("gpu-0", "gpu-1", "gpu-2"), has_validator=has_validator)
        playing = asyncio.ensure_future(run.play())
        if is_started:
            run.start()
        try:
            yield run
        finally:
            await run.kill()
            playing.cancel()
            done = await asyncio.gather(playing, return_exceptions=True)
            assert not [one for one in done if not isinstance(one, asyncio.CancelledError)], done


class KilledError(BaseException):
    """The end of the process."""


class KilledAtWrite:
    """A port whose process is killed at one of its writes: before the server gets it, or after."""

    def __init__(self, api: Api, number: int, killed: Callable[[], None], *, is_after: bool) -> None:
        self._api = api
        self._left = number
        self._killed = killed
        self._is_after = is_after
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        known = getattr(self._api, name)
        if name not in ("create", "update", "patch", "delete", "post"):
            return known

        async def write(kind: Kind, *asked: Any) -> Item:
            self.writes += 1
            self._left -= 1
            if self._left < 0:
                raise KilledError
            if self._left == 0 and not self._is_after:
                self._killed()
                raise KilledError
            found: Item = await known(kind, *asked)
            if self._left == 0:
                self._killed()
                raise KilledError
            return found

        return write
