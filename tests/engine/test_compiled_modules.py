"""What mypyc would change or break stays out of the modules that `tools/compile_engine.py` compiles."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tools.compile_engine import MODULES, ROOT

_ENGINE: Path = ROOT / "src" / "shoal" / "engine"


def _classes(module: str) -> list[ast.ClassDef]:
    tree = ast.parse((_ENGINE / f"{module}.py").read_text())
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


@pytest.mark.parametrize("module", MODULES)
def test_no_class_statement_has_arguments_that_mypyc_would_drop(module: str) -> None:
    assert [each.name for each in _classes(module) if each.keywords] == []


@pytest.mark.parametrize("module", MODULES)
def test_no_subclass_alone_can_be_called(module: str) -> None:
    # mypyc lays such a class out with a field before those of its base, whose methods then write into the wrong ones.
    classes = {each.name: each for each in _classes(module)}

    def is_callable(each: ast.ClassDef) -> bool:
        return any(isinstance(item, ast.FunctionDef) and item.name == "__call__" for item in each.body)

    bases = [(each, base.id) for each in classes.values() for base in each.bases if isinstance(base, ast.Name)]
    assert [
        each.name for each, base in bases if is_callable(each) and base in classes and not is_callable(classes[base])
    ] == []
