"""The container image is built from the Containerfile, and Shoal runs in it without rights and without a shell."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tools.image import version

from build.cluster_server import ServerProcess
from build.container_tools import PROGRAMS, ContainerTools
from build.fake_kubelet import fake_kubelet
from build.free_ports import free_port
from shoal.units.commit import commit

pytestmark = [
    pytest.mark.external(*PROGRAMS),
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as it builds and runs containers"),
]
_AMD64, _ARM64 = "localhost/shoal-test:amd64", "localhost/shoal-test:arm64"
_MOST_BYTES = 100_000_000
_MACHINES = {_AMD64: 0x3E, _ARM64: 0xB7}
"""The processor of a program, as its ELF header has it."""
_PATIENCE_S = 60


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerTools]:
    with pytest.MonkeyPatch.context() as environment:
        found = ContainerTools(tmp_path_factory.mktemp("containers"), environment)
        found.build(_AMD64, "amd64")
        found.build(_ARM64, "arm64")
        yield found


def run(tools: ContainerTools, *arguments: str, entry: str = "") -> subprocess.CompletedProcess[str]:
    options = [f"--entrypoint={entry}"] if entry else []
    command = tools.podman_run(_AMD64, options, arguments)
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=_PATIENCE_S)


@contextmanager
def started(tools: ContainerTools, options: list[str], *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Ended afterwards by the signal that the kubelet sends; it has to end without an error."""
    command = tools.podman_run(_AMD64, options, arguments)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        _, said = process.communicate(timeout=_PATIENCE_S)
    assert process.returncode == 0, said
    assert "Traceback" not in said


def test_the_image_says_its_version_and_its_commit(tools: ContainerTools) -> None:
    said = run(tools, "version", "--client")
    assert said.returncode == 0, said.stderr
    assert version() in said.stdout
    assert commit() in said.stdout


def test_commands_can_be_executed_by_name(tools: ContainerTools) -> None:
    said = run(tools, "run", "--help", entry="shoal")
    assert said.returncode == 0, said.stderr
    assert "--controllers" in said.stdout


def test_the_image_has_no_shell(tools: ContainerTools) -> None:
    assert run(tools, "-c", "true", entry="/bin/sh").returncode == 127


def test_the_process_is_not_root_and_can_write_nothing(tools: ContainerTools) -> None:
    look = "import os; print(os.getuid(), [p for p in ('/', '/tmp', '/usr', '/etc') if os.access(p, os.W_OK)])"
    assert run(tools, "-c", look, entry="python3").stdout == "65532 []\n"


def test_shoal_run_works_in_the_image(tools: ContainerTools, server: ServerProcess, tmp_path: Path) -> None:
    # The kubeconfig of the server is readable for its owner only.
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_bytes(server.kubeconfig.read_bytes())
    kubeconfig.chmod(0o644)
    address = f"127.0.0.1:{free_port()}"
    # OpenSSL reads the certificate of a client from a file.
    mounted = [f"--volume={kubeconfig}:/kubeconfig:ro", "--tmpfs=/tmp"]
    where = ["--kubeconfig=/kubeconfig", f"--metrics-address={address}", "--notify-fd=1"]
    with started(tools, mounted, "run", *where) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        with urllib.request.urlopen(f"http://{address}/readyz", timeout=_PATIENCE_S) as answer:
            assert answer.status == 200


def test_the_agent_gives_devices_to_a_kubelet_from_the_image(tools: ContainerTools) -> None:
    with TemporaryDirectory(prefix="plugins-") as name, fake_kubelet(Path(name)) as kubelet:
        # The folder of a kubelet belongs to root; here, other users may write there.
        Path(name).chmod(0o777)
        Path(name, "kubelet.sock").chmod(0o777)
        folder = [f"--volume={name}:/plugins"]
        options = ["--fake=dgx-h100", "--device-plugin-dir=/plugins", "--pod-resources=/plugins/pods.sock"]
        with started(tools, folder, "agent", "run", *options):
            kubelet.until(lambda: kubelet.allocatable() == 8)


@pytest.mark.parametrize("tag", [_AMD64, _ARM64], ids=["amd64", "arm64"])
def test_all_programs_and_libraries_are_for_the_architecture(tools: ContainerTools, tag: str) -> None:
    assert tools.inspect(tag)["architecture"] == tag.partition(":")[2]
    with tools.files(tag) as root:
        assert (root / "usr/local/lib/python3.11/dist-packages/shoal/COMMIT").read_text().strip() == commit()
        found = {
            file: int.from_bytes(head[18:20], "little")
            for file in root.rglob("*")
            if file.is_file() and not file.is_symlink()
            if (head := file.open("rb").read(20))[:4] == b"\x7fELF"
        }
    assert len(found) > 50
    assert {file for file, machine in found.items() if machine != _MACHINES[tag]} == set()


@pytest.mark.parametrize("tag", [_AMD64, _ARM64], ids=["amd64", "arm64"])
def test_the_compressed_image_has_at_most_100_megabytes(tools: ContainerTools, tag: str) -> None:
    assert tools.compressed_bytes(tag) <= _MOST_BYTES


def test_the_labels_are_those_of_oci(tools: ContainerTools) -> None:
    config = tools.inspect(_AMD64)["config"]
    assert isinstance(config, dict)
    labels = {name.removeprefix("org.opencontainers.image."): text for name, text in config["Labels"].items()}
    assert labels["version"] == version()
    assert labels["revision"] == commit()
    assert labels["licenses"] == "Apache-2.0"
    assert config["User"] == "65532:65532"


def test_two_builds_of_a_commit_are_the_same(tools: ContainerTools) -> None:
    tools.build("localhost/shoal-test:again", "amd64", "--no-cache")
    assert tools.digest("localhost/shoal-test:again") == tools.digest(_AMD64)


def test_each_debian_package_is_listed_with_its_version(tools: ContainerTools) -> None:
    with tools.files(_ARM64) as root:
        listed = {file.name: file.read_text() for file in (root / "var/lib/dpkg/status.d").iterdir()}
        licenses = {file.parent.name for file in root.glob("usr/share/doc/*/copyright")}
    assert {"libc6", "libpython3.11-stdlib", "libssl3"} <= {*listed}
    assert all("\nVersion: " in text for text in listed.values())
    assert {"libc6", "libssl3"} <= licenses


def test_the_packages_and_the_program_are_layers_of_their_own(tools: ContainerTools) -> None:
    assert json.dumps(tools.inspect(_AMD64)["rootfs"]).count("sha256:") == 2
