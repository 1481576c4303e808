"""Findings in files: their places, what comments accept, baselines, and documents that are a part of an object."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.api.plain_objects import PlainObjects, read_plain_objects
from shoal.policy.catalogue import faults
from shoal.policy.findings import LintFinding, new_findings, reaches
from shoal.policy.lint import Checked, lint_files, lint_objects
from shoal.policy.object_set import ObjectSet

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: a
    image: x
    env:
    - {name: NVIDIA_VISIBLE_DEVICES, value: all}
"""
LINE = 9


def lint(folder: Path, text: str, name: str = "a.yaml") -> Checked:
    (folder / name).write_text(text)
    read = read_plain_objects([str(folder / name)])
    assert not read.errors
    return checked(read)


def checked(read: PlainObjects) -> Checked:
    return lint_files(read, ObjectSet(plain.obj for plain in read.objects), frozenset(faults()))


def rules(found: Checked) -> list[str]:
    return [each.rule for each in found.findings]


def test_a_finding_has_line_and_column_of_its_field(tmp_path: Path) -> None:
    (finding,) = lint(tmp_path, f"# a comment\n{POD}").findings
    assert (finding.line, finding.column, finding.object) == (LINE + 1, 7, "Pod default/p")


def test_the_objects_of_a_list_have_their_own_lines(tmp_path: Path) -> None:
    items = POD.replace("\n", "\n  ").rstrip()
    (finding,) = lint(tmp_path, f"apiVersion: v1\nkind: List\nitems:\n- {items}\n").findings
    assert (finding.line, finding.field) == (LINE + 3, "spec.containers[0].env[0]")


@pytest.mark.parametrize(
    ("before", "same_line", "head"),
    [("# shoal-lint: ignore SHL-305 a test", "", ""), ("", " # shoal-lint: ignore visible why", ""), ("", "", "")],
)
def test_a_comment_on_the_line_or_before_it_accepts_the_finding(
    tmp_path: Path, before: str, same_line: str, head: str
) -> None:
    same_line = same_line.replace("visible", "VisibleDevicesByHand")
    lines = POD.splitlines()
    text = "\n".join([*lines[: LINE - 1], *([before] if before else []), lines[LINE - 1] + same_line])
    found = lint(tmp_path, text)
    accepted = bool(before or same_line)
    assert (len(found.findings), found.accepted) == ((0, 1) if accepted else (1, 0))


def test_a_comment_at_the_head_accepts_the_rule_in_its_document_only(tmp_path: Path) -> None:
    text = f"# shoal-lint: ignore SHL-305 monitors see all\n{POD}---\n{POD.replace('name: p', 'name: q')}"
    found = lint(tmp_path, text)
    assert [each.object for each in found.findings] == ["Pod default/q"]
    assert found.accepted == 1
    found = lint(tmp_path, f"{POD}---\n# shoal-lint: ignore SHL-305 why\n{POD.replace('name: p', 'name: q')}")
    assert [each.object for each in found.findings] == ["Pod default/p"]


def test_a_comment_without_a_reason_or_about_another_rule_accepts_nothing(tmp_path: Path) -> None:
    found = lint(tmp_path, f"# shoal-lint: ignore SHL-305\n{POD}")
    assert len(found.findings) == 1
    assert found.notes == [
        f"{tmp_path}/a.yaml:1: a comment that ignores VisibleDevicesByHand accepts nothing without a reason"
    ]
    assert len(lint(tmp_path, f"# shoal-lint: ignore SHL-306 why\n{POD}").findings) == 1


def test_an_annotation_with_a_reason_accepts_a_finding_of_its_object(tmp_path: Path) -> None:
    annotated = POD.replace(
        "{name: p}", '{name: p, annotations: {shoal.dev/lint-ignore: "SHL-305: a monitor; SHL-1: x"}}'
    )
    assert (lint(tmp_path, annotated).findings, lint(tmp_path, annotated).accepted) == ([], 1)
    assert rules(lint(tmp_path, annotated.replace(": a monitor", ":"))) == ["VisibleDevicesByHand"]
    (plain,) = read_plain_objects([str(tmp_path)]).objects
    assert lint_objects([plain.obj], ObjectSet([]), frozenset(faults())).objects == 1


def test_a_baseline_hides_known_findings_also_on_other_lines(tmp_path: Path) -> None:
    known = {each.key for each in lint(tmp_path, POD).findings}
    moved = lint(tmp_path, "# more\n# lines\n" + POD).findings
    assert list(new_findings(moved, known)) == []
    assert len(list(new_findings(lint(tmp_path, POD.replace("name: p", "name: q")).findings, known))) == 1


def test_levels_include_what_is_more_severe(tmp_path: Path) -> None:
    found: list[LintFinding] = lint(tmp_path, POD).findings
    assert [reaches(found, level) for level in ("error", "warning", "info", "never")] == [False, True, True, False]
    assert not reaches([], "info")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("container.yaml", "name: a\nimage: x\nenv:\n- {name: NVIDIA_VISIBLE_DEVICES, value: all}\n", ("env[0]", 4)),
        (
            "pod.yaml",
            "containers:\n- name: a\n  env:\n  - {name: NVIDIA_VISIBLE_DEVICES, value: all}\n",
            ("containers[0].env[0]", 4),
        ),
        (
            "rules.yaml",
            "groups:\n- name: g\n  rules:\n  - {alert: a, expr: DCGM_FI_DEV_FB_USED / DCGM_FI_DEV_FB_FREE > 0.9}\n",
            ("groups[0].rules[0].expr", 4),
        ),
        ("list.yaml", "- alert: a\n  expr: rate(DCGM_FI_DEV_XID_ERRORS[5m]) > 0\n", ("[0].expr", 2)),
        ("one.promql", "rate(DCGM_FI_DEV_XID_ERRORS[5m]) > 0\n", ("expr", 1)),
        ("plugin.yaml", "version: v1\nsharing:\n  timeSlicing: {replicas: 4}\n", ("sharing.timeSlicing.replicas", 3)),
        (
            "scheduler.yaml",
            "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\nprofiles: []\n",
            ("apiVersion", 1),
        ),
    ],
)
def test_parts_of_objects_and_configurations_are_checked(
    tmp_path: Path, name: str, text: str, expected: tuple[str, int]
) -> None:
    found = lint(tmp_path, text, name)
    assert expected in [(each.field, each.line) for each in found.findings]
    assert not found.skipped


def test_values_of_charts_are_named_and_not_checked(tmp_path: Path) -> None:
    found = lint(tmp_path, "driver: {enabled: false}\n")
    assert (found.objects, found.findings) == (0, [])
    assert "values of a Helm chart" in found.skipped[0][1]
