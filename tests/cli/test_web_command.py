"""`shoal web`: options that cannot be used, and a cluster that does not answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cli.main import main

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: gone, cluster: {server: 'http://127.0.0.1:9'}}]
contexts: [{name: gone, context: {cluster: gone, user: me}}]
users: [{name: me, user: {token: t}}]
current-context: gone
"""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    file = tmp_path / "kubeconfig"
    file.write_text(KUBECONFIG, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", ""], "names no address to listen on"),
        (["--host", "a\nb"], "neither an address nor a host name"),
        (["--tls-cert-file", "web.crt"], "--tls-private-key-file"),
        (["--tls-private-key-file", "web.key"], "--tls-cert-file"),
        (["--tls-cert-file", "/none.crt", "--tls-private-key-file", "/none.key"], "the certificate cannot be read"),
    ],
)
def test_options_that_cannot_be_used_are_named(
    arguments: list[str], words: str, kubeconfig: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["web", "--kubeconfig", kubeconfig, *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_cluster_that_does_not_answer_is_one_line(kubeconfig: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["web", "--port", "0", "--kubeconfig", kubeconfig, "--request-timeout", "1s"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "127.0.0.1:9" in lines[0]
