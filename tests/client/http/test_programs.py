"""Programs that say who asks, run as they are."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from build.told_server import POD, Server, status
from shoal.client.http.access import Access, ExecProgram
from shoal.client.http.api import KubeApi
from shoal.client.http.exec_plugin import Ticket, run_program
from shoal.client.kind import PODS
from shoal.client.refusals import UnauthorizedError
from shoal.units.errors import TemporaryError, UserError

V1 = "client.authentication.k8s.io/v1"
WHERE = 'context "a" of f'


def python(code: str, **more: Any) -> ExecProgram:
    return ExecProgram(sys.executable, V1, ("-c", code), mode="Never", **more)


def saying(answer: str) -> ExecProgram:
    return python(f"print({answer!r})")


def credential(**said: Any) -> str:
    return json.dumps({"kind": "ExecCredential", "apiVersion": V1, "status": said})


async def test_a_token_and_when_it_expires_are_taken() -> None:
    said = credential(token="t", expirationTimestamp="2026-01-01T00:00:00Z")  # noqa: S106 - not one
    assert await run_program(saying(said), WHERE) == Ticket("t", expires_s=1_767_225_600.0)


async def test_a_certificate_is_taken() -> None:
    said = credential(clientCertificateData="c", clientKeyData="k")
    assert await run_program(saying(said), WHERE) == Ticket(certificate=b"c", key=b"k")


async def test_what_is_printed_of_an_answer_has_no_secrets() -> None:
    assert "secret" not in repr(await run_program(saying(credential(token="secret")), WHERE))  # noqa: S106 - not one


async def test_the_program_is_told_of_the_server_and_has_its_own_environment() -> None:
    code = (
        "import os, json; info = json.loads(os.environ['KUBERNETES_EXEC_INFO']);"
        "token = json.dumps([info, os.environ['A'], 'PATH' in os.environ]);"
        f"print(json.dumps({{'kind': 'ExecCredential', 'apiVersion': {V1!r}, 'status': {{'token': token}}}}))"
    )
    program = python(code, environment=(("A", "$(b) 'c'"),), cluster={"server": "https://x"})
    info, a, has_path = json.loads((await run_program(program, WHERE)).token)
    assert info == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False, "cluster": {"server": "https://x"}},
    }
    assert (a, has_path) == ("$(b) 'c'", True)


WRONG: list[tuple[str, str, str]] = [
    ("nothing", "", "is not an ExecCredential"),
    ("another kind", json.dumps({"kind": "X", "apiVersion": V1}), 'is "X" of'),
    ("another version", json.dumps({"kind": "ExecCredential", "apiVersion": "v2"}), "and no ExecCredential of"),
    ("no status", json.dumps({"kind": "ExecCredential", "apiVersion": V1}), "has neither a token nor a certificate"),
    ("half a certificate", credential(clientKeyData="secret"), "a key without its certificate"),
    ("no date", credential(token="secret", expirationTimestamp="soon"), "is not an ExecCredential"),  # noqa: S106
]


@pytest.mark.parametrize(("answer", "words"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
async def test_an_answer_that_is_none_is_said_without_showing_it(answer: str, words: str) -> None:
    with pytest.raises(UserError) as refused:
        await run_program(saying(answer), WHERE)
    assert words in str(refused.value)
    assert str(refused.value).startswith(WHERE)
    assert "secret" not in str(refused.value)


async def test_a_program_that_is_not_there_is_said_with_how_to_install_it() -> None:
    with pytest.raises(UserError, match=r"no-such-program cannot be run: .*; brew install it"):
        await run_program(ExecProgram("no-such-program", V1, hint="brew install it", mode="Never"), WHERE)


async def test_a_program_that_fails_says_why_and_is_tried_again() -> None:
    with pytest.raises(TemporaryError, match="ended with 3: no network"):
        await run_program(python("import sys; print('no\\nnetwork', file=sys.stderr); sys.exit(3)"), WHERE)


async def test_a_program_that_has_to_ask_needs_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UserError, match="needs a terminal"):
        await run_program(ExecProgram(sys.executable, V1, mode="Always"), WHERE)


async def test_a_program_that_hangs_is_ended() -> None:
    with pytest.raises(TemporaryError, match=r"did not answer within 0\.2 s"):
        await run_program(python("import time; time.sleep(60)"), WHERE, limit_s=0.2)


def counting(folder: Path) -> ExecProgram:
    """Gives token 1, then 2, and so on."""
    code = (
        f"import pathlib, json; file = pathlib.Path({str(folder / 'count')!r});"
        "number = int(file.read_text()) + 1 if file.exists() else 1; file.write_text(str(number));"
        f"print(json.dumps({{'kind': 'ExecCredential', 'apiVersion': {V1!r}, 'status': {{'token': str(number)}}}}))"
    )
    return python(code)


async def test_a_request_that_was_not_taken_is_made_once_more_with_other_credentials(
    server: Server, tmp_path: Path
) -> None:
    server.script = [POD, (401, status(401, "Unauthorized")), POD, (401, status(401, "Unauthorized"))]
    api = KubeApi(Access(server.url, "here", program=counting(tmp_path)), random.Random(1))
    for _ in range(2):
        await api.create(PODS, {"metadata": {"namespace": "a"}})
    with pytest.raises(UnauthorizedError):
        await api.get(PODS, "a", "p")
    shown = [one.headers["Authorization"] for one in server.seen]
    assert shown == ["Bearer 1", "Bearer 1", "Bearer 2", "Bearer 2", "Bearer 3"]
    await api.close()


async def test_a_program_that_prints_without_end_is_stopped() -> None:
    with pytest.raises(TemporaryError, match="answered more than 1 MiB"):
        await run_program(python("while True: print('y' * 4096)"), WHERE)


async def test_a_program_that_complains_without_end_is_not_kept_in_memory() -> None:
    code = "import sys; sys.stderr.write('y' * 8_000_000 + ' the end'); sys.exit(3)"
    with pytest.raises(TemporaryError, match=r"ended with 3: y+ the end"):
        await run_program(python(code), WHERE)
