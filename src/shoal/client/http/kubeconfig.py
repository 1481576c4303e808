"""Reads kubeconfig files: one, or several that are merged, and selects the requested context.

As with kubectl, each entry comes from the first file that has it, and paths in a file are relative to that file. An
error is one line with the file, the entry and the correction.

Files that a kubeconfig refers to are read here, so that errors are reported at once; their paths are stored, because
their content may be renewed. Rejected: `auth-provider`, of which kubectl itself supports only one; the error message
describes the replacement.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec import structs

from shoal.api.files import read_whole
from shoal.client.http.access import Access, is_header_text
from shoal.client.http.exec_plugin import program_of, told_of
from shoal.units.errors import UserError, Where, excerpt

T = TypeVar("T")
_SECTIONS = ("clusters", "contexts", "users")
_DO_WITHOUT = "use a user with a token (`kubectl create token NAME`) or a client certificate"
_PROXIES = ("http://", "https://")
_FOR_PROGRAMS = "client.authentication.k8s.io/exec"
_MOST_BYTES = 4 * 2**20
"""The maximum size of a kubeconfig and of each file that it names."""
_NEAR = ("//localhost", "//127.0.0.1", "//[::1]")


class _Extension(msgspec.Struct):
    name: str = ""
    extension: Any = None


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[_Extension] = []


class _KubeconfigUser(msgspec.Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    impersonated: str = msgspec.field(name="as", default="")
    groups: list[str] = msgspec.field(name="as-groups", default_factory=list)
    program: Any = msgspec.field(name="exec", default=None)
    auth_provider: Any = None


class _Context(msgspec.Struct, rename="kebab"):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _Entry(msgspec.Struct):
    value: dict[str, Any]
    file: Path
    path: str

    @property
    def where(self) -> Where:
        return Where(str(self.file), path=self.path)


class _Merged:
    """The sections of all files by name, and the current context."""

    def __init__(self) -> None:
        self.current = ""
        self._sections: dict[str, dict[str, _Entry]] = {section: {} for section in _SECTIONS}

    def add(self, file: Path, content: dict[str, Any]) -> None:
        self.current = self.current or str(content.get("current-context") or "")
        for section in _SECTIONS:
            for at, one in enumerate(content.get(section) or []):
                path = f"{section}[{at}]"
                inner = one.get(section[:-1]) if isinstance(one, dict) else None
                if not isinstance(one, dict) or not isinstance(inner or {}, dict):
                    raise UserError(f"this is not a {section[:-1]}", where=Where(str(file), path=path))
                entry = _Entry(inner or {}, file, f"{path}.{section[:-1]}")
                self._sections[section].setdefault(str(one.get("name", "")), entry)

    def names(self, section: str) -> list[str]:
        return sorted(self._sections[section])

    def entry(self, section: str, name: str) -> _Entry | None:
        return self._sections[section].get(name)


class KubeconfigChoice(msgspec.Struct, frozen=True):
    """The entries that a command line names. An empty name means the entry of the context."""

    context: str = ""
    """Empty: the current one."""
    cluster: str = ""
    user: str = ""


def has_context(files: Sequence[Path], context: str = "") -> bool:
    """Whether one of the files has a context of that name, or says which context is current."""
    merged = _merged(files)
    return merged.entry("contexts", context) is not None if context else bool(merged.current)


def context_names(files: Sequence[Path]) -> list[str]:
    return _merged(files).names("contexts")


def read_kubeconfig(files: Sequence[Path], choice: KubeconfigChoice | str = "") -> Access:
    """The chosen context, or the current one. Of several files, missing ones are skipped."""
    choice = KubeconfigChoice(choice) if isinstance(choice, str) else choice
    shown = ":".join(str(file) for file in files)
    merged = _merged(files)
    name = choice.context or merged.current
    entry = merged.entry("contexts", name)
    if entry is None:
        what = f"context {excerpt(name)} not found" if name else "no context is current"
        known = ", ".join(merged.names("contexts"))
        raise UserError(what, where=Where(shown), fix=f"choose one of: {known}" if known else "it has no contexts")
    chosen = _typed(entry, _Context)
    cluster = _named(merged, "clusters", choice.cluster or chosen.cluster, entry)
    asked = choice.user or chosen.user
    user = _named(merged, "users", asked, entry) if asked else _Entry({}, entry.file, "users")
    access = _access(f'context "{name}" of {entry.file}', chosen.namespace, cluster, user)
    again = partial(read_kubeconfig, tuple(files), structs.replace(choice, context=name))
    return structs.replace(access, name=choice.cluster or name, file=entry.file, again=again)


def _merged(files: Sequence[Path]) -> _Merged:
    merged = _Merged()
    for file in files if len(files) == 1 else [file for file in files if file.exists()]:
        merged.add(file, _content(file))
    return merged


def _content(file: Path) -> dict[str, Any]:
    where = Where(str(file))
    try:
        content = yaml.safe_load(read_whole(file, _MOST_BYTES).decode())
    except RecursionError:
        raise UserError("is nested too deeply", where=where) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 1})" if mark is not None else ""
        raise UserError(f"this is not YAML{line}", where=where) from None
    if content is None:
        return {}
    lists = isinstance(content, dict) and all(isinstance(content.get(one) or [], list) for one in _SECTIONS)
    if not lists or content.get("kind", "Config") != "Config":
        raise UserError("this is not a kubeconfig", where=where)
    return dict(content)


def _named(merged: _Merged, section: str, name: str, asked: _Entry) -> _Entry:
    found = merged.entry(section, name)
    if found is None:
        known = ", ".join(merged.names(section)) or "none"
        raise UserError(f"there is no {section[:-1]} {excerpt(name)}", where=asked.where, fix=f"there is: {known}")
    return found


def _typed(entry: _Entry, what: type[T]) -> T:
    try:
        return msgspec.convert({key: value for key, value in entry.value.items() if value is not None}, what)
    except msgspec.ValidationError as error:
        raise UserError(str(error), where=entry.where) from None


def _access(where: str, namespace: str, cluster_entry: _Entry, user_entry: _Entry) -> Access:
    cluster, user = _typed(cluster_entry, _Cluster), _typed(user_entry, _KubeconfigUser)
    if user.auth_provider is not None:
        what = "users that get their credentials by `auth-provider` are not supported"
        raise UserError(what, where=user_entry.where.below("auth-provider"), fix=_DO_WITHOUT)
    authority = _bytes(cluster_entry, "certificate-authority")
    if authority and cluster.insecure_skip_tls_verify:
        what = "insecure-skip-tls-verify and a certificate-authority exclude each other"
        raise UserError(what, where=cluster_entry.where, fix="remove one of them")
    if cluster.proxy_url and not cluster.proxy_url.startswith(_PROXIES):
        what = f"{excerpt(cluster.proxy_url)} is not an http or https proxy; other proxies are not supported"
        raise UserError(what, where=cluster_entry.where.below("proxy-url"))
    certificate, key_pem = _bytes(user_entry, "client-certificate"), _bytes(user_entry, "client-key")
    if bool(certificate) != bool(key_pem):
        lacks = "client-key" if certificate else "client-certificate"
        raise UserError(f"there is no {lacks}", where=user_entry.where, fix="a certificate needs its key, and a key it")
    for key, value in (("token", user.token), ("as", user.impersonated), ("as-groups", "".join(user.groups))):
        if not is_header_text(value):
            raise UserError("holds a line break or control character", where=user_entry.where.below(key))
    server = _server(cluster_entry, cluster.server)
    access = Access(
        server=server,
        where=where,
        authority=authority.decode("ascii", "replace"),
        authority_file=_file(cluster_entry, "certificate-authority"),
        is_insecure=cluster.insecure_skip_tls_verify,
        tls_name=cluster.tls_server_name,
        certificate=certificate,
        key=key_pem,
        certificate_file=_file(user_entry, "client-certificate"),
        key_file=_file(user_entry, "client-key"),
        token=user.token,
        token_file=user_entry.file.parent / user.token_file if user.token_file else None,
        headers=tuple(_headers(user)),
        proxy=cluster.proxy_url,
        namespace=namespace or "default",
        compresses=not cluster.disable_compression and not any(word in server for word in _NEAR),
    )
    return access if user.program is None else _with_program(access, user_entry, user.program, cluster)


def _with_program(access: Access, entry: _Entry, said: object, cluster: _Cluster) -> Access:
    program, wants_to_know = program_of(said, entry.where.below("exec"), entry.file.parent)
    if wants_to_know:
        config = next((one.extension for one in cluster.extensions if one.name == _FOR_PROGRAMS), None)
        program = structs.replace(program, cluster=told_of(access, config))
    return structs.replace(access, program=program)


def _server(entry: _Entry, server: str) -> str:
    if server.startswith(("https://", "http://")) and len(server.partition("//")[2].strip("/")):
        return server.rstrip("/")
    what = f"{excerpt(server)} is not a URL" if server else "the server address is missing"
    raise UserError(what, where=entry.where.below("server"), fix="it looks like https://10.0.0.1:6443")


def _headers(user: _KubeconfigUser) -> Iterable[tuple[str, str]]:
    if user.username and not user.token and not user.token_file:
        yield "Authorization", "Basic " + base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
    if user.impersonated:
        yield "Impersonate-User", user.impersonated
        for group in user.groups:
            yield "Impersonate-Group", group


def _file(entry: _Entry, key: str) -> Path | None:
    path = entry.value.get(key)
    return entry.file.parent / Path(str(path)) if path and not entry.value.get(f"{key}-data") else None


def _bytes(entry: _Entry, key: str) -> bytes:
    """Inline data takes precedence over a path."""
    data, file = entry.value.get(f"{key}-data"), _file(entry, key)
    if data:
        try:
            return base64.b64decode(str(data), validate=True)
        except (binascii.Error, ValueError):
            raise UserError("this is not base64", where=entry.where.below(f"{key}-data")) from None
    if file is None:
        return b""
    try:
        return read_whole(file, _MOST_BYTES)
    except UserError as error:
        raise UserError(f"{excerpt(str(entry.value[key]))} {error.what}", where=entry.where.below(key)) from None
