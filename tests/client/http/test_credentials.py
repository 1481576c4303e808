"""What is shown to a server: read again where files renew it, asked for again where a program gives it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from shoal.client.http.access import Access, ExecProgram
from shoal.client.http.credentials import Credentials, Shown
from shoal.client.http.exec_plugin import Ticket
from shoal.client.http.kubeconfig import read_kubeconfig
from shoal.units.errors import TemporaryError, UserError

GIVEN = "given"
PROGRAM = ExecProgram("aws", "client.authentication.k8s.io/v1")
WALL_S = 1e9


def known(credentials: Credentials, now_s: float) -> Shown:
    found = credentials.known(now_s)
    assert found is not None
    return found


def said(shown: Shown) -> str:
    return shown.token


def test_a_token_in_a_file_is_read_again_every_minute(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    credentials = Credentials(Access("https://x", "here", token=GIVEN, token_file=file))
    assert said(known(credentials, 0)) == "first"
    file.write_text("second")
    assert said(known(credentials, 59)) == "first"
    assert said(known(credentials, 60)) == "second"
    file.unlink()
    assert said(known(credentials, 200)) == "second"


def test_a_token_that_was_not_taken_is_looked_for_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    credentials = Credentials(Access("https://x", "here", token_file=file))
    known(credentials, 0)
    file.write_text("second")
    credentials.forget()
    assert said(known(credentials, 1)) == "second"


def test_no_token_at_all_in_a_file_that_was_promised_is_the_users_turn(tmp_path: Path) -> None:
    credentials = Credentials(Access("https://x", 'context "a" of f', token_file=tmp_path / "none"))
    with pytest.raises(UserError, match='context "a" of f: the token cannot be read from'):
        credentials.known(0)


def test_a_kubeconfig_is_read_again_when_its_token_was_not_taken(tmp_path: Path) -> None:
    file = tmp_path / "config"

    def write(token: str) -> None:
        user = {"name": "u", "user": {"token": token}}
        cluster = {"name": "c", "cluster": {"server": "https://x"}}
        context = {"name": "k", "context": {"cluster": "c", "user": "u"}}
        whole = {"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "k"}
        file.write_text(json.dumps(whole))

    write("first")
    credentials = Credentials(read_kubeconfig([file]))
    assert said(known(credentials, 0)) == "first"
    write("second")
    assert said(known(credentials, 100)) == "first"
    credentials.forget()
    assert said(known(credentials, 101)) == "second"
    # Half written, it changes nothing.
    file.write_text("{")
    credentials.forget()
    assert said(known(credentials, 102)) == "second"
    write("third")
    credentials.forget()
    assert said(known(credentials, 103)) == "third"


def test_without_a_file_the_token_is_what_was_given() -> None:
    assert said(known(Credentials(Access("https://x", "here", token=GIVEN)), 0)) == "given"
    nobody = Credentials(Access("https://x", "here"))
    assert said(known(nobody, 0)) == ""
    assert not nobody.may_change


def test_certificates_and_authorities_are_read_again_too(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("certificate", "key", "authority")}
    for name, file in files.items():
        file.write_text(f"new {name}")
    access = Access(
        "https://x",
        "here",
        authority="old",
        certificate=b"old",
        key=b"old",
        certificate_file=files["certificate"],
        key_file=files["key"],
        authority_file=files["authority"],
    )
    credentials = Credentials(access)
    assert known(credentials, 0) == Shown("", b"new certificate", b"new key", "new authority")
    for file in files.values():
        file.unlink()
    assert known(credentials, 100) == Shown("", b"new certificate", b"new key", "new authority")


class Told:
    """A program that says what the test wants, and how often it was asked."""

    def __init__(self, answer: Callable[[int], Ticket]) -> None:
        self.asked = 0
        self._answer = answer

    async def __call__(self, program: ExecProgram, where: str) -> Ticket:
        self.asked += 1
        number = self.asked
        await asyncio.sleep(0)
        return self._answer(number)

    def credentials(self) -> Credentials:
        return Credentials(Access("https://x", "here", program=PROGRAM), self, lambda: WALL_S)


async def test_many_requests_wait_for_one_answer_of_the_program() -> None:
    told = Told(lambda number: Ticket(token=str(number)))
    credentials = told.credentials()
    assert credentials.known(0) is None
    shown = await asyncio.gather(*(credentials.renewed(0) for _ in range(20)))
    assert {said(one) for one in shown} == {"1"}
    assert said(known(credentials, 1e9)) == "1"
    assert told.asked == 1


async def test_the_program_is_asked_before_its_answer_expires() -> None:
    told = Told(lambda number: Ticket(token=str(number), expires_s=WALL_S + 1000))
    credentials = told.credentials()
    await credentials.renewed(0)
    assert said(known(credentials, 939)) == "1"
    assert credentials.known(940) is None
    assert said(await credentials.renewed(940)) == "2"


async def test_an_answer_that_seems_to_have_expired_by_a_wrong_clock_does_not_make_it_run_all_the_time() -> None:
    told = Told(lambda number: Ticket(token=str(number), expires_s=WALL_S - 1000))
    credentials = told.credentials()
    await credentials.renewed(0)
    assert said(known(credentials, 7)) == "1"


async def test_a_program_that_fails_leaves_what_it_gave_before_until_that_expires() -> None:
    def answer(number: int) -> Ticket:
        if number > 1:
            raise TemporaryError("no network", 1.0)
        return Ticket(token=str(number), expires_s=WALL_S + 100)

    told = Told(answer)
    credentials = told.credentials()
    await credentials.renewed(0)
    assert said(await credentials.renewed(85)) == "1"
    assert said(known(credentials, 89)) == "1"
    assert told.asked == 2
    with pytest.raises(TemporaryError):
        await credentials.renewed(100)


async def test_a_program_that_fails_is_not_run_by_each_request_that_waits() -> None:
    def answer(number: int) -> Ticket:
        if number == 1:
            raise UserError("not installed")
        return Ticket(token=str(number))

    told = Told(answer)
    credentials = told.credentials()
    failures = await asyncio.gather(*(credentials.renewed(0) for _ in range(20)), return_exceptions=True)
    assert {str(failure) for failure in failures} == {"not installed"}
    assert told.asked == 1
    assert said(await credentials.renewed(6)) == "2"


async def test_an_answer_that_the_server_did_not_take_is_asked_for_again() -> None:
    told = Told(lambda number: Ticket(token=str(number)))
    credentials = told.credentials()
    await credentials.renewed(0)
    credentials.forget()
    assert said(await credentials.renewed(1)) == "2"


async def test_a_program_may_give_a_certificate() -> None:
    told = Told(lambda _: Ticket(certificate=b"c", key=b"k"))
    assert await told.credentials().renewed(0) == Shown("", b"c", b"k", "")
