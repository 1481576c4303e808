"""docs/testing.md lists the public API as `shoal.testing` exports it, and the options that there are."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

from shoal import testing
from shoal.testing import KubeCluster, KubeClusterOptions

_PAGE = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()


def _first_column(heading: str) -> list[str]:
    section = _PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(\w+)[`(]", section, re.MULTILINE)


def test_the_page_lists_what_the_package_exports() -> None:
    assert _first_column("Public names") == testing.__all__


def test_the_page_lists_all_options() -> None:
    assert _first_column("Options") == [field.name for field in fields(KubeClusterOptions)]


def test_the_page_lists_all_methods_and_attributes_and_they_are_typed() -> None:
    methods = {name: value for name, value in vars(KubeCluster).items() if not name.startswith("_")}
    assert sorted(_first_column("KubeCluster")) == sorted([*methods, "kubeconfig", "options"])
    for value in methods.values():
        function = value.fget if isinstance(value, property) else value
        assert callable(function)
        assert "return" in get_type_hints(function)
        assert set(inspect.signature(function).parameters) - {"self"} <= set(get_type_hints(function))
