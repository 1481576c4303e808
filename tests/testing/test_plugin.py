"""The pytest plugin of `shoal.testing`, in test sessions of its own."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

_INI = "[pytest]\nkube_nodes = none\n"
_TWO_NAMESPACES = """
seen = set()

def test_first(kube_cluster, kube_namespace):
    assert kube_cluster.server.startswith("https://127.0.0.1:")
    assert kube_cluster.node_names() == []
    seen.add(kube_namespace)

def test_second(kube_namespace):
    assert kube_namespace not in seen
"""
_UNUSED = """
import sys

def test_imports():
    names = sorted(name for name in sys.modules if name.split(".")[0] == "shoal")
    assert names == ["shoal", "shoal.testing", "shoal.testing.plugin"]
"""
_URLS = """
import os
import pathlib

def write(cluster):
    pathlib.Path(os.environ["PYTEST_XDIST_WORKER"]).write_text(cluster.server)

def test_first(kube_cluster):
    write(kube_cluster)

def test_second(kube_cluster):
    write(kube_cluster)
"""


def _session(folder: Path, test: str, *arguments: str) -> str:
    (folder / "pytest.ini").write_text(_INI)
    (folder / "test_it.py").write_text(test)
    # By name where the installed package does not declare it yet, as an older editable install.
    is_declared = any(one.name == "shoal" for one in entry_points(group="pytest11"))
    plugin = () if is_declared else ("-p", "shoal.testing.plugin")
    command = [sys.executable, "-m", "pytest", "-q", *plugin, *arguments, "test_it.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    # 5: the whole file was skipped. Callers look for what passed.
    assert done.returncode in (0, 5), done.stdout + done.stderr
    return done.stdout


def test_each_test_has_a_namespace_of_its_own_in_one_cluster(tmp_path: Path) -> None:
    assert "2 passed" in _session(tmp_path, _TWO_NAMESPACES)


def test_a_session_without_the_fixtures_imports_only_the_plugin(tmp_path: Path) -> None:
    assert "1 passed" in _session(tmp_path, _UNUSED)


def test_each_worker_of_xdist_has_its_own_cluster(tmp_path: Path) -> None:
    _session(tmp_path, _URLS, "-n", "2", "--dist", "each", "--tx", "2*popen")
    first, second = ((tmp_path / name).read_text() for name in ("gw0", "gw1"))
    assert first != second


def test_the_examples_pass_or_are_skipped_by_name(tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "examples" / "testing"
    for example in sorted(examples.glob("test_*.py")):
        said, client = _session(tmp_path, example.read_text(), "-rs"), example.stem.removeprefix("test_")
        assert "1 passed" in said or f"could not import '{client}'" in said, said
