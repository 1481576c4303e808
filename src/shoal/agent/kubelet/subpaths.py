"""Resolves `subPath` and `subPathExpr` of volume mounts.

Other containers of the pod can change a volume while it is resolved. So the path is opened folder by folder, without
links, after it was resolved once, and what is mounted is what was opened. A path that a link leads out of the volume is
refused.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from shoal.agent.kubelet.mounts import bind, unmount
from shoal.agent.kubelet.runtime import StartRefused
from shoal.client.kubelet.environment import expanded, names_in

Obj = dict[str, Any]
_OPEN = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def sub_path_of(mount: Obj, environment: Mapping[str, str]) -> str:
    """Empty for the whole volume. Raises StartRefused."""
    path, expression = str(mount.get("subPath") or ""), str(mount.get("subPathExpr") or "")
    if expression:
        missing = sorted({name for name in names_in(expression) if not environment.get(name)})
        if missing:
            raise _refused(f"missing value for {', '.join(missing)}")
        path = expanded(expression, environment)
    if path.startswith("/"):
        raise _refused(f"error SubPath `{path}` must not be an absolute path")
    if ".." in PurePosixPath(path).parts:
        raise _refused(f"unable to provision SubPath `{path}`: must not contain '..'")
    return path


class SubPath(msgspec.Struct, frozen=True):
    """A part of a volume, for one mount of a container."""

    volume: Path
    path: str
    mount: str
    container: str

    def bind_at(self, target: Path) -> Path:
        """Mount it at `target`, from where a runtime mounts it in a container. Raises StartRefused."""
        try:
            unmount(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            with opened(self.volume, self.path) as source:
                _match(target, is_folder=source.is_dir())
                bind(source, target)
        except OSError as error:
            raise self._refused() from error
        return target

    def copy_to(self, target: Path) -> Path:
        """For a process, which has no mounts, and a volume whose files are replaced later. Raises StartRefused."""
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with opened(self.volume, self.path) as source:
                if target.is_dir():
                    shutil.rmtree(target)
                copy = shutil.copytree if source.is_dir() else shutil.copy2
                copy(source.readlink(), target)
        except OSError as error:
            raise self._refused() from error
        return target

    def place(self) -> Path:
        """Where it is. Raises StartRefused."""
        try:
            with opened(self.volume, self.path) as source:
                return source.readlink()
        except OSError as error:
            raise self._refused() from error

    def _refused(self) -> StartRefused:
        # The cause could tell the user of the pod about the files of the machine.
        return _refused(f'failed to prepare subPath for volumeMount "{self.mount}" of container "{self.container}"')


@contextmanager
def opened(volume: Path, sub: str) -> Iterator[Path]:
    """A path of the opened file or folder in a volume, which is made if it does not exist. Raises OSError."""
    root = os.path.realpath(volume)
    wanted = os.path.realpath(f"{root}/{sub}")
    if not PurePosixPath(wanted).is_relative_to(root):
        raise PermissionError(errno.EPERM, "the path leads out of the volume", str(volume / sub))
    descriptor = os.open(root, _OPEN)
    try:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        for name in PurePosixPath(wanted).relative_to(root).parts:
            inner = _opened_inside(descriptor, name, mode)
            os.close(descriptor)
            descriptor = inner
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def _opened_inside(folder: int, name: str, mode: int) -> int:
    is_new = False
    try:
        found = os.open(name, _OPEN, dir_fd=folder)
    except FileNotFoundError:
        os.mkdir(name, dir_fd=folder)
        found, is_new = os.open(name, _OPEN, dir_fd=folder), True
    if stat.S_ISLNK(os.fstat(found).st_mode):
        os.close(found)
        raise PermissionError(errno.EPERM, "the path was replaced by a link", name)
    if is_new:
        Path(f"/proc/self/fd/{found}").chmod(mode)
    return found


def _match(target: Path, *, is_folder: bool) -> None:
    """Be an empty folder or file, as what is mounted there. It never deletes what a folder contains."""
    if target.is_dir() and not is_folder:
        target.rmdir()
    if target.is_file() and is_folder:
        target.unlink()
    if is_folder:
        target.mkdir(exist_ok=True)
    else:
        target.touch()


def _refused(words: str) -> StartRefused:
    return StartRefused("CreateContainerConfigError", words)
