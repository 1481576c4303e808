"""`shoal alerts`: a PrometheusRule, or a rule file of Prometheus."""

from __future__ import annotations

import msgspec
import pytest

from shoal.cli.main import main


def test_the_object_has_the_name_the_namespace_and_the_labels_of_the_options(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["alerts", "--name", "gpu", "-n", "prom", "--labels", "release=kps,team=a"]) == 0
    found = msgspec.yaml.decode(capsys.readouterr().out)
    assert (found["apiVersion"], found["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert found["metadata"] == {"name": "gpu", "namespace": "prom", "labels": {"release": "kps", "team": "a"}}


def test_the_rule_file_has_the_same_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alerts"]) == 0
    written = msgspec.yaml.decode(capsys.readouterr().out)["spec"]
    assert main(["alerts", "-o", "rules"]) == 0
    assert msgspec.yaml.decode(capsys.readouterr().out) == written


@pytest.mark.parametrize("labels", ["release", "=x", "a=b,c"])
def test_labels_that_are_none_are_named(labels: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["alerts", "--labels", labels]) == 2
    assert "--labels" in capsys.readouterr().err
