"""Builds the container image of Shoal by buildah or podman, from the Containerfile and a wheel of this checkout.

python -m tools.image [--platform linux/arm64] [--tag shoal:VERSION] [-- MORE]

It guarantees that two builds of a commit with the same packages of Debian have the same digest: files and history have
the time SOURCE_DATE_EPOCH, by default that of the commit. MORE is passed to the program, such as `--build-arg
BUILDER=IMAGE` for another mirror of Debian's image, or `--volume FILE:/etc/pip.conf:ro` for another index of packages.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from platform import machine
from tempfile import TemporaryDirectory

from shoal.units.commit import commit_of_checkout

_ROOT = Path(__file__).parents[1]
_LOCK = Path("requirements/run.lock")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PROGRAMS = ("buildah", "podman")


def version() -> str:
    declared = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]["version"]
    return str(declared)


def program() -> str | None:
    """The first that is installed."""
    return next((one for one in PROGRAMS if shutil.which(one)), None)


def build(name: str, tag: str, platform: str, more: Sequence[str] = ()) -> None:
    """`name`: the program. Raises CalledProcessError if it fails."""
    arguments = {
        "VERSION": version(),
        "REVISION": commit_of_checkout(_ROOT),
        # Buildah 1.28 of Debian 12 does not set it.
        "BUILDPLATFORM": _this_platform(),
    }
    with TemporaryDirectory() as folder:
        context = Path(folder)
        make_wheel = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", str(context / "dist")]
        subprocess.run(make_wheel, check=True, cwd=_ROOT, capture_output=True)  # noqa: S603
        (context / _LOCK).parent.mkdir()
        shutil.copy(_ROOT / _LOCK, context / _LOCK)
        command = [name, "build", "--layers", f"--timestamp={_built_at()}", f"--platform={platform}", f"--tag={tag}"]
        command += [f"--build-arg={key}={text}" for key, text in arguments.items()]
        command += [*more, f"--file={_ROOT / 'Containerfile'}", str(context)]
        subprocess.run(command, check=True)  # noqa: S603


def compressed_bytes(name: str, tag: str, more: Sequence[str] = ()) -> int:
    """What a node pulls: the layers and their description as a registry has them."""
    with TemporaryDirectory() as folder:
        command = [name, "push", "--quiet", *more, tag, f"oci:{folder}/image"]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603
        return sum(file.stat().st_size for file in Path(folder, "image/blobs").rglob("*") if file.is_file())


def _this_platform() -> str:
    return f"linux/{_ARCHITECTURES.get(machine(), machine())}"


def _built_at() -> int:
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    asked = ["git", "-C", str(_ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(asked, check=False, capture_output=True, text=True)  # noqa: S603
    return int(done.stdout or 0)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--platform", default=_this_platform())
    parser.add_argument("--tag", default=f"shoal:{version()}")
    parser.add_argument("more", nargs="*")
    chosen = parser.parse_args(arguments)
    name = program()
    if name is None:
        print(f"neither {' nor '.join(PROGRAMS)} is installed", file=sys.stderr)
        return 2
    try:
        build(name, chosen.tag, chosen.platform, chosen.more)
    except subprocess.CalledProcessError as error:
        print(f"{error.cmd[0]} ended with {error.returncode}", file=sys.stderr)
        return 1
    print(f"{chosen.tag}: {compressed_bytes(name, chosen.tag) / 1e6:.1f} MB compressed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
