"""`shoal install` and its sisters as far as they need no cluster: images, values, and each way to be wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from shoal.cli.main import main

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that does not answer."""
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG)
    monkeypatch.setenv("KUBECONFIG", str(file))


def test_the_images_are_printed_one_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "images", "--set", "image.repository=registry.example.com/shoal"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("registry.example.com/shoal:")
    assert "nvcr.io/nvidia/k8s/container-toolkit:v1.18.0" in lines


def test_the_images_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "images", "-o", "json", "--set", "driver.enabled=false"]) == 0
    images = json.loads(capsys.readouterr().out)["images"]
    assert not [one for one in images if "/driver:" in one]


def test_all_options_are_printed_as_a_values_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["install", "values"]) == 0
    found = yaml.safe_load(capsys.readouterr().out)
    assert (found["driver"]["enabled"], found["mig"]["strategy"], found["replicas"]) == (True, "single", 2)


def test_warnings_about_values_come_with_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("drivers: {enabled: false}\n")
    assert main(["install", "images", "-f", str(file)]) == 0
    err = capsys.readouterr().err
    assert f'shoal: warning: {file}: "drivers.enabled" is not an option and is ignored; did you mean driver.' in err


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("install", "Prod"), 'RELEASE: "Prod" is not a valid name'),
        (("install", "-n", "a_b"), '--namespace: "a_b" is not a valid name'),
        (("install", "prod", "--generate-name"), "--generate-name: is given with a name"),
        (("install", "--timeout", "soon"), '--timeout: "soon" is not a duration'),
        (("install", "--timeout", "0"), "is not a duration"),
        (("install", "--set", "driver"), 'key "driver" has no value'),
        (("install", "--set", "mig.strategy=mixd"), "did you mean mixed?"),
        (("install", "-f", "/nowhere/values.yaml"), "/nowhere/values.yaml: cannot be read"),
        (("install", "-o", "yml"), "did you mean yaml?"),
        (
            ("install", "--set", "config.admission.rules.NoGpuTolerations=enforce"),
            'config.admission.rules: "NoGpuTolerations" is no rule at admission; did you mean NoGpuToleration?',
        ),
        (("install", "--set", "config.admission.rules.SHL-352=enforcee"), 'unsupported value "enforcee"'),
        (("upgrade", "--rollback", "--set", "a=b"), "--rollback: is given with values"),
        (("upgrade", "--rehearse", "--diff"), "--rehearse: is given with --diff"),
    ],
)
def test_wrong_input_is_one_line_before_any_request(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert words in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("command", ["install", "upgrade", "status", "uninstall"])
def test_a_cluster_that_does_not_answer_is_one_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--request-timeout", "1s"]) == 1
    assert "127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("install", "--revert"), "--revert: is given without --adopt; name the project"),
        (("install", "--adopt", "kueu"), "--adopt: project kueu cannot be adopted; did you mean kueue?"),
        (("install", "--adopt", "kai", "--observe"), "--observe: is given with --adopt"),
    ],
)
def test_wrong_options_of_an_adoption_are_one_line(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert words in capsys.readouterr().err
