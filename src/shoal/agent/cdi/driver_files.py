"""Finds the files of the installed NVIDIA driver below a root folder.

Guarantees: files that do not exist are left out; a link that leads out of the root is not followed. The versioned
libraries of the driver are found by their version, so those of another version are left out. They are looked for where
distributions install them, and in the folders of the configuration of the dynamic loader.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from shoal.devices.cdi_devices import DriverFile, DriverFiles

_LIBRARY_FOLDERS = (
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib/wsl/lib",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
    "usr/lib",
    "lib",
)
_LOADER_CONFIG = "etc/ld.so.conf"
_MOST_CONFIG_BYTES, _MOST_CONFIG_DEPTH = 2**16, 4
_FURTHER_FOLDERS = ("vdpau", "gbm")
_PROGRAM_FOLDERS = ("usr/bin", "usr/sbin", "bin", "sbin", "usr/local/bin")
_PROGRAMS = (
    "nvidia-smi",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
    "nvidia-imex",
    "nvidia-imex-ctl",
)
_SOCKETS = ("run/nvidia-persistenced/socket", "run/nvidia-fabricmanager/socket")
_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
_HOOKS = ("usr/bin/nvidia-cdi-hook", "usr/local/nvidia/toolkit/nvidia-cdi-hook")
_MOST_CAPABILITIES_BYTES = 2**20


def driver_files(version: str, root: Path = Path("/"), dev_root: Path | None = None) -> DriverFiles:
    """`root`: of the driver; `dev_root`: of its device nodes, the same root without it."""
    return DriverFiles(
        libraries=tuple(_libraries(version, root)),
        programs=(*_programs(root), *_firmware(version, root)),
        sockets=tuple(_file(root / name, root) for name in _SOCKETS if (root / name).exists()),
        nodes=driver_nodes(dev_root or root),
        # A hook runs on the host, so it is looked up there.
        hook=next((f"/{name}" for name in _HOOKS if os.access(Path("/") / name, os.X_OK)), ""),
    )


def missing_library(files: DriverFiles, version: str, root: Path) -> str:
    """Why containers cannot use CUDA with these files; empty if they can."""
    name = f"libcuda.so.{version}"
    if any(one.container.endswith(f"/{name}") for one in files.libraries):
        return ""
    return (
        f"{name} was not found below {root}, so containers cannot use CUDA; if the driver is installed elsewhere, set "
        "--driver-root, or add its folder to /etc/ld.so.conf.d"
    )


def driver_nodes(dev_root: Path) -> tuple[str, ...]:
    """The device nodes of the driver itself that this machine has."""
    return tuple(f"/dev/{name}" for name in _NODES if (dev_root / "dev" / name).exists())


def mig_capabilities(proc: Path = Path("/proc")) -> Mapping[str, int]:
    """The minor numbers of MIG capabilities; they change with the MIG layout."""
    try:
        with (proc / "driver/nvidia-caps/mig-minors").open("rb") as file:
            text = file.read(_MOST_CAPABILITIES_BYTES).decode(errors="replace")
    except OSError:
        return {}
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _libraries(version: str, root: Path) -> Iterator[DriverFile]:
    found: set[Path] = set()
    for name in dict.fromkeys((*_LIBRARY_FOLDERS, *_loader_folders(root, _LOADER_CONFIG))):
        for folder in (root / name, *(root / name / further for further in _FURTHER_FOLDERS)):
            for path in sorted(folder.glob(f"lib*.so.{version}")):
                real = _inside(path, root)
                # `/lib` can be a link to `/usr/lib`: each library once.
                if real is None or real in found:
                    continue
                found.add(real)
                yield DriverFile(str(path), _in_container(path, root), tuple(_links(path, real, root)))


def _loader_folders(root: Path, config: str, depth: int = 0) -> Iterator[str]:
    """The folders of a configuration file of the dynamic loader, and of those that it includes."""
    path = root / config
    if depth > _MOST_CONFIG_DEPTH or _inside(path, root) is None:
        return
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_CONFIG_BYTES).decode(errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words[:1] == ["include"]:
            for pattern in words[1:]:
                # A relative pattern is one beside the file.
                start = root if pattern.startswith("/") else path.parent
                for one in sorted(start.glob(pattern.lstrip("/"))) if pattern.strip("/") else ():
                    if one.is_relative_to(root):
                        yield from _loader_folders(root, str(one.relative_to(root)), depth + 1)
        elif words and words[0].startswith("/"):
            yield words[0].strip("/")


def _links(path: Path, real: Path, root: Path) -> Iterator[str]:
    """The links beside a library that lead to it, such as `libcuda.so.1` and `libcuda.so`."""
    stem = path.name.partition(".so.")[0]
    for one in sorted(path.parent.glob(f"{stem}.so*")):
        if one != path and one.is_symlink() and _inside(one, root) == real:
            yield _in_container(one, root)


def _programs(root: Path) -> Iterator[DriverFile]:
    for name in _PROGRAMS:
        paths = (root / folder / name for folder in _PROGRAM_FOLDERS)
        path = next((one for one in paths if one.is_file() and _inside(one, root) is not None), None)
        if path is not None:
            yield DriverFile(str(path), f"/usr/bin/{name}")


def _firmware(version: str, root: Path) -> Iterator[DriverFile]:
    for path in sorted((root / "lib/firmware/nvidia" / version).glob("gsp*.bin")):
        yield _file(path, root)


def _file(path: Path, root: Path) -> DriverFile:
    return DriverFile(str(path), _in_container(path, root))


def _in_container(path: Path, root: Path) -> str:
    return f"/{path.relative_to(root)}"


def _inside(path: Path, root: Path) -> Path | None:
    """The file to which a path leads, None if it is outside of the root or does not exist."""
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    return real if real.is_relative_to(root.resolve()) else None
