"""Generate the messages of the kubelet's interfaces from the files in src/shoal/agent/protos.

    python -m tools.protos [--check]

Each file NAME.proto gives NAME_pb2.py and its types in NAME_pb2.pyi. The results are in the repository, so that users
need no compiler. `--check` writes nothing and fails if they are not current.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src"
FOLDER = SOURCES / "shoal/agent/protos"


def generated(into: Path) -> Iterator[Path]:
    """Generate all files below `into`, with the paths that they have below src."""
    for proto in sorted(FOLDER.glob("*.proto")):
        code = protoc.main(["protoc", f"-I{SOURCES}", f"--python_out={into}", f"--pyi_out={into}", str(proto)])
        if code:
            raise SystemExit(code)
        for suffix in ("py", "pyi"):
            yield into / FOLDER.relative_to(SOURCES) / f"{proto.stem}_pb2.{suffix}"


def outdated() -> list[str]:
    """The files that differ from what would be generated."""
    with tempfile.TemporaryDirectory() as folder:
        found = [(file, SOURCES / file.relative_to(folder)) for file in generated(Path(folder))]
        return [str(kept.relative_to(ROOT)) for file, kept in found if _text(file) != _text(kept)]


def _text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if a file is not current")
    if parser.parse_args(arguments).check:
        wrong = outdated()
        for file in wrong:
            sys.stderr.write(f"{file} is not current; run python -m tools.protos\n")
        return 1 if wrong else 0
    for made in generated(SOURCES):
        print(made.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
