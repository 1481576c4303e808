"""Every use of `re` in the sources: which pattern, and whether it searches or begins at one place."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import shoal

ROOT = Path(shoal.__file__).parent
_ANCHORED = {"match", "fullmatch"}
_READERS = _ANCHORED | {"search", "findall", "finditer", "sub", "subn", "split"}
_HARMLESS = {"escape", "Pattern", "Match", "error", "ASCII", "DOTALL", "IGNORECASE"}
_FLAGS = {"ASCII", "DOTALL", "IGNORECASE", "MULTILINE"}


_IMPORTS = re.compile(r"^ *(?:import re\b|from re import)", re.MULTILINE)


class Use(NamedTuple):
    place: str
    """File and line."""
    pattern: str | bytes
    flags: int
    searches: bool


class Unknown(NamedTuple):
    place: str
    said: str


def uses() -> Iterator[Use | Unknown]:
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
    modules = {path: ast.parse(text) for path, text in texts.items() if _IMPORTS.search(text)}
    # Only what may hold a pattern is parsed: all of the sources would take seven seconds more.
    names = re.compile("|".join(rf"\b{name}\b" for name in sorted(_shared_names(modules.values()))))
    others = [ast.parse(text) for path, text in texts.items() if path not in modules and names.search(text)]
    shared = _methods_called([*modules.values(), *others])
    for path, tree in modules.items():
        # Private names are used in their own module only.
        own = {name: methods for name, methods in _methods_called([tree]).items() if name.startswith("_")}
        yield from _of_module(path, tree, {**shared, **own})


def _shared_names(trees: Iterable[ast.Module]) -> set[str]:
    """Names that are assigned a pattern and that other modules may import."""
    assigned = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Assign))
    targets = (one for node in assigned if "re.compile(" in ast.unparse(node.value) for one in node.targets)
    return {one.id for one in targets if isinstance(one, ast.Name) and not one.id.startswith("_")}


def _methods_called(trees: Any) -> dict[str, set[str]]:
    """By the name of a variable: what is called on it anywhere, or `?` where it is given away."""
    found: dict[str, set[str]] = defaultdict(set)
    for tree in trees:
        inside: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found[node.value.id].add(node.attr)
                inside.add(id(node.value))
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in inside:
                found[node.id].add("?")
    return found


def _of_module(path: Path, tree: ast.Module, calls: dict[str, set[str]]) -> Iterator[Use | Unknown]:
    file = str(path.relative_to(ROOT))
    name = ".".join(("shoal", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        place = f"{file}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.ImportFrom) and node.module == "re":
            yield Unknown(place, "from re import ...: write re.compile, so that this test sees it")
        if isinstance(node, ast.Import) and any(one.name == "re" and one.asname for one in node.names):
            yield Unknown(place, "import re as ...: write import re, so that this test sees it")
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "re"):
            continue
        call = parents.get(id(node))
        if not isinstance(call, ast.Call) or call.func is not node:
            if node.attr not in _HARMLESS | _FLAGS:
                yield Unknown(place, f"re.{node.attr} is given away")
            continue
        if node.attr == "escape":
            continue
        values = vars(importlib.import_module(name))
        try:
            pattern = _value(call.args[0], values)
            flags = _flags(call, values)
        except NameError as error:
            yield Unknown(place, f"the pattern is worked out while running ({error})")
            continue
        if isinstance(pattern, re.Pattern):
            pattern, flags = pattern.pattern, pattern.flags & ~re.UNICODE
        methods = {node.attr} if node.attr in _READERS else _methods(call, parents, calls)
        yield Use(place, pattern, flags, bool(methods - _ANCHORED))


def _value(node: ast.expr, values: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "pattern", "eval"), {**values})  # noqa: S307 - our own source


def _flags(call: ast.Call, values: dict[str, Any]) -> int:
    named = [one for one in call.args[1:] if _is_flag(one)] + [one.value for one in call.keywords if one.arg == "flags"]
    found = 0
    for one in named:
        found |= int(_value(one, values))
    return found


def _is_flag(node: ast.expr) -> bool:
    names = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
    return bool(names) and names <= _FLAGS


def _methods(call: ast.Call, parents: dict[int, Any], calls: dict[str, set[str]]) -> set[str]:
    """What is done with a compiled pattern: at once, or by the name that it is given."""
    parent = parents.get(id(call))
    if isinstance(parent, ast.Attribute):
        return {parent.attr}
    if isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Name):
        # Its text may be part of other patterns, and `re.fullmatch(NAME, ...)` is found for itself.
        return calls[parent.targets[0].id] - {"pattern"}
    return {"?"}
