"""The wheel and the source distribution are built reproducibly, and have what users get."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from tools.man_page import PAGE, man_page

from shoal.cli.main import app
from shoal.units.commit import commit

_ROOT = Path(__file__).parents[2]
_PARTS = (
    *("src", "tests", "bench", "tools", "docs", "charts", "deploy", "examples", "requirements"),
    *("README.md", "LICENSE", "Makefile", "Containerfile"),
)
_MOST_WHEEL_BYTES = 6_000_000
"""More than the bar of the packages, which the benchmark prints."""


def _sources(folder: Path) -> Path:
    """A copy of what is built, with other times of change."""
    folder.mkdir()
    for name in (*_PARTS, "pyproject.toml"):
        source = _ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, copy_function=shutil.copyfile, ignore=_caches)
        else:
            shutil.copyfile(source, folder / name)
    git = folder / ".git"
    git.mkdir()
    (git / "HEAD").write_text(f"{commit() or 'e' * 40}\n")
    return folder


def _caches(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name in ("__pycache__", "COMMIT")]


def _built(sources: Path, what: str) -> Path:
    """By the build backend itself, as pip calls it."""
    script = f"import hatchling.build as b; print(b.build_{what}({str(sources / 'dist')!r}))"
    command = [sys.executable, "-c", script]
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    done = subprocess.run(
        command, cwd=sources, capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return sources / "dist" / done.stdout.split()[-1]


@pytest.fixture(name="sources", scope="module")
def sources_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _sources(tmp_path_factory.mktemp("first") / "shoal")


@pytest.mark.slow
def test_two_builds_and_a_build_of_the_source_distribution_give_the_same_wheel(sources: Path, tmp_path: Path) -> None:
    first, again = _built(sources, "wheel"), _built(_sources(tmp_path / "other-name"), "wheel")
    archive = _built(sources, "sdist")
    with tarfile.open(archive) as file:
        file.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    digests = {sha256(one.read_bytes()).hexdigest() for one in (first, again, _built(unpacked, "wheel"))}
    assert len(digests) == 1


@pytest.mark.slow
def test_the_wheel_has_the_package_its_commands_the_manual_and_the_license(sources: Path) -> None:
    wheel = _built(sources, "wheel")
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        (entries,) = (file.read(name).decode() for name in names if name.endswith("entry_points.txt"))
        built_from = file.read("shoal/COMMIT").decode().strip()
    assert built_from == (commit() or "e" * 40)
    assert "kubectl-shoal = shoal.cli.start:main" in entries
    assert any(name.endswith(".data/data/share/man/man1/shoal.1") for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    modules = {str(path.relative_to(_ROOT / "src")) for path in (_ROOT / "src/shoal").rglob("*.py")}
    assert modules <= names
    assert wheel.stat().st_size < _MOST_WHEEL_BYTES


def test_the_manual_page_lists_the_commands_of_today() -> None:
    """`python -m tools.man_page` writes it."""
    assert PAGE.read_text() == man_page(str(app.info.help))
