"""`why`, `top`, `get`, `queue` and `snapshot` on a living cluster: they say of it what they say of its snapshot."""

from __future__ import annotations

import asyncio
import json
import random
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from build.cluster_server import ServerProcess
from build.completed import offered
from build.gpu_queues import gpu_queue, gpu_workload, gpus
from build.manifests import Object, node, pod
from build.queue_manifests import flavor
from shoal.cli.main import main
from shoal.client import ecosystem_kinds as others
from shoal.client.http.api import KubeApi
from shoal.client.http.locate import locate
from shoal.client.kind import DEPLOYMENTS, NAMESPACES, NODES, PODS, SECRETS, Kind
from shoal.client.port import Api, Patch
from shoal.wiring.foreign_kinds import provide_foreign

HIDDEN = "hunter2"
INFERENCE_SERVICES = Kind("serving.kserve.io", "v1beta1", "inferenceservices", "InferenceService")
REFUSED = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
KINDS = {
    "ClusterQueue": others.CLUSTER_QUEUES,
    "LocalQueue": others.LOCAL_QUEUES,
    "ResourceFlavor": others.RESOURCE_FLAVORS,
    "Workload": others.WORKLOADS,
    "PodGroup": others.VOLCANO_POD_GROUPS,
    "Node": NODES,
    "Pod": PODS,
    "InferenceService": INFERENCE_SERVICES,
}


def telling_pod(name: str, gpus_asked: int, **more: Any) -> Object:
    made = pod(name, gpus_asked, **more)
    made["metadata"].setdefault("annotations", {})["example.com/token"] = HIDDEN
    made["spec"]["containers"][0] |= {"image": "x", "args": [HIDDEN], "env": [{"name": "T", "value": HIDDEN}]}
    return made


def said(message: str) -> Object:
    return {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}


def contents() -> Iterator[tuple[Kind, Object]]:
    """One node of eight GPUs, six of them taken; a pod that lacks two; a gang of a kind that is wrong; queues."""
    yield NAMESPACES, {"metadata": {"name": "t"}}
    yield NAMESPACES, {"metadata": {"name": "u"}}
    yield SECRETS, {"metadata": {"name": "s", "namespace": "t"}, "stringData": {"k": HIDDEN}}
    yield NODES, node("n", 8)
    yield PODS, telling_pod("t/old", 6, on="n")
    yield PODS, telling_pod("t/new", 4, schedulerName="shoal")
    yield PODS, telling_pod("u/new", 4, schedulerName="shoal")
    yield PODS, telling_pod("u/small", 1, schedulerName="shoal")
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "replicas": 0, "template": template}
    yield DEPLOYMENTS, {"metadata": {"name": "small", "namespace": "u"}, "spec": spec}
    group = {"minMember": 2, "networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    yield others.VOLCANO_POD_GROUPS, {"metadata": {"name": "odd", "namespace": "t"}, "spec": group}
    served = {"model": {"modelFormat": {"name": "x"}, "storageUri": "pvc://no-such-claim/x"}}
    yield INFERENCE_SERVICES, {"metadata": {"name": "llama", "namespace": "u"}, "spec": {"predictor": served}}
    for obj in (flavor(), *gpu_queue("t", gpus(8)), gpu_workload("t/queued", 2, 8)):
        yield KINDS[obj["kind"]], obj


async def until_served(api: Api) -> None:
    """Kinds of other projects are there a moment after the server is."""
    wanted = {(kind.group, kind.plural) for kind in KINDS.values()}
    for _ in range(2400):
        if not wanted - {(one.kind.group, one.kind.plural) for one in await api.served()}:
            return
        await asyncio.sleep(0.05)
    raise TimeoutError("the kinds of other projects are not there")


async def fill(kubeconfig: Path) -> None:
    api = KubeApi(locate(kubeconfig), random.Random(1))
    try:
        await provide_foreign(api)
        await until_served(api)
        for kind, obj in contents():
            await api.create(kind, obj)
        # Nodes are not ready as they come, whatever they say, and a controller would find out that this one is.
        await api.patch(NODES, "", "n", Patch("merge", {"spec": {"taints": None}}))
        status = {"status": {"conditions": [said(REFUSED)]}}
        await api.patch(PODS, "t", "new", Patch("merge", status), "status")
        await api.patch(PODS, "t", "old", Patch("merge", {"status": {"phase": "Running"}}), "status")
    finally:
        await api.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    server = ServerProcess(tmp_path_factory.mktemp("doors"), "--memory", "--authorization", "rbac")
    asyncio.run(fill(server.kubeconfig))
    yield server.kubeconfig
    server.stop()


class Doors:
    """Commands on the cluster, and on a snapshot of it."""

    def __init__(self, cluster: Path, snapshot: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.kubeconfig = cluster
        self.snapshot = snapshot
        self._capsys = capsys
        self.err = ""

    def living(self, *arguments: str, code: int = 0) -> str:
        return self._run([*arguments, "--kubeconfig", str(self.kubeconfig)], code)

    def kept(self, *arguments: str) -> str:
        if not self.snapshot.exists():
            self.living("snapshot", "--file", str(self.snapshot))
        return self._run([*arguments, "-f", str(self.snapshot)], 0)

    def _run(self, arguments: list[str], code: int) -> str:
        found = main(arguments)
        out, self.err = self._capsys.readouterr()
        assert found == code, self.err
        return out


@pytest.fixture
def doors(cluster: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Doors:
    """With one snapshot for all: nobody changes the cluster."""
    monkeypatch.setenv("COLUMNS", "100")
    return Doors(cluster, cluster.parent / "snapshot.json", capsys)


def words(text: str) -> str:
    return " ".join(text.split())


SAME: dict[str, tuple[str, ...]] = {
    "why of a pod that waits": ("why", "pod/new", "-n", "t"),
    "why of a pod that runs": ("why", "t/old"),
    "why of a workload": ("why", "wl/queued"),
    "why of a deployment": ("why", "deployment/small"),
    "why as a document": ("why", "t/new", "-o", "json"),
    "the quota tree": ("queue", "--workloads"),
    "one queue": ("queue", "t"),
    "what the GPUs do": ("top",),
    "and as documents": ("top", "-o", "yaml"),
    "the quota tree as a document": ("queue", "-o", "json"),
    "gangs": ("get", "gangs", "-A"),
    "queues": ("get", "queues", "-A", "-o", "wide"),
    "workloads": ("get", "workloads", "-A", "-o", "yaml"),
    "pods": ("get", "pods", "-A", "-o", "wide"),
    "pods by label": ("get", "pods", "-A", "-l", "!none", "-o", "name"),
    "nodes": ("get", "nodes"),
}


@pytest.mark.parametrize("arguments", SAME.values(), ids=SAME)
def test_a_cluster_and_its_snapshot_are_told_alike(arguments: tuple[str, ...], doors: Doors) -> None:
    told = doors.living(*arguments)
    assert told.strip()
    # A document of a live cluster also names the cluster, and so do commands that act on it.
    told = re.sub(r" --kubeconfig \S+", "", told)
    assert doors.kept(*arguments) == re.sub('^ ?"?cluster"?: .*\n', "", told, count=1, flags=re.MULTILINE)


def test_get_lists_the_namespace_of_the_context(doors: Doors) -> None:
    assert doors.living("get", "pods", "-o", "name") == ""
    doors.living("get", "pods")
    assert doors.err.splitlines()[-1] == "no pods found in namespace default; -A lists those of all namespaces"
    assert "pod/t/new" in doors.living("get", "pods", "-n", "t", "-o", "name")
    assert json.loads(doors.living("get", "pods", "-o", "json"))["cluster"].startswith("shoal (https://127.0.0.1:")


def test_the_pods_of_a_cluster_and_of_its_snapshot_are_packed_alike(doors: Doors) -> None:
    assert doors.living("pack", "--live", "--json", "--policy", "Shoal") == doors.kept(
        "pack", "--json", "--policy", "Shoal"
    )


def test_what_the_scheduler_said_stands_beside_what_would_help(doors: Doors) -> None:
    told = words(doors.living("why", "t/new"))
    assert told.startswith("t/new waits: NoDeviceFits asks 4 GPUs")
    assert f"scheduler shoal says: {REFUSED}" in told
    assert "nearest The nearest node is n: it has" in told


def test_a_scheduler_that_has_said_nothing_is_asked_about(doors: Doors) -> None:
    assert "shoal has said nothing of it yet; does it run?" in words(doors.living("why", "u/new"))


def test_what_would_happen_is_not_told_as_what_happened(doors: Doors) -> None:
    assert doors.living("why", "pod/small").startswith("u/small waits: by now it fits, on n")
    assert doors.living("why", "t/old").startswith("t/old runs on n\n")


def test_a_name_is_looked_for_in_the_namespace_of_the_context_first(doors: Doors) -> None:
    assert "no pod" not in doors.living("why", "pod/new", "-n", "u")
    doors.living("why", "pod/new", code=2)
    assert '"pod/new" is in several namespaces; name one of t/new, u/new' in doors.err
    doors.living("why", "small", code=2)
    assert '"u/small" is a pod and a deployment; say pod/small or deployment/small' in doors.err


def test_an_object_that_contradicts_others_is_named_and_keeps_nobody_from_looking(doors: Doors) -> None:
    doors.living("top")
    assert "PodGroup t/odd is left out: spec.networkTopology: no HyperNode" in doors.err
    doors.kept("decide", "--json")
    assert "t/odd" not in doors.snapshot.read_text()


def test_who_is_wrong_can_be_asked_about(doors: Doors) -> None:
    told = words(doors.living("why", "podgroup/odd", "-n", "t"))
    assert told.startswith("podgroup t/odd is not valid: Shoal decides nothing about it until it is corrected")
    assert "spec.networkTopology: no HyperNode" in told
    assert words(doors.living("why", "t/odd")) == told
    assert "left out" not in doors.err
    doors.living("why", "pod/odd", code=2)
    assert 'pod "odd" not found' in doors.err


@pytest.mark.parametrize("name", ["inferenceservice/llama", "inferenceservices.serving.kserve.io/u/llama"])
def test_an_object_that_no_decision_reads_is_told_of_by_what_is_there_of_it(name: str, doors: Doors) -> None:
    told = words(doors.living("why", name))
    assert told.startswith("inferenceservice u/llama exists and has no pods")
    assert "no decision reads it" in told


def test_names_that_the_cluster_has_are_completed(doors: Doors) -> None:
    at = ("--kubeconfig", str(doors.kubeconfig))
    assert offered("why", *at, "-n", "t", at="pod/n") == ["pod/new"]
    # Nothing else can be meant: a shell would set a space behind the slash.
    assert offered("why", *at, "-n", "u", at="dep") == ["deployment/small"]
    assert offered("queue", *at, "--name", at="") == ["t"]
    assert offered("cluster", "drain", *at, at="") == ["n"]
    assert {"t", "u"} <= set(offered("why", *at, "pod/new", "-n", at=""))


def test_a_snapshot_is_its_owners_and_holds_no_secret(doors: Doors, tmp_path: Path) -> None:
    doors.snapshot = tmp_path / "snapshot.json"
    doors.kept("top")
    assert stat.S_IMODE(doors.snapshot.stat().st_mode) == 0o600
    assert HIDDEN not in doors.snapshot.read_text()
    assert doors.living("snapshot") == doors.snapshot.read_text()


def test_a_snapshot_in_yaml_decides_alike(doors: Doors, tmp_path: Path) -> None:
    other = tmp_path / "snapshot.yaml"
    doors.living("snapshot", "--file", str(other))
    assert "objects, " in doors.err
    assert doors.living("snapshot", "-o", "yaml") == other.read_text()
    decided = json.loads(doors.kept("decide", "--json"))
    assert main(["decide", "--json", "-f", str(other)]) == 0
    assert decided["rounds"]
    assert json.loads(doors._capsys.readouterr().out) == decided


def test_a_file_behind_o_is_understood_for_one_release_with_a_warning(doors: Doors, tmp_path: Path) -> None:
    doors.living("snapshot", "-o", str(tmp_path / "old.json"))
    assert f"warning: -o is the format now, json or yaml: use --file {tmp_path / 'old.json'}" in doors.err
    assert json.loads((tmp_path / "old.json").read_text())["kind"] == "List"


def test_a_snapshot_is_not_written_over_what_is_no_file(doors: Doors, tmp_path: Path) -> None:
    doors.living("snapshot", "--file", str(tmp_path), code=2)
    assert "already exists and cannot be replaced" in doors.err
    doors.living("snapshot", "--file", str(tmp_path / "absent" / "file"), code=2)
    assert "cannot be written" in doors.err


def test_who_may_not_look_is_told_which_rule_lacks(doors: Doors, tmp_path: Path) -> None:
    content = yaml.safe_load(doors.kubeconfig.read_text())
    for user in content["users"]:
        user["user"]["as"] = "eve"
    doors.kubeconfig = tmp_path / "eve"
    doors.kubeconfig.write_text(yaml.safe_dump(content))
    assert doors.living("top", code=1) == ""
    assert 'User "eve" cannot list resource "nodes"' in doors.err
    assert "kubectl create clusterrolebinding shoal-list-nodes --clusterrole=shoal-list-nodes --user=eve" in doors.err


@pytest.mark.parametrize("command", [["why", "x"], ["top"], ["get", "gangs"], ["queue"], ["snapshot"]])
def test_without_a_cluster_there_is_one_line(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert main(command) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "no cluster is known" in err
