"""Labels are written to the Node, a file or a NodeFeature; what others wrote remains, faults are reported once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from build.custom_definitions import definition, version
from build.small_clusters import ADMIN, SmallCluster, small_cluster
from build.virtual_time import virtual
from shoal.agent.features.labelling import keep_written, write_once
from shoal.agent.features.nfd_file import NfdFile
from shoal.agent.features.node_feature import NODE_FEATURES, NodeFeatureObject, Owner
from shoal.agent.features.node_object import MANAGER, NodeObject
from shoal.client.kind import NODES, PODS, Kind
from shoal.client.port import Patch
from shoal.devices.node_metadata import NodeMetadata
from shoal.embedded.apiserver.inside.api import InsideApi
from shoal.units.errors import TemporaryError, UserError

COUNT, MEMORY = "nvidia.com/gpu.count", "nvidia.com/gpu.memory"
TOPOLOGY = "shoal.dev/topology"
FOUND = NodeMetadata({COUNT: "8", MEMORY: "81559"}, {TOPOLOGY: "{}"})
DEFINITIONS = Kind(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", is_namespaced=False
)


def agent(cluster: SmallCluster) -> InsideApi:
    return InsideApi(cluster.plane, ADMIN, MANAGER)


async def labels(cluster: SmallCluster) -> dict[str, str]:
    found: dict[str, str] = (await cluster.get(NODES, "n1"))["metadata"].get("labels") or {}
    return found


async def set_by(cluster: SmallCluster, manager: str, given: dict[str, str | None]) -> None:
    api = InsideApi(cluster.plane, ADMIN, manager)
    await api.patch(NODES, "", "n1", Patch("merge", {"metadata": {"labels": given}}))


@virtual
async def test_labels_and_annotations_are_added_to_those_of_others(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n1", "labels": {"team": "a"}}})
        assert await NodeObject(agent(cluster), "n1").write(FOUND) == "node n1: 3 labels and annotations changed"
        assert await NodeObject(agent(cluster), "n1").write(FOUND) == ""
        node = (await cluster.get(NODES, "n1"))["metadata"]
        assert node["labels"].items() >= {"team": "a", COUNT: "8", MEMORY: "81559"}.items()
        assert node["annotations"][TOPOLOGY] == "{}"


@virtual
async def test_only_own_labels_that_no_longer_apply_are_removed(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n1", "labels": {"nvidia.com/mig-3g.20gb.count": "2"}}})
        await NodeObject(agent(cluster), "n1").write(FOUND)
        # The agent was started again.
        await NodeObject(agent(cluster), "n1").write(NodeMetadata({COUNT: "8"}))
        node = (await cluster.get(NODES, "n1"))["metadata"]
        assert MEMORY not in node["labels"]
        assert TOPOLOGY not in (node.get("annotations") or {})
        assert node["labels"]["nvidia.com/mig-3g.20gb.count"] == "2"


@virtual
async def test_a_value_that_another_component_wrote_remains_and_is_named(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(NODES, {"metadata": {"name": "n1"}})
        # From the first apply on the server knows who writes what.
        await NodeObject(agent(cluster), "n1").write(NodeMetadata({MEMORY: "1"}))
        await set_by(cluster, "kubectl-label", {COUNT: "4"})
        said = await NodeObject(agent(cluster), "n1").write(FOUND)
        assert f"labels.{COUNT}: left to kubectl-label, which has written different values" in said
        assert (await labels(cluster)).items() >= {COUNT: "4", MEMORY: "81559"}.items()
        await set_by(cluster, "kubectl-label", {COUNT: None})
        await NodeObject(agent(cluster), "n1").write(FOUND)
        assert (await labels(cluster))[COUNT] == "8"


@virtual
async def test_no_node_is_created(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        with pytest.raises(UserError, match="the cluster has no node n1; name the node"):
            await NodeObject(agent(cluster), "n1").write(FOUND)
        assert await cluster.all(NODES) == []


def node_feature_definition() -> dict[str, Any]:
    crd = definition(
        version("v1alpha1", {"x-kubernetes-preserve-unknown-fields": True}, storage=True),
        plural="nodefeatures",
        kind="NodeFeature",
    )
    crd["metadata"]["name"] = "nodefeatures.nfd.k8s-sigs.io"
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}
    crd["spec"]["group"] = "nfd.k8s-sigs.io"
    return crd


@virtual
async def test_a_node_feature_names_its_node_and_belongs_to_the_pod_of_the_agent(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        await cluster.create(DEFINITIONS, node_feature_definition())
        set_of = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
        pod = {
            "metadata": {"name": "agent-x", "ownerReferences": [set_of]},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await cluster.create(PODS, pod)
        target = NodeFeatureObject(agent(cluster), "n1", Owner("default", "agent-x"))
        assert await target.write(FOUND) == "NodeFeature default/nvidia-features-for-n1: 2 labels"
        assert await target.write(FOUND) == ""
        written = await cluster.get(NODE_FEATURES, "nvidia-features-for-n1")
        assert written["metadata"]["labels"] == {"nfd.node.kubernetes.io/node-name": "n1"}
        assert [one["kind"] for one in written["metadata"]["ownerReferences"]] == ["DaemonSet", "Pod"]
        assert written["spec"]["labels"] == FOUND.labels
        assert await target.write(NodeMetadata({COUNT: "7"})) == "NodeFeature default/nvidia-features-for-n1: 1 labels"
        assert (await cluster.get(NODE_FEATURES, "nvidia-features-for-n1"))["spec"]["labels"] == {COUNT: "7"}


@virtual
async def test_without_node_feature_discovery_the_message_says_what_to_do(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        with pytest.raises(UserError, match="install Node Feature Discovery, or write labels on the Node"):
            await NodeFeatureObject(agent(cluster), "n1", Owner("default")).write(FOUND)


@pytest.mark.parametrize("is_lasting", [True, False])
@virtual
async def test_the_file_has_a_line_for_each_label_and_ends_with_the_agent_unless_it_lasts(
    tmp_path: Path, is_lasting: bool
) -> None:
    file = tmp_path / "features.d" / "gfd"
    target = NfdFile(file, is_lasting=is_lasting)
    assert await target.write(FOUND) == f"{file}: 2 labels"
    assert file.read_text() == f"{COUNT}=8\n{MEMORY}=81559\n"
    assert await target.write(FOUND) == ""
    assert [one.name for one in file.parent.iterdir()] == ["gfd"]
    await target.close()
    assert file.exists() == is_lasting


@virtual
async def test_a_file_that_cannot_be_written_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="give another file with --output-file"):
        await NfdFile(tmp_path / "file" / "gfd", is_lasting=True).write(FOUND)


class Recorded:
    """A target that a test can let fail."""

    def __init__(self) -> None:
        self.written: list[NodeMetadata] = []
        self.error: Exception | None = None

    async def write(self, found: NodeMetadata) -> str:
        if self.error is not None:
            raise self.error
        self.written.append(found)
        return ""

    async def close(self) -> None: ...


class Reports:
    def __init__(self) -> None:
        self.found = FOUND
        self.error: Exception | None = None

    async def read(self) -> NodeMetadata:
        if self.error is not None:
            raise self.error
        return self.found


async def kept(
    cluster: SmallCluster, interval_s: float | None, during: Callable[[Reports, Recorded], Any]
) -> tuple[Recorded, list[str]]:
    reports, target, told = Reports(), Recorded(), list[str]()
    task = asyncio.ensure_future(keep_written(reports.read, target, cluster.clock, interval_s, told.append))
    await cluster.clock.sleep(1)
    await during(reports, target)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return target, told


@virtual
async def test_a_change_is_written_within_seconds_and_everything_again_at_the_interval(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:

        async def during(reports: Reports, target: Recorded) -> None:
            assert target.written == [FOUND]
            reports.found = NodeMetadata({COUNT: "7"})
            await cluster.clock.sleep(6)
            assert target.written == [FOUND, reports.found]
            await cluster.clock.sleep(60)
            assert target.written == [FOUND, reports.found, reports.found]

        target, _ = await kept(cluster, 60.0, during)
        assert len(target.written) == 3


class ClockSetBack:
    """Its time is set back by an hour each time that it is asked for."""

    def __init__(self, clock: Any) -> None:
        self._clock, self._back_s = clock, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    def seconds(self) -> float:
        self._back_s += 3600.0
        return float(self._clock.seconds() - self._back_s)


@virtual
async def test_a_clock_that_is_set_back_does_not_delay_the_next_writing(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        reports, target, told = Reports(), Recorded(), list[str]()
        clock = ClockSetBack(cluster.clock)
        task = asyncio.ensure_future(keep_written(reports.read, target, clock, 60.0, told.append))
        await cluster.clock.sleep(130)
        task.cancel()
        assert len(target.written) == 3


@virtual
async def test_with_an_infinite_interval_only_changes_are_written(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        target, _ = await kept(cluster, None, lambda *_: cluster.clock.sleep(3600))
        assert target.written == [FOUND]


@virtual
async def test_a_fault_is_told_once_and_the_labels_are_written_when_it_is_over(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:

        async def during(reports: Reports, target: Recorded) -> None:
            reports.error = TemporaryError("the driver does not respond", 5)
            await cluster.clock.sleep(60)
            reports.error, target.error = None, UserError("the disk is full")
            await cluster.clock.sleep(60)
            target.error = None
            await cluster.clock.sleep(6)

        target, told = await kept(cluster, 30.0, during)
        assert told == [
            "the labels are not written: the driver does not respond",
            "the labels are not written: the disk is full",
        ]
        assert target.written == [FOUND, FOUND]


@virtual
async def test_once_says_what_changed_or_that_nothing_did(tmp_path: Path) -> None:
    told: list[str] = []
    target = NfdFile(tmp_path / "gfd", is_lasting=True)

    async def read() -> NodeMetadata:
        return NodeMetadata({COUNT: "8"}, left_out=("label x: bad",))

    for _ in range(2):
        await write_once(read, target, told.append)
    assert told == ["label x: bad", f"{tmp_path / 'gfd'}: 1 labels", "label x: bad", "the labels are up to date"]
