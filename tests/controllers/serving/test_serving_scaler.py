"""Model servers are scaled by their own metrics, against an API server in memory, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from build.small_clusters import ADMIN, SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.client.ecosystem_kinds import LEADER_WORKER_SETS
from shoal.client.item import Obj
from shoal.client.kind import AUTOSCALERS, DEFINITIONS, DEPLOYMENTS, PODS, Kind
from shoal.client.port import Patch
from shoal.controllers.serving.controller import serving_scaler
from shoal.controllers.serving.server_metrics import ServerMetrics
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.embedded.apiserver.inside.scaling import InsideScaling
from shoal.units.errors import TemporaryError

TEMPLATE: Obj = {"metadata": {"labels": {"app": "llm"}}, "spec": {"containers": [{"name": "c", "image": "vllm"}]}}
LWS = "leaderworkerset.sigs.k8s.io"


class Served:
    def __init__(self, cluster: SmallCluster, kind: Kind) -> None:
        self.cluster = cluster
        self.kind = kind
        self.texts: dict[str, str] = {}
        """What is behind each URL."""

    async def fetch(self, url: str) -> bytes:
        if url not in self.texts:
            raise TemporaryError(f"{url} cannot be asked", 1.0)
        return self.texts[url].encode()

    async def model(self, replicas: int, **annotations: str) -> None:
        written = {f"serving.shoal.dev/{name.replace('_', '-')}": text for name, text in annotations.items()}
        spec: Obj = {"replicas": replicas}
        if self.kind == DEPLOYMENTS:
            spec |= {"selector": {"matchLabels": {"app": "llm"}}, "template": TEMPLATE}
        else:
            spec |= {"leaderWorkerTemplate": {"size": 2, "workerTemplate": TEMPLATE}}
        await self.cluster.create(self.kind, {"metadata": {"name": "llm", "annotations": written}, "spec": spec})

    async def pod(self, number: int, running: int = 0, labels: dict[str, str] | None = None) -> None:
        """A pod that is ready, whose server has so many requests."""
        name, address = f"llm-{number}", f"10.0.0.{number}"
        meta = {"name": name, "labels": {"app": "llm", **(labels or {})}}
        await self.cluster.create(PODS, {"metadata": meta, "spec": TEMPLATE["spec"]})
        moment = self.cluster.clock.text()
        conditions = [
            {"type": one, "status": "True", "lastTransitionTime": moment} for one in ("PodScheduled", "Ready")
        ]
        status = {"status": {"phase": "Running", "podIP": address, "conditions": conditions}}
        await self.cluster.api.patch(PODS, "default", name, Patch("merge", status), "status")
        self.load(number, running)

    def load(self, number: int, running: int) -> None:
        text = f"vllm:num_requests_running {running}\nvllm:num_requests_waiting 0\n"
        self.texts[f"http://10.0.0.{number}:8000/metrics"] = text

    async def has(self, replicas: int) -> bool:
        return bool((await self.cluster.get(self.kind, "llm"))["spec"].get("replicas", 0) == replicas)

    async def status(self) -> str:
        annotations: dict[str, str] = (await self.cluster.get(self.kind, "llm"))["metadata"]["annotations"]
        return annotations.get("serving.shoal.dev/status", "")

    async def says(self, words: str) -> bool:
        return words in await self.status()

    async def messages(self) -> list[str]:
        return [one["message"] for one in await self.cluster.events("llm")]


@asynccontextmanager
async def served(folder: Path, kind: Kind = DEPLOYMENTS) -> AsyncIterator[Served]:
    async with small_cluster(folder) as cluster:
        for definition in definitions():
            if definition["spec"]["group"] == kind.group:
                await cluster.create(DEFINITIONS, definition)
        found = Served(cluster, kind)
        scaling = InsideScaling(cluster.plane, ADMIN, "serving-scaler")
        cluster.start(lambda context: serving_scaler(context, kind, scaling, ServerMetrics(found.fetch)))
        yield found


@virtual
async def test_a_model_grows_with_its_requests_and_says_why(tmp_path: Path) -> None:
    async with served(tmp_path) as found:
        await found.model(1, max_replicas="4", target_concurrency="10")
        await found.pod(1, running=25)
        await found.cluster.until(lambda: found.has(3))
        assert (
            "Scaled Deployment default/llm from 1 to 3 replicas: 25 requests, 10 for each replica"
            in await found.messages()
        )
        await found.cluster.until(lambda: found.says("3 replicas: "))
        found.load(1, 500)
        await found.cluster.until(lambda: found.has(4))
        await found.cluster.until(lambda: found.says("4 replicas: "))


@virtual
async def test_a_model_shrinks_when_its_load_stays_low(tmp_path: Path) -> None:
    async with served(tmp_path) as found:
        await found.model(2, max_replicas="4", window="2m")
        for number in (1, 2):
            await found.pod(number)
        await found.cluster.until(lambda: found.says("one replica may go if the load stays low for 120 s"))
        await found.cluster.pass_time(60)
        assert await found.has(2)
        await found.cluster.until(lambda: found.has(1), within_s=120)
        assert any("the load stayed low for 120 s" in one for one in await found.messages())


@virtual
async def test_a_server_that_does_not_answer_keeps_the_size(tmp_path: Path) -> None:
    async with served(tmp_path) as found:
        await found.model(2, max_replicas="4", window="0s")
        for number in (1, 2):
            await found.pod(number)
        del found.texts["http://10.0.0.2:8000/metrics"]
        await found.cluster.until(lambda: found.says("the load of a replica is not known"))
        await found.cluster.pass_time(600)
        assert await found.has(2)


@virtual
async def test_an_annotation_that_cannot_be_read_scales_nothing_and_is_named(tmp_path: Path) -> None:
    async with served(tmp_path) as found:
        await found.model(1, max_replicas="4", window="soon")
        await found.pod(1, running=100)
        await found.cluster.until(lambda: found.says('not scaled: annotation serving.shoal.dev/window: "soon"'))
        assert await found.has(1)
        patch = Patch("merge", {"metadata": {"annotations": {"serving.shoal.dev/window": "1m"}}})
        await found.cluster.api.patch(DEPLOYMENTS, "default", "llm", patch)
        await found.cluster.until(lambda: found.has(4))


@virtual
async def test_a_target_of_another_autoscaler_is_left_alone(tmp_path: Path) -> None:
    async with served(tmp_path) as found:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llm"}
        spec = {"scaleTargetRef": target, "maxReplicas": 3}
        await found.cluster.create(AUTOSCALERS, {"metadata": {"name": "other"}, "spec": spec})
        await found.model(1, max_replicas="4")
        await found.pod(1, running=100)
        await found.cluster.until(lambda: found.says("HorizontalPodAutoscaler other scales the same target"))
        assert await found.has(1)


@virtual
async def test_without_the_annotation_nothing_is_asked(tmp_path: Path) -> None:
    async with served(tmp_path) as found:
        await found.model(1, min_replicas="3")
        await found.pod(1, running=100)
        await found.cluster.pass_time(100)
        assert await found.has(1)
        assert await found.status() == ""


@virtual
async def test_a_replica_of_a_leader_worker_set_is_a_whole_group(tmp_path: Path) -> None:
    async with served(tmp_path, LEADER_WORKER_SETS) as found:
        await found.model(2, max_replicas="4", target_concurrency="10")

        def labels(group: int, worker: int) -> dict[str, str]:
            return {f"{LWS}/name": "llm", f"{LWS}/group-index": str(group), f"{LWS}/worker-index": str(worker)}

        for number, (group, worker) in enumerate(((0, 0), (0, 1), (1, 0)), 1):
            await found.pod(number, 15 if worker == 0 else 1000, labels(group, worker))
        await found.cluster.until(lambda: found.says("replicas are starting"))
        assert await found.has(2)
        await found.pod(4, 1000, labels(1, 1))
        await found.cluster.until(lambda: found.has(3))
        assert any("30 requests" in one for one in await found.messages())
