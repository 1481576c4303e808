"""`shoal lint`: files and clusters are checked by the rules of the advisor."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.cluster_server import ServerProcess
from build.manifests import Object, as_file, node
from build.manifests import pod as bare_pod
from shoal.api.plain_objects import PlainObjects, read_plain_objects
from shoal.cli.main import main
from shoal.cli.rendered_charts import with_charts
from shoal.policy.catalogue import faults

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "advice" / "training.yaml"


class Lint:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self.err = ""

    def run(self, *arguments: str, code: int = 0) -> str:
        found = main(["lint", *(() if "--fail-on" in arguments else ("--fail-on", "never")), *arguments])
        out, self.err = self._capsys.readouterr()
        assert found == code, self.err
        return out

    def on(self, *objects: Object, options: tuple[str, ...] = (), code: int = 0) -> str:
        return self.run("-f", as_file(self.folder, *objects), *options, code=code)

    def json(self, *objects: Object, options: tuple[str, ...] = ()) -> Any:
        return json.loads(self.on(*objects, options=(*options, "-o", "json")))


@pytest.fixture
def lint(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Lint:
    monkeypatch.setenv("COLUMNS", "100")
    return Lint(tmp_path, capsys)


def pod(name: str, gpus: int = 0, **spec: Any) -> Object:
    """With all that a server needs."""
    made = bare_pod(name, gpus, **spec)
    for container in made["spec"]["containers"]:
        container["image"] = "registry.example/train:1"
        container.setdefault("resources", {}).setdefault("requests", {})["memory"] = "1Gi"
    return made


def seeing_all_devices(name: str = "p", **spec: Any) -> Object:
    made = pod(name, 1, **spec)
    made["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    return made


def test_the_example_has_the_warnings_of_its_header(lint: Lint) -> None:
    out = lint.run("-f", str(EXAMPLE))
    assert out.splitlines()[-1] == "2 findings in 1 of 2 objects"
    assert f"#   {out.splitlines()[-1]}" in EXAMPLE.read_text(encoding="utf-8")
    assert f"{EXAMPLE}: Job research/finetune\n  SHL-203 UnknownProductName  line 21: spec.template" in out


def test_a_file_without_faults_has_no_warnings(lint: Lint) -> None:
    assert lint.on(node("n", 8), pod("p", 1)) == "0 findings in 0 of 2 objects\n"


def test_a_warning_has_field_message_and_correction(lint: Lint) -> None:
    document = lint.json(seeing_all_devices("team/p"))
    (warning,) = document["findings"]
    assert document["objects"] == 1
    assert warning["object"] == "Pod team/p"
    assert (warning["id"], warning["rule"]) == ("SHL-305", "VisibleDevicesByHand")
    assert (warning["severity"], warning["field"]) == ("warning", "spec.containers[0].env[0]")
    assert warning["fix"] == "leave it out"


def test_standard_input_is_read(lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    given = io.TextIOWrapper(io.BytesIO(json.dumps(seeing_all_devices()).encode()))
    monkeypatch.setattr("sys.stdin", given)
    assert "standard input: Pod default/p\n  SHL-305 VisibleDevicesByHand" in lint.run("-f", "-")


def test_the_exit_code_depends_on_the_level_that_is_asked_for(lint: Lint) -> None:
    lint.on(seeing_all_devices(), code=0)
    lint.on(seeing_all_devices(), options=("--fail-on", "warning"), code=1)
    lint.on(seeing_all_devices(), options=("--fail-on", "info"), code=1)
    lint.on(seeing_all_devices(), options=("--fail-on", "error"), code=0)
    lint.on(pod("p"), options=("--fail-on", "warning"), code=0)


def test_rules_are_chosen_and_ignored_by_name(lint: Lint) -> None:
    assert lint.json(seeing_all_devices(), options=("--ignore", "VisibleDevicesByHand"))["findings"] == []
    assert lint.json(seeing_all_devices(), options=("--rule", "NoRendezvous"))["findings"] == []
    assert len(lint.json(seeing_all_devices(), options=("--rule", "VisibleDevicesByHand"))["findings"]) == 1


def test_only_objects_of_a_namespace_are_checked(lint: Lint) -> None:
    objects = (seeing_all_devices("a/p"), seeing_all_devices("b/q"), seeing_all_devices("r"))
    assert [one["object"] for one in lint.json(*objects, options=("-n", "b"))["findings"]] == ["Pod b/q"]
    assert [one["object"] for one in lint.json(*objects, options=("-n", "default"))["findings"]] == ["Pod default/r"]


def test_names_of_objects_are_written_as_kubectl_writes_them(lint: Lint) -> None:
    bad = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {}}
    assert lint.on(bad, seeing_all_devices(), options=("-o", "name")) == "deployment.apps/web\npod/p\n"


def test_the_wide_table_has_a_row_for_each_warning(lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    head, row = lint.on(seeing_all_devices(), options=("-o", "wide")).splitlines()
    assert head.split() == ["place", "severity", "id", "rule", "object", "field", "message", "fix"]
    assert "Pod default/p" in row
    assert row.rstrip().endswith("leave it out")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "neither a PATH nor --live is given"),
        (("-f", "no-such-file.yaml"), "cannot be read"),
        (("-f", str(EXAMPLE), "--rule", "NoRendevous"), "did you mean NoRendezvous?"),
        (("-f", str(EXAMPLE), "--ignore", "Nothing"), "--ignore"),
        (("-f", str(EXAMPLE), "--fail-on", "errors"), "--fail-on"),
        (("-f", str(EXAMPLE), "-o", "xml"), "--output"),
    ],
)
def test_wrong_input_is_one_line_and_code_two(lint: Lint, arguments: tuple[str, ...], words: str) -> None:
    lint.run(*arguments, code=2)
    assert words in lint.err
    assert len(lint.err.splitlines()) == 1


def test_a_file_that_is_not_yaml_does_not_hide_the_warnings_of_the_others(lint: Lint) -> None:
    (lint.folder / "a.yaml").write_text("a: [")
    as_file(lint.folder, seeing_all_devices())
    assert "VisibleDevicesByHand" in lint.run("-f", str(lint.folder), code=2)
    assert "a.yaml" in lint.err


def test_what_is_no_object_is_named_and_not_checked(lint: Lint) -> None:
    (lint.folder / "values.yaml").write_text("driver: {enabled: false}\n---\nresources: {limits: {cpu: 1}}\n")
    out = lint.run("-f", str(lint.folder))
    assert out == "0 findings in 0 of 1 object\n"
    (first,) = lint.err.splitlines()
    assert first.endswith(
        "values.yaml: document 1: not checked, because it is no object but a map with the fields driver, perhaps "
        "values of a Helm chart"
    )


def test_an_object_that_the_server_rejects_is_a_warning(lint: Lint) -> None:
    bad = {"apiVersion": "v1", "kind": "Node", "metadata": {}}
    (warning,) = lint.json(bad)["findings"]
    assert (warning["rule"], warning["field"], warning["message"]) == ("InvalidObject", "metadata.name", "is required")


def test_labels_are_judged_only_where_the_files_have_nodes(lint: Lint) -> None:
    picky = pod("p", 1, nodeSelector={"accelerator": "nvidia"})
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": {**picky["spec"], "restartPolicy": "Never"}}},
    }
    assert lint.json(job)["findings"] == []
    (warning,) = lint.json(job, node("n", 8))["findings"]
    assert warning["rule"] == "UnknownNodeLabel"


def test_the_list_names_every_rule_with_what_it_finds(lint: Lint) -> None:
    rows = json.loads(lint.run("--list", "-o", "json"))
    assert {row["rule"]: row["fault"] for row in rows} == faults()
    assert sorted(lint.run("--list", "-o", "name").splitlines()) == list(faults())
    assert len({row["id"] for row in rows}) == len(rows)
    assert all(row["fix"] and row["bad"] != row["good"] for row in rows)
    assert "PrioritySomething" not in lint.run("--list")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    server = ServerProcess(tmp_path_factory.mktemp("advised"), "--memory")
    yield server.kubeconfig
    server.stop()


def test_a_cluster_is_checked_and_files_are_checked_against_it(lint: Lint, cluster: Path) -> None:
    access = ("--live", "--kubeconfig", str(cluster))
    assert "0 findings" in lint.run(*access)
    claimed = pod("p", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
    made = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "s"}}
    made["spec"] = {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": {"spec": claimed["spec"]}}}}]}
    # The files alone do not show whether the claim exists.
    assert lint.json(made)["findings"] == []
    (warning,) = lint.json(made, options=access)["findings"]
    assert (warning["rule"], warning["line"]) == ("MissingPersistentVolumeClaim", 1)


def test_the_page_shows_what_the_command_prints(lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(ROOT)
    line = "lint examples/advice/training.yaml"
    out = lint.run(*line.split()[1:])
    assert f"$ shoal {line}\n{out}```" in (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def test_nothing_is_counted_where_no_file_could_be_read(lint: Lint) -> None:
    assert lint.run("-f", str(lint.folder / "nosuch"), code=2) == ""
    assert "nosuch" in lint.err
    bad = lint.folder / "bad.yaml"
    bad.write_text("a: [", encoding="utf-8")
    good = as_file(lint.folder, node("n", 8), name="good.json")
    assert lint.run("-f", str(bad), "-f", good, code=2) == "0 findings in 0 of 1 object\n"


def test_a_baseline_is_written_and_then_only_new_findings_count(lint: Lint) -> None:
    file, known = as_file(lint.folder, seeing_all_devices()), str(lint.folder / "known.json")
    assert lint.run(file, "--write-baseline", known) == f"1 finding written to {known}\n"
    assert lint.run(file, "--baseline", known, "--fail-on", "warning") == "0 findings in 0 of 1 object\n"
    new = as_file(lint.folder, seeing_all_devices("q"), name="new.json")
    assert "1 finding in" in lint.run(new, "--baseline", known, "--fail-on", "warning", code=1)
    (lint.folder / "known.json").write_text("{}")
    lint.run(file, "--baseline", known, code=2)
    assert "is no baseline" in lint.err


def program(folder: Path, name: str, script: str) -> None:
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_a_chart_is_rendered_by_helm_and_a_failure_is_an_error(lint: Lint, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = lint.folder / "chart"
    chart.mkdir()
    (chart / "Chart.yaml").write_text("name: c\n")
    monkeypatch.setenv("PATH", str(lint.folder / "bin"))
    lint.run(str(chart), code=2)
    assert (
        f"helm is not installed here, which renders this folder; render it where helm is: helm template lint {chart}"
        in lint.err
    )
    document = json.dumps(seeing_all_devices())
    program(lint.folder, "helm", f"[ \"$*\" = 'template -- lint {chart}' ] && echo '{document}'")
    assert f"{chart} (rendered): Pod default/p" in lint.run(str(chart))
    program(lint.folder, "helm", "echo first >&2; echo the last line >&2; exit 1")
    lint.run(str(chart), code=2)
    assert 'helm cannot render it: "the last line"' in lint.err
    program(lint.folder, "helm", "while :; do echo 0123456789012345678901234567890123456789; done")
    (error,) = with_charts(
        [str(chart)], lambda paths: read_plain_objects(paths) if paths else PlainObjects(), 1 << 20
    ).errors
    assert "helm writes more than 1 MiB" in str(error)


def test_a_template_is_said_to_be_one(lint: Lint) -> None:
    (lint.folder / "deployment.yaml").write_text('metadata:\n  {{- include "labels" . }}\n')
    lint.run(str(lint.folder / "deployment.yaml"), code=2)
    assert "is a template with {{ }} and no YAML before it is rendered; render it: helm template" in lint.err


@pytest.mark.parametrize("content", [b"\x89PNG\r\n{{\x00", b"\xff{{ }}", b"a: {{\x00"])
def test_a_binary_file_is_no_template(lint: Lint, content: bytes) -> None:
    (lint.folder / "picture.yaml").write_bytes(content)
    lint.run(str(lint.folder / "picture.yaml"), code=2)
    assert "template" not in lint.err


@pytest.mark.parametrize("form", ["sarif", "github", "junit"])
def test_reports_are_written_to_standard_output_alone(lint: Lint, form: str) -> None:
    assert "SHL-305" in lint.on(seeing_all_devices(), options=("-o", form))
    assert lint.err == ""


def test_the_page_of_common_mistakes_names_rules_that_there_are() -> None:
    page = (ROOT / "docs" / "common-mistakes.md").read_text(encoding="utf-8")
    cells = [line.split("|")[2] for line in page.splitlines() if line.startswith("| ")]
    named = {name for cell in cells for name in re.findall(r"`([A-Z][A-Za-z]+)`", cell)}
    assert named <= set(faults())
