"""`shoal cluster fail`, `heal`, `gpu-fail`, ...: what they write on nodes, and one line for what cannot be."""

from __future__ import annotations

import asyncio
import json
import random
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import typer

from build.cluster_server import ServerProcess
from shoal.cli.cluster_access import AccessOptions
from shoal.cli.cluster_faults import add_faults
from shoal.cli.cluster_folder import cluster_folder
from shoal.cli.exit_codes import exit_code
from shoal.cli.main import main
from shoal.cli.node_faults import nearest_nodes
from shoal.client.http.api import KubeApi
from shoal.client.http.locate import locate
from shoal.client.item import Obj
from shoal.client.kind import NODES
from shoal.client.port import Api
from shoal.embedded.apiserver.dynamic.endpoints import ANNOTATION as ENDPOINT
from shoal.embedded.apiserver.security.state_folder import Running, claim

CLOSED = "https://127.0.0.1:9"
FAULT, GPU_FAULTS = "shoal.dev/fault", "shoal.dev/gpu-faults"


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    server = ServerProcess(tmp_path_factory.mktemp("faults"), "--memory")
    yield server.kubeconfig
    server.stop()


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def shoal(*arguments: str) -> int:
    """`shoal cluster ...`."""
    app = typer.Typer()
    app.callback()(lambda: None)
    add_faults(app)
    command = typer.main.get_command(app)
    return exit_code(lambda: command.main(args=list(arguments), prog_name="shoal cluster", standalone_mode=False))


def asked(kubeconfig: Path, work: Callable[[Api], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        api = KubeApi(locate(kubeconfig), random.Random(1))
        try:
            return await work(api)
        finally:
            await api.close()

    return asyncio.run(run())


@pytest.fixture
def node(kubeconfig: Path) -> str:
    """A node with eight GPUs."""
    name = f"gpu-{uuid.uuid4().hex[:8]}"
    labels = {"nvidia.com/gpu.count": "8"}
    metadata = {"name": name, "labels": labels, "annotations": {ENDPOINT: "127.0.0.1:1"}}
    asked(kubeconfig, lambda api: api.create(NODES, {"metadata": metadata}))
    return name


def written_on(kubeconfig: Path, node: str) -> Obj:
    async def read(api: Api) -> Any:
        return (await api.get(NODES, "", node)).obj()["metadata"].get("annotations", {})

    found: Obj = asked(kubeconfig, read)
    return found


@pytest.mark.parametrize("kind", ["fail", "partition", "reboot", "spot-interrupt"])
def test_a_fault_is_an_annotation_until_it_is_healed(
    kind: str, kubeconfig: Path, node: str, capsys: pytest.CaptureFixture[str]
) -> None:
    there = ("--kubeconfig", str(kubeconfig))
    assert shoal(kind, node, *there) == 0
    first = json.loads(written_on(kubeconfig, node)[FAULT])
    assert first["kind"] == kind
    assert shoal(kind, node, *there) == 0
    second = json.loads(written_on(kubeconfig, node)[FAULT])
    assert first["id"] != second["id"], "a second reboot is another one"
    assert shoal("heal", node, *there) == 0
    assert FAULT not in written_on(kubeconfig, node)
    assert shoal("heal", node, *there) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-2:] == [f"node {node} is healed", f"node {node} had no fault"]


def test_gpus_fail_and_heal_one_by_one_or_all_together(kubeconfig: Path, node: str) -> None:
    there = ("--kubeconfig", str(kubeconfig))
    assert shoal("gpu-fail", node, "3", *there) == 0
    assert shoal("gpu-fail", node, "0", "--xid", "48", *there) == 0
    assert written_on(kubeconfig, node)[GPU_FAULTS] == '{"0":48,"3":79}'
    assert shoal("heal", node, "--gpu", "3", *there) == 0
    assert written_on(kubeconfig, node)[GPU_FAULTS] == '{"0":48}'
    assert shoal("heal", node, "--gpu", "3", *there) == 0
    assert shoal("heal", node, *there) == 0
    assert GPU_FAULTS not in written_on(kubeconfig, node)


def test_the_embedded_server_has_the_faults_that_are_asked_of_it(
    kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = ("--kubeconfig", str(kubeconfig))
    assert shoal("slow-api", "--delay-ms", "5", "--seconds", "1", *there) == 0
    assert shoal("slow-api", "--delay-ms", "0", *there) == 0
    assert shoal("expire-watches", *there) == 0
    lines = set(capsys.readouterr().err.splitlines())
    assert lines == {f"cluster: shoal ({locate(kubeconfig).server}, from --kubeconfig)"}


def _only_line(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line behind the line that names the cluster."""
    out, err = capsys.readouterr()
    assert out == ""
    lines = [line for line in err.splitlines() if not line.startswith("cluster: ")]
    assert len(lines) == 1, err
    return lines[0]


def test_the_nearest_nodes_begin_with_the_text_or_are_like_it() -> None:
    names = ["cpu-0", "dgx-a100-80-0", "g5-12xlarge-0", "p5-48xlarge-0", "p5-48xlarge-1"]
    assert nearest_nodes("p5", names) == ["p5-48xlarge-0", "p5-48xlarge-1"]
    assert nearest_nodes("p5-48xlarge-9", names)[:2] == ["p5-48xlarge-1", "p5-48xlarge-0"]
    assert nearest_nodes("zzz", names) == names[:3]


@pytest.mark.parametrize("command", [["fail"], ["heal"], ["gpu-fail", "0"], ["drain"]])
def test_a_node_that_does_not_exist_is_answered_with_the_nearest(
    command: list[str], kubeconfig: Path, node: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *more = command
    assert shoal(name, node[:-1] + "_", *more, "--kubeconfig", str(kubeconfig)) == 2
    line = _only_line(capsys)
    assert f'node "{node[:-1]}_"' in line
    assert f"the nearest: {node}" in line


@pytest.mark.parametrize("command", [["gpu-fail", "{node}", "8"], ["heal", "{node}", "--gpu", "9"]])
def test_a_gpu_that_is_not_there_is_answered_with_those_that_are(
    command: list[str], kubeconfig: Path, node: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shoal(*[part.format(node=node) for part in command], "--kubeconfig", str(kubeconfig)) == 2
    assert "its GPUs are 0 to 7" in _only_line(capsys)


def test_a_node_without_gpus_has_none_to_fail(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = {"name": "plain", "annotations": {ENDPOINT: "127.0.0.1:1"}}
    asked(kubeconfig, lambda api: api.create(NODES, {"metadata": plain}))
    assert shoal("gpu-fail", "plain", "0", "--kubeconfig", str(kubeconfig)) == 2
    assert "it has no GPUs" in _only_line(capsys)


@pytest.mark.parametrize("command", [["fail"], ["reboot"], ["gpu-fail", "0"], ["drain"]])
def test_a_node_that_is_not_simulated_is_left_alone(
    command: list[str], kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = f"real-{uuid.uuid4().hex[:8]}"
    asked(kubeconfig, lambda api: api.create(NODES, {"metadata": {"name": real}}))
    name, *more = command
    assert shoal(name, real, *more, "--kubeconfig", str(kubeconfig)) == 2
    assert f'node "{real}" is not simulated' in _only_line(capsys)
    assert FAULT not in written_on(kubeconfig, real)


@contextmanager
def another_cluster_runs() -> Iterator[None]:
    with claim(cluster_folder(None)) as claimed:
        claimed.announce(Running(1, "https://127.0.0.1:1", "/of/another/cluster", "1.36"))
        yield


def test_kubeconfig_wins_over_a_running_shoal_up(
    kubeconfig: Path, node: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    with another_cluster_runs():
        assert shoal("fail", node) == 0
    assert FAULT in written_on(kubeconfig, node)
    assert capsys.readouterr().err == f"cluster: shoal ({locate(kubeconfig).server}, from KUBECONFIG)\n"


def test_the_current_context_wins_over_a_running_shoal_up(
    kubeconfig: Path, node: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(kubeconfig.read_text())
    with another_cluster_runs():
        assert shoal("fail", node) == 0
    assert FAULT in written_on(kubeconfig, node)
    assert "from ~/.kube/config" in capsys.readouterr().err


def test_a_running_shoal_up_is_used_where_kubectl_has_no_cluster(
    kubeconfig: Path, node: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("apiVersion: v1\nkind: Config\n")
    with claim(cluster_folder(None)) as claimed:
        claimed.announce(Running(1, "https://127.0.0.1:1", str(kubeconfig), "1.36"))
        assert shoal("fail", node) == 0
    assert FAULT in written_on(kubeconfig, node)
    assert "from `shoal up`" in capsys.readouterr().err


def test_a_kubeconfig_that_shoal_up_left_behind_says_that_its_cluster_does_not_run(
    kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = tmp_path / "left"
    with claim(left):
        (left / "kubeconfig").write_text(kubeconfig.read_text().replace(locate(kubeconfig).server, CLOSED))
    monkeypatch.setenv("KUBECONFIG", str(left / "kubeconfig"))
    assert shoal("fail", "n") == 1
    line = _only_line(capsys)
    assert line.endswith(f"does not run at {CLOSED}; start it with `shoal up --state {left}`")


def test_the_kubeconfig_of_a_cluster_that_was_reset_is_answered_with_shoal_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(cluster_folder(None) / "kubeconfig"))
    assert shoal("fail", "n") == 2
    assert _only_line(capsys).endswith("start it with `shoal up`")


def test_another_user_is_impersonated_and_groups_need_one(
    kubeconfig: Path, node: str, capsys: pytest.CaptureFixture[str]
) -> None:
    there = ("--kubeconfig", str(kubeconfig))
    assert shoal("fail", node, *there, "--as-group", "dev") == 2
    assert "--as-group: is given without --as" in _only_line(capsys)
    access = AccessOptions(kubeconfig=kubeconfig, as_user="alice", as_group=["dev", "ops"]).access()
    assert access.headers == (("Impersonate-User", "alice"), ("Impersonate-Group", "dev"), ("Impersonate-Group", "ops"))


@pytest.mark.parametrize(("text", "seconds"), [("0", 0), ("5", 5), ("2m", 120), ("1.5s", 1.5)])
def test_the_time_limit_of_a_request_is_read_as_kubectl_reads_it(text: str, seconds: float, kubeconfig: Path) -> None:
    assert AccessOptions(kubeconfig=kubeconfig, request_timeout=text).access().timeout_s == seconds


def test_a_time_limit_that_is_no_duration_is_one_line(
    kubeconfig: Path, node: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shoal("fail", node, "--kubeconfig", str(kubeconfig), "--request-timeout", "soon") == 2
    assert '--request-timeout: "soon" is not a duration' in _only_line(capsys)


def test_the_cluster_and_the_user_of_a_kubeconfig_can_be_chosen(
    kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = ("--kubeconfig", str(kubeconfig))
    assert AccessOptions(kubeconfig=kubeconfig, cluster="shoal", user="shoal").access().name == "shoal"
    assert shoal("heal", "n", *there, "--user", "none") == 2
    assert 'there is no user "none"' in _only_line(capsys)


def test_no_cluster_is_a_line_about_how_to_name_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert shoal("fail", "n") == 2
    assert "no cluster is known" in _only_line(capsys)


def test_a_context_that_is_not_there_names_those_that_are(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shoal("fail", "n", "--kubeconfig", str(kubeconfig), "--context", "none") == 2
    assert "choose one of: shoal" in _only_line(capsys)


def test_a_server_that_does_not_answer_is_a_failure_and_not_the_users_fault(
    tmp_path: Path, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    text = kubeconfig.read_text()
    url = next(line.split()[-1] for line in text.splitlines() if "server:" in line)
    elsewhere.write_text(text.replace(url, "https://127.0.0.1:1"))
    assert shoal("fail", "n", "--kubeconfig", str(elsewhere)) == 1
    assert "the API server at https://127.0.0.1:1 does not answer: connection refused" in _only_line(capsys)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("shoal", "if it is a cluster of `shoal up`, it has ended: start it with `shoal up`"),
        ("other", "check that the cluster runs, or name another one with --kubeconfig, --context or KUBECONFIG"),
    ],
)
def test_a_copied_kubeconfig_of_an_ended_cluster_is_answered_with_file_address_and_what_to_do(
    name: str, advice: str, tmp_path: Path, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    text = kubeconfig.read_text().replace(locate(kubeconfig).server, CLOSED)
    for place in ("current-context: ", "contexts:\n- name: "):
        text = text.replace(f"{place}shoal", f"{place}{name}")
    copy.write_text(text)
    for command in (["get", "pods"], ["cluster", "fail", "n"], ["version"]):
        assert main([*command, "--kubeconfig", str(copy)]) == 1
        line = capsys.readouterr().err.splitlines()[-1]
        assert line.startswith(f'shoal: context "{name}" of {copy}: ')
        assert f"the API server at {CLOSED} does not answer: connection refused; " in line
        assert line.endswith(advice)
