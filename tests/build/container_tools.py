"""Builds and runs the image of Shoal with buildah, podman and runc, in folders of the test's own.

The builder is Debian's image, or a root of Debian's packages that `mmdebstrap` makes where no registry is reached;
`SHOAL_TEST_BUILDER` names another one.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tools import image

PROGRAMS = ("buildah", "podman", "runc", "mmdebstrap")
_BUILDER = "localhost/shoal-test-builder"
# Containers run in this machine's network and cgroups, because containers of CI may not have their own.
_CONTAINERS = """
[containers]
netns = "host"
cgroupns = "host"
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
"""
_STORAGE = """
[storage]
driver = "overlay"
graphroot = "{folder}/graph"
runroot = "{folder}/run"
"""
_PATIENCE_S = 120


class ContainerTools:
    def __init__(self, folder: Path, environment: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self._policy = folder / "policy.json"
        self._policy.write_text(json.dumps({"default": [{"type": "insecureAcceptAnything"}]}))
        (folder / "containers.conf").write_text(_CONTAINERS)
        (folder / "storage.conf").write_text(_STORAGE.format(folder=folder))
        environment.setenv("CONTAINERS_CONF", str(folder / "containers.conf"))
        environment.setenv("CONTAINERS_STORAGE_CONF", str(folder / "storage.conf"))
        self._builder = os.environ.get("SHOAL_TEST_BUILDER") or self._make_builder()

    def build(self, tag: str, architecture: str, *more: str) -> None:
        isolation = ["--isolation=chroot", f"--signature-policy={self._policy}", f"--build-arg=BUILDER={self._builder}"]
        image.build("buildah", tag, f"linux/{architecture}", [*isolation, *self._package_index(), *more])

    def compressed_bytes(self, tag: str) -> int:
        return image.compressed_bytes("buildah", tag, [f"--signature-policy={self._policy}"])

    def inspect(self, tag: str) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.run("buildah", "inspect", "--type", "image", tag))["OCIv1"]
        return found

    def digest(self, tag: str) -> str:
        return self.run("buildah", "images", "--no-trunc", "--quiet", tag).strip()

    @contextmanager
    def files(self, tag: str) -> Iterator[Path]:
        container = self.run("buildah", "from", f"--signature-policy={self._policy}", tag).strip()
        try:
            yield Path(self.run("buildah", "mount", container).strip())
        finally:
            self.run("buildah", "rm", container)

    def podman_run(self, tag: str, options: Sequence[str] = (), arguments: Sequence[str] = ()) -> list[str]:
        """The command that runs a container as Kubernetes does for the namespaces' level `restricted`."""
        limits = [f"--ulimit={name}={most}:{most}" for name, most in (("nofile", 1024), ("nproc", _most_processes()))]
        restricted = ["--read-only", "--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges"]
        return ["podman", "run", "--rm", "--pull=never", *limits, *restricted, *options, tag, *arguments]

    def run(self, *command: str) -> str:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=_PATIENCE_S).stdout

    def _make_builder(self) -> str:
        root = self.folder / "builder.tar"
        done = subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=apt", "--mode=root", "bookworm", str(root)], check=False
        )
        assert done.returncode == 0, "mmdebstrap could not install Debian's packages"
        self.run("buildah", "from", "--name", "builder", "scratch")
        self.run("buildah", "add", "--quiet", "builder", str(root), "/")
        self.run("buildah", "commit", "--quiet", f"--signature-policy={self._policy}", "builder", _BUILDER)
        self.run("buildah", "rm", "builder")
        root.unlink()
        return _BUILDER

    def _package_index(self) -> list[str]:
        """Where and how pip of this machine finds packages."""
        certificates = os.environ.get("PIP_CERT", "")
        settings = ["[global]", *(["cert = /etc/index.crt"] if certificates else [])]
        if index := os.environ.get("PIP_INDEX_URL"):
            settings.append(f"index-url = {index}")
        file = self.folder / "pip.conf"
        file.write_text("\n".join([*settings, ""]))
        mounted = [f"--volume={certificates}:/etc/index.crt:ro"] if certificates else []
        return [f"--volume={file}:/etc/pip.conf:ro", *mounted]


def _most_processes() -> int:
    _, most = resource.getrlimit(resource.RLIMIT_NPROC)
    return 4096 if most == resource.RLIM_INFINITY else min(most, 4096)
