"""An agent imports the logic of devices without the large packages that only schedulers and servers need."""

from __future__ import annotations

import subprocess
import sys
from pkgutil import walk_packages

import pytest

import shoal.devices

HEAVY = ("numpy", "cel_expr_python", "aiohttp", "cryptography", "google.protobuf", "kubernetes", "typer")


def _loaded(modules: list[str]) -> set[str]:
    script = "import sys, importlib\n[importlib.import_module(name) for name in sys.argv[1:]]\nprint(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", script, *modules], check=True, capture_output=True, text=True)
    return set(out.stdout.split())


def test_no_module_of_devices_loads_a_large_package() -> None:
    modules = [found.name for found in walk_packages(shoal.devices.__path__, "shoal.devices.")]
    loaded = _loaded(modules)
    assert set(modules) <= loaded
    assert loaded.isdisjoint(HEAVY)


@pytest.mark.parametrize("module", ["numpy", "aiohttp"])
def test_a_large_package_would_be_seen(module: str) -> None:
    assert module in _loaded([module])
