"""The size of the wheel and of what the agent of a node installs, each beside its bar.

python -m bench.packages

The installed size is that of the files of the wheel and of the packages that it needs without an extra, as they are
installed here, without compiled modules (`pip install --no-compile`).
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from rich.console import Console

from bench.cluster.figures import Figure, table

_ROOT = Path(__file__).parents[1]
_WHEEL_MB, _AGENT_MB = 4, 80


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


def main() -> int:
    Console(highlight=False).print(table(measure()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
