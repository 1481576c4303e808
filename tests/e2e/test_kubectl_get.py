"""`kubectl get` in all its forms: tables, documents, paths, selectors, pages, watches."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest
import yaml

from build.kubectl_runs import PATIENCE_S, Kubectl, Obj


def pod(name: str, **labels: str) -> Obj:
    spec = {"containers": [{"name": "main", "image": "cuda:12"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.fixture
def three(kubectl: Kubectl) -> list[str]:
    pods = [pod("a", tier="web", size="1"), pod("b", tier="web", size="3"), pod("c", tier="data", size="2")]
    kubectl("create", "-f-", given=pods)
    return ["a", "b", "c"]


def rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines()]


def test_pods_are_shown_as_kubernetes_shows_them(
    kubectl: Kubectl, bound_pod: Callable[..., str], gpu_node: str
) -> None:
    bound_pod("trainer")
    head, row = rows(kubectl("get", "pods"))
    assert head == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:4] == ["trainer", "1/1", "Running", "0"]
    wide = rows(kubectl("get", "pods", "-o", "wide"))
    assert " ".join(wide[0]) == "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES"
    assert wide[1][5:] == ["10.1.0.7", gpu_node, "<none>", "<none>"]


def test_a_list_comes_as_yaml_json_names_and_without_headers(kubectl: Kubectl, three: list[str]) -> None:
    from_yaml = yaml.safe_load(kubectl("get", "pods", "-o", "yaml"))
    assert from_yaml == json.loads(kubectl("get", "pods", "-o", "json"))
    assert (from_yaml["kind"], len(from_yaml["items"])) == ("List", 3)
    assert all(item["kind"] == "Pod" for item in from_yaml["items"])
    assert kubectl.names("pods") == ["pod/a", "pod/b", "pod/c"]
    assert [row[0] for row in rows(kubectl("get", "pods", "--no-headers"))] == three
    assert kubectl("get", "pods", "-l", "tier=none").strip() == ""


def test_paths_templates_and_columns_pick_fields(kubectl: Kubectl, three: list[str]) -> None:
    assert kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.name}") == "a b c"
    columns = "custom-columns=NAME:.metadata.name,TIER:.metadata.labels.tier,IP:.status.podIP"
    assert rows(kubectl("get", "pods", "-o", columns))[1:] == [
        ["a", "web", "<none>"],
        ["b", "web", "<none>"],
        ["c", "data", "<none>"],
    ]
    template = "go-template={{range .items}}{{.metadata.name}};{{end}}"
    assert kubectl("get", "pods", "-o", template) == "a;b;c;"


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("tier=web", "a b"),
        ("tier!=web", "c"),
        ("tier in (web, data),size notin (1)", "b c"),
        ("size>1", "b c"),
        ("!tier", ""),
        ("tier,size=2", "c"),
    ],
)
def test_labels_select(kubectl: Kubectl, three: list[str], selector: str, found: str) -> None:
    assert kubectl("get", "pods", "-l", selector, "-o", "jsonpath={.items[*].metadata.name}") == found


def test_fields_select_and_unknown_ones_are_refused(
    kubectl: Kubectl, three: list[str], bound_pod: Callable[..., str], gpu_node: str
) -> None:
    bound_pod("trainer")
    assert kubectl.names("pods", f"--field-selector=spec.nodeName={gpu_node}") == ["pod/trainer"]
    assert kubectl.names("pods", "--field-selector=status.phase!=Pending") == ["pod/trainer"]
    assert kubectl.names("pods", "--field-selector=metadata.name=b") == ["pod/b"]
    refusal = kubectl.refused("get", "pods", "--field-selector=spec.colour=red")
    assert "field label not supported: spec.colour" in refusal


def test_label_columns_and_sorting(kubectl: Kubectl, three: list[str]) -> None:
    sorted_rows = rows(kubectl("get", "pods", "--sort-by=.metadata.labels.size", "-L", "size,tier"))
    assert sorted_rows[0][-2:] == ["SIZE", "TIER"]
    assert [(row[0], row[-2]) for row in sorted_rows[1:]] == [("a", "1"), ("c", "2"), ("b", "3")]
    assert "tier=web" in kubectl("get", "pods", "--show-labels")


def test_a_long_list_comes_whole_in_small_pages(kubectl: Kubectl) -> None:
    made = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"part-{number:02}", "labels": {"part": "x"}}}
        for number in range(23)
    ]
    kubectl("create", "-f-", given=made)
    wanted = [f"configmap/part-{number:02}" for number in range(23)]
    assert kubectl.names("configmaps", "-l", "part=x", "--chunk-size=5") == wanted
    page = json.loads(kubectl("get", "--raw", f"/api/v1/namespaces/{kubectl.namespace}/configmaps?limit=5"))
    assert (len(page["items"]), page["metadata"]["remainingItemCount"]) == (5, 24 - 5)


def test_several_kinds_and_names_are_got_together(kubectl: Kubectl, three: list[str]) -> None:
    kubectl("create", "configmap", "settings")
    assert kubectl.names("pod/a", "configmap/settings") == ["pod/a", "configmap/settings"]
    assert set(kubectl.names("pods,configmaps")) == {
        "pod/a",
        "pod/b",
        "pod/c",
        "configmap/kube-root-ca.crt",
        "configmap/settings",
    }
    assert kubectl.names("all") == ["pod/a", "pod/b", "pod/c"]
    partly = kubectl.run("get", "pods", "a", "gone", "-o", "name")
    assert (partly.code, partly.out) == (1, "pod/a\n")
    assert partly.err == 'Error from server (NotFound): pods "gone" not found\n'
    assert kubectl("get", "pods", "gone", "--ignore-not-found") == ""


def test_all_namespaces_show_where_things_are(kubectl: Kubectl, three: list[str]) -> None:
    found = rows(kubectl("get", "pods", "-A"))
    assert found[0][0] == "NAMESPACE"
    assert [row[:2] for row in found if row[0] == kubectl.namespace] == [[kubectl.namespace, name] for name in three]


def test_a_kind_that_is_not_served_is_refused_in_kubectl_words(kubectl: Kubectl) -> None:
    assert kubectl.refused("get", "gizmos") == 'error: the server doesn\'t have a resource type "gizmos"'


def test_a_watch_shows_what_is_there_then_every_change(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "settings")
    columns = "jsonpath={.metadata.name}={.data.a}{'\\n'}"
    command = kubectl.command(
        "get", "configmaps", "-l=!none", "--field-selector=metadata.name=settings", "-w", "-o", columns
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kubectl.environment()) as watch:
        assert watch.stdout is not None
        assert watch.stdout.readline() == "settings=\n"
        for value in ("1", "2"):
            kubectl("patch", "configmap", "settings", "-p", f'{{"data": {{"a": "{value}"}}}}')
            assert watch.stdout.readline() == f"settings={value}\n"
        kubectl("delete", "configmap", "settings")
        assert watch.stdout.readline() == "settings=2\n"
        watch.terminate()
        watch.wait(PATIENCE_S)


def test_a_watched_table_says_what_happened_to_each(kubectl: Kubectl) -> None:
    command = kubectl.command("get", "pods", "--watch", "--output-watch-events")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=kubectl.environment()) as watch:
        assert watch.stdout is not None
        kubectl("create", "-f-", given=pod("late"))
        assert watch.stdout.readline().split()[:2] == ["EVENT", "NAME"]
        assert watch.stdout.readline().split()[:4] == ["ADDED", "late", "0/1", "Pending"]
        kubectl("delete", "pod", "late", "--now", "--wait=false")
        told = [watch.stdout.readline().split()[0]]
        if told != ["DELETED"]:
            told.append(watch.stdout.readline().split()[0])
        assert told[-1] == "DELETED"
        watch.terminate()
        watch.wait(PATIENCE_S)
