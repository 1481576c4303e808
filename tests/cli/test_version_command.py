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
from shoal.install.preflight.supported_versions import unsupported
from shoal.units.commit import commit, commit_of_checkout

CLIENT = (
    f"Client Version: {version('shoal')}\n"
    f"Commit: {commit() or 'unknown'}\n"
    "Supported Kubernetes Versions: 1.34 to 1.36\n"
)


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
    assert capsys.readouterr().out == CLIENT
    assert main(["version", "--client", "-o", "json"]) == 0
    client = json.loads(capsys.readouterr().out)["client"]
    assert (client["version"], client["commit"]) == (version("shoal"), commit())


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("v1.36.0+shoal", ""),
        ("v1.34.9", ""),
        ("v1.33.1", "Kubernetes v1.33.1 is older than 1.34"),
        ("1.37.0", "not tested with Kubernetes 1.37.0"),
        ("v2.0.0", "not tested with Kubernetes v2.0.0"),
        ("unknown", ""),
    ],
)
def test_a_cluster_of_a_version_that_was_not_tested_gives_a_warning(server: str, words: str) -> None:
    assert words in unsupported(server)
    assert bool(words) == bool(unsupported(server))


def test_a_checkout_names_its_commit(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    (git / "refs/heads").mkdir(parents=True)
    assert commit_of_checkout(tmp_path) == ""
    (git / "HEAD").write_text(f"{'a' * 40}\n")
    assert commit_of_checkout(tmp_path) == "a" * 40
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"# pack-refs\n{'b' * 40} refs/heads/main\n")
    assert commit_of_checkout(tmp_path) == "b" * 40
    (git / "refs/heads/main").write_text(f"{'c' * 40}\n")
    assert commit_of_checkout(tmp_path) == "c" * 40


def test_a_worktree_names_its_commit(tmp_path: Path) -> None:
    git = tmp_path / "main/.git"
    (git / "worktrees/w").mkdir(parents=True)
    (git / "refs/heads").mkdir(parents=True)
    (git / "refs/heads/topic").write_text(f"{'d' * 40}\n")
    (git / "worktrees/w/HEAD").write_text("ref: refs/heads/topic\n")
    (git / "worktrees/w/commondir").write_text("../..\n")
    (tmp_path / "w").mkdir()
    (tmp_path / "w/.git").write_text(f"gitdir: {git}/worktrees/w\n")
    assert commit_of_checkout(tmp_path / "w") == "d" * 40


def test_without_a_cluster_the_client_version_is_printed_before_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 2
    out, err = capsys.readouterr()
    assert out == CLIENT
    assert "no cluster is known" in err
