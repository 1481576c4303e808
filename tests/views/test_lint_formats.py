"""Findings are written for code scanning, workflows and test reports, whatever text they contain."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from shoal.policy.findings import LintFinding
from shoal.views.lint_formats import written


def finding(file: str = "a.yaml", line: int = 3, message: str = "is wrong") -> LintFinding:
    return LintFinding(
        id="SHL-305",
        severity="warning",
        effect="the pod sees GPUs of others",
        file=file,
        document=1,
        line=line,
        column=5,
        object="Pod default/p",
        reference="pod/p",
        rule="VisibleDevicesByHand",
        field="spec.x",
        message=message,
        fix="leave it out",
    )


@pytest.mark.parametrize(
    ("file", "uri"), [("a b/c.yaml", "a%20b/c.yaml"), ("/x/c.yaml", "file:///x/c.yaml"), ("./c.yaml", "c.yaml")]
)
def test_sarif_has_addresses_of_files_and_no_paths(file: str, uri: str) -> None:
    (result,) = json.loads(written([finding(file)], "sarif", "1"))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_sarif_has_the_rule_and_the_region() -> None:
    document = json.loads(written([finding()], "sarif", "1.2.3"))
    run = document["runs"][0]
    assert document["version"] == "2.1.0"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["SHL-305"]
    assert run["tool"]["driver"]["rules"][0]["help"]["text"].startswith("leave the variable")
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("SHL-305", "warning")
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"]["uri"] == "a.yaml"
    assert physical["region"] == {"startLine": 3, "startColumn": 5}


def test_an_object_of_a_cluster_has_no_file() -> None:
    (result,) = json.loads(written([finding("", 0)], "sarif", "1"))["runs"][0]["results"]
    assert "physicalLocation" not in result["locations"][0]
    assert written([finding("", 0)], "github", "1").startswith("::warning title=SHL-305 VisibleDevicesByHand::")


def test_text_cannot_end_a_workflow_command() -> None:
    line = written([finding("a,b:c.yaml", message="x\n::error::y 100%")], "github", "1")
    assert line.count("\n") == 1
    assert line.startswith("::warning file=a%2Cb%3Ac.yaml,line=3,col=5,title=")
    assert "100%25" in line


def test_junit_is_xml_with_a_suite_for_each_file() -> None:
    found = [finding(), finding("b.yaml", message='<&"\x00\x1b'), finding()]
    root = ET.fromstring(written(found, "junit", "1"))  # noqa: S314 - our own text
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [("a.yaml", "2"), ("b.yaml", "1")]
    assert root[1][0][0].get("type") == "warning"
