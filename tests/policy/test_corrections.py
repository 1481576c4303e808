"""Corrections are written into the text of a file; everything else stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from build.manifests import as_file
from shoal.api.plain_objects import PlainObjects, add_file
from shoal.cli.main import main
from shoal.policy.catalogue import faults
from shoal.policy.corrections import corrected
from shoal.policy.findings import LintFinding
from shoal.policy.lint import lint_files
from shoal.policy.object_set import ObjectSet

TEXT = """\
# The server.
apiVersion: v1
kind: Pod   # one
metadata: {name: p, labels: {version: 2}}
spec:
  containers:
  - name: a
    image: x:1
    imagePullPolcy: Always  # always
    ports: [{name: http, containerPort: "8000"}]
    readinessProbe: {httpGet: {path: /, port: htpp}}
    resources:
      limits: {nvidia.com/gpus: 1, memory: 1Gi}
    volumeMounts:
    - {name: dta, mountPath: /data}
  volumes:
  - {name: data, emptyDir: {}}
"""


def check(text: str) -> list[LintFinding] | None:
    read = PlainObjects()
    add_file(read, "a.yaml", text.encode())
    if read.errors:
        return None
    return lint_files(read, ObjectSet(each.obj for each in read.objects), frozenset(faults())).findings


def found(text: str) -> list[LintFinding]:
    return check(text) or []


def test_names_and_values_are_corrected_and_comments_and_layout_stay() -> None:
    text, done = corrected(TEXT, found(TEXT), check)
    expected = (
        TEXT.replace("imagePullPolcy", "imagePullPolicy")
        .replace("version: 2", 'version: "2"')
        .replace('"8000"', "8000")
        .replace("htpp", "http")
        .replace("gpus", "gpu")
        .replace("dta", "data")
    )
    assert text == expected
    assert len(done) == 6
    assert found(text) == []


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("imagePullPolcy: Always", "imagePullPolicy: Always\n    imagePullPolcy: Never"),
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: x:1, nosuchfield: 1}]}\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: a, image: x:1, stdin: 1}]}\n",
    ],
    ids=["a name that is there already", "a field like no other", "no certain value"],
)
def test_what_cannot_be_corrected_with_certainty_stays(text: str) -> None:
    before = found(text)
    changed, done = corrected(text, before, check)
    assert len(found(changed)) == len(before) - len(done)
    assert ("imagePullPolcy: Never" in changed) == ("imagePullPolcy: Never" in text)
    assert ("nosuchfield" in changed) == ("nosuchfield" in text)


@pytest.mark.parametrize("written", ["0755", "1_000", "0x1F", "012345670123"])
def test_a_number_that_is_written_in_another_way_is_not_replaced_by_its_value(written: str) -> None:
    text = TEXT.replace("version: 2", f"version: {written}")
    changed, _ = corrected(text, found(text), check)
    assert f"version: {written}" in changed


def test_a_second_run_changes_nothing() -> None:
    text, _ = corrected(TEXT, found(TEXT), check)
    assert corrected(text, found(text), check) == (text, [])


def test_the_command_writes_the_file_and_reports_what_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(TEXT.replace("name: p,", "name: P,"))
    assert main(["lint", str(file), "--fix"]) == 1
    out, err = capsys.readouterr()
    assert "imagePullPolicy: Always  # always" in file.read_text()
    assert f"{file}:9: corrected SHL-107 UnknownKubernetesField: did you mean imagePullPolicy?" in err
    assert "InvalidName" in out
    assert "1 finding in 1 of 1 object" in out


def test_standard_input_cannot_be_corrected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "-", "--fix"]) == 2
    assert "--fix changes files, and none are named" in capsys.readouterr().err
    assert main(["lint", as_file(tmp_path), "--fix"]) == 0
