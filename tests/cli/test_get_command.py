"""`shoal get TYPE`: lists for people and for programs, with the conventions of `kubectl get`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from build.claim_manifests import allocated, claim, claimer, device_class, gpu_slice
from build.gpu_queues import gpu_job, gpu_queue, gpu_workload, gpus
from build.manifests import Object, as_file, job, kai_group, node, pod, thing, volcano_group
from build.queue_manifests import flavor
from shoal.cli.list_output import Listing, form_of
from shoal.cli.list_watch import Shown
from shoal.cli.listed_types import type_named
from shoal.cli.main import main
from shoal.views.pod_list import PodLine

GROUP = "scheduling.k8s.io/group-name"


class Get:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys
        self.err = ""

    def text(self, what: str, *objects: Object, options: tuple[str, ...] = ()) -> str:
        assert main(["get", *what.split(), "-f", as_file(self._folder, *objects), *options]) == 0
        out, self.err = self._capsys.readouterr()
        return out

    def wrong(self, *words: str, objects: Sequence[Object] = ()) -> str:
        """The line for a wrong command."""
        assert main(["get", *words, "-f", as_file(self._folder, *objects)]) == 2
        out, err = self._capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        return err

    def json(self, what: str, *objects: Object, options: tuple[str, ...] = ()) -> Any:
        return json.loads(self.text(what, *objects, options=(*options, "-o", "json")))["items"]


@pytest.fixture
def get(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Get:
    # Whoever runs the tests may say how wide his terminal is.
    monkeypatch.delenv("COLUMNS", raising=False)
    return Get(tmp_path, capsys)


def gangs() -> list[Object]:
    """`t/runs` on four GPUs, `u/waits` for eight."""
    running = [pod(f"t/runs-{at}", 2, "n", annotations={GROUP: "runs"}) for at in range(2)]
    waiting = [pod(f"u/waits-{at}", 4, annotations={GROUP: "waits"}) for at in range(2)]
    return [node("n", 8), volcano_group("t/runs", 2), volcano_group("u/waits", 2), *running, *waiting]


def test_gangs_that_wait_come_first_with_the_reason(get: Get) -> None:
    found = get.json("gangs", *gangs())
    assert [(each["gang"], each["state"], each["needs"], each["running"], each["waiting"]) for each in found] == [
        ("u/waits", "waits", 2, 0, 2),
        ("t/runs", "runs", 2, 2, 0),
    ]
    assert found[0]["code"] == "GangDoesNotFit"
    assert "the gang needs 2 pods" in found[0]["message"]
    assert (found[1]["gpus"], found[1]["nodes"], found[1]["code"]) == (4, 1, "")


def test_a_gang_that_lost_pods_runs_with_too_few(get: Get) -> None:
    (found,) = get.json("gangs", node("n", 8), volcano_group("g", 3), pod("a", 1, "n", annotations={GROUP: "g"}))
    assert (found["state"], found["running"], found["needs"], found["code"]) == ("runs", 1, 3, "GangTooSmall")
    assert "2 pods ended or were lost" in found["message"]


def test_gangs_of_one_namespace(get: Get) -> None:
    assert [each["gang"] for each in get.json("gangs", *gangs(), options=("-n", "t"))] == ["t/runs"]


def test_gangs_as_a_table(get: Get) -> None:
    rows = [line.split() for line in get.text("gangs", *gangs()).splitlines()]
    assert rows == [
        ["gang", "state", "needs", "run", "wait", "GPUs", "because"],
        ["u/waits", "waits", "2", "0", "2", "8", "GangDoesNotFit"],
        ["t/runs", "runs", "2", "2", "0", "4"],
    ]
    assert "the gang needs 2 pods" in get.text("gangs", *gangs(), options=("-o", "wide"))


def test_what_may_be_long_is_the_last_column_and_brackets_are_no_markup(get: Get) -> None:
    job_of_two = job("t/nine", 2, 1, annotations={"shoal.dev/gang": "9"})
    heading, row = get.text("gangs", node("n", 8), job_of_two, options=("-o", "wide")).splitlines()
    assert heading.split() == ["gang", "state", "needs", "run", "wait", "GPUs", "nodes", "queue", "because"]
    assert row.split()[:7] == ["t/nine", "waits", "?", "0", "2", "2", "0"]
    assert "metadata.annotations[shoal.dev/gang]: the gang needs 9 pods, and spec.parallelism is 2" in row


def test_a_gang_without_pods_comes_last(get: Get) -> None:
    found = get.json("gangs", volcano_group("t/a-hollow", 2), *gangs())
    assert [(each["gang"], each["state"]) for each in found][-1] == ("t/a-hollow", "empty")


def test_no_gangs_are_a_line_on_stderr_and_an_empty_list(get: Get) -> None:
    assert get.text("gangs", node("n")) == ""
    assert get.err == "no gangs found\n"
    assert get.json("gangs", node("n")) == []


def test_an_empty_list_of_a_namespace_says_how_to_list_all(get: Get) -> None:
    assert get.text("gangs", *gangs(), options=("-n", "x")) == ""
    assert get.err == "no gangs found in namespace x; -A lists those of all namespaces\n"
    assert get.text("gangs", *gangs(), options=("-l", "a=b")) == ""
    assert get.err == "no gangs with the labels a=b found\n"


def queues() -> list[Object]:
    return [
        node("n", 16),
        flavor(),
        *gpu_queue("a", gpus(8), cohort="fleet"),
        *gpu_queue("b", gpus(8), cohort="fleet"),
        gpu_workload("b/held", 2, 4, "f"),
        gpu_job("a/one", 1, 16),
    ]


def test_queues_where_somebody_waits_come_first(get: Get) -> None:
    found = get.json("queues", *queues())
    assert [(each["queue"], each["clusterQueue"], each["cohort"]) for each in found] == [
        ("a/q", "a", "fleet"),
        ("b/q", "b", "fleet"),
    ]
    assert [(each["waiting"], each["admitted"], each["uses"]) for each in found] == [
        (1, 0, {}),
        (0, 1, {"nvidia.com/gpu": 8}),
    ]


def test_queues_as_a_table(get: Get) -> None:
    rows = [line.split() for line in get.text("queues", *queues()).splitlines()]
    assert rows[1] == ["a/q", "a", "1", "0", "nothing"]
    assert rows[2] == ["b/q", "b", "0", "1", "8", "GPUs"]


def test_a_queue_that_leads_nowhere_says_so(get: Get) -> None:
    lost = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "lost", "namespace": "t"},
    }
    found = get.json("queues", *queues(), lost | {"spec": {"clusterQueue": "nobody"}})
    assert (
        next(each["closed"] for each in found if each["queue"] == "t/lost") == "its ClusterQueue nobody does not exist"
    )


def test_workloads_that_hold_quota_and_that_wait(get: Get) -> None:
    found = get.json("workloads", *queues())
    assert [(each["workload"], each["state"], each["code"]) for each in found] == [
        ("b/held", "admitted", ""),
        ("a/job-one", "active", "WaitingForQuota"),
    ]
    assert [each["workload"] for each in get.json("workloads", *queues(), options=("-n", "b"))] == ["b/held"]
    rows = [line.split() for line in get.text("workloads", *queues()).splitlines()]
    assert rows[0] == ["workload", "queue", "state", "amounts", "because"]
    assert rows[1][:4] == ["b/held", "b/q", "admitted", "8"]


def test_nodes_are_those_of_top(get: Get) -> None:
    assert [(each["name"], each["gpus"], each["held"]) for each in get.json("nodes", *gangs())] == [("n", 8, 4)]
    assert "████····" in get.text("nodes", *gangs())


@pytest.mark.parametrize("what", ["queues", "workloads"])
def test_where_no_object_is_about_queues_the_list_is_empty(what: str, get: Get) -> None:
    assert get.text(what, node("n")) == ""
    assert get.err == f"no {what} found\n"


def volcano_queue(name: str) -> Object:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": {}}


def test_queues_of_volcano_alone_are_listed_without_a_complaint(get: Get) -> None:
    found = get.json("queues", node("n"), *map(volcano_queue, ("root", "default", "team")))
    assert [(each["queue"], each["project"]) for each in found] == [
        *(("default", "Volcano"), ("root", "Volcano"), ("team", "Volcano"))
    ]
    get.text("queues", node("n"), *map(volcano_queue, ("root", "default", "team")))
    assert get.err == ""


def test_the_queues_that_volcano_makes_itself_are_listed_only_where_volcano_is_used(get: Get) -> None:
    made = [node("n"), *map(volcano_queue, ("root", "default"))]
    assert get.json("queues", *made) == []
    assert [each["queue"] for each in get.json("queues", *made, volcano_group("t/g", 1))] == ["default", "root"]


def pods() -> list[Object]:
    """`t/runs` on four GPUs of n, `t/waits` for eight, `u/gated`."""
    gated = pod("u/gated", 1)
    gated["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    ended = pod("t/ended", 1, "n")
    ended["status"] = {"phase": "Succeeded"}
    labelled = pod("t/waits", 8, labels={"team": "a"})
    return [node("n", 8), pod("t/runs", 4, "n"), labelled, gated, ended]


def test_pods_with_their_gpus_nodes_and_reasons(get: Get) -> None:
    found = {each["pod"]: each for each in get.json("pods", *pods())}
    assert list(found) == ["t/waits", "u/gated", "t/runs", "t/ended"]
    assert [(each["state"], each["gpus"], each["node"]) for each in found.values()] == [
        ("waits", 8, ""),
        ("queued", 1, ""),
        ("runs", 4, "n"),
        ("succeeded", 0, "n"),
    ]
    assert found["t/waits"]["code"] == "NoDeviceFits"
    assert found["u/gated"]["message"] == "gates: example.com/wait"


def test_pods_as_a_table(get: Get) -> None:
    rows = [line.split() for line in get.text("pods", *pods()).splitlines()]
    assert rows[0] == ["pod", "state", "GPUs", "node", "devices", "queue", "because"]
    assert rows[1] == ["t/waits", "waits", "8", "·", "·", "·", "NoDeviceFits"]


def test_a_queue_is_named_in_one_form_whether_it_holds_a_pod_back_or_not(get: Get) -> None:
    endless = {"quota": -1, "limit": -1}
    spec = {"resources": {"gpu": {"quota": 1, "limit": 1}, "cpu": endless, "memory": endless}}
    queue = thing("scheduling.run.ai/v2", "Queue", "proj", spec=spec)
    groups = [kai_group("t/runs", queue="proj"), kai_group("t/held", queue="proj")]
    members = [
        pod(f"t/{name}", 1, on, annotations={"pod-group-name": name}, labels={"kai.scheduler/queue": "proj"})
        for name, on in (("runs", "n"), ("held", ""))
    ]
    found = {each["pod"]: each for each in get.json("pods", node("n", 8), queue, *groups, *members)}
    assert (found["t/held"]["state"], found["t/runs"]["state"]) == ("queued", "runs")
    assert {each["queue"] for each in found.values()} == {"proj"}


def test_many_devices_of_claims_take_one_line_and_have_their_full_names_in_the_wide_table(get: Get) -> None:
    devices = [f"gpu-{at}" for at in range(8)]
    taken = allocated(claim("t/c", 8), *devices, pod="p")
    world = [node("n"), device_class(), gpu_slice("n", 8), taken, claimer("t/p", "c", on="n")]
    assert "gpu-0 and 7 more" in get.text("pods", *world)
    names = [f"gpu.nvidia.com/n/{name}" for name in devices]
    wide = "".join(get.text("pods", *world, options=("-o", "wide")).split())
    assert all(name in wide for name in names)
    assert get.json("pods", *world)[0]["devices"] == names


def test_a_few_devices_of_claims_have_their_names_without_driver_and_pool(get: Get) -> None:
    taken = allocated(claim("t/c", 2), "gpu-0", "gpu-1", pod="p")
    world = [node("n"), device_class(), gpu_slice("n", 2), taken, claimer("t/p", "c", on="n")]
    assert get.text("pods", *world).splitlines()[1].split() == ["t/p", "runs", "·", "n", "gpu-0,gpu-1", "·"]


@pytest.mark.parametrize("what", ["pods", "pod", "po", "Pods"])
def test_types_have_the_names_that_kubectl_accepts(what: str, get: Get) -> None:
    assert len(get.json(what, *pods())) == 4


def test_an_unknown_type_is_answered_with_the_nearest(get: Get) -> None:
    assert 'type "gnags" not found; did you mean gangs?' in get.wrong("gnags")
    assert "kubectl get" in get.wrong("secrets")


def test_objects_are_listed_by_name(get: Get) -> None:
    one = json.loads(get.text("pods waits", *pods(), options=("-n", "t", "-o", "json")))
    assert one["pod"] == "t/waits"
    assert json.loads(get.text("pod/t/waits", *pods(), options=("-o", "json"))) == one
    both = get.text("pods t/waits t/runs", *pods(), options=("-o", "name"))
    assert both == "pod/t/waits\npod/t/runs\n"
    assert get.text("pods waits", *pods(), options=("-o", "name")) == "pod/t/waits\n"


def test_a_name_that_does_not_exist_is_answered_with_the_nearest(get: Get) -> None:
    assert 'pod "wait" not found in namespace t; did you mean waits?' in get.wrong(
        "pods", "wait", "-n", "t", objects=pods()
    )
    assert 'node "x" not found; see shoal get nodes' in get.wrong("nodes", "x", objects=pods())
    assert "one type can be listed at a time" in get.wrong("pods,nodes", objects=pods())
    assert "names of one type" in get.wrong("pod/a", "node/b", objects=pods())


def test_objects_are_selected_by_labels(get: Get) -> None:
    assert get.text("pods", *pods(), options=("-l", "team=a", "-o", "name")) == "pod/t/waits\n"
    assert get.text("pods", *pods(), options=("-l", "team!=a", "-o", "name")).count("\n") == 3
    assert 'selector "team in"' in get.wrong("pods", "-l", "team in", objects=pods())


def test_gangs_have_the_labels_of_their_objects_or_else_of_their_pods(get: Get) -> None:
    group = volcano_group("t/runs", 2)
    group["metadata"]["labels"] = {"team": "a"}
    pods_of_gang = [pod(f"t/runs-{at}", 1, "n", annotations={GROUP: "runs"}) for at in range(2)]
    assert (
        get.text("gangs", node("n", 8), group, *pods_of_gang, options=("-l", "team", "-o", "name")) == "gang/t/runs\n"
    )


def test_rows_are_sorted_by_a_field(get: Get) -> None:
    order = get.text("pods", *pods(), options=("--sort-by", "{.gpus}", "-o", "jsonpath={.items[*].gpus}"))
    assert order == "0 1 4 8"
    assert "--sort-by" in get.wrong("pods", "--sort-by", "{.a[}", objects=pods())


def test_headings_can_be_left_out(get: Get) -> None:
    with_headings = get.text("nodes", *pods()).splitlines()
    assert get.text("nodes", *pods(), options=("--no-headers",)).splitlines() == with_headings[1:]


def test_a_jsonpath_template_is_filled_in(get: Get) -> None:
    template = '{range .items[*]}{.pod}{"\\t"}{.node}{"\\n"}{end}'
    assert get.text("pods", *pods(), options=("-o", f"jsonpath={template}")).splitlines()[2] == "t/runs\tn"
    assert "--output" in get.wrong("pods", "-o", "jsonpath={.a", objects=pods())


def test_columns_can_be_chosen(get: Get) -> None:
    text = get.text("pods", *pods(), options=("-o", "custom-columns=NAME:.pod,WHERE:.node,NONE:.instances.x"))
    assert text.splitlines()[0].split() == ["NAME", "WHERE", "NONE"]
    assert text.splitlines()[3].split() == ["t/runs", "n", "<none>"]
    assert "is not HEADING:PATH" in get.wrong("pods", "-o", "custom-columns=NAME", objects=pods())


def test_get_alone_prints_its_help_and_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get"]) == 0
    out, err = capsys.readouterr()
    assert "TYPE" in out
    assert err == ""


def test_files_cannot_be_watched(get: Get) -> None:
    assert "files do not change" in get.wrong("pods", "-w", objects=pods())


def test_a_watch_prints_rows_that_changed_and_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [PodLine(f"t/{name}", "waits", 1, {}, "", [], "", "", "") for name in ("a", "b")]
    shown = Shown(form_of("table"))
    shown.show(Listing(type_named("pods"), lines))
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["pod", "t/a", "t/b"]
    later = [lines[0], PodLine("t/b", "runs", 1, {}, "n", [], "", "", "")]
    shown.show(Listing(type_named("pods"), later))
    assert capsys.readouterr().out.split()[:4] == ["t/b", "runs", "1", "n"]
    shown.show(Listing(type_named("pods"), later))
    assert capsys.readouterr().out == ""


def held_gangs() -> list[Object]:
    """A queue of Volcano that keeps back a gang of two pods and one without pods."""
    queue = thing("scheduling.volcano.sh/v1beta1", "Queue", "q", spec={"capability": {"nvidia.com/gpu": 4}})
    asked = {"queue": "q", "minResources": {"nvidia.com/gpu": 8}}
    groups = [volcano_group(f"t/{name}", 2, **asked) for name in ("hollow", "whole")]
    pods = [pod(f"t/whole-{at}", 4, annotations={GROUP: "whole"}, schedulerName="volcano") for at in range(2)]
    return [node("n", 8), queue, *groups, *pods]


def test_only_pods_with_objects_are_pods_and_a_gang_without_them_is_a_gang(
    get: Get, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert [each["pod"] for each in get.json("pods", *held_gangs())] == ["t/whole-0", "t/whole-1"]
    found = {each["gang"]: each for each in get.json("gangs", *held_gangs())}
    assert [(found[f"t/{name}"]["state"], found[f"t/{name}"]["waiting"]) for name in ("hollow", "whole")] == [
        ("queued", 0),
        ("queued", 2),
    ]
    assert found["t/hollow"]["message"].startswith("0 of 2 pods exist; ")
    (queue,) = [each for each in get.json("queues", *held_gangs()) if each["queue"] == "q"]
    assert queue["waiting"] == 2
    assert main(["top", "-f", as_file(tmp_path, *held_gangs())]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("; 2 pods wait for 8 GPUs; 1 gang without pods waits")


def test_gangs_and_pods_that_a_queue_holds_are_listed_with_the_gpus_that_they_ask_for(get: Get) -> None:
    found = {each["gang"]: each["gpus"] for each in get.json("gangs", *held_gangs())}
    assert found == {"t/hollow": 0, "t/whole": 8}
    assert [each["gpus"] for each in get.json("pods", *held_gangs())] == [4, 4]
    queued = [node("n", 8), flavor(), *gpu_queue("t", gpus(4)), gpu_job("t/j", 2, 4)]
    (gang,) = get.json("gangs", *queued)
    assert (gang["state"], gang["waiting"], gang["gpus"]) == ("queued", 0, 8)


def test_an_empty_gang_says_how_many_of_its_pods_exist(get: Get) -> None:
    (found,) = get.json("gangs", node("n", 8), volcano_group("t/hollow", 3))
    assert (found["state"], found["message"]) == ("empty", "0 of 3 pods exist")


@pytest.mark.parametrize("what", ["pods", "gangs", "nodes"])
def test_rows_have_the_name_of_their_object_where_kubectl_has_it(what: str, get: Get) -> None:
    listed = get.text(what, *gangs(), options=("-o", "jsonpath={.items[*].metadata.name}")).split()
    columns = ("-o", "custom-columns=NAME:.metadata.name", "--no-headers", "--sort-by", ".metadata.name")
    by_column = get.text(what, *gangs(), options=columns).split()
    names = [line.rpartition("/")[2] for line in get.text(what, *gangs(), options=("-o", "name")).split()]
    assert names
    assert listed == names
    assert by_column == sorted(names)


@pytest.mark.parametrize(
    ("options", "option"),
    [
        (("-o", "jsonpath={.items[*].metadata.nmae}"), "--output"),
        (("-o", 'jsonpath={range .items[*]}{.nmae}{"\\n"}{end}'), "--output"),
        (("-o", "custom-columns=NAME:.nmae"), "--output"),
        (("--sort-by", ".nmae"), "--sort-by"),
    ],
)
def test_a_field_that_no_row_has_names_the_fields(options: tuple[str, ...], option: str, get: Get) -> None:
    line = get.wrong("pods", *options, objects=gangs())
    assert line.startswith(f"shoal: {option}: ")
    assert "is no field of the items" in line
    assert "metadata.creationTimestamp, pod, state, gpus" in line


def test_a_filter_that_fits_no_row_prints_nothing(get: Get) -> None:
    template = '{.items[?(@.state=="failed")].metadata.name}'
    assert get.text("pods", *gangs(), options=("-o", f"jsonpath={template}")) == ""
    ranged = '{range .items[?(@.state=="runs")]}{.metadata.name} {end}'
    assert get.text("pods", *gangs(), options=("-o", f"jsonpath={ranged}")) == "runs-0 runs-1 "


def owned(obj: Object, kind: str, name: str) -> Object:
    reference = {"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": "1", "controller": True}
    obj["metadata"]["ownerReferences"] = [reference]
    return obj


def admitted_job_without_nodes() -> list[Object]:
    labels = {"kueue.x-k8s.io/queue-name": "q"}
    b200 = {"nvidia.com/gpu.product": "NVIDIA-B200"}
    return [
        *(node("n", 8), flavor(nodeLabels=b200), *gpu_queue("t", gpus(8))),
        job("t/j", 1, 1, labels=labels, suspend=False),
        owned(gpu_workload("t/job-j", 1, 1, on="f"), "Job", "j"),
        owned(pod("t/j-0", 1, status={"phase": "Pending"}, nodeSelector=b200), "Job", "j"),
    ]


def test_a_pod_of_an_admitted_job_that_fits_on_no_node_waits_with_the_reason(get: Get) -> None:
    (line,) = get.json("pods", *admitted_job_without_nodes())
    assert (line["pod"], line["state"], line["code"]) == ("t/j-0", "waits", "NodeAffinityMismatch")


def test_its_gang_waits_and_it_is_counted_among_the_pods_that_wait(
    get: Get, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (gang,) = get.json("gangs", *admitted_job_without_nodes())
    assert (gang["state"], gang["waiting"], gang["gpus"]) == ("waits", 1, 1)
    assert main(["top", "-f", as_file(tmp_path, *admitted_job_without_nodes())]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("; 1 pod waits for 1 GPU")


def test_a_pending_pod_on_a_node_that_does_not_exist_waits(get: Get) -> None:
    made = pod("t/a", 1, on="p5-9", status={"phase": "Pending"}, meta={"uid": "u"})
    (line,) = get.json("pods", node("p5-0", 8), made)
    assert (line["state"], line["node"], line["message"]) == (
        "waits",
        "p5-9",
        "is bound to p5-9, which does not exist; did you mean p5-0?",
    )
    running = pod("t/a", 1, on="p5-9", status={"phase": "Running"}, meta={"uid": "u"})
    (line,) = get.json("pods", node("p5-0", 8), running)
    assert (line["state"], line["message"]) == ("runs", "was on p5-9, which is gone")
