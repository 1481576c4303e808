"""Writes the commit of a build into the distribution, where `shoal version` reads it.

The commit is that of the checkout, or the one in an unpacked source distribution.
"""

from __future__ import annotations

from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_IN_WHEEL = "shoal/COMMIT"
_IN_SOURCES = "src/shoal/COMMIT"


class CommitHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable installation reads the commit of its checkout."""
        if version == "editable":
            return
        root = Path(self.root)
        # The package cannot be imported in a build, because its dependencies are not installed.
        commit_of_checkout = run_path(str(root / "src/shoal/commit.py"))["commit_of_checkout"]
        unpacked = root / _IN_SOURCES
        self._folder = TemporaryDirectory()
        written = Path(self._folder.name) / "COMMIT"
        written.write_text(unpacked.read_text() if unpacked.exists() else f"{commit_of_checkout(root)}\n")
        build_data["force_include"][str(written)] = _IN_WHEEL if self.target_name == "wheel" else _IN_SOURCES
