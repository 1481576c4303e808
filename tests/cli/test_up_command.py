"""`shoal up`, `shoal down`, `shoal cluster`: a line to evaluate, a server per folder, a line for what is wrong."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shoal.agent.kubelet.mounts import bind, unmount
from shoal.cli.cluster_folder import cluster_folder
from shoal.cli.down import end_server
from shoal.cli.embedded_options import EmbeddedOptions, GpuSoftwareMode
from shoal.cli.foreground import run_in
from shoal.cli.main import main
from shoal.cli.up import Authorization, KubeVersion
from shoal.embedded.apiserver.security.state_folder import claim, holder, running
from shoal.embedded.apiserver.settings import KUBE_VERSIONS, AuthorizationMode, Settings
from shoal.embedded.machines.gpu_software import GPU_SOFTWARE
from shoal.units.errors import UserError

URL = "https://127.0.0.1:12345"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    yield tmp_path
    end = holder(tmp_path / "xdg" / "shoal")
    if end is not None and end != os.getpid():
        os.kill(end, signal.SIGKILL)


def settings(folder: Path) -> Settings:
    return Settings(folder, folder / "kube config")


def test_the_folder_is_where_xdg_says_or_in_the_home_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cluster_folder(None) == home / "xdg" / "shoal"
    monkeypatch.setenv("XDG_STATE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(home))
    assert cluster_folder(None) == home / ".local" / "state" / "shoal"
    monkeypatch.chdir(home)
    assert cluster_folder(Path("here")) == home / "here"


def test_choices_of_the_command_are_those_of_the_settings() -> None:
    assert tuple(KubeVersion) == KUBE_VERSIONS
    assert tuple(GpuSoftwareMode) == GPU_SOFTWARE
    assert set(Authorization) == set(AuthorizationMode.__args__)  # type: ignore[attr-defined]


def test_the_gpu_software_of_the_nodes_reaches_the_machines_and_the_processes_of_their_own() -> None:
    chosen = EmbeddedOptions(nodes="1xp5.48xlarge", gpu_software=GpuSoftwareMode.PODS)
    assert [one.gpu_software for one in chosen.to_cluster_options().machines] == ["pods"]
    assert "--gpu-software pods" in " ".join(chosen.arguments())
    assert "--gpu-software" not in " ".join(EmbeddedOptions(nodes="1xp5.48xlarge").arguments())


@pytest.mark.parametrize("more", [[], ["--detach"]], ids=["here", "detached"])
@pytest.mark.parametrize("host", ["", "  "])
def test_an_empty_address_is_refused_and_is_not_every_address(
    host: str, more: list[str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--host", host, "--port", "0", "--nodes", "none", *more]) == 2
    assert "--host: names no address to listen on" in capsys.readouterr().err
    assert running(home / "xdg" / "shoal") is None


@pytest.mark.parametrize("host", ["\u202e", "a\nb", "x" * 300])
def test_an_address_that_cannot_be_one_is_refused(host: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--host", host, "--port", "0", "--nodes", "none"]) == 2
    err = capsys.readouterr().err
    assert "is neither an address nor a host name" in err
    assert len(err) < 300


def test_once_ready_standard_output_is_one_line_for_the_shell(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen = []

    def serve(_: Settings, ready: Callable[[str], None]) -> None:
        ready(URL)
        seen.append(running(home / "state"))

    run_in(home / "state", settings(home / "state"), serve)
    out = capsys.readouterr().out
    assert out == f"export KUBECONFIG={shlex.quote(str(home / 'state' / 'kube config'))}\n"
    assert seen[0] is not None
    assert (seen[0].pid, seen[0].url) == (os.getpid(), URL)
    assert running(home / "state") is None


@pytest.mark.parametrize("is_stored", [True, False])
def test_the_last_line_says_that_the_cluster_ended_and_what_is_left_of_it(
    is_stored: bool, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = home / "state"
    run_in(folder, Settings(folder if is_stored else None, folder / "kubeconfig"), lambda _, ready: ready(URL))
    last = capsys.readouterr().err.splitlines()[-1]
    again = f"`shoal up --state {folder}` starts it again with its objects" if is_stored else "its objects are lost"
    assert last.startswith(
        f"the cluster has ended; {again}. KUBECONFIG, if it was exported as {folder / 'kubeconfig'},"
    )
    assert last.endswith("points to a cluster that does not run: unset KUBECONFIG")


def test_a_server_that_fails_leaves_the_folder_free(home: Path) -> None:
    def serve(_: Settings, __: Callable[[str], None]) -> None:
        raise UserError("it broke")

    with pytest.raises(UserError):
        run_in(home / "state", settings(home / "state"), serve)
    assert holder(home / "state") is None


@pytest.mark.parametrize("more", [[], ["--detach"]])
def test_a_second_instance_is_one_clear_line(home: Path, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with claim(cluster_folder(None)):
        assert main(["up", "--port", "0", *more]) == 2
    err = capsys.readouterr().err
    assert "a cluster is running here already" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("more", [[], ["--detach"]])
def test_a_busy_port_is_one_clear_line(more: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["up", "--port", str(port), *more]) == 2
    fix = "choose another port with --port, or --port 0 for any free one"
    assert capfd.readouterr() == ("", f"shoal: cannot listen on 127.0.0.1:{port}: Address already in use; {fix}\n")
    assert not cluster_folder(None).exists()


@pytest.mark.parametrize("more", [[], ["--detach"]])
def test_a_busy_port_for_pages_that_the_user_named_is_one_clear_line(
    more: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["up", "--port", "0", "--web-port", str(port), *more]) == 2
    assert f"cannot listen on 127.0.0.1:{port}" in capfd.readouterr().err
    assert not cluster_folder(None).exists()


def test_a_wrong_price_file_is_named_before_anything_starts(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (home / "prices.yaml").write_text("machines: [{perHour: much}]")
    assert main(["up", "--port", "0", "--prices", str(home / "prices.yaml")]) == 2
    assert "prices.yaml" in capfd.readouterr().err
    assert not cluster_folder(None).exists()


@pytest.mark.parametrize("more", [[], ["--detach"]])
def test_a_busy_port_for_metrics_is_one_clear_line(more: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["up", "--port", "0", "--metrics-port", str(port), *more]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"shoal: cannot listen on 127.0.0.1:{port}: Address already in use; choose another port with")
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", [["up", "--port", "0"], ["up", "--port", "0", "--detach"], ["cluster", "status"]])
def test_a_folder_of_another_version_is_one_clear_line(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    folder = cluster_folder(None)
    folder.mkdir(parents=True)
    (folder / "shoal.json").write_text('{"format":99}')
    assert main(command) == 2
    err = capsys.readouterr().err
    assert "another version of Shoal" in err
    assert err.count("\n") == 1


def test_down_and_status_say_when_nothing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["down"]) == 0
    assert "no cluster is running" in capsys.readouterr().err
    assert main(["cluster", "status"]) == 1
    assert "not running" in capsys.readouterr().out
    assert main(["cluster", "status", "-o", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told == {"running": False, "state": str(cluster_folder(None)), "server": "not running"}


def test_a_question_without_an_answer_ends_its_line(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with claim(cluster_folder(None)):
        pass
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["cluster", "reset"]) == 130
    assert capsys.readouterr().err.endswith("[y/N]:\nshoal: interrupted\n")
    assert cluster_folder(None).exists()
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert main(["cluster", "reset"]) == 130
    assert cluster_folder(None).exists()


def test_reset_deletes_what_is_ours_and_nothing_else(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = cluster_folder(None)
    with claim(folder):
        (folder / "state.db").write_text("x")
        assert main(["cluster", "reset", "--yes"]) == 2
    assert (folder / "state.db").exists()
    assert main(["cluster", "reset", "--yes"]) == 0
    assert not folder.exists()
    assert main(["cluster", "reset", "--yes"]) == 0
    (home / "thesis").mkdir()
    (home / "thesis" / "a.tex").write_text("x")
    assert main(["cluster", "reset", "--yes", "--state", str(home / "thesis")]) == 2
    assert (home / "thesis" / "a.tex").exists()
    assert "nothing was deleted" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_reset_deletes_no_files_that_are_mounted_for_a_pod(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, data = home / "state", home / "data"
    place = folder / "this-machine" / "pods" / "uid" / "subpaths"
    place.mkdir(parents=True)
    (folder / "shoal.json").touch()
    data.mkdir()
    (data / "file").write_text("kept")
    bind(data, place)
    try:
        assert main(["cluster", "reset", "--yes", "--state", str(folder)]) == 2
    finally:
        unmount(place)

    assert f"{place} is mounted for a pod of this cluster" in capsys.readouterr().err
    assert (data / "file").read_text() == "kept"


def test_reset_gets_rid_of_a_broken_folder(home: Path) -> None:
    folder = home / "state"
    folder.mkdir()
    (folder / "shoal.json").write_text("{torn")
    assert main(["cluster", "reset", "--yes", "--state", str(folder)]) == 0
    assert not folder.exists()


_HOLDER = """
import signal, sys
from pathlib import Path
from shoal.embedded.apiserver.security.state_folder import claim
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with claim(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(("hearing", "patience_s", "words"), [("good", 90.0, "has ended"), ("deaf", 0.5, "was killed")])
def test_down_asks_first_and_then_insists(home: Path, hearing: str, patience_s: float, words: str) -> None:
    command = [sys.executable, "-c", _HOLDER, str(home / "state"), hearing]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "held\n"
        assert words in end_server(home / "state", patience_s=patience_s)
        assert holder(home / "state") is None


@pytest.mark.slow
def test_a_detached_cluster_answers_keeps_its_objects_and_ends(capfd: pytest.CaptureFixture[str]) -> None:
    folder = cluster_folder(None)
    assert main(["up", "--detach", "--port", "0"]) == 0
    out, err = capfd.readouterr()
    assert out == f"export KUBECONFIG={folder / 'kubeconfig'}\n"
    steps = [line for line in err.splitlines() if not line.startswith("waiting for ")]
    assert steps[0] == f"starting Kubernetes 1.36 in {folder}"
    assert steps[1].startswith("the cluster is ready at https://127.0.0.1:")
    pages = steps[2].removeprefix("pages: ")
    assert "p5-48xlarge-0" in urllib.request.urlopen(pages, timeout=60).read().decode()  # noqa: S310 - of loopback
    assert (folder / "kubeconfig").stat().st_mode & 0o777 == 0o600
    assert main(["cluster", "status"]) == 0
    told = capfd.readouterr().out
    assert "ready      ok" in told
    assert "namespaces 4" in told
    assert main(["version", "-o", "json"]) == 0
    versions = json.loads(capfd.readouterr().out)
    assert versions["server"]["version"].startswith("v1.36")
    assert "from `shoal up`" in versions["server"]["cluster"]
    assert main(["version"]) == 0
    assert "\nServer Version: v1.36" in capfd.readouterr().out
    keys = (folder / "kubeconfig").read_text().partition("users:")[2]
    assert main(["down"]) == 0
    assert holder(folder) is None
    assert main(["up", "--detach", "--port", "0", "--no-web"]) == 0
    assert "pages:" not in capfd.readouterr().err
    assert (folder / "kubeconfig").read_text().partition("users:")[2] == keys
    assert main(["down"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("request_", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm_end_it_at_once_and_well(home: Path, request_: signal.Signals) -> None:
    command = [sys.executable, "-m", "shoal", "up", "--port", "0", "--memory", "--state", str(home / "state")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("export KUBECONFIG=")
        assert json.loads((home / "state" / "running.json").read_text())["pid"] == server.pid
        server.send_signal(request_)
        _, err = server.communicate(timeout=90)
        assert server.returncode == 0
        assert "Traceback" not in err
    assert not (home / "state" / "state.db").exists()
