"""Without an extra the distribution suffices for the node agent; other commands name the extra that they lack."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from build.agent_process import AgentProcess
from build.cluster_server import ServerProcess
from build.fake_kubelet import fake_kubelet
from shoal.cli.extras import missing_extra

_ROOT = Path(__file__).parents[2]
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_IMPORT = re.compile(r"^ *(?:import|from) (\w+)", re.MULTILINE)
_BLOCKER = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocker())
"""


def _names(requirements: list[str]) -> set[str]:
    found = (_NAME.match(one) for one in requirements)
    return {match[0].lower() for match in found if match is not None} - {"shoal"}


def _project() -> dict[str, Any]:
    return dict(tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"])


def _modules(packages: set[str]) -> set[str]:
    by_module = packages_distributions()
    return {module for module, names in by_module.items() if packages & {name.lower() for name in names}}


EXTRAS = {name: _names(found) for name, found in _project()["optional-dependencies"].items()}


@pytest.fixture(name="bare")
def bare_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python processes that begin now find no package of an extra."""
    modules = _modules(set().union(*EXTRAS.values()))
    assert {"numpy", "cryptography", "jwt", "cel_expr_python", "uvloop"} <= modules
    (tmp_path / "sitecustomize.py").write_text(_BLOCKER.format(modules=modules))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{_ROOT / 'src'}")


def _shoal(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shoal", *arguments]
    environment = {**os.environ, "HOME": "/nonexistent", "KUBECONFIG": ""}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)


@pytest.mark.usefixtures("bare")
@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "version --client",
        "agent check --fake dgx-h100",
        "agent labels --fake dgx-h100",
        "agent cdi --fake dgx-h100",
        "agent validate --fake dgx-h100",
        "agent export --once --fake dgx-h100",
        "agent mig plan --fake dgx-h100 -c all-1g.10gb",
        "get --help",
    ],
)
def test_a_command_of_the_node_needs_no_extra(command: str) -> None:
    done = _shoal(*command.split())
    assert (done.returncode, done.stderr.replace("shoal: warning", "")) == (0, done.stderr), done.stderr
    assert done.stdout


@pytest.mark.usefixtures("bare")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "extra"), [("why pod x", "scheduler"), ("decide -f x.yaml", "scheduler"), ("up", "scheduler")]
)
def test_another_command_names_the_extra_that_it_needs(command: str, extra: str) -> None:
    done = _shoal(*command.split())
    assert done.returncode == 2
    assert f"it is in the extra {extra}; install what every command needs with: pip install 'shoal[all]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_module_of_no_extra_is_no_user_error() -> None:
    assert missing_extra(ModuleNotFoundError("no", name="other.module")) == ""
    assert "PyJWT" in missing_extra(ModuleNotFoundError("no", name="jwt.algorithms"))


def test_each_package_of_an_extra_that_commands_import_is_named() -> None:
    """uvloop makes the event loop faster, where it is installed."""
    needed = (EXTRAS["scheduler"] | EXTRAS["cluster"]) - {"uvloop"}
    texts = (path.read_text() for path in (_ROOT / "src").rglob("*.py"))
    modules = _modules(needed) & {name for text in texts for name in _IMPORT.findall(text)}
    assert len(modules) == len(needed)
    assert {name for name in modules if missing_extra(ModuleNotFoundError("no", name=name))} == modules


@pytest.mark.slow
def test_the_agent_of_a_node_runs_without_extras(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ServerProcess(tmp_path, "--nodes", "1xg5.xlarge", "--no-foreign-kinds", is_bare=False)
    try:
        request.getfixturevalue("bare")
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
        plugins = tmp_path / "p"
        plugins.mkdir()
        with fake_kubelet(plugins) as kubelet:
            node = ("--node", "g5-xlarge-0", "--labels", "--metrics", "127.0.0.1:0")
            agent = AgentProcess(plugins, "--fake", "dgx-h100", *node)
            kubelet.until(lambda: kubelet.allocatable() == 8)
            code, words = agent.end()
    finally:
        server.stop()
    assert code == 0, words
    assert "not installed" not in words
    assert "Traceback" not in words


def test_an_extra_contains_the_smaller_ones() -> None:
    assert EXTRAS["scheduler"] < EXTRAS["cluster"]
    assert EXTRAS["all"] == EXTRAS["cluster"]
