"""Runs exec plugins, the credential programs of kubeconfigs (client.authentication.k8s.io, v1 and v1beta1).

The command is run unchanged, without a shell, with a time limit; its input is in KUBERNETES_EXEC_INFO. Its standard
output is never shown; its standard error is, because it is meant for users.

Rejected: a library. docs/dependencies.md compares.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from shoal.client.http.access import Access, ExecProgram
from shoal.units.errors import TemporaryError, UserError, Where, excerpt

_GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_LIMIT_S, _PERSON_LIMIT_S = 60.0, 600.0
_AGAIN_S = 5.0
_MOST_BYTES = 2**20
"""The maximum size of the output: tokens and certificates have some kilobytes."""
_SHOWN_BYTES = 4096
_ERRORS = 2
"""The file descriptor."""


class Ticket(msgspec.Struct, frozen=True):
    """The credentials that the program returned."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires_s: float | None = None
    """Seconds since 1970."""

    def __repr__(self) -> str:
        return f"Ticket(until {self.expires_s})"


class _Variable(msgspec.Struct):
    name: str
    value: str = ""


class _Exec(msgspec.Struct, rename="camel"):
    api_version: str
    command: str
    args: list[str] | None = None
    env: list[_Variable] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: Literal["Never", "IfAvailable", "Always", ""] = ""


class _CredentialStatus(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _Credential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _CredentialStatus | None = None


def program_of(said: object, where: Where, folder: Path) -> tuple[ExecProgram, bool]:
    """The program of `exec` in a kubeconfig, and whether it gets the description of the server."""
    try:
        found = msgspec.convert(said, _Exec)
    except msgspec.ValidationError as error:
        raise UserError(str(error), where=where) from None
    if found.api_version not in _VERSIONS:
        raise UserError(f"{excerpt(found.api_version)} is not known", where=where, fix=f"use {_VERSIONS[0]}")
    if not found.command:
        raise UserError("command is missing", where=where)
    if not found.interactive_mode and found.api_version == _VERSIONS[0]:
        raise UserError("interactiveMode is missing", where=where, fix="say Never, IfAvailable or Always")
    is_path = os.sep in found.command
    program = ExecProgram(
        command=str(folder / found.command) if is_path else found.command,
        api_version=found.api_version,
        arguments=tuple(found.args or ()),
        environment=tuple((one.name, one.value) for one in found.env or ()),
        hint=found.install_hint,
        mode=found.interactive_mode or "IfAvailable",
    )
    return program, found.provide_cluster_info


def told_of(access: Access, config: object) -> dict[str, Any]:
    """The description of the server in the format of the protocol; `config`: the kubeconfig's settings for the
    program.
    """
    reported: dict[str, Any] = {"server": access.server}
    if access.tls_name:
        reported["tls-server-name"] = access.tls_name
    if access.is_insecure:
        reported["insecure-skip-tls-verify"] = True
    if access.authority:
        reported["certificate-authority-data"] = base64.b64encode(access.authority.encode()).decode()
    if access.proxy:
        reported["proxy-url"] = access.proxy
    return reported | ({"config": config} if config is not None else {})


async def run_program(program: ExecProgram, where: str, limit_s: float = _LIMIT_S) -> Ticket:
    """Raises UserError for faults that the user must correct, and TemporaryError if the program failed.

    `limit_s`: the time limit of a program that does not ask the user.
    """
    has_terminal = sys.stdin is not None and sys.stdin.isatty()
    if program.mode == "Always" and not has_terminal:
        raise UserError(
            f"{program.command} needs a terminal for its question, and standard input is none", where=Where(where)
        )
    asks = has_terminal and program.mode != "Never"
    spec = {"interactive": asks} | ({"cluster": program.cluster} if program.cluster is not None else {})
    info = {"kind": "ExecCredential", "apiVersion": program.api_version, "spec": spec}
    reported = {**dict(program.environment), "KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
    try:
        transport, process = await asyncio.get_running_loop().subprocess_exec(
            _Process,
            program.command,
            *program.arguments,
            stdin=None if asks else DEVNULL,
            stdout=PIPE,
            stderr=None if asks else PIPE,
            env={**os.environ, **reported},
        )
    except OSError as error:
        what = f"{program.command} cannot be run: {error.strerror or error}"
        fix = program.hint or "install it, or use a user with a token"
        raise UserError(what, where=Where(where), fix=fix) from None
    answer = await _answer(transport, process, program, _PERSON_LIMIT_S if asks else limit_s)
    return _ticket(answer, program, where)


class _Process(asyncio.SubprocessProtocol):
    """Collects the output of the program, and stops it when the output is too long."""

    def __init__(self) -> None:
        self.answer = bytearray()
        self.words = b""
        """The end of its standard error."""
        self.has_ended = asyncio.Event()
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == _ERRORS:
            self.words = (self.words + data)[-_SHOWN_BYTES:]
            return
        self.answer += data
        if self.is_too_much and self._transport is not None:
            self._transport.close()

    def connection_lost(self, _: Exception | None) -> None:
        self.has_ended.set()

    @property
    def is_too_much(self) -> bool:
        return len(self.answer) > _MOST_BYTES


async def _answer(
    transport: asyncio.SubprocessTransport, process: _Process, program: ExecProgram, limit_s: float
) -> bytes:
    try:
        async with asyncio.timeout(limit_s):
            await process.has_ended.wait()
    except TimeoutError:
        raise TemporaryError(f"{program.command} did not answer within {limit_s:g} s", _AGAIN_S) from None
    finally:
        transport.close()
    if process.is_too_much:
        raise TemporaryError(f"{program.command} answered more than {_MOST_BYTES // 2**20} MiB", _AGAIN_S)
    if code := transport.get_returncode():
        said = " ".join(process.words.decode(errors="replace").split())[-300:]
        raise TemporaryError(f"{program.command} ended with {code}: {said or 'no words'}", _AGAIN_S)
    return bytes(process.answer)


def _ticket(answer: bytes, program: ExecProgram, where: str) -> Ticket:
    def wrong(what: str) -> UserError:
        return UserError(f"what {program.command} answered {what}", where=Where(where))

    try:
        found = msgspec.json.decode(answer, type=_Credential)
    except msgspec.MsgspecError as error:
        raise wrong(f"is not an ExecCredential: {error}") from None
    if found.kind != "ExecCredential" or found.api_version != program.api_version:
        said = f"{excerpt(found.kind)} of {excerpt(found.api_version)}"
        raise wrong(f"is {said} and no ExecCredential of {program.api_version}")
    status = found.status or _CredentialStatus()
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise wrong("has a certificate without its key, or a key without its certificate")
    if not status.token and not status.client_key_data:
        raise wrong("has neither a token nor a certificate")
    expires = status.expiration_timestamp
    if expires is not None and expires.tzinfo is None:
        expires = expires.replace(tzinfo=UTC)
    return Ticket(
        token=status.token or "",
        certificate=(status.client_certificate_data or "").encode(),
        key=(status.client_key_data or "").encode(),
        expires_s=expires.timestamp() if expires is not None else None,
    )
