"""`shoal node` and `shoal join`: what they print, and why a machine cannot join."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shoal.agent.kubelet.node_identity import JoinedCluster, NodeIdentity
from shoal.cli.main import main
from shoal.cli.up import Authorization, UpOptions
from shoal.client.kubelet.node_joining import TOKEN, authority_hash
from shoal.embedded.apiserver.security.authority import open_authority
from shoal.embedded.apiserver.security.join_tokens import JoinTokens
from shoal.embedded.apiserver.security.joined_nodes import JoinedNodes
from shoal.embedded.apiserver.security.state_folder import Running, claim
from shoal.units.errors import UserError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DIGEST = f"sha256:{'0' * 64}"
SECRET = f"{'a' * 6}.{'b' * 32}"


@contextmanager
def cluster(folder: Path, url: str = "https://192.0.2.1:6443", fault: str = "") -> Iterator[tuple[str, str]]:
    """A server of this process, as far as these commands see it; gives the option for its folder."""
    with claim(folder) as claimed:
        open_authority(folder / "keys", NOW)
        claimed.announce(Running(1, url, "/k", "1.36", fault))
        yield "--state", str(folder)


def test_the_command_for_the_other_machine_is_the_only_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(tmp_path) as state:
        assert main(["node", "token", *state]) == 0
        words = shlex.split(capsys.readouterr().out)

    digest = authority_hash((tmp_path / "keys" / "ca.crt").read_bytes())
    assert [*words[:4], *words[5:]] == ["shoal", "join", "192.0.2.1:6443", "--token", "--ca-hash", digest]
    assert TOKEN.fullmatch(words[4])


def test_programs_get_the_parts_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with cluster(tmp_path) as state:
        assert main(["node", "token", *state, "-o", "json", "--ttl", "15m"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert sorted(found) == ["caHash", "expires", "server", "token"]


def test_tokens_are_listed_by_name_and_revoked_by_name_or_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with cluster(tmp_path) as state:
        for _ in range(2):
            main(["node", "token", *state])
        tokens = [line.split()[4] for line in capsys.readouterr().out.splitlines()]
        assert main(["node", "tokens", *state]) == 0
        listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
        assert listed == [one.partition(".")[0] for one in tokens]

        assert main(["node", "revoke", listed[0], *state]) == 0
        assert main(["node", "revoke", tokens[1], *state]) == 0
        assert main(["node", "revoke", tokens[1], *state]) == 2
        assert f'there is no valid join token "{listed[1]}"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "fault", "words"),
    [
        ("https://127.0.0.1:1", "it listens on loopback; start it with --host X", "loopback; end it and start it with"),
        ("https://0.0.0.0:1", "", "0.0.0.0 is no address that a machine can connect to"),
        ("https://[::]:1", "", ":: is no address that a machine can connect to"),
    ],
)
def test_a_cluster_that_no_machine_can_join_gives_no_token_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], url: str, fault: str, words: str
) -> None:
    with cluster(tmp_path, url, fault) as state:
        assert main(["node", "token", *state]) == 2

    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""
    assert JoinTokens(tmp_path / "keys").valid(0.0) == ()


def test_without_a_cluster_there_is_no_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["node", "token", "--state", str(tmp_path / "none")]) == 2
    assert "no cluster runs here; start it with `shoal up --host ADDRESS`" in capsys.readouterr().err


@pytest.mark.parametrize("ttl", ["0s", "-1h", "169h", "soon", ""])
def test_a_token_is_valid_for_a_time_up_to_a_week(tmp_path: Path, capsys: pytest.CaptureFixture[str], ttl: str) -> None:
    with cluster(tmp_path) as state:
        assert main(["node", "token", *state, "--ttl", ttl]) == 2
    assert "at most 168h" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "HOST:PORT, --token and --ca-hash are required"),
        (["192.0.2.1:6443", "--token", SECRET], "HOST:PORT, --token and --ca-hash are required"),
        (["192.0.2.1:6443", "--token", "x", "--ca-hash", DIGEST], "--token: is not a join token"),
        (["192.0.2.1:6443", "--token", SECRET, "--ca-hash", "x"], '--ca-hash: "x" is not a hash'),
        (["192.0.2.1", "--token", SECRET, "--ca-hash", DIGEST], '"192.0.2.1" is no address of a server'),
        (["a@192.0.2.1:1", "--token", SECRET, "--ca-hash", DIGEST], "is no address of a server"),
        (["192.0.2.1:x", "--token", SECRET, "--ca-hash", DIGEST], "is no address of a server"),
        (["192.0.2.1:1", "--token", SECRET, "--ca-hash", DIGEST, "--name", "No"], "cannot be the name of a node"),
    ],
)
def test_a_command_that_cannot_be_right_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["join", "--state", str(tmp_path), *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_joined_machine_joins_no_second_cluster_with_the_same_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    identity = NodeIdentity(tmp_path)
    identity.join(JoinedCluster("https://192.0.2.1:6443", "n1"), b"", b"", b"")

    for arguments in (["192.0.2.2:1", "--token", SECRET, "--ca-hash", DIGEST], ["--name", "n2"]):
        assert main(["join", "--state", str(tmp_path), *arguments]) == 2
        assert "this machine is the node n1 of https://192.0.2.1:6443 already" in capsys.readouterr().err
    assert identity.move("https://192.0.2.3:1") == JoinedCluster("https://192.0.2.3:1", "n1") == identity.cluster()


def test_with_other_machines_rbac_is_enforced(tmp_path: Path) -> None:
    def mode(options: UpOptions) -> str:
        return options.settings(tmp_path).authorization

    assert mode(UpOptions()) == "always-allow"
    assert mode(UpOptions(host="192.0.2.1")) == "rbac"
    assert mode(UpOptions(host="192.0.2.1", authorization=Authorization.ALWAYS_ALLOW)) == "always-allow"

    JoinedNodes(tmp_path / "keys").issue("n1", "key", ("1a", 100.0), 0.0)

    assert mode(UpOptions()) == "rbac"
    with pytest.raises(UserError, match="other machines have joined this cluster"):
        mode(UpOptions(authorization=Authorization.ALWAYS_ALLOW))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (UpOptions(), "it listens on loopback"),
        (UpOptions(host="192.0.2.1", memory=True), "start it without --memory"),
        (UpOptions(host="192.0.2.1", authorization=Authorization.ALWAYS_ALLOW), "start it with --authorization rbac"),
        (UpOptions(host="192.0.2.1"), ""),
        (UpOptions(host="127.0.0.1"), ""),
    ],
)
def test_why_no_machine_can_join_is_known_from_the_options(tmp_path: Path, options: UpOptions, words: str) -> None:
    fault = options.settings(tmp_path).joining_fault

    assert words in fault if words else fault == ""
