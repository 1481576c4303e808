"""The size of the wheel, of what the agent of a node installs, and of the container image, each beside its bar.

python -m bench.packages [--image shoal:VERSION]

The image is built before (make image); it is left out without --image.

The installed size is that of the files of the wheel and of the packages that it needs without an extra, as they are
installed here, without compiled modules (`pip install --no-compile`).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from rich.console import Console
from tools.image import PROGRAMS, compressed_bytes, program

from bench.cluster.figures import Figure, table

_ROOT = Path(__file__).parents[1]
_WHEEL_MB, _AGENT_MB, _IMAGE_MB = 4, 80, 100


def _needed(name: str, found: set[str]) -> Iterator[str]:
    """The distributions that one needs, without its extras."""
    for line in distribution(name).requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            key = requirement.name.lower()
            if key not in found:
                found.add(key)
                yield key
                yield from _needed(key, found)


def _bytes(name: str) -> int:
    paths = (Path(str(file.locate())) for file in distribution(name).files or () if file.suffix != ".pyc")
    return sum(path.stat().st_size for path in paths if path.is_file())


def measure() -> list[Figure]:
    from hatchling.build import build_wheel

    with tempfile.TemporaryDirectory() as folder:
        wheel = Path(folder) / build_wheel(folder)
        size = wheel.stat().st_size
        with zipfile.ZipFile(wheel) as file:
            own = sum(one.file_size for one in file.infolist())
    packages = sorted(_needed("shoal", set()))
    installed = own + sum(_bytes(name) for name in packages)
    return [
        Figure("wheel", size / 1e6, " MB", most=_WHEEL_MB),
        Figure("installed for the agent", installed / 1e6, " MB", most=_AGENT_MB, beside=f"{len(packages)} packages"),
    ]


def image(tag: str) -> Figure:
    found = program()
    if found is None:
        raise SystemExit(f"needs {' or '.join(PROGRAMS)}, which are not installed")
    return Figure("image, compressed", compressed_bytes(found, tag) / 1e6, " MB", most=_IMAGE_MB, beside=tag)


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", default="", help="the name of the container image")
    chosen = parser.parse_args(arguments)
    figures = [*measure(), *([image(chosen.image)] if chosen.image else [])]
    Console(highlight=False).print(table(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
