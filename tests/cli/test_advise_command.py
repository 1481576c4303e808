"""`shoal advise`: files and clusters are checked by the rules of the advisor."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.cluster_server import ServerProcess
from build.manifests import Object, as_file, node, pod
from shoal.cli.main import main
from shoal.policy.checks import reasons

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "advice" / "training.yaml"


class Advise:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self.err = ""

    def run(self, *arguments: str, code: int = 0) -> str:
        found = main(["advise", *arguments])
        out, self.err = self._capsys.readouterr()
        assert found == code, self.err
        return out

    def on(self, *objects: Object, options: tuple[str, ...] = (), code: int = 0) -> str:
        return self.run("-f", as_file(self.folder, *objects), *options, code=code)

    def json(self, *objects: Object, options: tuple[str, ...] = ()) -> Any:
        return json.loads(self.on(*objects, options=(*options, "-o", "json")))


@pytest.fixture
def advise(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Advise:
    monkeypatch.setenv("COLUMNS", "100")
    return Advise(tmp_path, capsys)


def seeing_all_devices(name: str = "p", **spec: Any) -> Object:
    made = pod(name, 1, **spec)
    made["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    return made


def test_the_example_has_the_warnings_of_its_header(advise: Advise) -> None:
    out = advise.run("-f", str(EXAMPLE))
    assert out.splitlines()[-1] == "2 warnings about 1 of 2 objects"
    assert f"#   {out.splitlines()[-1]}" in EXAMPLE.read_text(encoding="utf-8")
    assert f"{EXAMPLE}: document 2: Job research/finetune\n  UnknownProductName  spec.template" in out


def test_a_file_without_faults_has_no_warnings(advise: Advise) -> None:
    assert advise.on(node("n", 8), pod("p", 1)) == "0 warnings about 0 of 2 objects\n"


def test_a_warning_has_field_message_and_correction(advise: Advise) -> None:
    document = advise.json(seeing_all_devices("team/p"))
    (warning,) = document["warnings"]
    assert document["objects"] == 1
    assert (warning["kind"], warning["namespace"], warning["name"]) == ("Pod", "team", "p")
    assert (warning["rule"], warning["field"]) == ("VisibleDevicesByHand", "spec.containers[0].env[0]")
    assert warning["fix"] == "leave it out"


def test_standard_input_is_read(advise: Advise, monkeypatch: pytest.MonkeyPatch) -> None:
    given = io.TextIOWrapper(io.BytesIO(json.dumps(seeing_all_devices()).encode()))
    monkeypatch.setattr("sys.stdin", given)
    assert "standard input: Pod default/p\n  VisibleDevicesByHand" in advise.run("-f", "-")


def test_the_exit_code_tells_of_warnings_only_if_asked_for(advise: Advise) -> None:
    advise.on(seeing_all_devices(), code=0)
    advise.on(seeing_all_devices(), options=("--fail-on", "warning"), code=1)
    advise.on(pod("p"), options=("--fail-on", "warning"), code=0)


def test_rules_are_chosen_and_ignored_by_name(advise: Advise) -> None:
    assert advise.json(seeing_all_devices(), options=("--ignore", "VisibleDevicesByHand"))["warnings"] == []
    assert advise.json(seeing_all_devices(), options=("--rule", "NoRendezvous"))["warnings"] == []
    assert len(advise.json(seeing_all_devices(), options=("--rule", "VisibleDevicesByHand"))["warnings"]) == 1


def test_only_objects_of_a_namespace_are_checked(advise: Advise) -> None:
    objects = (seeing_all_devices("a/p"), seeing_all_devices("b/q"), seeing_all_devices("r"))
    assert [one["name"] for one in advise.json(*objects, options=("-n", "b"))["warnings"]] == ["q"]
    assert [one["name"] for one in advise.json(*objects, options=("-n", "default"))["warnings"]] == ["r"]


def test_names_of_objects_are_written_as_kubectl_writes_them(advise: Advise) -> None:
    bad = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {}}
    assert advise.on(bad, seeing_all_devices(), options=("-o", "name")) == "deployment.apps/web\npod/p\n"


def test_the_wide_table_has_a_row_for_each_warning(advise: Advise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    head, row = advise.on(seeing_all_devices(), options=("-o", "wide")).splitlines()
    assert head.split() == ["file", "object", "rule", "field", "message", "fix"]
    assert "Pod default/p" in row
    assert row.rstrip().endswith("leave it out")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "neither -f PATH nor --live is given"),
        (("-f", "no-such-file.yaml"), "cannot be read"),
        (("-f", str(EXAMPLE), "--rule", "NoRendevous"), "did you mean NoRendezvous?"),
        (("-f", str(EXAMPLE), "--ignore", "Nothing"), "--ignore"),
        (("-f", str(EXAMPLE), "--fail-on", "error"), "--fail-on"),
        (("-f", str(EXAMPLE), "-o", "xml"), "--output"),
    ],
)
def test_wrong_input_is_one_line_and_code_two(advise: Advise, arguments: tuple[str, ...], words: str) -> None:
    advise.run(*arguments, code=2)
    assert words in advise.err
    assert len(advise.err.splitlines()) == 1


def test_a_file_that_is_not_yaml_does_not_hide_the_warnings_of_the_others(advise: Advise) -> None:
    (advise.folder / "a.yaml").write_text("a: [")
    as_file(advise.folder, seeing_all_devices())
    assert "VisibleDevicesByHand" in advise.run("-f", str(advise.folder), code=2)
    assert "a.yaml" in advise.err


def test_what_is_no_object_is_named_and_not_checked(advise: Advise) -> None:
    (advise.folder / "values.yaml").write_text("driver: {enabled: false}\n---\nresources: {limits: {cpu: 1}}\n")
    out = advise.run("-f", str(advise.folder))
    assert out == "0 warnings about 0 of 0 objects\n"
    first, second = advise.err.splitlines()
    assert first.endswith(
        "values.yaml: document 1: not checked, because it is no object but a map with the fields driver, perhaps "
        "values of a Helm chart"
    )
    assert second.endswith("a fragment of a container (resources)")


def test_an_object_that_the_server_rejects_is_a_warning(advise: Advise) -> None:
    bad = {"apiVersion": "v1", "kind": "Node", "metadata": {}}
    (warning,) = advise.json(bad)["warnings"]
    assert (warning["rule"], warning["field"], warning["message"]) == ("InvalidObject", "metadata.name", "is required")


def test_labels_are_judged_only_where_the_files_have_nodes(advise: Advise) -> None:
    picky = pod("p", 1, nodeSelector={"accelerator": "nvidia"})
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": picky}}
    assert advise.json(job)["warnings"] == []
    (warning,) = advise.json(job, node("n", 8))["warnings"]
    assert warning["rule"] == "UnknownNodeLabel"


def test_the_list_names_every_rule_with_what_it_finds(advise: Advise) -> None:
    rows = json.loads(advise.run("--list", "-o", "json"))
    assert {row["rule"]: row["fault"] for row in rows} == reasons()
    assert advise.run("--list", "-o", "name").splitlines() == list(reasons())
    assert "PrioritySomething" not in advise.run("--list")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    server = ServerProcess(tmp_path_factory.mktemp("advised"), "--memory")
    yield server.kubeconfig
    server.stop()


def test_a_cluster_is_checked_and_files_are_checked_against_it(advise: Advise, cluster: Path) -> None:
    access = ("--live", "--kubeconfig", str(cluster))
    assert "0 warnings" in advise.run(*access)
    claimed = pod("p", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
    made = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "s"}}
    made["spec"] = {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": claimed}}}]}
    # The files alone do not show whether the claim exists.
    assert advise.json(made)["warnings"] == []
    (warning,) = advise.json(made, options=access)["warnings"]
    assert (warning["rule"], warning["source"] != "") == ("MissingPersistentVolumeClaim", True)


def test_the_page_shows_what_the_command_prints(advise: Advise, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(ROOT)
    line = "advise -f examples/advice/training.yaml"
    out = advise.run(*line.split()[1:])
    assert f"$ shoal {line}\n{out}```" in (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def test_every_rule_is_on_the_page_of_advice_and_no_other_is() -> None:
    page = (ROOT / "docs" / "advice.md").read_text(encoding="utf-8").partition("## Rules")[2].partition("\n## ")[0]
    rows = [line.split("|")[2] for line in page.splitlines() if line.startswith("| ")][1:]
    assert {name for row in rows for name in re.findall(r"`([A-Za-z]+)`", row)} == set(reasons())


def test_nothing_is_counted_where_no_file_could_be_read(advise: Advise) -> None:
    assert advise.run("-f", str(advise.folder / "nosuch"), code=2) == ""
    assert "nosuch" in advise.err
    bad = advise.folder / "bad.yaml"
    bad.write_text("a: [", encoding="utf-8")
    good = as_file(advise.folder, node("n", 8), name="good.json")
    assert advise.run("-f", str(bad), "-f", good, code=2) == "0 warnings about 0 of 1 object\n"
