"""Generates the Python modules of the gRPC interfaces from their definitions: `python -m tools.protos`.

The modules are committed, because users have no compiler of definitions. Their first lines say that they are generated;
linters and the type checker read the `.pyi` files beside them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"
FOLDERS = ("shoal/agent/protos", "shoal/cloud/protos", "shoal/controllers/scaled_objects/sources/protos")


def generate(into: Path) -> None:
    """`into`: the folder that takes the place of `src`."""
    names = [str(path) for one in FOLDERS for path in sorted((SOURCE / one).glob("*.proto"))]
    options = [f"--proto_path={SOURCE}", f"--python_out={into}", f"--pyi_out={into}"]
    # The compiler is a library that must not share a process with gRPC's own.
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *options, *names], check=True)  # noqa: S603


def outdated() -> list[str]:
    """The committed modules that differ from what the definitions give."""
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        found = []
        for one in FOLDERS:
            fresh, committed = Path(folder) / one, SOURCE / one
            names = {path.name for path in fresh.iterdir()} | {path.name for path in committed.glob("*_pb2.py*")}
            found += sorted(name for name in names if _text(fresh / name) != _text(committed / name))
        return found


def _text(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def main() -> int:
    generate(SOURCE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
