"""Runs a real containerd on private folders and a private socket, and makes images for it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

PAUSE, TOOLS = "localhost/pause:1", "localhost/tools:1"
_START_S = 30
_PROGRAMS = (
    "sh",
    "sleep",
    "cat",
    "stty",
    "env",
    "id",
    "ls",
    "mkfifo",
    "wc",
    "nproc",
    "dd",
    "grep",
    "stat",
    "touch",
    "httpd",
)
_CONFIG = """
version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
  address = "{folder}/socket"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  # Containers of machines that are containers themselves may not lower it.
  restrict_oom_score_adj = true
  enable_cdi = true
  cdi_spec_dirs = ["{folder}/cdi"]
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{folder}/cni/bin"
    conf_dir = "{folder}/cni/conf"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
"""


class Containerd:
    """Needs `containerd`, `ctr`, `runc` and a static `busybox` on PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "socket"
        (folder / "config.toml").write_text(_CONFIG.format(folder=folder))
        self.process = self._start()

    def version(self) -> int:
        """The first number."""
        said = subprocess.run(["containerd", "--version"], check=True, capture_output=True, text=True).stdout
        found = re.search(r"\b(\d+)\.\d+\.\d+", said)
        assert found is not None, said
        return int(found[1])

    def kill_and_start(self) -> None:
        self.process.kill()
        self.process.wait()
        # A client would be refused at once by the socket of the killed process.
        self.socket.unlink()
        self.process = self._start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(_START_S)
        # Of containers that a failed test left.
        for line in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
            path = line.split()[4]
            if path.startswith(f"{self.folder}/"):
                subprocess.run(["umount", "-l", path], check=False, capture_output=True)

    def until_empty(self) -> None:
        """Wait until there are no containers; not for ever, so that a failed test ends."""
        deadline = time.monotonic() + _START_S
        while self._ctr("containers", "list", "--quiet").strip() and time.monotonic() < deadline:
            pass

    def import_image(self, name: str, *command: str) -> None:
        archive = self.folder / "image.tar"
        archive.write_bytes(oci_archive(name, command))
        self._ctr("images", "import", str(archive))

    def _start(self) -> subprocess.Popen[bytes]:
        command = ["containerd", "-c", str(self.folder / "config.toml")]
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        # ctr does not always wait for the socket.
        deadline = time.monotonic() + _START_S
        while True:
            try:
                self._ctr("--connect-timeout", f"{_START_S}s", "version")
            except subprocess.CalledProcessError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise
            else:
                return process

    def _ctr(self, *arguments: str) -> bytes:
        return subprocess.run(
            ["ctr", "-a", str(self.socket), "-n", "k8s.io", *arguments],
            check=True,
            capture_output=True,
            timeout=_START_S,
        ).stdout


def oci_archive(name: str, command: tuple[str, ...]) -> bytes:
    """An image with busybox and nothing else."""
    busybox = shutil.which("busybox")
    assert busybox is not None
    layer = _tar({"bin/busybox": Path(busybox).read_bytes()}, {f"bin/{name}": "busybox" for name in _PROGRAMS})
    config = _json(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": list(command), "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": _described(config, "application/vnd.oci.image.config.v1+json"),
            "layers": [_described(layer, "application/vnd.oci.image.layer.v1.tar")],
        }
    )
    listed = _described(manifest, "application/vnd.oci.image.manifest.v1+json")
    listed["annotations"] = {"io.containerd.image.name": name}
    index = _json({"schemaVersion": 2, "manifests": [listed]})
    files = {f"blobs/sha256/{_digest(one)[7:]}": one for one in (layer, config, manifest)}
    return _tar({"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": index, **files}, {})


def _described(content: bytes, type_: str) -> dict[str, Any]:
    return {"mediaType": type_, "digest": _digest(content), "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _tar(files: dict[str, bytes], links: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
        for name, target in links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return buffer.getvalue()


def may_run() -> bool:
    """Only root may start containers here."""
    return os.geteuid() == 0
