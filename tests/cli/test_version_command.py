"""`shoal version`, `shoal --version` and `shoal.__version__`."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import shoal
from shoal.cli.main import main


@pytest.fixture(autouse=True)
def _no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def test_the_version_is_that_of_the_distribution() -> None:
    assert shoal.__version__ == version("shoal")
    with pytest.raises(AttributeError, match="no attribute 'version'"):
        _ = shoal.version


def test_importing_the_package_does_not_look_the_version_up() -> None:
    script = "import sys, shoal; print('importlib.metadata' in sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout in ("False\n", "")


def test_the_version_of_the_client_needs_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--client"]) == 0
    assert capsys.readouterr().out == f"Client Version: {version('shoal')}\n"
    assert main(["version", "--client", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["client"]["version"] == version("shoal")


def test_without_a_cluster_the_client_version_is_printed_before_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 2
    out, err = capsys.readouterr()
    assert out == f"Client Version: {version('shoal')}\n"
    assert "no cluster is known" in err
