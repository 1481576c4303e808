"""Control characters that users write into objects are shown by every command and not obeyed by the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from build.manifests import Object, as_file, node, pod
from shoal.cli.main import main

ESC, HIDE = "\x1b", "\x1b[8mhidden\x9b2J\u202e"


def _objects() -> list[Object]:
    failed = {"phase": "Failed", "reason": f"Evicted{HIDE}", "message": f"gone{HIDE}"}
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": f"no{HIDE}"}
    return [
        node("n", 4),
        pod("t/p1", 1, schedulerName=f"other{HIDE}", status={"phase": "Pending", "conditions": [refused]}),
        pod("t/p2", 1, "n", status=failed),
        pod("t/p3", 9),
        pod("t/p4", 9, annotations={"scheduling.k8s.io/group-name": f"g{HIDE}"}),
    ]


@pytest.mark.parametrize(
    "command",
    [
        ("why", "t/p1"),
        ("why", "t/p2"),
        ("why", "t/p4"),
        ("get", "gangs"),
        ("get", "pods"),
        ("get", "pods", "-o", "wide"),
        ("get", "pods", "-o", "custom-columns=POD:.pod,WHY:.message"),
        ("top",),
        ("decide",),
    ],
    ids=" ".join,
)
def test_the_text_of_a_command_has_no_control_characters(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "-f", as_file(tmp_path, *_objects())]) == 0
    out, err = capsys.readouterr()
    for text in (out, err):
        assert not {ESC, "\x9b", "\u202e"}.intersection(text)


def test_they_are_visible_where_the_text_is_quoted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = as_file(tmp_path, *_objects())
    shown = "^[[8mhidden\\x9b2J\\u202e"
    assert main(["why", "t/p2", "-f", given]) == 0
    assert f"Evicted{shown}" in capsys.readouterr().out
    assert main(["get", "pods", "-f", given]) == 0
    assert f"Evicted{shown}" in capsys.readouterr().out
    assert main(["get", "gangs", "-f", given]) == 0
    assert f"t/g{shown}" in capsys.readouterr().out


def test_json_keeps_them_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", "pods", "t/p2", "-f", as_file(tmp_path, *_objects()), "-o", "json"]) == 0
    out = capsys.readouterr().out
    assert ESC not in out
    assert f"Evicted{HIDE}" in json.loads(out).values()
