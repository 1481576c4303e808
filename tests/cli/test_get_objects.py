"""`shoal get`: what its rows have of their objects: the head, fields to select and sort by."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from build.gpu_queues import gpu_job, gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, job, node, pod, volcano_group
from build.queue_manifests import flavor
from shoal.cli.main import main

GROUP = "scheduling.k8s.io/group-name"


class Get:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def text(self, what: str, *options: str, objects: Sequence[Object]) -> str:
        assert main(["get", *what.split(), "-f", as_file(self._folder, *objects), *options]) == 0
        return self._capsys.readouterr().out

    def json(self, what: str, *options: str, objects: Sequence[Object]) -> Any:
        return json.loads(self.text(what, *options, "-o", "json", objects=objects))

    def names(self, what: str, *options: str, objects: Sequence[Object]) -> list[str]:
        return self.text(what, *options, "-o", "jsonpath={.items[*].metadata.name}", objects=objects).split()

    def wrong(self, what: str, *options: str, objects: Sequence[Object]) -> str:
        assert main(["get", what, "-f", as_file(self._folder, *objects), *options]) == 2
        out, err = self._capsys.readouterr()
        assert out == ""
        return err


@pytest.fixture
def get(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Get:
    monkeypatch.delenv("COLUMNS", raising=False)
    return Get(tmp_path, capsys)


def created(thing: Object, at: str) -> Object:
    thing["metadata"]["creationTimestamp"] = at
    return thing


def pods() -> list[Object]:
    """`x-10` is the oldest; `x-9` runs on n; `x-2` waits."""
    running = created(pod("t/x-9", 1, "n"), "2026-03-01T00:00:00Z")
    running["status"] = {"phase": "Running"}
    return [
        node("n", 8),
        created(pod("t/x-10", 1), "2026-01-01T00:00:00Z"),
        running,
        created(pod("t/x-2", 1), "2026-02-01T00:00:00Z"),
    ]


def test_a_list_is_of_the_kind_list_and_its_items_have_the_heads_of_their_objects(get: Get) -> None:
    found = get.json("pods", objects=pods())
    assert (found["apiVersion"], found["kind"]) == ("v1", "List")
    heads = {(each["apiVersion"], each["kind"]) for each in found["items"]}
    assert heads == {("v1", "Pod")}
    by_name = {each["metadata"]["name"]: each["metadata"] for each in found["items"]}
    assert by_name["x-9"] == {"name": "x-9", "namespace": "t", "creationTimestamp": "2026-03-01T00:00:00Z"}
    assert "spec" not in found["items"][0]


def test_a_named_object_has_its_head(get: Get) -> None:
    found = get.json("node n", objects=pods())
    assert list(found)[:3] == ["apiVersion", "kind", "metadata"]
    assert (found["apiVersion"], found["kind"], found["metadata"]["name"]) == ("v1", "Node", "n")
    assert get.text("node n", "-o", "yaml", objects=pods()).startswith("apiVersion: v1\nkind: Node\n")


def queues() -> list[Object]:
    return [
        node("n", 16),
        flavor(),
        *gpu_queue("a", gpus(8)),
        gpu_workload("a/held", 2, 4, "f"),
        gpu_job("a/one", 1, 16),
    ]


@pytest.mark.parametrize(
    ("what", "head"),
    [
        ("queues", ("kueue.x-k8s.io/v1beta2", "LocalQueue")),
        ("workloads", ("kueue.x-k8s.io/v1beta2", "Workload")),
    ],
)
def test_queues_and_workloads_have_the_heads_of_kueue(what: str, head: tuple[str, str], get: Get) -> None:
    heads = {(each["apiVersion"], each["kind"]) for each in get.json(what, objects=queues())["items"]}
    assert heads == {head}


def test_a_gang_has_the_head_of_its_object_if_it_has_one(get: Get) -> None:
    grouped = [pod(f"t/g-{at}", 1, "n", annotations={GROUP: "g"}) for at in range(2)]
    of_job = job("t/j", 2, 1, annotations={"shoal.dev/gang": "2"})
    found = get.json("gangs", objects=[node("n", 8), volcano_group("t/g", 2), *grouped, of_job])
    heads = {each["gang"]: (each["apiVersion"], each["kind"]) for each in found["items"]}
    assert heads == {"t/g": ("scheduling.volcano.sh/v1beta1", "PodGroup"), "t/j": ("batch/v1", "Job")}


@pytest.mark.parametrize(
    ("path", "names"),
    [
        (".metadata.creationTimestamp", ["x-10", "x-2", "x-9"]),
        ("{.metadata.creationTimestamp}", ["x-10", "x-2", "x-9"]),
        (".metadata.name", ["x-2", "x-9", "x-10"]),
        (".spec.nodeName", ["x-10", "x-2", "x-9"]),
    ],
)
def test_rows_are_sorted_by_fields_of_their_objects(path: str, names: list[str], get: Get) -> None:
    assert get.names("pods", "--sort-by", path, objects=pods()) == names


def test_amounts_are_sorted_as_amounts(get: Get) -> None:
    nodes = [node("large", 1), node("small", 1), node("middle", 1)]
    for each, memory in zip(nodes, ("1Ti", "900Mi", "64Gi"), strict=True):
        each["status"]["allocatable"]["memory"] = memory
    assert get.names("nodes", "--sort-by=.status.allocatable.memory", objects=nodes) == ["small", "middle", "large"]


def test_a_field_that_no_object_has_is_no_order(get: Get) -> None:
    assert 'no item has ".status.nmae"' in get.wrong("pods", "--sort-by=.status.nmae", objects=pods())
    line = get.wrong("pods", "--sort-by=.nmae", objects=pods())
    assert "paths may also begin with spec or status" in line


def test_columns_and_templates_have_the_fields_of_objects(get: Get) -> None:
    columns = "custom-columns=NAME:.metadata.name,NODE:.spec.nodeName,PHASE:.status.phase"
    lines = get.text("pods", "-o", columns, "--sort-by", ".metadata.name", objects=pods()).splitlines()
    assert lines[2].split() == ["x-9", "n", "Running"]
    assert lines[1].split() == ["x-2", "<none>", "<none>"]
    template = 'jsonpath={.items[?(@.status.phase=="Running")].metadata.name}'
    assert get.text("pods", "-o", template, objects=pods()) == "x-9"


@pytest.mark.parametrize(
    ("what", "fields", "names"),
    [
        ("pods", "status.phase=Running", ["x-9"]),
        ("pods", "status.phase!=Running", ["x-10", "x-2"]),
        ("pods", "spec.nodeName=n,metadata.namespace=t", ["x-9"]),
        ("pods", "metadata.name=x-2", ["x-2"]),
        ("nodes", "spec.unschedulable=false", ["n"]),
    ],
)
def test_objects_are_selected_by_fields(what: str, fields: str, names: list[str], get: Get) -> None:
    found = get.names(what, "--field-selector", fields, "--sort-by=.metadata.creationTimestamp", objects=pods())
    assert found == names


def test_queues_and_workloads_are_selected_by_name(get: Get) -> None:
    assert get.names("workloads", "--field-selector=metadata.name=held", objects=queues()) == ["held"]
    line = get.wrong("queues", "--field-selector=spec.clusterQueue=a", objects=queues())
    assert "supported are metadata.name, metadata.namespace" in line


def test_an_unknown_field_names_those_that_can_be_selected_by(get: Get) -> None:
    line = get.wrong("pods", "--field-selector", "status.hostIP=x", objects=pods())
    assert "field label not supported for Pod: status.hostIP" in line
    assert "spec.nodeName" in line


def test_a_pod_that_a_job_of_a_file_would_make_has_the_head_of_a_pod_and_no_fields(get: Get) -> None:
    found = get.json("pods", objects=[node("n", 8), job("t/j", 1, 1)])
    assert [(each["apiVersion"], each["kind"]) for each in found["items"]] == [("v1", "Pod")]
    assert get.names("pods", "--field-selector=spec.nodeName=n", objects=[node("n", 8), job("t/j", 1, 1)]) == []


def test_an_empty_selection_says_what_was_selected(
    get: Get, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["get", "pods", "-f", as_file(tmp_path, *pods()), "--field-selector=status.phase=Failed"]) == 0
    assert capsys.readouterr().err == "no pods with status.phase=Failed found\n"
