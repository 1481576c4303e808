"""Compile the engine's hot modules to C with mypyc: a copy of the package in which they are extension modules.

    python -m tools.compile_engine --into out/compiled
    PYTHONPATH=out/compiled shoal bench engine

The copy decides exactly as the package does, and the package does not need it: the sources stay pure Python, which is
what the tests run. Which modules, what it gains and what mypyc does not take: docs/designs/003-compiled-engine.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

MODULES = (
    "changes",
    "charges",
    "cluster",
    "cycle",
    "device_choice",
    "devices/planes",
    "devices/whole",
    "domain_counts/all_counts",
    "dra_allocator",
    "dra/shared",
    "facts",
    "fitter",
    "intake",
    "ledger",
    "scheduling_queue",
    "overhead",
    "pending",
    "placement",
    "cycle_state",
    "scores/worth",
    "request_classes",
    "steps/allocate",
    "window",
    "worth/column",
)
"""What a placement passes through. No class statement there may have arguments: mypyc drops them."""


def main() -> None:
    """Copy and compile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=ROOT / "out" / "compiled", help="Folder to make anew.")
    folder: Path = parser.parse_args().into.resolve()
    if shutil.which(os.environ.get("CC", "cc")) is None:
        sys.exit("mypyc needs a C compiler: install gcc or clang, or name one in CC")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "src" / "shoal", folder / "shoal", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(  # noqa: S603 - the arguments are names of our own files
        [sys.executable, "-m", "mypyc", *(f"shoal/engine/{module}.py" for module in MODULES)],
        cwd=folder,
        env={**os.environ, "MYPYC_DEBUG_LEVEL": "0"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    shutil.rmtree(folder / "build")
    print(f"Compiled {len(MODULES)} modules. Use them with PYTHONPATH={folder}")


if __name__ == "__main__":
    main()
