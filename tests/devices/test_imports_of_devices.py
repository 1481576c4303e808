"""An agent imports the logic of devices without the large packages that only schedulers and servers need."""

from __future__ import annotations

import subprocess
import sys
from pkgutil import walk_packages
from types import ModuleType

import pytest

import shoal.agent
import shoal.devices

HEAVY = ("numpy", "cel_expr_python", "aiohttp", "cryptography", "kubernetes", "typer")

OF_JOINING = {"shoal.agent.kubelet.node_identity", "shoal.agent.kubelet.server_connections"}
"""Only a machine that joins a cluster imports them; the agent of a node of Kubernetes does not."""


def _loaded(modules: list[str]) -> set[str]:
    script = "import sys, importlib\n[importlib.import_module(name) for name in sys.argv[1:]]\nprint(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", script, *modules], check=True, capture_output=True, text=True)
    return set(out.stdout.split())


@pytest.mark.parametrize(
    ("package", "heavy"),
    [(shoal.devices, (*HEAVY, "grpc", "google.protobuf")), (shoal.agent, HEAVY)],
    ids=["devices", "agent"],
)
def test_no_module_of_a_package_for_agents_loads_a_large_package(package: ModuleType, heavy: tuple[str, ...]) -> None:
    modules = [found.name for found in walk_packages(package.__path__, f"{package.__name__}.")]
    modules = [name for name in modules if name not in OF_JOINING]
    assert modules
    loaded = _loaded(modules)
    assert set(modules) <= loaded
    assert loaded.isdisjoint(heavy)


@pytest.mark.parametrize("module", ["numpy", "aiohttp"])
def test_a_large_package_would_be_seen(module: str) -> None:
    assert module in _loaded([module])
