"""Tests replace no part of Shoal's modules, wait for no real time, and assert something.

What a test needs to replace is a parameter of the module under test. Time is virtual (`build/virtual_time.py`); where
another process is waited for, the wait is one of `_POLLS`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
_PATCHES = re.compile(
    r"(?:\w+\.)?setattr|\w+\.(?:delattr|setitem|delitem)|(?:mock\.|mocker\.)?patch(?:\.(?:object|dict|multiple))?"
)
_MAY_PATCH = re.compile(
    r"\b(?:setattr|delattr|setitem|delitem)\(|\bmock(?:er)?\.patch\b"
    r"|(?<![.\w])(?<!def )patch(?:\.(?:object|dict|multiple))?\("
    r"|^ *(?:\w+\.)+_?[A-Z]\w* [+|]?= |^ *_?[A-Z]\w*[.\[][^=\n]* [+|]?= ",
    re.MULTILINE,
)
"""Calls that patch, and assignments to a constant of a module, to an attribute of a class or to an item of a table."""
_POLLS = {
    "build/live_waits.py": "asks an API server in another process, or a real one",
    "build/living_cluster.py": "looks at a cluster in another process, until it is as wanted",
    "build/played_pods.py": "plays the kubelet of an API server in another process",
    "build/real_cluster_autoscaler.py": "asks a Cluster Autoscaler in another process how often it has looked",
    "cli/test_object_source.py": "asks an API server in another process which kinds it serves",
    "client/conftest.py": "asks a real cluster for a ServiceAccount that its controllers create",
}
"""Files that wait in real time, each for a process that a test cannot hold or move on."""
_VIRTUAL = {
    "build/adopted_clusters.py": "the polls of a played controller",
    "build/candidates.py": "delays of an API in elections",
    "build/jumping_clock.py": "a clock of virtual time that jumps",
    "build/odd_writers.py": "writers that wait until the test lets them go on",
    "build/ruled_clusters.py": "the time that a policy takes to be read",
    "build/small_clusters.py": "`pass_time` and `until`",
    "build/storm_replicas.py": "restarts of a replica",
    "build/stormy_api.py": "slow answers",
    "build/upgraded_releases.py": "programs that keep Deployments ready",
}
"""Builders whose sleeps tests in virtual time pass at once."""


def _name(node: ast.expr) -> str:
    """`a.b.c` as text; `?` is what is neither a name nor an attribute of one."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id if isinstance(node, ast.Name) else "?", *reversed(parts)])


def _imported(tree: ast.Module) -> dict[str, str]:
    """The dotted name of what each imported name stands for."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {(one.asname or one.name).partition(".")[0]: one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    return found


def _texts(tree: ast.Module) -> dict[str, str]:
    """The text of each constant of a module."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def patched(text: str) -> list[str]:
    """The parts of Shoal that this test module replaces, with the line of each."""
    tree = ast.parse(text)
    known = {**_imported(tree), **_texts(tree)}

    def is_ours(node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return str(node.value).startswith("shoal.")
        return f"{known.get(_name(node).partition('.')[0], '')}.".startswith("shoal.")

    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _PATCHES.fullmatch(_name(node.func)):
            targets = node.args[:1]
        elif isinstance(node, ast.Assign | ast.AugAssign):
            goals = [node.target] if isinstance(node, ast.AugAssign) else node.targets
            targets = [goal.value for goal in goals if isinstance(goal, ast.Attribute | ast.Subscript)]
        else:
            continue
        found += [f"{node.lineno}: {ast.unparse(node)}" for one in targets if is_ours(one)]
    return found


def slept(text: str) -> list[str]:
    """The sleeps of this test module that may take real time, with the line of each."""
    tree = ast.parse(text)
    imported = _imported(tree)
    has_virtual_time = any(name.startswith("build.virtual_time.") for name in imported.values())

    def look(node: ast.AST, is_virtual: bool) -> Iterator[str]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            # Functions that are no tests run where a test calls them: in virtual time, if the module has any.
            is_test = node.name.startswith("test_")
            is_virtual |= (has_virtual_time and not is_test) or _is_virtual(node)
        if isinstance(node, ast.Call) and _name(node.func).rpartition(".")[2] == "sleep":
            is_turn = bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
            is_blocking = imported.get(_name(node.func), _name(node.func)) == "time.sleep"
            if is_blocking or not (is_turn or is_virtual):
                yield f"{node.lineno}: {ast.unparse(node)}"
        for child in ast.iter_child_nodes(node):
            yield from look(child, is_virtual)

    return list(look(tree, is_virtual=False))


def _is_virtual(test: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the function is `@virtual`, or gives what it defines to `in_virtual_time`."""
    return any(_name(one) == "virtual" for one in test.decorator_list) or any(
        isinstance(node, ast.Call) and _name(node.func) == "in_virtual_time" for node in ast.walk(test)
    )


Function = ast.FunctionDef | ast.AsyncFunctionDef
_ASSERTS = re.compile(r"^ *assert |\b(?:raises|fail)\(|\braise AssertionError", re.MULTILINE)
_ASSERTING_HELPER = re.compile(r"_*(?:until|wait|refus|eventually|settle|check|storms?$|squalls$|spells$|ok$)")
"""Names of helpers of tests/build that fail where something is not as the test says."""
_TESTS = re.compile(r"^(?=(?:@.*\n)*(?:async )?def )", re.MULTILINE)


def _is_assertion(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise) and node.exc is not None:
        return _name(node.exc.func if isinstance(node.exc, ast.Call) else node.exc) == "AssertionError"
    is_call = isinstance(node, ast.Call) and _name(node.func) in ("pytest.raises", "pytest.fail")
    return is_call or isinstance(node, ast.Assert)


def _called(function: Function) -> set[str]:
    return {_name(node.func).rpartition(".")[2] for node in ast.walk(function) if isinstance(node, ast.Call)}


def _asserting(tree: ast.Module) -> set[str]:
    """Names of this module's functions that assert, or that call one that does."""
    calls = {node.name: node for node in ast.walk(tree) if isinstance(node, Function)}
    known: set[str] = set()
    while more := {name for name, node in calls.items() if name not in known and _does_assert(node, known)}:
        known |= more
    return known


def _does_assert(function: Function, helpers: set[str]) -> bool:
    called = _called(function)
    return (
        any(map(_is_assertion, ast.walk(function)))
        or bool(called & helpers)
        or any(map(_ASSERTING_HELPER.match, called))
    )


def unasserted(text: str) -> list[str]:
    """The tests of this module that assert nothing, neither themselves nor by the helpers that they call."""
    silent = [part for part in _TESTS.split(text) if "def test_" in part and not _ASSERTS.search(part)]
    if not silent:
        return []
    tree = ast.parse(text)
    helpers = _asserting(tree)
    return [
        f"{node.lineno}: {node.name}"
        for node in ast.walk(tree)
        if isinstance(node, Function) and node.name.startswith("test_")
        if not _does_assert(node, helpers)
    ]


def _sources(words: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Path and text of each test module where the words are found: to parse all of them takes seconds."""
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text()
        if path != Path(__file__) and words.search(text):
            yield str(path.relative_to(TESTS)), text


def test_no_test_patches_a_module_of_shoal() -> None:
    assert {path: found for path, text in _sources(_MAY_PATCH) if (found := patched(text))} == {}


def test_no_test_sleeps_in_real_time() -> None:
    found = {path: lines for path, text in _sources(re.compile(r"sleep\(")) if (lines := slept(text))}
    assert {path: lines for path, lines in found.items() if path not in _POLLS | _VIRTUAL} == {}
    assert found.keys() == (_POLLS | _VIRTUAL).keys(), "an exception that is not needed"


def test_each_test_asserts_something() -> None:
    sources = _sources(re.compile("def test_"))
    assert {path: found for path, text in sources if (found := unasserted(text))} == {}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("from shoal.a import b\nmonkeypatch.setattr(b, 'c', 1)", 1),
        ("from shoal.a import B\nmonkeypatch.setattr(B, 'c', 1)", 1),
        ("import shoal.a\nmonkeypatch.setattr(shoal.a, 'c', 1)", 1),
        ("monkeypatch.setattr('shoal.a.c', 1)", 1),
        ("C = 'shoal.a.c'\nmonkeypatch.setattr(C, 1)", 1),
        ("from unittest import mock\nwith mock.patch('shoal.a.c'): ...", 1),
        ("from unittest.mock import patch\nfrom shoal import a\npatch.object(a, 'c')", 1),
        ("from shoal import a\nmock.patch.object(a, 'c')", 1),
        ("from shoal import a\na.C = 1", 1),
        ("from shoal.a import TABLE\nTABLE['x'] = 1", 1),
        ("from shoal.a import TABLE\nmonkeypatch.setitem(TABLE, 'x', 1)", 1),
        ("from shoal.a import B\none = B()\none.c = 1", 0),
        ("import os\nmonkeypatch.setattr(os, 'fsync', None)", 0),
        ("monkeypatch.setattr('sys.stdin', None)", 0),
    ],
)
def test_a_patch_of_a_module_of_shoal_is_found(text: str, count: int) -> None:
    assert len(patched(text)) == count
    assert _MAY_PATCH.search(text) or not count


_VIRTUALLY = "from build.virtual_time import virtual, in_virtual_time\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("import time\ndef test_a(): time.sleep(1)", 1),
        (_VIRTUALLY + "from time import sleep\n@virtual\nasync def test_a(): sleep(1)", 1),
        ("async def test_a(): await asyncio.sleep(0.1)", 1),
        ("async def test_a(): await asyncio.sleep(0)", 0),
        ("async def until(): await asyncio.sleep(PAUSE_S)", 1),
        (_VIRTUALLY + "async def test_a(): await asyncio.sleep(1)", 1),
        (_VIRTUALLY + "@virtual\nasync def test_a(): await asyncio.sleep(1)", 0),
        (_VIRTUALLY + "async def story(): await clock.sleep(1)", 0),
        (_VIRTUALLY + "def test_a():\n async def go(): await clock.sleep(1)\n in_virtual_time(go())", 0),
    ],
)
def test_a_sleep_in_real_time_is_found(text: str, count: int) -> None:
    assert len(slept(text)) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def test_a(): run()", 1),
        ("def test_a():\n assert run()", 0),
        ("def test_a():\n with pytest.raises(E): run()", 0),
        ("def look():\n assert run()\ndef test_a(): look()", 0),
        ("def look():\n assert run()\ndef each(): look()\ndef test_a(): each()", 0),
        ("def look(): run()\ndef test_a(): look()", 1),
        ("async def test_a(): await cluster.until(is_so)", 0),
    ],
)
def test_a_test_that_asserts_nothing_is_found(text: str, count: int) -> None:
    assert len(unasserted(text)) == count
